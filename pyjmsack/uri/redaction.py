"""Broker URLs for logs and error messages: only what is known to be harmless is shown."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final
from urllib.parse import unquote_plus

from pyjmsack.uri.kinds import PASSWORD
from pyjmsack.uri.scheme import SCHEMES
from pyjmsack.uri.table import NESTED_PREFIX, OPTION_PREFIXES, OPTIONS

__all__ = ["before_secret", "redact", "resembles_secret", "split_query", "split_user_info"]

HIDDEN: Final = "***"
_SIMPLE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_COMPOSITE: Final = re.compile(r"([A-Za-z]+):(?://)?\((.*)", re.DOTALL)
_SINGLE_MEMBER: Final = re.compile(r"failover:(?://)?([A-Za-z][A-Za-z0-9+.-]*://.*)", re.DOTALL | re.IGNORECASE)
_HOST_AND_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.]*(%25\w+)?\]|[\w.-]*)(:[0-9]{0,5})?")
_OPTION_NAME: Final = re.compile(rf"({'|'.join(map(re.escape, OPTION_PREFIXES))})[A-Za-z.]+=.*", re.DOTALL)
# of a scheme that is ours: the rest of a password behind a raw comma may look like one of another
_MEMBER: Final = re.compile(rf"({'|'.join(map(re.escape, SCHEMES))})://{_HOST_AND_PORT.pattern}")


_NAME: Final = re.compile(r"(?:^|[?&(,)])([^?&(,)=:]*)(?:=|:(?!//))")
_WORDS: Final = re.compile(r"pas|ps+w|\bpwd?\b|secret|token|credential|authorization|cookie|api.?key")
_SECRETS: Final = ("password", "passcode", "passphrase", "secret", "token", "keystorepassword", "truststorepassword")


def resembles_secret(name: str) -> bool:
    """Whether an option of this name, perhaps misspelt or of another client, may have a password as its value."""
    plain = unquote_plus(name, errors="replace")
    row = OPTIONS.get(plain.removeprefix(NESTED_PREFIX))
    if row is not None:
        return row.kind is PASSWORD
    plain = plain.lower()
    last = plain.rpartition(".")[2]
    return bool(_WORDS.search(plain) or get_close_matches(last, _SECRETS, 1, 0.7))


def before_secret(text: str) -> str | None:
    """Return a query, or a URL, up to the value of the first option that resembles a secret; ``None`` without one.

    What follows must not be shown, up to the end: a password may hold any delimiter, raw.
    """
    for found in _NAME.finditer(text):
        if resembles_secret(found[1]):
            return text[: found.end()]
    return None


def split_user_info(rest: str) -> tuple[str | None, str]:
    """Split what follows ``//`` into user-info and the rest; ``None`` when there is no user-info.

    Also finds one that holds a ``/``, ``?`` or ``#`` raw: it ends at the last ``@`` before the first ``=``. A later
    ``@`` is part of an option's value.
    """
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    scope = authority if "@" in authority else rest.partition("=")[0]
    user_info, at, _ = scope.rpartition("@")
    return (user_info, rest[len(user_info) + 1 :]) if at else (None, rest)


def split_query(rest: str) -> tuple[str, str]:
    """Split what follows ``//`` into address and query, without the fragment."""
    address, _, query = rest.partition("#")[0].partition("?")
    return address, query


def redact(url: str) -> str:
    """Return a broker URL without passwords and user-info.

    Works on text that is no URL as well: what cannot be told from a password becomes ``***``.
    """
    if composite := _COMPOSITE.fullmatch(url):
        return _redact_composite(composite[1], composite[2])
    if single := _SINGLE_MEMBER.fullmatch(url):
        return f"failover:{redact(single[1])}"
    simple = _SIMPLE.fullmatch(url)
    if simple is None:
        return url if _HOST_AND_PORT.fullmatch(url) else HIDDEN
    user_info, rest = split_user_info(simple[2])
    if user_info is None:
        return f"{simple[1]}://{_redact_rest(rest)}"
    # options where the '?' was forgotten: then the '@' may belong to a password, and so may what follows it
    return f"{simple[1]}://{HIDDEN}@" + (HIDDEN if "=" in user_info else _redact_rest(rest))


def _redact_rest(rest: str) -> str:
    address, query = split_query(rest)
    host, slash, path = address.partition("/")
    shown = host if _HOST_AND_PORT.fullmatch(host) else HIDDEN
    shown += slash + (HIDDEN if path else "")
    if query:
        harmless = before_secret(query)
        shown += "?" + "&".join(_redact_option(part) for part in (harmless or query).split("&"))
    return shown + (f"#{HIDDEN}" if "#" in rest else "")


def _redact_option(part: str) -> str:
    name = part.partition("=")[0]
    row = OPTIONS.get(name)
    if row is not None and not row.kind.secret:
        return part
    return f"{name}={HIDDEN}" if _OPTION_NAME.fullmatch(part) else HIDDEN


def _redact_composite(scheme: str, rest: str) -> str:
    harmless = before_secret(rest)
    members, closed, after = (rest if harmless is None else harmless).partition(")")
    shown = [member.partition("?")[0] for member in members.split(",")]
    if "@" in rest or not all(_MEMBER.fullmatch(member) for member in shown):
        shown = [HIDDEN]
    if harmless is not None and not closed:
        shown, closed = [*shown, HIDDEN], ")"
    return f"{scheme}:({','.join(shown)}{closed}" + (f"?{HIDDEN}" if after else "")

"""The part of a broker URL before its options: scheme, host and port, or the members of a failover URL.

:func:`redact` writes a whole URL for logs and error messages. The result shows only parts that cannot be secret.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, NamedTuple, NoReturn
from urllib.parse import unquote_plus

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.java_options.schemes import JAVA_SCHEMES, JavaScheme
from pyjmsack.uri.option import PASSWORD, nearest
from pyjmsack.uri.table import NESTED_PREFIX, OPTION_PREFIXES, OPTIONS
from pyjmsack.uri.transport import SCHEMES

__all__ = [
    "FAILOVER",
    "PLAIN",
    "Address",
    "Composite",
    "before_secret",
    "check_plain",
    "in_our_schemes",
    "parse_address",
    "redact",
    "refuse",
    "resembles_secret",
    "scheme_of",
    "shows_no_secret",
    "split_composite",
    "split_query",
    "split_user_info",
]

FAILOVER: Final = "failover"
PLAIN: Final = "amqp://host:5672"
_DISCOVERY: Final = "discovery"
_TLS: Final = "amqps://host:5671"
_WEBSOCKET: Final = "amqpws://host:5672"
_WEBSOCKET_TLS: Final = "amqpwss://host:5671"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BEGINNING: Final = re.compile(r"(?<![^(,\s])([A-Za-z][A-Za-z0-9+.-]*)://")
# this pattern finds a further member in the value of an option; only the value of priorityURIs may list brokers
_ANOTHER_MEMBER: Final = re.compile(r"(?:^|&)(?!(?:failover\.)?priorityURIs=)[^&]*,\s*[A-Za-z][A-Za-z0-9+.-]*://")
_HOST_CHARACTERS: Final = re.compile(r"[\w.-]+")


class Address(NamedTuple):
    """The parts of the URL of a single broker. ``port`` is ``None`` if the URL has no port."""

    scheme: str
    host: str
    port: int | None
    user_info: str | None
    query: str


class Composite(NamedTuple):
    """The parts of a failover URL.

    A URL without ``parentheses`` has only one query. If the URL has several members, the query belongs to the whole
    URL. If the URL has only one member, the query has the options of the member and of the whole URL.
    """

    members: tuple[str, ...]
    query: str
    parentheses: bool


def refuse(what: str, why: str) -> NoReturn:
    """Raise an error about a malformed URL. ``what`` names the URL without its secrets. ``why`` names the mistake."""
    raise InvalidURLException(f"{what}: {why}")


def scheme_of(url: str) -> str:
    """Return the text before the first colon, in lower case."""
    return url.partition(":")[0].lower()


def parse_address(what: str, url: str) -> Address:
    """Return the parts of the URL of a single broker. ``what`` names the URL in error messages.

    Raises:
        InvalidURLException: the URL is malformed, or its scheme is unknown.
        UnsupportedFeatureException: Java clients know the scheme, but this library does not support it.
    """
    scheme, rest = _split_scheme(what, url)
    user_info, rest = split_user_info(rest)
    address, query = split_query(rest)
    authority, _, path = address.partition("/")
    if path:
        refuse(what, f"a path is not allowed; a virtual host is written as the option {SCHEMES[scheme].protocol}.vhost")
    if "#" in rest:
        refuse(what, "'#' is not allowed; inside a value write %23")
    host, port = _host_and_port(what, authority)
    return Address(scheme, host, port, user_info, query)


def check_plain(what: str, urls: Iterable[str]) -> None:
    """Check that no address of a list has a login or options. ``what`` names the list in the error message. The message
    shows no address, because a comma in a password cuts the address into two.

    Raises:
        InvalidURLException: there is a login, or an option.
    """
    if any("@" in url or "?" in url for url in urls):
        refuse(what, f"expected addresses without a user, a password or options, such as {PLAIN}")


def split_composite(what: str, url: str) -> Composite:
    """Return the parts of a failover URL. The URLs of the members are not parsed.

    Raises:
        InvalidURLException: the parentheses do not match, or a member is empty.
    """
    rest = url.partition(":")[2].strip()
    if rest.startswith("//"):
        rest = rest[2:].strip()
    if not rest.startswith("("):
        return _without_parentheses(what, rest)
    inside, closed, after = rest[1:].partition(")")
    after = after.removeprefix("/")
    if not closed or (after and not after.startswith("?")):
        refuse(what, "expected failover:(uri,uri)?options; inside a value write ( as %28 and ) as %29")
    if "#" in after:
        refuse(what, "'#' is not allowed; inside a value write %23")
    return Composite(_split_members(what, inside), after[1:], True)


def _without_parentheses(what: str, rest: str) -> Composite:
    """Read ``failover:uri,uri?options`` as ActiveMQ does. Refuse the text if it can have more than one meaning."""
    text, _, query = rest.partition("?")
    if not text or ("," in text and "@" in text) or _ANOTHER_MEMBER.search(query):
        refuse(what, f"expected failover:(uri,uri)?options, such as failover:({PLAIN},amqp://other:5672)")
    return Composite(_split_members(what, text), query, False)


def _split_members(what: str, text: str) -> tuple[str, ...]:
    members = tuple(member.strip() for member in text.split(","))
    if not all(members):
        refuse(what, f"expected the URL of a broker, such as {PLAIN}, on both sides of a comma")
    return members


def _split_scheme(what: str, url: str) -> tuple[str, str]:
    scheme = scheme_of(url)
    if scheme == _DISCOVERY:
        why = JAVA_SCHEMES[scheme].why_not
        supported = ", ".join((*SCHEMES, FAILOVER))
        raise UnsupportedFeatureException(
            f"{scheme} URLs are known but not supported: {why}; supported are {supported}"
        )
    if scheme == FAILOVER:
        refuse(what, "a failover URL cannot be a member of another failover URL")
    if scheme in JAVA_SCHEMES and scheme not in SCHEMES:
        raise InvalidURLException(f"{scheme}:// {_instead(JAVA_SCHEMES[scheme])}")
    match = _SCHEME.fullmatch(url)
    if match is None:
        refuse(what, f"expected a scheme and a host, such as {PLAIN}; a comma in a value is written %2C")
    if scheme not in SCHEMES:
        near = nearest(scheme, (*SCHEMES, FAILOVER))
        refuse(what, "unknown scheme, " + (f"did you mean {near}?" if near else f"use {PLAIN}"))
    return scheme, match[2]


def in_our_schemes(url: str) -> str:
    """Return the URL with schemes of AMQP in place of those schemes that only Java clients have, such as ``tcp``."""
    return _BEGINNING.sub(_in_our_scheme, url.partition("?")[0]) + "".join(url.partition("?")[1:])


def _in_our_scheme(found: re.Match[str]) -> str:
    scheme = found[1].lower()
    if scheme == _DISCOVERY or scheme in SCHEMES or scheme not in JAVA_SCHEMES:
        return found[0]
    return f"{scheme_of(_own(JAVA_SCHEMES[scheme]))}://"


def _own(java: JavaScheme) -> str:
    return (_WEBSOCKET_TLS if java.tls else _WEBSOCKET) if java.websocket else _TLS if java.tls else PLAIN


def _instead(java: JavaScheme) -> str:
    """Return the meaning of a scheme of a Java client's URL, and its replacement."""
    own = _own(java)
    why = f"; {java.why_not}" if java.why_not else ""
    return f"is {java.says}, which this client does not speak; use {own} (the broker's AMQP port){why}"


def _host_and_port(what: str, authority: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        well_formed = bool(bracket) and (not port or port.startswith(":"))
        port = port[1:]
        host = host.replace("%25", "%")
    else:
        host, _, port = authority.partition(":")
        well_formed = ":" not in port
    if not well_formed:
        refuse(what, "expected host:port; an IPv6 address goes in brackets, as in amqp://[::1]:5672")
    _check_host(what, host, ipv6=authority.startswith("["))
    return host, _port(what, port)


def _check_host(what: str, host: str, *, ipv6: bool) -> None:
    if not host:
        refuse(what, f"the host is missing; expected {PLAIN}")
    try:
        if ipv6:
            ipaddress.IPv6Address(host)
        elif not _HOST_CHARACTERS.fullmatch(host):
            raise ValueError
        else:
            # ``getaddrinfo`` encodes the host in the same way, and refuses labels that are empty or too long
            host.encode("idna")
    except ValueError:
        refuse(what, "the host is neither a name nor an address")


def _port(what: str, text: str) -> int | None:
    if not text:
        return None
    if not re.fullmatch("[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        refuse(what, "the port must be a number from 1 to 65535")
    return int(text)


# -- without secrets -------------------------------------------------------------------------------------------------


HIDDEN: Final = "***"
_SIMPLE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_COMPOSITE: Final = re.compile(r"([A-Za-z]+):(?://)?\((.*)", re.DOTALL)
_SINGLE_MEMBER: Final = re.compile(r"failover:(?://)?([A-Za-z][A-Za-z0-9+.-]*://.*)", re.DOTALL | re.IGNORECASE)
_HOST_AND_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.]*(%25\w+)?\]|[\w.-]*)(:[0-9]{0,5})?")
_OPTION_NAME: Final = re.compile(rf"({'|'.join(map(re.escape, OPTION_PREFIXES))})[A-Za-z.]+=.*", re.DOTALL)
# only our schemes fit, because after an unescaped comma the rest of a password may look like a URL of another scheme
_MEMBER: Final = re.compile(rf"({'|'.join(map(re.escape, SCHEMES))})://{_HOST_AND_PORT.pattern}")


_NAME: Final = re.compile(r"(?:^|[?&(,)])([^?&(,)=:]*)(?:=|:(?!//))")
_PATTERN: Final = re.compile(r"\[[^\[\]]*\]")
_WORDS: Final = re.compile(r"pas|ps+w|\bpwd?\b|secret|token|credential|authorization|cookie|api.?key")
_SECRETS: Final = ("password", "passcode", "passphrase", "secret", "token", "keystorepassword", "truststorepassword")


def resembles_secret(name: str) -> bool:
    """Return whether the value of an option with this name may be a password. The name may be misspelt, or may be the
    name of an option of another client.
    """
    plain = unquote_plus(name, errors="replace")
    row = OPTIONS.get(plain.removeprefix(NESTED_PREFIX))
    if row is not None:
        return row.kind is PASSWORD
    plain = plain.lower()
    last = plain.rpartition(".")[2]
    return bool(_WORDS.search(plain) or get_close_matches(last, _SECRETS, 1, 0.7))


def before_secret(text: str) -> str | None:
    """Return the part of a query, or of a URL, before the value of the first option that resembles a secret. Return
    ``None`` if there is no such option.

    The whole rest of the text must not be shown, because a password may contain any delimiter without an escape.
    """
    for found in _NAME.finditer(text):
        if resembles_secret(found[1]):
            return text[: found.end()]
    return None


def split_user_info(rest: str) -> tuple[str | None, str]:
    """Split the text after ``//`` into the user-info and the rest. The first part is ``None`` if there is no user-info.

    The user-info ends at the last ``@`` before the first ``/``, ``?`` or ``#``. If there is no such ``@``, the
    user-info may contain these characters without an escape. In this case the user-info ends at the last ``@`` before
    the first ``=``, because a later ``@`` is part of the value of an option.
    """
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    scope = authority if "@" in authority else rest.partition("=")[0]
    user_info, at, _ = scope.rpartition("@")
    return (user_info, rest[len(user_info) + 1 :]) if at else (None, rest)


def split_query(rest: str) -> tuple[str, str]:
    """Split the text after ``//`` into the address and the query. A fragment is left out."""
    address, _, query = rest.partition("#")[0].partition("?")
    return address, query


def redact(url: str) -> str:
    """Return a broker URL without passwords and user-info, for logs.

    The text need not be a URL. Each part that may be a password becomes ``***``.

    Args:
        url: the URL of a single broker, or a ``failover:`` URL.
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
        return f"{simple[1]}://" + (HIDDEN if _may_go_on(rest) else _redact_rest(rest))
    # a '=' before the '@' means that the '?' before the options is missing; then the '@' may belong to a password, and
    # so may the text after the '@'
    return f"{simple[1]}://{HIDDEN}@" + (HIDDEN if "=" in user_info or _may_go_on(rest) else _redact_rest(rest))


def shows_no_secret(url: str) -> bool:
    """Return whether a broker URL can be shown as it is, because no part of it may be a password.

    :func:`redact` hides all options of a failover URL. This function checks each of them, and each of its URLs, by the
    rule for the URL of a single broker.

    Args:
        url: the URL of a single broker, or a ``failover:`` URL. ``parse_url`` accepts it.
    """
    if scheme_of(url) != FAILOVER:
        return redact(url) == url
    members, query, _ = split_composite("broker URL", url)
    return all(redact(member) == member for member in members) and _is_open_query(query)


def _is_open_query(query: str) -> bool:
    return before_secret(query) is None and all(_is_open_option(part) for part in query.split("&") if part)


def _is_open_option(part: str) -> bool:
    name, _, value = part.partition("=")
    # the brackets have the pattern of a destination, jms.redeliveryPolicy[orders.>].maxRedeliveries
    row = OPTIONS.get(_PATTERN.sub("", name.removeprefix(NESTED_PREFIX)))
    if row is None or row.kind.secret:
        return False
    if "failover.priority_uris" not in row.targets:
        return True
    return all(redact(text.strip()) == text.strip() for text in unquote_plus(value).split(",") if text.strip())


def _redact_rest(rest: str) -> str:
    address, query = split_query(rest)
    host, slash, path = address.partition("/")
    shown = host if _HOST_AND_PORT.fullmatch(host) else HIDDEN
    shown += slash + (HIDDEN if path else "")
    if query:
        harmless = before_secret(query)
        shown += "?" + "&".join(_redact_option(part) for part in (harmless or query).split("&"))
    return shown + (f"#{HIDDEN}" if "#" in rest else "")


def _may_go_on(rest: str) -> bool:
    """Return whether a text that seems to begin with a host may be a part of a password with ``/``, ``?`` or ``#``.
    Then there is an ``@`` outside the values of options."""
    address, query = split_query(rest)
    names = (part.partition("=") for part in query.split("&"))
    odd = (f"{name}{value}" for name, _, value in names if name not in OPTIONS)
    return "@" in address or "@" in rest.partition("#")[2] or any("@" in text for text in odd)


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

"""From the query of a URL, and from ``options={...}``, to option texts by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import unquote_plus

from pyjmsack.errors import InvalidURLException
from pyjmsack.uri.kinds import Option, text_of
from pyjmsack.uri.table import NESTED_PREFIX, OPTION_PREFIXES, OPTIONS
from pyjmsack.uri.values import named

__all__ = ["decode", "has_secret", "option_texts", "query_texts"]

_BAD_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def query_texts(query: str, *, unsafe: bool = False) -> dict[str, str]:
    """Return the options of a query, decoded.

    A raw ``&`` in a password makes its rest look like options, and a raw ``?`` in user-info makes it look like a query:
    an unknown name that follows a secret, or where there is an ``@``, is not printed. ``unsafe``: a secret went before.

    Raises:
        InvalidURLException: a part without ``=``, a bad percent code, a name twice.
    """
    texts: dict[str, str] = {}
    unsafe = unsafe or "@" in query
    for position, part in enumerate(query.split("&") if query else (), start=1):
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidURLException(
                f"option number {position} of the broker URL has no '='; write name=value, and a '&' in a value as %26"
            )
        name = decode(f"the name of option number {position}", name)
        row = _row(name)
        known = row is not None or name.startswith(OPTION_PREFIXES)
        if unsafe and not known:
            raise InvalidURLException(
                f"option number {position} of the broker URL is unknown (not shown, as it may be part of a password);"
                " in a password '&' is written %26 and '?' %3F"
            )
        if name in texts:
            raise InvalidURLException(f"option {named(name)} is given twice in the broker URL")
        unsafe = unsafe or (row is not None and row.kind.secret)
        texts[name] = decode(f"option {named(name)}", value)
    return texts


def has_secret(query: str) -> bool:
    """Return True where a text may hold a password, so that what follows it may be the rest of one."""
    return "passw" in query.lower()


def _row(name: str) -> Option | None:
    return OPTIONS.get(name.removeprefix(NESTED_PREFIX))


def decode(what: str, text: str, unquoting: Callable[..., str] = unquote_plus) -> str:
    """Return ``text`` with its percent codes replaced.

    Raises:
        InvalidURLException: one of them is none, or is not UTF-8; ``what`` names the text, which is not shown.
    """
    try:
        if _BAD_PERCENT.search(text):
            raise ValueError
        return unquoting(text, errors="strict")
    except ValueError:  # no cause: its text would quote the value
        raise InvalidURLException(
            f"{what} has a '%' that is not followed by the code of a UTF-8 byte; write a percent sign as %25"
        ) from None


def option_texts(options: Mapping[str, object]) -> dict[str, str]:
    """Return the values of ``options={...}`` as they would be in a URL.

    Raises:
        InvalidURLException: a name or value of a type that has no such text.
    """
    texts: dict[str, str] = {}
    for name, value in options.items():
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise InvalidURLException(f"option names are texts, got {type(name).__name__}")
        try:
            texts[name] = text_of(value)
        except ValueError:
            row = _row(name)
            expected = row.kind.expected if row else "a text"
            kind = type(value).__name__
            raise InvalidURLException(f"option {named(name)}: expected {expected}, got {kind}") from None
    return texts

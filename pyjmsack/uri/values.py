"""From option texts to typed values, for broker URLs and for destinations alike; nothing wrong is ignored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyjmsack.errors import JMSException
from pyjmsack.uri.kinds import Option
from pyjmsack.uri.table import nearest

__all__ = ["did_you_mean", "named", "not_here", "parse_values", "shown"]

_SHOWN: Final = 60
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,60}")


def shown(value: object) -> str:
    """Return a value as error messages quote it: short, and not at all when it may hold a password."""
    text = repr(value)
    if "passw" in text.lower() or "@" in text:
        return "***"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def named(name: str) -> str:
    """Return an option's name as error messages quote it; other texts are not shown, as a password may be cut there."""
    return name if _PLAIN_NAME.fullmatch(name) else "***"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``name`` with the nearest known one, as error messages list unknown options."""
    near = nearest(name, known)
    return f"{named(name)} (did you mean {near}?)" if near else named(name)


def not_here(names: Iterable[str], hints: Mapping[str, str]) -> str:
    """Return the text about options that are known and cannot be honoured."""
    listed = (f"{name} ({hints[name]})" if hints.get(name) else name for name in names)
    return "known in Java, not supported here: " + ", ".join(listed)


def parse_values(texts: Mapping[str, str], table: Mapping[str, Option], error: type[JMSException]) -> dict[str, Any]:
    """Return the values of ``texts``, keyed by the dotted path of their field, applied in the order of the table.

    Raises:
        JMSException: of the class ``error``: a value is not what its option expects.
        UnsupportedFeatureException: a store type that is known and cannot be read yet.
    """
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    for row in table.values():
        if row.name in texts:
            first = given.setdefault(row.alias_of or row.name, row.name)
            if first != row.name:
                raise error(f"options {first} and {row.name} are two names of one; give one of them")
            values.update(dict.fromkeys(row.targets, _parse_value(row, texts[row.name], error)))
    return values


def _parse_value(row: Option, text: str, error: type[JMSException]) -> Any:
    try:
        return row.kind.parse(text)
    except (KeyError, ValueError):
        # the cause is left out: its text would repeat the value, which shown() may have to hide
        raise error(f"option {row.name}={shown(text)}: expected {row.kind.expected}") from None

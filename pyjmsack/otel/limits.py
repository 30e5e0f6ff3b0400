"""Reads the trace context that a producer wrote into a message, within limits.

A producer chooses the properties of its messages. So the size of a value is checked before the value is parsed. A value
that is too long, or is not a string, is treated like a missing value. The receiver always gets the message with all its
properties.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.propagators.textmap import Getter, Setter

from pyjmsack.loggers import get_logger

__all__ = ["BAGGAGE_LIMIT", "BAGGAGE_MEMBERS", "PropertyGetter", "PropertySetter", "property_name"]

log = get_logger("pyjmsack.otel")
VALUE_LIMIT: Final = 1024
"""The largest number of characters in a value that has no limit of its own, such as the headers of B3 and Jaeger."""
TRACEPARENT_LIMIT: Final = 512
"""The largest number of characters in ``traceparent``, which has 55. OpenTelemetry would log a warning for more."""
TRACESTATE_LIMIT: Final = 512
"""The largest number of characters in ``tracestate``. W3C requires that at least 512 are allowed."""
BAGGAGE_LIMIT: Final = 8192
"""The largest number of characters in ``baggage``. W3C requires that at least 8192 are allowed."""
BAGGAGE_MEMBERS: Final = 64
"""The largest number of entries in ``baggage``. W3C requires that at least 64 are allowed."""
_LIMITS: Final = {"traceparent": TRACEPARENT_LIMIT, "tracestate": TRACESTATE_LIMIT, "baggage": BAGGAGE_LIMIT}
BAGGAGE_LONGEST_MEMBER: Final = 4096
"""The largest number of characters in one entry of ``baggage``. OpenTelemetry reads no longer entry."""
TRACESTATE_MEMBERS: Final = 32
"""The largest number of entries in ``tracestate`` that W3C allows."""
_BLANKS: Final = r"[ \t]{0,8}"
_KEY: Final = rf"{_BLANKS}[!#$%&'*+\-.^_`|~0-9A-Za-z]+{_BLANKS}"
_EQUALS_TEXT: Final = rf"={_BLANKS}(?:[!#-+\--:<-\[\]-~]+{_BLANKS})?"
_BAGGAGE_MEMBER: Final = re.compile(f"{_KEY}{_EQUALS_TEXT}(?:;{_KEY}(?:{_EQUALS_TEXT})?)*")
"""The pattern of one entry of ``baggage``, with its metadata. OpenTelemetry would log a warning for any other entry,
and a producer must not be able to fill the log. The time of OpenTelemetry grows with the square of the number of blanks
in a row, so the pattern allows few."""
_TRACESTATE_MEMBER: Final = re.compile(
    r"(?:[a-z][_0-9a-z\-*/]{0,255}|[a-z0-9][_0-9a-z\-*/]{0,240}@[a-z][_0-9a-z\-*/]{0,13})"
    r"=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
)
"""The pattern of one entry of ``tracestate`` (W3C Trace Context, 3.3.1), for the same reason."""


def property_name(key: str) -> str:
    """Return the name of the property for a key of a propagator. A dash is replaced, because it is not allowed in the
    name of a property. The Java agent of OpenTelemetry writes the same names."""
    return key.replace("-", "__dash__")


class PropertyGetter(Getter[Mapping[str, Any]]):
    """Reads the trace context from the properties of a received message."""

    def get(self, carrier: Mapping[str, Any], key: str) -> list[str] | None:
        """Return the value in a list. The entries of ``baggage`` and ``tracestate`` have no blanks around them. Return
        ``None`` if the value is missing, not a string, empty, too long or malformed."""
        value = carrier.get(property_name(key))
        if not isinstance(value, str):
            return None
        if len(value) <= _LIMITS.get(key, VALUE_LIMIT):
            if key not in _FORMS:
                return [value]
            members = [stripped for member in value.split(",") if (stripped := member.strip(" \t"))]
            if members and _FORMS[key](members):
                return [",".join(members)]
        log.debug("a received %s of %d characters is ignored: it is too long, or malformed", key, len(value))
        return None

    def keys(self, carrier: Mapping[str, Any]) -> list[str]:
        """Return an empty list. Otherwise a propagator that searches for keys by their prefix would read all properties
        of a producer."""
        return []


class PropertySetter(Setter[dict[str, Any]]):
    """Writes the trace context into the properties of a message that is sent."""

    def set(self, carrier: dict[str, Any], key: str, value: str) -> None:
        """Write one value of the trace context into the message."""
        carrier[property_name(key)] = value


def _is_baggage(members: Sequence[str]) -> bool:
    return len(members) <= BAGGAGE_MEMBERS and all(
        len(member) <= BAGGAGE_LONGEST_MEMBER and _BAGGAGE_MEMBER.fullmatch(member) for member in members
    )


def _is_tracestate(members: Sequence[str]) -> bool:
    return len(members) <= TRACESTATE_MEMBERS and all(map(_TRACESTATE_MEMBER.fullmatch, members))


_FORMS: Final[Mapping[str, Callable[[Sequence[str]], bool]]] = {"baggage": _is_baggage, "tracestate": _is_tracestate}
"""Checks the entries of the values whose wrong entries OpenTelemetry would log."""

"""Reads the trace context that a producer wrote into a message, within limits.

A producer chooses the properties of its messages. So the size of a value is checked before the value is parsed. A value
that is too long, or is not a string, is treated like a missing value. The receiver always gets the message with all its
properties.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.propagators.textmap import Getter, Setter

from pyjmsack.loggers import get_logger

__all__ = ["BAGGAGE_LIMIT", "BAGGAGE_MEMBERS", "PropertyGetter", "PropertySetter", "property_name"]

log = get_logger("pyjmsack.otel")
VALUE_LIMIT: Final = 1024
"""The largest number of characters in a value that has no limit of its own, such as ``traceparent`` (55 characters) and
the headers of B3 and Jaeger."""
TRACESTATE_LIMIT: Final = 512
"""The largest number of characters in ``tracestate``. W3C requires that at least 512 are allowed."""
BAGGAGE_LIMIT: Final = 8192
"""The largest number of characters in ``baggage``. W3C requires that at least 8192 are allowed."""
BAGGAGE_MEMBERS: Final = 64
"""The largest number of entries in ``baggage``. W3C requires that at least 64 are allowed."""
_LIMITS: Final = {"tracestate": TRACESTATE_LIMIT, "baggage": BAGGAGE_LIMIT}
_MEMBER: Final = re.compile(r"[ \t]*[!#$&'*\-.^_`|~0-9A-Za-z]+[ \t]*=[\t !#-+\--~]*", re.ASCII)
"""The pattern of one entry of ``baggage``, with its metadata. OpenTelemetry would log a warning for any other entry,
and a producer must not be able to fill the log."""


def property_name(key: str) -> str:
    """Return the name of the property for a key of a propagator. A dash is replaced, because it is not allowed in the
    name of a property. The Java agent of OpenTelemetry writes the same names."""
    return key.replace("-", "__dash__")


class PropertyGetter(Getter[Mapping[str, Any]]):
    """Reads the trace context from the properties of a received message."""

    def get(self, carrier: Mapping[str, Any], key: str) -> list[str] | None:
        """Return the value in a list. Return ``None`` if the value is missing, not a string, too long or malformed."""
        value = carrier.get(property_name(key))
        if not isinstance(value, str):
            return None
        if len(value) > _LIMITS.get(key, VALUE_LIMIT) or (key == "baggage" and not _is_baggage(value)):
            log.debug("a received %s of %d characters is ignored: it is too long, or malformed", key, len(value))
            return None
        return [value]

    def keys(self, carrier: Mapping[str, Any]) -> list[str]:
        """Return an empty list. Otherwise a propagator that searches for keys by their prefix would read all properties
        of a producer."""
        return []


class PropertySetter(Setter[dict[str, Any]]):
    """Writes the trace context into the properties of a message that is sent."""

    def set(self, carrier: dict[str, Any], key: str, value: str) -> None:
        """Write one value of the trace context into the message."""
        carrier[property_name(key)] = value


def _is_baggage(value: str) -> bool:
    if value.count(",") >= BAGGAGE_MEMBERS:
        return False
    return all(_MEMBER.fullmatch(member) for member in value.split(","))

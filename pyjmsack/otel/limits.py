"""The context that a producer wrote into a message, read with limits.

A producer chooses the properties of its messages, so their sizes are checked before anything is parsed. A value that is
too long, or is no string, counts as absent. The receiver gets the message in any case, with all properties.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.propagators.textmap import Getter, Setter

__all__ = ["BAGGAGE_LIMIT", "BAGGAGE_MEMBERS", "PropertyGetter", "PropertySetter", "property_name"]

log = logging.getLogger("pyjmsack.otel")
VALUE_LIMIT: Final = 1024
"""Characters of any other value, such as ``traceparent`` (55 of them) and the headers of B3 and Jaeger."""
TRACESTATE_LIMIT: Final = 512
"""Characters of ``tracestate``; W3C asks for at least so many."""
BAGGAGE_LIMIT: Final = 8192
"""Characters of ``baggage``; W3C asks for at least so many."""
BAGGAGE_MEMBERS: Final = 64
"""Entries of ``baggage``; W3C asks for at least so many."""
_LIMITS: Final = {"tracestate": TRACESTATE_LIMIT, "baggage": BAGGAGE_LIMIT}
_MEMBER: Final = re.compile(r"[ \t]*[!#$&'*\-.^_`|~0-9A-Za-z]+[ \t]*=[\t !#-+\--~]*", re.ASCII)
"""One entry of ``baggage``, with its metadata. One that is not like this would make OpenTelemetry write a warning, and
a producer must not fill the log."""


def property_name(key: str) -> str:
    """Return the property for a key of a propagator: a dash is not allowed in the name of a property. The Java agent
    writes the same names."""
    return key.replace("-", "__dash__")


class PropertyGetter(Getter[Mapping[str, Any]]):
    """Reads from the properties of a received message."""

    def get(self, carrier: Mapping[str, Any], key: str) -> list[str] | None:
        """Return the value in a list; ``None`` if the value is absent, not a string, too long or malformed."""
        value = carrier.get(property_name(key))
        if not isinstance(value, str):
            return None
        if len(value) > _LIMITS.get(key, VALUE_LIMIT) or (key == "baggage" and not _is_baggage(value)):
            log.debug("a received %s of %d characters is ignored: it is too long, or malformed", key, len(value))
            return None
        return [value]

    def keys(self, carrier: Mapping[str, Any]) -> list[str]:
        """Return nothing: a propagator that looks for keys by prefix would look at all properties of a producer."""
        return []


class PropertySetter(Setter[dict[str, Any]]):
    """Writes into the properties of a message that is sent."""

    def set(self, carrier: dict[str, Any], key: str, value: str) -> None:
        """Write one value of the trace context into the message."""
        carrier[property_name(key)] = value


def _is_baggage(value: str) -> bool:
    if value.count(",") >= BAGGAGE_MEMBERS:
        return False
    return all(_MEMBER.fullmatch(member) for member in value.split(","))

"""Reads and writes the W3C trace context in less time than the propagators of OpenTelemetry.

The propagators work with span objects and copy the context, which takes time. The standard propagators write one
``traceparent`` with two ids. This module writes and reads exactly the same texts, without a span object. The
propagators themselves still write and read baggage. They also read a received context that has more than a
``traceparent``, or a ``traceparent`` of another form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import SpanContext, TraceFlags, TraceState
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pyjmsack.otel.limits import PropertySetter

__all__ = ["TraceContext", "standard"]

_SETTER: Final = PropertySetter()
_TRACEPARENT: Final = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_FLAGS: Final = [TraceFlags(number) for number in range(256)]


class TraceContext:
    """Reads and writes the trace context of a message.

    Args:
        baggage: the propagator of the baggage. ``None`` if the baggage is not propagated.
    """

    __slots__ = ("_baggage",)

    def __init__(self, baggage: W3CBaggagePropagator | None) -> None:
        self._baggage = baggage

    def write(
        self, properties: dict[str, Any], trace_id: int, span_id: int, flags: int, state: TraceState | None
    ) -> None:
        """Write the context of a span into the properties of a message.

        Args:
            properties: the properties.
            trace_id: the id of the trace.
            span_id: the id of the span.
            flags: the trace flags of the span.
            state: the ``tracestate`` of the span.
        """
        properties["traceparent"] = "00-%032x-%016x-%02x" % (trace_id, span_id, flags)  # noqa: UP031 - half as slow
        if state:
            properties["tracestate"] = state.to_header()

    def write_baggage(self, properties: dict[str, Any], context: Context, parent: SpanContext | None) -> None:
        """Write the baggage of a context into the properties of a message.

        Args:
            properties: the properties.
            context: the current context.
            parent: the span context of the current span. ``None`` if there is no current span.
        """
        if self._baggage is not None and len(context) > (0 if parent is None else 1):  # there is more than the span
            self._baggage.inject(properties, context, _SETTER)

    def read(self, properties: Mapping[str, Any]) -> SpanContext | None:
        """Return the context that a producer wrote. Return ``None`` if the propagators have to read the context."""
        if "tracestate" in properties or (self._baggage is not None and "baggage" in properties):
            return None
        value = properties.get("traceparent")
        found = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            return None
        trace_id, span_id, flags = (int(digits, 16) for digits in found.groups())
        if not (trace_id and span_id):
            return None
        return SpanContext(trace_id, span_id, is_remote=True, trace_flags=_FLAGS[flags])


def standard(propagator: TextMapPropagator) -> TraceContext | None:
    """Return an object that reads and writes the same texts as this propagator. Return ``None`` if the propagator is
    not one of the standard propagators. A subclass of a standard propagator does not count as standard.
    """
    parts: Any = getattr(propagator, "_propagators", ()) if type(propagator) is CompositePropagator else (propagator,)
    kinds = [type(part) for part in parts]
    if kinds == [TraceContextTextMapPropagator]:
        return TraceContext(None)
    return TraceContext(parts[1]) if kinds == [TraceContextTextMapPropagator, W3CBaggagePropagator] else None

"""Traces and metrics by OpenTelemetry, of the extra ``otel``.

The core tells a tracing (``spi/tracing.py``) about each send, delivery and transaction, at the places where it tells a
ledger. This package is such a tracing, by the semantic conventions 1.44 for messaging. Without a tracing, the core
compares one attribute with ``None`` per call. Nothing is patched.

- Each span is one operation of a caller. ``send`` ends with the answer of the broker. ``receive`` exists only if the
  call returns a message or raises. A message that is only prefetched has no span, and neither has a call that finds no
  message. ``process`` is the call of a listener. ``accept``, ``release``, ``modify``, ``reject`` and ``acknowledge``
  are outcomes, ``commit`` and ``rollback`` ends of transactions.
- The context goes into the encoded message, never into the caller's object. So the same message can be sent again, and
  a received message that is sent on carries the context of its new send. A ``traceparent`` that the application set
  itself stays, and the span links to it.
- ``receive`` links to the context in which the message was made. ``process`` is a child of this context. So one trace
  shows the way from the producer through the listener to the sends of the listener.
- The text of a producer is limited before it is parsed (``limits.py``).
- Code of the user (samplers, processors, exporters, hooks) runs on the caller's side or on a dispatcher, before a
  message is acknowledged. Its errors are logged (``core/tracing.py``).
"""

from __future__ import annotations

from pyjmsack.extras import missing_extra

try:
    from pyjmsack.otel.instrumentor import PyjmsackInstrumentor
    from pyjmsack.otel.settings import Settings
    from pyjmsack.otel.tracing import OpenTelemetryTracing
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "opentelemetry":
        raise
    raise ModuleNotFoundError(missing_extra("otel", "Tracing with OpenTelemetry", error), name=error.name) from None

__all__ = ["PyjmsackInstrumentor", "create_tracing"]


def create_tracing() -> OpenTelemetryTracing:
    """Return the tracing of one new connection, with the global settings: ``jms.tracing=opentelemetry``."""
    return OpenTelemetryTracing(Settings())

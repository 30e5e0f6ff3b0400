"""Traces and metrics by OpenTelemetry, of the extra ``otel``.

Design. The core tells a tracing (``spi/tracing.py``) of each send, delivery and transaction, at the places where it
tells a ledger. This package is the tracing of the semantic conventions 1.44 for messaging. Without it the core compares
one attribute with ``None`` per call; nothing is patched.

- A span belongs to what a caller asked for. ``send`` ends with the answer of the broker. ``receive`` exists only if a
  message is returned, or the call raises: a message that is merely prefetched has no span, and an empty poll neither.
  ``process`` is the call of a listener. ``accept``, ``release``, ``modify``, ``reject`` and ``acknowledge`` are
  outcomes, ``commit`` and ``rollback`` ends of transactions.
- The context goes into the encoded message, never into the caller's object. So the same message can be sent again, and
  a received message that is sent on carries the context of its new send. A ``traceparent`` that the application set
  itself stays, and the span links to it.
- ``receive`` links to the context in which the message was made, and ``process`` is its child, so that one trace shows
  the way from the producer through the listener to what the listener sends.
- What a producer wrote is bounded before it is parsed (``limits.py``).
- Code of the user (samplers, processors, exporters, hooks) runs on the caller's side or on a dispatcher, before a
  message is acknowledged. What it raises is logged (``core/tracing.py``).
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
    """Return the tracing of one new connection, with what is set globally: ``jms.tracing=opentelemetry``."""
    return OpenTelemetryTracing(Settings())

"""Traces and metrics with OpenTelemetry. This package needs the extra ``otel``.

The core reports each send, delivery and transaction to a tracing object (``spi/tracing.py``), as it reports them to a
ledger. This package makes such objects. It follows the semantic conventions 1.44 for messaging. Without a tracing
object, the core compares one attribute with ``None`` for each call. No function is patched.

- Each span is one operation of a caller. The span ``send`` ends when the broker has answered. The span ``receive``
  exists only if the call returns a message or raises an error. A message that is only prefetched has no span. A call
  that finds no message has no span. The span ``process`` is the call of a listener. The spans ``accept``, ``release``,
  ``modify``, ``reject`` and ``acknowledge`` are outcomes. The spans ``commit`` and ``rollback`` are ends of
  transactions.
- The trace context is written into the encoded message, and never into the object of the caller. So the caller can send
  the same object again. If the caller sends a received message again, the message carries the context of the new send.
  If the application set a ``traceparent`` itself, the message keeps this ``traceparent``, and the span links to it.
- The span ``receive`` links to the context in which the message was made. The span ``process`` is a child of this
  context. So one trace shows the way from the producer to the listener, and to the messages that the listener sends.
- A span that is not sampled is not made, if the SDK's own samplers are in use (``sampling.py``). The message and the
  listener still get the ids of the span.
- The texts that a producer wrote are limited before they are parsed (``limits.py``).
- Code of the user (samplers, processors, exporters, hooks) runs on the thread or task of the caller, or on a thread
  that calls listeners, before a message is acknowledged. An error of this code is logged (``core/tracing.py``).
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
    """Return the tracing of one new connection, with the global objects of OpenTelemetry. A connection with the option
    ``jms.tracing=opentelemetry`` uses this function."""
    return OpenTelemetryTracing(Settings())

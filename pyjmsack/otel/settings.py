"""The settings of the instrumentation, and the objects that are made from the settings: a tracer, a propagator and the
metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

from opentelemetry import metrics, propagate, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Span, TracerProvider

from pyjmsack.message import Message
from pyjmsack.version import VERSION

__all__ = ["SCHEMA", "Hook", "Instruments", "Settings"]

SCHEMA: Final = "https://opentelemetry.io/schemas/1.44.0"
NAME: Final = "pyjmsack"
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""The limits between the buckets of the histograms, in seconds. The conventions define these numbers."""
Hook = Callable[[Span, Message], Any]


@dataclass(frozen=True)
class Settings:
    """The arguments of ``PyjmsackInstrumentor().instrument()``. ``None`` for a provider or the propagators stands for
    the global object of OpenTelemetry. ``None`` for a hook means that there is no hook."""

    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None
    propagators: TextMapPropagator | None = None
    send_hook: Hook | None = None
    receive_hook: Hook | None = None
    process_parent: Literal["creation", "ambient"] = "creation"

    def __post_init__(self) -> None:
        if self.process_parent not in ("creation", "ambient"):
            raise ValueError(f"process_parent is {self.process_parent!r}; expected 'creation' or 'ambient'")

    def tracer(self) -> trace.Tracer:
        """Return the tracer, which makes the spans of a new connection."""
        return trace.get_tracer(NAME, VERSION, self.tracer_provider, SCHEMA)

    def propagator(self) -> TextMapPropagator:
        """Return the propagator that writes the trace context into messages and reads it from them."""
        return self.propagators or propagate.get_global_textmap()

    def instruments(self) -> Instruments | None:
        """Return the metrics of a new connection. Return ``None`` if nobody collects metrics."""
        provider = self.meter_provider or metrics.get_meter_provider()
        if type(provider).__module__.partition(".sdk")[0].startswith("opentelemetry.metrics"):
            return None  # this is the provider of the API without an SDK, which collects nothing
        return instruments_of(provider)


class Instruments:
    """The four metrics for messaging that the conventions define."""

    def __init__(self, provider: MeterProvider) -> None:
        meter = metrics.get_meter(NAME, VERSION, provider, SCHEMA)
        self.operation = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Duration of messaging operation initiated by a producer or consumer client.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self.process = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "Duration of processing operation.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self.sent = meter.create_counter(
            "messaging.client.sent.messages",
            "{message}",
            "Number of messages producer attempted to send to the broker.",
        )
        self.consumed = meter.create_counter(
            "messaging.client.consumed.messages",
            "{message}",
            "Number of messages that were delivered to the application.",
        )


_instruments: WeakKeyDictionary[MeterProvider, Instruments] = WeakKeyDictionary()


def instruments_of(provider: MeterProvider) -> Instruments:
    """Return the metrics of a provider. All connections share them, because an SDK warns about duplicates."""
    found = _instruments.get(provider)
    if found is None:
        found = _instruments[provider] = Instruments(provider)
    return found

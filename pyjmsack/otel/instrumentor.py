"""Switches the tracing of all new connections on and off."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]  # it has no types

from pyjmsack.otel.settings import Settings
from pyjmsack.otel.tracing import OpenTelemetryTracing
from pyjmsack.spi.tracing import install

__all__ = ["PyjmsackInstrumentor"]


class PyjmsackInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # of Any, see above
    """Switches spans and metrics on, for all connections that are opened later. ``opentelemetry-instrument`` uses this
    class."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the package that this instrumentor traces."""
        return ("pyjmsack >= 0.1",)

    def instrument(self, **kwargs: Any) -> None:
        """Trace new connections.

        Args:
            **kwargs: any of these arguments. ``tracer_provider``, ``meter_provider`` and ``propagators`` replace the
                global objects of OpenTelemetry. ``send_hook(span, message)`` is called for each message before the
                message is sent. ``receive_hook(span, message)`` is called for each message before ``receive`` returns
                the message, or a listener gets it. Both hooks are called only if the span is recorded.
                ``process_parent`` chooses the trace for the work of a listener. ``"creation"``, the default, uses the
                trace of the producer. ``"ambient"`` begins a new trace, which links to the trace of the producer.

        Raises:
            TypeError: an argument has another name.
            ValueError: ``process_parent`` is neither ``"creation"`` nor ``"ambient"``.
        """
        super().instrument(**kwargs)

    def _instrument(self, **kwargs: Any) -> None:
        kwargs.pop("skip_dep_check", None)
        settings = Settings(**kwargs)
        install(lambda: OpenTelemetryTracing(settings))

    def _uninstrument(self, **kwargs: Any) -> None:
        """Stop tracing new connections. Open connections are traced until they are closed."""
        install(None)

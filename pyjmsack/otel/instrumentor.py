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
    """Makes spans and metrics for connections that are opened from now on. ``opentelemetry-instrument`` finds it."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the package that this instrumentor traces."""
        return ("pyjmsack >= 0.1",)

    def instrument(self, **kwargs: Any) -> None:
        """Trace new connections.

        Args:
            **kwargs: any of these. ``tracer_provider``, ``meter_provider``, ``propagators``: instead of the global
                objects. ``send_hook(span, message)``: called for a message before it is sent, if its span is recorded.
                ``receive_hook(span, message)``: called for a message before ``receive`` returns it or a listener gets
                it. ``process_parent``: ``"creation"``, the default, puts the work of a listener into the trace of the
                producer; ``"ambient"`` begins a trace of its own that links to it.

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

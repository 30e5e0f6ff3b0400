"""The metric of the durations says the same as the spans."""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from pyjmsack import Queue, TextMessage
from pyjmsack.otel.settings import Settings
from pyjmsack.otel.tracing import OpenTelemetryTracing
from pyjmsack.spi.resources import ConsumerInfo

HOUR = 3_600 * 10**9


def receive(tracing: OpenTelemetryTracing) -> None:
    message: Any = TextMessage("a")
    tracing.consumer(ConsumerInfo(1, 1, Queue("q"), 1)).receive(message, time_ns() - HOUR, accepts=False)


def failed_receive(tracing: OpenTelemetryTracing) -> None:
    consumer = tracing.consumer(ConsumerInfo(1, 1, Queue("q"), 1))
    consumer.receive_failed(ValueError("no"), time_ns() - HOUR)


def answered_send(tracing: OpenTelemetryTracing) -> None:
    operation: Any = tracing.send(TextMessage("a"), Queue("q"), bound=True).operation
    operation.end(None, time_ns() + HOUR)


@pytest.mark.parametrize("work", [receive, failed_receive, answered_send])
def test_the_metric_lasts_as_long_as_the_span(work: Callable[[OpenTelemetryTracing], None]) -> None:
    """The wait of ``receive`` was in the span and not in the metric. The metric of a send that nobody waits for had up
    to 0.1 s too much, because its span is ended later, with the time of the answer."""
    reader = InMemoryMetricReader()
    work(OpenTelemetryTracing(Settings(meter_provider=MeterProvider([reader]))))
    (resource,) = reader.get_metrics_data().resource_metrics  # type: ignore[union-attr] # there is data
    found = {metric.name: metric.data.data_points for scope in resource.scope_metrics for metric in scope.metrics}
    (point,) = found["messaging.client.operation.duration"]
    assert 3_590 < point.sum < 3_700  # type: ignore[union-attr] # a histogram

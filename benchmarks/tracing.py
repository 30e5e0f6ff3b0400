"""What a service that is traced has: an SDK that samples a tenth of the traces, and an exporter that costs nothing."""

from __future__ import annotations

from benchmarks.job import Job

__all__ = ["prepare"]

SHARE = 0.1


def prepare(job: Job) -> None:
    """Set the SDK up, if the job's URL asks for tracing."""
    if "jms.tracing=opentelemetry" not in job.url:
        return
    from opentelemetry import trace  # late: not everybody has the extra
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    provider = TracerProvider(sampler=ParentBasedTraceIdRatio(SHARE))
    provider.add_span_processor(BatchSpanProcessor(SpanExporter()))
    trace.set_tracer_provider(provider)

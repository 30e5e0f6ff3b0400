"""A span that is not sampled is not made. All else is the same as if the SDK had decided about each span."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.baggage import get_all, set_baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk import trace as sdk
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Tracer, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    SamplingResult,
    StaticSampler,
    TraceIdRatioBased,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pyjmsack import Queue, TextMessage
from pyjmsack.otel.limits import PropertyGetter
from pyjmsack.otel.sampling import known_sampling
from pyjmsack.otel.settings import Settings
from pyjmsack.otel.tracing import OpenTelemetryTracing
from pyjmsack.otel.w3c import standard
from pyjmsack.spi.resources import ConsumerInfo

TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
TRACEPARENT = f"00-{TRACE:032x}-{SPAN:016x}-"
SAMPLERS: dict[str, Sampler] = {
    "always on": ALWAYS_ON,
    "always off": ALWAYS_OFF,
    "a third": TraceIdRatioBased(1 / 3),
    "all by ratio": TraceIdRatioBased(1.0),
    "none by ratio": TraceIdRatioBased(0.0),
    "a third, or the parent": ParentBasedTraceIdRatio(1 / 3),
    "on, or the parent": ParentBased(ALWAYS_ON),
    "the parents are sampled by ratios": ParentBased(
        ALWAYS_OFF, ALWAYS_OFF, TraceIdRatioBased(0.2), TraceIdRatioBased(0.6), ALWAYS_ON
    ),
}
PARENTS: dict[str, tuple[bool, int] | None] = {
    "no parent": None,
    "local, not sampled": (False, 0),
    "local, sampled": (False, 1),
    "remote, not sampled, random": (True, 2),
    "remote, sampled, random": (True, 3),
}


class Ids(IdGenerator):
    """The same trace ids in each run; the span ids do not depend on how many were taken for other trace ids."""

    def __init__(self) -> None:
        self._random = random.Random(7)
        self._span = random.Random(8)

    def generate_trace_id(self) -> int:
        """Return the next trace id."""
        return self._random.getrandbits(128)

    def generate_span_id(self) -> int:
        """Return the next span id."""
        return self._span.getrandbits(64)

    def is_trace_id_random(self) -> bool:
        """Return True, as the generator of the SDK does."""
        return True


class Run:
    """A tracing, and what it made. With ``short=False`` the SDK decides about each span."""

    def __init__(self, sampler: Sampler, *, short: bool, meters: bool = False, **how: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, id_generator=Ids())
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        meter = MeterProvider([self.reader]) if meters else None
        self.tracing = OpenTelemetryTracing(Settings(tracer_provider=self.provider, meter_provider=meter, **how))
        assert self.tracing.sampling is not None
        if not short:
            self.tracing.sampling = None
            self.tracing._w3c = None
        self.consumer = self.tracing.consumer(ConsumerInfo(1, 1, Queue("q"), 1))

    def spans(self, *, ids: bool) -> list[Any]:
        """Return what is exported of the spans, but for the times."""
        return [told(span, ids=ids) for span in self.exporter.get_finished_spans()]

    def metrics(self) -> dict[str, list[Any]]:
        """Return the counts of the metrics."""
        data = self.reader.get_metrics_data()
        assert data is not None
        found = data.resource_metrics[0].scope_metrics[0].metrics
        return {metric.name: [counted(point) for point in metric.data.data_points] for metric in found}


def counted(point: Any) -> Any:
    return dict(point.attributes), point.count if hasattr(point, "count") else point.value


def told(span: ReadableSpan, *, ids: bool) -> Any:
    made = span.context
    assert made is not None
    parent = None if span.parent is None else (span.parent.trace_id, span.parent.is_remote)
    links = [(link.context, link.context.trace_state.to_header()) for link in span.links]
    about = [*(span.attributes or {}).items()]
    known = (made.trace_id, int(made.trace_flags), made.trace_state.to_header(), made.span_id if ids else None)
    return span.name, span.kind, known, parent, links, about, span.status.status_code


def parent(kind: str, trace_id: int = TRACE, *, state: str = "") -> Context:
    """Return a context with a parent."""
    found = PARENTS[kind]
    if found is None:
        return Context()
    remote, flags = found
    pairs = TraceState([("vendor", state)]) if state else None
    return set_span_in_context(
        NonRecordingSpan(SpanContext(trace_id, SPAN, remote, TraceFlags(flags), pairs)), Context()
    )


@contextmanager
def current(context: Context) -> Iterator[None]:
    """Make a context the current one."""
    token = contexts.attach(context)
    yield
    contexts.detach(token)


def received(**properties: Any) -> Any:
    """Return a message as a consumer gets it."""
    message: Any = TextMessage("text")
    message._message_id, message._delivery = "ID:1", Delivery()
    message._properties, message._properties_readonly = properties, True
    return message


class Delivery:
    """What a provider delivered."""


def both(work: Callable[[Run], Any], sampler: Sampler, *, ids: bool, **how: Any) -> tuple[Any, Any]:
    """Do the same work both ways, and return the results."""
    short, full = (Run(sampler, short=each, **how) for each in (True, False))
    return (work(short), short.spans(ids=ids)), (work(full), full.spans(ids=ids))


@pytest.mark.parametrize("kind", PARENTS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sends_carry_the_same_texts_and_have_the_same_spans(sampler: str, kind: str) -> None:
    """Byte by byte, in the same order, for hundreds of trace ids of each kind; with ``tracestate`` and baggage, with
    properties, and for a received message that is sent on."""

    def work(run: Run) -> list[Any]:
        traces, found = random.Random(9), []
        for number in range(500):
            context = parent(kind, traces.getrandbits(128), state="a" if number % 3 == 1 else "")
            if number % 5 == 1:
                context = set_baggage("tenant", "ä 1", context)
            message: Any = TextMessage("text")
            message._message_id = f"ID:{number}"
            if number % 7 == 1:
                message = received(traceparent=TRACEPARENT + "01", baggage="old=1", tracestate="x=1", mine=2)
            elif number % 7 == 2:
                message.properties.update(mine=1, baggage="nobody=1")
            elif number % 7 == 3:
                message.properties["traceparent"] = TRACEPARENT + "01"
            with current(context):
                sent = run.tracing.send(message, Queue("q"), bound=True)
            found.append(None if sent.properties is None else [*sent.properties.items()])
            if sent.operation is not None:
                sent.operation.end(ValueError("no") if number % 11 == 1 else None)
        return found

    short, full = both(work, SAMPLERS[sampler], ids=True)
    assert short == full


@pytest.mark.parametrize("kind", PARENTS)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("meters", [False, True], ids=["no metrics", "metrics"])
def test_messages_are_received_with_the_same_spans(sampler: str, kind: str, meters: bool) -> None:
    """``receive`` with and without the acknowledgement, outcomes, acknowledgements of several messages, commits. The
    span ids differ, because ids of spans that nobody sees are not generated."""

    def work(run: Run) -> Any:
        traces = random.Random(9)
        for number in range(100):
            flags = ("00", "01", "02", "03")[number % 4]
            message, other = received(traceparent=f"{TRACEPARENT[:3]}{number + 1:032x}-{SPAN:016x}-{flags}"), received()
            with current(parent(kind, traces.getrandbits(128))):
                run.consumer.receive(message, None, accepts=number % 3 == 1)
                run.consumer.receive(other, 1_000, accepts=False)
                operations = [
                    run.consumer.settle("release", message),
                    run.consumer.acknowledge("acknowledge", [message._delivery, other._delivery, message._delivery]),
                    run.tracing.transaction("commit", number),
                ]
                for operation in operations:
                    if operation is not None:
                        operation.end()
        return run.metrics() if meters else None

    short, full = both(work, SAMPLERS[sampler], ids=False, meters=meters)
    assert short == full


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("how", ["creation", "ambient"])
def test_a_listener_works_in_the_same_context(sampler: str, how: Any) -> None:
    """Its logs have the ids of its span, sampled or not, its baggage is that of the producer, and what it sends goes on
    in the trace."""

    def work(run: Run) -> list[Any]:
        found: list[Any] = []
        for number in range(240):
            flags = ("00", "01", "02", "03")[number % 4]
            context = {"traceparent": f"00-{number + 1:032x}-{SPAN:016x}-{flags}"} if number % 5 else {}
            more = ({}, {"tracestate": "vendor=1"}, {"baggage": "tenant=1"})[number % 3]
            message = received(**context, **more)
            processing = run.consumer.process(message)
            span = trace.get_current_span()
            made = span.get_span_context()
            found.append((made.trace_id, int(made.trace_flags), made.trace_state.to_header(), made.is_remote))
            found.append((span.is_recording(), dict(get_all())))
            sent = run.tracing.send(TextMessage("answer"), Queue("answers"), bound=False)
            assert sent.properties is not None
            header = str(sent.properties.pop("traceparent")).split("-")
            found.append(((header[0], header[1], header[3]), sent.properties))
            if sent.operation is not None:
                sent.operation.end()
            processing.end(None)
            accept = run.consumer.settle("accept", message)
            if accept is not None:
                accept.end()
            processing.leave()
        return found

    short, full = both(work, SAMPLERS[sampler], ids=False, process_parent=how)
    assert short == full


@pytest.mark.parametrize("sampler", ["a third, or the parent", "a third"])
def test_a_third_is_sampled(sampler: str) -> None:
    """A root that is sampled keeps the trace id by which this was decided. If the SDK took another one and decided
    again, only a ninth would be sampled. With the generator of the SDK."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=SAMPLERS[sampler], id_generator=RandomIdGenerator())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = OpenTelemetryTracing(Settings(tracer_provider=provider))
    sampled = 0
    for _ in range(6_000):
        sent = tracing.send(TextMessage("a"), Queue("q"), bound=True)
        assert sent.properties is not None
        low = int(str(sent.properties["traceparent"])[19:35], 16)
        assert (sent.operation is not None) == (low < (2**64) // 3)
        sampled += sent.operation is not None
    assert 1_700 < sampled < 2_300, "the mean is 2,000, and 300 are more than eight deviations"


def test_the_sdk_is_not_called_for_a_span_that_is_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for sends nor for listeners nor for what follows. That is what makes it cheap."""
    run = Run(ParentBasedTraceIdRatio(0.0), short=True)

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the SDK was called")

    monkeypatch.setattr(Tracer, "start_span", refuse)
    monkeypatch.setattr(ParentBased, "should_sample", refuse)
    monkeypatch.setattr(TraceContextTextMapPropagator, "inject", refuse)
    monkeypatch.setattr(TraceContextTextMapPropagator, "extract", refuse)
    assert run.tracing.send(TextMessage("a"), Queue("q"), bound=True).operation is None
    message = received(traceparent=TRACEPARENT + "00")
    for accepts in (True, False):
        run.consumer.receive(message, None, accepts=accepts)
    processing = run.consumer.process(message)
    assert run.tracing.send(TextMessage("a"), Queue("q"), bound=True).operation is None
    processing.end(None)
    assert run.consumer.settle("accept", message) is None
    processing.leave()
    assert run.consumer.acknowledge("acknowledge", [message._delivery]) is None
    assert run.tracing.transaction("commit", 1) is None


class Stranger(Sampler):
    """Decides by the name of the span."""

    def should_sample(self, parent_context: Any, trace_id: int, name: str, *_: Any, **__: Any) -> SamplingResult:
        """Sample sends."""
        return SamplingResult(Decision.RECORD_AND_SAMPLE if name.startswith("send") else Decision.DROP)

    def get_description(self) -> str:
        """Pretend to be another sampler."""
        return "AlwaysOffSampler"


class OwnRatio(TraceIdRatioBased):
    """A subclass may do anything."""


class OwnParentBased(ParentBased):
    """A subclass may do anything."""


UNKNOWN: dict[str, Sampler] = {
    "another sampler": Stranger(),
    "a subclass": OwnRatio(0.1),
    "a subclass that follows the parent": OwnParentBased(ALWAYS_OFF),
    "another sampler for roots": ParentBased(Stranger()),
    "another sampler for one kind of parent": ParentBased(ALWAYS_OFF, remote_parent_not_sampled=Stranger()),
    "one that follows the parent inside another": ParentBased(ParentBased(ALWAYS_OFF)),
    "spans that are recorded and not sampled": StaticSampler(Decision.RECORD_ONLY),
}


@pytest.mark.parametrize("sampler", UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_sampler_decides_itself(sampler: Sampler) -> None:
    """Only the samplers of the SDK are known, by their exact types."""
    assert known_sampling(TracerProvider(sampler=sampler).get_tracer("x")) is None


class OwnTracer(Tracer):
    """A subclass may do anything."""


def test_an_unknown_tracer_decides_itself() -> None:
    """A subclass, and the tracer of the API without an SDK."""
    tracer: Any = TracerProvider().get_tracer("x")
    assert known_sampling(tracer) is not None
    tracer.__class__ = OwnTracer
    assert known_sampling(tracer) is None
    assert OpenTelemetryTracing(Settings(tracer_provider=trace.NoOpTracerProvider())).sampling is None


def test_an_sdk_that_counts_spans_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """``OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED``: its counts have the spans that are not sampled too."""
    tracer: Any = TracerProvider().get_tracer("x")
    monkeypatch.setattr(tracer, "_tracer_metrics", object(), raising=False)
    assert known_sampling(tracer) is None


def test_an_sdk_with_another_rule_decides_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later SDK may take other bits of the trace id, or may write the ratio into ``tracestate``."""

    def by_other_bits(self: Any, context: Any, trace_id: int, *_: Any, **__: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_AND_SAMPLE if (trace_id >> 64) < self.bound else Decision.DROP)

    def by_tracestate(self: Any, context: Any, trace_id: int, *_: Any, **__: Any) -> SamplingResult:
        decision = Decision.RECORD_AND_SAMPLE if trace_id & self.TRACE_ID_LIMIT < self.bound else Decision.DROP
        return SamplingResult(decision, None, TraceState([("ot", "th:8")]))

    tracer: Any = TracerProvider(sampler=TraceIdRatioBased(0.5)).get_tracer("x")
    assert known_sampling(tracer) is not None
    for rule in (by_other_bits, by_tracestate):
        monkeypatch.setattr(TraceIdRatioBased, "should_sample", rule)
        assert known_sampling(tracer) is None


def test_a_sampler_that_is_replaced_decides_itself() -> None:
    """Also while a connection is open."""
    run = Run(ALWAYS_OFF, short=True)
    run.tracing.tracer.sampler = ALWAYS_ON  # type: ignore[attr-defined] # the tracer of the SDK has it
    assert run.tracing.send(TextMessage("a"), Queue("q"), bound=True).operation is not None


def test_a_disabled_tracer_makes_no_ids() -> None:
    """Also if it is disabled while a connection is open."""
    run = Run(ALWAYS_OFF, short=True)
    provider: Any = run.provider
    disabled = getattr(sdk, "_disable_tracer_configurator", None)
    if disabled is None:
        pytest.skip("this SDK cannot disable a tracer")
    assert run.tracing.send(TextMessage("a"), Queue("q"), bound=True).properties != {}
    provider._set_tracer_configurator(tracer_configurator=disabled)
    assert run.tracing.send(TextMessage("a"), Queue("q"), bound=True).properties == {}


class OwnPropagator(TraceContextTextMapPropagator):
    """A subclass may do anything."""


def test_only_the_standard_propagators_are_known() -> None:
    """By their exact types, and in their order."""
    plain, baggage = TraceContextTextMapPropagator(), W3CBaggagePropagator()
    assert standard(plain) is not None
    assert standard(CompositePropagator([plain, baggage])) is not None
    for unknown in ([baggage, plain], [baggage], [], [OwnPropagator()], [plain, baggage, plain]):
        assert standard(CompositePropagator(unknown)) is None
    assert standard(OwnPropagator()) is None


def test_another_propagator_writes_a_context_that_is_not_sampled() -> None:
    """It gets the span that was not made by the SDK, with its ids."""
    short, full = both(
        lambda run: run.tracing.send(TextMessage("a"), Queue("q"), bound=True).properties,
        ALWAYS_OFF,
        ids=True,
        propagators=OwnPropagator(),
    )
    assert short == full
    assert short[0]["traceparent"].endswith(("-00", "-02"))


@pytest.mark.parametrize(
    "value",
    [
        *(
            TRACEPARENT + flags
            for flags in ("00", "01", "02", "03", "ff", "0", "001", "0g", "00-x", "00 ", "00\n", "0F")
        ),
        f" {TRACEPARENT}01\t",
        f"00-{TRACE:032x}-{0:016x}-01",
        f"00-{0:032x}-{SPAN:016x}-01",
        f"01{TRACEPARENT[2:]}01-more",
        f"ff{TRACEPARENT[2:]}01",
        "",
        42,
        None,
        TRACEPARENT.upper() + "01",
        TRACEPARENT.replace("1", "\u0661") + "01",
    ],
)
@pytest.mark.parametrize("more", [{}, {"tracestate": "a=1"}, {"tracestate": "=,"}, {"baggage": "a=1"}], ids=str)
def test_a_context_is_read_as_the_propagators_read_it(value: Any, more: dict[str, Any]) -> None:
    """Each text, with and without ``tracestate`` and baggage, from any producer."""
    run = Run(ALWAYS_OFF, short=True)
    properties = {"traceparent": value, **more}
    found = run.tracing.extract(received(**properties))
    expected = run.tracing.propagator.extract(properties, Context(), PropertyGetter())
    assert dict(get_all(found)) == dict(get_all(expected))
    spans = [trace.get_current_span(each).get_span_context() for each in (found, expected)]
    assert spans[0] == spans[1]
    assert spans[0].trace_state.to_header() == spans[1].trace_state.to_header()
    assert len(found) == len(expected)

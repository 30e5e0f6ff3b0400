"""Spans and metrics by the semantic conventions of OpenTelemetry 1.44."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contract.brokers import alike, only_on
from contract.harness import Completed, Gate, Heard, Jms, take, texts
from pyjmsack import AckMode, App, Message, ResourceAllocationException, aio

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.trace import SpanKind, StatusCode

from pyjmsack.otel import PyjmsackInstrumentor

pytestmark = only_on("artemis", "spans are made by the client, from what each provider says alike")
AUTO, CLIENT, INDIVIDUAL = AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Tracing:
    """What was traced in one test."""

    def __init__(self, share: float = 1.0) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=ParentBasedTraceIdRatio(share))
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self._instrumentor = PyjmsackInstrumentor()

    def instrument(self, **how: Any) -> None:
        """Trace the connections that are opened from now on."""
        self.close()
        self._instrumentor.instrument(tracer_provider=self.provider, meter_provider=self.meters, **how)

    def close(self) -> None:
        """Trace no more."""
        if self._instrumentor.is_instrumented_by_opentelemetry:
            self._instrumentor.uninstrument()

    @property
    def spans(self) -> list[ReadableSpan]:
        """Return the ended spans."""
        return list(self._exporter.get_finished_spans())

    def named(self, operation: str) -> list[ReadableSpan]:
        """Return the ended spans of one operation in the order of their starts. The span of an answer can end
        before the caller who sent the question has noted the end of that send."""
        found = [span for span in self.spans if attributes(span).get("messaging.operation.name") == operation]
        return sorted(found, key=lambda span: span.start_time or 0)

    def one(self, operation: str) -> ReadableSpan:
        """Return the only span of an operation."""
        (span,) = self.named(operation)
        return span

    def metrics(self) -> dict[str, list[Any]]:
        """Return the data points of each metric."""
        data = self.reader.get_metrics_data()
        found = [] if data is None else data.resource_metrics[0].scope_metrics[0].metrics
        return {metric.name: list(metric.data.data_points) for metric in found}


@pytest.fixture
def traced() -> Iterator[Tracing]:
    """Tracing of all connections that the scenario opens."""
    tracing = Tracing()
    tracing.instrument()
    yield tracing
    tracing.close()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


def linked(span: ReadableSpan) -> list[int]:
    """Return the ids of the spans that a span links to."""
    return [link.context.span_id for link in span.links]


def parent_of(span: ReadableSpan) -> int | None:
    """Return the id of the parent; ``None`` of a root."""
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    """Return the id of a span."""
    assert span.context is not None
    return span.context.span_id


async def test_a_send_and_a_receive_have_spans_of_the_conventions(jms: Jms, traced: Tracing) -> None:
    """The names, kinds, links and attributes of the conventions; the acknowledgement belongs to ``receive``."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("hello")
    message.correlation_id = "conversation"
    with traced.tracer.start_as_current_span("request") as request:
        await producer.send(message)
    (received,) = await take(await session.create_consumer(jms.queue), 1)
    send, receive, accept = traced.one("send"), traced.one("receive"), traced.one("accept")
    name = jms.queue.name
    assert [span.name for span in (send, receive, accept)] == [f"send {name}", f"receive {name}", f"accept {name}"]
    assert [span.kind for span in (send, receive, accept)] == [SpanKind.PRODUCER, SpanKind.CLIENT, SpanKind.CLIENT]
    assert parent_of(send) == request.get_span_context().span_id
    assert send.links == ()
    assert parent_of(receive) is None
    assert linked(receive) == linked(accept) == [id_of(send)]
    assert parent_of(accept) == id_of(receive)
    port = int(jms.url.rpartition(":")[2])
    common = {
        "messaging.system": "activemq",
        "messaging.destination.name": name,
        "messaging.message.id": received.message_id,
        "messaging.message.conversation_id": "conversation",
        "server.address": "127.0.0.1",
        "server.port": port,
    }
    kinds = {"send": (send, "send"), "receive": (receive, "receive"), "accept": (accept, "settle")}
    for operation, (span, kind) in kinds.items():
        expected = {**common, "messaging.operation.name": operation, "messaging.operation.type": kind}
        found = attributes(span)
        assert expected.items() <= found.items()
        assert str(found["messaging.client.id"]).startswith("ID:")
        assert "error.type" not in found
    assert attributes(receive)["messaging.activemq.message.delivery_count"] == 1
    assert send.instrumentation_scope is not None
    assert send.instrumentation_scope.schema_url == "https://opentelemetry.io/schemas/1.44.0"


async def test_the_context_travels_as_string_properties(jms: Jms, traced: Tracing) -> None:
    """As the Java agent writes it. The sender's own message stays as it was, so a second send has a context of its
    own."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("again")
    message.properties["mine"] = 1
    await producer.send(message)
    await producer.send(message)
    assert dict(message.properties) == {"mine": 1}
    received = await take(await session.create_consumer(jms.queue), 2)
    contexts = [each.properties["traceparent"] for each in received]
    sent = [format(id_of(span), "016x") for span in traced.named("send")]
    assert [str(context).split("-")[2] for context in contexts] == sent
    assert [each.properties["mine"] for each in received] == [1, 1]


async def test_a_received_message_that_is_sent_on_keeps_no_stale_context(jms: Jms, traced: Tracing) -> None:
    """Its ``traceparent`` belongs to the first send; the second one writes its own."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    first = session.create_text_message("on its way")
    first.properties["baggage"] = "tenant=1"
    await producer.send(first)
    consumer = await session.create_consumer(jms.queue)
    (received,) = await take(consumer, 1)
    await producer.send(received)
    (again,) = await take(consumer, 1)
    first_send, second = traced.named("send")
    assert str(again.properties["traceparent"]).split("-")[2] == format(id_of(second), "016x")
    assert "baggage" not in again.properties, "that of the first sender"
    assert second.kind is SpanKind.PRODUCER
    assert linked(traced.named("receive")[1]) == [id_of(second)]
    assert id_of(first_send) != id_of(second)


async def test_a_context_that_the_application_wrote_stays(jms: Jms, traced: Tracing) -> None:
    """A custom creation context is not modified: the send is a CLIENT span that links to it."""
    session = await jms.session()
    message = session.create_text_message("made elsewhere")
    message.properties["traceparent"] = TRACEPARENT
    await (await session.create_producer(jms.queue)).send(message)
    send = traced.one("send")
    assert send.kind is SpanKind.CLIENT
    assert [format(each, "016x") for each in linked(send)] == ["b7ad6b7169203331"]
    (received,) = await take(await session.create_consumer(jms.queue), 1)
    assert received.properties["traceparent"] == TRACEPARENT


async def test_a_listener_is_a_process_span_in_the_trace_of_the_producer(jms: Jms, traced: Tracing) -> None:
    """What the listener sends belongs to that trace, too; its acknowledgement is a child of the span."""
    session = await jms.session()
    replies = jms.queue_with("consumer.prefetchSize=10")
    writer = await (await jms.session()).create_producer(replies)
    done = Gate()

    async def listener(message: Message) -> None:
        if message.body == "question":
            await writer.send("answer")
        else:
            done.open()

    consumer = await session.create_consumer(jms.queue)
    with traced.tracer.start_as_current_span("startup"):
        consumer.message_listener = listener
        await jms.send("question")
    await done.passed()
    await jms.close()
    question, answer = traced.named("send")
    first, second = traced.named("process")
    assert first.name == f"process {jms.queue.name}"
    assert first.kind is SpanKind.CONSUMER
    assert parent_of(first) == id_of(question)
    assert linked(first) == [id_of(question)]
    assert parent_of(answer) == id_of(first)
    assert parent_of(second) == id_of(answer)
    assert [parent_of(span) for span in traced.named("accept")] == [id_of(first), id_of(second)]
    assert traced.named("receive") == [], "a listener asks for nothing"
    assert not trace.get_current_span().get_span_context().is_valid


async def test_a_trace_that_is_not_sampled_travels_on(jms: Jms, traced: Tracing) -> None:
    """From a send to the listener, whose logs have its ids, and to what the listener sends. There are no spans, and the
    metrics count all."""
    traced.close()
    unsampled = Tracing(share=0.0)
    unsampled.instrument()
    session = await jms.session()
    writer = await (await jms.session()).create_producer(jms.queue_with("consumer.prefetchSize=10"))
    heard = Heard[tuple[str, trace.SpanContext]]()

    async def listener(message: Message) -> None:
        heard((str(message.properties["traceparent"]), trace.get_current_span().get_span_context()))
        if message.body == "question":
            await writer.send("answer")

    (await session.create_consumer(jms.queue)).message_listener = listener
    await jms.send("question")
    question, answering = await heard.next()
    answer, _ = await heard.next()
    await jms.close()
    unsampled.close()
    version, trace_id, span_id, flags = question.split("-")
    assert (version, int(flags, 16) & 1) == ("00", 0)
    assert answer.split("-")[1] == trace_id == format(answering.trace_id, "032x")
    assert len({span_id, format(answering.span_id, "016x"), answer.split("-")[2]}) == 3
    assert not answering.trace_flags.sampled
    assert unsampled.spans == []
    found = unsampled.metrics()
    assert [point.value for point in found["messaging.client.sent.messages"]] == [2]
    assert [point.count for point in found["messaging.process.duration"]] == [2]


async def test_a_prefetched_message_has_no_span(jms: Jms, traced: Tracing) -> None:
    """Neither has a ``receive`` that returned nothing."""
    await jms.send("one", "two", "three")
    consumer = await jms.consumer()
    await take(consumer, 1)
    assert len(traced.named("receive")) == 1
    await take(consumer, 2)
    assert await consumer.receive(0) is None
    assert len(traced.named("receive")) == 3


async def test_a_failed_listener_and_a_failed_send_say_so(jms: Jms, traced: Tracing) -> None:
    """``error.type`` is the class of the exception; the outcome of the message is a span, too."""
    session = await jms.session()
    consumer = await session.create_consumer(jms.queue)
    again = Gate()

    def listener(message: Message) -> None:
        if message.delivery_count > 1:
            again.open()
        else:
            raise ZeroDivisionError("no")

    consumer.message_listener = listener
    await jms.send("bad")
    await again.passed()
    limited = await jms.session(options={"wireFormat.maxFrameSize": 1000})
    producer = await limited.create_producer(jms.queue)
    with pytest.raises(ResourceAllocationException):
        await producer.send(b"x" * 1001)
    await jms.close()
    assert attributes(traced.named("send")[1])["error.type"] == "ResourceAllocationException"
    bad = traced.named("process")[0]
    assert attributes(bad)["error.type"] == "ZeroDivisionError"
    assert bad.status.status_code is StatusCode.ERROR
    assert [event.name for event in bad.events] == ["exception"]
    assert parent_of(traced.one("modify")) == id_of(bad)


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL], ids=["client", "individual"])
async def test_outcomes_have_spans_that_link_to_the_messages(jms: Jms, traced: Tracing, mode: AckMode) -> None:
    """``acknowledge`` covers all that CLIENT mode delivered; an outcome of one message links to this one."""
    await jms.send("one", "two")
    session = await jms.session(mode)
    one, two = await take(await session.create_consumer(jms.queue), 2)
    sent = [id_of(span) for span in traced.named("send")]
    if mode is CLIENT:
        two.acknowledge()
        acknowledge = traced.one("acknowledge")
        assert linked(acknowledge) == sent
        assert attributes(acknowledge)["messaging.batch.message_count"] == 2
        assert attributes(acknowledge)["messaging.operation.type"] == "settle"
    else:
        one.accept()
        one.accept()
        two.release()
        assert [linked(traced.one(name)) for name in ("accept", "release")] == [[sent[0]], [sent[1]]]
        assert attributes(traced.one("release"))["messaging.message.id"] == two.message_id


async def test_a_transaction_ends_in_a_span(jms: Jms, traced: Tracing) -> None:
    """``commit`` and ``rollback`` count the messages of the transaction; single messages have no outcome of their
    own."""
    await jms.send("in")
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    consumer = await session.create_consumer(jms.queue)
    producer = await session.create_producer(jms.queue)
    await take(consumer, 1)
    await session.rollback()
    await take(consumer, 1)
    await producer.send("out")
    await session.commit()
    commit, rollback = traced.one("commit"), traced.one("rollback")
    assert (commit.name, commit.kind) == ("commit", SpanKind.CLIENT)
    assert attributes(commit)["messaging.batch.message_count"] == 2
    assert attributes(rollback)["messaging.batch.message_count"] == 1
    assert "messaging.destination.name" not in attributes(commit)
    assert traced.named("accept") == []


async def test_names_of_temporary_destinations_are_in_no_span_name(jms: Jms, traced: Tracing) -> None:
    """Their names are made for one connection; a request and its reply are linked all the same."""
    connection = await jms.connection()
    server = await connection.create_session()
    replier = await server.create_producer()

    def answer(message: Message) -> Any:
        return replier.reply(message, "yes")

    (await server.create_consumer(jms.queue)).message_listener = answer
    async with (await connection.create_session()).create_requestor(jms.queue) as requestor:
        reply = await requestor.request("really?", 15)
        assert reply is not None
    await jms.close()
    temporary = {str(attributes(span)["messaging.destination.name"]) for span in traced.spans} - {jms.queue.name}
    assert len(temporary) == 1
    assert not any(name in span.name for span in traced.spans for name in temporary)
    request, response = sorted(traced.named("send"), key=lambda span: span.start_time or 0)
    assert attributes(response)["messaging.destination.temporary"] is True
    assert response.name == f"send 127.0.0.1:{attributes(response)['server.port']}"
    process, receive = traced.one("process"), traced.one("receive")
    assert parent_of(process) == id_of(request)
    assert parent_of(response) == id_of(process)
    assert linked(receive) == [id_of(response)]


async def test_sends_that_nobody_waits_for_have_spans(jms: Jms, traced: Tracing) -> None:
    """They end with the answer of the broker, off the I/O loop; closing the connection waits for them."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    completed = Completed()
    future = producer.send_async("one")
    await producer.send("two", delivery_mode=1)
    await producer.send("three", completion_listener=completed)
    await future
    await completed.heard.next()
    await jms.close()
    assert len(traced.named("send")) == 3
    assert all(span.status.status_code is StatusCode.UNSET for span in traced.spans)


async def test_acknowledgements_in_batches_have_one_span(jms: Jms, traced: Tracing) -> None:
    """``jms.optimizeAcknowledge`` and DUPS_OK acknowledge together, perhaps from a timer."""
    await jms.send("one", "two", "three")
    connection = await jms.connection(options={"jms.optimizeAcknowledge": True, "jms.optimizeAcknowledgeTimeOut": 0})
    session = await connection.create_session()
    await take(await session.create_consumer(jms.queue), 3)
    assert traced.named("accept") == []
    await jms.close()
    accept = traced.one("accept")
    assert attributes(accept)["messaging.batch.message_count"] == 3


async def test_the_four_metrics_of_the_conventions(jms: Jms, traced: Tracing) -> None:
    """Counted once per message, with few attributes, and with the buckets of the conventions."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    await producer.send("one")
    await producer.send("two")
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 1)
    heard = Heard[Message]()
    consumer.message_listener = heard
    await heard.next()
    await jms.close()
    found = traced.metrics()
    assert set(found) == {
        "messaging.client.operation.duration",
        "messaging.process.duration",
        "messaging.client.sent.messages",
        "messaging.client.consumed.messages",
    }
    (sent,) = found["messaging.client.sent.messages"]
    assert sent.value == 2
    assert dict(sent.attributes).keys() == {
        "messaging.system",
        "messaging.operation.name",
        "messaging.operation.type",
        "messaging.destination.name",
        "server.address",
        "server.port",
    }
    assert sum(point.value for point in found["messaging.client.consumed.messages"]) == 2
    (process,) = found["messaging.process.duration"]
    assert process.count == 1
    assert process.explicit_bounds == (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
    operations = {point.attributes["messaging.operation.name"]: point.count for point in found[_DURATION]}
    assert operations == {"send": 2, "receive": 1, "accept": 2}


_DURATION = "messaging.client.operation.duration"


class Breaking(SpanProcessor):
    """A span processor that always raises."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Raise."""
        raise RuntimeError("no room for spans")

    def on_end(self, span: ReadableSpan) -> None:
        """Raise."""
        raise RuntimeError("no room for spans")


@pytest.mark.parametrize("breaks", ["processor", "hooks", "propagator"])
async def test_a_tracing_that_breaks_loses_no_message(jms: Jms, traced: Tracing, breaks: str) -> None:
    """What an exporter, a hook or a propagator raises is logged; messages go their way."""

    def hook(*_: object) -> None:
        raise RuntimeError("a hook")

    if breaks == "processor":
        traced.provider.add_span_processor(Breaking())
    elif breaks == "hooks":
        traced.instrument(send_hook=hook, receive_hook=hook)
    else:
        traced.instrument(propagators=BrokenPropagator())
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    producer = await session.create_producer(jms.queue)
    await producer.send("one")
    producer.send_async("two")
    await session.commit()
    consumer = await session.create_consumer(jms.queue)
    assert texts(await take(consumer, 2)) == ["one", "two"]
    await session.commit()
    await jms.send("three")
    heard = Heard[Message]()
    listening = await (await jms.session()).create_consumer(jms.queue)
    await consumer.close()
    listening.message_listener = heard
    assert (await heard.next()).body == "three"
    await jms.left()


class BrokenPropagator:
    """Raises."""

    fields: frozenset[str] = frozenset({"traceparent"})

    def inject(self, *_: object, **__: object) -> None:
        """Raise."""
        raise RuntimeError("inject")

    def extract(self, *_: object, **__: object) -> None:
        """Raise."""
        raise RuntimeError("extract")


async def test_hooks_see_the_span_and_the_message(jms: Jms, traced: Tracing) -> None:
    """``receive_hook`` is called for listeners as well."""
    traced.instrument(
        send_hook=lambda span, message: span.set_attribute("text", message.body),
        receive_hook=lambda span, message: span.set_attribute("text", message.body),
    )
    await jms.send("one", "two")
    session = await jms.session()
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 1)
    heard = Heard[Message]()
    consumer.message_listener = heard
    await heard.next()
    await jms.close()
    found = [attributes(span).get("text") for name in ("send", "receive", "process") for span in traced.named(name)]
    assert found == ["one", "two", "one", "two"]


async def test_process_spans_may_have_a_trace_of_their_own(jms: Jms, traced: Tracing) -> None:
    """``process_parent="ambient"``: only a link leads to the producer."""
    traced.instrument(process_parent="ambient")
    heard = Heard[Message]()
    (await (await jms.session()).create_consumer(jms.queue)).message_listener = heard
    await jms.send("one")
    await heard.next()
    await jms.close()
    process, send = traced.one("process"), traced.one("send")
    assert parent_of(process) is None
    assert linked(process) == [id_of(send)]


HOSTILE: dict[str, Any] = {
    "a huge traceparent": {"traceparent": "0" * 60_000},
    "no string": {"traceparent": 42, "tracestate": 3.5, "baggage": True},
    "much baggage": {"traceparent": TRACEPARENT, "baggage": ",".join(["a=1"] * 10_000)},
    "nonsense": {"traceparent": TRACEPARENT[:-1] + "\u2603", "tracestate": ",,,=", "baggage": "=;,\u2603= "},
}


@pytest.mark.parametrize("properties", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_context_does_no_harm(
    jms: Jms, traced: Tracing, properties: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It counts as absent, the message is received as it is, and the producer writes nothing into our log."""
    traced.close()
    session = await jms.session()
    message = session.create_text_message("poison")
    message.properties.update(properties)
    await (await session.create_producer(jms.queue)).send(message)
    traced.instrument()
    (received,) = await take(await jms.consumer(), 1)
    assert received.body == "poison"
    assert {name: received.properties[name] for name in properties}.keys() == properties.keys()
    expected = ["b7ad6b7169203331"] if properties["traceparent"] == TRACEPARENT else []
    assert [format(each, "016x") for each in linked(traced.one("receive"))] == expected
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []


@pytest.mark.option("jms.tracing", "amqp", "stomp")
@alike("the option is read by the core")
async def test_the_option_of_the_url_traces_without_an_instrumentor(
    jms: Jms, traced: Tracing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``jms.tracing=opentelemetry``: with what is set globally."""
    traced.close()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", traced.provider)
    session = await jms.session(options={"jms.tracing": "opentelemetry"})
    await (await session.create_producer(jms.queue)).send("one")
    await (await (await jms.session()).create_producer(jms.queue)).send("two")
    assert len(traced.named("send")) == 1


@alike("an App knows neither face nor protocol")
async def test_a_listener_of_an_app_is_a_process_span(jms: Jms, traced: Tracing) -> None:
    """The commit of its transaction, and what it sends, are children of the span; its ``receive`` has none."""
    heard, out = Heard[str](), f"{jms.queue.name}.out"
    await jms.send("work")
    if jms.face.name == "aio":
        service = aio.App(jms.url)

        @service.listener(jms.queue)
        async def listen(body: str) -> None:
            await service.sender.send(out, body)
            heard(body)

        async with service:
            assert await heard.next() == "work"
    else:
        blocking = App(jms.url)

        @blocking.listener(jms.queue)
        def listen_blocking(body: str) -> None:
            blocking.sender.send(out, body)
            heard(body)

        with blocking:
            assert await heard.next() == "work"
    work, sent = traced.named("send")
    process = traced.one("process")
    assert parent_of(process) == id_of(work)
    assert traced.named("receive") == []
    assert parent_of(traced.one("commit")) == id_of(process)
    assert parent_of(sent) == id_of(process)

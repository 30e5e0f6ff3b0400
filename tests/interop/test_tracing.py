"""One trace through both: Qpid JMS under the OpenTelemetry agent for Java at the other end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from agent import Agent, JavaMissingError, telemetry_agent, typed
from conftest import Site

from pyjmsack import ConnectionFactory, Message

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pyjmsack.otel import PyjmsackInstrumentor

pytestmark = pytest.mark.timeout(300)  # a JVM starts slowly under the agent


@pytest.fixture(scope="module")
def traced_qpid() -> Iterator[Agent]:
    """Qpid JMS under the agent for Java, which keeps its own spans to itself."""
    try:
        jar = telemetry_agent()
        silent = [f"-Dotel.{kind}.exporter=none" for kind in ("traces", "metrics", "logs")]
        agent = Agent("qpid", [f"-javaagent:{jar}", *silent])
    except JavaMissingError as missing:
        pytest.skip(f"no Java end: {missing}")
    yield agent
    agent.close()


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """The spans of our end."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    PyjmsackInstrumentor().instrument(tracer_provider=provider)
    yield exporter
    PyjmsackInstrumentor().uninstrument()


def test_one_trace_leads_through_python_java_and_python(
    artemis_site: Site, traced_qpid: Agent, exporter: InMemorySpanExporter, queue_name: str, no_leaks: None
) -> None:
    """Our send, Java's listener and its send, our listener: each is the child of the one before."""
    url, back = artemis_site.python_urls["qpid"], f"{queue_name}-back"
    heard: list[Message] = []
    done = threading.Event()

    def listen(message: Message) -> None:
        heard.append(message)
        done.set()

    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        listening = connection.create_session()
        listening.create_consumer(listening.create_queue(back)).message_listener = listen
        traced_qpid.start("forward", artemis_site.java_urls["qpid"], destination=queue_name, to=back)
        with connection.create_session() as session:
            session.create_producer(session.create_queue(queue_name)).send("round trip")
        assert traced_qpid.answer() == "round trip"
        assert done.wait(60)
    send, process = (one(exporter, name) for name in ("send", "process"))
    assert send.context is not None
    assert process.context is not None
    assert process.parent is not None
    assert process.context.trace_id == send.context.trace_id
    assert process.parent.span_id != send.context.span_id, "Java's spans are between ours"
    (message,) = heard
    assert str(message.properties["traceparent"]).split("-")[1:3] == [
        format(process.context.trace_id, "032x"),
        format(process.parent.span_id, "016x"),
    ]


def test_a_trace_that_java_begins_goes_on_in_python(
    artemis_site: Site, traced_qpid: Agent, exporter: InMemorySpanExporter, queue_name: str, no_leaks: None
) -> None:
    """``receive`` links to the span of Java's send."""
    document = {"type": "text", "body": "from Java", "properties": {"mine": typed("1")}}
    traced_qpid.do("send", artemis_site.java_urls["qpid"], destination=queue_name, messages=[document])
    with ConnectionFactory(artemis_site.python_urls["qpid"]).create_context() as context:
        received = context.create_consumer(context.create_queue(queue_name)).receive(60)
    assert received is not None
    (link,) = one(exporter, "receive").links
    assert str(received.properties["traceparent"]).split("-")[2] == format(link.context.span_id, "016x")
    assert received.properties["mine"] == "1"


def one(exporter: InMemorySpanExporter, operation: str) -> ReadableSpan:
    """Return the only span of an operation."""
    found = exporter.get_finished_spans()
    (span,) = (span for span in found if (span.attributes or {}).get("messaging.operation.name") == operation)
    return span

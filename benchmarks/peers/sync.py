"""pyjmsack's blocking face."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version

from benchmarks.job import PATIENCE, BenchmarkError, Job, Scenarios, Stopwatch, Timing, check_text, login, pass_gate
from benchmarks.tracing import prepare
from pyjmsack import (
    AckMode,
    ConnectionFactory,
    DeliveryMode,
    Message,
    MessageConsumer,
    MessageProducer,
    Session,
    TextMessage,
)

CLIENT = f"pyjmsack {version('pyjmsack')}"
TRANSACTION = 5
"""Messages of a transaction; Sending.java has the same number."""
CONSUMERS = (1, 10, 100, 1000)
"""Of one connection."""
IN_FLIGHT = 64
"""Requests at a time; Requesting.java has the same number."""


@contextmanager
def _session(job: Job, mode: AckMode) -> Iterator[Session]:
    username, password = login()
    prepare(job)
    factory = ConnectionFactory(job.url, username=username, password=password, ledger=job.ledger or None)
    with factory.create_connection() as connection:
        connection.start()
        with connection.create_session(mode) as session:
            pass_gate()
            yield session


@contextmanager
def _producer(job: Job, mode: AckMode = AckMode.AUTO_ACKNOWLEDGE) -> Iterator[tuple[Session, MessageProducer]]:
    with _session(job, mode) as session:
        producer = session.create_producer(session.create_queue(job.queue))
        producer.delivery_mode = DeliveryMode.PERSISTENT
        yield session, producer


def _send_async(job: Job) -> Timing:
    """Timed from the first send to the last confirmation."""
    text = job.text
    with _producer(job) as (session, producer):
        watch = Stopwatch()
        futures = [producer.send_async(session.create_text_message(text)) for _ in range(job.count)]
        for future in futures:
            future.result(PATIENCE)
        return watch.timing(len(futures), CLIENT)


def _send(job: Job) -> Timing:
    """Timed from the first send to the last confirmation."""
    text = job.text
    with _producer(job) as (session, producer):
        watch = Stopwatch()
        for _ in range(job.count):
            producer.send(session.create_text_message(text))
        return watch.timing(job.count, CLIENT)


def _send_nonpersistent(job: Job) -> Timing:
    """Timed from the first send to the answer to the producer's close, because no such send waits for the broker."""
    text = job.text
    with _producer(job) as (session, producer):
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        watch = Stopwatch()
        for _ in range(job.count):
            producer.send(session.create_text_message(text))
        producer.close()
        return watch.timing(job.count, CLIENT)


def _send_transacted(job: Job) -> Timing:
    """Timed from the first send to the answer to the last commit."""
    text = job.text
    with _producer(job, AckMode.SESSION_TRANSACTED) as (session, producer):
        watch = Stopwatch()
        for number in range(1, job.count + 1):
            producer.send(session.create_text_message(text))
            if number % TRANSACTION == 0 or number == job.count:
                session.commit()
        return watch.timing(job.count, CLIENT)


def read(message: Message | None, job: Job) -> None:
    """Touch the text of a received message."""
    if not isinstance(message, TextMessage):
        raise BenchmarkError(f"expected a TextMessage, got {message!r}")
    check_text(message.text, job)


def _drained(consumer: MessageConsumer, job: Job) -> Timing:
    """Timed from the first message to the answer to the consumer's close."""
    message = consumer.receive(PATIENCE)
    watch = Stopwatch()
    read(message, job)
    for _ in range(job.count - 1):
        read(consumer.receive(PATIENCE), job)
    consumer.close()
    return watch.timing(job.count, CLIENT)


def _receive(job: Job) -> Timing:
    """Out of a queue that is full."""
    with _session(job, AckMode.AUTO_ACKNOWLEDGE) as session:
        consumer = session.create_consumer(session.create_queue(job.queue))
        return _drained(consumer, job)


def _receive_topic(job: Job, mode: AckMode) -> Timing:
    """From a topic; all are sent before the connection starts."""
    username, password = login()
    with ConnectionFactory(job.url, username=username, password=password).create_connection() as connection:
        session = connection.create_session(mode)
        topic = session.create_topic(f"{job.queue}.topic")
        consumer = session.create_consumer(topic)
        with connection.create_session().create_producer(topic) as producer:
            for future in [producer.send_async(job.text) for _ in range(job.count)]:
                future.result(PATIENCE)
        connection.start()
        return _drained(consumer, job)


def shares(count: int, among: int) -> list[int]:
    """Return how many of ``count`` each of so many gets."""
    each, more = divmod(count, among)
    return [each + (place < more) for place in range(among)]


def _answer(session: Session, job: Job) -> None:
    """Reply to each request with its text."""
    producer = session.create_producer()
    producer.delivery_mode = DeliveryMode.NON_PERSISTENT
    consumer = session.create_consumer(session.create_queue(job.queue))
    consumer.message_listener = lambda request: producer.reply(request, request.body)


def _request(job: Job, in_flight: int) -> Timing:
    """Timed from the first request to the last reply. The replies come from this process, over another connection."""
    latencies: list[int] = []
    with _session(job, AckMode.AUTO_ACKNOWLEDGE) as answering, _session(job, AckMode.AUTO_ACKNOWLEDGE) as asking:
        _answer(answering, job)
        with asking.create_requestor(asking.create_queue(job.queue)) as requestor:

            def ask(count: int) -> None:
                for _ in range(count):
                    begun = time.perf_counter_ns()
                    read(requestor.request(job.text, PATIENCE, delivery_mode=DeliveryMode.NON_PERSISTENT), job)
                    latencies.append(time.perf_counter_ns() - begun)

            watch = Stopwatch()
            with ThreadPoolExecutor(in_flight) as pool:
                list(pool.map(ask, shares(job.count, in_flight)))
            return watch.timing(len(latencies), CLIENT, latencies)


class _Listener:
    """Reads each message, and acknowledges each by itself unless the session does so."""

    def __init__(self, job: Job, *, acknowledges: bool) -> None:
        self.job = job
        self.acknowledges = acknowledges
        self.watch: Stopwatch | None = None
        self.seen = 0
        self.finished = threading.Event()

    def __call__(self, message: Message) -> None:
        self.watch = self.watch or Stopwatch()
        read(message, self.job)
        if self.acknowledges:
            message.acknowledge()
        self.seen += 1
        if self.seen == self.job.count:
            self.finished.set()


def _listen(job: Job) -> Timing:
    """Timed from the first message to the answer to the consumer's close."""
    listener = _Listener(job, acknowledges=True)
    with _session(job, AckMode.INDIVIDUAL_ACKNOWLEDGE) as session:
        consumer = session.create_consumer(session.create_queue(job.queue))
        consumer.message_listener = listener
        listener.finished.wait()
        consumer.close()
        assert listener.watch is not None  # a message came
        return listener.watch.timing(listener.seen, CLIENT)


def _put(job: Job, queues: Sequence[str]) -> None:
    """Put the messages of the job on several queues, the same number on each or one more."""
    username, password = login()
    factory = ConnectionFactory(job.url, username=username, password=password)
    with factory.create_connection() as connection, connection.create_session() as session:
        for queue, count in zip(queues, shares(job.count, len(queues)), strict=True):
            with session.create_producer(session.create_queue(queue)) as producer:
                for future in [producer.send_async(job.text) for _ in range(count)]:
                    future.result(PATIENCE)


def queues_of(job: Job, consumers: int, *, apart: bool) -> list[str]:
    """Return the names of the queues of so many consumers. If ``apart``, each has a queue of its own, with messages."""
    if not apart:
        return [job.queue] * consumers
    queues = [f"{job.queue}.{number}" for number in range(consumers)]
    _put(job, queues)
    return queues


def _listen_with_many(job: Job, consumers: int, *, apart: bool) -> Timing:
    """So many consumers of one session, in AUTO. Timed from the first message to the last."""
    username, password = login()
    listener = _Listener(job, acknowledges=False)
    queues = queues_of(job, consumers, apart=apart)
    with ConnectionFactory(job.url, username=username, password=password).create_connection() as connection:
        session = connection.create_session()
        for queue in queues:
            session.create_consumer(session.create_queue(queue)).message_listener = listener
        connection.start()
        listener.finished.wait()
        assert listener.watch is not None  # a message came
        return listener.watch.timing(listener.seen, CLIENT)


SCENARIOS: Scenarios = {
    **{
        f"{name}-{number}": partial(_listen_with_many, consumers=number, apart=name == "queues")
        for name in ("consumers", "queues")
        for number in CONSUMERS
    },
    "send-async": _send_async,
    "receive": _receive,
    "listener": _listen,
    "send": _send,
    "send-nonpersistent": _send_nonpersistent,
    "transacted": _send_transacted,
    "request": partial(_request, in_flight=1),
    "request-many": partial(_request, in_flight=IN_FLIGHT),
    "topic": partial(_receive_topic, mode=AckMode.AUTO_ACKNOWLEDGE),
    "topic-dups-ok": partial(_receive_topic, mode=AckMode.DUPS_OK_ACKNOWLEDGE),
}

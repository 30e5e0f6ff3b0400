"""A message that kombu or Celery cannot read costs itself alone: not the worker, and not the messages behind it."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import base64
import bz2
import json
import lzma
import zlib
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import kombu
import pytest
from contract.brokers import WAYS, Target
from shared_brokers import Served

import pyjmsack.kombu
from pyjmsack import ConnectionFactory, Queue, Session, TextMessage

assert pyjmsack.kombu.Transport  # the import makes the schemes known
SideMaker = Callable[..., Any]
GOOD: dict[str, Any] = {
    "body": "[[1, 2], {}, {}]",
    "content-type": "application/json",
    "content-encoding": "utf-8",
    "headers": {"task": "celery_tasks.add", "id": "poison"},
    "properties": {"correlation_id": "poison", "delivery_info": {}},
}


def rebuilt(kind: str, value: object) -> dict[str, Any]:
    """An envelope with a value that kombu's decoder of JSON builds anew."""
    return {**GOOD, "properties": {"a": {"__type__": kind, "__value__": value}}}


def headers(**changed: object) -> dict[str, Any]:
    return {**GOOD, "headers": {**GOOD["headers"], **changed}}


def compressed(body: bytes, by: object) -> dict[str, Any]:
    """An envelope whose body is compressed."""
    properties = {**GOOD["properties"], "body_encoding": "base64"}
    return {**headers(compression=by), "body": base64.b64encode(body).decode(), "properties": properties}


TOO_LARGE = b"[[" + bytes(2_000_000)
"""Larger than ``jms.maxMessageSize`` of the worker in the test."""
UNREADABLE: dict[str, Any] = {
    "deep": "[" * 200_000,
    "no JSON": "{",
    "no envelope": [],
    "a UUID of nothing": rebuilt("uuid", {}),
    "a decimal that is none": rebuilt("decimal", "x"),
    "an unhashable type": rebuilt([], "x"),  # type: ignore[arg-type]
    "a body that is a number": {**GOOD, "body": 7},
    "no body": {**GOOD, "body": None},
    "a content type that is a list": {**GOOD, "content-type": []},
    "an unknown encoding of the body": {**GOOD, "properties": {"body_encoding": "rot13"}},
    "a broken encoding of the body": {**GOOD, "body": "x", "properties": {"body_encoding": "base64"}},
    "half a character": {**GOOD, "body": "\ud800"},
    "more than the limit in zlib": compressed(zlib.compress(TOO_LARGE), "application/x-gzip"),
    "more than the limit in bz2": compressed(bz2.compress(TOO_LARGE), "bzip2"),
    "more than the limit in lzma": compressed(lzma.compress(TOO_LARGE), "application/x-lzma"),
    "half a compressed body": compressed(zlib.compress(b"[[1, 2], {}, {}]")[:-4], "zlib"),
    "a compressed body that is none": compressed(b"[[1, 2], {}, {}]", "zlib"),
    "a content encoding that unpacks": {**GOOD, "content-type": "application/data", "content-encoding": "bz2"},
    "an unknown compression": compressed(b"", "rot13"),
    "a compression that is a list": compressed(b"", ["zlib"]),
}
"""What kombu cannot read."""
OLD = {"task": "celery_tasks.add", "id": "poison", "args": [1, 2], "kwargs": {}}
"""The body of a task in the first version of Celery's protocol."""
NO_TASKS: dict[str, Any] = {
    "a task without a UUID": {**GOOD, "headers": {"task": "celery_tasks.add"}},
    "a task that is a list": headers(task=[]),
    "a UUID that is a list": headers(id=[]),
    "a body that is no JSON": {**GOOD, "body": "{"},
    "an old task that is no JSON": {**GOOD, "headers": {}, "body": "{"},
    "a text": {**GOOD, "headers": {}, "content-type": "text/plain"},
    "a content type that the worker does not accept": {**GOOD, "content-type": "application/x-yaml"},
    "arguments that are a number": {**GOOD, "body": "7"},
    "two parts instead of three": {**GOOD, "body": "[1, 2]"},
    "following tasks that are a number": {**GOOD, "body": "[[1, 2], {}, 9]"},
    "following tasks that are a list": {**GOOD, "body": "[[1, 2], {}, [1]]"},
    "an ETA that is an object": headers(eta={}),
    "limits that are a word": headers(timelimit="never"),
    "limits that are a number": headers(timelimit=5),
    "limits that are words": headers(timelimit=["a", "b"]),
    "a limit that is no number": headers(timelimit=[float("nan"), None]),
    "a limit larger than every float": headers(timelimit=[10**400, None]),
    "stamps that are a number": headers(stamped_headers=5),
    "stamps that are lists": headers(stamped_headers=[[]]),
    "a late task with a limit that is a number": headers(
        timelimit=5, eta=(datetime.now(timezone.utc) + timedelta(seconds=1)).isoformat()
    ),
    "an old task with a limit that is a number": {**GOOD, "headers": {}, "body": json.dumps({**OLD, "timelimit": 5})},
    "an old task that is a list": {**GOOD, "headers": {}, "body": '{"task": []}'},
    "an unknown task with a reply to nowhere": {**headers(task="nope"), "properties": {"reply_to": "x" * 5000}},
}
"""What Celery cannot read."""


def send(session: Session, queue: str, envelopes: dict[str, Any]) -> None:
    producer = session.create_producer(Queue(queue))
    for name, envelope in envelopes.items():
        message = TextMessage(envelope if isinstance(envelope, str) else json.dumps(envelope))
        message.properties.update({"kombu_envelope": 1, "test": queue, "name": name})
        producer.send(message)


@pytest.mark.parametrize(
    ("target", "pool"),
    [
        pytest.param(Target("amqp", "artemis"), "solo", id="amqp-artemis-solo"),
        pytest.param(Target("amqp", "artemis"), "prefork", id="amqp-artemis-prefork"),
        pytest.param(Target("stomp", "artemis"), "threads", id="stomp-artemis-threads"),
        pytest.param(
            Target("amqp", "classic-6"),
            "solo",
            id="amqp-classic-6-solo",
            marks=pytest.mark.whole_tier("the rows above are the same program"),
        ),
    ],
)
def test_messages_that_cannot_be_read_cost_themselves_alone(
    target: Target, pool: str, brokers: Callable[[str], Served], side: SideMaker
) -> None:
    """The worker lives, runs the task behind them, and all of them are dead letters."""
    served = brokers(target.broker)
    url = served.amqp_url if target.protocol == "amqp" else served.stomp_url
    own = side(url, broker_transport_options={"jms_options": {"jms.maxMessageSize": 1_000_000}})
    queue = own.tasks.app.conf.task_default_queue
    poison = {**UNREADABLE, **NO_TASKS}
    worker = own.start(pool)
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        send(session, queue, poison)
        assert own.tasks.add.apply_async((2, 3), compression="bzip2").get(timeout=60) == 5
        assert worker.poll() is None, own.log()
        connection.start()
        letters = session.create_consumer(Queue(WAYS[target.broker].dead_letters), f"test = '{queue}'")
        dead = set()
        while dead != poison.keys() and (message := letters.receive(10)) is not None:
            dead.add(message.properties["name"])
        assert dead == poison.keys(), own.log()


def test_who_asks_for_one_message_gets_the_next_that_can_be_read(any_broker: Served, queue_name: str) -> None:
    """``basic_get`` says ``None`` only if the queue is empty."""
    url = any_broker.amqp_url
    with ConnectionFactory(url).create_connection() as sender, sender.create_session() as session:
        send(session, queue_name, {**UNREADABLE, "good": GOOD})
    with kombu.Connection(f"jms+{url}?jms.maxMessageSize=1000000") as connection:
        queue = kombu.Queue(queue_name, channel=connection.default_channel)
        found = queue.get(no_ack=True)
        assert found is not None
        assert found.headers == GOOD["headers"]
        assert queue.get() is None


def test_a_program_of_kombu_gets_the_errors_of_its_own_callback(any_broker: Served, queue_name: str) -> None:
    """The error leaves ``drain_events``, and the message is not refused: it comes again."""
    with kombu.Connection(f"jms+{any_broker.amqp_url}") as connection:
        connection.SimpleQueue(queue_name).put(1)
        with (
            kombu.Consumer(connection, [kombu.Queue(queue_name)], callbacks=[lambda body, _: {}[body]]),
            pytest.raises(KeyError),
        ):
            connection.drain_events(timeout=30)
    with kombu.Connection(f"jms+{any_broker.amqp_url}") as connection:
        assert connection.SimpleQueue(queue_name).get(timeout=60).payload == 1

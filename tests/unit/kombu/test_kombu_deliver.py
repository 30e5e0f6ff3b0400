"""What a channel of kombu gives to a consumer, and what becomes a dead letter instead."""

# kombu has no types
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")

import kombu
from kombu.exceptions import ContentDisallowed
from kombu.serialization import registry

from pyjmsack import BytesMessage, Message
from pyjmsack.kombu.channel import Channel
from pyjmsack.kombu.receiving import Delivery, Feed
from pyjmsack.kombu.window import Window

TASK = {"task": "add", "id": "one", "args": [1, 2], "kwargs": {}}
"""A task of the first version of Celery's protocol."""
JSON = "application/json"


class Wire:
    """The connection of a channel, without a broker: it notes the outcomes of messages."""

    def __init__(self) -> None:
        self.client = SimpleNamespace(transport_options={}, cycle=None)
        self.settings = SimpleNamespace(largest=10_000_000)
        self.channel_max = 1
        self._used_channel_ids: list[int] = []
        self.outcomes: list[str] = []

    def check(self) -> None:
        """Nothing is lost."""

    def came_before(self, message: Message) -> bool:
        return False

    def settle(self, delivery: Delivery, outcome: str) -> None:
        self.outcomes.append(outcome)

    def took(self, delivery: Delivery) -> None:
        delivery.given = True

    def consume(self, channel: Channel, tag: str, queue: str, window: Window, keep: Callable[[Any], None]) -> None:
        keep(SimpleNamespace(tag=tag, queue=queue))


class Taker:
    """A consumer of kombu on a channel without a broker.

    Args:
        accept: the content types that the consumer accepts. ``None`` means those that kombu has not disabled.
        worker: whether the consumer is one of a worker of Celery.
    """

    def __init__(self, accept: list[str] | None, *, worker: bool = True) -> None:
        self.wire = Wire()
        self.got: list[Any] = []

        def take(message: Any) -> None:
            self.got.append(message.decode())

        if worker:
            take.__module__ = "celery.worker.consumer"
        self._channel = Channel(self.wire)  # type: ignore[arg-type]
        consumer = kombu.Consumer(self._channel, [], on_message=take, accept=accept)
        self._channel.basic_consume("tasks", False, consumer._receive_callback, "tag")
        self._feed: Feed = self._channel._feeds["tag"][0]

    def deliver(self, body: bytes, content_type: str, **properties: Any) -> None:
        message = BytesMessage(body)
        message.properties.update({"kombu_content_type": content_type, **properties})
        self._channel.deliver(Delivery("tasks", message, Window(), self._feed))


@pytest.mark.parametrize("properties", [{}, {"task": "add", "id": "one"}], ids=["version 1", "version 2"])
@pytest.mark.parametrize("content_type", [JSON, "text/plain", "application/x-python-serialize"])
def test_a_worker_gets_no_content_type_that_its_consumer_does_not_accept(
    content_type: str, properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """An unsigned task ran, although the worker accepted only signed ones."""
    taker = Taker(["yaml"])
    taker.deliver(json.dumps(TASK).encode(), content_type, **properties)
    assert (taker.got, taker.wire.outcomes) == ([], ["reject"])
    assert "ContentDisallowed: Refusing to deserialize untrusted content of type" in caplog.text


def test_a_pickle_that_the_consumer_does_not_accept_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was, in a program that enabled pickle for other messages."""
    monkeypatch.setattr(registry, "_disabled_content_types", set())
    loaded: list[str] = []
    monkeypatch.setitem(registry._decoders, "application/x-python-serialize", loaded.append)
    taker = Taker(["json"])
    taker.deliver(pickle.dumps(TASK), "application/x-python-serialize")
    assert (loaded, taker.got, taker.wire.outcomes) == ([], [], ["reject"])


@pytest.mark.parametrize("properties", [{}, {"task": "add", "id": "one"}], ids=["version 1", "version 2"])
@pytest.mark.parametrize(
    ("body", "content_type"), [(b"{", JSON), (b"\xff", JSON), (b"\xff", "application/text")], ids=str
)
def test_a_task_that_cannot_be_decoded_becomes_a_dead_letter(
    body: bytes, content_type: str, properties: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """The worker acknowledged it, so it was lost."""
    taker = Taker(["json"])
    taker.deliver(body, content_type, kombu_content_encoding="utf-8", **properties)
    assert (taker.got, taker.wire.outcomes) == ([], ["reject"])
    assert "the body cannot be decoded: DecodeError" in caplog.text


@pytest.mark.parametrize("accept", [None, ["json"], ["json", "yaml"]], ids=str)
def test_a_worker_gets_what_its_consumer_accepts(accept: list[str] | None) -> None:
    taker = Taker(accept)
    taker.deliver(json.dumps(TASK).encode(), JSON)
    assert (taker.got, taker.wire.outcomes) == ([TASK], [])


def test_a_consumer_of_a_program_gets_the_error_of_kombu_itself() -> None:
    taker = Taker(["yaml"], worker=False)
    with pytest.raises(ContentDisallowed):
        taker.deliver(b"{}", JSON)
    assert taker.wire.outcomes == []


@pytest.mark.parametrize("worker", [True, False], ids=["worker", "program"])
@pytest.mark.parametrize("packed", [True, False], ids=["compressed", "as it is"])
def test_a_body_of_json_with_too_many_values_becomes_a_dead_letter(
    worker: bool, packed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """No other thread ran while Python read it."""
    taker = Taker(["json"], worker=worker)
    body = b"[" + b"[]," * 1_000_000 + b"[]]"
    properties = {"compression": "zlib"} if packed else {}
    taker.deliver(zlib.compress(body) if packed else body, JSON, **properties)
    assert (taker.got, taker.wire.outcomes) == ([], ["reject"])
    assert "the body is refused: it has 2,000,0" in caplog.text


def test_commas_in_texts_of_a_body_are_no_values() -> None:
    taker = Taker(["json"])
    body = {**TASK, "args": ["\u00fc,[{" * 1_000_000]}
    taker.deliver(json.dumps(body, ensure_ascii=False).encode(), JSON)
    assert taker.got == [body]

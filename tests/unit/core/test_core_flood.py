"""A sender that sends messages without end which are refused: it costs itself, and no caller its time (S22, S166)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from core_fakes import Bench, FakeInbound

from pyjmsack.core import receiving
from pyjmsack.core import requestor as asking
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.requestor import Requestor
from pyjmsack.core.steps import Deadline
from pyjmsack.destination import Queue
from pyjmsack.errors import RequestTimedOutException
from pyjmsack.message import Message

ENOUGH = 200_000
"""So many refused messages are without end."""


class Bad(FakeInbound):
    """A message that cannot be decoded. The next one arrives as soon as somebody tries."""

    def __init__(self, arrive: Callable[[], None]) -> None:
        super().__init__("bad", broken=True)
        self.correlation_id = "asked"
        self._arrive = arrive

    def to_message(self, destination: Queue, /) -> Message:
        self._arrive()
        return super().to_message(destination)


def flood(bench: Bench, consumer: Consumer, count: int = ENOUGH) -> list[int]:
    """Let bad messages arrive, each behind the one before; return how many came, as the only element."""
    came = [0]

    def arrive() -> None:
        came[0] += 1
        if count == ENOUGH and came[0] > count:
            raise AssertionError("the caller waits as long as the sender likes")
        if came[0] <= count:
            bench.arrive(consumer, Bad(arrive))

    arrive()
    return came


def test_receive_with_a_time_limit_returns_in_a_flood_of_refused_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "_PATIENCE", 0.0)
    bench = Bench()
    consumer = bench.consumer()
    flood(bench, consumer)
    assert bench.run(consumer.receiving.receive(0.01)) is None


def test_receive_without_a_wait_does_not_say_that_the_queue_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "_PATIENCE", 0.0)
    bench = Bench()
    consumer = bench.consumer()
    flood(bench, consumer)
    with pytest.raises(RequestTimedOutException, match="all messages that came were refused"):
        bench.run(consumer.receiving.receive(0))


def test_a_message_behind_many_refused_ones_is_received() -> None:
    bench = Bench()
    consumer = bench.consumer()
    bench.arrive(consumer, *(FakeInbound("bad", broken=True) for _ in range(1000)), "good")
    message = bench.run(consumer.receiving.receive(0))
    assert message is not None
    assert message.text == "good"


@pytest.mark.parametrize("outcome", ["ACCEPTED", "RELEASED", "MODIFIED_FAILED"])
@pytest.mark.parametrize("local", ["false", "true"])
def test_a_message_behind_many_that_came_too_often_is_received(outcome: str, local: str) -> None:
    """Whatever their outcome is, and also if the broker is not asked: the limit of one look hid it."""
    limits = f"jms.redeliveryPolicy.maxRedeliveries=0&jms.redeliveryPolicy.outcome={outcome}"
    bench = Bench(f"{limits}&jms.receiveNoWaitLocalOnly={local}")
    consumer = bench.consumer()
    bench.arrive(consumer, *(FakeInbound("bad", redeliveries=1) for _ in range(300)), "good")
    message = bench.run(consumer.receiving.receive(0))
    assert message is not None
    assert message.text == "good"


def test_a_listener_of_the_same_session_has_its_turn_in_a_flood() -> None:
    bench = Bench()
    session = bench.session()
    flooded, other = bench.consumer(session), bench.consumer(session)
    came: list[int] = []
    seen: list[int] = []
    flooded.set_listener(lambda message: None)
    other.set_listener(lambda message: seen.append(came[0]))
    came = flood(bench, flooded, 5000)
    bench.arrive(other, "good")
    bench.runtime.turn()
    for dispatcher in [*bench.runtime.dispatchers.values()]:
        dispatcher.run()
    assert came[0] > 5000
    assert seen[0] < 1000


def requested(bench: Bench) -> tuple[Requestor, asking.Request]:
    bench.provider.create_temporary = lambda info, named: named.succeed("replies")
    steps = Requestor.open(bench.connection, bench.session(), Queue("service"), bench.run)
    requestor: Requestor = bench.run(steps)
    return requestor, requestor.send("?", None, None, None, None)


def test_a_request_ends_in_time_in_a_flood_of_replies_that_are_refused() -> None:
    bench = Bench()
    requestor, request = requested(bench)
    request.ids.append("asked")
    requestor._requests["asked"] = request
    flood(bench, requestor._consumer)
    with pytest.raises(RequestTimedOutException, match="log says why replies were refused"):
        bench.run(requestor.wait(request, 0.01))


def test_replies_to_one_request_that_wait_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "REPLIES", 3)
    bench = Bench()
    requestor, request = requested(bench)
    requestor._requests["asked"] = request
    for number in range(10):
        reply = FakeInbound(f"reply {number}")
        reply.correlation_id = "asked"  # type: ignore[attr-defined]
        bench.arrive(requestor._consumer, reply)
    assert len(request.replies) == 3
    message = requestor._reply(request, Deadline(60))
    assert message is not None
    assert message.text == "reply 0"

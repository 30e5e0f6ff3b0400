"""The window of unconfirmed sends, and what a send is stamped with (S61-S74)."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from core_fakes import Bench

from pyjmsack.core.producer import Producer, max_frame_size
from pyjmsack.core.send_window import WINDOW
from pyjmsack.destination import Queue
from pyjmsack.errors import (
    InvalidDestinationException,
    JMSException,
    ResourceAllocationException,
    SendTimedOutException,
    UnsupportedFeatureException,
)
from pyjmsack.message import TextMessage
from pyjmsack.spi.completion import Completion
from pyjmsack.uri import parse_url

HOW = (None, None, None, None, None)


def send(bench: Bench, producer: Producer, text: str = "x", done: Any = lambda error: None) -> Any:
    message, outbound = producer.prepare(done, text, *HOW)
    producer.submit(outbound)
    bench.runtime.turn()
    return message


def test_the_window_is_4096_sends_that_nobody_confirmed() -> None:
    """S65."""
    bench = Bench()
    producer = bench.producer()
    for _ in range(WINDOW - 1):
        send(bench, producer)
    assert not producer.window.full
    send(bench, producer)
    assert WINDOW == 4096
    assert producer.window.full


def test_a_full_window_opens_when_half_of_it_is_confirmed() -> None:
    """S65: so that a woken sender sends a batch, not one."""
    bench = Bench()
    producer = bench.producer()
    for _ in range(WINDOW):
        send(bench, producer)
    outbounds = iter(bench.provider.sent)
    steps = producer.wait_for_room()
    room, _ = next(steps)
    for _ in range(WINDOW // 2 - 1):
        next(outbounds).done(None)
    assert not room.done
    next(outbounds).done(None)
    assert room.done
    with pytest.raises(StopIteration):
        steps.send(True)


def test_a_window_that_stays_full_is_a_send_time_out() -> None:
    """S66."""
    bench = Bench("jms.sendTimeout=50")
    producer = bench.producer()
    for _ in range(WINDOW):
        send(bench, producer)
    steps = producer.wait_for_room()
    _, timeout = next(steps)
    assert timeout is not None
    assert timeout <= 0.05
    with pytest.raises(SendTimedOutException, match=r"jms\.sendTimeout"):
        deque(iter(lambda: steps.send(False), None), maxlen=0)  # again and again, until its 50 ms are over


def test_each_producer_has_a_window_of_its_own() -> None:
    bench = Bench()
    session = bench.session()
    first, second = bench.producer(session), bench.producer(session)
    for _ in range(WINDOW):
        send(bench, first)
    assert first.window.full
    assert not second.window.full


def test_a_send_that_failed_to_encode_takes_no_room_and_is_not_waited_for_at_close() -> None:
    bench = Bench()
    producer = bench.producer()
    with pytest.raises(JMSException):
        producer.prepare(lambda error: None, object(), *HOW)
    bench.run(producer.close())
    assert "close_producer" in bench.provider.names()


def test_ids_are_unique_and_headers_are_stamped() -> None:
    """S71."""
    bench = Bench()
    producer = bench.producer()
    message = TextMessage("x")
    message._redelivery_count = 3
    message._user_id = "forged"
    send(bench, producer, message)
    first = message.message_id
    send(bench, producer, message)
    assert first != message.message_id
    assert (message._redelivery_count, message._user_id) == (0, None)
    assert message.destination == Queue("q")


def test_an_error_of_an_asynchronous_send_reaches_the_exception_listener_as_itself() -> None:
    """S64."""
    bench = Bench()
    heard: list[JMSException] = []
    bench.connection.events.exception_listener = heard.append
    bench.producer().report(JMSException("no"))
    bench.producer().report(None)
    bench.runtime.dispatchers["pyjmsack-events"].run()
    assert [str(error) for error in heard] == ["no"]


def test_a_bound_producer_refuses_other_destinations_and_an_anonymous_one_needs_one() -> None:
    """S67."""
    bench = Bench()
    session = bench.session()
    bound, anonymous = bench.producer(session), bench.run(session.create_producer(None))
    with pytest.raises(UnsupportedFeatureException):
        bound.prepare(lambda error: None, "x", Queue("other"), None, None, None, None)
    with pytest.raises(InvalidDestinationException):
        anonymous.prepare(lambda error: None, "x", *HOW)
    anonymous.prepare(lambda error: None, "x", Queue("other"), None, None, None, None)


def test_a_destination_in_the_place_of_the_message_is_named() -> None:
    """S67, S125: in Java the destination comes first."""
    bench = Bench()
    session = bench.session()
    expected = r"send\(\) got the destination other as the message; expected send\(message, destination\)"
    for producer in (bench.producer(session), bench.run(session.create_producer(None))):
        with pytest.raises(InvalidDestinationException, match=expected):
            producer.prepare(lambda error: None, Queue("other"), "x", None, None, None, None)  # type: ignore[arg-type] # wrong on purpose


def test_the_transaction_counts_what_was_submitted_before_it_is_answered() -> None:
    """S86: also if the answer comes at once."""
    bench = Bench()
    session = bench.session(0)
    producer = bench.producer(session)
    send(bench, producer, "a")
    assert (session.transactions.current.submitted, session.transactions.current.settled) == (1, 0)
    bench.provider.sent[0].done(JMSException("no"))
    assert session.transactions.current.settled == 1
    assert str(session.transactions.current.failure) == "no"


def test_an_answer_that_belongs_to_the_last_transaction_does_not_touch_the_next() -> None:
    """S66, S86."""
    bench = Bench()
    session = bench.session(0)
    producer = bench.producer(session)
    send(bench, producer, "a")
    bench.run(session.rollback())
    bench.provider.sent[0].done(JMSException("late"))
    assert session.transactions.current.failure is None
    assert session.transactions.current.settled == 0


def test_close_waits_for_what_was_sent_and_then_detaches() -> None:
    """S74."""
    bench = Bench()
    producer = bench.producer()
    send(bench, producer)
    bench.runtime.meanwhile.append(lambda: bench.provider.sent[0].done(None))
    bench.run(producer.close())
    bench.run(producer.close())
    assert bench.provider.names().count("close_producer") == 1


def test_a_confirmed_send_returns_and_a_refused_one_raises() -> None:
    """S63."""
    bench = Bench()
    producer = bench.producer()
    for error in (None, JMSException("no")):
        done: Completion[None] = Completion()
        _, outbound = producer.prepare(done.settle, "x", *HOW)
        outbound.done(error)
        if error is None:
            bench.run(producer.submit_awaited(outbound, done))
        else:
            with pytest.raises(JMSException, match="no"):
                bench.run(producer.submit_awaited(outbound, done))


@pytest.mark.option("jms.forceSyncSend", "core")
@pytest.mark.option("jms.sendTimeoutForcesSync", "core")
@pytest.mark.parametrize("transacted", [False, True])
@pytest.mark.parametrize(
    ("options", "plain", "in_transaction", "non_persistent"),
    [
        ("", True, False, False),
        ("jms.useAsyncSend=true", False, False, False),
        ("jms.alwaysSyncSend=true", True, True, True),
        ("jms.useAsyncSend=true&jms.alwaysSyncSend=true", True, True, True),
        ("jms.sendTimeout=5000", True, True, True),
        ("jms.sendTimeout=5000&jms.useAsyncSend=true", True, True, True),
        ("jms.sendTimeout=5000&jms.sendTimeoutForcesSync=false", True, False, False),
        ("jms.sendTimeout=5000&jms.sendTimeoutForcesSync=false&jms.useAsyncSend=true", False, False, False),
    ],
)
def test_when_a_send_waits_is_decided_by_the_table_of_s62(
    options: str, plain: bool, in_transaction: bool, non_persistent: bool, transacted: bool
) -> None:
    bench = Bench(*options.split("&"))
    producer = bench.producer(bench.session(0 if transacted else 1))
    assert producer.waits(True) is (in_transaction if transacted else plain)
    assert producer.waits(False) is non_persistent


@pytest.mark.option("jms.disableTimeStampsByDefault", "core")
@pytest.mark.parametrize("disabled", ["true", "false"])
def test_time_stamps_can_be_off_by_default(disabled: str) -> None:
    bench = Bench(f"jms.disableTimeStampsByDefault={disabled}")
    producer = bench.producer()
    assert (send(bench, producer).timestamp is None) is (disabled == "true")
    producer.defaults.disable_message_timestamp = False
    assert send(bench, producer).timestamp is not None


@pytest.mark.option("wireFormat.maxFrameSize", "core")
def test_a_message_over_the_largest_size_raises_and_nothing_leaves() -> None:
    """A.2 ``wireFormat.maxFrameSize``: of the message as it is encoded."""
    bench = Bench("wireFormat.maxFrameSize=10")
    producer = bench.producer()
    send(bench, producer, "x" * 10)
    with pytest.raises(ResourceAllocationException, match=r"at most 10 bytes \(wireFormat.maxFrameSize\), not 11"):
        send(bench, producer, "x" * 11)
    assert [outbound.payload for outbound in bench.provider.sent] == [b"x" * 10]
    assert not producer.window.full


@pytest.mark.option("wireFormat.maxFrameSizeEnabled", "core")
def test_the_largest_size_may_be_switched_off_and_is_that_of_the_strictest_broker() -> None:
    """A.2 ``wireFormat.maxFrameSizeEnabled``; in failover URLs the next broker must take the message, too."""
    unlimited = parse_url("amqp://broker?wireFormat.maxFrameSize=10&wireFormat.maxFrameSizeEnabled=false")
    assert max_frame_size(unlimited) is None
    url = parse_url("failover:(amqp://a?wireFormat.maxFrameSize=20,amqp://b)?nested.wireFormat.maxFrameSize=30")
    assert [member.transport.max_frame_size for member in url.members] == [20, 30]
    assert max_frame_size(url) == 20

"""The broker goes away, or takes a consumer or a session with it (S95, S96, S101, S126-S128)."""

from __future__ import annotations

import gc
import threading
from contextlib import suppress
from time import monotonic
from typing import Any

import pytest
from peer import text, unanswered
from peer_faces import Face, SyncFace, Told

from pyjmsack import (
    ConnectionLostException,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    JMSSecurityException,
    Queue,
    ResourceAllocationException,
    TransactionRolledBackException,
)

Q = Queue("q?consumer.prefetchSize=10")
PULL = Queue("q?consumer.prefetchSize=0")


PATIENT = "jms.closeTimeout=60000"
"""What waits for such a time-out is found by :func:`soon`, and a busy machine is not taken for it."""


def soon(call: Any) -> None:
    """Run a call that must not wait for the time-out of a ``PATIENT`` connection."""
    started = monotonic()
    call()
    assert monotonic() - started < 30, "it waited for a time-out"


# -- the connection ---------------------------------------------------------------------------------------------


def test_a_dropped_connection_reaches_the_exception_listener_exactly_once(face: Face) -> None:
    """S128: whatever was open on it."""
    peer = face.peer(on_transfer=unanswered)
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    for mode in (0, 1, 2):
        session = connection.create_session(mode)
        session.create_consumer(Q).message_listener = Told()
        session.create_producer(Q).send_async("x")
    peer.wait_transfers(3)
    peer.drop()
    assert isinstance(heard.first(), ConnectionLostException)
    connection.close()
    assert len(heard.calls) == 1


@pytest.mark.option("jms.useDaemonThread", "amqp")
@pytest.mark.parametrize("end", ["drop", "close"])
def test_a_connection_that_is_over_does_not_keep_the_process_alive(sync: SyncFace, end: str) -> None:
    """A.1 ``jms.useDaemonThread``."""
    peer = sync.peer()
    connection = sync.connect(peer, "jms.useDaemonThread=false")
    keepers = [thread for thread in threading.enumerate() if thread.name == "pyjmsack-keeper"]
    assert [thread.daemon for thread in keepers] == [False]
    if end == "drop":
        peer.drop()
    else:
        connection.close()
    keepers[0].join(60)
    assert not keepers[0].is_alive()


@pytest.mark.parametrize("destination", [Q, PULL], ids=["push", "pull"])
@pytest.mark.parametrize("timeout", [None, 20], ids=["forever", "timed"])
def test_a_blocked_receive_raises_and_does_not_return_none_when_the_connection_drops(
    face: Face, destination: Queue, timeout: float | None
) -> None:
    """S128."""
    peer = face.peer()
    consumer = face.session(peer).create_consumer(destination)
    receiving = face.background(consumer.receive, timeout)
    if destination is PULL:
        peer.wait_frames("flow")
    peer.drop()
    with pytest.raises(ConnectionLostException):
        receiving.result(60)


@pytest.mark.parametrize("destination", [Q, PULL], ids=["push", "pull"])
def test_receives_after_the_drop_raise_and_do_not_return_none(face: Face, destination: Queue) -> None:
    """S128: testConsumerReceiveNoWaitThrowsIfConnectionLost."""
    peer = face.peer()
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    consumer = connection.create_session().create_consumer(destination)
    peer.drop()
    heard.first()
    for call in (consumer.receive_nowait, lambda: consumer.receive(0.05), consumer.receive):
        with pytest.raises(ConnectionLostException):
            call()


def test_receives_that_drain_when_the_connection_drops_raise_every_time(face: Face) -> None:
    """S128: the drain's end must not be taken for an empty queue."""
    for _ in range(10):
        peer = face.peer(silent={"drain"})
        consumer = face.session(peer).create_consumer(Q)
        receiving = face.background(consumer.receive, 0)
        peer.wait(lambda peer=peer: any(frame["drain"] for frame in peer.all("flow")), "a drain")
        peer.drop()
        with pytest.raises(ConnectionLostException):
            receiving.result(60)


def test_a_blocked_send_raises_when_the_connection_drops(face: Face) -> None:
    """S128: waiting for an outcome, and waiting for credit."""
    for script in ({"on_transfer": unanswered}, {"credit": 0}):
        peer = face.peer(**script)
        producer = face.session(peer).create_producer(Queue("q"))
        sending = face.background(producer.send, "x")
        if "on_transfer" in script:
            peer.wait_transfers(1)
        peer.drop()
        with pytest.raises(ConnectionLostException):
            sending.result(60)


def test_futures_of_sends_fail_when_the_connection_drops(face: Face) -> None:
    """S128: those that are out and those that wait for credit."""
    peer = face.peer(on_transfer=unanswered, credit=3)
    producer = face.session(peer).create_producer(Queue("q"))
    futures = [producer.send_async("x") for _ in range(6)]
    peer.wait_transfers(3)
    peer.drop()
    errors = [future.exception(10) for future in futures]
    assert all(isinstance(error, ConnectionLostException) for error in errors)
    assert len({id(error) for error in errors}) == 6


@pytest.mark.parametrize("stage", ["send", "discharge"])
def test_a_blocked_commit_raises_when_the_connection_drops(face: Face, stage: str) -> None:
    """S94, S128."""
    peer = face.peer(**({"on_transfer": unanswered} if stage == "send" else {"on_discharge": unanswered}))
    session = face.session(peer, mode=0)
    session.create_producer(Queue("q")).send("x")
    committing = face.background(session.commit)
    peer.wait_transfers(1)
    if stage == "discharge":
        peer.wait(lambda: peer.discharges, "a discharge")
    peer.drop()
    with pytest.raises((TransactionRolledBackException, ConnectionLostException)):
        committing.result(60)


@pytest.mark.parametrize("stage", ["attach", "begin"])
def test_a_blocked_create_raises_when_the_connection_drops(face: Face, stage: str) -> None:
    """S128."""
    peer = face.peer()
    connection = face.connect(peer)
    session = connection.create_session()
    peer.script.silent.add(stage)
    create = connection.create_session if stage == "begin" else session.create_consumer
    creating = face.background(create, *([] if stage == "begin" else [Q]))
    peer.wait_frames(stage, 3 if stage == "begin" else 1)
    peer.drop()
    with pytest.raises(ConnectionLostException):
        creating.result(60)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("amqp:connection:forced", ConnectionLostException),
        ("amqp:unauthorized-access", JMSSecurityException),
        ("amqp:resource-limit-exceeded", ResourceAllocationException),
        ("amqp:internal-error", ConnectionLostException),
    ],
)
def test_a_connection_closed_by_the_broker_raises_its_reason(face: Face, name: str, error: type[JMSException]) -> None:
    """S128, S129: to the listener, to who waits and to who comes."""
    peer = face.peer()
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    session = connection.create_session()
    consumer = session.create_consumer(PULL)
    receiving = face.background(consumer.receive)
    peer.wait_frames("flow")
    peer.close_connection(name, "says the broker")
    assert isinstance(heard.first(), error)
    for call in (lambda: receiving.result(60), connection.create_session, consumer.receive):
        with pytest.raises(error, match="says the broker"):
            call()
    assert len(heard.calls) == 1
    peer.wait_closed()


def test_an_acknowledge_after_the_drop_never_reaches_anyone_and_does_not_hang(face: Face) -> None:
    """S95, S96: it may raise that the connection is lost, it may do nothing."""
    peer = face.peer(messages=[text("a")])
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    message = connection.create_session(2).create_consumer(Q).receive(60)
    peer.drop()
    heard.first()
    with suppress(ConnectionLostException):
        message.acknowledge()
    assert peer.all("disposition") == []
    assert message.text == "a"


def test_a_message_in_hand_stays_readable_after_the_drop(face: Face) -> None:
    """S101."""
    peer = face.peer(messages=[text("a" * 1000)])
    connection = face.connect(peer)
    consumer = connection.create_session(2).create_consumer(Q)
    message = consumer.receive(60)
    peer.drop()
    connection.close()
    del consumer, connection
    gc.collect()
    assert message.text == "a" * 1000


def test_everything_can_be_closed_at_once_after_the_drop(face: Face) -> None:
    """S123: closing waits for nobody, and raises nothing."""
    peer = face.peer(on_transfer=unanswered, messages=[text("a")])
    connection = face.connect(peer, PATIENT)
    connection.exception_listener = heard = Told()
    session = connection.create_session(2)
    producer, consumer = session.create_producer(Queue("q")), session.create_consumer(Q)
    consumer.receive(60)
    producer.send_async("x")
    peer.drop()
    heard.first()
    for close in (producer.close, consumer.close, session.close, connection.close):
        soon(close)


@pytest.mark.parametrize("what", ["producer", "consumer", "session", "transacted", "connection"])
def test_a_close_in_flight_when_the_connection_drops_returns_at_once(face: Face, what: str) -> None:
    """S123: nobody will answer it."""
    peer = face.peer(silent={"detach", "end", "close"})
    connection = face.connect(peer, PATIENT)
    session = connection.create_session(0 if what == "transacted" else 1)
    closable = {
        "producer": lambda: session.create_producer(Queue("q")),
        "consumer": lambda: session.create_consumer(Q),
        "connection": lambda: connection,
    }.get(what, lambda: session)()
    closing = face.background(closable.close)
    peer.wait_frames("detach" if what in ("producer", "consumer") else "end")
    peer.drop()
    soon(lambda: closing.result(60))


def test_an_exception_listener_that_raises_harms_nobody(face: Face) -> None:
    """S127: neither the loop nor other connections."""

    def boom(error: Any) -> None:
        raise ValueError("in the listener")

    first, second = face.peer(), face.peer()
    connection, other = face.connect(first), face.connect(second)
    connection.exception_listener = heard = Told(boom)
    first.drop()
    heard.first()
    other.create_session().create_producer(Queue("q")).send("x")


def test_an_exception_listener_may_close_the_connection(sync: SyncFace) -> None:
    """S127: it is what applications do there."""
    peer = sync.peer()
    connection = sync.connect(peer)
    closed = threading.Event()

    def close(error: Any) -> None:
        connection.close()
        closed.set()

    connection.exception_listener = close
    peer.drop()
    assert closed.wait(60)
    with pytest.raises(IllegalStateException):
        connection.create_session()


def test_a_frame_cut_in_the_middle_is_a_lost_connection(face: Face) -> None:
    """S128."""
    peer = face.peer()
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    peer.do(lambda: peer.connections[0].write_raw(b"\x00\x00\x01\x00\x02\x00"))
    peer.drop()
    assert isinstance(heard.first(), ConnectionLostException)


# -- one consumer -----------------------------------------------------------------------------------------------

REASONS = [
    ("amqp:resource-deleted", InvalidDestinationException),
    ("amqp:unauthorized-access", JMSSecurityException),
    ("amqp:resource-limit-exceeded", ResourceAllocationException),
    ("amqp:internal-error", JMSException),
]


@pytest.mark.parametrize(("name", "error"), REASONS)
def test_a_consumer_that_the_broker_closes_raises_from_receive(
    face: Face, name: str, error: type[JMSException]
) -> None:
    """S126: the one that waits, and the next; nobody else is disturbed."""
    peer = face.peer()
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    session = connection.create_session()
    consumer = session.create_consumer(PULL)
    receiving = face.background(consumer.receive)
    peer.wait_frames("flow")
    peer.close_link(peer.consumers[0], name, "says the broker")
    with pytest.raises(error, match="says the broker") as caught:
        receiving.result(60)
    assert caught.value.error_code == name
    with pytest.raises(error):
        consumer.receive(0)
    peer.wait_frames("detach")
    consumer.close()
    session.create_producer(Queue("q")).send("x")
    assert heard.calls == []


@pytest.mark.parametrize(("name", "error"), REASONS)
def test_a_consumer_with_a_listener_that_the_broker_closes_tells_the_exception_listener(
    face: Face, name: str, error: type[JMSException]
) -> None:
    """S126."""
    peer = face.peer()
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    session = connection.create_session()
    consumer = session.create_consumer(Q)
    consumer.message_listener = Told()
    peer.wait_frames("flow")
    peer.close_link(peer.consumers[0], name, "says the broker")
    assert isinstance(heard.first(), error)
    consumer.close()
    session.create_producer(Queue("q")).send("x")
    assert len(heard.calls) == 1


def test_a_consumer_that_the_broker_puts_out_as_too_slow_is_reported_and_the_others_go_on(face: Face) -> None:
    """S60, S126: by a listener's exception listener, by the caller of receive."""
    peer = face.peer(messages=[text("a")])
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    session, other = connection.create_session(), connection.create_session()
    slow, waiting = session.create_consumer(Q), other.create_consumer(PULL)
    slow.message_listener = Told()
    receiving = face.background(waiting.receive)
    face.until(lambda: len(peer.consumers) == 2)
    for link in peer.consumers:
        peer.close_link(link, "amqp:resource-limit-exceeded", "slow consumer")
    with pytest.raises(ResourceAllocationException, match="slow consumer"):
        receiving.result(60)
    assert "slow consumer" in str(heard.first())
    session.create_producer(Queue("q")).send("x")
    assert other.create_consumer(Q) is not None


def test_what_was_prefetched_is_still_handed_out_or_refused_but_never_acknowledged_wrongly(face: Face) -> None:
    """S126: after the link is gone no outcome can be sent for it."""
    peer = face.peer(messages=[text("a"), text("b")])
    session = face.session(peer)
    consumer = session.create_consumer(Q)
    face.until(lambda: consumer.stats.buffered == 2)
    peer.close_link(peer.consumers[0], "amqp:resource-deleted")
    peer.wait_frames("detach")
    with suppress(InvalidDestinationException):
        consumer.receive(1)
    face.barrier(peer, session)
    assert not [frame for frame in peer.all("disposition") if frame.state]


@pytest.mark.parametrize("what", ["consumer", "session"])
@pytest.mark.parametrize("mode", [2, 101])
def test_an_acknowledgement_that_the_broker_cannot_get_raises_once(face: Face, mode: int, what: str) -> None:
    """S125, S126: in silence the caller would believe that the message does not come again."""
    peer = face.peer(messages=[text("a")])
    connection = face.connect(peer)
    session, other = connection.create_session(mode), connection.create_session()
    message = session.create_consumer(Q).receive(60)
    if what == "consumer":
        peer.close_link(peer.consumers[0], "amqp:resource-deleted", "says the broker")
        peer.wait_frames("detach")
    else:
        peer.end_session(peer.consumers[0], "amqp:resource-limit-exceeded", "says the broker")
        peer.wait_frames("end")
    with pytest.raises(IllegalStateException, match="closed the consumer of q, and delivers") as caught:
        message.acknowledge()
    assert "says the broker" in str(caught.value.__cause__)
    message.acknowledge()
    face.barrier(peer, other)
    assert not [frame for frame in peer.all("disposition") if frame.state]


def test_the_other_consumers_of_a_session_are_acknowledged_although_the_broker_closed_one(face: Face) -> None:
    """S25, S125."""
    peer = face.peer()
    session = face.session(peer, mode=2)
    first, second = session.create_consumer(Q), session.create_consumer(Q)
    peer.deliver(text("a"), consumer=0)
    peer.deliver(text("b"), consumer=1)
    assert first.receive(60) is not None
    message = second.receive(60)
    peer.close_link(peer.consumers[0], "amqp:resource-deleted")
    peer.wait_frames("detach")
    with pytest.raises(IllegalStateException):
        message.acknowledge()
    face.barrier(peer, session)
    assert len([frame for frame in peer.all("disposition") if frame.state]) == 1


def test_giving_back_a_message_of_a_consumer_that_the_broker_closed_is_harmless(face: Face) -> None:
    """S32, S126: the broker delivers the message again, so this consumer does not."""
    peer = face.peer()
    connection = face.connect(peer)
    single, whole = connection.create_session(101), connection.create_session(2)
    first, second = single.create_consumer(Q), whole.create_consumer(Q)
    peer.deliver(text("a"), consumer=0)
    peer.deliver(text("b"), consumer=1)
    message = first.receive(60)
    assert second.receive(60) is not None
    for link in peer.consumers:
        peer.close_link(link, "amqp:resource-deleted")
    peer.wait_frames("detach", 2)
    message.release()
    whole.recover()
    with pytest.raises(InvalidDestinationException):
        second.receive(0)
    face.barrier(peer, whole)
    assert not [frame for frame in peer.all("disposition") if frame.state]


# -- one session ------------------------------------------------------------------------------------------------


def test_a_session_that_the_broker_ends_raises_to_who_waits_and_leaves_the_others(face: Face) -> None:
    """S126, S129."""
    peer = face.peer(on_transfer=unanswered)
    connection = face.connect(peer, PATIENT)
    session, other = connection.create_session(), connection.create_session()
    consumer, producer = session.create_consumer(PULL), session.create_producer(Queue("q"))
    future = producer.send_async("x")
    receiving = face.background(consumer.receive)
    peer.wait_frames("flow")
    peer.wait_transfers(1)
    peer.end_session(peer.consumers[0], "amqp:resource-limit-exceeded", "says the broker")
    for call in (lambda: receiving.result(60), lambda: future.result(60), lambda: producer.send("y")):
        with pytest.raises(ResourceAllocationException, match="says the broker"):
            call()
    with pytest.raises(ResourceAllocationException):
        session.create_consumer(Q)
    soon(session.close)
    other.create_producer(Queue("q")).send_async("x")
    peer.wait_transfers(2)


def test_a_session_that_the_broker_ends_tells_the_exception_listener_of_its_listener(face: Face) -> None:
    """S126: testRemotelyEndSessionWithMessageListener."""
    peer = face.peer()
    connection = face.connect(peer)
    connection.exception_listener = heard = Told()
    consumer = connection.create_session().create_consumer(Q)
    consumer.message_listener = Told()
    peer.wait_frames("flow")
    peer.end_session(peer.consumers[0], "amqp:resource-limit-exceeded")
    assert isinstance(heard.first(), ResourceAllocationException)


def test_a_transacted_session_that_the_broker_ends_fails_its_commit(face: Face) -> None:
    """S87."""
    peer = face.peer()
    session = face.session(peer, PATIENT, mode=0)
    session.create_producer(Queue("q")).send("x")
    peer.wait_transfers(1)
    peer.end_session(peer.producers[0], "amqp:resource-limit-exceeded")
    peer.wait_frames("end")
    with pytest.raises(JMSException):
        session.commit()
    soon(session.close)


def test_a_broker_that_ends_the_session_of_the_temporary_queues_loses_the_connection(face: Face) -> None:
    """S128, S133: nobody was told, receive() on such a queue returned None, and no new one could be created."""
    peer = face.peer()
    connection = face.connect(peer, PATIENT)
    connection.exception_listener = heard = Told()
    session = connection.create_session()
    consumer = session.create_consumer(session.create_temporary_queue())
    receiving = face.background(consumer.receive)
    peer.wait_frames("flow")
    (temporary,) = (link for link in peer.connections[0].links.values() if "temporary" in link.link.name)
    peer.end_session(temporary, "amqp:internal-error", "says the broker")
    with pytest.raises(ConnectionLostException, match="says the broker"):
        receiving.result(60)
    assert isinstance(heard.first(), ConnectionLostException)
    with pytest.raises(JMSException):
        session.create_temporary_queue()

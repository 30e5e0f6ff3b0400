"""Connection listeners: what the broker closes, told once, in order, and harmless to everybody else (S109, S127)."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from typing import Any

import pytest
from failover_support import Events, interruptible
from peer import Peer, PeerLink
from peer_faces import Face, Told
from proton import Condition
from stomp_peer import CLASSIC, Received, StompPeer, start

from pyjmsack import ConnectionLostException, JMSException, Queue, ResourceAllocationException

Q = Queue("q?consumer.prefetchSize=10")
KINDS = ("session", "producer", "consumer")


class Closed:
    """A connection listener that writes down what the broker closed: event, object, error."""

    def __init__(self, connection: Any) -> None:
        self.told = Told()
        connection.add_connection_listener(self)

    def __getattr__(self, name: str) -> Any:
        kind = name.removeprefix("on_").removesuffix("_closed")
        if kind not in KINDS:
            raise AttributeError(name)
        return lambda closed, error: self.told(kind, closed, error)


def part(peer: Peer, kind: str) -> None:
    """Close what the client opened last of a kind."""
    if kind == "session":
        peer.end_session(peer.consumers[-1], "amqp:resource-limit-exceeded", "says the broker")
    else:
        link = (peer.producers if kind == "producer" else peer.consumers)[-1]
        peer.close_link(link, "amqp:resource-limit-exceeded", "says the broker")


def furnished(connection: Any) -> dict[str, Any]:
    """Open one of each kind, in one session."""
    session = connection.create_session()
    return {"session": session, "producer": session.create_producer(Q), "consumer": session.create_consumer(Q)}


def same(closed: Any, opened: Any) -> bool:
    """Whether a listener was given the very object that the caller has."""
    return closed is getattr(opened, "_target", opened)


@pytest.mark.parametrize("failover", [False, True], ids=["plain", "failover"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_broker_closes_is_told_once_with_the_object_and_the_reason(
    face: Face, kind: str, failover: bool
) -> None:
    """S109: a session's end stands for that of its links; what else is open goes on."""
    peer = face.peer()
    connection = face.failover(peer) if failover else face.connect(peer)
    closed = Closed(connection)
    connection.exception_listener = heard = Told()
    other = connection.create_session().create_producer(Queue("other"))
    opened = furnished(connection)
    part(peer, kind)
    ((event, told, error),) = closed.told.wait(1)
    assert event == kind
    assert same(told, opened[kind])
    assert isinstance(error, ResourceAllocationException)
    assert "says the broker" in str(error)
    other.send("x")
    opened["session"].close()
    assert len(closed.told.calls) == 1
    assert heard.calls == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_broker_closed_stays_closed_at_the_next_one(face: Face, kind: str) -> None:
    """S103, S109: the caller was told, and would have two if it had made another."""
    peer, connection, outage = interruptible(face)
    closed = Closed(connection)
    other = connection.create_session().create_producer(Queue("other"))
    opened = furnished(connection)
    part(peer, kind)
    closed.told.wait(1)
    outage.begin()
    attached = len(peer.all("attach"))
    outage.end()
    other.send("x")
    ours = {"session": 0, "producer": 1, "consumer": 1}[kind]
    assert len(peer.all("attach")[attached:]) == 1 + ours
    if kind != "consumer":
        with pytest.raises(ResourceAllocationException, match="says the broker"):
            opened["producer"].send("x")
    if kind != "producer":
        with pytest.raises(ResourceAllocationException, match="says the broker"):
            opened["consumer"].receive(60)
    assert len(closed.told.calls) == 1


def test_a_producer_that_is_refused_when_all_is_opened_again_is_told(face: Face) -> None:
    """S104, S109: ``jms.closeLinksThatFailOnReconnect``."""
    peer, connection, outage = interruptible(face, options="jms.closeLinksThatFailOnReconnect=true")
    closed = Closed(connection)
    opened = furnished(connection)
    outage.begin()
    peer.script.refuse_attach = lambda link: Condition("amqp:not-found", "not here")
    outage.end()
    calls = closed.told.wait(2)
    assert [kind for kind, *_ in calls] == ["producer", "consumer"]
    assert all(same(told, opened[kind]) for kind, told, _ in calls)


@pytest.mark.option("jms.closeLinksThatFailOnReconnect", "stomp")
@pytest.mark.parametrize("ends", [False, True], ids=["goes-on", "ends-the-connection"])
def test_over_stomp_a_consumer_that_is_refused_when_all_is_opened_again_is_told(face: Face, ends: bool) -> None:
    """S104, S109: whether the broker goes on after an ERROR frame or, as most do, ends the connection with it; then the
    next attempt does without what was refused, and nothing else is closed."""

    def rule(peer: StompPeer, frame: Received) -> bool:
        again = len(peer.all("CONNECT")) + len(peer.all("STOMP")) > 1
        refused = frame.command == "SUBSCRIBE" and again and frame.headers["destination"].endswith("q")
        if refused:
            peer.error(frame, "says the broker", ends=ends)
        return refused

    peer = start(face, CLASSIC, rule)
    connection = face.failover(peer.url, options="jms.closeLinksThatFailOnReconnect=true")
    closed, events = Closed(connection), Events(connection)
    opened = furnished(connection)
    other = connection.create_session().create_consumer(Queue("a"))
    connection.start()
    peer.drop()
    ((event, told, error),) = closed.told.wait(1)
    assert event == "consumer"
    assert same(told, opened["consumer"])
    assert "says the broker" in str(error)
    events.wait("established", "interrupted", "restored")
    opened["producer"].send("x")
    subscribed = [frame.headers["destination"] for frame in peer.all("SUBSCRIBE")]
    assert [name.endswith("q") for name in subscribed] == [True, False, True, False] + [False] * ends
    with pytest.raises(JMSException, match="says the broker"):
        opened["consumer"].receive(60)
    other.close()
    assert len(closed.told.calls) == 1


def test_an_end_of_ones_own_and_a_lost_connection_are_no_such_events(face: Face) -> None:
    """S109: the connection's own events tell of the latter."""
    peer = face.peer()
    connection = face.connect(peer)
    closed, events = Closed(connection), Events(connection)
    opened = furnished(connection)
    opened["consumer"].close()
    opened["producer"].close()
    furnished(connection)
    opened["session"].close()
    peer.drop()
    events.wait("established", "failure")
    assert closed.told.calls == []


def test_a_closed_producer_does_not_wait_for_the_garbage_collection(face: Face) -> None:
    """S109: what its listeners would be told is not what keeps it; some programs make one for each message."""
    session = face.session(face.peer())
    producer = session.create_producer(Q)
    kept = weakref.ref(getattr(producer, "_target", producer))
    gc.collect()
    gc.disable()
    try:
        producer.close()
        del producer
        assert kept() is None
    finally:
        gc.enable()


def test_a_link_closed_right_behind_its_attach_is_told_with_the_object(face: Face) -> None:
    """S109: even if the caller does not have the object yet."""

    def close_at_once(link: PeerLink) -> None:
        if link.link.name.startswith("pyjmsack:producer"):
            link.close(None)

    peer = face.peer(after_attach=close_at_once)
    connection = face.connect(peer)
    closed = Closed(connection)
    session = connection.create_session()
    for number in range(1, 30):
        producer = session.create_producer(Q)
        _, told, _ = closed.told.wait(number)[-1]
        assert same(told, producer)


def test_a_listener_that_blocks_or_raises_holds_nobody_up_and_is_told_again(
    face: Face, caplog: pytest.LogCaptureFixture
) -> None:
    """S109, S127: its calls are apart from the I/O, one after the other."""
    peer = face.peer()
    connection = face.failover(peer)
    go_on, seen = threading.Event(), Told()

    class Listener:
        def on_connection_interrupted(self, url: str) -> None:
            seen("interrupted")
            if face.name == "sync":  # a plain function that blocks stops the caller's own loop
                go_on.wait(60)
            raise RuntimeError("on purpose")

        def on_connection_restored(self, url: str) -> None:
            seen("restored")

    connection.add_connection_listener(Listener())
    producer = connection.create_session().create_producer(Q)
    peer.drop()
    seen.wait(1)
    producer.send("x")
    assert face.name == "aio" or len(seen.calls) == 1
    go_on.set()
    assert [call[0] for call in seen.wait(2)] == ["interrupted", "restored"]
    logged = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert any("on purpose" in str(record.exc_info) for record in logged)


def test_every_call_after_the_final_failure_raises(face: Face) -> None:
    """S109, S128: and asks nobody."""
    peer = face.peer()
    connection = face.failover(peer, options="failover.maxReconnectAttempts=1&failover.reconnectDelay=0")
    connection.exception_listener = heard = Told()
    session = connection.create_session()
    producer, consumer = session.create_producer(Q), session.create_consumer(Q)
    transacted = connection.create_session(0)
    peer.stop_listening()
    peer.drop()
    assert isinstance(heard.first(), ConnectionLostException)
    for call in (
        connection.start,
        connection.stop,
        connection.create_session,
        lambda: session.create_producer(Q),
        lambda: session.create_consumer(Q),
        session.create_temporary_queue,
        session.recover,
        lambda: producer.send("x"),
        lambda: producer.send_async("x"),
        consumer.receive,
        lambda: consumer.receive(0),
        transacted.commit,
        transacted.rollback,
    ):
        with pytest.raises(JMSException):
            call()
    assert len(heard.calls) == 1

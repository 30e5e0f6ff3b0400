"""How the next broker gets what was open: in bursts, and without what was closed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from failover_support import Events, interruptible
from peer import Condition, Peer, PeerLink, rejected
from peer_faces import Face
from proton import Terminus
from stomp_peer import Received, StompPeer, start

from pyjmsack import InvalidDestinationException, Queue, ResourceAllocationException
from pyjmsack.providers.failover import restore

MANY = 20
REFUSED = Condition("amqp:unauthorized-access", "not here")
KINDS: dict[str, Callable[[Any, int], Any]] = {
    "producers": lambda session, number: session.create_producer(Queue(f"q{number}")),
    "consumers": lambda session, number: session.create_consumer(Queue(f"q{number}")),
    "temporary queues": lambda session, number: session.create_temporary_queue(),
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session may be closed alone at once, and not only after a minute."""
    monkeypatch.setattr(restore, "PATIENCE", 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_kind_are_asked_for_before_the_first_answer(face: Face, kind: str) -> None:
    """S103: a broker far away costs one round trip, not one for each."""
    peer, connection, outage = interruptible(face)
    session = connection.create_session()
    _kept = [KINDS[kind](session, number) for number in range(MANY)]
    outage.begin()
    before = len(peer.all("attach"))
    peer.script.silent.add("attach")
    outage.end_soon()
    face.until(lambda: len(peer.all("attach")) == before + MANY)


def test_sessions_and_their_links_are_asked_for_at_once(face: Face) -> None:
    """S103: nothing waits for the answer to another, nor for that to the coordinator."""
    peer, connection, outage = interruptible(face)
    session, transacted = connection.create_session(), connection.create_session(0)
    _kept = [session.create_consumer(Queue("in")), transacted.create_producer(Queue("out"))]
    outage.begin()
    before = len(peer.all("attach"))
    peer.script.silent.add("attach")
    outage.end_soon()
    face.until(lambda: len(peer.all("attach")) == before + 2)


class Held:
    """A rule: SUBSCRIBE frames of the second connection get no answer until the test says so."""

    def __init__(self) -> None:
        self.frames: list[Received] = []

    def __call__(self, peer: StompPeer, frame: Received) -> bool:
        held = frame.command == "SUBSCRIBE" and len(peer.all("CONNECT")) == 2
        if held:
            self.frames.append(frame)
        return held

    def answer(self, peer: StompPeer) -> None:
        """Answer now."""
        for frame in self.frames:
            peer.answer(frame)


def test_all_subscriptions_are_asked_for_before_the_first_receipt(face: Face) -> None:
    """S103, over STOMP."""
    held = Held()
    peer = start(face, rule=held)
    session = face.failover(peer.url).create_session()
    _kept = [session.create_consumer(Queue(f"q{number}")) for number in range(MANY)]
    peer.drop()
    peer.wait("SUBSCRIBE", 2 * MANY)


def test_a_subscription_that_was_closed_while_it_was_restored_is_ended(face: Face) -> None:
    """S103: a broker over STOMP sends it messages at once, which nobody would take and nobody else would get."""
    held = Held()
    peer = start(face, rule=held)
    connection = face.failover(peer.url)
    events = Events(connection)
    session = connection.create_session()
    closed, _kept = (session.create_consumer(Queue(name)) for name in ("closed", "kept"))
    peer.drop()
    frames = peer.wait("SUBSCRIBE", 4)[2:]
    closed.close()
    held.answer(peer)
    events.wait("established", "interrupted", "restored")
    (frame,) = peer.wait("UNSUBSCRIBE")
    assert frame.headers["id"] == frames[0].headers["id"]


CLOSE: dict[str, tuple[str, Callable[[Face, Any, Any], None], str]] = {
    "producer": ("producers", lambda face, session, closed: closed.close(), "detach"),
    "consumer": ("consumers", lambda face, session, closed: closed.close(), "detach"),
    "temporary queue": ("temporary queues", lambda face, session, closed: face.call(closed.delete), "detach"),
    "session": ("consumers", lambda face, session, closed: session.close(), "end"),
}


@pytest.mark.parametrize("name", CLOSE)
def test_what_was_closed_while_it_was_restored_is_closed_at_the_broker(face: Face, name: str) -> None:
    """S103."""
    kind, close, frame = CLOSE[name]
    peer, connection, outage = interruptible(face)
    session = connection.create_session()
    closed = KINDS[kind](session, 1)
    held = hold_attach(peer)
    outage.begin()
    outage.end_soon()
    assert held.arrived.wait(60)
    close(face, session, closed)
    held.gate.set()
    face.until(lambda: peer.all(frame) != [])


def test_a_refusal_of_what_was_closed_meanwhile_is_nobody_s_business(face: Face) -> None:
    """S104."""
    peer, connection, outage = interruptible(face, options="jms.closeLinksThatFailOnReconnect=true")
    session = connection.create_session()
    closed = session.create_consumer(Queue("q"))
    held = hold_attach(peer, REFUSED)
    outage.begin()
    outage.end_soon()
    assert held.arrived.wait(60)
    closed.close()
    held.gate.set()
    connection.create_session().close()


class hold_attach:  # noqa: N801 - used as a function
    """Let the peer stop at its next attach until ``gate`` is set; then it answers, or refuses all."""

    def __init__(self, peer: Any, refusal: Condition | None = None) -> None:
        self.arrived, self.gate = threading.Event(), threading.Event()
        peer.script.refuse_attach = self._decide
        self._refusal = refusal

    def _decide(self, link: Any) -> Condition | None:
        self.arrived.set()
        assert self.gate.wait(60)
        return self._refusal


@pytest.mark.parametrize("engine", ["python", "proton"])
@pytest.mark.parametrize("links", [0, 1])
def test_a_session_that_a_broker_ends_while_it_is_restored_is_restored_at_the_next_broker(
    face: Face, engine: str, links: int
) -> None:
    """S104: a broker at a limit answers Begin, and then sends End. The session was closed for good."""
    first, full, third = face.peer(), face.peer(), face.peer()
    full.script.refuse_begin = lambda number: Condition("amqp:resource-limit-exceeded", "full") if number else None
    connection = face.failover(first, full, third, options=f"nested.amqp.engine={engine}")
    events = Events(connection)
    session = connection.create_session()
    _kept = [session.create_consumer(Queue("in")) for _ in range(links)]
    first.drop()
    events.wait("established", "interrupted", "restored")
    assert (events.calls[-1][1], len(full.all("begin"))) == (third.url, 2)
    session.create_producer(Queue("out")).send("x")
    third.wait_transfers(1)


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_link_that_a_broker_ends_while_it_is_restored_is_restored_at_the_next_broker(face: Face, engine: str) -> None:
    """S104: the answer to the Attach looks like a success, and the Detach comes behind it."""
    first, refusing, third = face.peer(), face.peer(), face.peer()
    refusing.script.after_attach = lambda link: link.close(REFUSED)
    connection = face.failover(first, refusing, third, options=f"nested.amqp.engine={engine}")
    events = Events(connection)
    producer = connection.create_session().create_producer(Queue("out"))
    first.drop()
    events.wait("established", "interrupted", "restored")
    assert events.calls[-1][1] == third.url
    producer.send("x")
    third.wait_transfers(1)


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_link_that_the_broker_ends_after_each_attach_costs_the_others_nothing(face: Face, engine: str) -> None:
    """S104: the connection never came back, because each end refused the broker, and there was no other one."""
    peer = face.peer()
    connection = face.failover(peer, options=f"nested.amqp.engine={engine}")
    events = Events(connection)
    session = connection.create_session()
    neighbour, guilty = session.create_producer(Queue("good")), session.create_consumer(Queue("guilty"))

    def end(link: PeerLink) -> None:
        if link.name == "guilty":
            link.close(Condition("amqp:resource-deleted", "gone"))

    peer.script.after_attach = end
    peer.drop()
    neighbour.send("after")
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["after"]
    with pytest.raises(InvalidDestinationException, match="gone"):
        guilty.receive(timeout=60)
    events.wait("established", "interrupted", "restored")


FULL = Condition("amqp:resource-limit-exceeded", "full")


def end_session(peer: Peer, number: int) -> None:
    """Let the peer answer the Begin of this session, and then end it."""
    peer.script.refuse_begin = lambda begun: FULL if begun == number else None


def end_coordinator(peer: Peer, number: int) -> None:
    """Let the peer open the transaction coordinator, and then detach it."""
    peer.script.after_attach = lambda link: link.close(FULL) if link in peer.coordinators else None


def refuse_coordinator(peer: Peer, number: int) -> None:
    """Let the peer refuse the transaction coordinator."""
    peer.script.refuse_attach = lambda link: FULL if link.remote_target.type == Terminus.COORDINATOR else None


def refuse_transaction(peer: Peer, number: int) -> None:
    """Let the peer refuse to begin a transaction."""
    peer.script.on_declare = rejected(FULL.name, FULL.description)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("engine", ["python", "proton"])
@pytest.mark.parametrize("end", [end_session, end_coordinator, refuse_coordinator, refuse_transaction])
def test_a_transacted_session_that_the_broker_ends_at_each_restore_costs_the_others_nothing(
    face: Face, engine: str, end: Callable[[Peer, int], None]
) -> None:
    """S104: no end counted before the first transaction had begun, so the connection was restored for ever."""
    peer = face.peer()
    connection = face.failover(peer, options=f"nested.amqp.engine={engine}")
    events = Events(connection)
    neighbour = connection.create_session().create_producer(Queue("good"))
    guilty = connection.create_session(0)
    consumer = guilty.create_consumer(Queue("guilty"))
    end(peer, len(peer.all("begin")) - 1)
    peer.drop()
    neighbour.send("after")
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["after"]
    with pytest.raises(ResourceAllocationException, match="full"):
        consumer.receive(timeout=60)
    events.wait("established", "interrupted", "restored")
    assert len(peer.connections) == 3


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_transacted_session_that_a_broker_ends_is_restored_at_the_next_broker(face: Face, engine: str) -> None:
    """S104: the first end is a refusal of this broker."""
    first, full, third = face.peer(), face.peer(), face.peer()
    end_session(full, 1)
    connection = face.failover(first, full, third, options=f"nested.amqp.engine={engine}")
    session = connection.create_session(0)
    producer = session.create_producer(Queue("out"))
    first.drop()
    producer.send("x")
    session.commit()
    assert [transfer.message.body for transfer in third.wait_transfers(1)] == ["x"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("engine", ["python", "proton"])
@pytest.mark.parametrize("mode", [0, 1])
def test_a_session_whose_begin_ends_each_connection_is_closed_alone(face: Face, engine: str, mode: int) -> None:
    """S104: Artemis closes the connection at a limit of sessions. No session was blamed, so no neighbour could work."""
    peer = face.peer()
    connection = face.failover(peer, options=f"nested.amqp.engine={engine}")
    events = Events(connection)
    neighbour = connection.create_session().create_producer(Queue("good"))
    guilty = connection.create_session(mode).create_consumer(Queue("guilty"))
    number = len(peer.all("begin")) - 1

    def close(begun: int) -> None:
        if begun == number:
            peer.connections[-1].close(Condition("amqp:internal-error", "too many sessions"))

    peer.script.refuse_begin = close
    peer.drop()
    neighbour.send("after")
    assert [transfer.message.body for transfer in peer.wait_transfers(1)] == ["after"]
    with pytest.raises(ResourceAllocationException, match=r"gave up this session .*too many sessions"):
        guilty.receive(timeout=60)
    events.wait("established", "interrupted", "restored")


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_a_link_that_ends_each_connection_behind_its_answer_is_blamed_and_not_the_next_link(
    face: Face, engine: str
) -> None:
    """S104: the answer to the Attach and the Close arrive together."""
    peer = face.peer()
    connection = face.failover(peer, options=f"nested.amqp.engine={engine}")
    session = connection.create_session()
    guilty, neighbour = session.create_producer(Queue("guilty")), session.create_producer(Queue("good"))

    def close(link: PeerLink) -> None:
        if link.name == "guilty":
            link.connection.close(Condition("amqp:internal-error", "no"))

    peer.script.after_attach = close
    peer.drop()
    neighbour.send("after")
    with pytest.raises(ResourceAllocationException, match="gave up this link"):
        guilty.send("lost")

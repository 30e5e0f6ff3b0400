"""Links at Artemis take one message at a time after a loss, because Artemis then mixes up messages (S51, S53, S103)."""

from __future__ import annotations

from typing import Any

import pytest
from failover_support import interruptible
from peer import Peer, text
from peer_faces import Face, SyncFace
from peer_frames import transfer

from pyjmsack import Queue
from pyjmsack.providers.amqp import caution

ARTEMIS = {"product": "apache-activemq-artemis", "version": "2.56.0"}
Q = Queue("q?consumer.prefetchSize=10")


@pytest.fixture(autouse=True)
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A careful link stays careful, unless a test says otherwise."""
    monkeypatch.setattr(caution, "_SECONDS", 60.0)
    monkeypatch.setattr(caution, "_SECONDS_AT_MOST", 60.0)


def granted(peer: Peer) -> list[int]:
    """Return the credit of every flow of the newest connection, without drains."""
    newest = max(frame.connection for frame in peer.all("attach"))
    return [f["link-credit"] for f in peer.all("flow") if f.connection == newest and not f["drain"]]


def texts(*numbers: int) -> list[bytes]:
    return [text(str(n)) for n in numbers]


def lose_one(face: Face) -> None:
    """Another connection of this process is lost."""
    peer = face.peer(properties=ARTEMIS)
    connection = face.connect(peer)
    peer.drop()
    face.until(lambda: caution._Losses.last is not None)
    connection.close()


def received(consumer: Any, number: int) -> list[str]:
    return [consumer.receive(60).text for _ in range(number)]


def test_after_a_failover_each_message_is_asked_for_alone(face: Face) -> None:
    """S103: the new link has credit for one message; the next credit follows the message."""
    peer, connection, outage = interruptible(face, properties=ARTEMIS)
    consumer = connection.create_session(2).create_consumer(Q)
    peer.wait_frames("flow")
    assert granted(peer) == [10]
    outage.begin()
    peer.messages.extend(texts(1, 2, 3))
    outage.end()
    assert received(consumer, 3) == ["1", "2", "3"]
    assert set(granted(peer)) == {1}


def test_a_plain_connection_is_careful_too_after_the_loss_of_another_one(face: Face) -> None:
    """Both may read the same queue."""
    lose_one(face)
    peer = face.peer(properties=ARTEMIS, messages=texts(1, 2))
    consumer = face.session(peer).create_consumer(Q)
    assert received(consumer, 2) == ["1", "2"]
    assert set(granted(peer)) == {1}


def test_a_careful_link_buffers_no_more_than_its_prefetch(face: Face) -> None:
    """S51."""
    lose_one(face)
    peer = face.peer(properties=ARTEMIS, messages=texts(*range(15)))
    session = face.session(peer, mode=2)
    consumer = session.create_consumer(Q)
    face.until(lambda: consumer.stats.buffered == 10)
    face.barrier(peer, session)
    assert consumer.stats.buffered == 10
    assert received(consumer, 15) == [str(n) for n in range(15)]


def test_the_whole_window_opens_when_the_careful_time_is_over(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    """S53: the timer alone opens it, although no message comes."""
    monkeypatch.setattr(caution, "_SECONDS", 0.05)
    monkeypatch.setattr(caution, "_ANSWERS", 0)
    lose_one(face)
    peer = face.peer(properties=ARTEMIS)
    face.session(peer).create_consumer(Q)
    peer.wait_frames("flow", 2)
    assert granted(peer) == [1, 10]


def test_a_link_that_closes_in_its_careful_time_leaves_no_timer(
    sync: SyncFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timer would grant credit on a link that is gone."""
    monkeypatch.setattr(caution, "_SECONDS", 0.05)
    monkeypatch.setattr(caution, "_ANSWERS", 0)
    lose_one(sync)
    peer = sync.peer(properties=ARTEMIS)
    session = sync.session(peer)
    session.create_consumer(Q).close()
    later = session.create_consumer(Queue("later?consumer.prefetchSize=20"))
    sync.until(lambda: 20 in granted(peer))
    assert 10 not in granted(peer)
    later.close()


@pytest.mark.option("amqp.singleCredit", "amqp")
@pytest.mark.parametrize(("policy", "credit"), [("always", {1}), ("never", {10})])
def test_the_option_decides(sync: SyncFace, policy: str, credit: set[int]) -> None:
    """``amqp.singleCredit``: always, also without a loss; never, also after one."""
    if policy == "never":
        lose_one(sync)
    peer = sync.peer(properties=ARTEMIS, messages=texts(1, 2))
    consumer = sync.session(peer, f"amqp.singleCredit={policy}").create_consumer(Q)
    assert received(consumer, 2) == ["1", "2"]
    assert set(granted(peer)) == credit


def test_an_orderly_close_is_no_loss(face: Face) -> None:
    """Artemis sends what is left of a link before it gives the link's messages back."""
    first = face.peer(properties=ARTEMIS)
    face.connect(first).close()
    peer = face.peer(properties=ARTEMIS)
    face.session(peer).create_consumer(Q)
    peer.wait_frames("flow")
    assert granted(peer) == [10]


def test_other_brokers_get_the_whole_window(sync: SyncFace) -> None:
    """Only Artemis mixes messages up."""
    lose_one(sync)
    peer = sync.peer(properties={"product": "ActiveMQ", "version": "6.3.1"})
    sync.session(peer).create_consumer(Q)
    peer.wait_frames("flow")
    assert granted(peer) == [10]


class Clock:
    """The time of the caution."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.undo()
        self.now = 1000.0
        monkeypatch.setattr(caution, "monotonic", lambda: self.now)
        monkeypatch.setattr(caution._Losses, "last", None)
        monkeypatch.setattr(caution._Losses, "due", {})

    def careful(self, *, answered: float = 0.001) -> caution.Caution:
        """Return the caution of a link that was just attached, and has credit."""
        link = a_caution(caution.Single.FOR_A_WHILE)
        link.answered(answered)
        assert link.asked()
        return link


def a_caution(single: caution.Single, *, buffered: int = 0, returns: bool = True) -> caution.Caution:
    return caution.Caution(single, "q", returns=returns, buffered=lambda: buffered)


def test_a_slow_broker_gets_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that answers late also takes its time to give messages back; the time has a limit."""
    clock = Clock(monkeypatch)
    for answered, wanted in ((0.001, 1.8), (0.8, 4.0), (100.0, 10.0)):
        assert clock.careful(answered=answered).time_left() == pytest.approx(wanted)


@pytest.mark.parametrize("answered", [0.5, 0.001])
def test_a_link_stays_careful_until_what_was_lost_has_come_back(
    monkeypatch: pytest.MonkeyPatch, answered: float
) -> None:
    """S103: two messages were buffered. Both come back, counted; then one that nobody had before. A new message may
    come earlier, while the broker has not noticed the loss yet. The broker is slow to answer, or slow to send."""
    clock = Clock(monkeypatch)
    caution.lost([a_caution(caution.Single.NO, buffered=2)])
    link = clock.careful(answered=answered)
    clock.now += 3.0
    assert link.time_left() > 0
    for count in (0, 1, 1):
        link.took(text("x", delivery_count=count))
        link.asked()
        assert link.time_left() > 0, "not yet"
    link.took(text("x", delivery_count=0))
    assert link.time_left() == 0.0


def test_a_link_waits_a_limited_time_for_what_another_client_may_have_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a quick broker 1.8 seconds, at a slow one 20."""
    clock = Clock(monkeypatch)
    caution.lost([a_caution(caution.Single.NO, buffered=2)])
    quick, slow = clock.careful(), clock.careful(answered=0.9)
    for _ in range(37):
        clock.now += 0.05
        quick.took(text("x", delivery_count=0))
        quick.asked()
    assert caution._Losses.due == {"q": 2}
    assert quick.time_left() == 0.0
    clock.now += 18.0
    assert slow.time_left() > 0
    clock.now += 0.2
    assert slow.time_left() == 0.0


def test_only_what_comes_back_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that was idle had nothing; the queue of a plain subscription ends with its connection."""
    clock = Clock(monkeypatch)
    idle, busy, plain = (a_caution(caution.Single.NO, returns=name != "plain") for name in ("idle", "busy", "plain"))
    idle.arrived, busy.arrived, plain.arrived = clock.now - 5.0, clock.now - 0.5, clock.now - 0.5
    caution.lost([idle, plain])
    assert caution._Losses.due == {}
    caution.lost([busy])
    assert caution._Losses.due == {"q": 1}
    clock.now += caution._REMEMBERED
    caution.lost()
    assert caution._Losses.due == {}


def test_what_is_remembered_of_losses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address is forgotten when all its messages have come back; beyond the limit the oldest address goes."""
    clock = Clock(monkeypatch)
    monkeypatch.setattr(caution, "_MOST_ADDRESSES", 2)
    for name in ("a", "b", "a", "c"):
        caution.lost([caution.Caution(caution.Single.NO, name, returns=True, buffered=lambda: 1)])
    assert caution._Losses.due == {"a": 2, "c": 1}
    caution.lost([a_caution(caution.Single.NO, buffered=2)])
    link = clock.careful()
    for left in (1, None):
        link.took(text("x", delivery_count=1))
        assert caution._Losses.due.get("q") == left


def test_nothing_is_remembered_of_a_temporary_queue(sync: SyncFace) -> None:
    """It ends with its connection, and has a new name each time: the memory would grow with every loss."""
    peer = sync.peer(properties=ARTEMIS)
    connection = sync.connect(peer)
    session = connection.create_session()
    replies = session.create_consumer(session.create_temporary_queue())
    connection.start()
    peer.deliver(*texts(1, 2))
    sync.until(lambda: replies.stats.buffered == 2)
    peer.drop()
    sync.until(lambda: caution._Losses.last is not None)
    connection.close()
    assert caution._Losses.due == {}


def test_a_loss_is_forgotten_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker has noticed the loss by then (``connection-ttl``)."""
    now = 1000.0
    monkeypatch.setattr(caution, "monotonic", lambda: now)
    assert caution.single_credit("afterLoss") is caution.Single.NO
    caution.lost()
    now += caution._REMEMBERED - 1
    assert caution.single_credit("afterLoss") is caution.Single.FOR_A_WHILE
    now += 2
    assert caution.single_credit("afterLoss") is caution.Single.NO


def test_a_broker_that_sends_more_than_was_asked_for_does_not_stall_a_careful_link(sync: SyncFace) -> None:
    """S53: the credit is below zero then, and the next message still gets its own."""
    peer = sync.peer(properties=ARTEMIS)
    consumer = sync.session(peer, "amqp.singleCredit=always").create_consumer(Q)
    peer.wait_frames("flow")
    peer.do(lambda: peer.connections[0].write_raw(transfer(0, text("1")) + transfer(1, text("2"))))
    assert received(consumer, 2) == ["1", "2"]
    sync.until(lambda: [(f["delivery-count"], f["link-credit"]) for f in peer.all("flow")][-1] == (2, 1))


def test_a_rollback_meets_no_newer_message_on_a_careful_link(face: Face) -> None:
    """S83: a message that ends the drain of a rollback is not followed by credit for the next one."""
    peer = face.peer(properties=ARTEMIS, messages=texts(1))
    session = face.session(peer, "amqp.singleCredit=always", mode=0)
    consumer = session.create_consumer(Q)
    assert consumer.receive(60).text == "1"
    face.barrier(peer, session)
    peer.messages.extend(texts(2, 3))
    before = len(peer.frames)
    session.rollback()
    told = [f for f in peer.frames[before:] if f.name == "transfer" or (f.name == "flow" and not f["drain"])]
    assert told[0].name == "transfer"

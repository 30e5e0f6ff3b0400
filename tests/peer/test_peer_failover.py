"""The broker goes away and comes again, or another one takes over (S90-S109, scenarios 63 to 81)."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
from failover_support import Events, Outage, dropping, interruptible, once
from peer import Peer, accepted, dropped, in_turn, text, unanswered
from peer_faces import Face, SyncFace, Told
from proton import Condition

from pyjmsack import (
    ConnectionLostException,
    JMSSecurityException,
    Queue,
    ResourceAllocationException,
    SendTimedOutException,
    TransactionRolledBackException,
)

Q = Queue("q?consumer.prefetchSize=10")
PULL = Queue("q?consumer.prefetchSize=0")
NOWHERE = "amqp://127.0.0.1:1"
"""Nobody listens on this port."""


def bodies(peer: Peer) -> list[Any]:
    return [transfer.body for transfer in peer.transfers]


def commits(peer: Peer) -> list[bool]:
    """What the broker was told at the end of each transaction: True to commit."""
    return [not discharge.body[1][1] for discharge in peer.discharges]


# -- the table of S90 -------------------------------------------------------------------------------------------


class World:
    """A connection with one of each, on a peer that then goes away."""

    def __init__(self, face: Face) -> None:
        self.peer = face.peer(messages=[text("m1"), text("m2")])
        self.connection = face.failover(self.peer)
        self.session = self.connection.create_session(2)
        self.transacted = self.connection.create_session(0)
        self.producer = self.session.create_producer(Q)
        self.consumer = self.session.create_consumer(Q)
        self.puller = self.transacted.create_consumer(PULL)
        self.received = self.consumer.receive(60)
        self.clock = self.connection.create_session().create_consumer(Queue("clock?consumer.prefetchSize=0"))
        self.outage = Outage(face, self.peer, self.connection)


HELD = {
    "send": lambda w: w.producer.send("x"),
    "create_session": lambda w: w.connection.create_session(),
    "create_producer": lambda w: w.session.create_producer(Queue("other")),
    "create_consumer": lambda w: w.session.create_consumer(Queue("other")),
    "create_temporary_queue": lambda w: w.session.create_temporary_queue(),
    "pull": lambda w: w.puller.receive(),
}
AT_ONCE = {
    "acknowledge message": lambda w: w.received.acknowledge(),
    "acknowledge session": lambda w: w.session.acknowledge(),
    "recover": lambda w: w.session.recover(),
    "rollback": lambda w: w.transacted.rollback(),
    "close consumer": lambda w: w.consumer.close(),
    "close producer": lambda w: w.producer.close(),
    "close session": lambda w: w.session.close(),
    "close transacted session": lambda w: w.transacted.close(),
    "close connection": lambda w: w.connection.close(),
    "start": lambda w: w.connection.start(),
    "stop": lambda w: w.connection.stop(),
    "receive with a deadline": lambda w: w.consumer.receive(0.05),
}


@pytest.mark.parametrize("name", HELD)
def test_what_needs_a_broker_waits_for_one(face: Face, name: str) -> None:
    """S90: held, and done when there is one."""
    world = World(face)
    world.outage.begin()
    calling = face.background(HELD[name], world)
    world.clock.receive(0.05)
    assert not calling.done()
    world.outage.end()
    if name == "pull":
        world.peer.deliver(text("later"), consumer=4)  # the second of those that were rebuilt
    calling.result(60)


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_needs_no_broker_returns_at_once(face: Face, name: str) -> None:
    """S90, scenario 72."""
    world = World(face)
    world.outage.begin()
    face.background(AT_ONCE[name], world).result(2.5)


def test_a_commit_without_a_broker_fails_at_once_and_the_next_one_succeeds(face: Face) -> None:
    """S90, S94."""
    world = World(face)
    world.outage.begin()
    with pytest.raises(TransactionRolledBackException) as caught:
        face.background(world.transacted.commit).result(2.5)
    assert not caught.value.in_doubt
    world.outage.end()
    world.transacted.create_producer(Q).send("x")
    world.transacted.commit()
    assert commits(world.peer)[-1]


def test_closed_things_are_not_restored(face: Face) -> None:
    """S103, scenario 72."""
    world = World(face)
    world.outage.begin()
    world.session.close()
    world.puller.close()
    world.outage.end()
    world.connection.create_session().create_producer(Q)
    attached, begun = world.peer.all("attach"), world.peer.all("begin")
    present = begun[-1].connection  # earlier ones were begun on connections that waited for their Open
    assert sum(frame.connection == present for frame in attached) == 2  # the clock's, and the new one
    sessions = sum(frame.connection == present for frame in begun)
    assert sessions == 4  # the connection's own, two that are open, and the new one


# -- sends ------------------------------------------------------------------------------------------------------


def test_a_send_in_flight_is_sent_again_and_succeeds(face: Face) -> None:
    """S91, scenario 65: the caller notices nothing."""
    peer = face.peer(on_transfer=in_turn(dropped, accepted))
    face.failover(peer).create_session().create_producer(Q).send("x")
    assert bodies(peer) == ["x", "x"]


def test_sends_in_flight_and_sends_without_a_broker_keep_their_order(face: Face) -> None:
    """S90, S91."""
    peer, connection, outage = interruptible(face, on_transfer=unanswered)
    producer = connection.create_session().create_producer(Q)
    sending = [producer.send_async(str(n)) for n in range(3)]
    peer.wait_transfers(3)
    outage.begin()
    sending += [producer.send_async(str(n)) for n in range(3, 6)]
    peer.script.on_transfer = accepted
    outage.end()
    for future in sending:
        future.result(60)
    assert bodies(peer) == ["0", "1", "2", "0", "1", "2", "3", "4", "5"]


def test_a_send_without_a_broker_ends_with_its_time(face: Face) -> None:
    """S66, S91, scenario 66: and is not sent later."""
    peer, connection, outage = interruptible(face, options="jms.sendTimeout=1000")
    producer = connection.create_session().create_producer(Q)
    outage.begin()
    with pytest.raises(SendTimedOutException):
        producer.send("late")
    with pytest.raises(SendTimedOutException):
        producer.send_async("late").result(60)
    outage.end()
    producer.send("x")
    assert bodies(peer) == ["x"]


def test_a_send_whose_caller_was_told_that_it_timed_out_is_not_repeated(face: Face) -> None:
    """S91: unless a send time-out has run out."""
    peer, connection, outage = interruptible(face, on_transfer=unanswered, options="jms.sendTimeout=1000")
    producer = connection.create_session().create_producer(Q)
    with pytest.raises(SendTimedOutException, match="may have been stored"):
        producer.send("x")
    peer.script.on_transfer = accepted
    outage.begin()
    outage.end()
    producer.send("y")
    assert bodies(peer) == ["x", "y"]


@pytest.mark.option("failover.timeout", "core")
def test_failover_timeout_bounds_a_send_without_a_broker_only(face: Face) -> None:
    """A.3: ``failover.timeout``."""
    _, connection, outage = interruptible(face, options="failover.timeout=80")
    producer = connection.create_session().create_producer(Q)
    outage.begin()
    with pytest.raises(SendTimedOutException, match="no broker within"):
        producer.send_async("late").result(60)


def test_completion_listeners_hear_of_sends_that_were_on_the_wire_and_others_wait(face: Face) -> None:
    """S102, scenario 75: a send on the wire fails and is not repeated; one that waits for credit is kept."""
    peer, connection, outage = interruptible(face, on_transfer=unanswered, credit=1)
    producer = connection.create_session().create_producer(Q)
    listener = Told()
    producer.send("on the wire", completion_listener=listener)
    peer.wait_transfers(1)
    producer.send("waits for credit", completion_listener=listener)
    face.barrier(peer, connection.create_session())
    outage.begin()
    assert listener.wait(1)[0][:2] == ("failed", "on the wire")
    producer.send("held", completion_listener=listener)
    peer.script.on_transfer, peer.script.credit = accepted, 10
    outage.end()
    assert [call[:2] for call in listener.wait(3)[1:]] == [("completed", "waits for credit"), ("completed", "held")]
    assert bodies(peer) == ["on the wire", "waits for credit", "held"]


# -- transactions -----------------------------------------------------------------------------------------------


def test_the_first_send_of_a_transaction_in_flight_survives_and_the_commit_succeeds(face: Face) -> None:
    """S92, S93, scenario 67."""
    peer = face.peer(on_transfer=in_turn(dropped, accepted))
    session = face.failover(peer).create_session(0)
    session.create_producer(Q).send("x")
    session.commit()
    assert (bodies(peer), commits(peer)) == (["x", "x"], [True])


@pytest.mark.option("failover.firstSendSurvives", "core")
def test_first_send_survives_false_gives_the_rule_of_qpid_jms(face: Face) -> None:
    """S93, scenario 67."""
    peer = face.peer(on_transfer=in_turn(dropped, accepted))
    session = face.failover(peer, options="failover.firstSendSurvives=false").create_session(0)
    session.create_producer(Q).send("x")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert commits(peer) in ([], [False])


def test_a_drop_at_the_second_send_of_a_transaction_rolls_it_back(face: Face) -> None:
    """S92, scenario 68: sends go on as if nothing was, the commit says it, and the next transaction is clean."""
    peer = face.peer(on_transfer=in_turn(accepted, dropped, accepted))
    connection = face.failover(peer)
    events = Events(connection)
    session = connection.create_session(0)
    producer = session.create_producer(Q)
    for body in ("1", "2"):
        producer.send(body)
        peer.wait_transfers(int(body))
    events.wait("established", "interrupted", "restored")
    producer.send("3")
    with pytest.raises(TransactionRolledBackException) as caught:
        session.commit()
    assert len(caught.value.sent) == 3
    assert not caught.value.in_doubt
    for body in ("1", "2", "3"):
        producer.send(body)
    session.commit()
    assert (bodies(peer)[-3:], commits(peer)) == (["1", "2", "3"], [False, True])


@pytest.mark.parametrize("answer", [dropped, None], ids=["not answered", "done but the answer is lost"])
def test_a_commit_in_flight_is_in_doubt_and_the_next_transaction_is_clean(face: Face, answer: Any) -> None:
    """S94, S98, scenario 69: it may have taken effect, and the exception says so."""

    def done_and_lost(transfer: Any) -> None:
        accepted(transfer)
        transfer.link.connection.drop()

    peer = face.peer(on_discharge=in_turn(answer or done_and_lost, accepted))
    session = face.failover(peer).create_session(0)
    producer = session.create_producer(Q)
    producer.send("x")
    with pytest.raises(TransactionRolledBackException) as caught:
        session.commit()
    assert caught.value.in_doubt
    producer.send("y")
    session.commit()
    assert (bodies(peer), commits(peer)) == (["x", "y"], [True, True])


def test_what_was_received_in_an_interrupted_transaction_cannot_be_committed(face: Face) -> None:
    """S97, scenario 70: receiving goes on, the commit raises, and what came since goes back."""
    peer, connection, outage = interruptible(face, messages=[text("1")])
    session = connection.create_session(0)
    consumer = session.create_consumer(Q)
    assert consumer.receive(60).text == "1"
    outage.begin()
    peer.messages.append(text("2"))
    outage.end()
    assert consumer.receive(60).text == "2"
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert commits(peer) == [False]
    session.commit()


def test_rollback_after_a_drop_raises_nothing(face: Face) -> None:
    """S99."""
    peer, connection, outage = interruptible(face, messages=[text("1")])
    session = connection.create_session(0)
    session.create_consumer(Q).receive(60)
    session.create_producer(Q).send("x")
    outage.begin()
    outage.end()
    session.rollback()
    session.create_producer(Q).send("y")
    session.commit()
    assert commits(peer)[-1]


def test_a_transaction_without_work_survives_unnoticed(face: Face) -> None:
    """S100."""
    peer, connection, outage = interruptible(face)
    session = connection.create_session(0)
    producer = session.create_producer(Q)
    outage.begin()
    outage.end()
    producer.send("x")
    session.commit()
    assert (bodies(peer), commits(peer)) == (["x"], [True])


def test_sends_of_a_transaction_without_a_broker_are_held_and_committed(face: Face) -> None:
    """S90, S100."""
    peer, connection, outage = interruptible(face)
    session = connection.create_session(0)
    producer = session.create_producer(Q)
    outage.begin()
    for body in "abc":
        producer.send(body)
    outage.end()
    session.commit()
    assert (bodies(peer), commits(peer)) == (["a", "b", "c"], [True])


def test_a_rollback_without_a_broker_takes_held_sends_back(face: Face) -> None:
    """S90, S99."""
    peer, connection, outage = interruptible(face)
    session = connection.create_session(0)
    producer = session.create_producer(Q)
    outage.begin()
    producer.send("undone")
    session.rollback()
    producer.send("kept")
    outage.end()
    session.commit()
    assert (bodies(peer), commits(peer)) == (["kept"], [True])


# -- receiving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", [Q, PULL], ids=["push", "pull"])
def test_a_blocked_receive_survives_the_drop(face: Face, queue: Queue) -> None:
    """S108: and a pull is repeated."""
    peer = face.peer()
    connection = face.failover(peer)
    events = Events(connection)
    consumer = connection.create_session().create_consumer(queue)
    receiving = face.background(consumer.receive, 20)
    peer.wait_frames("flow")
    peer.drop()
    events.wait("established", "interrupted", "restored")
    peer.deliver(text("m"), consumer=1)
    assert receiving.result(60).text == "m"


def test_buffers_are_emptied_and_a_message_in_hand_stays_readable(face: Face) -> None:
    """S101: what was prefetched comes again from the broker, not twice."""
    peer, connection, outage = interruptible(face, messages=[text(str(n)) for n in range(5)])
    consumer = connection.create_session(2).create_consumer(Q)
    first = consumer.receive(60)
    face.until(lambda: consumer.stats.buffered == 4)
    outage.begin()
    assert consumer.stats.buffered == 0
    assert first.text == "0"
    peer.messages.extend(text(str(n)) for n in range(5))
    outage.end()
    assert [consumer.receive(60).text for _ in range(5)] == list("01234")


@pytest.mark.parametrize("mode", [2, 101], ids=["client", "individual"])
def test_an_acknowledgement_of_an_earlier_connection_is_silent_and_never_sent(face: Face, mode: int) -> None:
    """S95, S96, scenarios 71 and 96; it does not take newer messages along, and is counted."""
    peer, connection, outage = interruptible(face, messages=[text("old")], options="failover.duplicateGuard=none")
    session = connection.create_session(mode)
    consumer = session.create_consumer(Q)
    old = consumer.receive(60)
    outage.begin()
    peer.messages.extend([text("old"), text("new")])
    outage.end()
    again, new = consumer.receive(60), consumer.receive(60)
    old.acknowledge()
    old.acknowledge()
    face.barrier(peer, session)
    assert peer.all("disposition") == []
    assert (again.text, new.text, consumer.stats.stale, consumer.stats.unacknowledged) == ("old", "new", 1, 2)


def test_an_acknowledgement_that_was_lost_makes_no_duplicate(face: Face) -> None:
    """S105, scenario 78: what was processed is acknowledged and skipped, and counted."""
    message = text("m", id="ID:1")
    peer, connection, outage = interruptible(face, messages=[message])
    session = connection.create_session()
    consumer = session.create_consumer(Q)
    assert consumer.receive(60).text == "m"
    outage.begin()
    peer.messages.extend([message, text("next", id="ID:2")])
    outage.end()
    assert consumer.receive(60).text == "next"
    assert consumer.stats.duplicates_skipped == 1
    before = len(peer.all("disposition"))
    face.barrier(peer, session)
    assert len(peer.all("disposition")) >= before


@pytest.mark.parametrize("mode", [0, 2, 101], ids=["transacted", "client", "individual"])
@pytest.mark.parametrize("given_back", [False, True], ids=["processed", "given back"])
def test_what_is_in_the_caller_s_hands_is_not_handed_out_beside(face: Face, mode: int, given_back: bool) -> None:
    """S91, S105: a broker without duplicate detection stored a repeated send twice. The second one is acknowledged, and
    does not count as processed: what the caller gives back comes again."""
    peer, connection, outage = interruptible(face)
    session = connection.create_session(mode)
    consumer = session.create_consumer(Q)
    outage.begin()
    message = text("m", id="ID:1")
    peer.messages.extend([message, message, text("next", id="ID:2")])
    outage.end()
    held = [consumer.receive(60), consumer.receive(60)]
    assert [message.text for message in held] == ["m", "next"]
    assert consumer.stats.duplicates_skipped == 1
    if given_back:
        (session.rollback if mode == 0 else session.recover)()
    elif mode == 0:
        session.commit()
    else:
        for received in held:
            received.acknowledge()
    outage.begin()
    peer.messages.extend([message, text("last", id="ID:3")])
    outage.end()
    assert consumer.receive(60).text == ("m" if given_back else "last")


@pytest.mark.parametrize("mode", [2, 101], ids=["client", "individual"])
def test_what_was_acknowledged_too_late_counts_as_processed(face: Face, mode: int) -> None:
    """S95, S105: the acknowledgement has no effect at the broker, but the message is not handed out again."""
    message = text("m", id="ID:1")
    peer, connection, outage = interruptible(face, messages=[message])
    consumer = connection.create_session(mode).create_consumer(Q)
    in_hand = consumer.receive(60)
    outage.begin()
    in_hand.acknowledge()
    peer.messages.extend([message, text("next", id="ID:2")])
    outage.end()
    assert consumer.receive(60).text == "next"
    assert (consumer.stats.duplicates_skipped, consumer.stats.stale) == (1, 1)


@pytest.mark.parametrize("mode", [2, 101], ids=["client", "individual"])
def test_what_is_acknowledged_after_two_losses_counts_as_processed(face: Face, mode: int) -> None:
    """S95, S105: work on a message may take longer than a broker stays."""
    message = text("m", id="ID:1")
    peer, connection, outage = interruptible(face, messages=[message])
    consumer = connection.create_session(mode).create_consumer(Q)
    in_hand = consumer.receive(60)
    for _ in range(2):
        outage.begin()
        peer.messages.extend([message, text("next", id="ID:2")])
        outage.end()
        face.until(lambda: consumer.stats.buffered == 2)
    in_hand.acknowledge()
    assert consumer.receive(60).text == "next"
    assert (consumer.stats.duplicates_skipped, consumer.stats.stale) == (1, 1)


@pytest.mark.parametrize("mode", [2, 101], ids=["client", "individual"])
def test_what_a_consumer_had_that_the_broker_closed_is_no_copy_when_it_comes_again(face: Face, mode: int) -> None:
    """S91, S95, S109: Classic closes consumers that it finds slow, and gives their messages to the next one."""
    message = text("m", id="ID:1")
    peer, connection, outage = interruptible(face)
    session = connection.create_session(mode)
    consumer = session.create_consumer(Q)
    outage.begin()
    peer.messages.append(message)
    outage.end()
    in_hand = consumer.receive(60)
    peer.close_link(peer.consumers[-1], "amqp:resource-limit-exceeded", "says the broker")
    with pytest.raises(ResourceAllocationException, match="says the broker"):
        consumer.receive(60)
    peer.messages.append(message)
    another = session.create_consumer(Q)
    assert another.receive(60).text == in_hand.text
    assert another.stats.duplicates_skipped == 0


def test_what_nobody_can_acknowledge_any_more_is_not_kept(face: Face) -> None:
    """S95: in INDIVIDUAL mode a message that the caller dropped without a word, as its broker was lost."""
    peer = face.peer(messages=[text("m", id="ID:1")])
    connection = face.failover(peer)
    outage = Outage(face, peer, connection)
    consumer = connection.create_session(101).create_consumer(Q)
    delivery = weakref.ref(consumer.receive(60)._delivery)
    outage.begin()
    outage.end()
    gc.collect()
    assert delivery() is None


def test_what_waits_for_its_acknowledgement_is_not_handed_out_again(face: Face) -> None:
    """S41, S91, S105: with ``jms.optimizeAcknowledge`` acknowledgements leave together, later."""
    peer, connection, outage = interruptible(
        face, options="jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=0"
    )
    consumer = connection.create_session().create_consumer(Q)
    outage.begin()
    message = text("m", id="ID:1")
    peer.messages.extend([message, message, text("next", id="ID:2")])
    outage.end()
    assert [consumer.receive(60).text for _ in range(2)] == ["m", "next"]
    assert consumer.stats.duplicates_skipped == 1


@pytest.mark.parametrize("destination", [Q, PULL], ids=["push", "pull"])
def test_what_is_skipped_does_not_hide_what_is_behind_it(face: Face, destination: Queue) -> None:
    """Catalogue 24, S105: ``None`` means that the broker has nothing more."""
    message = text("m", id="ID:1")
    peer, connection, outage = interruptible(face, messages=[message])
    consumer = connection.create_session().create_consumer(destination)
    consumer.receive(60)
    outage.begin()
    peer.messages.extend([message, text("next", id="ID:2")])
    outage.end()
    assert [consumer.receive(0).text, consumer.receive(0)] == ["next", None]
    assert consumer.stats.duplicates_skipped == 1


ARTEMIS = {"product": "apache-activemq-artemis", "version": "2.56.0"}


@pytest.mark.parametrize("properties", [{}, ARTEMIS], ids=["any broker", "artemis"])
def test_two_messages_that_share_an_id_are_both_handed_out(face: Face, properties: Any) -> None:
    """S105: they differ in a property, and behind 64 KB of body. Taken for a copy, the second one would be lost."""
    long = "x" * 70_000
    new, paid = (text("order", id="ID:1", properties={"state": state}) for state in ("NEW", "PAID"))
    first, second = (text(long + end, id="ID:2") for end in "12")
    product = {"properties": properties} if properties else {}
    peer, connection, outage = interruptible(face, messages=[new, first], **product)
    consumer = connection.create_session().create_consumer(Q)
    received = [consumer.receive(60) for _ in range(2)]
    outage.begin()
    peer.messages.extend([new, paid, first, second])
    outage.end()
    received += [consumer.receive(60) for _ in range(2)]
    states = [message.properties["state"] for message in received[::2]]
    assert (states, received[3].text[-1]) == (["NEW", "PAID"], "2")
    assert consumer.stats.duplicates_skipped == 2


def test_what_was_not_acknowledged_comes_again(face: Face) -> None:
    """S95: the guard skips what was processed, nothing else."""
    message = text("m", id="ID:1")
    peer, connection, outage = interruptible(face, messages=[message])
    consumer = connection.create_session(2).create_consumer(Q)
    consumer.receive(60)
    outage.begin()
    peer.messages.append(message)
    outage.end()
    assert consumer.receive(60).text == "m"
    assert consumer.stats.duplicates_skipped == 0


def test_a_listener_goes_on_and_its_message_in_work_is_not_handed_out_again(sync: SyncFace) -> None:
    """S95, S105, scenario 73. Blocking face only: a listener that waits would stop the loop of the other."""
    face = sync
    peer, connection, outage = interruptible(face, messages=[text("1", id="ID:1")])
    consumer = connection.create_session().create_consumer(Q)
    heard = Told(lambda message: outage.begin() if len(heard.calls) == 1 else None)
    consumer.message_listener = heard
    heard.wait(1)
    face.until(lambda: consumer.stats.stale == 1)
    peer.messages.extend([text("1", id="ID:1"), text("2", id="ID:2")])
    outage.end()
    assert [call[0].text for call in heard.wait(2)] == ["1", "2"]


@pytest.mark.parametrize("mode", [1, 101], ids=["auto", "individual"])
@pytest.mark.parametrize("succeeds", [True, False], ids=["processed", "raised"])
def test_a_listener_on_several_messages_gets_none_that_another_lane_works_on(
    sync: SyncFace, mode: int, succeeds: bool
) -> None:
    """S95, S105: it comes again while its listener is at work, waits for the end of that, and is skipped or handed out
    by how it ended. Blocking face only: the test waits for its listener."""
    face = sync
    peer = face.peer(messages=[text("1", id="ID:1")])
    connection = face.failover(peer)
    outage = Outage(face, peer, connection)
    consumer = connection.create_session(mode).create_consumer(Q)
    done = threading.Event()

    def work(message: Any) -> None:
        if not done.is_set():
            done.wait(60)
            if not succeeds:
                raise ValueError("it did not work")
        if mode == 101:
            message.acknowledge()

    heard = Told(work)
    consumer.set_message_listener(heard, concurrency=2)
    heard.wait(1)
    outage.begin()
    peer.messages.extend([text("1", id="ID:1"), text("2", id="ID:2")])
    outage.end()
    face.until(lambda: consumer.stats.buffered == 2)
    done.set()
    bodies = [call[0].text for call in heard.wait(2 if succeeds else 3)]
    assert sorted(bodies) == (["1", "2"] if succeeds else ["1", "1", "2"])
    assert consumer.stats.duplicates_skipped == succeeds


# -- rebuilding -------------------------------------------------------------------------------------------------


def test_events_are_told_in_order_and_the_exception_listener_is_not(face: Face) -> None:
    """S109, S128."""
    peer = face.peer()
    connection = face.failover(peer)
    connection.exception_listener = heard = Told()
    events = Events(connection)
    peer.drop()
    events.wait("established", "interrupted", "restored")
    assert [call[1] for call in events.calls] == [peer.url] * 3
    assert heard.calls == []


def test_no_attempt_left_is_told_once_and_ends_everything(face: Face) -> None:
    """S109, scenario 63: the exception listener once, blocked calls raise, and every later one."""
    peer = face.peer(on_transfer=unanswered)
    connection = face.failover(peer, options="failover.maxReconnectAttempts=2&failover.reconnectDelay=0")
    connection.exception_listener = heard = Told()
    events = Events(connection)
    session = connection.create_session()
    producer, consumer = session.create_producer(Q), session.create_consumer(Q)
    sending = producer.send_async("x")
    receiving = face.background(consumer.receive)
    peer.wait_transfers(1)
    peer.stop_listening()
    peer.drop()
    assert isinstance(heard.first(), ConnectionLostException)
    for call in (lambda: sending.result(60), lambda: receiving.result(60), lambda: producer.send("y")):
        with pytest.raises(ConnectionLostException):
            call()
    events.wait("established", "interrupted", "failure")
    assert len(heard.calls) == 1


@pytest.mark.option("failover.maxReconnectAttempts", "core")
def test_zero_reconnect_attempts_never_reconnect(face: Face) -> None:
    """A.3: 0 = never reconnect."""
    peer = face.peer()
    connection = face.failover(peer, options="failover.maxReconnectAttempts=0")
    connection.exception_listener = heard = Told()
    peer.drop()
    assert isinstance(heard.first(), ConnectionLostException)
    assert len(peer.connections) == 1


def test_a_dead_first_broker_is_passed_over(face: Face) -> None:
    """Scenario 63."""
    peer = face.peer()
    connection = face.failover(NOWHERE, peer)
    events = Events(connection)
    events.wait("established")
    assert events.calls[0][1] == peer.url


@pytest.mark.option("failover.reconnectDelay", "core")
@pytest.mark.option("failover.startupMaxReconnectAttempts", "core")
def test_the_limit_at_the_start_counts_rounds_over_all_brokers(face: Face) -> None:
    """Scenario 63: and the error says what went wrong."""
    with pytest.raises(ConnectionLostException, match=r"cannot connect to amqp://127\.0\.0\.1:1"):
        face.failover(NOWHERE, NOWHERE, options="failover.startupMaxReconnectAttempts=3&failover.reconnectDelay=0")


def test_bad_credentials_end_the_search_at_once(face: Face) -> None:
    """Scenario 64."""
    refusing, other = face.peer(sasl_outcome=1), face.peer()
    with pytest.raises(JMSSecurityException):
        face.failover(refusing, other, username="me", password="wrong")
    assert other.connections == []


def test_a_temporary_failure_of_the_login_is_tried_again(face: Face) -> None:
    """Scenario 64: SASL sys-temp."""
    refusing, other = face.peer(sasl_outcome=4), face.peer()
    face.failover(refusing, other).create_session()
    assert len(other.connections) == 1


def test_a_lost_broker_is_followed_by_the_next_one_in_the_list(face: Face) -> None:
    """S90: as written, beginning behind the lost one."""
    peers = [face.peer() for _ in range(3)]
    connection = face.failover(*peers)
    events = Events(connection)
    for number in (0, 1, 2):
        peers[number].drop()
        face.until(lambda: events.names.count("restored") == number + 1)  # noqa: B023 - called at once
    connection.create_session()
    assert [len(peer.connections) for peer in peers] == [2, 1, 1]
    assert [call[1] for call in events.calls if call[0] == "restored"] == [p.url for p in (*peers[1:], peers[0])]


REFUSED = Condition("amqp:unauthorized-access", "not here")


def refuse(name: str) -> Any:
    def decide(link: Any) -> Any:
        return REFUSED if name in (link.remote_source.address, link.remote_target.address) else None

    return decide


def test_a_broker_that_refuses_a_link_is_passed_over(face: Face) -> None:
    """S104, scenario 74."""
    first, second, third = face.peer(), face.peer(refuse_attach=refuse("q")), face.peer()
    connection = face.failover(first, second, third)
    events = Events(connection)
    producer = connection.create_session().create_producer(Q)
    first.drop()
    events.wait("established", "interrupted", "restored")
    producer.send("x")
    assert (bodies(second), bodies(third)) == ([], ["x"])


@pytest.mark.option("jms.closeLinksThatFailOnReconnect", "amqp")
def test_close_links_that_fail_on_reconnect_closes_only_what_was_refused(face: Face) -> None:
    """S104, scenario 74: the exception listener is told if there was a message listener."""
    first, second = face.peer(), face.peer(refuse_attach=refuse("q"))
    connection = face.failover(first, second, options="jms.closeLinksThatFailOnReconnect=true")
    connection.exception_listener = heard = Told()
    events = Events(connection)
    session, other = connection.create_session(), connection.create_session()
    refused, kept = session.create_producer(Q), session.create_producer(Queue("other"))
    consumer = session.create_consumer(Q)
    other.create_consumer(Q).message_listener = Told()
    first.drop()
    events.wait("established", "interrupted", "restored")
    kept.send("x")
    for call in (lambda: refused.send("y"), lambda: consumer.receive(1)):
        with pytest.raises(JMSSecurityException):
            call()
    assert isinstance(heard.first(), JMSSecurityException)
    assert (len(heard.calls), bodies(second)) == (1, ["x"])


STEPS: dict[str, Any] = {
    "begin": ("refuse_begin", lambda c: c.create_session()),
    "attach of a producer": ("refuse_attach", lambda c: c.create_session().create_producer(Q)),
    "attach of a consumer": ("refuse_attach", lambda c: c.create_session().create_consumer(Q)),
    "attach of a coordinator": ("refuse_attach", lambda c: c.create_session(0)),
    "declare": ("on_declare", lambda c: c.create_session(0)),
    "attach of a temporary queue": ("refuse_attach", lambda c: c.create_session().create_temporary_queue()),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_drop_at_each_step_of_creating_something_is_made_good(face: Face, name: str) -> None:
    """S90, scenario 76."""
    hook, create = STEPS[name]
    peer = face.peer()
    connection = face.failover(peer)
    usual = getattr(peer.script, hook)
    setattr(peer.script, hook, once(dropping(peer), usual))
    create(connection)
    assert len(peer.connections) == 2


@pytest.mark.parametrize("hook", ["refuse_begin", "refuse_attach", "on_declare"])
def test_a_drop_during_the_rebuilding_is_made_good(face: Face, hook: str) -> None:
    """S103, scenario 76: and what was held meanwhile is not lost."""
    peer, connection, outage = interruptible(face, on_transfer=unanswered)
    session, transacted = connection.create_session(), connection.create_session(0)
    producer, consumer = session.create_producer(Q), transacted.create_consumer(Q)
    sending = producer.send_async("x")
    peer.wait_transfers(1)
    outage.begin()
    usual = getattr(peer.script, hook)
    setattr(peer.script, hook, once(dropping(peer), usual))
    peer.script.on_transfer = accepted
    outage.end()
    sending.result(60)
    peer.messages.append(text("m"))
    peer.deliver(consumer=-1)
    assert consumer.receive(60).text == "m"
    transacted.commit()


def test_a_consumer_outlives_the_drop_that_interrupts_its_creation(face: Face) -> None:
    """S90, scenario 76: the drop is none of the consumer's business."""
    peer = face.peer(messages=[text("m")])
    session = face.failover(peer).create_session()
    peer.script.refuse_attach = once(dropping(peer), peer.script.refuse_attach)
    assert session.create_consumer(Q).receive(60).text == "m"


def test_consumers_outlive_a_drop_while_they_are_attached_again(face: Face) -> None:
    """S103, scenario 76: the first is attached, the second is not."""
    peer, connection, outage = interruptible(face)
    consumers = [connection.create_session().create_consumer(Q) for _ in range(2)]
    outage.begin()
    usual = peer.script.refuse_attach
    answers = iter([usual, dropping(peer)])
    peer.script.refuse_attach = lambda link: next(answers, usual)(link)
    outage.end()
    assert len(peer.all("attach")) > 4
    for number, consumer in enumerate(consumers):
        peer.deliver(text("m"), consumer=number - 2)
        assert consumer.receive(60).text == "m"


def test_temporary_queues_work_on_under_a_new_name(face: Face) -> None:
    """S103, S133, scenario 73: the same object; consumers, producers and reply addresses follow."""
    peer, connection, outage = interruptible(face, on_transfer=unanswered)
    session = connection.create_session()
    reply_to = session.create_temporary_queue()
    old = reply_to.name
    consumer, producer = session.create_consumer(reply_to), session.create_producer(Q)
    request = session.create_text_message("request")
    request.reply_to = reply_to
    sending = producer.send_async(request)
    peer.wait_transfers(1)
    outage.begin()
    peer.script.on_transfer = accepted
    outage.end()
    sending.result(60)
    assert reply_to.name != old
    assert [t.message.reply_to for t in peer.transfers] == [old, reply_to.name]
    peer.deliver(text("reply"), consumer=-1)
    assert consumer.receive(60).text == "reply"
    session.create_producer(reply_to).send("x")
    target = peer.all("attach")[-1].terminus("target")
    assert target is not None
    assert target["address"] == reply_to.name


def test_a_browser_goes_on_and_shows_nothing_twice(face: Face) -> None:
    """Scenario 73."""
    messages = [text(str(n), id=f"ID:{n}") for n in range(4)]
    peer, connection, outage = interruptible(face, messages=messages[:2])
    browsing = iter(connection.create_session().create_browser(Q))
    assert [next(browsing).text, next(browsing).text] == ["0", "1"]
    peer.script.silent.add("drain")
    drains = sum(bool(frame["drain"]) for frame in peer.all("flow"))
    rest = face.background(list, browsing)
    peer.wait(lambda: sum(bool(frame["drain"]) for frame in peer.all("flow")) > drains, "a drain")
    outage.begin()
    peer.script.silent.discard("drain")
    peer.messages.extend(messages)
    outage.end()
    assert [message.text for message in rest.result(60)] == ["2", "3"]


def test_metadata_follow_the_broker(face: Face) -> None:
    """S119."""
    first, second = face.peer(), face.peer(properties={"product": "another", "version": "2"}, capabilities=())
    connection = face.failover(first, second)
    events = Events(connection)
    assert "delivery-delay" in connection.capabilities
    first.drop()
    events.wait("established", "interrupted", "restored")
    assert connection.metadata.broker_name == "another"
    assert "delivery-delay" not in connection.capabilities

"""Transactions on the wire (S75-S87)."""

from __future__ import annotations

from contextlib import suppress
from itertools import groupby
from typing import Any

import pytest
from peer import DECLARED, Answer, Peer, Transfer, accepted, in_turn, rejected, released, settled, text, unanswered
from peer_faces import Face, Told
from peer_frames import Frame, settles
from proton import Condition

from pyjmsack import (
    ConnectionLostException,
    IllegalStateException,
    JMSException,
    JMSSecurityException,
    Queue,
    RequestTimedOutException,
    ResourceAllocationException,
    TransactionRolledBackException,
)

Q = Queue("q?consumer.prefetchSize=10")
PROVISIONAL_ACCEPTED = (0x24, [])


def transacted(face: Face, peer: Peer, *options: str) -> Any:
    return face.session(peer, *options, mode=0)


def declared_as(txn_id: bytes) -> Answer:
    """Begin a transaction with this id."""

    def answer(transfer: Transfer) -> None:
        transfer.delivery.local.data = [txn_id]
        transfer.answer(DECLARED)

    return answer


def txn(transfer: Transfer) -> bytes:
    """Return the id that a discharge names."""
    return bytes(transfer.body[1][0])


def fails(peer: Peer) -> list[bool]:
    """Return the fail flag of every discharge."""
    return [transfer.body[1][1] for transfer in peer.discharges]


def sent(peer: Peer) -> list[tuple[Transfer, Frame]]:
    """Return the messages of the client with their frames."""
    return list(zip(peer.transfers, peer.all("transfer"), strict=True))


def numbered(number: int) -> list[bytes]:
    return [text(str(n)) for n in range(number)]


# -- the pieces -------------------------------------------------------------------------------------------------


def test_a_transacted_session_declares_when_it_is_created(face: Face) -> None:
    """S76a: a broker without transactions fails here."""
    peer = face.peer()
    transacted(face, peer)
    assert len(peer.declares) == 1
    assert peer.declares[0].presettled is False
    attach = next(frame for frame in peer.frames if frame.name == "attach" and frame.coordinator)
    assert "amqp:local-transactions" in str(attach.terminus("target")["capabilities"])


def test_the_links_of_two_sessions_have_different_names(sync: Face) -> None:
    """AMQP 1.0 2.6.1: a broker may take a second link of one name for the first one, and end that."""
    peer = sync.peer()
    connection = sync.connect(peer)
    for _ in range(2):
        connection.create_session(0)
    names = [frame["name"] for frame in peer.frames if frame.name == "attach" and frame.coordinator]
    assert len({*names}) == 2


def test_other_sessions_have_no_coordinator(face: Face) -> None:
    peer = face.peer()
    face.session(peer).create_producer(Q).send("x")
    assert peer.coordinators == []


def test_a_declare_that_is_refused_fails_the_session(face: Face) -> None:
    """S76a, S129."""
    peer = face.peer(on_declare=rejected("amqp:resource-limit-exceeded"))
    connection = face.connect(peer)
    with pytest.raises(ResourceAllocationException):
        connection.create_session(0)
    connection.create_session(1).create_producer(Q).send("x")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_transaction_with_the_longest_id_is_ended(face: Face, end: str) -> None:
    peer = face.peer(on_declare=declared_as(b"i" * 251))
    session = transacted(face, peer)
    session.create_producer(Q).send("x")
    getattr(session, end)()
    assert txn(peer.discharges[0]) == b"i" * 251


@pytest.mark.parametrize("size", [0, 252, 255, 1000])
def test_an_id_that_fits_no_discharge_fails_the_session_alone(face: Face, size: int) -> None:
    """Neither a commit nor a rollback could be written: they raised ``ValueError``."""
    peer = face.peer(on_declare=declared_as(b"i" * size))
    connection = face.connect(peer)
    neighbour = connection.create_session(1).create_producer(Q)
    with pytest.raises(JMSException, match="did not accept"):
        connection.create_session(0)
    neighbour.send("x")


def test_a_coordinator_that_is_refused_fails_the_session(face: Face) -> None:
    """S76a, S129."""
    peer = face.peer(refuse_attach=lambda link: Condition("amqp:unauthorized-access"))
    with pytest.raises(JMSSecurityException):
        transacted(face, peer)


def test_a_declare_that_is_never_answered_times_out(face: Face) -> None:
    """Catalogue 58."""
    peer = face.peer(on_declare=unanswered)
    with pytest.raises(RequestTimedOutException):
        transacted(face, peer, "jms.requestTimeout=1500")


def test_sends_carry_the_transaction(face: Face) -> None:
    """S75: transfer state 0x34 with the id, unsettled."""
    peer = face.peer()
    session = transacted(face, peer)
    session.create_producer(Q).send("x")
    session.commit()
    (frame,) = peer.all("transfer")
    assert frame.state == (0x34, [txn(peer.discharges[0])])
    assert not frame["settled"]


def test_a_received_message_joins_the_transaction_settled(face: Face) -> None:
    """S23, S78: 0x34 with the id and accepted; settled, or it would stay ours after a rollback."""
    peer = face.peer(messages=numbered(1))
    session = transacted(face, peer)
    session.create_consumer(Q).receive(60)
    (frame,) = peer.wait_frames("disposition")
    session.commit()
    assert frame.state == (0x34, [txn(peer.discharges[0]), PROVISIONAL_ACCEPTED])
    assert frame["settled"] is True


def test_a_commit_discharges_and_declares_the_next(face: Face) -> None:
    """S76, S78."""
    peer = face.peer(messages=numbered(2))
    session = transacted(face, peer)
    producer, consumer = session.create_producer(Q), session.create_consumer(Q)
    for _ in range(2):
        producer.send("x")
        consumer.receive(60)
        session.commit()
    assert fails(peer) == [False, False]
    assert len(peer.declares) == 3
    first, second = (txn(transfer) for transfer in peer.discharges)
    assert first != second
    assert [frame.state[1][0] for frame in peer.all("transfer")] == [first, second]
    assert [frame.state[1][0] for frame in peer.all("disposition")] == [first, second]


def test_every_receipt_is_on_the_wire_before_its_discharge(face: Face) -> None:
    """S78: a receipt behind its discharge would be outside of it."""
    peer = face.peer(messages=numbered(200))
    session = transacted(face, peer)
    consumer = session.create_consumer(Q)
    for _ in range(200):
        consumer.receive(60)
        session.commit()
    order = [f for f in peer.frames if f.name == "disposition" or (f.name == "transfer" and f.coordinator)]
    assert len(peer.all("disposition")) == 200
    late, discharged = [], set()
    for frame in order:
        if frame.name == "disposition" and frame.state[1][0] in discharged:
            late.append(frame.state[1][0])
        discharged |= {txn(t) for t in peer.discharges if t.payload == frame.payload}
    assert late == []


def test_a_send_without_credit_is_undone_by_rollback(face: Face) -> None:
    """S80: it must not leave in the next transaction."""
    peer = face.peer()
    session = transacted(face, peer)
    peer.script.credit = 0
    producer = session.create_producer(Q)
    producer.send("undone")
    session.rollback()
    peer.grant(10)
    producer.send("next")
    session.commit()
    committed = txn(peer.discharges[-1])
    assert [t.message.body for t, f in sent(peer) if f.state[1][0] == committed] == ["next"]


def test_commit_and_rollback_without_work_succeed_s85(face: Face) -> None:
    peer = face.peer()
    session = transacted(face, peer)
    session.commit()
    session.rollback()
    session.commit()


def test_consumers_and_producers_of_a_session_share_the_transaction_s77(face: Face) -> None:
    peer = face.peer()
    session = transacted(face, peer)
    consumers = [session.create_consumer(Q), session.create_consumer(Queue("r?consumer.prefetchSize=10"))]
    peer.wait_frames("flow", 2)
    for number, consumer in enumerate(consumers):
        peer.deliver(text("x"), consumer=number)
        consumer.receive(60)
    session.create_producer(Q).send("x")
    session.commit()
    ids = {frame.state[1][0] for frame in peer.all("disposition") + peer.all("transfer")}
    assert ids == {txn(peer.discharges[0])}


# -- commit -----------------------------------------------------------------------------------------------------


def test_commit_waits_for_the_outcome_of_every_send_before_it_discharges(face: Face) -> None:
    """S86: a discharge behind a send that is then refused would commit the others without it."""
    seen: list[bool] = []

    def late(transfer: Transfer) -> None:
        transfer.link.connection.call_later(0.05, lambda: accepted(transfer))

    def discharge(transfer: Transfer) -> None:
        seen.append(all(t.answered for t in transfer.link.connection.peer.transfers))
        accepted(transfer)

    peer = face.peer(on_transfer=late, on_discharge=discharge)
    session = transacted(face, peer)
    producer = session.create_producer(Q)
    for _ in range(3):
        producer.send("x")
    session.commit()
    assert seen == [True]


@pytest.mark.parametrize("answer", [rejected("amqp:not-found"), released], ids=["rejected", "released"])
def test_a_send_that_is_refused_makes_commit_roll_back_and_say_what_was_sent(face: Face, answer: Any) -> None:
    """S86: and the next transaction works."""
    peer = face.peer(on_transfer=in_turn(accepted, answer, accepted), messages=numbered(1))
    session = transacted(face, peer)
    producer, consumer = session.create_producer(Q), session.create_consumer(Q)
    received = consumer.receive(60)
    producer.send("a")
    producer.send("b")
    with pytest.raises(TransactionRolledBackException) as caught:
        session.commit()
    assert fails(peer) == [True]
    assert list(caught.value.sent) == [transfer.message.id for transfer in peer.transfers[:2]]
    assert list(caught.value.acknowledged) == ([received.message_id] if received.message_id else [])
    assert isinstance(caught.value.__cause__, JMSException)
    producer.send("c")
    session.commit()
    assert fails(peer) == [True, False]


def test_a_send_that_is_refused_in_a_transaction_is_not_reported_twice(face: Face) -> None:
    """S64, S86: commit says it."""
    connection = face.connect(face.peer(on_transfer=rejected("amqp:not-found")))
    connection.exception_listener = heard = Told()
    session = connection.create_session(0)
    session.create_producer(Q).send("x")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    assert heard.calls == []


@pytest.mark.parametrize(
    "condition", ["amqp:transaction:rollback", "amqp:transaction:timeout", "amqp:illegal-state", "failed"]
)
def test_a_discharge_that_is_rejected_is_a_rollback_and_the_next_transaction_works(face: Face, condition: str) -> None:
    """S79, S129."""
    peer = face.peer(on_discharge=in_turn(rejected(condition, "no"), accepted))
    session = transacted(face, peer)
    producer = session.create_producer(Q)
    producer.send("a")
    with pytest.raises(TransactionRolledBackException, match="no") as caught:
        session.commit()
    assert caught.value.error_code == condition
    assert len(caught.value.sent) == 1
    session.rollback()
    producer.send("b")
    session.commit()
    assert peer.all("transfer")[1].state == (0x34, [txn(peer.discharges[-1])])


def test_a_discharge_rejected_without_a_condition_is_a_rollback_too(face: Face) -> None:
    """Catalogue 57: Qpid's testTransactionCommitFailWithEmptyRejectedDisposition."""
    peer = face.peer(on_discharge=in_turn(lambda transfer: transfer.answer(0x25), accepted))
    session = transacted(face, peer)
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    session.commit()


@pytest.mark.parametrize("answer", [settled, released])
def test_a_discharge_that_is_settled_without_an_outcome_is_in_doubt(face: Face, answer: Any) -> None:
    """S94: Artemis settles so a commit that took effect while another thread ended its session. It was said to be
    rolled back, so that its work was done twice, or never."""
    peer = face.peer(on_discharge=in_turn(answer, accepted))
    session = transacted(face, peer)
    session.create_producer(Q).send("x")
    with pytest.raises(TransactionRolledBackException, match="without an outcome") as caught:
        session.commit()
    assert caught.value.in_doubt
    assert len(caught.value.sent) == 1
    session.commit()


def test_a_discharge_that_is_never_answered_times_out_as_rolled_back(face: Face) -> None:
    """Catalogue 58, S94: nobody knows; the cause says it was a time-out."""
    peer = face.peer(on_discharge=unanswered)
    session = transacted(face, peer, "jms.requestTimeout=1500")
    session.create_producer(Q).send("x")
    with pytest.raises(TransactionRolledBackException) as caught:
        session.commit()
    assert isinstance(caught.value.__cause__, RequestTimedOutException)


def test_a_commit_whose_sends_get_no_credit_times_out(face: Face) -> None:
    """S66, S86: and they never leave, in this or another transaction."""
    peer = face.peer()
    session = transacted(face, peer, "jms.requestTimeout=1500")
    peer.script.credit = 0
    producer = session.create_producer(Q)
    producer.send("stuck")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    peer.grant(10)
    producer.send("next")
    session.commit()
    committed = txn(peer.discharges[-1])
    assert [t.message.body for t, f in sent(peer) if f.state[1][0] == committed] == ["next"]


def test_a_message_that_waited_for_credit_joins_the_transaction_it_was_sent_in(face: Face) -> None:
    """S77: with the state of the moment it leaves, which commit waits for."""
    peer = face.peer()
    session = transacted(face, peer)
    peer.script.credit = 0
    session.create_producer(Q).send("x")
    committing = face.background(session.commit)
    peer.grant(1)
    committing.result(60)
    (frame,) = peer.all("transfer")
    assert frame.state == (0x34, [txn(peer.discharges[0])])


def test_commit_in_a_session_without_transactions_is_an_illegal_state_s7(face: Face) -> None:
    session = face.session(face.peer())
    for call in (session.commit, session.rollback):
        with pytest.raises(IllegalStateException):
            call()


def test_commit_inside_a_listener_covers_the_message_in_hand(sync: Face) -> None:
    """Catalogue 59."""
    peer = sync.peer(messages=numbered(3))
    session = transacted(sync, peer)
    told = Told(lambda message: session.commit())
    session.create_consumer(Q).message_listener = told
    told.wait(3)
    sync.until(lambda: len(peer.discharges) == 3)
    assert [frame.state[1][0] for frame in peer.all("disposition")] == [txn(t) for t in peer.discharges]


# -- the coordinator is gone ------------------------------------------------------------------------------------


def test_after_the_coordinator_is_gone_nothing_reaches_the_broker_outside_the_transaction(face: Face) -> None:
    """S87: sends and receipts succeed here; commit raises."""
    peer = face.peer(messages=numbered(2))
    session = transacted(face, peer)
    producer, consumer = session.create_producer(Q), session.create_consumer(Q)
    producer.send("before")
    assert consumer.receive(60).text == "0"
    peer.wait_transfers(1)
    peer.wait_frames("disposition")
    peer.close_link(peer.coordinators[0], "amqp:transaction:timeout", "too slow")
    peer.wait(lambda: "x-detach" in peer.names(), "our detach of the coordinator")
    producer.send("after")
    assert consumer.receive(60).text == "1"
    with pytest.raises(TransactionRolledBackException) as caught:
        session.commit()
    assert len(caught.value.sent) == 2
    face.barrier(peer, session)
    assert [transfer.message.body for transfer in peer.transfers] == ["before"]
    joined, handed_back = peer.all("disposition")
    assert joined.fields["state"][0] == 0x34
    code, flags = handed_back.fields["state"]
    assert (code, [*flags, False][:2]) == (0x27, [True, False])  # modified, delivery failed: at the end, not before
    assert peer.discharges == []


@pytest.mark.parametrize("engine", ["python", "proton"])
@pytest.mark.parametrize("what", ["its link ended", "the broker settled it"])
def test_a_received_message_that_cannot_join_the_transaction_makes_the_commit_fail(
    face: Face, what: str, engine: str
) -> None:
    """S75, S79: the commit succeeded without the message, so the sends took effect and the message came again."""
    peer = face.peer(messages=numbered(1))
    session = transacted(face, peer, f"amqp.engine={engine}")
    producer, consumer = session.create_producer(Q), session.create_consumer(Q)
    face.until(lambda: consumer.stats.buffered == 1)
    if what == "the broker settled it":
        peer.do(lambda: peer.connections[0].write_raw(settles(0)))
        face.barrier(peer, session)
    else:  # the Detach frame is read between the hand-out of the message and its acknowledgement
        (receiver,) = _core(session).channel.provider._resources.receivers.values()
        receiver.closed = JMSException("the broker ended the link")
    assert consumer.receive(60).text == "0"
    producer.send("x")
    with pytest.raises(TransactionRolledBackException, match="could not join the transaction"):
        session.commit()
    assert fails(peer) == [True]


def _core(session: Any) -> Any:
    return getattr(session, "_target", session)._core


def test_rollback_after_the_coordinator_is_gone_hides_nothing(face: Face) -> None:
    """S87: it either works on, or says what is wrong; and so does the next commit."""
    peer = face.peer()
    session = transacted(face, peer)
    producer = session.create_producer(Q)
    peer.close_link(peer.coordinators[0], "amqp:transaction:timeout")
    peer.wait(lambda: "x-detach" in peer.names(), "our detach of the coordinator")
    try:
        session.rollback()
    except JMSException:
        return
    producer.send("x")
    try:
        session.commit()
    except TransactionRolledBackException:
        return
    assert [transfer.message.body for transfer in peer.transfers] == ["x"]
    assert fails(peer)[-1] is False


def test_the_session_works_on_after_its_coordinator_was_lost(face: Face) -> None:
    """S79, S87: commit said it, and the next transaction gets a new coordinator."""
    peer = face.peer()
    session = transacted(face, peer)
    producer = session.create_producer(Q)
    peer.close_link(peer.coordinators[0], "amqp:transaction:timeout")
    peer.wait(lambda: "x-detach" in peer.names(), "our detach of the coordinator")
    producer.send("lost")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    producer.send("next")
    session.commit()
    assert [transfer.message.body for transfer in peer.transfers] == ["next"]


@pytest.mark.parametrize("what", ["commit", "rollback"])
def test_a_coordinator_closed_instead_of_an_answer_ends_the_call(face: Face, what: str) -> None:
    """Catalogue 58: commit raises rolled-back, rollback does not hang."""

    def close(transfer: Transfer) -> None:
        transfer.link.close(Condition("amqp:transaction:rollback", "gone"))

    peer = face.peer(on_discharge=close)
    session = transacted(face, peer)
    session.create_producer(Q).send("x")
    if what == "commit":
        with pytest.raises(TransactionRolledBackException, match="gone"):
            session.commit()
    else:
        with suppress(JMSException):
            session.rollback()


def test_a_connection_dropped_on_discharge_is_a_rolled_back_commit(face: Face) -> None:
    """S94: the caller sends the batch again."""
    peer = face.peer(on_discharge=lambda transfer: transfer.link.connection.drop())
    session = transacted(face, peer)
    session.create_producer(Q).send("x")
    with pytest.raises(TransactionRolledBackException) as caught:
        session.commit()
    assert len(caught.value.sent) == 1
    assert isinstance(caught.value.__cause__, ConnectionLostException)


def test_a_connection_dropped_while_commit_waits_for_a_send_is_a_rolled_back_commit(face: Face) -> None:
    """S86, S128."""
    peer = face.peer(on_transfer=lambda transfer: transfer.link.connection.drop())
    session = transacted(face, peer)
    session.create_producer(Q).send("x")
    with pytest.raises((TransactionRolledBackException, ConnectionLostException)):
        session.commit()


# -- rollback ---------------------------------------------------------------------------------------------------


def interesting(peer: Peer, since: int) -> list[str]:
    """Name what matters to a rollback, in the order of the wire; a run of releases is one."""
    found = []
    for frame in peer.frames[since:]:
        if frame.name == "flow" and frame.link is not None and not frame.coordinator:
            found.append("drain" if frame["drain"] else "credit")
        elif frame.name == "disposition":
            found.append({0x26: "release", 0x34: "accept"}.get(frame.state[0], "other"))
        elif frame.name == "transfer" and frame.coordinator:
            found.append("declare" if b"\x53\x31" in frame.payload else "discharge")
    return [name for name, _ in groupby(found)]


def test_rollback_drains_discharges_releases_the_prefetched_and_opens_the_window_again(face: Face) -> None:
    """S83: in this order, or what comes again would come behind newer messages."""
    peer = face.peer(messages=numbered(5))
    session = transacted(face, peer)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    face.until(lambda: consumer.stats.buffered == 4)
    peer.wait_frames("disposition")
    since = len(peer.frames)
    session.rollback()
    peer.wait(lambda: "credit" in interesting(peer, since), "credit")
    assert interesting(peer, since) == ["drain", "discharge", "declare", "release", "credit"]
    assert fails(peer) == [True]
    ranges = [(f["first"], f["first"] if f["last"] is None else f["last"]) for f in peer.all("disposition")[1:]]
    assert [number for first, last in ranges for number in range(first, last + 1)] == [1, 2, 3, 4]
    assert peer.all("flow")[-1]["link-credit"] == 10


def test_rollback_gives_messages_again_in_the_order_of_the_broker(face: Face) -> None:
    """S80, S83: what the broker redelivers after the discharge is what comes next."""

    def discharge(transfer: Transfer) -> None:
        peer.messages.extend([text("0", delivery_count=1), *numbered(3)[1:]])
        accepted(transfer)

    peer = face.peer(messages=numbered(3), on_discharge=discharge)
    session = transacted(face, peer)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    face.until(lambda: consumer.stats.buffered == 2)
    session.rollback()
    again = [consumer.receive(60) for _ in range(3)]
    assert [(message.text, message.delivery_count) for message in again] == [("0", 2), ("1", 1), ("2", 1)]


def test_rollback_leaves_consumers_alone_that_took_no_part(face: Face) -> None:
    """S83."""
    peer = face.peer()
    session = transacted(face, peer)
    taking_part, idle = session.create_consumer(Q), session.create_consumer(Q)
    peer.wait_frames("flow", 2)
    peer.deliver(text("x"), consumer=0)
    peer.deliver(text("kept"), consumer=1)
    taking_part.receive(60)
    face.until(lambda: idle.stats.buffered == 1)
    session.rollback()
    assert idle.receive(60).text == "kept"
    assert not [f for f in peer.all("flow") if f["drain"] and f["handle"] == peer.all("attach")[1]["handle"]]


def test_a_failed_commit_hands_back_what_was_prefetched_too(face: Face) -> None:
    """S79, S80, S83: the inner rollback is a whole one."""
    peer = face.peer(messages=numbered(3), on_transfer=rejected("amqp:not-found"))
    session = transacted(face, peer)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    face.until(lambda: consumer.stats.buffered == 2)
    session.create_producer(Q).send("x")
    with pytest.raises(TransactionRolledBackException):
        session.commit()
    peer.wait(lambda: len(peer.all("disposition")) >= 2, "a release")
    assert {frame.state[0] for frame in peer.all("disposition")[1:]} == {0x26}


def test_a_drain_that_is_never_answered_does_not_stop_a_rollback(face: Face) -> None:
    """S83: the consumer is closed by its time-out, the transaction is rolled back."""
    peer = face.peer(messages=numbered(1), silent={"drain"})
    session = transacted(face, peer, "amqp.drainTimeout=100")
    session.create_consumer(Q).receive(60)
    session.rollback()
    assert fails(peer) == [True]


# -- close ------------------------------------------------------------------------------------------------------


def test_close_of_a_transacted_session_rolls_back_before_it_ends(face: Face) -> None:
    """S84: discharge(fail) and then End; a broker that lost the first would still roll back at the second."""
    peer = face.peer(messages=numbered(1))
    session = transacted(face, peer)
    session.create_producer(Q).send("x")
    session.create_consumer(Q).receive(60)
    session.close()
    peer.wait_frames("end")
    assert fails(peer) == [True]
    assert peer.names().index("end") > max(i for i, name in enumerate(peer.names()) if name == "x-transfer")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_consumer_closed_in_a_transaction_keeps_its_link_until_the_end_of_it(face: Face, end: str) -> None:
    """S84."""
    peer = face.peer(messages=numbered(1))
    session = transacted(face, peer)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    consumer.close()
    face.barrier(peer, session)
    assert peer.all("detach") == []
    {"commit": session.commit, "rollback": session.rollback}[end]()
    peer.wait_frames("detach")
    assert fails(peer) == [end == "rollback"]


def test_a_consumer_closed_after_the_commit_detaches_at_once(face: Face) -> None:
    """Catalogue 56."""
    peer = face.peer(messages=numbered(1))
    session = transacted(face, peer)
    consumer = session.create_consumer(Q)
    consumer.receive(60)
    session.commit()
    consumer.close()
    assert len(peer.wait_frames("detach")) == 1

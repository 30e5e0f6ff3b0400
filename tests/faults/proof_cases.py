"""The cases of the failover proof: what docs/failover.md promises when a connection is lost during one request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
from contract.brokers import Target
from contract.harness import nothing, take

from faults.proof_support import HALF_A_SEND, Moment, Proof, body, name_of
from pyjmsack import AckMode, TransactionRolledBackException

__all__ = ["CASES", "Case"]

AUTO, TRANSACTED = AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED

ONCE, TWICE, COMMITTED = "once", "at most twice", "committed"
ROLLED_BACK, IN_DOUBT, ACKS_UNDONE = "rolled back", "in doubt", "in doubt, receives undone"
"""What a cell may promise; docs/generate_proof.py says what each means."""


async def a_send(proof: Proof, promise: str) -> None:
    """S91, S106: it is repeated; Artemis stores a repetition once, Classic may store it twice."""
    session = await proof.session(AUTO)
    producer = await session.create_producer(proof.queue)
    await proof.lose(lambda: producer.send(body("a")), half=HALF_A_SEND)
    await producer.send("b")
    found = await proof.content(2)
    assert found == ["a", "b"] or (promise == TWICE and found == ["a", "a", "b"])


async def the_first_send_of_a_transaction(proof: Proof, promise: str) -> None:
    """S92, S93: it is repeated in a new transaction, and the commit succeeds."""
    session = await proof.session(TRANSACTED)
    producer = await session.create_producer(proof.queue)
    await proof.lose(lambda: producer.send_async(body("a")), half=HALF_A_SEND)
    await producer.send("b")
    await session.commit()
    assert await proof.content(2) == ["a", "b"]


async def a_later_send_of_a_transaction(proof: Proof, promise: str) -> None:
    """S92: sends appear to succeed, the commit raises, and nothing of it is there; the next transaction is clean."""
    session = await proof.session(TRANSACTED)
    producer = await session.create_producer(proof.queue)
    messages = [session.create_text_message(text) for text in ("a", body("b"), "c")]
    await producer.send_async(messages[0])
    await proof.lose(lambda: producer.send_async(messages[1]), half=HALF_A_SEND)
    await producer.send(messages[2])
    with pytest.raises(TransactionRolledBackException) as caught:
        await session.commit()
    assert not caught.value.in_doubt
    assert [*caught.value.sent] == [message.message_id for message in messages]
    await producer.send("d")
    await session.commit()
    assert await proof.content(1) == ["d"]


async def a_commit_of_sends(proof: Proof, promise: str) -> None:
    """S90, S94: it raises, with the ids; all of the transaction is there or nothing; the next one is clean."""
    session = await proof.session(TRANSACTED)
    producer = await session.create_producer(proof.queue)
    messages = [session.create_text_message(text) for text in ("a", "b")]
    for message in messages:
        await producer.send_async(message)
    with pytest.raises(TransactionRolledBackException) as caught:
        await proof.lose(session.commit)
    assert caught.value.in_doubt is (promise == IN_DOUBT)
    assert [*caught.value.sent] == [message.message_id for message in messages]
    await producer.send("c")
    await session.commit()
    expected = ["a", "b", "c"] if proof.moment.done else ["c"]
    assert await proof.content(len(expected)) == expected


async def an_automatic_acknowledgement(proof: Proof, promise: str) -> None:
    """S95, S101, S105: the message is handed out once, whether its acknowledgement arrived or not."""
    session = await proof.session(AUTO)
    consumer = await proof.consumer(session, "a", "b")
    first = await proof.lose_unanswered(lambda: consumer.receive(timeout=60))
    assert first is not None
    assert [name_of(first), *map(name_of, await take(consumer, 1))] == ["a", "b"]
    came_again = proof.moment in (Moment.HALF, Moment.RECOVERY)
    assert bool(consumer.stats.duplicates_skipped) is came_again
    assert await proof.content(0) == []


def an_acknowledgement(mode: AckMode) -> Callable[[Proof, str], Awaitable[None]]:
    """Return the case of this mode."""

    async def scenario(proof: Proof, promise: str) -> None:
        """S95, S96, S105: late or lost, it is harmless, and the message is not handed out again."""
        session = await proof.session(mode)
        consumer = await proof.consumer(session, "a", "b")
        (message,) = await take(consumer, 1)

        async def acknowledge() -> None:
            message.acknowledge()

        await proof.lose_unanswered(acknowledge)
        assert message.text == "a"
        (other,) = await take(consumer, 1)
        assert other.text == "b"
        other.acknowledge()
        came_again = proof.moment is not Moment.STORED
        assert bool(consumer.stats.duplicates_skipped) is came_again
        assert await proof.content(0) == []

    return scenario


async def a_receipt_of_a_transaction(proof: Proof, promise: str) -> None:
    """S97: receiving goes on, the commit raises with the ids, and everything comes again in the next transaction."""
    session = await proof.session(TRANSACTED)
    consumer = await proof.consumer(session, "a", "b", "c")
    received = await take(consumer, 1)
    second = await proof.lose_unanswered(lambda: consumer.receive(timeout=60))
    assert second is not None
    received.append(second)
    with pytest.raises(TransactionRolledBackException) as caught:
        await session.commit()
    assert not caught.value.in_doubt
    assert [*caught.value.acknowledged] == [message.message_id for message in received]
    assert sorted(map(name_of, await take(consumer, 3))) == ["a", "b", "c"]
    await session.commit()
    assert await proof.content(0) == []


async def a_commit_of_receipts(proof: Proof, promise: str) -> None:
    """S88, S90, S98: a transaction that receives and sends is not torn; separate receives are undone."""
    session = await proof.session(TRANSACTED)
    consumer = await proof.consumer(session, "a", "b")
    producer = await session.create_producer(proof.onwards)
    received = await take(consumer, 2)
    forwarded = [session.create_text_message(message.text) for message in received]
    for message in forwarded:
        await producer.send_async(message)
    with pytest.raises(TransactionRolledBackException) as caught:
        await proof.lose(session.commit)
    assert caught.value.in_doubt is (promise != ROLLED_BACK)
    assert [*caught.value.sent] == [message.message_id for message in forwarded]
    assert [*caught.value.acknowledged] == [message.message_id for message in received]
    if proof.moment.done and promise != ACKS_UNDONE:
        await nothing(consumer)
    else:
        assert sorted(map(name_of, await take(consumer, 2))) == ["a", "b"]
    await session.commit()
    assert await proof.content(0) == []
    assert await proof.content(2 * proof.moment.done, proof.onwards) == ["a", "b"] * proof.moment.done


def _of_a_send(moment: Moment, target: Target) -> str:
    return TWICE if moment.done and target.broker != "artemis" else ONCE


def _of_a_commit(moment: Moment, target: Target) -> str:
    return ROLLED_BACK if moment is Moment.BEFORE else IN_DOUBT


def _of_receipts(moment: Moment, target: Target) -> str:
    separate = moment.done and str(target) == "stomp-artemis"
    return ACKS_UNDONE if separate else _of_a_commit(moment, target)


class Case(NamedTuple):
    """A request during which the connection is lost."""

    number: str
    """Which of the six cases it is: outside of a transaction, in one, its commit; of producers, of consumers."""
    title: str
    scenario: Callable[[Proof, str], Awaitable[None]]
    promise: Callable[[Moment, Target], str]


def _always(promise: str) -> Callable[[Moment, Target], str]:
    return lambda moment, target: promise


CASES = {
    "send": Case("1", "a send", a_send, _of_a_send),
    "first-send": Case("2a", "the first send of a transaction", the_first_send_of_a_transaction, _always(COMMITTED)),
    "later-send": Case("2b", "a later send of a transaction", a_later_send_of_a_transaction, _always(ROLLED_BACK)),
    "commit-sends": Case("3", "a commit of sends", a_commit_of_sends, _of_a_commit),
    "ack-auto": Case("4a", "an automatic acknowledgement", an_automatic_acknowledgement, _always(ONCE)),
    "ack-client": Case(
        "4b", "an acknowledgement in CLIENT mode", an_acknowledgement(AckMode.CLIENT_ACKNOWLEDGE), _always(ONCE)
    ),
    "ack-individual": Case(
        "4c", "an acknowledgement in INDIVIDUAL mode", an_acknowledgement(AckMode.INDIVIDUAL_ACKNOWLEDGE), _always(ONCE)
    ),
    "receipt": Case("5", "a receive in a transaction", a_receipt_of_a_transaction, _always(ROLLED_BACK)),
    "commit-receipts": Case("6", "a commit of receives and sends", a_commit_of_receipts, _of_receipts),
}

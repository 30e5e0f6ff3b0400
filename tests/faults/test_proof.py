"""The failover proof: what docs/failover.md promises, wherever a connection is lost.

``docs/generate_proof.py`` writes ``docs/failover-proof.md`` from a run of this module.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
from contract.brokers import TARGETS, Embedded, Target
from contract.faces import Face
from contract.harness import Jms, nothing, take, texts
from proof_support import HALF_A_SEND, Moment, Proof, body, name_of

from pyjmsack import AckMode, TransactionRolledBackException

pytestmark = pytest.mark.timeout(60)

AUTO, TRANSACTED = AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED

ONCE = "once"
TWICE = "at most twice"
COMMITTED = "committed"
ROLLED_BACK = "rolled back"
IN_DOUBT = "in doubt"
DONE_AGAIN = "in doubt, receipts undone"


async def a_send(proof: Proof) -> str:
    """S91, S106: it is repeated; Artemis stores a repetition once, Classic may store it twice."""
    session = await proof.session(AUTO)
    producer = await session.create_producer(proof.queue)
    await proof.lose(lambda: producer.send(body("a")), half=HALF_A_SEND)
    await producer.send("b")
    found = await proof.content(2)
    doubled = not proof.dedupes and proof.moment in (Moment.STORED, Moment.RECOVERY)
    assert found in ([["a", "b"], ["a", "a", "b"]] if doubled else [["a", "b"]])
    return TWICE if doubled else ONCE


async def the_first_send_of_a_transaction(proof: Proof) -> str:
    """S92, S93: it is repeated in a new transaction, and the commit succeeds."""
    session = await proof.session(TRANSACTED)
    producer = await session.create_producer(proof.queue)
    await proof.lose(lambda: producer.send_async(body("a")), half=HALF_A_SEND)
    await producer.send("b")
    await session.commit()
    assert await proof.content(2) == ["a", "b"]
    return COMMITTED


async def a_later_send_of_a_transaction(proof: Proof) -> str:
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
    return ROLLED_BACK


async def a_commit_of_sends(proof: Proof) -> str:
    """S90, S94: it raises, with the ids; all of the transaction is there or nothing; the next one is clean."""
    session = await proof.session(TRANSACTED)
    producer = await session.create_producer(proof.queue)
    messages = [session.create_text_message(text) for text in ("a", "b")]
    for message in messages:
        await producer.send_async(message)
    with pytest.raises(TransactionRolledBackException) as caught:
        await proof.lose(session.commit)
    assert caught.value.in_doubt is (proof.moment is not Moment.BEFORE)
    assert [*caught.value.sent] == [message.message_id for message in messages]
    await producer.send("c")
    await session.commit()
    expected = ["a", "b", "c"] if proof.moment in (Moment.STORED, Moment.RECOVERY) else ["c"]
    assert await proof.content(len(expected)) == expected
    return IN_DOUBT if caught.value.in_doubt else ROLLED_BACK


async def an_automatic_acknowledgement(proof: Proof) -> str:
    """S95, S101, S105: the message is handed out once, whether its acknowledgement arrived or not."""
    session = await proof.session(AUTO)
    consumer = await proof.consumer(session, "a", "b")
    first = await proof.lose_unanswered(lambda: consumer.receive(timeout=10))
    assert first is not None
    assert [name_of(first), *map(name_of, await take(consumer, 1))] == ["a", "b"]
    skipped = consumer.stats.duplicates_skipped
    assert bool(skipped) is (proof.moment in (Moment.HALF, Moment.RECOVERY))
    assert await proof.content(0) == []
    return ONCE


def an_acknowledgement(mode: AckMode) -> Callable[[Proof], Awaitable[str]]:
    """Return the case of this mode."""

    async def scenario(proof: Proof) -> str:
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
        assert bool(consumer.stats.duplicates_skipped) is (proof.moment is not Moment.STORED)
        assert await proof.content(0) == []
        return ONCE

    return scenario


async def a_receipt_of_a_transaction(proof: Proof) -> str:
    """S97: receiving goes on, the commit raises with the ids, and everything comes again in the next transaction."""
    session = await proof.session(TRANSACTED)
    consumer = await proof.consumer(session, "a", "b", "c")
    received = await take(consumer, 1)
    second = await proof.lose_unanswered(lambda: consumer.receive(timeout=10))
    assert second is not None
    received.append(second)
    with pytest.raises(TransactionRolledBackException) as caught:
        await session.commit()
    assert not caught.value.in_doubt
    assert [*caught.value.acknowledged] == [message.message_id for message in received]
    assert sorted(map(name_of, await take(consumer, 3))) == ["a", "b", "c"]
    await session.commit()
    assert await proof.content(0) == []
    return ROLLED_BACK


async def a_commit_of_receipts(proof: Proof) -> str:
    """S88, S90, S98: what is received and sent on is not torn; where receipts are not part of it they are undone."""
    session = await proof.session(TRANSACTED)
    consumer = await proof.consumer(session, "a", "b")
    producer = await session.create_producer(proof.onwards)
    received = await take(consumer, 2)
    forwarded = [session.create_text_message(message.text) for message in received]
    for message in forwarded:
        await producer.send_async(message)
    with pytest.raises(TransactionRolledBackException) as caught:
        await proof.lose(session.commit)
    assert caught.value.in_doubt is (proof.moment is not Moment.BEFORE)
    assert [*caught.value.sent] == [message.message_id for message in forwarded]
    assert [*caught.value.acknowledged] == [message.message_id for message in received]
    committed = proof.moment in (Moment.STORED, Moment.RECOVERY)
    if committed and proof.receipts_join:
        await nothing(consumer)
    else:
        assert sorted(map(name_of, await take(consumer, 2))) == ["a", "b"]
    await session.commit()
    assert await proof.content(0) == []
    assert await proof.content(2 * committed, proof.onwards) == ["a", "b"] * committed
    if not caught.value.in_doubt:
        return ROLLED_BACK
    return IN_DOUBT if proof.receipts_join else DONE_AGAIN


class Case(NamedTuple):
    """One request during which the connection is lost."""

    title: str
    number: int
    """Of the case in docs/failover.md."""
    scenario: Callable[[Proof], Awaitable[str]]


CASES = {
    "send": Case("a send", 1, a_send),
    "first-send": Case("the first send of a transaction", 2, the_first_send_of_a_transaction),
    "later-send": Case("a later send of a transaction", 2, a_later_send_of_a_transaction),
    "commit-sends": Case("a commit of sends", 3, a_commit_of_sends),
    "ack-auto": Case("an automatic acknowledgement", 4, an_automatic_acknowledgement),
    "ack-client": Case("an acknowledgement, mode CLIENT", 4, an_acknowledgement(AckMode.CLIENT_ACKNOWLEDGE)),
    "ack-individual": Case(
        "an acknowledgement, mode INDIVIDUAL", 4, an_acknowledgement(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    ),
    "receipt": Case("a receipt of a transaction", 5, a_receipt_of_a_transaction),
    "commit-receipts": Case("a commit of receipts and sends", 6, a_commit_of_receipts),
}


@pytest.fixture(params=TARGETS, ids=str)
def target(request: pytest.FixtureRequest) -> Target:
    """The protocol and the broker."""
    assert isinstance(request.param, Target)
    return request.param


@pytest.fixture
def jms(face: Face, target: Target, brokers: Callable[[str], Embedded], queue_name: str, no_leaks: None) -> Jms:
    """What a cell works with: the broker itself, not by way of the wire."""
    return Jms(face, getattr(brokers(target.broker), f"{target.protocol}_url"), queue_name, target)


@pytest.mark.parametrize("moment", Moment, ids=lambda moment: moment.name.lower())
@pytest.mark.parametrize("case", CASES)
async def test_what_is_promised_holds_wherever_the_connection_is_lost(
    jms: Jms, case: str, moment: Moment, record_property: Callable[[str, object], None]
) -> None:
    """S90-S101, S105, S106: each case of docs/failover.md."""
    record_property("outcome", await CASES[case].scenario(Proof(jms, moment)))


async def test_a_message_that_was_processed_is_known_again_whatever_its_type(jms: Jms) -> None:
    """S105: brokers may encode it anew when they deliver it again."""
    proof = Proof(jms, Moment.BEFORE)
    session = await proof.session(AckMode.CLIENT_ACKNOWLEDGE)
    producer = await session.create_producer(proof.queue)
    consumer = await session.create_consumer(proof.queue)
    for content in ("", "short", "long" * 100, b"bytes", b"bytes" * 100, {"key": 1, "other": "x" * 300}):
        await producer.send(content)
    stream = session.create_stream_message()
    stream.write_int(7)
    stream.write_string("seven")
    await producer.send(stream)
    await producer.send(session.create_object_message([1, "two"]))
    received = await take(consumer, 8)

    async def acknowledge() -> None:
        received[-1].acknowledge()

    await proof.lose_unanswered(acknowledge)
    await producer.send("new")
    assert texts(await take(consumer, 1)) == ["new"]
    assert consumer.stats.duplicates_skipped == 8

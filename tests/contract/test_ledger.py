"""What a ledger says of real messages: every send and delivery once, with its outcome; docs/ledger.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from polling import eventually

from contract.brokers import not_on
from contract.harness import PATIENCE, Jms, take, texts
from pyjmsack import AckMode, InvalidDestinationException, JMSException, aio
from pyjmsack.ledger import read_ledgers

Rows = list[dict[str, Any]]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Where the ledger is."""
    return tmp_path / "ledger"


def rows(ledger: Path, table: str, order: str) -> Rows:
    """Return the rows of one table."""
    found: Rows = read_ledgers([ledger]).table(table).to_pylist()
    return sorted(found, key=lambda row: row[order])


async def sent(jms: Jms, ledger: Path, *bodies: str) -> list[str]:
    """Send by a connection with a ledger; return the message ids."""
    ids = []
    async with jms.factory(ledger=ledger).create_connection() as connection, connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        for body in bodies:
            message = jms.text(session, body)
            await producer.send(message)
            ids.append(str(message.message_id))
    return ids


async def consuming(jms: Jms, ledger: Path, mode: int, **options: Any) -> tuple[aio.Session, aio.MessageConsumer]:
    session = await (await jms.connection(ledger=ledger, **options)).create_session(mode)
    return session, await session.create_consumer(jms.queue)


async def test_a_confirmed_send_has_its_id_number_and_times(jms: Jms, ledger: Path) -> None:
    ids = await sent(jms, ledger, "a", "b")
    found = rows(ledger, "sends", "seq")
    assert [row["message_id"] for row in found] == ids
    assert [row["seq"] for row in found] == [1, 2]
    assert {row["send_outcome"] for row in found} == {"confirmed"}
    assert all(row["t_send"] <= row["t_confirm"] for row in found)
    assert {row["destination"] for row in found} == {f"queue://{jms.queue.name}"}
    assert all(row["protocol"].upper().startswith(jms.target.protocol.upper()) for row in found)


@pytest.mark.parametrize("mode", [mode for mode in AckMode if mode is not AckMode.SESSION_TRANSACTED])
async def test_each_delivery_has_one_row_with_the_id_of_its_send(jms: Jms, ledger: Path, mode: AckMode) -> None:
    """S16, S25, S28, S36: acknowledged by each mode in its own way."""
    ids = await sent(jms, ledger, "a", "b", "c")
    _, consumer = await consuming(jms, ledger, mode)
    for message in await take(consumer, 3):
        message.acknowledge()
    await jms.close()
    found = rows(ledger, "receives", "ordinal")
    assert [row["message_id"] for row in found] == ids
    assert [row["ordinal"] for row in found] == [1, 2, 3]
    assert {row["ack_outcome"] for row in found} == {"presettled" if mode.presettled else "accepted"}
    assert {row["ack_mode"] for row in found} == {mode.value}
    assert all(row["t_recv"] <= row["t_ack"] and not row["redelivered"] for row in found)


async def test_what_is_acknowledged_together_is_in_the_ledger_too(jms: Jms, ledger: Path) -> None:
    """S40, S43: the batch of optimizeAcknowledge that a close sends."""
    await sent(jms, ledger, "a", "b", "c")
    options = {"jms.optimizeAcknowledge": True, "jms.optimizeAcknowledgeTimeOut": 0}
    _, consumer = await consuming(jms, ledger, AckMode.AUTO_ACKNOWLEDGE, options=options)
    await take(consumer, 3)
    assert not rows(ledger, "receives", "ordinal"), "nothing is acknowledged yet"
    await jms.close()
    assert [row["ack_outcome"] for row in rows(ledger, "receives", "ordinal")] == ["accepted"] * 3


async def test_a_listener_s_messages_are_in_the_ledger(jms: Jms, ledger: Path) -> None:
    """S17."""
    await sent(jms, ledger, "a", "b")
    _, consumer = await consuming(jms, ledger, AckMode.AUTO_ACKNOWLEDGE)
    consumer.message_listener = lambda message: None
    await eventually(lambda: consumer.stats.acknowledged == 2)
    await jms.close()
    assert [row["ack_outcome"] for row in rows(ledger, "receives", "ordinal")] == ["accepted"] * 2


async def test_an_outcome_of_the_caller_s_choice_is_recorded(jms: Jms, ledger: Path) -> None:
    """S34: rejected; and what nobody settled goes back (S30)."""
    await sent(jms, ledger, "a", "b")
    _, consumer = await consuming(jms, ledger, AckMode.INDIVIDUAL_ACKNOWLEDGE)
    first, _ = await take(consumer, 2)
    first.reject()
    await jms.close()
    assert [row["ack_outcome"] for row in rows(ledger, "receives", "ordinal")] == ["rejected", "modified_failed"]
    await jms.left("b")


async def test_a_recovered_message_has_a_row_for_each_delivery(jms: Jms, ledger: Path) -> None:
    """S32."""
    [first] = await sent(jms, ledger, "a")
    session, consumer = await consuming(jms, ledger, AckMode.CLIENT_ACKNOWLEDGE)
    await take(consumer, 1)
    await session.recover()
    await take(consumer, 1)
    await session.acknowledge()
    await jms.close()
    found = rows(ledger, "receives", "ordinal")
    assert [(row["message_id"], row["ack_outcome"], row["redelivered"]) for row in found] == [
        (first, "recovered", False),
        (first, "accepted", True),
    ]


async def test_a_transaction_s_rows_come_with_its_outcome(jms: Jms, ledger: Path) -> None:
    """S75, S80: nothing before the commit; what was rolled back says so."""
    session = await (await jms.connection(ledger=ledger)).create_session(AckMode.SESSION_TRANSACTED)
    producer = await session.create_producer(jms.queue)
    await producer.send("undone")
    await session.rollback()
    await producer.send("done")
    assert [row["send_outcome"] for row in rows(ledger, "sends", "seq")] == ["rolled_back"]
    await session.commit()
    consumer = await session.create_consumer(jms.queue)
    for end in (session.rollback, session.commit):
        assert texts(await take(consumer, 1)) == ["done"]
        await end()
    await jms.close()
    assert [row["send_outcome"] for row in rows(ledger, "sends", "seq")] == ["rolled_back", "confirmed"]
    found = rows(ledger, "receives", "ordinal")
    assert [row["ack_outcome"] for row in found] == ["rolled_back", "accepted"]
    assert found[0]["message_id"] == found[1]["message_id"] == rows(ledger, "sends", "seq")[1]["message_id"]
    assert (
        len({row["transaction"] for row in found} | {row["transaction"] for row in rows(ledger, "sends", "seq")}) == 4
    )


async def test_what_the_library_settles_itself_is_no_delivery(jms: Jms, ledger: Path) -> None:
    """S112, S114: over the limit of redeliveries it goes to the dead-letter queue, and the ledger knows."""
    [first] = await sent(jms, ledger, "a")
    options = {"jms.redeliveryPolicy.maxRedeliveries": 0, "jms.redeliveryPolicy.outcome": "REJECTED"}
    _, consumer = await consuming(jms, ledger, AckMode.INDIVIDUAL_ACKNOWLEDGE, options=options)
    [message] = await take(consumer, 1)
    message.modify()
    assert await consumer.receive(timeout=0.5) is None
    await jms.close()
    found = rows(ledger, "receives", "t_recv")
    assert [(row["message_id"], row["ordinal"], row["ack_outcome"]) for row in found] == [
        (first, 1, "modified_failed"),
        (first, 0, "refused"),
    ]


async def test_a_browser_leaves_no_row(jms: Jms, ledger: Path) -> None:
    if "browser" not in (connection := await jms.connection(ledger=ledger)).capabilities:
        pytest.skip("Artemis has no browsers over STOMP")
    await jms.send("a")
    session = await connection.create_session()
    async with session.create_browser(jms.queue) as browser:
        assert [message.body async for message in browser] == ["a"]
    await jms.left("a")
    assert not rows(ledger, "receives", "ordinal")


async def test_a_connection_that_ends_well_says_so(jms: Jms, ledger: Path) -> None:
    await sent(jms, ledger)
    found = rows(ledger, "events", "time")
    assert [row["kind"] for row in found] == ["established", "closed"]
    assert {row["broker"] for row in found} == {jms.url}
    assert len({row["connection_id"] for row in found}) == 1
    assert len(read_ledgers([ledger]).raw["events"]) == 0, "every part is Parquet"


async def test_a_lost_connection_is_an_event_and_its_sends_are_unknown(jms: Jms, ledger: Path) -> None:
    """S128: the answer to the send is held back, then the line is cut."""
    wire = jms.wire()
    connection = await jms.connection(wire.url, ledger=ledger)
    lost: list[JMSException] = []
    connection.exception_listener = lost.append
    session = await connection.create_session()
    producer = await session.create_producer(jms.queue)
    wire.swallow_replies()
    sending = producer.send_async("a")
    wire.cut()
    with pytest.raises(JMSException):
        await sending
    await eventually(lambda: bool(lost))
    await jms.close()
    [row] = rows(ledger, "sends", "seq")
    assert row["send_outcome"] == "unknown"
    kinds = [row["kind"] for row in rows(ledger, "events", "time")]
    assert kinds == ["established", "failure", "closed"]


@not_on("classic", "13: no management by messages")
@not_on("stomp", "STOMP: its consumers are closed with their connection")
async def test_what_the_broker_closes_is_an_event(jms: Jms, ledger: Path) -> None:
    """S109."""
    connection = await jms.connection(ledger=ledger)
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    await jms.manage("destroyQueue", jms.queue.name, True)
    with pytest.raises(InvalidDestinationException):
        await consumer.receive(PATIENCE)
    await jms.close()
    found = [(row["kind"], row["detail"]) for row in rows(ledger, "events", "time")]
    assert found == [("established", ""), ("consumer_closed", "InvalidDestinationException"), ("closed", "")]


async def test_a_ledger_that_cannot_be_is_refused_before_connecting(jms: Jms, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JMSException, match=r"ledger .*file"):
        await jms.factory(ledger=tmp_path / "file").create_connection()

"""The traps of docs/broker-facts.md that double messages, miscount them or end the talk: none can be sprung.

Each docstring begins with the trap's number; the table of traps in that page names these tests.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from proton import Message as ProtonMessage
from proton import timestamp
from shared_brokers import Served

from contract.brokers import not_on, only_on
from contract.harness import Jms, counts, nothing, take, texts
from contract.traps_support import line, proton_send, raw_stomp, stomp_frame
from pyjmsack import (
    AckMode,
    ConnectionLostException,
    IllegalStateException,
    InvalidURLException,
    JMSException,
    MapMessage,
    MessageFormatException,
    Queue,
    TextMessage,
    Topic,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)

Brokers = Callable[[str], Served]
TRANSACTED, CLIENT, INDIVIDUAL = (
    AckMode.SESSION_TRANSACTED,
    AckMode.CLIENT_ACKNOWLEDGE,
    AckMode.INDIVIDUAL_ACKNOWLEDGE,
)

# -- duplicates -----------------------------------------------------------------------------------------------------


async def test_a_send_that_is_repeated_after_a_lost_connection_is_handed_out_once(jms: Jms) -> None:
    """Trap 15, S91, S105, S106: the broker had it, and its answer was lost. Artemis drops the repetition by its id;
    Classic stores both, and the consumer of a failover URL skips the second."""
    async with line(jms, failover=True) as wire, wire.connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        wire.breaks_at_the_next_answer()
        sending = asyncio.ensure_future(producer.send("a"))
        await wire.mends()
        await sending
        consumer = await session.create_consumer(jms.queue)
        assert texts(await take(consumer, 1)) == ["a"]
        await nothing(consumer)


async def test_a_send_without_an_answer_fails_and_is_not_repeated_unless_asked(jms: Jms) -> None:
    """Trap 15, S128: without ``failover:`` the caller decides."""
    async with line(jms, failover=False) as wire, wire.connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        wire.breaks_at_the_next_answer()
        with pytest.raises(ConnectionLostException):
            await producer.send("a")
    await jms.left("a")


@pytest.mark.parametrize("failover", [False, True], ids=["plain", "failover"])
async def test_a_commit_without_an_answer_is_in_doubt_and_says_what_it_was_about(jms: Jms, failover: bool) -> None:
    """Trap 16, trap 18, S94, S97: nobody can tell; here it happened. It is not done again in silence, and what is sent
    next is in a transaction that the broker knows."""
    async with line(jms, failover=failover) as wire, wire.connection.create_session(TRANSACTED) as session:
        producer = await session.create_producer(jms.queue)
        message = session.create_text_message("a")
        await producer.send_async(message)
        wire.breaks_at_the_next_answer()
        committing = asyncio.ensure_future(session.commit())
        if failover:
            await wire.mends()
        with pytest.raises(TransactionRolledBackException, match="in doubt") as raised:
            await committing
        assert raised.value.in_doubt
        assert raised.value.sent == (message.message_id,)
        if failover:
            await producer.send("b")
            await session.commit()
    await jms.left("a", *("b" * failover))


@only_on("stomp", "over AMQP a message without an id is not compared: it may be repeated on purpose")
async def test_a_message_of_another_stomp_client_is_not_handed_out_again_after_it_was_processed(jms: Jms) -> None:
    """S95, S105: it has no id of its sender's, but one of the broker's. Two that are alike are two."""
    where = jms.queue.name if jms.target.broker == "artemis" else f"/queue/{jms.queue.name}"
    send = stomp_frame("SEND", "a", destination=where, persistent="true", **{"destination-type": "ANYCAST"})
    await raw_stomp(jms.url, send, send, stomp_frame("DISCONNECT", receipt="1"))
    async with line(jms, failover=True) as wire, wire.connection.create_session(INDIVIDUAL) as session:
        consumer = await session.create_consumer(jms.queue)
        first, _ = await take(consumer, 2)
        wire.breaks()
        await wire.mends(first.acknowledge)
        assert texts(await take(consumer, 1)) == ["a"]
        await nothing(consumer)
        assert consumer.stats.duplicates_skipped == 1


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL, TRANSACTED])
async def test_what_is_acknowledged_after_its_consumer_is_closed_does_not_come_again(jms: Jms, mode: AckMode) -> None:
    """Trap 17, trap 19, S29, S84: Classic confirms an ACK of an ended STOMP subscription, and forgets it; in AMQP
    nobody answers an accept at all."""
    await jms.send("a", "b")
    session = await jms.session(mode)
    consumer = await session.create_consumer(jms.queue)
    found = await take(consumer, 2)
    await consumer.close()
    for message in found:
        message.acknowledge()
    if mode is TRANSACTED:
        await session.commit()
    await jms.left()


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
async def test_what_can_not_be_acknowledged_any_more_says_so(jms: Jms, mode: AckMode) -> None:
    """Trap 19, S29: the broker would say nothing."""
    await jms.send("a")
    session = await jms.session(mode)
    (message,) = await take(await session.create_consumer(jms.queue), 1)
    await session.close()
    with pytest.raises(IllegalStateException):
        message.acknowledge()
    await jms.left("a")


# -- counts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL, TRANSACTED])
async def test_a_poisonous_message_does_not_loop_whatever_the_broker_counts(jms: Jms, mode: AckMode) -> None:
    """Trap 20, S111, S113: Classic has no limit, and Artemis does not count what ends with a subscription."""
    await jms.send("a")
    limit = {"jms.redeliveryPolicy.maxRedeliveries": 2, "jms.redeliveryPolicy.outcome": "REJECTED"}
    session = await jms.session(mode, options=limit)
    consumer = await session.create_consumer(jms.queue)
    for count in (1, 2, 3):
        (message,) = await take(consumer, 1)
        assert message.delivery_count == count
        if mode is INDIVIDUAL:
            message.modify()
        else:
            await (session.rollback() if mode is TRANSACTED else session.recover())
    while not consumer.stats.poisoned:  # Artemis may say that it has nothing before it has what was given back
        assert await consumer.receive(timeout=0) is None
    await jms.left()
    await jms.dead("a")


@only_on("amqp-artemis", "Classic counts for the consumer, and STOMP for nobody")
async def test_a_rollback_counts_once(jms: Jms) -> None:
    """Trap 21, S80, S117: the broker counts by itself, so nothing is said to it about that."""
    await jms.send("a")
    session = await jms.session(TRANSACTED)
    consumer = await session.create_consumer(jms.queue)
    for count in (1, 2, 3):
        assert counts(await take(consumer, 1)) == [count]
        await session.rollback()
    assert counts(await jms.left("a")) == [4]


FOREIGN = {"moment": timestamp(1_600_000_000_000), "id": uuid.uuid4()}


@only_on("artemis", "it is about Artemis")
async def test_no_property_is_written_that_kills_stomp_subscribers(jms: Jms, brokers: Brokers) -> None:
    """Trap 22, S161: an AMQP timestamp or uuid as a property ends every STOMP subscription that meets it. Nor is one
    forwarded that somebody else wrote."""
    amqp, stomp = brokers("artemis").amqp_url, brokers("artemis").stomp_url
    foreign = f"{jms.queue.name}-foreign"
    session = await jms.session()
    for value in (uuid.uuid4(), datetime.now(timezone.utc)):
        with pytest.raises(MessageFormatException, match="expected"):
            session.create_text_message("a").properties["p"] = value
    receiving = await jms.session(url=amqp)
    consumer = await receiving.create_consumer(Queue(foreign))
    await proton_send(amqp, foreign, ProtonMessage("a", properties=FOREIGN))
    (message,) = await take(consumer, 1)
    await (await receiving.create_producer(jms.queue)).send(message)
    (received,) = await take(await (await jms.session(url=stomp)).create_consumer(jms.queue), 1)
    assert received.properties["moment"] in ("1600000000000", 1600000000000)
    assert received.properties["id"] == str(FOREIGN["id"])


@only_on("artemis", "Classic knows no such mark")
async def test_a_message_that_carried_a_duplicate_id_can_be_forwarded_to_its_own_queue(jms: Jms) -> None:
    """S106: a copy of the mark makes the broker drop the message, and say that it took it."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("a")
    message.properties.update({"_AMQ_DUPL_ID": f"{jms.queue.name}-1", "number": 1})
    await producer.send(message)
    consumer = await session.create_consumer(jms.queue)
    (received,) = await take(consumer, 1)
    assert dict(received.properties) == {"number": 1}
    await producer.send(received)
    assert texts(await take(consumer, 1)) == ["a"]
    await jms.left()


# -- interoperability and liveness ----------------------------------------------------------------------------------


@only_on("stomp-classic", "Artemis converts")
async def test_what_amqp_clients_sent_is_read_as_what_it_is(jms: Jms, brokers: Brokers) -> None:
    """Trap 23: Classic passes it on as it came."""
    amqp = brokers(jms.target.broker).amqp_url
    async with jms.factory(amqp).create_connection() as connection, connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        producer.disable_message_id = True  # the ACK of one with an id ends the connection there (5.18.3)
        text = TextMessage("t\u00e4xt")
        text.properties.update({"number": 7, "flag": True})
        text.correlation_id = "c"
        for message in (text, b"bytes", {"key": 1.5}):
            await producer.send(message)
    session = await jms.session()
    found = await take(await session.create_consumer(jms.queue), 3)
    assert texts(found) == ["t\u00e4xt", b"bytes", {"key": 1.5}]
    assert isinstance(found[2], MapMessage)
    assert (dict(found[0].properties), found[0].correlation_id) == ({"number": 7, "flag": True}, "c")
    await jms.left()


@only_on("stomp", "the trap is STOMP's")
async def test_a_client_with_nothing_to_say_keeps_its_connection(jms: Jms) -> None:
    """Trap 24: it beats. Seen beside a client that asks for the same and is silent, until the broker drops that."""
    connection = await jms.connection(options={"stomp.heartBeat": 500})
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    beats = str(connection.metadata.properties["heart-beat"]).split(",")
    assert all(int(beat) > 0 for beat in beats)
    assert "CONNECTED" in await raw_stomp(jms.url, heart_beat="500,500")
    await jms.send("a")
    assert texts(await take(consumer, 1)) == ["a"]


@only_on("stomp", "the trap is STOMP's")
async def test_heart_beats_cannot_be_turned_off(jms: Jms) -> None:
    """Trap 24: Artemis drops a client after a minute that offers none."""
    with pytest.raises(InvalidURLException, match=r"stomp\.heartBeat"):
        jms.factory(options={"stomp.heartBeat": 0})
    connection = await jms.connection()
    offered, wanted = str(connection.metadata.properties["heart-beat"]).split(",")
    assert int(offered) > 0
    assert 0 < int(wanted) <= 30_000


@only_on("stomp", "the trap is STOMP's")
@pytest.mark.parametrize(
    "how",
    [{"priority": 10}, {"priority": -1}, {"priority": "high"}, {"time_to_live": -1}, {"time_to_live": "soon"}],
    ids=str,
)
async def test_what_a_broker_answers_by_closing_is_refused_before_it_is_sent(jms: Jms, how: dict[str, Any]) -> None:
    """Trap 24, S67: and the connection is as good as before."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    with pytest.raises((JMSException, ValueError, TypeError)):
        await producer.send("never", **how)
    await producer.send("a")
    await jms.left("a")


PROPERTIES = {"text": "t", "id": "i", "selector": "s", "number": 7, "flag": True}
FRAME_PROPERTIES = {"receipt": "mine", "destination": "Paris", "timestamp": "noon", "type": "t", "priority": "high"}
"""Names that mean something in a frame: over STOMP this library has other names for such properties."""


@pytest.mark.parametrize("receiving", ["amqp", "stomp"])
async def test_nobody_gets_a_property_that_nobody_set(jms: Jms, brokers: Brokers, receiving: str) -> None:
    """Trap 25, S160: Artemis makes properties of a frame's headers, for receivers of both protocols; what the
    application calls by the same names arrives."""
    url = getattr(brokers(jms.target.broker), f"{receiving}_url")
    async with jms.factory().create_connection() as connection, connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        producer.disable_message_id = jms.target.protocol == "amqp"  # else Classic ends a STOMP connection at the ACK
        message = session.create_bytes_message(b"a")
        converts = (jms.target.protocol, receiving, jms.target.broker) == ("amqp", "stomp", "artemis")
        expected = PROPERTIES if converts else PROPERTIES | FRAME_PROPERTIES
        message.properties.update(expected)
        await producer.send(message)
    (received,) = await take(await (await jms.session(url=url)).create_consumer(jms.queue), 1)
    found = dict(received.properties)
    if converts:  # into strings
        found["number"], found["flag"] = int(str(found["number"])), found["flag"] == "true"
    assert found == expected


STRANGE = [
    {"NATIVE_MESSAGE_ID": "ID:mine", "type": "t", "priority": "high", "subscription": "gold"},
    {"NATIVE_MESSAGE_ID": "7", "timestamp": "noon"},
    {"destination": "", "receipt": "r", "type": "t"},
]
"""Properties of applications; an empty destination stands for the name of the queue."""


@only_on("amqp", "over STOMP these properties have other names in the frame")
@pytest.mark.parametrize("strange", STRANGE, ids=["native", "number", "destination"])
async def test_no_property_of_an_application_makes_its_message_one_of_a_stomp_client(
    jms: Jms, strange: dict[str, str]
) -> None:
    """Trap 25, S160: the property NATIVE_MESSAGE_ID hid itself and all properties with the names of STOMP headers."""
    properties = {name: value or jms.queue.name for name, value in strange.items()}
    session = await jms.session()
    message = session.create_text_message("ours")
    message.properties.update(properties)
    await (await session.create_producer(jms.queue)).send(message)
    await proton_send(jms.url, jms.queue.name, ProtonMessage("plain", properties=properties))
    for received in await take(await session.create_consumer(jms.queue), 2):
        assert dict(received.properties) == properties


@only_on("stomp", "it is about frames")
@pytest.mark.parametrize("receiving", ["amqp", "stomp"])
async def test_the_headers_of_any_stomp_client_are_no_properties(jms: Jms, brokers: Brokers, receiving: str) -> None:
    """Trap 25, S160."""
    artemis = jms.target.broker == "artemis"
    headers = {"destination": jms.queue.name if artemis else f"/queue/{jms.queue.name}", "content_length": 1}
    if artemis:
        headers["destination_type"] = "ANYCAST"
    frames = [stomp_frame("SEND", "a", receipt="r-1", mine="m", **headers), stomp_frame("DISCONNECT", receipt="r-2")]
    assert (await raw_stomp(jms.url, *frames))[:2] == ["CONNECTED", "RECEIPT"]
    url = getattr(brokers(jms.target.broker), f"{receiving}_url")
    (received,) = await take(await (await jms.session(url=url)).create_consumer(jms.queue), 1)
    assert (received.body, dict(received.properties)) == (b"a", {"mine": "m"})


@not_on("artemis", "13: there they are shared")
@pytest.mark.parametrize("kind", ["create_shared_consumer", "create_shared_durable_consumer"])
async def test_a_shared_subscription_is_refused_where_every_receiver_would_get_every_message(
    jms: Jms, kind: str
) -> None:
    """Trap 26, S143, S119."""
    session = await jms.session()
    with pytest.raises(UnsupportedFeatureException, match="every subscriber every message"):
        await getattr(session, kind)(Topic(jms.queue.name), "name")

"""Sending: what waits for the broker, how it fails, what is stamped, and who may touch the message (S61-S74)."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from polling import eventually

from contract.brokers import alike, not_on, only_on
from contract.harness import Completed, Heard, Jms, nothing, producer_behind, take, texts
from pyjmsack import (
    AckMode,
    DeliveryMode,
    InvalidDestinationException,
    JMSException,
    MessageFormatException,
    Queue,
    ResourceAllocationException,
    SendTimedOutException,
    TemporaryQueue,
    Topic,
    UnsupportedFeatureException,
    aio,
)

AUTO, TRANSACTED = AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED
PERSISTENT, NON_PERSISTENT = DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT


# -- what waits -----------------------------------------------------------------------------------------------------

WAITS: list[tuple[str, dict[str, object], AckMode, DeliveryMode, bool, bool]] = [
    # row of S62, options, mode of the session, delivery mode, completion listener, does send wait?
    ("1", {}, AUTO, PERSISTENT, True, False),
    ("1 before 2", {"jms.forceSyncSend": "true"}, AUTO, PERSISTENT, True, False),
    ("1 before 3", {"jms.sendTimeout": 9000}, AUTO, PERSISTENT, True, False),
    ("2", {"jms.forceSyncSend": "true"}, AUTO, NON_PERSISTENT, False, True),
    ("2 in a transaction", {"jms.forceSyncSend": "true"}, TRANSACTED, PERSISTENT, False, True),
    ("2 before 5", {"jms.forceSyncSend": "true", "jms.forceAsyncSend": "true"}, AUTO, PERSISTENT, False, True),
    ("3", {"jms.sendTimeout": 9000}, AUTO, NON_PERSISTENT, False, True),
    ("3 before 5", {"jms.sendTimeout": 9000, "jms.forceAsyncSend": "true"}, AUTO, PERSISTENT, False, True),
    ("5", {"jms.forceAsyncSend": "true"}, AUTO, PERSISTENT, False, False),
    ("6", {"jms.presettlePolicy.presettleProducers": "true"}, AUTO, PERSISTENT, False, False),
    ("7", {}, TRANSACTED, PERSISTENT, False, False),
    ("8", {}, AUTO, NON_PERSISTENT, False, False),
    ("9", {}, AUTO, PERSISTENT, False, True),
]


@pytest.mark.parametrize(
    ("options", "mode", "delivery_mode", "listens", "waits"),
    [pytest.param(*row[1:], id=row[0]) for row in WAITS],
)
async def test_a_send_waits_for_the_broker_as_the_table_says(
    jms: Jms, options: dict[str, object], mode: AckMode, delivery_mode: DeliveryMode, listens: bool, waits: bool
) -> None:
    """S61, S62, S63: seen with the broker's answers held back."""
    wire = jms.wire()
    session, producer = await producer_behind(jms, wire, mode, options)
    wire.swallow_replies()
    listener = Completed() if listens else None
    sending = asyncio.create_task(producer.send("a", delivery_mode=delivery_mode, completion_listener=listener))
    if waits:
        await asyncio.wait({sending}, timeout=0.1)
        assert not sending.done()
        wire.heal()
    await sending
    wire.heal()
    if mode is TRANSACTED:
        await session.commit()
    await producer.close()
    await jms.left("warm-up", "a")


async def test_a_producer_has_a_bounded_number_of_unconfirmed_sends(jms: Jms) -> None:
    """S65: the window of 4096."""
    wire = jms.wire()
    _, producer = await producer_behind(jms, wire)
    wire.swallow_replies()
    sent = 0

    async def send_many() -> None:
        nonlocal sent
        for _ in range(5000):
            await producer.send("a", delivery_mode=NON_PERSISTENT)
            sent += 1

    sending = asyncio.create_task(send_many())
    await eventually(lambda: sent >= 4096)
    await asyncio.wait({sending}, timeout=0.1)
    assert sent == 4096
    wire.heal()
    await sending


# -- failures -------------------------------------------------------------------------------------------------------


NO_LIMITS = not_on("classic", "6: a full queue blocks its senders, it refuses nothing")
NO_REASON = not_on("stomp", "STOMP: Artemis refuses a message without a reason, and ends the connection")
NO_CREDIT = not_on("stomp", "STOMP: no credit, the broker answers every SEND")


async def fill(jms: Jms, session: aio.Session, count: int = 1) -> tuple[Queue, list[aio.MessageProducer]]:
    """Return a queue with room for no message, and producers that still have the credit from before."""
    queue = Queue(f"limited.{jms.queue.name}")
    producers = [await session.create_producer(queue) for _ in range(count)]
    for body in "ab":
        await producers[0].send_async(body)
    return queue, producers


@NO_LIMITS
@NO_REASON
async def test_a_refused_send_raises(jms: Jms) -> None:
    """S63, S129."""
    _, (producer,) = await fill(jms, await jms.session())
    with pytest.raises(ResourceAllocationException, match="full") as raised:
        await producer.send("c")
    assert raised.value.error_code == "amqp:resource-limit-exceeded"


@pytest.mark.option("jms.forceAsyncSend", "amqp", "stomp")
@NO_LIMITS
@NO_REASON
@pytest.mark.parametrize("how", ["non-persistent", "force async"])
async def test_a_refused_send_that_nobody_waits_for_reaches_the_exception_listener(jms: Jms, how: str) -> None:
    """S64."""
    connection = await jms.connection(options={"jms.forceAsyncSend": "true"} if how == "force async" else {})
    errors = Heard[JMSException]()
    connection.exception_listener = errors
    _, (producer,) = await fill(jms, await connection.create_session())
    await producer.send("c", delivery_mode=PERSISTENT if how == "force async" else NON_PERSISTENT)
    assert isinstance(await errors.next(), ResourceAllocationException)


@NO_LIMITS
@NO_REASON
async def test_a_refused_send_reaches_its_completion_listener_and_its_future_only(jms: Jms) -> None:
    """S64."""
    connection = await jms.connection()
    errors = Heard[JMSException]()
    connection.exception_listener = errors
    _, (one, two) = await fill(jms, await connection.create_session(), 2)
    listener = Completed()
    await one.send("c", completion_listener=listener)
    future = two.send_async("d")
    message, error = await listener.heard.next()
    assert isinstance(error, ResourceAllocationException)
    message.properties["writeable"] = True
    with pytest.raises(ResourceAllocationException):
        await future
    assert errors.silent


@NO_LIMITS
@NO_CREDIT
async def test_a_send_without_credit_waits_until_there_is_room(jms: Jms) -> None:
    """S66."""
    queue, (producer,) = await fill(jms, await jms.session())
    with pytest.raises(ResourceAllocationException):
        await producer.send("refused; now the broker takes the credit back")
    sending = asyncio.create_task(producer.send("c"))
    await asyncio.wait({sending}, timeout=0.1)
    assert not sending.done()
    consumer = await (await jms.session()).create_consumer(queue)
    assert texts(await take(consumer, 2)) == ["a", "b"]
    await sending
    assert texts(await take(consumer, 1)) == ["c"]


@NO_LIMITS
@NO_CREDIT
async def test_a_send_without_credit_times_out_and_is_never_sent(jms: Jms) -> None:
    """S66: and the text tells it from a send without an answer."""
    queue, (producer,) = await fill(jms, await jms.session(options={"jms.sendTimeout": 2000}))
    with pytest.raises(ResourceAllocationException):
        await producer.send("refused; now the broker takes the credit back")

    async def send_until_the_credit_is_gone() -> None:
        while True:  # a busy broker may refuse some more before the client knows that the credit is gone
            with suppress(ResourceAllocationException):
                await producer.send("too late")

    with pytest.raises(SendTimedOutException, match=r"credit.*jms\.sendTimeout"):
        await send_until_the_credit_is_gone()
    consumer = await (await jms.session()).create_consumer(queue)
    assert texts(await take(consumer, 2)) == ["a", "b"]
    await nothing(consumer)
    await producer.send("c")
    assert texts(await take(consumer, 1)) == ["c"]


@pytest.mark.option("jms.sendTimeout", "amqp", "stomp")
async def test_a_send_without_an_answer_times_out(jms: Jms) -> None:
    """S66: also as the built-in TimeoutError; the connection goes on."""
    wire = jms.wire()
    _, producer = await producer_behind(jms, wire, options={"jms.sendTimeout": 2000})
    wire.swallow_replies()
    with pytest.raises(TimeoutError, match=r"jms\.sendTimeout") as raised:
        await producer.send("a")
    assert isinstance(raised.value, SendTimedOutException)
    assert "credit" not in str(raised.value)
    wire.heal()
    await producer.send("b")


# -- destinations and bodies ----------------------------------------------------------------------------------------


async def test_a_destination_is_given_once(jms: Jms) -> None:
    """S67."""
    session = await jms.session()
    bound, anonymous = await session.create_producer(jms.queue), await session.create_producer()
    with pytest.raises(UnsupportedFeatureException, match=jms.queue.name):
        await bound.send("x", Queue("other"))
    with pytest.raises(InvalidDestinationException):
        await anonymous.send("x")
    with pytest.raises(InvalidDestinationException):
        await anonymous.send("x", jms.queue.name)
    await anonymous.send("a", jms.queue)
    await jms.left("a")


@alike("names are checked before anything is sent")
@pytest.mark.parametrize("name", ["", "  ", "?consumer.prefetchSize=1"])
async def test_an_empty_destination_name_is_refused(jms: Jms, name: str) -> None:
    """S67."""
    session = await jms.session()
    for create in (session.create_queue, session.create_topic):
        with pytest.raises(InvalidDestinationException):
            create(name)


async def test_an_anonymous_producer_reaches_many_destinations(jms: Jms) -> None:
    """S67."""
    session = await jms.session()
    producer = await session.create_producer()
    queues = [Queue(f"{jms.queue.name}-{number}") for number in range(10)]
    for queue in queues:
        await producer.send(queue.name, queue)
    for queue in queues:
        assert texts(await take(await session.create_consumer(queue), 1)) == [queue.name]


@not_on("classic", "a name with wildcards is that of each queue that matches")
@pytest.mark.parametrize("wild", ["{}.#", "{}.*"])
async def test_nothing_is_sent_to_a_pattern_because_its_queue_would_keep_a_copy_of_every_match(
    jms: Jms, wild: str
) -> None:
    """S67: the broker refused the message, but one reply to ``#`` left a queue that got all messages of the broker."""
    session = await jms.session()
    pattern = wild.format(jms.queue.name)
    anonymous = await session.create_producer()
    for kind in Queue, Topic, TemporaryQueue:
        with pytest.raises(InvalidDestinationException, match=r"# and \* are wildcards"):
            await anonymous.send("x", kind._literal(pattern))
    with pytest.raises(InvalidDestinationException, match="copy of each message"):
        await (await session.create_producer(Queue(pattern))).send("x")
    matching = Queue(f"{jms.queue.name}.b")
    await anonymous.send("a", matching)
    jms.queue = matching
    await jms.left("a")
    consumer = await (await jms.session()).create_consumer(Queue(pattern))
    await nothing(consumer)


@alike("bodies are checked before anything is sent")
@pytest.mark.parametrize("body", [None, object(), 1, 1.5])
async def test_what_is_no_message_is_refused(jms: Jms, body: object) -> None:
    """S69."""
    producer = await (await jms.session()).create_producer(jms.queue)
    with pytest.raises(MessageFormatException):
        await producer.send(body)
    await jms.left()


@pytest.mark.parametrize("when", ["before start", "after stop"])
async def test_sending_works_on_a_stopped_connection(jms: Jms, when: str) -> None:
    """S70."""
    connection = await jms.connection(started=when == "after stop")
    if when == "after stop":
        await connection.stop()
    await (await (await connection.create_session()).create_producer(jms.queue)).send("a")
    await jms.left("a")


# -- the message ----------------------------------------------------------------------------------------------------


async def test_send_stamps_the_callers_message_and_the_receiver_sees_the_same(jms: Jms) -> None:
    """S71, S152-S154: what the sender had put there is overwritten."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("a")
    message.message_id, message.priority, message.delivery_mode = "ID:mine", 1, PERSISTENT
    message.redelivered, message.expiration = True, datetime(2001, 1, 1, tzinfo=timezone.utc)
    message.destination = Queue("elsewhere")
    message.properties["JMSXUserID"] = "spoofed"
    before = datetime.now(timezone.utc)
    await producer.send(message, priority=7, delivery_mode=NON_PERSISTENT, time_to_live=timedelta(hours=1))
    after = datetime.now(timezone.utc)
    (received,) = await take(await jms.consumer(), 1)
    for seen in (message, received):
        assert seen.message_id is not None
        assert seen.message_id.startswith("ID:")
        assert seen.message_id != "ID:mine"
        assert seen.timestamp is not None
        assert before - timedelta(milliseconds=1) <= seen.timestamp <= after
        assert seen.expiration == seen.timestamp + timedelta(hours=1)
        assert (seen.priority, seen.delivery_mode, seen.redelivered) == (7, NON_PERSISTENT, False)
        assert seen.destination == jms.queue
        assert seen.properties.get("JMSXUserID") is None
    assert received.message_id == message.message_id


ID_TYPES = {
    "DEFAULT": r"ID:{}:\d+:\d+-\d+",
    "UUID": r"ID:AMQP_UUID:{}",
    "UUID_STRING": r"ID:AMQP_NO_PREFIX:{}",
    "PREFIXED_UUID_STRING": r"ID:{}",
}


@pytest.mark.option("jms.messageIDPolicy.messageIDType", "amqp")
@only_on("amqp", "the types are AMQP's")
@pytest.mark.parametrize("kind", ID_TYPES)
async def test_message_ids_are_of_the_type_that_is_asked_for(jms: Jms, kind: str) -> None:
    """S159, jms.messageIDPolicy.messageIDType."""
    session = await jms.session(options={"jms.messageIDPolicy.messageIDType": kind})
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message("a")
    await producer.send(message)
    await producer.send("b")
    first, second = await take(await jms.consumer(), 2)
    assert first.message_id == message.message_id != second.message_id
    pattern = ID_TYPES[kind].format(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
    assert re.fullmatch(pattern, second.message_id or ""), second.message_id


async def test_the_producers_defaults_hold_for_each_send_that_does_not_override_them(jms: Jms) -> None:
    """S152, S155, S158."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    wrong: Any
    for wrong in (True, False, 0, 3, "2"):  # True is 1, so it would mean not persistent
        with pytest.raises(JMSException, match="delivery mode"):
            producer.delivery_mode = wrong
    assert (producer.delivery_mode, producer.priority, producer.time_to_live) == (PERSISTENT, 4, 0)
    producer.delivery_mode, producer.priority, producer.time_to_live = NON_PERSISTENT, 9, 600
    producer.disable_message_id = producer.disable_message_timestamp = True
    message = session.create_text_message("a")
    message.message_id = "ID:mine"
    await producer.send(message)
    await producer.send("b", priority=0, delivery_mode=PERSISTENT, time_to_live=0)
    first, second = sorted(await take(await jms.consumer(), 2), key=lambda message: str(message.body))
    assert (first.delivery_mode, first.priority, first.expiration is None) == (NON_PERSISTENT, 9, False)
    assert (second.delivery_mode, second.priority, second.expiration is None) == (PERSISTENT, 0, True)
    assert message.message_id is None
    if not jms.target.named("stomp-classic"):  # there the broker gives an id to what has none
        assert first.message_id is second.message_id is None
    assert message.timestamp is None
    assert first.timestamp is None or jms.target.named("stomp")  # there a broker stamps what has no stamp


WRONG = [
    ("delivery_mode", 0),
    ("delivery_mode", 3),
    ("priority", -1),
    ("priority", 10),
    ("time_to_live", -1),
    ("delivery_delay", -1),
]


@alike("values are checked before anything is sent")
@pytest.mark.parametrize(("name", "value"), WRONG)
async def test_values_outside_the_rules_are_refused_as_default_and_for_one_send(
    jms: Jms, name: str, value: int
) -> None:
    """S152."""
    producer = await (await jms.session()).create_producer(jms.queue)
    with pytest.raises(JMSException, match=str(value)):
        setattr(producer, name, value)
    how: dict[str, Any] = {name: value}
    with pytest.raises(JMSException, match=str(value)):
        await producer.send("a", **how)
    await jms.left()


async def test_a_message_may_be_changed_and_sent_again_at_once(jms: Jms) -> None:
    """S72: for every way of sending without a listener."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    message = session.create_text_message()
    ids = []
    pending = []
    for number in range(9):
        message.text = str(number)
        message.properties["number"] = number
        if number % 3 == 0:
            await producer.send(message)
        elif number % 3 == 1:
            await producer.send(message, delivery_mode=NON_PERSISTENT if jms.ways.one_order else PERSISTENT)
        else:
            pending.append(producer.send_async(message))
        ids.append(message.message_id)
    message.clear_body()
    message.clear_properties()
    await asyncio.gather(*pending)
    received = await jms.left(*map(str, range(9)))
    assert [each.properties["number"] for each in received] == [*range(9)]
    assert [each.message_id for each in received] == ids
    assert len(set(ids)) == 9


@not_on("classic", "13: delivery delay needs the scheduler; see test_classic.py")
async def test_a_delayed_message_is_delivered_late(jms: Jms) -> None:
    """S157."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    consumer = await session.create_consumer(jms.queue)
    message = session.create_text_message("late")
    message.properties["color"] = "red"
    await producer.send(message, delivery_delay=1)
    assert message.delivery_time is not None
    await producer.send("soon")
    soon, late = await take(consumer, 2)
    assert texts([soon, late]) == ["soon", "late"]
    assert datetime.now(timezone.utc) >= message.delivery_time - timedelta(milliseconds=50)
    assert late.delivery_time == message.delivery_time
    assert dict(late.properties) == {"color": "red"}

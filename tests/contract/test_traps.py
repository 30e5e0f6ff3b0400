"""The traps of docs/broker-facts.md that lose messages: none can be sprung through the public interface.

Each docstring begins with the trap's number; the table of traps in that page names these tests.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from polling import eventually, expired
from shared_brokers import Served

from contract.brokers import alike, not_on, only_on
from contract.harness import Jms, counts, nothing, take, texts
from contract.traps_support import line
from pyjmsack import (
    AckMode,
    DeliveryMode,
    IllegalStateException,
    JMSException,
    Queue,
    StreamMessage,
    TextMessage,
    Topic,
    TransactionRolledBackException,
    UnsupportedFeatureException,
    aio,
)

Brokers = Callable[[str], Served]
TRANSACTED, CLIENT, INDIVIDUAL = (
    AckMode.SESSION_TRANSACTED,
    AckMode.CLIENT_ACKNOWLEDGE,
    AckMode.INDIVIDUAL_ACKNOWLEDGE,
)
NO_ACK = {AckMode.NO_ACKNOWLEDGE, AckMode.ARTEMIS_PRE_ACKNOWLEDGE}
MODES = [mode for mode in AckMode if mode not in NO_ACK]
PERSISTENT, NON_PERSISTENT = DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT


async def receiver(jms: Jms, mode: int, **options: object) -> tuple[aio.Session, aio.MessageConsumer]:
    """Return a session and a consumer of the queue, on a connection of their own."""
    session = await jms.session(mode, options={name.replace("_", "."): value for name, value in options.items()})
    return session, await session.create_consumer(jms.queue)


@only_on("stomp", "the trap is NACK")
async def test_a_rejected_message_is_dead_lettered_alone_though_nack_acknowledges(jms: Jms) -> None:
    """Trap 1, S118: on Artemis NACK would lose it, and those before it."""
    await jms.send("a", "b", "c")
    _, consumer = await receiver(jms, INDIVIDUAL)
    (await take(consumer, 3))[1].reject()
    await jms.left("a", "c")
    await jms.dead("b")


@only_on("stomp", "the trap is NACK")
@pytest.mark.parametrize("mode", [CLIENT, TRANSACTED])
async def test_a_poisonous_message_is_dead_lettered_alone_though_nack_acknowledges(jms: Jms, mode: AckMode) -> None:
    """Trap 1, trap 9, S112: what the limit refuses takes the same way; in a transaction a NACK would lose it, too."""
    await jms.send("a", "b")
    session, consumer = await receiver(
        jms, mode, jms_redeliveryPolicy_maxRedeliveries=0, jms_redeliveryPolicy_outcome="REJECTED"
    )
    assert texts(await take(consumer, 1)) == ["a"]
    await (session.rollback() if mode is TRANSACTED else session.recover())
    (message,) = await take(consumer, 1)
    message.acknowledge()
    if mode is TRANSACTED:
        await session.commit()
    await jms.left()
    await jms.dead("a")


@pytest.mark.parametrize("prefix", ["", "/queue/", "/topic/", "queue://", "topic://"])
@pytest.mark.parametrize("anonymous", [False, True], ids=["producer", "anonymous"])
async def test_what_is_sent_to_a_new_queue_of_any_name_waits_for_a_later_consumer(
    jms: Jms, prefix: str, anonymous: bool
) -> None:
    """Trap 2: Artemis would take a name without its kind for a topic, confirm the message and drop it."""
    queue = Queue(prefix + jms.queue.name)
    async with jms.factory().create_connection() as connection, connection.create_session() as session:
        producer = await session.create_producer(None if anonymous else queue)
        await producer.send("a", queue) if anonymous else await producer.send("a")
    session = await jms.session()
    assert texts(await take(await session.create_consumer(queue), 1)) == ["a"]


@pytest.mark.parametrize("lost", [False, True], ids=["rollback", "lost-connection"])
async def test_a_rollback_brings_messages_back_though_an_ack_in_a_transaction_is_immediate(
    jms: Jms, lost: bool
) -> None:
    """Trap 3, S80, S84, S88: on Artemis over STOMP no ABORT could."""
    await jms.send("a", "b", "c")
    wire = jms.wire()
    session = await jms.session(TRANSACTED, wire.url)
    consumer = await session.create_consumer(jms.queue)
    await take(consumer, 2)
    await (await session.create_producer(jms.queue)).send("never")
    if lost:
        wire.cut()
    else:
        await session.rollback()
        assert counts(await take(consumer, 2)) == [2, 2]
    left = await (await jms.session()).create_consumer(jms.queue)
    await session.close()
    assert sorted(texts(await take(left, 3))) == ["a", "b", "c"]
    await nothing(left)


async def test_what_is_sent_after_a_transaction_ended_belongs_to_the_next_one(jms: Jms) -> None:
    """Trap 4, S75: Artemis confirms a SEND of an ended transaction, and drops it."""
    session = await jms.session(TRANSACTED)
    producer = await session.create_producer(jms.queue)
    for body, end in (("a", session.commit), ("never", session.rollback), ("b", session.commit)):
        await producer.send(body)
        await end()
        await end()
    await producer.send("c")
    await session.commit()
    await jms.left("a", "b", "c")


async def test_what_is_sent_after_a_transaction_was_lost_with_its_connection_is_not_sent_into_nothing(
    jms: Jms,
) -> None:
    """Trap 4, trap 18, S92: neither into a transaction that the broker does not know, nor outside of one."""
    async with line(jms, failover=True) as wire, wire.connection.create_session(TRANSACTED) as session:
        producer = await session.create_producer(jms.queue)
        await producer.send_async("never")  # the broker has it; what it had not, the next transaction would carry
        wire.breaks()
        await wire.mends()
        await producer.send("never")
        with pytest.raises(TransactionRolledBackException):
            await session.commit()
        await producer.send("a")
        await session.commit()
    await jms.left("a")


@only_on("stomp-artemis", "Classic passes it on as it came, and AMQP needs no conversion")
@pytest.mark.parametrize("mode", AckMode)
async def test_what_the_broker_cannot_convert_is_not_acknowledged_with_what_follows(
    jms: Jms, brokers: Brokers, mode: AckMode
) -> None:
    """Trap 5: an AMQP stream is skipped, and an acknowledgement of all up to the next message would lose it."""
    amqp = brokers("artemis").amqp_url
    async with jms.factory(amqp).create_connection() as connection, connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        stream = StreamMessage()
        stream.write_int(1)
        for message in (TextMessage("a"), stream, TextMessage("b")):
            await producer.send(message)
    session, consumer = await receiver(jms, mode)
    found = await take(consumer, 2)
    assert texts(found) == ["a", "b"]
    for message in found:
        message.acknowledge()
    if mode is TRANSACTED:
        await session.commit()
    await jms.close()
    rest = await (await jms.session(url=amqp)).create_consumer(jms.queue)
    (left,) = await take(rest, 1)
    assert isinstance(left, StreamMessage)
    await nothing(rest)


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_dead_client_had_in_its_buffers_is_not_lost(jms: Jms, mode: AckMode) -> None:
    """Trap 6, S16, S30: ``ack:auto`` loses it; only NO_ACKNOWLEDGE, which says so, asks for that (S36)."""
    await jms.send(*"abcde")
    wire = jms.wire()
    consumer = await (await jms.session(mode, wire.url)).create_consumer(jms.queue)
    await take(consumer, 1)
    await eventually(lambda: consumer.stats.buffered == 4)
    wire.cut()
    others = await (await jms.session()).create_consumer(jms.queue)
    found = texts(await take(others, 4))
    if "a" in found:  # which was handed out: acknowledged or not, as the mode says
        found += texts(await take(others, 1))
    assert {*"bcde"} <= {*found}


@alike("modes are checked before anything is sent")
@pytest.mark.parametrize("mode", [-1, 7, 99, "client", "CLIENT", "auto", None, True])
async def test_a_misspelt_mode_is_refused_and_not_taken_for_auto(jms: Jms, mode: int) -> None:
    """Trap 6, S5: Classic takes any word that it does not know for ``auto``."""
    connection = await jms.connection()
    with pytest.raises((JMSException, TypeError), match=r"mode|AckMode"):
        await connection.create_session(mode)


@only_on("stomp-artemis", "other brokers have browsers")
@pytest.mark.parametrize("mode", AckMode)
async def test_a_browser_is_refused_where_it_would_consume_the_queue(jms: Jms, mode: AckMode) -> None:
    """Trap 7, S134: Artemis ignores ``browser:true``."""
    await jms.send("a", "b")
    session = await jms.session(mode)
    with pytest.raises(UnsupportedFeatureException, match="browser"):
        await session.create_browser(jms.queue)
    await jms.left("a", "b")


async def test_a_message_is_persistent_at_the_broker_unless_the_caller_says_otherwise(
    jms: Jms, brokers: Brokers
) -> None:
    """Trap 8, S153: over STOMP a missing header means non-persistent. Seen over AMQP, whatever it was sent over."""
    await jms.send("a")
    await jms.send("b", delivery_mode=NON_PERSISTENT)
    amqp = brokers(jms.target.broker).amqp_url
    found = await take(await (await jms.session(url=amqp)).create_consumer(jms.queue), 2)
    assert {message.body: message.delivery_mode for message in found} == {"a": PERSISTENT, "b": NON_PERSISTENT}


@pytest.mark.parametrize("mode", DeliveryMode)
async def test_a_rejected_message_is_dead_lettered_whether_persistent_or_not(jms: Jms, mode: DeliveryMode) -> None:
    """Trap 8, S118: Classic drops non-persistent ones."""
    await jms.send("a", delivery_mode=mode)
    _, consumer = await receiver(jms, INDIVIDUAL)
    (await take(consumer, 1))[0].reject()
    await jms.left()
    await jms.dead("a")


@pytest.mark.parametrize("mode", DeliveryMode)
@pytest.mark.parametrize("end", ["rejected", "expired"])
async def test_a_dead_letter_is_not_lost_by_looking_at_it(jms: Jms, mode: DeliveryMode, end: str) -> None:
    """Trap 8, S118, S156: what is rejected out of the dead-letter queue Classic discards, and Artemis delivers it again
    at once, without end. Over AMQP Classic leaves the time to live in dead letters, so that a client would refuse
    them."""
    session, consumer = await receiver(jms, INDIVIDUAL)
    await jms.send("a", delivery_mode=mode, time_to_live=4 if end == "expired" else 60)
    (message,) = await take(consumer, 1)
    message.reject()
    if end == "expired":
        await eventually(lambda: expired(message.expiration))
    for _ in range(3):
        dead = await session.create_consumer(Queue(jms.ways.dead_letters), f"test = '{jms.queue.name}'")
        (letter,) = await take(dead, 1)
        letter.reject()
        await nothing(dead)
        await dead.close()
    await jms.close()
    await jms.dead("a")


@only_on("stomp-classic", "the trap is NACK in a transaction there")
async def test_a_message_cannot_be_rejected_in_a_transaction(jms: Jms) -> None:
    """Trap 9, S12: NACK and COMMIT would lose it."""
    await jms.send("a")
    session, consumer = await receiver(jms, TRANSACTED)
    (message,) = await take(consumer, 1)
    with pytest.raises(IllegalStateException):
        message.reject()
    await session.rollback()
    await jms.left("a")


@only_on("amqp-classic", "STOMP has no such outcome, and Artemis means what it says")
async def test_not_here_is_refused_where_it_would_mean_the_dead_letter_queue(jms: Jms) -> None:
    """Trap 10, S119."""
    await jms.send("a")
    _, consumer = await receiver(jms, INDIVIDUAL)
    (message,) = await take(consumer, 1)
    with pytest.raises(UnsupportedFeatureException, match=r"dead-letter queue at once.*reject\(\)"):
        message.modify(undeliverable_here=True)
    await jms.left("a")


@pytest.mark.option("consumer.expectedMessageSize", "stomp")
@only_on("stomp", "the trap is a window")
@pytest.mark.parametrize("prefetch", [0, 1, 2])
@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.NO_ACKNOWLEDGE, INDIVIDUAL])
async def test_no_window_stalls(jms: Jms, mode: AckMode, prefetch: int) -> None:
    """Trap 11, S50, S53: Classic never delivers with 0; Artemis stalls with a window and ``ack:auto``."""
    bodies = [str(number) * 500 for number in range(10)]
    await jms.send(*bodies)
    session = await jms.session(mode)
    consumer = await session.create_consumer(
        jms.queue_with(f"consumer.prefetchSize={prefetch}&consumer.expectedMessageSize=100")
    )
    assert texts(await take(consumer, 10)) == bodies


@only_on("classic", "on Artemis the capability or the header tells")
async def test_a_topic_is_a_topic_though_the_capability_is_ignored(jms: Jms) -> None:
    """Trap 12, S140: over AMQP only the prefix tells; without it one consumer would get what is meant for all."""
    topic = Topic(jms.queue.name)
    session = await jms.session()
    consumers = [await session.create_consumer(topic) for _ in range(2)]
    await (await session.create_producer(topic)).send("a")
    assert [texts(await take(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]
    await jms.left()


async def subscriber(jms: Jms, selector: str | None = None) -> tuple[aio.Connection, aio.Session, aio.MessageConsumer]:
    """Return the durable subscriber of a client id that is this test's alone."""
    connection = await jms.connection(client_id=f"client-of-{jms.queue.name}")
    session = await connection.create_session()
    return connection, session, await session.create_durable_consumer(Topic(jms.queue.name), "sub", selector)


@pytest.mark.parametrize("selector", [None, "number > 1"])
@pytest.mark.parametrize("end", ["consumer", "session", "connection"])
async def test_whatever_is_closed_a_durable_subscription_keeps_its_backlog(
    jms: Jms, end: str, selector: str | None
) -> None:
    """Trap 13, trap 14, S141: in AMQP a close deletes it where a detach does not; over STOMP Classic needs its own
    header. Only another selector starts anew, as JMS says."""
    opened = await subscriber(jms, selector)
    await opened[("connection", "session", "consumer").index(end)].close()
    async with jms.factory().create_connection() as connection, connection.create_session() as session:
        message = session.create_text_message("a")
        message.properties["number"] = 2
        await (await session.create_producer(Topic(jms.queue.name))).send(message)
    await opened[0].close()
    _, session, consumer = await subscriber(jms, selector)
    assert texts(await take(consumer, 1)) == ["a"]
    await consumer.close()
    await session.unsubscribe("sub")


@not_on("amqp", "13: there the container of the connection is the owner")
async def test_a_durable_subscription_without_a_client_id_is_refused(jms: Jms) -> None:
    """Trap 14, S141, S146: Classic would take it and forget it with the connection."""
    session = await jms.session()
    with pytest.raises(IllegalStateException, match="client id"):
        await session.create_durable_consumer(Topic(jms.queue.name), "sub")

"""A message over the limits of a STOMP receiver is refused alone: what stands around it arrives, once (S166)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from contract.brokers import Embedded, not_on, only_on
from contract.harness import Heard, Jms, nothing, take, texts
from contract.traps_support import raw_stomp, stomp_frame
from pyjmsack import AckMode, Message, MessageFormatException, Queue

pytestmark = only_on("stomp", "the limits are those of STOMP frames")

Brokers = Callable[[str], Embedded]
LONG = "x" * 70_000
COLONS = ":" * 40_000
"""In a header line each takes two bytes."""
AROUND = 10
INNOCENT = [f"innocent {number}" for number in range(2 * AROUND + 1)]
URLS = {"plain": "{}", "failover": "failover:({})?failover.reconnectDelay=10"}
CLIENT = AckMode.CLIENT_ACKNOWLEDGE
MODES = [AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED]


def long_property(message: Message) -> None:
    """More than stomp.maxHeaderLength."""
    message.properties["color"] = LONG


def many_properties(message: Message) -> None:
    """More than stomp.maxHeaders."""
    message.properties.update({f"p{number}": "v" for number in range(1001)})


def long_correlation_id(message: Message) -> None:
    """ActiveMQ Classic puts what an AMQP client sent into the body, but for such, of less than 64 KiB."""
    message.correlation_id = COLONS


async def send_around(jms: Jms, brokers: Brokers, poison: Callable[[Message], None], body: str = "poison") -> None:
    """Send over AMQP, which has no such limits: innocent messages, the poisonous one, innocent messages."""
    factory = jms.factory(brokers(jms.target.broker).amqp_url)
    async with factory.create_connection() as connection, connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        producer.disable_message_id = True  # else Classic ends a STOMP connection at the ACK
        for text in INNOCENT[:AROUND]:
            await producer.send(jms.text(session, text))
        bad = jms.text(session, body)
        poison(bad)
        await producer.send(bad)
        for text in INNOCENT[AROUND:]:
            await producer.send(jms.text(session, text))


async def found_over_amqp(jms: Jms, brokers: Brokers, where: Queue) -> list[Message]:
    """Return the messages of this test in a queue, but for the innocent; over AMQP all can be read."""
    factory = jms.factory(brokers(jms.target.broker).amqp_url)
    async with factory.create_connection() as connection, connection.create_session() as session:
        await connection.start()
        async with session.create_consumer(where, f"test = '{jms.queue.name}'") as consumer:
            found = await take(consumer, 1)
            await nothing(consumer)
            return found


class Losses:
    """A connection listener that notes what it must not hear."""

    def __init__(self) -> None:
        self.heard: Heard[Any] = Heard()

    def on_connection_interrupted(self, url: str) -> None:
        """The connection was lost."""
        self.heard(url)


async def the_innocent_arrive(jms: Jms, url: str, mode: AckMode, options: str = "") -> None:
    """Receive what is around the poison, each once and for the first time, on a connection that stays."""
    losses = Losses()
    connection = await jms.connection(URLS[url].format(f"{jms.url}?{options}"))
    connection.add_connection_listener(losses)
    session = await connection.create_session(mode)
    consumer = await session.create_consumer(jms.queue)
    found = await take(consumer, len(INNOCENT))
    assert texts(found) == INNOCENT
    assert not any(message.redelivered for message in found)
    await nothing(consumer)
    if mode is AckMode.CLIENT_ACKNOWLEDGE:
        found[-1].acknowledge()
    elif mode is AckMode.SESSION_TRANSACTED:
        await session.commit()
    assert losses.heard.silent


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())
@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(
    "poison",
    [
        pytest.param(long_property, marks=only_on("stomp-artemis", "Classic does not convert what AMQP sent")),
        pytest.param(many_properties, marks=only_on("stomp-artemis", "Classic does not convert what AMQP sent")),
        long_correlation_id,
    ],
)
async def test_a_message_over_the_limits_is_dead_lettered_alone(
    jms: Jms, brokers: Brokers, poison: Callable[[Message], None], url: str, mode: AckMode
) -> None:
    """S166, S118: the copy in the dead-letter queue is whole."""
    await send_around(jms, brokers, poison)
    await the_innocent_arrive(jms, url, mode)
    await jms.left()
    (dead,) = await found_over_amqp(jms, brokers, Queue(jms.ways.dead_letters))
    expected = Message()
    poison(expected)
    assert dead.body == "poison"
    assert dead.correlation_id == expected.correlation_id
    assert dict(expected.properties).items() <= dict(dead.properties).items()


@pytest.mark.parametrize("url", URLS)
async def test_what_is_too_large_to_be_copied_is_not_lost(jms: Jms, brokers: Brokers, url: str) -> None:
    """S166: NACK dead-letters it on Classic; on Artemis it waits until its consumer ends, as NACK would lose it."""
    await send_around(jms, brokers, lambda message: None, "poison" * 1000)
    await the_innocent_arrive(jms, url, AckMode.AUTO_ACKNOWLEDGE, "stomp.maxFrameSize=2048")
    await jms.close()
    artemis = jms.target.broker == "artemis"
    (found,) = await found_over_amqp(jms, brokers, jms.queue if artemis else Queue(jms.ways.dead_letters))
    assert found.body == "poison" * 1000


@pytest.mark.option("stomp.deadLetterQueue", "stomp")
async def test_a_message_over_the_limits_in_the_dead_letter_queue_is_not_copied_again_and_again(
    jms: Jms, brokers: Brokers
) -> None:
    """S118, S166: its consumer would get the copy at once."""
    await send_around(jms, brokers, long_correlation_id)
    options = f"stomp.deadLetterQueue={jms.queue.name}"
    await the_innocent_arrive(jms, "plain", AckMode.AUTO_ACKNOWLEDGE, options)
    await jms.close()
    (found,) = await found_over_amqp(jms, brokers, jms.queue)
    assert found.correlation_id == COLONS


@pytest.mark.option("stomp.maxHeaders", "stomp")
async def test_what_any_stomp_client_may_send_is_refused_alone(jms: Jms, brokers: Brokers) -> None:
    """S166: the sender has other limits than the receiver."""
    artemis = jms.target.broker == "artemis"
    headers: dict[str, Any] = {"destination": jms.queue.name if artemis else f"/queue/{jms.queue.name}"}
    if artemis:
        headers["destination_type"] = "ANYCAST"
    many = {f"p{number}": "v" for number in range(100)}
    frames = [stomp_frame("SEND", text, persistent="true", test=jms.queue.name, **headers) for text in INNOCENT]
    bad = stomp_frame("SEND", "poison", persistent="true", test=jms.queue.name, **headers, **many)
    frames.insert(AROUND, bad)
    await raw_stomp(jms.url, *frames, stomp_frame("DISCONNECT", receipt="r"))
    await the_innocent_arrive(jms, "plain", AckMode.AUTO_ACKNOWLEDGE, "stomp.maxHeaders=64")
    await jms.left()
    (dead,) = await found_over_amqp(jms, brokers, Queue(jms.ways.dead_letters))
    assert dead.body == "poison"
    assert many.items() <= dict(dead.properties).items()


@pytest.mark.parametrize(
    ("poison", "limit"),
    [(long_property, r"'color' is too long.*stomp\.maxHeaderLength"), (many_properties, r"1000.*stomp\.maxHeaders")],
    ids=["length", "number"],
)
async def test_what_no_receiver_over_stomp_would_take_is_refused_before_it_is_sent(
    jms: Jms, poison: Callable[[Message], None], limit: str
) -> None:
    """S160: and the connection is as good as before."""
    session = await jms.session()
    producer = await session.create_producer(jms.queue)
    bad = jms.text(session, "poison")
    poison(bad)
    with pytest.raises(MessageFormatException, match=limit):
        await producer.send(bad)
    await producer.send("a")
    await jms.left("a")


@pytest.mark.parametrize("count", [900, 970])
async def test_as_many_properties_as_can_be_sent_can_be_received(jms: Jms, count: int) -> None:
    """S160: there is room for the header lines that the broker adds."""
    session = await jms.session()
    message = jms.text(session, "a")
    message.properties.update({f"p{number}": "v" for number in range(count - 24)})
    message.correlation_id, message.type, message.reply_to = "c", "t", jms.queue
    await (await session.create_producer(jms.queue)).send(message)
    (received,) = await jms.left("a")
    assert len(received.properties) == count - 23


@not_on("artemis", "STOMP: only Classic shows the id of the AMQP sender")
async def test_a_message_with_the_id_of_its_amqp_sender_harms_itself_alone(jms: Jms, brokers: Brokers) -> None:
    """S166: its ACK ended the connection."""
    amqp = jms.factory(brokers(jms.target.broker).amqp_url)
    async with amqp.create_connection() as connection, connection.create_session() as session:
        producer = await session.create_producer(jms.queue)
        for producer.disable_message_id, body in ((False, "poison"), (True, "innocent")):
            await producer.send(jms.text(session, body))
    await jms.send("behind it")
    consumer = await (await jms.session(CLIENT)).create_consumer(jms.queue)
    found = await take(consumer, 2)
    assert texts(found) == ["innocent", "behind it"]
    found[-1].acknowledge()
    await consumer.close()
    assert texts(await found_over_amqp(jms, brokers, jms.queue)) == ["poison"]

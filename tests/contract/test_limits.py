"""What a broker cannot take is refused before it is sent, and harms no neighbour on the connection."""

from __future__ import annotations

import pytest

from contract.harness import Jms, take, texts
from pyjmsack import (
    InvalidClientIDException,
    InvalidDestinationException,
    JMSException,
    JMSSecurityException,
    MessageFormatException,
    Queue,
    Topic,
)

FRAME = 131_072
"""Bytes of a frame that Artemis and Classic take over AMQP by default."""


@pytest.mark.only_on("amqp")
async def test_a_reply_to_longer_than_a_frame_is_refused_and_its_neighbour_works_on(jms: Jms) -> None:
    """Whoever sends a request chooses the address of the answer, and not the fate of the answering service."""
    await jms.send("before")
    connection = await jms.connection(f"failover:({jms.url})")
    interrupted: list[object] = []
    connection.exception_listener = interrupted.append
    session = await connection.create_session()
    neighbour = await session.create_producer(jms.queue)
    with pytest.raises(InvalidDestinationException, match=r"140,00"):
        await session.create_producer(Queue("q" * 140_000))
    with pytest.raises(InvalidDestinationException, match=r"140,00"):
        await session.create_consumer(Queue("q" * 140_000))
    with pytest.raises(InvalidDestinationException, match=r"140,00"):
        await anext(aiter(await session.create_browser(Queue("q" * 140_000))))
    await neighbour.send("after")
    assert interrupted == []
    await jms.left("before", "after")


@pytest.mark.only_on("amqp")
async def test_a_subscription_name_longer_than_a_frame_is_refused(jms: Jms) -> None:
    session = await (await jms.connection(client_id="limits")).create_session()
    with pytest.raises(JMSException, match=rf"accepts {FRAME:,}|more than 65,000 would damage"):
        await session.unsubscribe("s" * FRAME)
    with pytest.raises(JMSException, match=rf"accepts {FRAME:,}|more than 65,000 would damage"):
        await session.create_durable_consumer(Topic("t"), "s" * FRAME)


async def test_a_client_id_that_no_broker_takes_is_refused_before_it_is_sent(jms: Jms) -> None:
    with pytest.raises(InvalidClientIDException, match=r"at most"):
        await jms.connection(client_id="c" * 140_000)


async def test_a_password_that_no_broker_takes_is_refused_and_not_shown(jms: Jms) -> None:
    """Artemis would never answer, and Classic close the connection without a word."""
    with pytest.raises(JMSSecurityException, match=r"bytes") as raised:
        await jms.connection(username="u", password="p" * 12_000)
    assert "ppp" not in str(raised.value)


@pytest.mark.only_on("amqp")
@pytest.mark.parametrize("name", ["a\0b", "half \ud800"])
async def test_a_name_that_cannot_be_written_is_refused_and_not_cut(jms: Jms, name: str) -> None:
    """A name up to its NUL would be another queue's."""
    session = await jms.session()
    for create in (session.create_producer, session.create_consumer):
        with pytest.raises(InvalidDestinationException):
            await create(Queue(name))


@pytest.mark.only_on("stomp-classic")
async def test_a_header_line_that_classic_does_not_take_is_refused_before_it_is_sent(jms: Jms) -> None:
    session = await jms.session()
    with pytest.raises(MessageFormatException, match="60019"):
        await session.create_consumer(Queue("q" * 60_000))
    with pytest.raises(MessageFormatException, match="too long"):
        await session.create_consumer(jms.queue, "a = '" + "x" * 12_000 + "'")


@pytest.mark.option("jms.maxMessageSize", "amqp", "stomp")
async def test_a_message_over_the_limit_is_refused_alone_and_not_lost(jms: Jms) -> None:
    """S166, jms.maxMessageSize: its neighbours arrive; the broker keeps it, or makes it a dead letter."""
    big = "x" * 300_000
    await jms.send("before", big, "behind")
    connection = await jms.connection(options={"jms.maxMessageSize": 100_000})
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    assert texts(await take(consumer, 2)) == ["before", "behind"]
    if jms.target.named("artemis"):
        await jms.left(big)
    else:
        await jms.left()
        await jms.dead(big)

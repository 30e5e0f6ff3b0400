"""Temporary queues and topics on a real broker (S68, S130-S132)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from contract.brokers import Embedded, not_on, only_on
from contract.harness import Heard, Jms, nothing, take, texts
from pyjmsack import (
    AckMode,
    IllegalStateException,
    InvalidDestinationException,
    Message,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    aio,
)

Brokers = Callable[[str], Embedded]
Temporary = TemporaryQueue | TemporaryTopic
ALIAS = not_on("stomp-classic", "STOMP: a temporary destination has another name for all but its creator")
KINDS = pytest.mark.parametrize("kind", [TemporaryQueue, TemporaryTopic])


async def made(session: aio.Session, kind: type[Temporary]) -> Any:
    """Return a new temporary destination."""
    if kind is TemporaryQueue:
        return await session.create_temporary_queue()
    return await session.create_temporary_topic()


async def delete(destination: Any) -> None:
    """Delete it: the call waits in the blocking face, what it returns in asyncio."""
    if inspect.isawaitable(result := await asyncio.to_thread(destination.delete)):
        await result


@ALIAS
@KINDS
async def test_everybody_may_send_to_it_and_only_its_connection_may_consume(jms: Jms, kind: type[Temporary]) -> None:
    """S130: in any session of the connection."""
    connection = await jms.connection()
    destination = await made(await connection.create_session(), kind)
    assert type(destination) is kind
    consumer = await (await connection.create_session()).create_consumer(destination)
    foreign = await jms.session()
    with pytest.raises(InvalidDestinationException, match="another connection"):
        await foreign.create_consumer(destination)
    bound, anonymous = await foreign.create_producer(destination), await foreign.create_producer()
    await bound.send("a")
    await anonymous.send("b", destination)
    found = await take(consumer, 2)
    assert texts(found) == ["a", "b"]
    assert {message.destination for message in found} == {destination}


@only_on("stomp-classic", "the other targets have one name")
@KINDS
async def test_a_name_that_only_its_creator_can_use_is_refused_to_others(jms: Jms, kind: type[Temporary]) -> None:
    """S119, S130: the broker would make another destination of it and the message would be lost."""
    destination = await made(await jms.session(), kind)
    producer = await (await jms.session()).create_producer()
    with pytest.raises(InvalidDestinationException, match="reply_to"):
        await producer.send("a", destination)


async def test_every_temporary_destination_is_another_one(jms: Jms) -> None:
    """S132."""
    session = await jms.session()
    made_here = [await made(session, kind) for kind in (TemporaryQueue, TemporaryQueue, TemporaryTopic)]
    assert len({destination.name for destination in made_here}) == 3


@KINDS
async def test_deleting_it_while_it_is_consumed_raises_and_it_goes_on(jms: Jms, kind: type[Temporary]) -> None:
    """S131: then it can be deleted, and again without effect."""
    connection = await jms.connection()
    session = await connection.create_session()
    destination = await made(session, kind)
    consumer = await (await connection.create_session()).create_consumer(destination)
    with pytest.raises(IllegalStateException, match="consumer"):
        await delete(destination)
    await (await session.create_producer(destination)).send("a")
    assert texts(await take(consumer, 1)) == ["a"]
    await consumer.close()
    await delete(destination)
    await delete(destination)


@KINDS
async def test_nothing_can_be_sent_to_a_deleted_one(jms: Jms, kind: type[Temporary]) -> None:
    """S68: not by a producer that it has already, nor by any other."""
    session = await jms.session()
    destination = await made(session, kind)
    bound, anonymous = await session.create_producer(destination), await session.create_producer()
    await delete(destination)
    for use in (
        lambda: bound.send("a"),
        lambda: anonymous.send("a", destination),
        lambda: session.create_producer(destination),
        lambda: session.create_consumer(destination),
    ):
        with pytest.raises(InvalidDestinationException, match="deleted"):
            await use()


@ALIAS
@pytest.mark.parametrize("end", ["closed", "lost"])
async def test_it_ends_with_its_connection(jms: Jms, end: str) -> None:
    """S68, S130: not with its session."""
    wire = jms.wire()
    heard: Heard[Exception] = Heard()
    connection = await jms.connection(wire.url)
    connection.exception_listener = heard
    session = await connection.create_session()
    destination = await made(session, TemporaryQueue)
    await session.close()
    other = await jms.session()
    producer = await other.create_producer()
    await producer.send("a", destination)
    if end == "closed":
        await connection.close()
    else:
        wire.cut()
        await heard.next()
    with pytest.raises(InvalidDestinationException, match="deleted"):
        await producer.send("b", destination)


async def test_one_that_another_connection_made_cannot_be_deleted_by_its_name(jms: Jms) -> None:
    """S130: a name is not the destination's owner."""
    destination = await made(await jms.session(), TemporaryQueue)
    with pytest.raises(IllegalStateException, match="only the connection that created it"):
        await delete(TemporaryQueue(destination.name))


@only_on("stomp-classic", "Classic delivers messages of AMQP as they came, with its names of AMQP")
@KINDS
async def test_a_requester_over_amqp_gets_its_answer_from_a_service_over_stomp(
    jms: Jms, brokers: Brokers, kind: type[Temporary]
) -> None:
    """S68, S130: the answer went to an ordinary queue, and no error said so."""
    asking = await jms.session(url=brokers(jms.target.broker).amqp_url)
    where = await made(asking, kind)
    answers, producer = await asking.create_consumer(where), await asking.create_producer(jms.queue)
    producer.disable_message_id = True  # over STOMP nobody could acknowledge a message with an id of AMQP
    request = asking.create_text_message("a")
    request.reply_to = where
    await producer.send(request)
    session = await jms.session()
    (received,) = await take(await session.create_consumer(jms.queue), 1)
    anonymous = await session.create_producer()
    await anonymous.reply(received, "A")
    assert texts(await take(answers, 1)) == ["A"]
    forwarded_to = Queue(f"{jms.queue.name}.forwarded")
    await anonymous.send(received, forwarded_to)
    (forwarded,) = await take(await session.create_consumer(forwarded_to), 1)
    await anonymous.reply(forwarded, "B")
    assert texts(await take(answers, 1)) == ["B"]
    with pytest.raises(InvalidDestinationException, match="does not know"):
        await anonymous.send("C", where)


@not_on("stomp-artemis", "STOMP: temporary queues end when they are empty and unused")
async def test_its_messages_go_with_it(jms: Jms) -> None:
    """S130: the broker has no queue of that name any more."""
    session = await jms.session()
    destination = await made(session, TemporaryQueue)
    await (await session.create_producer(destination)).send("a")
    await delete(destination)
    await nothing(await (await jms.session()).create_consumer(session.create_queue(destination.name)))


@KINDS
async def test_reply_to_round_trip(jms: Jms, kind: type[Temporary]) -> None:
    """S130, S165: the one who answers sends to what it received."""
    asking, answering = await jms.session(), await jms.session()
    destination = await made(asking, kind)
    answers = await asking.create_consumer(destination)
    question = asking.create_text_message("?")
    question.reply_to = destination
    await (await asking.create_producer(jms.queue)).send(question)
    received = (await take(await answering.create_consumer(jms.queue), 1))[0]
    if not jms.target.named("stomp-classic"):  # the other name, see ALIAS
        assert received.reply_to == destination
    assert type(received.reply_to) is kind
    await (await answering.create_producer()).send("!", received.reply_to)
    assert texts(await take(answers, 1)) == ["!"]


async def test_what_was_received_names_the_own_one_as_well_as_the_object_itself(jms: Jms) -> None:
    """S130: destinations are values."""
    session = await jms.session()
    destination = await made(session, TemporaryQueue)
    await session.create_consumer(TemporaryQueue(destination.name))
    with pytest.raises(IllegalStateException, match="consumer"):
        await delete(destination)


async def test_it_takes_part_in_transactions(jms: Jms) -> None:
    """S77: like any other destination."""
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    destination = await made(session, TemporaryQueue)
    producer, consumer = await session.create_producer(), await session.create_consumer(destination)
    await producer.send("a", destination)
    await session.rollback()
    await producer.send("b", destination)
    await session.commit()
    for end in (session.rollback, session.commit):
        assert texts(await take(consumer, 1)) == ["b"]
        await end()
    await nothing(consumer)


async def test_a_context_makes_them_too(jms: Jms) -> None:
    """S150."""
    async with jms.factory().create_context() as context:
        destination = await context.create_temporary_queue()
        consumer = await context.create_consumer(destination)
        await (await context.create_producer(destination)).send("a")
        message: Message = (await take(consumer, 1))[0]
        assert message.body == "a"


@pytest.mark.option("consumer.priority", "amqp", "stomp")
@not_on("amqp-classic", "13: no consumer priority over AMQP")
@not_on("stomp-artemis", "STOMP: no consumer priority")
async def test_a_consumer_of_higher_priority_is_served_first(jms: Jms) -> None:
    """A.4 consumer.priority: the other one gets what is left when its credit is used up."""
    session = await jms.session()
    low = await session.create_consumer(jms.queue_with("consumer.priority=1"))
    high = await session.create_consumer(jms.queue_with("consumer.priority=9&consumer.prefetchSize=3"))
    await jms.send("a", "b", "c", "d")
    assert texts(await take(low, 1)) == ["d"]
    assert texts(await take(high, 3)) == ["a", "b", "c"]

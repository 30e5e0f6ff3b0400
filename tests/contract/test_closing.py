"""Closing: what it waits for, whom it wakes, what it hands back, what is refused afterwards (S14, S84, S123-S125)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from polling import eventually

from contract.brokers import not_on
from contract.harness import Gate, Heard, Jms, counts, take, texts
from pyjmsack import AckMode, IllegalStateException, Message, Queue, aio

LEVELS = pytest.mark.parametrize("level", ["consumer", "session", "connection"])


class Chain:
    """A connection, a session of it, and a consumer and a producer of that; ``[level]`` finds each."""

    def __init__(self, connection: aio.Connection, session: aio.Session) -> None:
        self.connection = connection
        self.session = session
        self.consumer: aio.MessageConsumer
        self.producer: aio.MessageProducer

    @classmethod
    async def of(cls, jms: Jms, mode: int = AckMode.AUTO_ACKNOWLEDGE) -> Chain:
        """Open one."""
        connection = await jms.connection()
        chain = cls(connection, await connection.create_session(mode))
        chain.consumer = await chain.session.create_consumer(jms.queue)
        chain.producer = await chain.session.create_producer(jms.queue)
        return chain

    def __getitem__(self, level: str) -> Any:
        return getattr(self, level)


# -- twice, at once, and with nobody at the other end ---------------------------------------------------------------


@pytest.mark.parametrize("level", ["consumer", "producer", "session", "connection"])
async def test_closing_twice_is_harmless(jms: Jms, level: str) -> None:
    """S123."""
    chain = await Chain.of(jms)
    for _ in range(2):
        await chain[level].close()
    for outer in ("session", "connection"):
        await chain[outer].close()


@LEVELS
async def test_concurrent_closes_all_return(jms: Jms, level: str) -> None:
    """S123."""
    chain = await Chain.of(jms)
    await asyncio.gather(*(chain[level].close() for _ in range(4)))


async def test_closing_everything_at_once_from_every_level_returns(jms: Jms) -> None:
    """S123."""
    chain = await Chain.of(jms)
    await asyncio.gather(*(chain[level].close() for level in ("consumer", "producer", "session", "connection")))


@pytest.mark.option("jms.closeTimeout", "amqp", "stomp")
async def test_close_returns_after_the_close_timeout_when_the_broker_is_silent(jms: Jms) -> None:
    """S123."""
    wire = jms.wire()
    connection = await jms.connection(wire.url, options={"jms.closeTimeout": 200})
    session = await connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)
    await session.create_consumer(jms.queue)
    wire.swallow_replies()
    await asyncio.wait_for(connection.close(), 60)


async def test_close_returns_when_the_connection_is_lost(jms: Jms) -> None:
    """S123."""
    wire = jms.wire()
    connection = await jms.connection(wire.url)
    session = await connection.create_session()
    consumer = await session.create_consumer(jms.queue)
    wire.cut()
    for level in (consumer, session, connection):
        await level.close()


@LEVELS
async def test_a_blocked_receive_gets_none_when_it_is_closed(jms: Jms, level: str) -> None:
    """S123."""
    chain = await Chain.of(jms)
    blocked = asyncio.create_task(chain.consumer.receive())
    await asyncio.sleep(0)
    await chain[level].close()
    try:
        assert await blocked is None
    except IllegalStateException:  # the thread of the blocking face came only after the close
        assert jms.face.name == "sync"


@LEVELS
async def test_an_iteration_ends_when_it_is_closed(jms: Jms, level: str) -> None:
    """S123."""
    await jms.send("a", "b")
    chain = await Chain.of(jms)
    heard = Heard[Message]()

    async def iterate() -> None:
        async for message in chain.consumer:
            heard(message)

    iteration = asyncio.create_task(iterate())
    assert texts(await heard.take(2)) == ["a", "b"]
    await chain[level].close()
    await iteration


# -- with a listener at work ----------------------------------------------------------------------------------------


@LEVELS
async def test_close_waits_for_the_listener_at_work(jms: Jms, level: str) -> None:
    """S124, S17: and what it then finished is acknowledged."""
    chain = await Chain.of(jms)
    entered, leave, left = Gate(), Gate(), Gate()

    async def listener(message: Message) -> None:
        entered.open()
        await leave.passed()
        left.open()

    chain.consumer.message_listener = listener
    await jms.send("a")
    await entered.passed()
    closing = asyncio.create_task(chain[level].close())
    await asyncio.wait({closing}, timeout=0.1)
    assert not closing.done()
    leave.open()
    await closing
    assert left.is_open()
    await jms.left()


async def test_a_listener_may_close_its_own_consumer(jms: Jms) -> None:
    """S14: the message in hand is acknowledged, the others stay."""
    await jms.send("a", "b")
    chain = await Chain.of(jms)
    closed = Gate()

    async def listener(message: Message) -> None:
        await chain.consumer.close()
        closed.open()

    chain.consumer.message_listener = listener
    await closed.passed()
    assert counts(await jms.left("b")) == jms.ways.counted(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda chain: chain.connection.close(),
        lambda chain: chain.connection.stop(),
        lambda chain: chain.session.close(),
    ],
    ids=["connection.close", "connection.stop", "session.close"],
)
async def test_a_listener_may_not_close_or_stop_what_runs_it(
    jms: Jms, call: Callable[[Chain], Awaitable[None]]
) -> None:
    """S14."""
    chain = await Chain.of(jms)
    heard = Heard[object]()

    async def listener(message: Message) -> None:
        try:
            await call(chain)
        except IllegalStateException as error:
            heard(error)
        else:
            heard(None)

    chain.consumer.message_listener = listener
    await jms.send("a", "b")
    for _ in range(2):  # and the consumer goes on
        assert isinstance(await heard.next(), IllegalStateException)


async def test_a_listener_may_create_a_producer_and_send(jms: Jms) -> None:
    """S14."""
    chain = await Chain.of(jms)
    done = Gate()

    async def listener(message: Message) -> None:
        if message.body == "a":
            async with chain.session.create_producer(jms.queue) as producer:
                await producer.send("answer")
        else:
            done.open()

    chain.consumer.message_listener = listener
    await jms.send("a")
    await done.passed()
    await jms.left()


# -- afterwards -----------------------------------------------------------------------------------------------------

REFUSED: dict[str, dict[str, Callable[[Chain], Any]]] = {
    "consumer": {
        "receive": lambda chain: chain.consumer.receive(timeout=0),
        "receive_nowait": lambda chain: chain.consumer.receive_nowait(),
        "receive_body": lambda chain: chain.consumer.receive_body(str, timeout=0),
        "acknowledge": lambda chain: chain.consumer.acknowledge(),
        "message_listener": lambda chain: setattr(chain.consumer, "message_listener", print),
    },
    "producer": {
        "send": lambda chain: chain.producer.send("x"),
        "send_async": lambda chain: chain.producer.send_async("x"),
    },
    "session": {
        "create_queue": lambda chain: chain.session.create_queue("x"),
        "create_topic": lambda chain: chain.session.create_topic("x"),
        "create_producer": lambda chain: chain.session.create_producer(),
        "create_consumer": lambda chain: chain.session.create_consumer(chain.consumer.destination),
        "create_browser": lambda chain: chain.session.create_browser(Queue("x")),
        "create_message": lambda chain: chain.session.create_message(),
        "create_text_message": lambda chain: chain.session.create_text_message("x"),
        "create_bytes_message": lambda chain: chain.session.create_bytes_message(b"x"),
        "acknowledge": lambda chain: chain.session.acknowledge(),
        "recover": lambda chain: chain.session.recover(),
        "commit": lambda chain: chain.session.commit(),
        "rollback": lambda chain: chain.session.rollback(),
    },
    "connection": {
        "start": lambda chain: chain.connection.start(),
        "stop": lambda chain: chain.connection.stop(),
        "create_session": lambda chain: chain.connection.create_session(),
        "set_client_id": lambda chain: chain.connection.set_client_id("late"),
    },
}
INSIDE = {
    "consumer": ["consumer"],
    "producer": ["producer"],
    "session": ["consumer", "producer", "session"],
    "connection": ["consumer", "producer", "session", "connection"],
}


@pytest.mark.parametrize("level", INSIDE)
async def test_every_call_on_something_closed_is_refused(jms: Jms, level: str) -> None:
    """S125."""
    chain = await Chain.of(jms)
    await chain[level].close()
    accepted = []
    for inner in INSIDE[level]:
        for name, call in REFUSED[inner].items():
            try:
                result = call(chain)
                if hasattr(result, "__await__"):
                    await result
            except IllegalStateException:
                continue
            accepted.append(f"{inner}.{name}")
    assert not accepted


# -- transactions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["session", "connection"])
async def test_close_rolls_the_transaction_back(jms: Jms, level: str) -> None:
    """S84, S75."""
    await jms.send("a", "b")
    chain = await Chain.of(jms, AckMode.SESSION_TRANSACTED)
    await take(chain.consumer, 1)
    await chain.producer.send("never")
    await eventually(lambda: chain.consumer.stats.buffered == 1)
    await chain[level].close()
    assert counts(await jms.left("a", "b"))[1:] == jms.ways.counted(1)


@pytest.mark.parametrize("end", ["commit", "rollback"])
async def test_what_a_closed_consumer_delivered_still_belongs_to_the_transaction(jms: Jms, end: str) -> None:
    """S84."""
    await jms.send("a", "b", "prefetched")
    chain = await Chain.of(jms, AckMode.SESSION_TRANSACTED)
    await take(chain.consumer, 2)
    await eventually(lambda: chain.consumer.stats.buffered == 1)
    await chain.consumer.close()
    await getattr(chain.session, end)()
    if end == "commit":
        assert counts(await jms.left("prefetched")) == jms.ways.counted(1)
    else:
        assert counts(await jms.left("a", "b", "prefetched")) == jms.ways.counted(2, 2, 1)


@not_on("stomp", "only AMQP has two engines")
@pytest.mark.parametrize("engine", ["python", "proton"])
async def test_sessions_that_come_and_go_at_once_hurt_no_other_session(jms: Jms, engine: str) -> None:
    """AMQP 1.0 2.7.7: Artemis may answer the Begin frame of a new session before the End frame of an old one."""
    connection = await jms.connection(options={"amqp.engine": engine})
    innocent = await (await connection.create_session()).create_producer(jms.queue)

    async def come_and_go() -> None:
        for _ in range(40):
            session = await connection.create_session(transacted=True)
            producer = await session.create_producer(jms.queue)
            await producer.send("x")
            await session.commit()
            await session.close()

    await asyncio.gather(*(come_and_go() for _ in range(5)))
    await innocent.send("afterwards")

"""Start and stop, client ids, failures and who hears of them (S119-S122, S127-S129)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from shared_brokers import Served

from contract.brokers import Embedded, not_on, only_on
from contract.harness import PATIENCE, Completed, Gate, Heard, Jms, nothing, take, texts
from pyjmsack import (
    AckMode,
    ConnectionLostException,
    IllegalStateException,
    InvalidClientIDException,
    InvalidSelectorException,
    JMSException,
    JMSSecurityException,
    Message,
    Queue,
    RequestTimedOutException,
    aio,
)

# -- start and stop -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetch", [0, 1000])
async def test_nothing_is_received_before_start(jms: Jms, prefetch: int) -> None:
    """S120."""
    await jms.send("a")
    connection = await jms.connection(started=False, options={"jms.prefetchPolicy.all": prefetch})
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    await nothing(consumer)
    assert await consumer.receive(timeout=0.05) is None
    await connection.start()
    assert texts(await take(consumer, 1)) == ["a"]


@pytest.mark.parametrize("prefetch", [0, 1, 1000])
async def test_stop_holds_messages_back_and_start_resumes_without_loss(jms: Jms, prefetch: int) -> None:
    """S120."""
    bodies = [str(number) for number in range(9)]
    await jms.send(*bodies)
    connection = await jms.connection(options={"jms.prefetchPolicy.all": prefetch})
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    found = []
    for _ in range(3):
        found += texts(await take(consumer, 3))
        await connection.stop()
        await nothing(consumer)
        await connection.start()
    assert found == bodies


async def test_a_blocked_receive_wakes_at_start(jms: Jms) -> None:
    """S120."""
    await jms.send("a")
    connection = await jms.connection(started=False)
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    blocked = asyncio.create_task(consumer.receive(timeout=PATIENCE))
    await asyncio.wait({blocked}, timeout=0.05)
    await connection.start()
    message = await blocked
    assert message is not None
    assert message.body == "a"


async def test_a_listener_set_before_start_is_fed_from_start_on(jms: Jms) -> None:
    """S120."""
    await jms.send("a", "b")
    connection = await jms.connection(started=False)
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    heard = Heard[Message]()
    consumer.message_listener = heard
    await connection.start()
    assert texts(await heard.take(2)) == ["a", "b"]


async def test_stop_waits_for_the_listener_at_work_and_no_other_starts(jms: Jms) -> None:
    """S120."""
    await jms.send("a", "b")
    connection = await jms.connection()
    consumer = await (await connection.create_session()).create_consumer(jms.queue)
    entered, leave = Heard[Message](), Gate()

    async def listener(message: Message) -> None:
        entered(message)
        await leave.passed()

    consumer.message_listener = listener
    await entered.next()
    stopping = asyncio.create_task(connection.stop())
    await asyncio.wait({stopping}, timeout=0.1)
    assert not stopping.done()
    leave.open()
    await stopping
    assert entered.silent
    await connection.start()
    assert (await entered.next()).body == "b"


async def test_starting_and_stopping_twice_is_harmless(jms: Jms) -> None:
    """S120."""
    connection = await jms.connection()
    for call in (connection.start, connection.stop, connection.stop, connection.start):
        await call()


async def test_a_context_starts_with_its_first_consumer(jms: Jms) -> None:
    """JMS 2.0 simplified interface."""
    async with jms.factory().create_context() as context:
        await (await context.create_producer(jms.queue)).send("a")
        consumer = await context.create_consumer(jms.queue)
        assert texts(await take(consumer, 1)) == ["a"]
        async with context.create_context(AckMode.CLIENT_ACKNOWLEDGE) as second:
            assert second.acknowledge_mode is AckMode.CLIENT_ACKNOWLEDGE
        await nothing(consumer)
    with pytest.raises(IllegalStateException):
        await context.create_producer()


async def test_a_context_without_auto_start_waits_for_start(jms: Jms) -> None:
    """JMS 2.0 simplified interface."""
    await jms.send("a")
    async with jms.factory().create_context(auto_start=False) as context:
        consumer = await context.create_consumer(jms.queue)
        await nothing(consumer)
        await context.start()
        assert texts(await take(consumer, 1)) == ["a"]


async def test_the_connection_knows_its_broker(jms: Jms) -> None:
    """S119."""
    connection = await jms.connection()
    metadata = connection.metadata
    assert metadata.protocol == {"amqp": "AMQP 1.0", "stomp": "STOMP 1.2"}[jms.target.protocol]
    assert metadata.broker_name == jms.ways.product
    assert metadata.broker_version
    assert metadata.provider_version
    assert ("DELAYED_DELIVERY" in connection.capabilities) == (jms.target.protocol == "amqp")  # as offered
    assert "durable-subscription" in connection.capabilities


# -- client ids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["argument", "URL", "setter"])
async def test_a_client_id_is_given_once_in_one_of_three_ways(jms: Jms, how: str) -> None:
    """S122."""
    name = jms.queue.name
    url = f"{jms.url}?jms.clientID={name}" if how == "URL" else jms.url
    connection = await jms.connection(url, started=False, client_id=name if how == "argument" else None)
    if how == "setter":
        assert connection.client_id is None
        await connection.set_client_id(name)
    assert connection.client_id == name
    with pytest.raises(IllegalStateException, match="S122"):
        await connection.set_client_id("another")
    assert connection.client_id == name
    await (await (await connection.create_session()).create_producer(jms.queue)).send("it still works")


@pytest.mark.parametrize(
    "use", [lambda connection: connection.start(), lambda connection: connection.create_session()],
    ids=["start", "create_session"],
)  # fmt: skip
async def test_a_client_id_comes_before_any_use(jms: Jms, use: Callable[[aio.Connection], Awaitable[Any]]) -> None:
    """S122."""
    connection = await jms.connection(started=False)
    await use(connection)
    with pytest.raises(IllegalStateException, match="S122"):
        await connection.set_client_id("late")


@pytest.mark.parametrize("client_id", ["", "  "])
async def test_an_empty_client_id_is_refused(jms: Jms, client_id: str) -> None:
    """S122."""
    connection = await jms.connection(started=False)
    with pytest.raises(InvalidClientIDException):
        await connection.set_client_id(client_id)
    await connection.set_client_id(jms.queue.name)
    with pytest.raises(InvalidClientIDException):
        await jms.connection(client_id=client_id)


@not_on("stomp-artemis", "STOMP: a client id may be used any number of times")
@pytest.mark.parametrize("how", ["argument", "setter"])
async def test_a_client_id_in_use_is_refused_and_free_again_after_close(jms: Jms, how: str) -> None:
    """S122."""
    name = jms.queue.name
    first = await jms.connection(client_id=name)

    async def second() -> aio.Connection:
        if how == "argument":
            return await jms.connection(client_id=name)
        connection = await jms.connection(started=False)
        await connection.set_client_id(name)
        return connection

    with pytest.raises(InvalidClientIDException):
        await second()
    await first.close()
    assert (await second()).client_id == name


# -- refused connections --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "login",
    [{"username": "alice", "password": "wrong"}, {"username": "nobody", "password": "wonderland"}, {}],
    ids=["wrong password", "unknown user", "anonymous"],
)
async def test_a_refused_login_is_a_security_error_that_shows_no_password(
    jms: Jms, secured_broker: Served, login: dict[str, Any]
) -> None:
    """S129."""
    with pytest.raises(JMSSecurityException) as raised:
        await jms.connection(secured_broker.amqp_url, **login)
    assert isinstance(raised.value, PermissionError)
    assert "wrong" not in str(raised.value)


@pytest.mark.option("jms.password", "amqp", "stomp")
@pytest.mark.option("jms.username", "amqp", "stomp")
@pytest.mark.parametrize("how", ["factory", "options", "create_connection"])
async def test_the_right_login_gets_in(jms: Jms, secured_broker: Served, how: str) -> None:
    """S129."""
    url = secured_broker.amqp_url
    if how == "factory":
        await jms.connection(url, username="alice", password="wonderland")
    elif how == "options":
        await jms.connection(url, options={"jms.username": "alice", "jms.password": "wonderland"})
    else:
        factory = jms.factory(url, username="alice", password="wrong")
        async with factory.create_connection("alice", "wonderland") as connection:
            await connection.start()


async def test_an_absent_broker_is_an_error_with_its_cause(jms: Jms) -> None:
    """S128, S129."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound and not listening: the port refuses
        url = f"amqp://127.0.0.1:{reserved.getsockname()[1]}"
        with pytest.raises(ConnectionLostException, match=url) as raised:
            await asyncio.wait_for(jms.connection(url), PATIENCE)
    assert isinstance(raised.value.__cause__, OSError)


@pytest.mark.option("jms.connectTimeout", "amqp", "stomp")
async def test_a_silent_broker_is_an_error_bounded_in_time(jms: Jms) -> None:
    """S129: a socket that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"amqp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RequestTimedOutException, match=r"jms\.connectTimeout"):
            await asyncio.wait_for(jms.connection(url, options={"jms.connectTimeout": 200}), PATIENCE)


async def test_something_else_than_a_broker_is_an_error(jms: Jms) -> None:
    """S129."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"amqp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(ConnectionLostException):
            await asyncio.wait_for(jms.connection(url), PATIENCE)


async def test_the_port_of_the_other_protocol_is_named(
    jms: Jms, broker: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S129: Artemis says nothing at all there, so that the client has to ask; ``jms.connectTimeout`` is not awaited."""
    monkeypatch.setattr("pyjmsack.io.inquiry._asked", {})
    mine, other = ("amqp", "stomp") if jms.target.protocol == "amqp" else ("stomp", "amqp")
    url = getattr(broker, f"{other}_url").replace(f"{other}://", f"{mine}://").partition("?")[0]
    with pytest.raises(ConnectionLostException, match=rf"speaks {other.upper()}, not {mine.upper()}: use {other}://"):
        await asyncio.wait_for(jms.connection(url), PATIENCE)


async def test_a_port_without_tls_is_named(jms: Jms, broker: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """S129: Artemis says nothing at all there, and Classic says something that is no TLS."""
    monkeypatch.setattr("pyjmsack.io.inquiry._asked", {})
    scheme = {"amqp": "amqps", "stomp": "stomp+ssl"}[jms.target.protocol]
    plain = getattr(broker, f"{jms.target.protocol}_url").partition("?")[0]
    url = f"{scheme}://{plain.partition('://')[2]}?transport.trustAll=true"
    with pytest.raises(JMSException, match=r"speaks (AMQP|STOMP), not TLS|does not speak TLS") as caught:
        await asyncio.wait_for(jms.connection(url), PATIENCE)
    assert not isinstance(caught.value, RequestTimedOutException)


@pytest.mark.option("jms.requestTimeout", "amqp", "stomp")
async def test_a_request_without_an_answer_is_an_error_bounded_in_time(jms: Jms) -> None:
    """S129, jms.requestTimeout."""
    wire = jms.wire()
    connection = await jms.connection(wire.url, options={"jms.requestTimeout": 1500, "jms.closeTimeout": 200})
    session = await connection.create_session()
    wire.swallow_replies()
    calls = {"consumer": lambda: session.create_consumer(jms.queue)}
    if jms.target.protocol == "amqp":  # STOMP has no frames for these
        calls |= {"producer": session.create_producer, "session": connection.create_session}
    for call in calls.values():
        with pytest.raises(RequestTimedOutException, match=r"jms\.requestTimeout"):
            await call()


async def test_an_invalid_selector_is_refused_and_the_session_goes_on(jms: Jms) -> None:
    """S129, S187."""
    session = await jms.session()
    for selector in ("region = = 1", "'", "a = 'unclosed"):
        with pytest.raises(InvalidSelectorException):
            await session.create_consumer(jms.queue, selector)
    await nothing(await session.create_consumer(jms.queue, "   "))


# -- lost connections -----------------------------------------------------------------------------------------------


async def test_a_lost_connection_is_reported_once_and_wakes_every_blocked_receive(jms: Jms) -> None:
    """S128: the receivers get an error, not None."""
    wire = jms.wire()
    connection = await jms.connection(wire.url)
    errors = Heard[JMSException]()
    connection.exception_listener = errors
    consumers = [
        await (await connection.create_session()).create_consumer(jms.queue_with(f"consumer.prefetchSize={prefetch}"))
        for prefetch in (0, 10)
    ]
    blocked = [asyncio.create_task(consumers[0].receive()), asyncio.create_task(consumers[1].receive(timeout=PATIENCE))]
    await asyncio.wait(blocked, timeout=0.05)
    wire.cut()
    for each in blocked:
        with pytest.raises(ConnectionLostException):
            await each
    assert isinstance(await errors.next(), ConnectionLostException)
    await connection.close()
    assert errors.silent


LOST: dict[str, Callable[[aio.Connection, aio.Session, aio.MessageConsumer, aio.MessageProducer], Any]] = {
    "receive": lambda connection, session, consumer, producer: consumer.receive(timeout=PATIENCE),
    "receive for ever": lambda connection, session, consumer, producer: consumer.receive(),
    "receive_nowait": lambda connection, session, consumer, producer: consumer.receive_nowait(),
    "receive_body": lambda connection, session, consumer, producer: consumer.receive_body(str),
    "send": lambda connection, session, consumer, producer: producer.send("x"),
    "commit": lambda connection, session, consumer, producer: session.commit(),
    "create_producer": lambda connection, session, consumer, producer: session.create_producer(),
    "create_session": lambda connection, session, consumer, producer: connection.create_session(),
    "start": lambda connection, session, consumer, producer: connection.start(),
}


@pytest.mark.parametrize("call", LOST)
async def test_every_call_after_a_lost_connection_says_so(jms: Jms, call: str) -> None:
    """S128."""
    wire = jms.wire()
    connection = await jms.connection(wire.url)
    errors = Heard[JMSException]()
    connection.exception_listener = errors
    session = await connection.create_session(AckMode.SESSION_TRANSACTED)
    consumer, producer = await session.create_consumer(jms.queue), await session.create_producer(jms.queue)
    wire.cut()
    await errors.next()
    for _ in range(2):
        with pytest.raises(ConnectionLostException):
            await LOST[call](connection, session, consumer, producer)


async def test_a_killed_broker_is_a_lost_connection_and_durable_messages_are_there_after_its_restart(
    jms: Jms, mortal_brokers: Callable[[str], Embedded]
) -> None:
    """S128, S75: what a transaction had not committed never happened."""
    broker = mortal_brokers(jms.target.broker)
    jms.url = getattr(broker, f"{jms.target.protocol}_url")
    await jms.send("a")
    session = await jms.session(AckMode.SESSION_TRANSACTED)
    consumer, producer = await session.create_consumer(jms.queue), await session.create_producer(jms.queue)
    await take(consumer, 1)
    await producer.send("never")
    loop = asyncio.get_running_loop()
    blocked = asyncio.create_task(consumer.receive())
    await asyncio.wait({blocked}, timeout=0.05)
    try:
        await loop.run_in_executor(None, broker.kill)
        with pytest.raises(ConnectionLostException):
            await blocked
    finally:
        await loop.run_in_executor(None, broker.start)
    await jms.left("a")


async def test_a_raising_exception_listener_harms_nobody(jms: Jms) -> None:
    """S127."""
    wire = jms.wire()
    lost, other = await jms.connection(wire.url), await jms.consumer()
    told = Gate()

    def listener(error: JMSException) -> None:
        told.open()
        raise RuntimeError("on purpose")

    lost.exception_listener = listener
    wire.cut()
    await told.passed()
    await jms.send("a")
    assert texts(await take(other, 1)) == ["a"]


async def test_an_exception_listener_may_close_the_connection(jms: Jms) -> None:
    """S127, S123: the usual reaction."""
    wire = jms.wire()
    connection = await jms.connection(wire.url)
    closed = Gate()

    async def listener(error: JMSException) -> None:
        await connection.close()
        closed.open()

    connection.exception_listener = listener
    wire.cut()
    await closed.passed()
    with pytest.raises(IllegalStateException):
        await connection.create_session()


async def test_an_exception_listener_must_be_callable(jms: Jms) -> None:
    """S127."""
    connection = await jms.connection()
    with pytest.raises(TypeError):
        connection.exception_listener = 1
    connection.exception_listener = None


async def test_a_connection_that_goes_down_leaves_other_connections_alone(jms: Jms) -> None:
    """S128."""
    wire = jms.wire()
    await jms.session(url=wire.url)
    session = await jms.session()
    listener = Completed()
    producer = await session.create_producer(jms.queue)
    wire.cut()
    await producer.send("a", completion_listener=listener)
    assert (await listener.heard.next())[1] is None
    await jms.left("a")


@only_on("artemis", "Classic puts nobody out unless its configuration says so")
async def test_a_consumer_that_the_broker_finds_too_slow_hears_of_it_and_its_messages_stay(jms: Jms) -> None:
    """S60, S128: Artemis ends its connection."""
    jms.queue = Queue(f"slow.{jms.queue.name}")
    await jms.send(*map(str, range(30)))
    connection = await jms.connection()
    connection.exception_listener = heard = Heard[JMSException]()
    session = await connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)
    consumer = await session.create_consumer(jms.queue_with("consumer.prefetchSize=5"))
    with suppress(ConnectionLostException):  # on a busy machine the broker may end the connection before that
        (message,) = await take(consumer, 1)
        assert message.body == "0"
    assert isinstance(await heard.next(), ConnectionLostException)
    with pytest.raises(ConnectionLostException):
        await consumer.receive(timeout=60)
    await jms.left(*map(str, range(30)))

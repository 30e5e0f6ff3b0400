"""Topics and their subscriptions on a real broker (S13, S67, S140-S149)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from shared_brokers import Served

from contract.brokers import not_on
from contract.harness import PATIENCE, Heard, Jms, counts, nothing, take, texts
from pyjmsack import (
    AckMode,
    DeliveryMode,
    IllegalStateException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    Message,
    TextMessage,
    Topic,
    aio,
)

NAME = "sub"
NO_SHARED = not_on("classic", "13: shared subscriptions are not shared")
FEW_SHARED = not_on("stomp", "STOMP: shared are durable subscriptions of one client id, and no others")
SHARED_KINDS = [
    pytest.param("create_shared_consumer", marks=[NO_SHARED, FEW_SHARED]),
    pytest.param("create_shared_durable_consumer", marks=NO_SHARED),
]
DURABLE, SHARED, SHARED_DURABLE = "create_durable_consumer", "create_shared_consumer", "create_shared_durable_consumer"


@pytest.fixture
def topic(jms: Jms) -> Topic:
    """A topic that is this test's alone."""
    return Topic(f"topic-of-{jms.queue.name}")


@pytest.fixture
def client_id(jms: Jms) -> str:
    """A client id that is this test's alone."""
    return f"client-of-{jms.queue.name}"


async def publish(jms: Jms, topic: Topic, *bodies: str, **properties: Any) -> None:
    """Send to a topic, on a connection of its own."""
    async with jms.factory().create_connection() as connection, connection.create_session() as session:
        await send(session, topic, *bodies, **properties)


async def send(session: aio.Session, topic: Topic, *bodies: str, **properties: Any) -> None:
    """Send to a topic."""
    async with session.create_producer(topic) as producer:
        for body in bodies:
            message = TextMessage(body)
            message.properties.update(properties)
            await producer.send(message)


async def session_of(jms: Jms, mode: int = AckMode.AUTO_ACKNOWLEDGE, **login: str) -> aio.Session:
    """Return a session on a started connection of its own."""
    return await (await jms.connection(**login)).create_session(mode)


# -- plain ------------------------------------------------------------------------------------------------------


async def test_every_subscriber_of_a_topic_gets_what_is_sent_while_it_exists(jms: Jms, topic: Topic) -> None:
    """S140."""
    session = await jms.session()
    await publish(jms, topic, "too early")
    first, second = await session.create_consumer(topic), await session.create_consumer(topic)
    await publish(jms, topic, "a", "b")
    assert texts(await take(first, 2)) == texts(await take(second, 2)) == ["a", "b"]
    await second.close()
    await publish(jms, topic, "c")
    assert texts(await take(first, 1)) == ["c"]
    late = await session.create_consumer(topic)
    await nothing(late)


async def test_one_session_serves_queues_and_topics_and_one_producer_sends_to_all(jms: Jms, topic: Topic) -> None:
    """S13, S67: an anonymous producer, many destinations."""
    session = await jms.session()
    temporary = await session.create_temporary_queue()
    places = [jms.queue, topic, temporary, await session.create_temporary_topic()]
    consumers = [await session.create_consumer(place) for place in places]
    producer = await session.create_producer()
    for turn in "ab":
        for place in places:
            await producer.send(f"{turn} for {place.name}", place)
    for place, consumer in zip(places, consumers, strict=True):
        found = await take(consumer, 2)
        assert texts(found) == [f"a for {place.name}", f"b for {place.name}"]
        assert {message.destination for message in found} == {place}
        await nothing(consumer)


# -- durable ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["consumer", "session", "connection"])
async def test_a_durable_subscription_keeps_messages_for_an_absent_consumer(
    jms: Jms, topic: Topic, client_id: str, end: str
) -> None:
    """S141, S148: whatever was closed."""
    connection = await jms.connection(client_id=client_id)
    session = await connection.create_session()
    consumer = await session.create_durable_consumer(topic, NAME)
    await publish(jms, topic, "a")
    assert texts(await take(consumer, 1)) == ["a"]
    await {"consumer": consumer, "session": session, "connection": connection}[end].close()
    await publish(jms, topic, "b", "c")
    if end == "connection":
        connection = await jms.connection(client_id=client_id)
    if end != "consumer":
        session = await connection.create_session()
    again = await session.create_durable_consumer(topic, NAME)
    assert texts(await take(again, 2)) == ["b", "c"]
    await nothing(again)


async def test_a_durable_subscription_survives_a_lost_connection(jms: Jms, topic: Topic, client_id: str) -> None:
    """S141: only unsubscribe ends it."""
    wire = jms.wire()
    connection = await jms.connection(wire.url, client_id=client_id)
    consumer = await (await connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)).create_durable_consumer(topic, NAME)
    await publish(jms, topic, "a")
    await take(consumer, 1)
    wire.cut()
    await publish(jms, topic, "b")
    session = await session_of(jms, client_id=client_id)
    assert texts(await take(await session.create_durable_consumer(topic, NAME), 2)) == ["a", "b"]


async def test_unacknowledged_messages_of_a_durable_subscription_come_again(
    jms: Jms, topic: Topic, client_id: str
) -> None:
    """S30, S141: counted, and before newer ones. Classic counts all that it had sent ahead on a topic (10).

    Over STOMP the connection itself remembers the counts of what it had.
    """
    connection = await jms.connection(client_id=client_id)
    session = await connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)
    consumer = await session.create_durable_consumer(topic, NAME)
    await publish(jms, topic, "a", "b")
    await take(consumer, 1)
    await session.close()
    await publish(jms, topic, "c")
    again = await (await connection.create_session()).create_durable_consumer(topic, NAME)
    found = await take(again, 3)
    assert (texts(found), counts(found)) == (
        ["a", "b", "c"],
        [2, 2, 1] if jms.target.named("amqp-classic") else [2, 1, 1],
    )


async def test_one_durable_consumer_at_a_time(jms: Jms, topic: Topic, client_id: str) -> None:
    """S141: in any session of the connection; the first one goes on."""
    connection = await jms.connection(client_id=client_id)
    first = await (await connection.create_session()).create_durable_consumer(topic, NAME)
    other = await connection.create_session()
    with pytest.raises(IllegalStateException):
        await other.create_durable_consumer(topic, NAME)
    await other.create_durable_consumer(topic, f"{NAME}-2")
    await publish(jms, topic, "a")
    assert texts(await take(first, 1)) == ["a"]


async def test_unsubscribing_deletes_a_subscription_with_its_messages(jms: Jms, topic: Topic, client_id: str) -> None:
    """S141: not while a consumer is active, and not twice."""
    session = await session_of(jms, client_id=client_id)
    consumer = await session.create_durable_consumer(topic, NAME)
    with pytest.raises(IllegalStateException):
        await session.unsubscribe(NAME)
    await publish(jms, topic, "a")
    assert texts(await take(consumer, 1)) == ["a"]
    await consumer.close()
    await publish(jms, topic, "b")
    await session.unsubscribe(NAME)
    if not jms.target.named("stomp-artemis"):  # there an UNSUBSCRIBE of what is not there is confirmed (STOMP)
        with pytest.raises(InvalidDestinationException, match=NAME):
            await session.unsubscribe(NAME)
    await nothing(await session.create_durable_consumer(topic, NAME))


async def test_a_durable_subscription_needs_a_client_id_of_the_users(jms: Jms, topic: Topic, client_id: str) -> None:
    """S141: also one that is set late (S122)."""
    with pytest.raises(IllegalStateException, match="client id"):
        await (await jms.session()).create_durable_consumer(topic, NAME)
    connection = await jms.connection(started=False)
    await connection.set_client_id(client_id)
    await connection.start()
    session = await connection.create_session()
    await (await session.create_durable_consumer(topic, NAME)).close()
    await session.unsubscribe(NAME)


async def test_durable_subscriptions_of_different_client_ids_are_different(
    jms: Jms, topic: Topic, client_id: str
) -> None:
    """S141: identity is client id and name."""
    sessions = [await session_of(jms, client_id=f"{client_id}-{number}") for number in range(2)]
    consumers = [await session.create_durable_consumer(topic, NAME) for session in sessions]
    await publish(jms, topic, "a")
    assert [texts(await take(consumer, 1)) for consumer in consumers] == [["a"], ["a"]]


@not_on("stomp-artemis", "STOMP: a durable subscription is kept as it was made")
@pytest.mark.parametrize("change", ["topic", "selector", "no_local"])
async def test_another_topic_selector_or_no_local_starts_anew(
    jms: Jms, topic: Topic, client_id: str, change: str
) -> None:
    """S142: what the old subscription kept is gone."""
    session = await session_of(jms, client_id=client_id)
    await (await session.create_durable_consumer(topic, NAME, "kind = 1")).close()
    await publish(jms, topic, "old", kind=1)
    new = Topic(f"{topic.name}.new") if change == "topic" else topic
    selector = "kind < 3" if change == "selector" else "kind = 1"
    consumer = await session.create_durable_consumer(new, NAME, selector, no_local=change == "no_local")
    await publish(jms, new, "new", kind=1)
    await publish(jms, new, "other", kind=4)
    assert texts(await take(consumer, 1)) == ["new"]
    await nothing(consumer)
    await consumer.close()
    await publish(jms, new, "kept", kind=1)
    same = await session.create_durable_consumer(new, NAME, selector, no_local=change == "no_local")
    assert texts(await take(same, 1)) == ["kept"]


@pytest.mark.parametrize("durable", [False, True])
async def test_no_local_hides_what_the_own_connection_sent(
    jms: Jms, topic: Topic, client_id: str, durable: bool
) -> None:
    """S147."""
    session = await session_of(jms, client_id=client_id)
    if durable:
        consumer = await session.create_durable_consumer(topic, NAME, no_local=True)
    else:
        consumer = await session.create_consumer(topic, no_local=True)
    await send(session, topic, "mine")
    await publish(jms, topic, "theirs")
    assert texts(await take(consumer, 1)) == ["theirs"]
    await nothing(consumer)


@pytest.mark.parametrize("durable", [False, True])
async def test_no_local_with_a_selector_hides_what_the_own_connection_sent(
    jms: Jms, topic: Topic, client_id: str, durable: bool
) -> None:
    """S147: Artemis joins both by AND, without parentheses."""
    session = await session_of(jms, client_id=client_id)
    selector = "kind = 'a' OR kind = 'b'"
    if durable:
        consumer = await session.create_durable_consumer(topic, NAME, selector, no_local=True)
    else:
        consumer = await session.create_consumer(topic, selector, no_local=True)
    await send(session, topic, "mine", kind="a")
    await send(session, topic, "mine", kind="b")
    await publish(jms, topic, "unwanted", kind="c")
    await publish(jms, topic, "theirs", kind="a")
    await publish(jms, topic, "theirs", kind="b")
    assert texts(await take(consumer, 2)) == ["theirs", "theirs"]
    await nothing(consumer)


OF_HEADERS = [
    ("JMSPriority > 3", ["end"]),
    ("JMSPriority BETWEEN 8 AND 9", ["end"]),
    ("NOT (JMSPriority = 1)", ["end"]),
    ("JMSDeliveryMode = 'PERSISTENT'", ["end"]),
    ("JMSDeliveryMode IN ('PERSISTENT')", ["end"]),
    ("JMSTimestamp > 0", ["low", "end"]),
    ("JMSMessageID LIKE 'ID:%'", ["low", "end"]),
    ("JMSMessageID <> 'ID:1'", ["low", "end"]),
    ("JMSXGroupID = 'g'", ["end"]),
    ("JMSXGroupID IS NOT NULL", ["end"]),
    ("JMSType LIKE 'T%' AND JMSCorrelationID IN ('c')", ["end"]),
]
"""Selectors of headers, and what they select. Each selects the last message, so a message too many would be seen."""


@pytest.mark.parametrize("kind", ["create_consumer", DURABLE, *SHARED_KINDS])
async def test_a_topic_selects_by_headers_from_senders_of_each_protocol(
    jms: Jms, brokers: Callable[[str], Served], topic: Topic, client_id: str, kind: str
) -> None:
    """S149: over AMQP, Artemis has other names for the headers of a topic, and the consumer got nothing."""
    session = await session_of(jms, client_id=client_id)
    broker = brokers(jms.target.broker)
    urls = [broker.amqp_url, broker.stomp_url] if jms.target.broker == "artemis" else [None]
    consumers = []
    for number, (selector, _) in enumerate(OF_HEADERS):
        name = () if kind == "create_consumer" else (f"{NAME}{number}",)
        consumers.append(await getattr(session, kind)(topic, *name, selector))
    for url in urls:
        async with jms.factory(url).create_connection() as connection, connection.create_session() as sending:
            producer = await sending.create_producer(topic)
            await producer.send("low", priority=1, delivery_mode=DeliveryMode.NON_PERSISTENT)
            message = TextMessage("end")
            message.type, message.correlation_id = "T", "c"
            message.properties["JMSXGroupID"] = "g"
            await producer.send(message, priority=9)
        for consumer, (selector, selected) in zip(consumers, OF_HEADERS, strict=True):
            received = sorted(texts(await take(consumer, len(selected))), reverse=True)
            assert received == selected, (selector, url)
            await nothing(consumer)


@pytest.mark.parametrize("kind", [DURABLE, *SHARED_KINDS])
async def test_a_subscription_with_a_selector_gets_what_it_selects(
    jms: Jms, topic: Topic, client_id: str, kind: str
) -> None:
    """S149; a selector that the broker refuses frees the name."""
    session = await session_of(jms, client_id=client_id)
    with pytest.raises(InvalidSelectorException):
        await getattr(session, kind)(topic, NAME, "kind = = 1")
    consumer = await getattr(session, kind)(topic, NAME, "kind = 1")
    await publish(jms, topic, "a", "b", kind=1)
    await publish(jms, topic, "x", kind=2)
    assert texts(await take(consumer, 2)) == ["a", "b"]
    await nothing(consumer)


async def test_a_durable_consumer_takes_part_in_transactions(jms: Jms, topic: Topic, client_id: str) -> None:
    """S77, S80, S141."""
    session = await session_of(jms, AckMode.SESSION_TRANSACTED, client_id=client_id)
    durable, plain = await session.create_durable_consumer(topic, NAME), await session.create_consumer(jms.queue)
    await publish(jms, topic, "a")
    await jms.send("q")
    for end in (session.rollback, session.commit):
        assert texts([*await take(durable, 1), *await take(plain, 1)]) == ["a", "q"]
        await end()
    await nothing(durable)
    await nothing(plain)


@NO_SHARED
@FEW_SHARED
async def test_a_context_subscribes_and_starts_by_itself(jms: Jms, topic: Topic, client_id: str) -> None:
    """S150: the simplified interface has the same calls."""
    async with jms.factory(client_id=client_id).create_context() as context:
        consumers = [
            await getattr(context, kind)(topic, f"{NAME}-{kind}") for kind in (DURABLE, SHARED, SHARED_DURABLE)
        ]
        await publish(jms, topic, "a")
        assert [texts(await take(consumer, 1)) for consumer in consumers] == [["a"]] * 3


async def test_a_durable_subscriber_may_have_a_listener(jms: Jms, topic: Topic, client_id: str) -> None:
    """S141."""
    heard: Heard[Message] = Heard()
    session = await session_of(jms, client_id=client_id)
    consumer = await session.create_durable_consumer(topic, NAME)
    consumer.message_listener = heard
    await publish(jms, topic, "a", "b")
    assert texts(await heard.take(2)) == ["a", "b"]


# -- shared -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["client id", pytest.param("global", marks=FEW_SHARED)])
@pytest.mark.parametrize("kind", SHARED_KINDS)
async def test_each_message_goes_to_one_of_the_shared_consumers(
    jms: Jms, topic: Topic, client_id: str, kind: str, scope: str
) -> None:
    """S143: in sessions of one connection, and without a client id across connections."""
    login = {"client_id": client_id} if scope == "client id" else {}
    name = f"{NAME}-{topic.name}"
    connection = await jms.connection(**login)
    others = [connection, connection if login else await jms.connection()]
    sessions = [await each.create_session() for each in others]
    consumers = [await getattr(session, kind)(topic, name) for session in sessions]
    bodies = [str(number) for number in range(20)]
    await publish(jms, topic, *bodies)
    shares = [texts(await take(consumer, 10)) for consumer in consumers]
    assert sorted([*shares[0], *shares[1]], key=int) == bodies
    for consumer in consumers:
        await nothing(consumer)


@NO_SHARED
@FEW_SHARED
@pytest.mark.parametrize("scope", ["client id", "global"])
async def test_a_shared_durable_subscription_lives_until_it_is_unsubscribed(
    jms: Jms, topic: Topic, client_id: str, scope: str
) -> None:
    """S143, S148; a volatile one ends with its last consumer."""
    login = {"client_id": client_id} if scope == "client id" else {}
    name = f"{NAME}-{topic.name}"
    connection = await jms.connection(**login)
    session = await connection.create_session()
    for kind in (SHARED_DURABLE, SHARED_DURABLE, SHARED):
        await getattr(session, kind)(topic, name)
    await session.close()
    await publish(jms, topic, "a")
    session = await connection.create_session()
    await nothing(await session.create_shared_consumer(topic, name))
    consumer = await session.create_shared_durable_consumer(topic, name)
    assert texts(await take(consumer, 1)) == ["a"]
    await consumer.close()
    await publish(jms, topic, "b")
    await session.unsubscribe(name)
    await nothing(await session.create_shared_durable_consumer(topic, name))


@NO_SHARED
@FEW_SHARED
async def test_shared_and_unshared_durable_ones_of_one_name_exclude_each_other(
    jms: Jms, topic: Topic, client_id: str
) -> None:
    """S143; a volatile shared one has a name of its own."""
    session = await session_of(jms, client_id=client_id)
    durable = await session.create_durable_consumer(topic, NAME)
    with pytest.raises(IllegalStateException, match="exclude"):
        await session.create_shared_durable_consumer(topic, NAME)
    volatile = await session.create_shared_consumer(topic, NAME)
    await publish(jms, topic, "a")
    assert texts([*await take(durable, 1), *await take(volatile, 1)]) == ["a", "a"]


@NO_SHARED
@FEW_SHARED
async def test_unsubscribing_while_another_connection_consumes_raises(jms: Jms, topic: Topic) -> None:
    """S141, S143: Artemis would keep the subscription and say nothing."""
    name = f"{NAME}-{topic.name}"
    active = await (await jms.session()).create_shared_durable_consumer(topic, name)
    session = await jms.session()
    with pytest.raises(IllegalStateException, match="another connection"):
        await session.unsubscribe(name)
    await publish(jms, topic, "a")
    assert texts(await take(active, 1)) == ["a"]
    await active.close()
    await session.unsubscribe(name)


@not_on("classic", "13: no management by messages")
@not_on("stomp", "STOMP: its consumers are closed with their connection")
async def test_a_durable_subscription_survives_a_broker_that_closes_its_consumer(
    jms: Jms, topic: Topic, client_id: str
) -> None:
    """S126, S141: an administrator may do that."""
    session = await session_of(jms, client_id=client_id)
    consumer = await session.create_durable_consumer(topic, NAME)
    (mine,) = await jms.consumers_of(f"{client_id}.{NAME}")
    assert await jms.manage("closeConsumerWithID", mine["session"], mine["id"])
    with pytest.raises(JMSException, match="the broker closed the consumer"):
        await consumer.receive(PATIENCE)
    await consumer.close()
    await publish(jms, topic, "a")
    assert texts(await take(await session.create_durable_consumer(topic, NAME), 1)) == ["a"]


@NO_SHARED
@FEW_SHARED
async def test_shared_consumers_of_other_connections_must_have_the_same_selector_too(jms: Jms, topic: Topic) -> None:
    """S143: the broker looks beyond one connection; the active consumer goes on."""
    name = f"{NAME}-{topic.name}"
    active = await (await jms.session()).create_shared_durable_consumer(topic, name, "kind = 1")
    with pytest.raises(IllegalStateException):
        await (await jms.session()).create_shared_durable_consumer(topic, name, "kind = 2")
    await publish(jms, topic, "a", kind=1)
    assert texts(await take(active, 1)) == ["a"]

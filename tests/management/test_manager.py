"""The manager asks real brokers and changes them: Artemis by messages in both protocols, Classic by Jolokia."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator

import pytest
from managed_brokers import Managed
from polling import wait_until
from shared_brokers import Served

from pyjmsack import (
    AckMode,
    ConnectionFactory,
    InvalidSelectorException,
    Message,
    Queue,
    UnsupportedFeatureException,
    aio,
)
from pyjmsack.management import ManagementDeniedError, Manager, UnknownQueueError
from pyjmsack.management import aio as aio_management
from pyjmsack.management.artemis import removal_message


@pytest.fixture
def manager(managed: Managed) -> Iterator[Manager]:
    """A manager of each broker."""
    with Manager(ConnectionFactory(managed.amqp_url), jolokia=managed.jolokia) as made:
        yield made


def put(url: str, queue: str, count: int) -> None:
    """Send numbered messages with the property ``n``."""
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(Queue(queue))
        for number in range(count):
            message = session.create_text_message(f"message {number}")
            message.properties["n"] = number
            producer.send(message)


def test_the_status_of_a_queue_counts_its_messages(manager: Manager, managed: Managed, queue_name: str) -> None:
    put(managed.amqp_url, queue_name, 3)
    status = manager.queue(queue_name)
    assert (status.name, status.messages, status.consumers, status.paused) == (queue_name, 3, 0, False)
    assert [each.name for each in manager.queues(f"{queue_name[:-1]}?")] == [queue_name]
    assert manager.count(queue_name) == 3


def test_an_unknown_queue_is_told_with_the_nearest_names(manager: Manager, managed: Managed, queue_name: str) -> None:
    put(managed.amqp_url, queue_name, 1)
    with pytest.raises(UnknownQueueError) as caught:
        manager.queue(queue_name.upper() + "x")
    assert caught.value.nearest[0] == queue_name
    assert queue_name in str(caught.value)


def test_a_move_takes_what_the_selector_fits_up_to_the_limit(
    manager: Manager, managed: Managed, queue_name: str
) -> None:
    put(managed.amqp_url, queue_name, 5)
    target = f"{queue_name}.target"
    with pytest.raises(UnknownQueueError):
        manager.move(queue_name, target)
    manager.create_queue(target)
    manager.create_queue(target)
    assert manager.move(queue_name, target, "n >= 2", limit=2) == 2
    assert (manager.queue(queue_name).messages, manager.queue(target).messages) == (3, 2)
    assert manager.move(queue_name, target) == 3


def test_a_purge_destroys_what_the_selector_fits_and_says_how_many(
    manager: Manager, managed: Managed, queue_name: str
) -> None:
    put(managed.amqp_url, queue_name, 5)
    assert manager.purge(queue_name, "n < 2") == 2
    assert manager.purge(queue_name) == 3
    assert manager.queue(queue_name).messages == 0


def test_a_selector_that_the_broker_cannot_read_is_named(manager: Manager, managed: Managed, queue_name: str) -> None:
    put(managed.amqp_url, queue_name, 1)
    with pytest.raises(InvalidSelectorException):
        manager.purge(queue_name, "n = = 1")
    assert manager.queue(queue_name).messages == 1


def test_a_paused_queue_delivers_nothing_until_it_is_resumed(
    manager: Manager, managed: Managed, queue_name: str
) -> None:
    put(managed.amqp_url, queue_name, 1)
    manager.pause(queue_name)
    assert manager.queue(queue_name).paused
    with ConnectionFactory(managed.amqp_url).create_connection() as connection:
        connection.start()
        consumer = connection.create_session().create_consumer(Queue(queue_name))
        assert consumer.receive(0.2) is None
        manager.resume(queue_name)
        message = consumer.receive(60)
    assert message is not None
    assert not manager.queue(queue_name).paused


def test_consumers_and_connections_are_listed(manager: Manager, managed: Managed, queue_name: str) -> None:
    factory = ConnectionFactory(managed.amqp_url, client_id=f"id-{queue_name}")
    put(managed.amqp_url, queue_name, 1)
    with factory.create_connection() as connection:
        connection.create_session().create_consumer(Queue(queue_name), "n > 100")
        (consumer,) = manager.consumers(queue_name)
        assert (consumer.queue, consumer.delivering) == (queue_name, 0)
        assert "n > 100" in consumer.selector
        assert any(f"id-{queue_name}" in each.client_id for each in manager.connections())
        assert manager.queue(queue_name).consumers == 1


def test_dead_letters_go_back_to_where_each_came_from(manager: Manager, managed: Managed, queue_name: str) -> None:
    names = [queue_name, f"{queue_name}.other"]
    dead = "ActiveMQ.DLQ" if managed.jolokia else "DLQ"
    for name in names:
        put(managed.amqp_url, name, 2)
        reject_all(managed.amqp_url, name, 2)
    if managed.jolokia is not None:
        wait_until(lambda: manager.queue(dead).messages >= 4)
        with pytest.raises(UnsupportedFeatureException, match="loses the dead letters of a topic"):
            manager.retry(dead)
        assert manager.queue(dead).messages >= 4
        return
    chosen = [f"_AMQ_ORIG_QUEUE = '{name}'" for name in names]
    # Artemis writes a dead letter to its disk before anybody sees the letter
    wait_until(lambda: [manager.count(dead, selector) for selector in chosen] == [2, 2])
    assert manager.retry(dead, chosen[0]) == 2
    assert manager.queue(names[1]).messages == 0
    assert manager.retry(dead) >= 2
    wait_until(lambda: [manager.queue(name).messages for name in names] == [2, 2])


def test_a_letter_whose_queue_was_deleted_does_not_count_as_sent_back(
    manager: Manager, managed: Managed, queue_name: str
) -> None:
    """Artemis counted it, and the letter was still there."""
    if managed.jolokia is not None:
        return
    put(managed.amqp_url, queue_name, 2)
    reject_all(managed.amqp_url, queue_name, 2)
    manager.delete_queue(queue_name)
    chosen = f"_AMQ_ORIG_QUEUE = '{queue_name}'"
    wait_until(lambda: manager.count("DLQ", chosen) == 2)
    assert manager.retry("DLQ", chosen) == 0
    assert manager.count("DLQ", chosen) == 2
    manager.purge("DLQ", chosen)


def reject_all(url: str, queue: str, count: int) -> None:
    """Let the broker give up messages."""
    with ConnectionFactory(url).create_connection() as connection:
        connection.start()
        consumer = connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE).create_consumer(Queue(queue))
        for _ in range(count):
            message = consumer.receive(60)
            assert message is not None
            message.reject()


def test_the_broker_says_what_it_is(manager: Manager, managed: Managed) -> None:
    status = manager.broker()
    assert status.product == ("classic" if managed.jolokia else "artemis")
    assert status.version[0].isdigit()


def test_the_age_of_the_first_message_is_told_in_seconds(artemis: Managed, queue_name: str) -> None:
    with Manager(ConnectionFactory(artemis.amqp_url)) as manager:
        manager.create_queue(queue_name)
        assert manager.oldest(queue_name) is None
        put(artemis.amqp_url, queue_name, 1)
        age = manager.oldest(queue_name)
    assert age is not None
    assert 0 <= age < 60


def test_stomp_manages_artemis_too(brokers: Callable[[str], Served], queue_name: str) -> None:
    served = brokers("artemis")
    put(served.amqp_url, queue_name, 2)
    with Manager(ConnectionFactory(served.stomp_url)) as manager:
        assert manager.queue(queue_name).messages == 2
        assert manager.count(queue_name, "n = 1") == 1
        assert manager.purge(queue_name) == 2
        with pytest.raises(UnknownQueueError):
            manager.purge(f"{queue_name}.none")


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_temporary_queue_is_told_to_be_one(brokers: Callable[[str], Served], protocol: str) -> None:
    """Artemis takes those over STOMP for ordinary ones, and their names said nothing."""
    served = brokers("artemis")
    factory = ConnectionFactory(served.amqp_url if protocol == "amqp" else served.stomp_url)
    with factory.create_connection() as connection, connection.create_session() as session, Manager(factory) as manager:
        queue = session.create_temporary_queue()
        session.create_consumer(queue)
        assert manager.queue(queue.name).temporary


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
def test_a_manager_over_stomp_leaves_no_queue_behind(
    brokers: Callable[[str], Served], face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue of its replies stayed at a broker that keeps unused queues. Each look of a monitoring left one more."""
    served, used = brokers("artemis"), list[str]()

    def noted(request: Message) -> Message | None:
        assert request.reply_to is not None
        used.append(request.reply_to.name)
        return removal_message(request)

    async def ask() -> None:
        async with aio_management.Manager(aio.ConnectionFactory(served.stomp_url)) as manager:
            await manager.broker()

    monkeypatch.setattr("pyjmsack.management.client.removal_message", noted)
    monkeypatch.setattr("pyjmsack.management.aio.removal_message", noted)
    if face == "asyncio":
        asyncio.run(ask())
    else:
        with Manager(ConnectionFactory(served.stomp_url)) as manager:
            manager.broker()
    (name,) = used
    with Manager(ConnectionFactory(served.amqp_url)) as manager:
        wait_until(lambda: manager.queues(name) == [])


def test_an_asyncio_manager_opens_itself_once(
    brokers: Callable[[str], Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call asked Artemis as if it were Classic, and several first calls left connections open."""
    made: list[aio.Connection] = []
    start = aio.Connection.start

    async def noted(connection: aio.Connection) -> None:
        made.append(connection)
        await start(connection)

    async def ask() -> list[str]:
        manager = aio_management.Manager(aio.ConnectionFactory(brokers("artemis").amqp_url))
        told = [status.product for status in await asyncio.gather(*(manager.broker() for _ in range(3)))]
        await manager.close()
        return told

    monkeypatch.setattr(aio.Connection, "start", noted)
    assert asyncio.run(ask()) == ["artemis"] * 3
    assert [connection._core.closed for connection in made] == [True] * 3


def test_the_asyncio_manager_says_the_same(managed: Managed, queue_name: str) -> None:
    put(managed.amqp_url, queue_name, 2)

    async def ask() -> tuple[int, int]:
        factory = aio.ConnectionFactory(managed.amqp_url)
        async with aio_management.Manager(factory, jolokia=managed.jolokia) as manager:
            status = await manager.queue(queue_name)
            with pytest.raises(UnknownQueueError):
                await manager.purge(f"{queue_name}.none")
            return status.messages, await manager.purge(queue_name)

    assert asyncio.run(ask()) == (2, 2)


def test_both_faces_have_the_same_methods() -> None:
    names = [name for name, _ in inspect.getmembers(Manager, inspect.isfunction) if not name.startswith("_")]
    for name in names:
        blocking, asynchronous = getattr(Manager, name), getattr(aio_management.Manager, name)
        assert inspect.signature(blocking).parameters == inspect.signature(asynchronous).parameters
        assert inspect.iscoroutinefunction(asynchronous)
    assert len(names) > 10


def test_classic_without_jolokia_is_refused_with_the_next_step(classic: Managed) -> None:
    with pytest.raises(UnsupportedFeatureException, match="--jolokia"):
        Manager(ConnectionFactory(classic.amqp_url))


def test_a_user_who_may_not_manage_is_told_the_permission(guarded_url: str) -> None:
    factory = ConnectionFactory(guarded_url, username="alice", password="wonderland")
    refused = pytest.raises(ManagementDeniedError, match=r"may not manage.*permissions manage")
    with refused, Manager(factory) as manager:
        manager.queues()

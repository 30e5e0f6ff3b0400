"""The preferred broker is killed and comes back: the connection goes to the other one, and back (A.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from contract.harness import Heard, Jms, take, texts

from faults.faults_support import OPTIONS, url_of
from pyjmsack import AckMode
from pyjmsack.broker import EmbeddedArtemis

pytestmark = pytest.mark.xdist_group("backup")  # one worker, so that the other broker is started once


@pytest.fixture(scope="module")
def backup() -> Iterator[EmbeddedArtemis]:
    """The other broker."""
    with EmbeddedArtemis() as broker:
        yield broker


class Watch:
    """Hears where the connection is."""

    def __init__(self) -> None:
        self.restored: Heard[str] = Heard()

    def on_connection_restored(self, url: str) -> None:
        """It is somewhere again."""
        self.restored(url)


async def test_the_connection_goes_back_to_the_preferred_broker_when_that_is_there_again(
    jms: Jms, protocol: str, mortal: EmbeddedArtemis, backup: EmbeddedArtemis
) -> None:
    """S103, A.3 ``priorityBackup``: with its sessions, consumers and producers, and without losing a message."""
    first, second = url_of(jms, mortal), getattr(backup, f"{protocol}_url")
    url = f"failover:({second},{first})?{OPTIONS}&failover.priorityBackup=true&failover.priorityURIs={first}"
    connection = await jms.connection(url)
    watch = Watch()
    connection.add_connection_listener(watch)
    session = await connection.create_session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    producer = await session.create_producer(jms.queue)
    consumer = await session.create_consumer(jms.queue)
    assert connection.metadata.url == first
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, mortal.kill)
    assert await watch.restored.next() == second
    await producer.send("at the backup")
    (message,) = await take(consumer, 1)
    message.acknowledge()
    await loop.run_in_executor(None, mortal.restart)
    assert await watch.restored.next() == first
    await producer.send("at home")
    (message,) = await take(consumer, 1)
    assert message.body == "at home"
    message.acknowledge()
    assert watch.restored.silent
    await jms.close()
    for broker in (first, second):
        jms.url = broker
        assert texts(await jms.left()) == []


async def test_acknowledgements_that_wait_in_a_batch_reach_the_broker_that_is_left(
    jms: Jms, protocol: str, mortal: EmbeddedArtemis, backup: EmbeddedArtemis
) -> None:
    """S43: the messages came again at the broker that was left, for whoever asked it next."""
    first, second = url_of(jms, mortal), getattr(backup, f"{protocol}_url")
    url = f"failover:({first},{second})?{OPTIONS}&failover.priorityBackup=true"
    batches = {"jms.optimizeAcknowledge": True, "jms.optimizeAcknowledgeTimeOut": 0}
    connection = await jms.connection(url, options=batches)
    watch = Watch()
    connection.add_connection_listener(watch)
    session = await connection.create_session(AckMode.AUTO_ACKNOWLEDGE)
    producer = await session.create_producer(jms.queue)
    consumer = await session.create_consumer(jms.queue_with("consumer.prefetchSize=10"))
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, mortal.kill)
    assert await watch.restored.next() == second
    for body in ("a", "b"):
        await producer.send(body)
    assert texts(await take(consumer, 2)) == ["a", "b"]
    assert consumer.stats.unacknowledged == 2
    await loop.run_in_executor(None, mortal.restart)
    assert await watch.restored.next() == first
    jms.url = second
    await jms.left()

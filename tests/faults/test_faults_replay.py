"""Open transactions that are done again at the broker that comes back (S107)."""

from __future__ import annotations

import asyncio
import logging

import pytest
from contract.harness import Jms, nothing, take, texts

from faults.faults_support import failover_url, finish, url_of
from pyjmsack import AckMode, Queue, TransactionRolledBackException
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.soak.load import Load
from pyjmsack.testing import Wire

pytestmark = pytest.mark.timeout(600)
REPLAY = "failover.transactionReplay=true&jms.consumerFailoverRedeliveryWaitPeriod=60000"
"""More than the 20 seconds for which a link may take one message at a time (``providers/amqp/caution.py``)."""


@pytest.fixture(autouse=True)
def frames(caplog: pytest.LogCaptureFixture) -> None:
    """Keep the frames of a test, because its report shows them if the test fails."""
    caplog.set_level(logging.DEBUG, "pyjmsack")


@pytest.fixture(params=["cut", "kill"])
def how(request: pytest.FixtureRequest) -> str:
    """How the broker is lost."""
    return str(request.param)


async def test_a_transaction_that_received_and_sent_commits_after_the_connection_was_lost(
    jms: Jms, mortal: EmbeddedArtemis, how: str
) -> None:
    """S107: once, and nothing of it is handed out again."""
    onwards = Queue(f"{jms.queue.name}.out")
    await jms.send("a", "b", "c")
    with Wire(url_of(jms, mortal)) as wire:
        connection = await jms.connection(f"{failover_url(wire.url)}&{REPLAY}")
        session = await connection.create_session(AckMode.SESSION_TRANSACTED)
        consumer = await session.create_consumer(jms.queue)
        producer = await session.create_producer(onwards)
        for message in await take(consumer, 2):
            await producer.send(f"{message.text} again")
        if how == "cut":
            wire.cut()
            wire.heal()
        else:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, mortal.kill)
            await loop.run_in_executor(None, mortal.restart)
        (message,) = await take(consumer, 1)
        assert message.text == "c", "a and b are the transaction's already"
        await producer.send("c again")
        await session.commit()
        await nothing(consumer)
        await jms.close()
    jms.url = url_of(jms, mortal)
    await jms.left()
    jms.queue = onwards
    await jms.left("a again", "b again", "c again")


async def test_a_transaction_whose_messages_went_to_another_consumer_is_rolled_back(
    jms: Jms, mortal: EmbeddedArtemis
) -> None:
    """S107: "not replayed"; the other one has them, so nothing is lost and nothing is done twice."""
    await jms.send("a")
    with Wire(url_of(jms, mortal)) as wire:
        url = f"{failover_url(wire.url)}&failover.transactionReplay=true"
        session = await jms.session(AckMode.SESSION_TRANSACTED, url)
        consumer = await session.create_consumer(jms.queue)
        producer = await session.create_producer(Queue(f"{jms.queue.name}.out"))
        (message,) = await take(consumer, 1)
        await producer.send("a again")
        wire.cut()
        other = await (await jms.session(url=url_of(jms, mortal))).create_consumer(jms.queue)
        assert texts(await take(other, 1)) == ["a"]
        wire.heal()
        await producer.send("more")
        with pytest.raises(TransactionRolledBackException, match="not replayed: 1 received message"):
            await session.commit()
        await nothing(consumer)
        await jms.close()
    jms.url = url_of(jms, mortal)
    await jms.left()
    jms.queue = Queue(f"{jms.queue.name}.out")
    await jms.left()
    assert message.text == "a"


async def test_many_cuts_tear_no_transaction_that_is_done_again(jms: Jms, mortal: EmbeddedArtemis) -> None:
    """S75, S107: at no chosen moment. A commit in flight is still in doubt (S94), and when the broker sends a full
    prefetch before what the lost connection gives back, the commit that waits for that fails."""
    with Wire(url_of(jms, mortal)) as wire:
        jms.url = f"{jms.url.replace(url_of(jms, mortal), wire.url)}&{REPLAY.replace('20000', '300')}"
        load = Load(jms.session, jms.queue.name, relayed=True)
        load.start()
        for number in range(1, 9):
            await load.reaches(80 * number)
            wire.cut()
            wire.heal()
        await finish(load, jms)

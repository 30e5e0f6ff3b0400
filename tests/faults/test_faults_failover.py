"""A real broker is killed, or its connections are cut, while messages flow: nothing is lost, doubled or torn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from contract.harness import Heard, Jms, take, texts
from polling import eventually

from faults.faults_support import finish, url_of
from pyjmsack import AckMode, Message, aio
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.soak.load import Load
from pyjmsack.ledger import read_ledgers
from pyjmsack.testing import Wire

pytestmark = pytest.mark.timeout(600)

MODES = [AckMode.AUTO_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE]


async def kill_and_restart(broker: EmbeddedArtemis) -> None:
    """SIGKILL, then a new process on the same journal and ports."""
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, broker.kill)
    await loop.run_in_executor(None, broker.restart)


async def test_a_killed_broker_loses_no_confirmed_message_and_nothing_is_handed_out_twice(
    jms: Jms, mortal: EmbeddedArtemis
) -> None:
    """S91, S105, S106: under load, two kills."""
    load = Load(jms.session, jms.queue.name)
    load.start()
    for number in (1, 2):
        await load.reaches(500 * number)
        await kill_and_restart(mortal)
    await load.reaches(1500)
    await finish(load, jms)


async def test_a_killed_broker_tears_no_transaction(jms: Jms, mortal: EmbeddedArtemis) -> None:
    """S75, S92, S94, S97: what is received and sent on in one transaction arrives once, and in doubt is rare."""
    load = Load(jms.session, jms.queue.name, relayed=True)
    load.start()
    for number in (1, 2):
        await load.reaches(300 * number)
        await kill_and_restart(mortal)
    await load.reaches(900)
    await finish(load, jms)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())
async def test_many_cuts_of_the_connection_lose_nothing_and_double_nothing(
    jms: Jms, mortal: EmbeddedArtemis, mode: AckMode
) -> None:
    """S91, S95, S105, S106: a cut every few hundred messages, at no chosen moment."""
    with Wire(url_of(jms, mortal)) as wire:
        jms.url = jms.url.replace(url_of(jms, mortal), wire.url)
        load = Load(jms.session, jms.queue.name, mode)
        load.start()
        for number in range(1, 11):
            await load.reaches(150 * number)
            wire.cut()
            wire.heal()
        await load.reaches(2000)
        await finish(load, jms)


async def test_many_cuts_lose_nothing_and_double_nothing_with_a_guard_in_a_file(
    jms: Jms, mortal: EmbeddedArtemis, tmp_path: Path
) -> None:
    """S105: as above; acknowledgements leave when the file has their messages."""
    with Wire(url_of(jms, mortal)) as wire:
        guarded = f"{jms.url}&failover.duplicateGuard=sqlite:{tmp_path / 'ids'}"
        jms.url = guarded.replace(url_of(jms, mortal), wire.url)
        load = Load(jms.session, jms.queue.name)
        load.start()
        for number in range(1, 6):
            await load.reaches(150 * number)
            wire.cut()
            wire.heal()
        await finish(load, jms)


async def test_many_cuts_of_the_connection_tear_no_transaction(jms: Jms, mortal: EmbeddedArtemis) -> None:
    """S75, S92, S94, S97."""
    with Wire(url_of(jms, mortal)) as wire:
        jms.url = jms.url.replace(url_of(jms, mortal), wire.url)
        load = Load(jms.session, jms.queue.name, relayed=True)
        load.start()
        for number in range(1, 9):
            await load.reaches(100 * number)
            wire.cut()
            wire.heal()
        await finish(load, jms)


async def test_after_many_cuts_the_ledger_accounts_for_every_message(
    jms: Jms, mortal: EmbeddedArtemis, tmp_path: Path
) -> None:
    """S95, S105, S109: each confirmed send was processed once, and each loss of a connection is an event."""
    jms.factory = partial(jms.factory, ledger=tmp_path)
    with Wire(url_of(jms, mortal)) as wire:
        jms.url = jms.url.replace(url_of(jms, mortal), wire.url)
        load = Load(jms.session, jms.queue.name)
        load.start()
        for _ in range(5):
            # sends need a connection, so the next cut hits one; received messages may have waited in the client
            enough = len(load.ledger.confirmed) + 150
            await eventually(lambda enough=enough: len(load.ledger.confirmed) >= enough)  # type: ignore[misc]  # a loop
            wire.cut()
            wire.heal()
        await finish(load, jms)
        await jms.close()
    files = read_ledgers([tmp_path])
    sends, receives, events = (files.table(name).to_pylist() for name in ("sends", "receives", "events"))
    confirmed = {row["message_id"] for row in sends if row["send_outcome"] == "confirmed"}
    processed = Counter(row["message_id"] for row in receives if row["ack_outcome"] in ("accepted", "stale"))
    assert len(confirmed) == len(load.ledger.confirmed)
    assert ({*processed}, {*processed.values()}) == (confirmed, {1})
    kinds = Counter(row["kind"] for row in events)
    connections = len({row["connection_id"] for row in events})
    assert kinds["established"] == kinds["closed"] == connections
    assert kinds["interrupted"] >= 5
    # a connection that nobody needs any more may be closed before it is back
    assert 0 <= kinds["interrupted"] - kinds["restored"] <= connections


async def release(session: aio.Session, message: Message) -> None:
    """Give one message back, uncounted; the face of the message says whether that is awaitable."""
    message.release()


GIVING_BACK: dict[str, tuple[AckMode, Callable[[aio.Session, Message], Awaitable[object]]]] = {
    "release": (AckMode.INDIVIDUAL_ACKNOWLEDGE, release),
    "client recover": (AckMode.CLIENT_ACKNOWLEDGE, lambda session, message: session.recover()),
    "individual recover": (AckMode.INDIVIDUAL_ACKNOWLEDGE, lambda session, message: session.recover()),
    "rollback": (AckMode.SESSION_TRANSACTED, lambda session, message: session.rollback()),
}


@pytest.mark.parametrize("way", GIVING_BACK)
async def test_what_is_given_back_after_a_failover_comes_again(jms: Jms, mortal: EmbeddedArtemis, way: str) -> None:
    """S32, S80, S105: the guard does not take a message that comes again for a copy of itself. Over STOMP it is the
    client that redelivers."""
    mode, give_back = GIVING_BACK[way]
    with Wire(url_of(jms, mortal)) as wire:
        session = await jms.session(mode, jms.url.replace(url_of(jms, mortal), wire.url))
        consumer = await session.create_consumer(jms.queue)
        producer = await session.create_producer(jms.queue)
        wire.cut()
        wire.heal()
        await producer.send("m")
        if mode is AckMode.SESSION_TRANSACTED:
            await session.commit()
        for _ in range(3):
            (message,) = await take(consumer, 1)
            assert message.text == "m"
            await give_back(session, message)
        assert texts(await take(consumer, 1)) == ["m"]
        assert consumer.stats.duplicates_skipped == 0


async def test_a_message_on_which_a_listener_raised_after_a_failover_comes_again(
    jms: Jms, mortal: EmbeddedArtemis
) -> None:
    """S18, S105: as above."""
    heard: Heard[Message] = Heard()

    def listener(message: Message) -> None:
        heard(message)
        if not message.redelivered:
            raise ValueError("not this time")

    with Wire(url_of(jms, mortal)) as wire:
        session = await jms.session(url=jms.url.replace(url_of(jms, mortal), wire.url))
        consumer = await session.create_consumer(jms.queue)
        consumer.message_listener = listener
        wire.cut()
        wire.heal()
        await (await session.create_producer(jms.queue)).send("m")
        assert [message.text for message in await heard.take(2)] == ["m", "m"]

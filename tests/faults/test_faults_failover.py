"""A real broker is killed, or its connections are cut, while messages flow: nothing is lost, doubled or torn."""

from __future__ import annotations

import asyncio

import pytest
from contract.harness import Jms
from faults_support import finish, url_of

from pyjmsack import AckMode
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.soak.load import Load
from pyjmsack.testing import Wire

pytestmark = pytest.mark.timeout(180)

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
    await finish(load)


async def test_a_killed_broker_tears_no_transaction(jms: Jms, mortal: EmbeddedArtemis) -> None:
    """S75, S92, S94, S97: what is received and sent on in one transaction arrives once, and in doubt is rare."""
    load = Load(jms.session, jms.queue.name, relayed=True)
    load.start()
    for number in (1, 2):
        await load.reaches(300 * number)
        await kill_and_restart(mortal)
    await load.reaches(900)
    await finish(load)


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
        await finish(load)


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
        await finish(load)

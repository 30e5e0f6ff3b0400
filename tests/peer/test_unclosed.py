"""A connection that is dropped without close says so, as a socket does."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest
from peer_faces import SyncFace, Told
from stomp_peer import start

import pyjmsack
import pyjmsack.aio
from pyjmsack.sync.connection import Connection


def test_a_connection_that_nobody_can_close_any_more_warns_and_stays_open(sync: SyncFace) -> None:
    peer = start(sync)
    held = [pyjmsack.ConnectionFactory(peer.url).create_connection()]
    core, runtime = held[0]._core, held[0]._runtime
    with pytest.warns(ResourceWarning, match=rf"unclosed connection <pyjmsack.*Connection to {peer.url}, open>"):
        held.clear()
    again = Connection(core, runtime)
    again.create_session().create_producer(pyjmsack.Queue("q")).send("still open")
    assert peer.wait("SEND")[0].body == b"still open"
    again.close()


def test_so_does_one_of_asyncio(sync: SyncFace) -> None:
    peer = start(sync)

    async def scenario() -> None:
        held = [await pyjmsack.aio.ConnectionFactory(peer.url).create_connection()]
        core = held[0]._core
        with pytest.warns(ResourceWarning, match=rf"unclosed connection <pyjmsack\.aio.* to {peer.url}, open>"):
            held.clear()
        await pyjmsack.aio.Connection(core, core.channel.runtime).close()

    asyncio.run(scenario())


@pytest.mark.parametrize("end", ["close", "drop"])
def test_a_connection_that_is_closed_or_lost_does_not_warn(sync: SyncFace, end: str) -> None:
    peer, told = start(sync), Told()
    connection = pyjmsack.ConnectionFactory(peer.url).create_connection()
    core, runtime = connection._core, connection._runtime
    connection.exception_listener = told
    if end == "close":
        connection.close()
    else:
        peer.drop()
        told.wait(1)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        del connection
        gc.collect()
    Connection(core, runtime).close()
    assert [str(warning.message) for warning in heard if "unclosed connection" in str(warning.message)] == []

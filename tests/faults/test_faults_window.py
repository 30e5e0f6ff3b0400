"""A broker stands still while a program goes on sending: the producer window holds its memory flat (S65)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from contract.harness import Jms, nothing, take

from faults.faults_support import url_of
from pyjmsack.broker import EmbeddedArtemis

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")

PROGRAM = Path(__file__).with_name("window_program.py")
WINDOW = 4_000_000
BODY = 50_000
BUFFERS = 8_000_000
"""Bytes for what is in buffers of the socket and of the interpreter, beside the messages."""
OPTIONS = "jms.forceAsyncSend=true&jms.sendTimeout=2000&jms.sendTimeoutForcesSync=false&jms.closeTimeout=60000"


async def stuck(jms: Jms, broker: EmbeddedArtemis, options: str = "") -> tuple[dict[str, Any], int]:
    """Let a program send until nothing more goes, the broker standing still; then let it finish.

    Returns:
        what it said when it was stuck, and how many messages it sent in all.
    """
    url = f"{url_of(jms, broker)}?{OPTIONS}{options}"
    command = [sys.executable, str(PROGRAM), jms.face.name, url, jms.queue.name, str(BODY)]
    process = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1)
    loop = asyncio.get_running_loop()

    async def heard() -> dict[str, Any]:
        assert process.stdout is not None
        said: dict[str, Any] = json.loads(await process.stdout.readline())
        return said

    def go_on() -> None:
        assert process.stdin is not None
        process.stdin.write(b"\n")

    try:
        assert await heard() == {"sent": 0}
        await loop.run_in_executor(None, broker.pause)
        try:
            go_on()
            found = await heard()
        finally:
            await loop.run_in_executor(None, broker.resume)
        go_on()
        last = await heard()
        go_on()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return found, last["sent"]


async def test_the_window_bounds_the_memory_of_a_producer_whose_broker_stands_still(
    jms: Jms, mortal: EmbeddedArtemis
) -> None:
    """S65, S66: the next send waits (in asyncio: is awaited), here until its time is over; what was sent is stored."""
    found, sent = await stuck(jms, mortal, f"&jms.producerWindowSize={WINDOW}")
    assert "are unconfirmed, and the broker took no message within jms.sendTimeout" in found["error"]
    assert found["sent"] * BODY <= WINDOW + BODY
    assert found["growth"] < 2 * WINDOW + BUFFERS
    consumer = await (await jms.session()).create_consumer(jms.queue)
    await take(consumer, sent)
    await nothing(consumer)


async def test_without_a_window_in_bytes_the_same_program_takes_much_more(jms: Jms, mortal: EmbeddedArtemis) -> None:
    """S65: 4096 messages are the only bound then, so the test above could fail."""
    found, _ = await stuck(jms, mortal)
    assert found["sent"] == 4096
    assert found["growth"] > 10 * WINDOW

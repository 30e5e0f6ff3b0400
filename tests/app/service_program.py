"""The service of the proof: moves each message of a queue to another one, by way of `pyjmsack run`."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from pyjmsack import App, aio

URL = os.environ["PYJMSACK_TEST_URL"]
QUEUE = os.environ["PYJMSACK_TEST_QUEUE"]
WORK = 0.01
"""Seconds that a message takes, so that a service is killed at work."""
app = App(URL)
async_app = aio.App(URL)


@app.listener(QUEUE, concurrency="3-10")
def move(number: int) -> None:
    """The effect of a message is another one, in the same transaction."""
    time.sleep(WORK)
    app.sender.send(f"{QUEUE}.done", number)


@async_app.listener(QUEUE, concurrency="3-10")
async def move_async(number: int) -> Any:
    """The same in asyncio."""
    await asyncio.sleep(WORK)
    await async_app.sender.send(f"{QUEUE}.done", number)

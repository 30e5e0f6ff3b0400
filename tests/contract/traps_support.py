"""What the tests of the traps have in common: a line that breaks in the worst moment, and clients that are not ours."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from proton import Message as ProtonMessage
from proton.utils import BlockingConnection

from contract.harness import PATIENCE, Heard, Jms
from pyjmsack import aio
from pyjmsack.testing import Wire

__all__ = ["Line", "line", "proton_send", "raw_stomp", "stomp_frame"]

FAILOVER = "failover.reconnectDelay=10&failover.maxReconnectDelay=50"


class Line:
    """A connection over a wire that breaks on command."""

    def __init__(self, wire: Wire, connection: aio.Connection) -> None:
        self.connection = connection
        self._wire = wire
        self._interrupted: Heard[None] = Heard()
        connection.add_connection_listener(self)

    def on_connection_interrupted(self, url: str) -> None:
        """The client, one with failover, knows."""
        self._interrupted(None)

    def breaks_at_the_next_answer(self) -> None:
        """Cut it when the broker has done what it is asked next, and before the client hears of it."""
        self._wire.cut_after(0, replies=True)

    def breaks(self) -> None:
        """Cut it now."""
        self._wire.cut()

    async def mends(self, first: Callable[[], object] = lambda: None) -> None:
        """Let a client with failover come back, once it knows that it is gone and has done something ``first``."""
        await self._interrupted.next()
        first()
        self._wire.heal()


@contextlib.asynccontextmanager
async def line(jms: Jms, *, failover: bool) -> AsyncIterator[Line]:
    """Connect over a wire."""
    with Wire(jms.url) as wire:
        url = f"failover:({wire.url})?{FAILOVER}" if failover else wire.url
        async with jms.factory(url).create_connection() as connection:
            await connection.start()
            yield Line(wire, connection)


async def proton_send(url: str, address: str, *messages: ProtonMessage) -> None:
    """Send with python-qpid-proton alone."""

    def send() -> None:
        connection = BlockingConnection(url, timeout=PATIENCE)
        sender = connection.create_sender(address)
        for message in messages:
            sender.send(message)
        connection.close()

    await asyncio.get_running_loop().run_in_executor(None, send)


def stomp_frame(command: str, body: str = "", **headers: Any) -> bytes:
    """Return a frame; ``_`` in a header name stands for ``-``."""
    lines = "".join(f"{name.replace('_', '-')}:{value}\n" for name, value in headers.items())
    return f"{command}\n{lines}\n{body}\0".encode()


async def raw_stomp(url: str, *frames: bytes, heart_beat: str = "0,0") -> Sequence[str]:
    """Write frames, with one CONNECT before them, until the broker closes; return the commands of its answers.

    The broker closes after a DISCONNECT, or when it has had enough of a client that says nothing.
    """
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(stomp_frame("CONNECT", accept_version="1.2", host="h", heart_beat=heart_beat) + b"".join(frames))
    answers = b""
    with contextlib.suppress(ConnectionResetError):
        while data := await asyncio.wait_for(reader.read(65536), PATIENCE):
            answers += data
    writer.close()
    with contextlib.suppress(ConnectionResetError):
        await writer.wait_closed()
    return re.findall(r"(?:^|\0\n*)([A-Z]+)\n", answers.decode())

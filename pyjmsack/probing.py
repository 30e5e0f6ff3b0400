"""Asks which protocol a port speaks, by sending the first bytes of one protocol on a connection of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterable

from pyjmsack.recognition import recognise

__all__ = ["GREETINGS", "PATIENT", "QUICK", "answer", "first_of"]

QUICK = 0.4
"""Seconds within which a port usually answers the first bytes of a protocol that it speaks."""
PATIENT = 2.0
"""Seconds within which a port answers even on a busy machine."""
_MOST = 512
GREETINGS = {
    "AMQP": b"AMQP\3\1\0\0",
    "STOMP": b"CONNECT\naccept-version:1.2\nhost:probe\n\n\0",
    "HTTP": b"HEAD / HTTP/1.0\r\n\r\n",
    "MQTT": b"\x10\x0c\0\4MQTT\4\2\0\x0a\0\0",
    # a ClientHello of TLS 1.2 with one cipher suite and without extensions; a refusal is an answer, too
    "TLS": b"\x16\3\1\0\x2d\1\0\0\x29\3\3" + bytes(32) + b"\0\0\2\xc0\x2f\1\0",
}
"""For each protocol, the first bytes that a client sends."""


async def answer(host: str, port: int, protocol: str, seconds: float) -> str | None:
    """Send the first bytes of one protocol to a port, and return the protocol of the answer. Return ``None`` if there
    is no answer, or if the protocol of the answer is unknown.

    Args:
        seconds: the longest wait for the answer. No more than 512 bytes of the answer are read.
    """
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        return await asyncio.wait_for(_exchange(host, port, GREETINGS[protocol]), seconds)
    return None


async def _exchange(host: str, port: int, greeting: bytes) -> str | None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(greeting)
        return recognise(await reader.read(_MOST))
    finally:
        writer.close()


async def first_of(asked: Iterable[Coroutine[None, None, str | None]]) -> str | None:
    """Return the first answer, and cancel the other coroutines. Return ``None`` if no answer comes."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        for done in asyncio.as_completed(tasks):
            if (found := await done) is not None:
                return found
        return None
    finally:
        for task in tasks:
            task.cancel()

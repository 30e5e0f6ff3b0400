"""What listens at a port: each protocol's first words are tried, each on a connection of its own, within a second."""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit

from pyjmsack.recognition import mismatch, recognise

__all__ = ["members", "wrong_port"]

_SECONDS = 0.8
_MOST = 512
_EXPECTED = {"amqp": ("AMQP", 5672), "stomp": ("STOMP", 61613), "amqps": ("TLS", 5671), "stomp+ssl": ("TLS", 61614)}
"""What answers at the port of a scheme, and which port that is."""
_GREETINGS = {
    "AMQP": b"AMQP\3\1\0\0",
    "STOMP": b"CONNECT\naccept-version:1.2\nhost:probe\n\n\0",
    "HTTP": b"HEAD / HTTP/1.0\r\n\r\n",
    "MQTT": b"\x10\x0c\0\4MQTT\4\2\0\x0a\0\0",
    # a ClientHello of TLS 1.2 with one cipher suite and without extensions; a refusal is an answer, too
    "TLS": b"\x16\3\1\0\x2d\1\0\0\x29\3\3" + bytes(32) + b"\0\0\2\xc0\x2f\1\0",
}


def wrong_port(url: str) -> str | None:
    """Return what to say if another protocol than the URL's is spoken at its port; ``None`` if nothing else is found.

    Nothing is asked for a WebSocket, whose own errors say what it meets.
    """
    parts = urlsplit(url)
    if parts.scheme not in _EXPECTED or parts.hostname is None:
        return None
    expected, port = _EXPECTED[parts.scheme]
    host, port = parts.hostname, parts.port or port
    spoken = asyncio.run(_spoken(host, port, expected))
    return None if spoken in (None, expected) else mismatch(f"{parts.scheme}://{host}:{port}", str(spoken), expected)


def members(url: str) -> list[str]:
    """Return the brokers of a failover URL, each as a URL; of any other URL this one."""
    scheme, _, rest = url.partition(":")
    if scheme != "failover":
        return [url]
    inner = rest.removeprefix("//").removeprefix("(").partition(")")[0] if "(" in rest else rest.partition("?")[0]
    return [member.strip() for member in inner.split(",") if member.strip()]


async def _spoken(host: str, port: int, expected: str) -> str | None:
    """Ask for the expected protocol first: at the right port nothing else is sent."""
    answer = await _answer(host, port, _GREETINGS[expected])
    if answer is not None:
        return answer
    others = (greeting for protocol, greeting in _GREETINGS.items() if protocol != expected)
    answers = await asyncio.gather(*(_answer(host, port, greeting) for greeting in others))
    return next(filter(None, answers), None)


async def _answer(host: str, port: int, greeting: bytes) -> str | None:
    """Return the protocol of what comes back; ``None`` if nothing comes, or nothing known."""
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        return await asyncio.wait_for(_exchange(host, port, greeting), _SECONDS / 2)
    return None


async def _exchange(host: str, port: int, greeting: bytes) -> str | None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(greeting)
        return recognise(await reader.read(_MOST))
    finally:
        writer.close()

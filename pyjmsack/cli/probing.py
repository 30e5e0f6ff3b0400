"""Finds the protocol that a port speaks.

This module sends the first bytes of each protocol over a connection of its own. If the port answers, this module
usually knows the protocol within a second. If the port is silent, this module gives up after at most three seconds.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from pyjmsack.probing import GREETINGS, PATIENT, QUICK, answer, first_of
from pyjmsack.recognition import mismatch

__all__ = ["members", "wrong_port"]

_EXPECTED = {"amqp": ("AMQP", 5672), "stomp": ("STOMP", 61613), "amqps": ("TLS", 5671), "stomp+ssl": ("TLS", 61614)}
"""For each scheme of a URL: the protocol that the port should speak, and the usual number of the port."""


def wrong_port(url: str) -> str | None:
    """Return a text if the port of the URL speaks another protocol than the URL says, and ``None`` if it does not.

    The port of a WebSocket URL is not asked, because the error of a WebSocket already says what the port answered.
    """
    parts = urlsplit(url)
    if parts.scheme not in _EXPECTED or parts.hostname is None:
        return None
    expected, port = _EXPECTED[parts.scheme]
    host, port = parts.hostname, parts.port or port
    spoken = asyncio.run(_spoken(host, port, expected))
    return None if spoken in (None, expected) else mismatch(f"{parts.scheme}://{host}:{port}", str(spoken), expected)


def members(url: str) -> list[str]:
    """Return the URLs of the brokers of a failover URL. For any other URL, return this URL alone."""
    scheme, _, rest = url.partition(":")
    if scheme != "failover":
        return [url]
    inner = rest.removeprefix("//").removeprefix("(").partition(")")[0] if "(" in rest else rest.partition("?")[0]
    return [member.strip() for member in inner.split(",") if member.strip()]


async def _spoken(host: str, port: int, expected: str) -> str | None:
    """Return the protocol that the port speaks. The expected protocol is tried first, so that a port that speaks it
    gets no bytes of another protocol.
    """
    if (first := await answer(host, port, expected, QUICK)) is not None:
        return first
    other = await first_of(answer(host, port, each, PATIENT) for each in GREETINGS if each != expected)
    # the expected protocol gets a second try, because a busy port that speaks several protocols may have been late
    return other and (await answer(host, port, expected, QUICK) or other)

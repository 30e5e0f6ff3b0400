"""Asks a silent port which protocol it speaks.

The AMQP port of Artemis does not answer a STOMP client, and the STOMP port does not answer an AMQP client. A port
without TLS does not answer a client with TLS. Therefore, if a connection receives nothing, this module opens a second
connection and asks the port once, before ``jms.connectTimeout`` is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pyjmsack.errors import ConnectionLostException
from pyjmsack.probing import PATIENT, QUICK, answer, first_of
from pyjmsack.recognition import mismatch
from pyjmsack.uri import Endpoint

__all__ = ["History", "Inquiry", "Opened", "shaken"]

SILENCE = 0.7
"""Seconds of silence after which the port is asked. Brokers usually answer the first bytes within milliseconds."""
SILENCE_OF_TLS = 0.4
"""Seconds of silence after which the port is asked during a TLS handshake. This time is shorter,
because the TLS layer of a port answers by itself, without help from the broker."""
LAST_CHANCE = 1.0
"""Seconds in which the port may still answer in the protocol of its URL, after the port answered in the other
protocol."""
AGAIN = 60.0
"""Seconds for which an address is not asked again, even if many connections of this process wait for it."""
MOST = 1000
"""The largest number of addresses that are remembered. If this module remembers so many addresses, no further address
is asked."""
_OTHERS = {"AMQP": ("STOMP",), "STOMP": ("AMQP",), "TLS": ("AMQP", "STOMP")}
"""For each protocol that a stream expects, the protocols that its port may speak instead."""
_asked: dict[tuple[str, int], float] = {}
"""The time on the monotonic clock when each address was asked. Loops on several threads use this dictionary without a
lock. At worst, two loops ask the same address."""


T = TypeVar("T")
Stream = tuple[asyncio.BaseTransport, T]
Opened = Callable[[tuple[str, int]], None]
"""A function that is called with the address when a socket is connected, before the TLS handshake."""


class History:
    """The facts about brokers that all streams of one JMS connection share, also the streams to different members of a
    failover URL.
    """

    def __init__(self) -> None:
        self.answered = False
        """Whether a broker has spoken the protocol of its URL. After that no port is asked any more, for example when
        the connection tries its brokers again after a loss."""


class Inquiry:
    """Asks the port of one stream that waits for its first byte.

    Args:
        expected: the protocol of the stream's URL, or TLS while a TLS handshake is under way.
        found: called with the name of the other protocol if the port does not speak the expected one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, expected: str, found: Callable[[str], None]) -> None:
        self._loop = loop
        self._expected = expected
        self._found = found
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, address: tuple[str, int]) -> None:
        """Start to wait, because the stream to this address is open and has written its first bytes."""
        self.end()
        silence = SILENCE_OF_TLS if self._expected == "TLS" else SILENCE
        self._timer = self._loop.call_later(silence, self._ask, address)

    def end(self) -> None:
        """Stop the inquiry, because bytes have arrived or the stream has ended."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _ask(self, address: tuple[str, int]) -> None:
        if _may_ask(address, time.monotonic()):
            self._task = self._loop.create_task(self._listen(*address))

    async def _listen(self, host: str, port: int) -> None:
        """Ask the port for the other protocols, and report one that it speaks instead of the expected one.

        A port may speak both protocols, and its broker may be slow. Therefore the answer in the other protocol counts
        only if a second try in the expected protocol gets no answer.
        """
        other = await first_of(_speaks(host, port, each) for each in _OTHERS[self._expected])
        if other is None:
            return
        last_chance = QUICK if self._expected == "TLS" else LAST_CHANCE
        if await answer(host, port, self._expected, last_chance) is None:
            self._found(other)


async def _speaks(host: str, port: int, protocol: str) -> str | None:
    """Return the protocol if the port speaks it, and ``None`` if it does not."""
    return protocol if await answer(host, port, protocol, PATIENT) == protocol else None


async def shaken(
    loop: asyncio.AbstractEventLoop, endpoint: Endpoint, opening: Callable[[Opened], Coroutine[None, None, Stream[T]]]
) -> Stream[T]:
    """Open a stream with TLS. If the port is silent, ask which protocol it speaks without TLS.

    Args:
        opening: opens the stream, and calls its argument before the TLS handshake.

    Raises:
        ConnectionLostException: the port speaks another protocol; the text names it.
    """
    spoken: asyncio.Future[str] = loop.create_future()
    inquiry = Inquiry(loop, "TLS", spoken.set_result)
    opened = loop.create_task(opening(inquiry.begin))
    either: set[asyncio.Future[Any]] = {opened, spoken}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            raise ConnectionLostException(mismatch(str(endpoint), spoken.result(), "TLS"))
    except BaseException:
        opened.cancel()
        (end,) = await asyncio.gather(opened, return_exceptions=True)
        if not isinstance(end, BaseException):  # it succeeded at the moment at which the caller gave up
            end[0].close()
        raise
    finally:
        inquiry.end()
    return opened.result()


def _may_ask(address: tuple[str, int], now: float) -> bool:
    """Return True if an address was not asked recently. In this case, remember that the address is asked now."""
    if now - _asked.get(address, -AGAIN) < AGAIN:
        return False
    if len(_asked) >= MOST:
        for old in [place for place, asked in [*_asked.items()] if now - asked >= AGAIN]:
            _asked.pop(old, None)
    if len(_asked) >= MOST:
        return False
    _asked[address] = now
    return True

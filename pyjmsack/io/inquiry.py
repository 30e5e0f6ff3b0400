"""Asks a silent port which protocol it speaks.

The AMQP port of Artemis does not answer a STOMP client, and the STOMP port does not answer an AMQP client. Therefore,
if a connection receives nothing, this module opens a second connection and asks the port once, before
``jms.connectTimeout`` is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from pyjmsack.probing import PATIENT, answer

__all__ = ["History", "Inquiry"]

SILENCE = 0.7
"""Seconds of silence after which the port is asked. Brokers usually answer the first bytes within milliseconds."""
LAST_CHANCE = 1.0
"""Seconds in which the port may still answer in the protocol of its URL, after the port answered in the other
protocol."""
AGAIN = 60.0
"""Seconds for which an address is not asked again, even if many connections of this process wait for it."""
MOST = 1000
"""The largest number of addresses that are remembered. If this module remembers so many addresses, no further address
is asked."""
_OTHER = {"AMQP": "STOMP", "STOMP": "AMQP"}
_asked: dict[tuple[str, int], float] = {}
"""The time on the monotonic clock when each address was asked. Loops on several threads use this dictionary without a
lock. At worst, two loops ask the same address."""


class History:
    """The facts that the streams of one JMS connection know about its brokers, for all members of a failover URL."""

    def __init__(self) -> None:
        self.answered = False
        """Whether a broker has spoken the protocol of its URL. After that no port is asked any more, for example when
        the connection tries its brokers again after a loss."""


class Inquiry:
    """Asks the port of one plain stream that waits for its first byte.

    Args:
        expected: the protocol of the stream's URL.
        found: called with the name of the other protocol if the port speaks only that protocol.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, expected: str, found: Callable[[str], None]) -> None:
        self._loop = loop
        self._expected = expected
        self._found = found
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, address: tuple[str, int]) -> None:
        """Start to wait, because the stream to this address is open and has written its first bytes."""
        self._timer = self._loop.call_later(SILENCE, self._ask, address)

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
        """Ask the port for the other protocol, and report the other protocol if the port speaks only that one.

        A port may speak both protocols, and its broker may be slow. Therefore the answer in the other protocol counts
        only if a second try in the expected protocol gets no answer.
        """
        other = _OTHER[self._expected]
        if await answer(host, port, other, PATIENT) != other:
            return
        if await answer(host, port, self._expected, LAST_CHANCE) is None:
            self._found(other)


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

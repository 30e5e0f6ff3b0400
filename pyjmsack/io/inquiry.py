"""Asks a silent port which protocol it speaks. Artemis' ports for AMQP and STOMP do not answer each other's clients.
So if a connection hears nothing, a second connection asks once, before ``jms.connectTimeout`` is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from pyjmsack.probing import answer

__all__ = ["History", "Inquiry"]

SILENCE = 0.7
"""Seconds without a byte after which the port is asked: brokers answer the first bytes in milliseconds."""
AGAIN = 60.0
"""Seconds in which one address is asked once, however many connections of this process wait for it."""
MOST = 1000
"""Addresses remembered; while they are so many, no other one is asked."""
_OTHER = {"AMQP": "STOMP", "STOMP": "AMQP"}
_asked: dict[tuple[str, int], float] = {}
"""When each address was asked, on the monotonic clock. Loops on several threads use it: at worst both ask at once."""


class History:
    """The facts that the streams of one JMS connection know about its brokers, for all members of a failover URL."""

    def __init__(self) -> None:
        self.answered = False
        """Whether a broker spoke the protocol of its URL: from then on nobody is asked, above all not by a connection
        that was lost and looks for a broker."""


class Inquiry:
    """Asks on behalf of one plain stream that waits for its first byte.

    Args:
        expected: the protocol of the stream's URL.
        found: called with the name of another protocol if the port speaks that, and not the expected one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, expected: str, found: Callable[[str], None]) -> None:
        self._loop = loop
        self._expected = expected
        self._found = found
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, address: tuple[str, int]) -> None:
        """The stream to this address is open and has written its first bytes."""
        self._timer = self._loop.call_later(SILENCE, self._ask, address)

    def end(self) -> None:
        """Something came, or the stream is gone."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _ask(self, address: tuple[str, int]) -> None:
        if _may_ask(address, time.monotonic()):
            self._task = self._loop.create_task(self._listen(*address))

    async def _listen(self, host: str, port: int) -> None:
        """A port may speak both, and its broker be slow: so what was found counts only if a second connection that
        greets as the stream did hears no more than the stream."""
        other = _OTHER[self._expected]
        if await answer(host, port, other) == other and await answer(host, port, self._expected) is None:
            self._found(other)


def _may_ask(address: tuple[str, int], now: float) -> bool:
    """Return whether an address was not asked of late, and remember that it is asked now."""
    if now - _asked.get(address, -AGAIN) < AGAIN:
        return False
    if len(_asked) >= MOST:
        for old in [place for place, asked in [*_asked.items()] if now - asked >= AGAIN]:
            _asked.pop(old, None)
    if len(_asked) >= MOST:
        return False
    _asked[address] = now
    return True

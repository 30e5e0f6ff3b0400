"""Remembers which preferred brokers failed after a return (``failover.priorityBackup``). The connection leaves a broker
that works for such a broker only after a pause, which grows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from pyjmsack.loggers import get_logger
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.uri import BrokerUrl

__all__ = ["Returns"]

log = get_logger("pyjmsack.failover")

_FIRST_PAUSE: Final = 5.0
"""Seconds until a preferred broker that failed after a return is tried again. The seconds double with each further
failure. A broker that is starting may refuse some queues for a moment, so the first pause is short."""
_LONGEST_PAUSE: Final = 300.0
"""The longest of these pauses in seconds. Each return that fails interrupts the work of the connection."""
_STAYS: Final = 30.0
"""A connection that was at a preferred broker for this number of seconds stays there: earlier failures are
forgotten."""


class Returns:
    """The preferred brokers that failed after a return, each with its pause.

    A return means that the connection leaves a broker that works. A test connection shows only that the preferred
    broker accepts connections. The broker may still refuse the sessions and links, for example because of a limit. If
    nothing remembered this, the connection would leave the good broker again and again.

    Args:
        prefers: returns True for a preferred broker.
    """

    def __init__(self, connector: Connector, prefers: Callable[[BrokerUrl], bool]) -> None:
        self._connector = connector
        self._prefers = prefers
        self._pauses: dict[str, float] = {}
        """The last pause of each preferred broker that failed, in seconds."""
        self._resting: dict[str, Timer] = {}
        """The preferred brokers whose pause is not over, with the timer that ends the pause."""
        self._expected: str | None = None
        """The preferred broker for which the connection has left another broker, until the try of it ends."""
        self._staying: Timer | None = None
        """The timer that runs while the connection is not yet long enough at a preferred broker."""

    def rests(self, url: BrokerUrl) -> bool:
        """Return True if the connection must not return to this broker yet."""
        return str(url) in self._resting

    def begin(self, url: BrokerUrl) -> None:
        """Remember that the connection leaves its broker for this preferred broker."""
        self._expected = str(url)

    def failed(self, url: BrokerUrl, error: BaseException, *, accepted: bool) -> None:
        """Handle a broker that could not be used. A pause begins if the broker had accepted the connection, or if the
        connection had left another broker for it. Otherwise a test connection will show when the broker is back.

        Args:
            accepted: whether the broker had accepted the connection.
        """
        name = str(url)
        expected = self._expected == name
        if expected:
            self._expected = None
        if (accepted or expected) and self._prefers(url):
            self._begin_pause(name, error)

    def _begin_pause(self, name: str, error: BaseException) -> None:
        if name in self._resting:  # a search tries this broker also during its pause, and failures are then no news
            return
        pause = min(_LONGEST_PAUSE, 2 * self._pauses[name]) if name in self._pauses else _FIRST_PAUSE
        self._pauses[name] = pause
        self._resting[name] = self._connector.call_later(pause, partial(self._end_pause, name))
        log.warning("the preferred broker %s failed, and is tried again after %d s: %s", name, pause, error)

    def _end_pause(self, name: str) -> None:
        del self._resting[name]

    def arrived(self, url: BrokerUrl) -> None:
        """Handle the start of the use of a broker. If it is a preferred broker and the connection stays, forget the
        failures of this broker."""
        self._expected = None
        if self._prefers(url):
            self._staying = self._connector.call_later(_STAYS, partial(self._stayed, str(url)))

    def _stayed(self, name: str) -> None:
        self._staying = None
        self._pauses.pop(name, None)
        timer = self._resting.pop(name, None)
        if timer is not None:
            timer.cancel()

    def lost(self, url: BrokerUrl, error: BaseException) -> None:
        """Handle the loss of the broker in use. A loss soon after the return counts as a failure."""
        if self._staying is not None:
            self._staying.cancel()
            self._staying = None
            self._begin_pause(str(url), error)

    def stop(self) -> None:
        """Stop all timers, because the connection ends."""
        if self._staying is not None:
            self._staying.cancel()
            self._staying = None
        for timer in self._resting.values():
            timer.cancel()
        self._resting.clear()

"""Looking for a broker: rounds over the members of the URL, with waits between them."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence

from pyjmsack.errors import (
    ConnectionLostException,
    InvalidClientIDException,
    InvalidURLException,
    JMSSecurityException,
    UnsupportedFeatureException,
)
from pyjmsack.providers.failover.schedule import Schedule
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.uri import BrokerUrl

__all__ = ["LONGEST_PAUSE", "Search", "Tried", "in_order", "is_final"]

log = logging.getLogger("pyjmsack.failover")

LONGEST_PAUSE = 2.0
"""Seconds, at most, before a broker is looked for again whose connections are lost at once: it does answer, so that the
end of what disturbs it should not be missed for long."""
Tried = Callable[["BaseException | None", bool], None]
_PASSING = ("sasl:4", "tls:handshake")
"""Security errors that may be different at the next try: sys-temp, the broker cannot say now whether the login is right
(AMQP 1.0 5.3.3.6), and a TLS handshake that ended early, as with a broker that is just dying."""
_AT_THE_START = (InvalidClientIDException, InvalidURLException, UnsupportedFeatureException)
"""Mistakes of who connects: a client id that is in use, a key store that cannot be read. Later the id may still be held
by the connection that was lost, and the file of a store may just be replaced."""


class Search:
    """One search, from the first try to a broker that is ready, or to the end of the attempts.

    Args:
        candidates: returns the brokers of a round, in order; it is told how many rounds there were before.
        attempt: tries one and calls back with the error and whether it is final, or with ``None`` when the broker is
            ready: then the search is over.
        gave_up: called with the last error.
        error: why it is needed.
        after: how many searches in a row found only connections that were lost at once: so much longer is the wait
            before the first round.
    """

    def __init__(
        self,
        schedule: Schedule,
        connector: Connector,
        candidates: Callable[[int], Sequence[BrokerUrl]],
        attempt: Callable[[BrokerUrl, Tried], None],
        gave_up: Callable[[BaseException], None],
        error: BaseException | None = None,
        after: int = 0,
    ) -> None:
        self._schedule = schedule
        self._connector = connector
        self._candidates = candidates
        self._attempt = attempt
        self._gave_up = gave_up
        self._error: BaseException = error or ConnectionLostException("no broker was tried")
        self._after = after
        self._rounds = 0
        self._left: list[BrokerUrl] = []
        self._timer: Timer | None = None

    def start(self) -> None:
        """Wait for the next round, or give up."""
        rounds = self._rounds
        if self._schedule.exhausted(rounds):
            self._gave_up(self._error)
            return
        if self._schedule.warns(rounds):
            log.warning("no broker after %d rounds, trying on: %s", rounds, self._error)
        delay = self._schedule.delay(rounds)
        if self._after and not rounds:
            delay = max(delay, min(LONGEST_PAUSE, self._schedule.backoff(self._after)))
        self._timer = self._connector.call_later(delay, self._begin_round)

    def stop(self) -> None:
        """Look no further."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin_round(self) -> None:
        self._timer = None
        self._left = [*self._candidates(self._rounds)]
        self._next()

    def _next(self) -> None:
        if self._left:
            self._attempt(self._left.pop(0), self._tried)
        else:
            self._rounds += 1
            self.start()

    def _tried(self, error: BaseException | None, final: bool) -> None:
        if error is None:
            return
        self._error = error
        if final:
            self._gave_up(error)
        else:
            log.debug("%s", error)
            self._next()


def is_final(error: BaseException, *, first: bool) -> bool:
    """Whether an error of connecting ends the search: a refused login, and at the very start other mistakes."""
    if isinstance(error, _AT_THE_START):
        return first
    return isinstance(error, JMSSecurityException) and error.error_code not in _PASSING


def in_order(members: Sequence[BrokerUrl], lost: BrokerUrl | None, *, shuffled: bool) -> list[BrokerUrl]:
    """Return the brokers of a round: as written, beginning behind the one that was lost; or shuffled."""
    ordered = [*members]
    if shuffled:
        random.shuffle(ordered)  # to spread load, not to keep a secret
    elif lost in ordered:
        behind = ordered.index(lost) + 1
        ordered = ordered[behind:] + ordered[:behind]
    return ordered

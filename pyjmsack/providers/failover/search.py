"""Looking for a broker: rounds over the members of the URL, with waits between them."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence

from tenacity import RetryError, Retrying, TryAgain, stop_after_attempt, stop_never, wait_exponential, wait_fixed

from pyjmsack.errors import (
    ConnectionLostException,
    InvalidClientIDException,
    InvalidURLException,
    JMSSecurityException,
    UnsupportedFeatureException,
)
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.uri import BrokerUrl, FailoverOptions

__all__ = ["LONGEST_PAUSE", "Search", "Tried", "back_off", "is_final", "waits"]

log = logging.getLogger("pyjmsack.failover")

LONGEST_WAIT = 30.0
"""Seconds of the longest wait where waits grow, as in Java. A search is so patient if its attempts are limited, because
a URL from Java counts on these waits; if the first wait is longer than :data:`SOON` already; and if it is for a better
broker than the one at hand."""
SOON = 0.75
"""Seconds of the longest wait of a search without an end. A broker that is back is found within this time, and a try
that a closed port refuses costs next to nothing."""
SPREAD = 0.5
"""The shortest part of a growing wait that is really waited. Chance decides between this part and the whole, so that
clients that lost one broker at one moment do not come back to it at one moment."""
WARN_SECONDS = 10.0
"""Least seconds between two warnings that there is no broker."""
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


def back_off(
    options: FailoverOptions, attempts: int | None = None, *, longest: float = LONGEST_WAIT
) -> Iterator[float]:
    """Yield the seconds to wait after each vain attempt; it ends after so many, ``None`` = never.

    ``longest`` is the longest wait in seconds for URLs that do not set ``failover.maxReconnectDelay``.
    tenacity reckons the waits. It is told that each attempt was in vain, and its waits are written down, not waited.
    """
    if options.use_reconnect_back_off:
        wait: wait_exponential | wait_fixed = wait_exponential(
            multiplier=options.reconnect_delay,
            max=longest if options.max_reconnect_delay is None else options.max_reconnect_delay,
            exp_base=options.reconnect_back_off_multiplier,
        )
    else:
        wait = wait_fixed(options.reconnect_delay)
    stop = stop_never if attempts is None else stop_after_attempt(attempts)
    seconds: list[float] = []
    try:
        for attempt in Retrying(wait=wait, stop=stop, sleep=seconds.append):
            if seconds:
                yield seconds.pop()
            with attempt:
                raise TryAgain
    except RetryError:
        return


def waits(options: FailoverOptions, *, first: bool) -> Iterator[float]:
    """Yield the seconds to wait before each round of a search, which is one pass over all brokers.

    It ends when no round is left.

    Args:
        first: whether this is the very first connect: then the first round is at once and is made in any case, and the
            limit is that of the start.
    """
    limit = options.max_reconnect_attempts
    if first and options.startup_max_reconnect_attempts is not None:
        limit = options.startup_max_reconnect_attempts
    if limit == 0 and not first:
        return
    initial = options.initial_reconnect_delay
    yield 0.0 if first else initial
    longest = SOON if limit is None and options.reconnect_delay <= SOON else LONGEST_WAIT
    for rounds, wait in enumerate(back_off(options, limit, longest=longest), start=1):
        yield initial if rounds == 1 and first and initial > 0 else wait


class Search:
    """One search, from the first try to a broker that is ready, or to the end of the attempts.

    Args:
        candidates: returns the brokers of a round, in order; it is told how many rounds there were before.
        attempt: tries one and calls back with the error and whether it is final, or with ``None`` when the broker is
            ready: then the search is over.
        gave_up: called with the last error.
        error: why it is needed.
        pause: seconds to wait before the first round, at least.
    """

    def __init__(
        self,
        options: FailoverOptions,
        connector: Connector,
        candidates: Callable[[int], Sequence[BrokerUrl]],
        attempt: Callable[[BrokerUrl, Tried], None],
        gave_up: Callable[[BaseException], None],
        error: BaseException | None = None,
        *,
        first: bool,
        pause: float = 0.0,
    ) -> None:
        self._waits = waits(options, first=first)
        self._spread = SPREAD if options.use_reconnect_back_off else 1.0
        self._warn_every = options.warn_after_reconnect_attempts
        self._connector = connector
        self._candidates = candidates
        self._attempt = attempt
        self._gave_up = gave_up
        self._error: BaseException = error or ConnectionLostException("no broker was tried")
        self._pause = pause
        self._rounds = 0
        self._left: list[BrokerUrl] = []
        self._timer: Timer | None = None
        self._warned = -WARN_SECONDS

    def start(self) -> None:
        """Wait for the next round, or give up."""
        wait = next(self._waits, None)
        if wait is None:
            self._gave_up(self._error)
            return
        self._warn()
        if self._rounds:
            wait *= random.uniform(self._spread, 1.0)  # noqa: S311 - it spreads load, and keeps no secret
        self._timer = self._connector.call_later(max(wait, self._pause), self._begin_round)
        self._pause = 0.0

    def _warn(self) -> None:
        """Say after so many rounds that there is no broker."""
        if not self._rounds or not self._warn_every or self._rounds % self._warn_every:
            return
        if (now := time.monotonic()) - self._warned >= WARN_SECONDS:
            self._warned = now
            log.warning("no broker after %d rounds, trying on: %s", self._rounds, self._error)

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

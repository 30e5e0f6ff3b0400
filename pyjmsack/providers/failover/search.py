"""The search for a broker: rounds over the brokers, with waits between them. This module decides when to try and when
to stop. ``brokers.py`` decides which brokers a round tries and in which order. ``blame.py`` decides whether a request
or a link is the reason why connections are lost."""

from __future__ import annotations

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
from pyjmsack.loggers import get_logger
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.uri import BrokerUrl, FailoverOptions

__all__ = ["LONGEST_PAUSE", "Search", "Tried", "back_off", "is_final", "waits"]

log = get_logger("pyjmsack.failover")

LONGEST_WAIT = 30.0
"""The longest wait in seconds between two rounds, as in Java clients. This limit applies in three cases. In the first
case, the number of attempts is limited; a URL that was written for Java expects these waits. In the second case, the
first wait is already longer than :data:`SOON`. In the third case, the search looks for a better broker than the broker
in use."""
SOON = 0.75
"""The longest wait in seconds of a search that never gives up. The wait is short, because the search then finds a
restarted broker soon, and because an attempt at a closed port takes little work."""
SPREAD = 0.5
"""The smallest factor by which a growing wait is multiplied. Each wait is multiplied by a random factor from this value
up to 1, because clients that lost a broker at the same moment should not reconnect at the same moment."""
WARN_SECONDS = 10.0
"""The shortest time in seconds between two warnings that no broker was found."""
LONGEST_PAUSE = 2.0
"""The longest pause in seconds before the next search, if connections are lost as soon as they are open. The pause is
short, because a broker that accepts connections may work again at any moment."""
Tried = Callable[["BaseException | None", bool], None]
_PASSING = ("sasl:4", "tls:handshake")
"""Security errors after which the next attempt may succeed. With ``sasl:4`` (``sys-temp``) the broker says that it
cannot check the login now (AMQP 1.0 5.3.3.6). A TLS handshake (``tls:handshake``) ends early if the broker is stopping.
"""
_AT_THE_START = (InvalidClientIDException, InvalidURLException, UnsupportedFeatureException)
"""Mistakes of the caller, such as a client id that is in use or a key store that cannot be read. These errors end only
the first search of a connection. In a later search, the broker may still hold the client id for the lost connection, or
somebody may be replacing the key store."""


def back_off(
    options: FailoverOptions, attempts: int | None = None, *, longest: float = LONGEST_WAIT
) -> Iterator[float]:
    """Yield the seconds to wait after each failed attempt. The iterator ends after ``attempts`` values. If ``attempts``
    is ``None``, the iterator never ends.

    ``longest`` is the longest wait in seconds for URLs that do not set ``failover.maxReconnectDelay``. The library
    tenacity computes the waits. This function tells tenacity that each attempt failed, and yields each wait instead of
    sleeping.
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

    The iterator ends when no round is left.

    Args:
        first: True for the first search of a connection. The first round of this search starts at once and takes place
            in any case. ``failover.startupMaxReconnectAttempts`` limits the rounds of this search.
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
    """One search. It begins with the first try, and ends with a broker that is ready or after the last attempt.

    Args:
        candidates: returns the brokers of a round, in order. Its argument is the number of earlier rounds.
        attempt: tries one broker. When the try ends, it calls its second argument with the error, and with True if no
            other try can succeed. If the error is ``None``, the broker is ready and the search is over.
        gave_up: called with the last error when no attempt is left.
        error: the reason for this search, such as the loss of a connection.
        pause: the smallest number of seconds to wait before the first round.
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
        """Wait until the next round begins. If no round is left, give up."""
        wait = next(self._waits, None)
        if wait is None:
            self._gave_up(self._error)
            return
        if self._rounds:
            wait *= random.uniform(self._spread, 1.0)  # noqa: S311 - it spreads load, and keeps no secret
        self._timer = self._connector.call_later(max(wait, self._pause), self._begin_round)
        self._pause = 0.0
        self._warn()

    def _warn(self) -> None:
        """Log a warning that no broker was found, each time when ``failover.warnAfterReconnectAttempts`` more rounds
        have failed."""
        if not self._rounds or not self._warn_every or self._rounds % self._warn_every:
            return
        if (now := time.monotonic()) - self._warned >= WARN_SECONDS:
            self._warned = now
            log.warning("no broker was found in %d rounds, and the search goes on: %s", self._rounds, self._error)

    def stop(self) -> None:
        """End the search before it has found a broker or has given up."""
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
    """Return True if an error of an attempt to connect ends the search. A refused login ends each search. A mistake of
    the caller ends only the first search."""
    if isinstance(error, _AT_THE_START):
        return first
    return isinstance(error, JMSSecurityException) and error.error_code not in _PASSING

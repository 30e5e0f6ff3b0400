"""When to look for a broker again, and when to give up. tenacity computes; nothing here waits."""

from __future__ import annotations

from tenacity import RetryCallState, stop_after_attempt, stop_never, wait_exponential, wait_fixed

from pyjmsack.uri import FailoverOptions

__all__ = ["Schedule"]


class Schedule:
    """Waits and limits of one search. A round is one pass over all brokers.

    Args:
        options: the ``failover.*`` options of the URL.
        first: whether this is the very first connect: then the first round is at once, and the limit is that of the
            start.
    """

    def __init__(self, options: FailoverOptions, *, first: bool) -> None:
        self._options = options
        self._first = first
        limit = options.max_reconnect_attempts
        if first and options.startup_max_reconnect_attempts is not None:
            limit = options.startup_max_reconnect_attempts
        self._stop = stop_never if limit is None else stop_after_attempt(limit)
        if options.use_reconnect_back_off:
            self._wait: wait_exponential | wait_fixed = wait_exponential(
                multiplier=options.reconnect_delay,
                max=options.max_reconnect_delay,
                exp_base=options.reconnect_back_off_multiplier,
            )
        else:
            self._wait = wait_fixed(options.reconnect_delay)

    def delay(self, rounds: int) -> float:
        """Return the seconds to wait when so many rounds were in vain."""
        initial = self._options.initial_reconnect_delay
        if rounds == 0:
            return 0.0 if self._first else initial
        if rounds == 1 and self._first and initial > 0:
            return initial
        return self.backoff(rounds)

    def backoff(self, times: int) -> float:
        """Return the seconds to wait after so many vain attempts, of whatever kind."""
        return self._wait(_state(times))

    def exhausted(self, rounds: int) -> bool:
        """Whether to give up after so many rounds. The first connect is tried once in any case."""
        return bool(self._stop(_state(rounds))) and (rounds > 0 or not self._first)

    def warns(self, rounds: int) -> bool:
        """Whether a warning is due after so many rounds."""
        every = self._options.warn_after_reconnect_attempts
        return bool(every) and rounds > 0 and rounds % (every or 1) == 0


def _state(rounds: int) -> RetryCallState:
    state = RetryCallState(retry_object=None, fn=None, args=(), kwargs={})  # type: ignore[arg-type]  # nothing is called
    state.attempt_number = rounds
    return state

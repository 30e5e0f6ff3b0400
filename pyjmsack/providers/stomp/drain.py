"""Finds out whether the broker has more messages for a consumer. STOMP has no request for this. For a browser, this
module waits until the broker reports the end."""

from __future__ import annotations

from functools import partial

from pyjmsack.errors import RequestTimedOutException
from pyjmsack.providers.stomp.subscriptions import Shared, Subscriptions
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.resources import ConsumerInfo

__all__ = ["Drain"]

_QUIET = 0.05
"""Seconds for which a drain waits for messages before it sends its request. A drain has to wait, because a broker
delivers messages independently of its answers. Artemis usually took 0.1 ms for a message, and up to 30 ms on a busy
machine."""


class Drain:
    """The drain of one consumer.

    The drain first gives the broker time to deliver. Then the drain sends a request, and ends when the broker answers.
    At that time, all messages that the broker wrote before its answer have arrived. The drain may miss messages that
    the broker delivers later, because a broker delivers messages independently of its answers.

    Args:
        shared: the common state of the connection.
        info: describes the consumer.
        subscriptions: the subscriptions of the consumer, which count the messages that have arrived.
    """

    def __init__(self, shared: Shared, info: ConsumerInfo, subscriptions: Subscriptions) -> None:
        self._shared = shared
        self._info = info
        self._subscriptions = subscriptions
        self.waiting: list[Completion[None]] = []
        """The completions that wait for the end of the drain. The list is empty if no drain is under way."""
        self.browsed = False
        """True if the broker has said that the browser got everything."""
        self._timer: Timer | None = None
        self._late = False
        """True if the broker did not answer the request of the drain at once."""
        self._limit_timer: Timer | None = None

    def start(self, done: Completion[None]) -> None:
        """Begin a drain, or wait for the end of the drain that is under way. For a browser, this client sends no
        request, because the broker itself reports the end."""
        self.waiting.append(done)
        if len(self.waiting) == 1:
            self._limit()
            if not self._info.browser:
                self._give_time(last=False)

    def _limit(self) -> None:
        """Start the timer that ends a drain without an answer. The timer is needed, because a broker that finds no
        message for the selector of a browser never reports the end."""
        timeout = self._shared.drain_timeout
        if timeout is not None:
            overdue = partial(self._overdue, self._subscriptions.arrived, timeout)
            self._limit_timer = self._shared.connector.call_later(timeout, overdue)

    def _overdue(self, arrived: int, timeout: float) -> None:
        if arrived != self._subscriptions.arrived:  # messages came in the meantime
            self._limit()
            return
        what = f"{'a browser' if self._info.browser else 'the consumer'} of {self._info.destination.name}"
        self.end(RequestTimedOutException(f"{what}: the broker said nothing within stomp.drainTimeout ({timeout:g} s)"))

    def _give_time(self, *, last: bool) -> None:
        self._timer = self._shared.connector.call_later(_QUIET, partial(self._fence, last))

    def _fence(self, last: bool) -> None:
        engine = self._shared.engine
        self._late = False
        self._timer = self._shared.connector.call_later(_QUIET, self._answer_is_late)
        fence = b"fence-%d" % next(self._shared.ids)
        engine.write(b"BEGIN\ntransaction:", fence, b"\n\n\0")
        engine.ask(b"ABORT\ntransaction:" + fence, b"\n\0", partial(self._fence_answered, self.waiting, last))
        engine.flush()

    def _answer_is_late(self) -> None:
        self._late = True

    def _fence_answered(self, drained: list[Completion[None]], last: bool, error: BaseException | None) -> None:
        """End the drain. If the answer took long, first wait once more for messages, because the broker may have been
        too busy to deliver earlier.
        """
        if drained is not self.waiting:  # a message has ended the old drain, and a new drain may be under way
            return
        if self._late and not last and error is None:
            self._give_time(last=True)
        else:
            self.end(error)

    def browse_ended(self) -> None:
        """End the drain of a browser, because the broker said that the browser got everything."""
        self.browsed = True
        self.end(None)

    def end(self, error: BaseException | None) -> None:
        """End the drain, if there is one.

        Args:
            error: the error for the completions that wait. ``None`` if the drain succeeded.
        """
        for timer in (self._timer, self._limit_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._limit_timer = None
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done.settle(error)

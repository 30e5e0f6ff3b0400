"""Keeps the drains of one receiving link. A drain asks the broker to send the messages that it has, and to give the
rest of the credit back (AMQP 1.0 2.6.7). This module knows which callers wait for a drain, and when a drain is repeated
or overdue."""

from __future__ import annotations

from collections.abc import Callable

from pyjmsack.providers.amqp.owed import Owed
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer

__all__ = ["Drains"]

_REPEAT, _REPEAT_AT_MOST = 0.05, 1.0
"""Two times in seconds: the time until an unanswered drain is sent again, and the upper limit of this time. The time
doubles at each repetition. The first time is short, because a caller that waits for the drain does not get the messages
that arrive meanwhile."""

_MOST_EXTENSIONS = 9
"""A drain gets its time limit again if something arrived meanwhile, but not more often than this. Otherwise a broker
that sends a few bytes from time to time could keep a caller waiting for ever."""

_LATE_ANSWERS, _LATE_ANSWER_PAUSE = 2, 0.005
"""The first value is a number of answers without a message. After a message has ended a drain, this number of such
answers are doubted, because they may be late answers to that drain. The second value is the time in seconds before a
doubted drain is sent again. The link has no credit during this time, so a late answer from Artemis changes nothing.
Without this pause, about 1 in 150 drains with one credit on a filled queue had a wrong result."""


class Drains:
    """The drains of one link. The callers that ask for a drain at the same time wait for the same drain.

    The receiver sends the frames. This class decides when the frames are sent, and keeps the timers.

    Args:
        connector: makes the timers.
        timeout: the number of seconds for which a drain may stay unanswered while nothing arrives
            (``amqp.drainTimeout``). ``None`` means no limit.
        repeat: called when a drain without an answer has to be sent again.
        ask_again: called when a drain has to be sent again, with its credit, because its answer was doubted.
        overdue: called when a drain was not over within ``timeout``.
        progress: returns a value that changes when anything arrives on the link.
        owed: reckons what the broker still owes after a drain.
    """

    def __init__(
        self,
        connector: Connector,
        timeout: float | None,
        *,
        repeat: Callable[[], None],
        ask_again: Callable[[], None],
        overdue: Callable[[], None],
        progress: Callable[[], object],
        owed: Owed,
    ) -> None:
        self._connector = connector
        self.timeout = timeout
        self._repeat = repeat
        self._ask_again = ask_again
        self._overdue = overdue
        self._progress = progress
        self.owed = owed
        self._seen: object = None
        """What ``progress`` returned when the time limit began."""
        self._extensions = 0
        self.waiting: list[Completion[None]] = []
        """The callers that wait for the end of the drain under way. The list is empty if no drain is under way."""
        self.credit = 0
        """The credit with which the drain began, in messages."""
        self.arrived = 0
        """The number of messages that have arrived since the drain began."""
        self.pausing = False
        """Whether the link has no credit for a moment, because an answer was doubted."""
        self._answers_owed = 0
        """The number of late answers that may still come. A late answer comes if a message ended a drain before the
        answer to the drain."""
        self._delay = _REPEAT
        self._overdue_timer: Timer | None = None
        self._repeat_timer: Timer | None = None
        self._postponed: list[Completion[None]] = []
        """The callers whose drain begins when no message of this link waits for the disk any more."""
        self.flow_postponed = False
        """True if a Flow frame (the answer to a drain) came while a message waited for the disk. The frame is handled
        when no message waits for the disk any more."""

    # -- beginning ----------------------------------------------------------------------------------------------

    def begin(self, credit: int, *, fetching: bool = False) -> None:
        """Begin to wait for the answer to a drain that began with this credit. With ``fetching`` the drain is for
        messages that the broker owes."""
        self.credit = credit
        self.arrived = 0
        self.owed.fetching = fetching
        self._limit()
        self._delay = _REPEAT
        self._restart_timer(_REPEAT, self._repeat)

    def postpone(self, done: Completion[None]) -> None:
        """Let a drain begin when no message of the link waits for the disk any more. The time limit includes this
        wait."""
        self._postponed.append(done)
        self._limit()

    def take_postponed(self) -> list[Completion[None]]:
        """Return the postponed drains, and forget them. Their time limit ends, unless a drain is under way."""
        postponed, self._postponed = self._postponed, []
        if postponed and not self.waiting and self._overdue_timer is not None:
            self._overdue_timer.cancel()
            self._overdue_timer = None
        return postponed

    def _limit(self) -> None:
        if self.timeout is not None and self._overdue_timer is None:
            self._seen, self._extensions = self._progress(), 0
            self._overdue_timer = self._connector.call_later(self.timeout, self._expire)

    def _expire(self) -> None:
        self._overdue_timer = None
        seen, extensions = self._progress(), self._extensions + 1
        if seen == self._seen or extensions > _MOST_EXTENSIONS:
            self._overdue()
            return
        self._limit()  # the link is slow, and not dead
        self._extensions = extensions

    # -- the answer ---------------------------------------------------------------------------------------------

    @property
    def may_cut_short(self) -> bool:
        """Whether an answer may come between two frames of a message, and take away the credit of this message.

        Artemis 2.56 then sends the rest of the message only when it gets credit. If a drain began with one credit, this
        never happened.
        """
        return self.credit > 1 and (bool(self.waiting) or self._answers_owed > 0)

    def doubt_answer(self) -> bool:
        """Decide whether to doubt the answer that came, because it may belong to the previous drain.

        A drain is over when no credit is left (AMQP 1.0 2.6.7). Therefore a message that takes the last credit ends the
        drain before Artemis has written its answer. The late answer then takes away the credit that is granted next.

        Returns:
            True if the answer is doubted. The link then asks again after a pause. False if the drain is over.
        """
        if self._answers_owed and not self.arrived:
            self._answers_owed -= 1
            self.pausing = True
            self._restart_timer(_LATE_ANSWER_PAUSE, self._ask_again)
            return True
        self._answers_owed = 0
        return False

    def asked_again(self) -> None:
        """Remember that the pause is over and that the drain begins again. The caller calls :meth:`repeated` next."""
        self.pausing = False
        self._delay = _REPEAT

    def repeated(self) -> None:
        """Remember that the drain was sent again. The time until the next repetition doubles, up to a limit."""
        self._delay = min(2 * self._delay, _REPEAT_AT_MOST)
        self._restart_timer(self._delay, self._repeat)

    def _restart_timer(self, delay: float, callback: Callable[[], None]) -> None:
        if self._repeat_timer is not None:
            self._repeat_timer.cancel()
        self._repeat_timer = self._connector.call_later(delay, callback)

    # -- the end ------------------------------------------------------------------------------------------------

    def go_on(self, *, by_message: bool) -> int:
        """If the broker owes messages that the link has to get, begin another drain for the same callers.

        Args:
            by_message: whether a message took the last credit. In this case the answer to the drain is still to come.

        Returns:
            The credit of this drain. 0 if the callers need not wait any more.
        """
        credit = self.owed.after(self.credit, self.arrived)
        if credit:
            if by_message:
                self._answers_owed = _LATE_ANSWERS
            self.begin(credit, fetching=True)
            self.pausing = self.owed.careful
            if self.pausing:
                self._restart_timer(_LATE_ANSWER_PAUSE, self._ask_again)
        return credit

    def end(self, *, by_message: bool) -> list[Completion[None]]:
        """End the drain under way, if there is one, and all timers. Return the callers that waited for it.

        Args:
            by_message: whether a message took the last credit. In this case the answer to the drain is still to come.
        """
        if by_message:
            self._answers_owed = _LATE_ANSWERS
        waiting, self.waiting = self.waiting, []
        for timer in (self._overdue_timer, self._repeat_timer):
            if timer is not None:
                timer.cancel()
        self._overdue_timer = self._repeat_timer = None
        self.pausing = False
        self.owed.fetching = False
        return waiting

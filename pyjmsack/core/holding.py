"""Redelivered messages that wait for their time (S115, S116)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from pyjmsack.core.inbox import PriorityInbox
from pyjmsack.core.redelivery import redelivery_delay
from pyjmsack.spi.envelope import Inbound
from pyjmsack.uri import RedeliveryPolicy

__all__ = ["Holding"]

CallLater = Callable[[float, Callable[[], None]], None]


class Holding:
    """Keeps the redelivered messages of one consumer back as its policy says.

    The broker redelivers at once, so the wait is here, and begins when the message would be handed out. The consumer's
    thread asks, the loop's timer answers later; each field is written by one side at a time.

    Args:
        policy: how long (S115).
        blocking: whether later messages wait behind it, so that their order is kept; else they overtake it (S116).
        inbox: of the consumer; what waited goes back to its head.
        call_later: ``call_later(seconds, callback)``, on the loop.
        due: called on the loop when a wait is over.
    """

    def __init__(
        self,
        policy: RedeliveryPolicy,
        blocking: bool,
        inbox: deque[Inbound] | PriorityInbox,
        call_later: CallLater,
        due: Callable[[], None],
    ) -> None:
        self._policy = policy
        self._blocking = blocking
        self._inbox = inbox
        self._call_later = call_later
        self._due = due
        self._waiting: dict[Inbound, int] = {}
        self._ready: dict[Inbound, int] = {}
        self._passed: tuple[Inbound, int] | None = None

    @property
    def blocks(self) -> bool:
        """Whether nothing may be handed out now."""
        return self._blocking and bool(self._waiting)

    def __len__(self) -> int:
        """How many messages wait outside the inbox."""
        return 0 if self._blocking else len(self._waiting)

    def must_wait(self, inbound: Inbound) -> bool:
        """Whether a message that was just taken out of the inbox is kept back; then it is somewhere safe already."""
        count = inbound.redelivery_count + inbound.redeliveries
        if count == 0 or self._policy.exceeded(count):
            return False
        if self._ready.pop(inbound, None) == count or self._passed == (inbound, count):
            self._passed = inbound, count  # put back after a look (S176), it need not wait again
            return False
        delay = redelivery_delay(self._policy, count)
        if delay <= 0:
            return False
        try:
            self._waiting[inbound] = count
            if self._blocking:
                self._inbox.appendleft(inbound)
            self._call_later(delay, lambda: self._over(inbound, count))
        except BaseException:  # Ctrl-C: without its timer it would wait for ever
            self._waiting.pop(inbound, None)
            raise
        return True

    def _over(self, inbound: Inbound, count: int) -> None:
        if self._waiting.pop(inbound, None) is None:  # handed back, or the consumer is over
            return
        self._ready[inbound] = count
        if not self._blocking:
            self._inbox.appendleft(inbound)
        self._due()

    def __contains__(self, inbound: Inbound) -> bool:
        """Whether it waits outside the inbox."""
        return not self._blocking and inbound in self._waiting

    def release(self) -> list[Inbound]:
        """Forget every wait; return the messages that are not in the inbox."""
        waiting, self._waiting = self._waiting, {}
        self._ready.clear()
        return [] if self._blocking else [*waiting]

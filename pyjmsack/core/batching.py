"""When acknowledgements leave: batches of them, and how many a caller may owe (S39-S48, S56)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil

from pyjmsack.core.runtime import taken
from pyjmsack.destination import Destination
from pyjmsack.errors import IllegalStateException
from pyjmsack.loggers import get_logger
from pyjmsack.spi.envelope import Inbound
from pyjmsack.types import AckMode
from pyjmsack.uri import OPTIMIZED_SHARE

__all__ = ["AckBatch", "AckWindow", "ack_threshold"]

log = get_logger("pyjmsack")
LAZY_SHARE = 0.5
"""The size of a batch of acknowledgements in DUPS_OK mode on a topic, as a part of the prefetch (S46)."""
WARNING_SHARE = 1.5
"""There is a warning if the caller holds more unacknowledged messages than the prefetch times this factor (S56)."""


def ack_threshold(mode: AckMode, destination: Destination, prefetch: int, optimize: bool) -> int:
    """Return the number of automatically acknowledged messages that make a batch. With 1 there are no batches.

    Args:
        mode: the acknowledge mode of the session.
        destination: the destination of the consumer.
        prefetch: the prefetch of the consumer, in messages.
        optimize: ``jms.optimizeAcknowledge``.

    Raises:
        IllegalStateException: acknowledgements are optimised, but the prefetch is 0 (S10).
    """
    if mode is AckMode.DUPS_OK_ACKNOWLEDGE and destination.is_topic:
        return max(1, ceil(LAZY_SHARE * prefetch))
    if not optimize or mode not in (AckMode.AUTO_ACKNOWLEDGE, AckMode.DUPS_OK_ACKNOWLEDGE):
        return 1
    if prefetch == 0:
        raise IllegalStateException(
            "jms.optimizeAcknowledge needs a prefetch of at least 1; prefetch 0 fetches messages one by one (S10)"
        )
    return max(1, ceil(OPTIMIZED_SHARE * prefetch))


class AckBatch:
    """Messages of one consumer whose automatic acknowledgements wait, so that they leave together (S39-S48).

    The session's thread (or dispatcher) adds messages. The timer of the loop may flush at the same moment. ``popleft``
    gives each message to only one of these two threads.

    Args:
        settle: gives several messages the outcome "accepted" in one command.
        call_later: ``call_later(seconds, callback)`` calls ``callback`` on the loop after this time.
        size: the number of messages that make a batch.
        timeout: seconds that a message may wait here (S41, S44). ``None`` means no limit.
    """

    def __init__(
        self,
        settle: Callable[[list[Inbound]], None],
        call_later: Callable[[float, Callable[[], None]], object],
        size: int,
        timeout: float | None,
    ) -> None:
        self._settle = settle
        self._call_later = call_later
        self._size = size
        self._timeout = timeout
        self._pending: deque[Inbound] = deque()
        self._armed = False

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, inbound: Inbound) -> None:
        """Add a message, and acknowledge the batch if it is full."""
        self._pending.append(inbound)
        if len(self._pending) >= self._size:
            self.flush()
        elif self._timeout is not None and not self._armed:
            self._armed = True
            self._call_later(self._timeout, self._overdue)

    def flush(self) -> None:
        """Acknowledge the pending messages in one burst: over AMQP, one frame carries the outcome of consecutive
        deliveries (S27)."""
        batch = [*taken(self._pending)]
        if batch:
            self._settle(batch)

    def _overdue(self) -> None:
        self._armed = False
        self.flush()


class AckWindow:
    """Limits how many unacknowledged messages a caller may hold (S56).

    Old versions of ActiveMQ stopped a consumer at 1.5 times its prefetch. ``jms.ackWindow=1.5`` makes this client do
    the same. Without this option the consumer goes on, and one warning says that acknowledgements may have been
    forgotten.

    Args:
        prefetch: the prefetch of the consumer, in messages. With 0 there is neither a limit nor a warning.
        share: ``jms.ackWindow``, in multiples of the prefetch. ``None`` means no limit.
    """

    def __init__(self, prefetch: int, share: float | None) -> None:
        self.limit = None if share is None or not prefetch else max(1, ceil(share * prefetch))
        """How many messages the caller may hold. ``None`` means any number."""
        self._warn_above = ceil(WARNING_SHARE * prefetch) if prefetch else None
        self._prefetch = prefetch

    def is_full(self, unacknowledged: int) -> bool:
        """True if no message is handed out until the caller acknowledges."""
        return self.limit is not None and unacknowledged >= self.limit

    def check(self, unacknowledged: int, destination: Destination) -> None:
        """Warn, once, if the caller holds so many messages that it may have forgotten to acknowledge."""
        if self._warn_above is not None and unacknowledged > self._warn_above:
            self._warn_above = None
            log.warning(
                "a consumer of %s holds %d unacknowledged messages, more than 1.5 times its prefetch of %d:"
                " check that the program acknowledges each message (S56)",
                destination.name,
                unacknowledged,
                self._prefetch,
            )

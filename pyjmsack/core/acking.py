"""Automatic acknowledgements that are sent together: ``optimizeAcknowledge`` and DUPS_OK (S39-S48)."""

from __future__ import annotations

import logging
from collections import deque
from math import ceil
from typing import TYPE_CHECKING

from pyjmsack.destination import Destination
from pyjmsack.errors import IllegalStateException
from pyjmsack.spi.envelope import Inbound
from pyjmsack.types import AckMode, AckType, Outcome
from pyjmsack.uri import OPTIMIZED_SHARE

if TYPE_CHECKING:
    from pyjmsack.core.settling import Settling

__all__ = ["ACK_TYPES", "AckBatch", "AckWindow", "ack_threshold", "log_ack", "traces_acks"]

LAZY_SHARE = 0.5
"""Of the prefetch: so many make a batch in DUPS_OK on a topic (S46)."""
WARNING_SHARE = 1.5
"""Of the prefetch: holding more unacknowledged messages than this is worth a warning (S56)."""

log = logging.getLogger("pyjmsack.ack")


def ack_threshold(mode: AckMode, destination: Destination, prefetch: int, optimize: bool) -> int:
    """Return how many automatically acknowledged messages make a batch; 1 = each is acknowledged at once.

    Args:
        mode: of the session.
        destination: what is consumed.
        prefetch: messages.
        optimize: ``jms.optimizeAcknowledge``.

    Raises:
        IllegalStateException: optimised acknowledgement with prefetch 0, which fetches one by one (S10).
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
    """Messages of one consumer that were consumed and not acknowledged yet.

    The session's thread (or dispatcher) adds; the loop's timer may flush at the same moment: ``popleft`` gives each
    message to one of them.

    Args:
        consumer: whose messages they are.
        size: messages that make a batch.
        timeout: seconds that a message may wait here (S41, S44); ``None`` = until the batch is full or closed.
    """

    def __init__(self, consumer: Settling, size: int, timeout: float | None) -> None:
        self._consumer = consumer
        self._size = size
        self._timeout = timeout
        self._pending: deque[Inbound] = deque()
        self._armed = False

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, inbound: Inbound) -> None:
        """One more was consumed; a full batch is acknowledged."""
        self._pending.append(inbound)
        if len(self._pending) >= self._size:
            self.flush()
        elif self._timeout is not None and not self._armed:
            self._armed = True
            self._consumer.session.connection.runtime.call_later(self._timeout, self._overdue)

    def flush(self) -> None:
        """Acknowledge what is pending, in one burst: consecutive deliveries make one AMQP disposition (S27)."""
        batch: list[Inbound] = []
        while self._pending:
            try:
                batch.append(self._pending.popleft())
            except IndexError:  # the timer took it
                break
        if batch:
            self._consumer.settle_batch(batch)

    def _overdue(self) -> None:
        self._armed = False
        self.flush()


class AckWindow:
    """How many messages a caller may hold unacknowledged (S56).

    ActiveMQ once stalled a consumer at 1.5 times its prefetch. ``jms.ackWindow=1.5`` brings that back; without it the
    consumer goes on and one warning says that acknowledgements may have been forgotten.

    Args:
        prefetch: messages; with 0 there is neither stall nor warning.
        share: ``jms.ackWindow``, in multiples of the prefetch; ``None`` = no stall.
    """

    def __init__(self, prefetch: int, share: float | None) -> None:
        self._limit = None if share is None or not prefetch else max(1, ceil(share * prefetch))
        self._warn_above = ceil(WARNING_SHARE * prefetch) if prefetch else None
        self._prefetch = prefetch

    def is_full(self, unacknowledged: int) -> bool:
        """Whether nothing more is handed out until the caller acknowledges."""
        return self._limit is not None and unacknowledged >= self._limit

    def check(self, unacknowledged: int, destination: Destination) -> None:
        """Warn, once, of a caller who seems to have forgotten to acknowledge."""
        if self._warn_above is not None and unacknowledged > self._warn_above:
            self._warn_above = None
            logging.getLogger("pyjmsack").warning(
                "a consumer of %s holds %d unacknowledged messages, more than 1.5 times its prefetch of %d:"
                " does it acknowledge? (S56)",
                destination.name,
                unacknowledged,
                self._prefetch,
            )


def traces_acks() -> bool:
    """Whether acknowledgements are logged: asked once per consumer, to keep the cost off each message."""
    return log.isEnabledFor(logging.DEBUG)


def log_ack(kind: AckType, count: int, destination: Destination) -> None:
    """Log an acknowledgement by its name in ActiveMQ, at level DEBUG of ``pyjmsack.ack``."""
    log.debug("%s ack of %d message(s) of %s", kind.name, count, destination.name)


ACK_TYPES = {
    Outcome.ACCEPTED: AckType.STANDARD,
    Outcome.REJECTED: AckType.POISON,
    Outcome.RELEASED: AckType.REDELIVERED,
    Outcome.MODIFIED_FAILED: AckType.REDELIVERED,
    Outcome.MODIFIED_FAILED_UNDELIVERABLE: AckType.POISON,
}
"""The ActiveMQ name of each outcome."""

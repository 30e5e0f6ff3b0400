"""What is open on a failover connection, so that it can be opened again (S103)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyjmsack.spi.envelope import Inbound, InboundSink
from pyjmsack.spi.resources import ConsumerInfo, SessionInfo

__all__ = ["ConsumerRecord", "SessionRecord"]


class SessionRecord:
    """A session, and what its open transaction did at the present broker."""

    __slots__ = ("in_doubt", "info", "work")

    def __init__(self, info: SessionInfo) -> None:
        self.info = info
        self.work = 0
        """Sends and acknowledgements of the open transaction."""
        self.in_doubt = False
        """Whether the open transaction lost work and can only be rolled back (S92, S97)."""

    def clear(self) -> None:
        """A transaction begins."""
        self.work = 0
        self.in_doubt = False


class ConsumerRecord:
    """A consumer, and the sink that members get: it stands between them and the core's only where it must.

    Args:
        closed: called when the broker closes this consumer, and not the connection.
    """

    def __init__(self, info: ConsumerInfo, closed: Callable[[int], None]) -> None:
        self.core: InboundSink = info.sink
        self.info = replace(info, sink=self)
        self.attached = False
        """Whether the present member has it: what others still say of it does not count."""
        self.started = False
        self.stopped = False
        self.pulling = False
        """Whether a ``pull`` has brought nothing yet."""
        self._closed = closed
        # no call of our own per message, but where the arrival ends a pull
        self.deliver = self.core.deliver if info.prefetch else self._deliver_pulled
        self.redeliver = self.core.redeliver
        self.arrived = self.core.arrived
        self.buffered = self.core.buffered

    def _deliver_pulled(self, inbound: Inbound) -> None:
        self.pulling = False
        self.core.deliver(inbound)

    def detached(self, error: BaseException) -> None:
        """The broker closed this consumer (S126); a lost connection is none of the core's business."""
        if self.attached:
            self.attached = False
            self._closed(self.info.id)
            self.core.detached(error)

"""What is open on a failover connection, so that it can be opened again (S103)."""

from __future__ import annotations

from collections.abc import Callable

from pyjmsack.providers.failover.replay import Replay
from pyjmsack.spi.envelope import Inbound, InboundSink
from pyjmsack.spi.resources import ConsumerInfo, SessionInfo

__all__ = ["ConsumerRecord", "SessionRecord"]


class SessionRecord:
    """A session, and what its open transaction did at the present broker."""

    __slots__ = ("in_doubt", "info", "replay", "work")

    def __init__(self, info: SessionInfo, *, replays: bool = False) -> None:
        self.info = info
        self.replay = Replay() if replays and info.transacted else None
        """What the open transaction did, if it is to be done again (S107)."""
        self.work = 0
        """Sends and acknowledgements of the open transaction."""
        self.in_doubt = False
        """Whether the open transaction lost work and can only be rolled back (S92, S97)."""

    def clear(self) -> None:
        """A transaction begins."""
        self.work = 0
        self.in_doubt = False
        if self.replay is not None:
            self.replay = Replay()


class ConsumerRecord:
    """A consumer.

    Args:
        core: the consumer's own sink.
        closed: called when the broker closes this consumer, and not the connection.
    """

    def __init__(self, info: ConsumerInfo, core: InboundSink, closed: Callable[[int], None]) -> None:
        self.info = info
        self.core = core
        self.started = False
        self.stopped = False
        self.pulling = False
        """Whether a ``pull`` has brought nothing yet."""
        self.takes: Callable[[Inbound], bool] | None = None
        """Takes what the open transaction acknowledged at an earlier broker, while such messages are missing (S107)."""
        self.created = False
        """Whether a broker has confirmed it. Until then the answer to the request says what went wrong."""
        self.sink: MemberSink | None = None
        """That of the present member: what others still say does not count."""
        self._closed = closed

    def attach(self) -> MemberSink:
        """Return the sink for the next member."""
        self.sink = MemberSink(self)
        return self.sink

    def close(self, error: BaseException) -> None:
        """The broker took it away (S104, S126)."""
        self._closed(self.info.id)
        self.core.detached(error)


class MemberSink:
    """Stands between one member and the core's sink, but only where it must: a message costs no call more.

    Before its member is in use it keeps what arrives: STOMP brokers deliver at once, and a member that is lost before
    all is rebuilt has delivered nothing.
    """

    def __init__(self, record: ConsumerRecord) -> None:
        core = record.core
        self._record = record
        self._deliver = core.deliver
        self._early: list[Inbound] = []
        self.deliver: Callable[[Inbound], None] = self._early.append
        self.redeliver = core.redeliver
        self.arrived: Callable[[], None] = _nothing
        self.buffered: Callable[[], int] = lambda: len(self._early) + core.buffered()

    def open(self) -> None:
        """The member is in use, and has this consumer: hand on what arrived, and all that comes."""
        core = self._record.core
        self.deliver = self._deliver_new if self._record.takes is not None else self._usual
        self.arrived, self.buffered = core.arrived, core.buffered
        early = [*self._early]
        self._early.clear()
        for inbound in early:
            self.deliver(inbound)
        if early:
            self.arrived()

    @property
    def _usual(self) -> Callable[[Inbound], None]:
        return self._deliver if self._record.info.prefetch else self._deliver_pulled

    def _deliver_new(self, inbound: Inbound) -> None:
        takes = self._record.takes
        if takes is None:
            self.deliver = self._usual
        if takes is None or not takes(inbound):
            self._usual(inbound)

    def _deliver_pulled(self, inbound: Inbound) -> None:
        self._record.pulling = False
        self._deliver(inbound)

    def detached(self, error: BaseException) -> None:
        """The broker closed this consumer; a lost connection is none of the core's business."""
        if self._record.sink is self and self._record.created:
            self._record.close(error)


def _nothing() -> None:
    """Nobody may be woken yet."""

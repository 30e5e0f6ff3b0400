"""What is open on a failover connection, so that it can be opened again (S103)."""

from __future__ import annotations

from collections.abc import Callable

from pyjmsack.errors import (
    IllegalStateException,
    JMSException,
)
from pyjmsack.providers.failover.blame import Blame
from pyjmsack.providers.failover.transactions import Replay
from pyjmsack.spi.envelope import Inbound, InboundSink
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo, SessionInfo, TemporaryInfo

__all__ = [
    "ConsumerRecord",
    "Resources",
    "SessionRecord",
]


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
        """Takes a message that the open transaction acknowledged at an earlier broker (S107). ``None`` if no such
        message is missing."""
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
    all is restored has delivered nothing.
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
        """The broker closed this consumer. After a lost connection the core hears nothing, because the consumer is
        restored."""
        if self._record.sink is self and self._record.created:
            self._record.close(error)


def _nothing() -> None:
    """Nobody may be woken yet."""


class Resources:
    """What a connection has open, in the order in which it was opened."""

    def __init__(self) -> None:
        self.sessions: dict[int, SessionRecord] = {}
        self.producers: dict[int, ProducerInfo] = {}
        self.consumers: dict[int, ConsumerRecord] = {}
        self.temporaries: dict[int, tuple[TemporaryInfo, str]] = {}
        """Temporary destinations, with the names that they have at the present broker."""
        self.former_names: dict[str, int] = {}
        self.renamed = False
        """Whether temporary destinations got new names since there was a broker."""
        self.transacted_consumers: dict[int, SessionRecord] = {}
        self.interruptions = 0
        """Connections that were lost, or given up before they were ready."""
        self._refused: dict[int, tuple[int, BaseException]] = {}
        """Producers that a broker refused or closed: their session, and why."""
        self.blame = Blame()
        """Connections that were lost while all was being restored; from the second attempt on each link is asked for
        alone, so that the guilty one is known."""

    def rebuilt(self) -> None:
        """A broker has taken all."""
        self.blame.clear()

    def clear(self) -> None:
        """The connection is closed."""
        for table in (self.sessions, self.producers, self.consumers, self.temporaries, self.transacted_consumers):
            table.clear()
        self._refused.clear()
        self.former_names.clear()

    def present_name(self, name: str) -> str:
        """Return the name that a temporary destination has now, by one that it had."""
        number = self.former_names.get(name)
        return self.temporaries[number][1] if number in self.temporaries else name

    def add_consumer(self, record: ConsumerRecord) -> None:
        """A consumer is attached."""
        info = record.info
        record.created = True
        assert record.sink is not None  # it is attached
        record.sink.open()
        self.consumers[info.id] = record
        session = self.sessions.get(info.session_id)
        if session is not None and session.info.transacted:
            self.transacted_consumers[info.id] = session

    def forget_consumer(self, number: int) -> None:
        """A consumer is closed."""
        record = self.consumers.pop(number, None)
        self.transacted_consumers.pop(number, None)
        if record is not None:
            record.sink = None

    def forget_producer(self, number: int) -> None:
        """A producer is closed."""
        self.producers.pop(number, None)
        self._refused.pop(number, None)

    def forget_session(self, number: int) -> None:
        """A session is closed, with its links."""
        self.sessions.pop(number, None)
        for producer in [p for p in self.producers.values() if p.session_id == number]:
            self.forget_producer(producer.id)
        for record in [r for r in self.consumers.values() if r.info.session_id == number]:
            self.forget_consumer(record.info.id)
        for producer_id in [p for p, (session_id, _) in self._refused.items() if session_id == number]:
            del self._refused[producer_id]

    def closed_by_broker(self, number: int, error: BaseException) -> None:
        """The broker closed a session or producer, or does not take a producer any more (S104, S109)."""
        closed = [p for p in self.producers.values() if number in (p.id, p.session_id)]
        for record in [r for r in self.consumers.values() if r.info.session_id == number]:
            record.close(error)
        self.forget_producer(number)
        self.forget_session(number)
        for producer in closed:
            self.forget_producer(producer.id)
            self._refused[producer.id] = (producer.session_id, error)

    def why_closed(self, producer_id: int) -> BaseException:
        """Return why a producer cannot send."""
        if producer_id not in self._refused:
            return IllegalStateException("the producer is closed")
        _, error = self._refused[producer_id]
        return error.fresh() if isinstance(error, JMSException) else error

    def in_use(self) -> None:
        """All is restored, and the messages that were delivered meanwhile count."""
        for record in [*self.consumers.values()]:
            if record.sink is not None:
                record.sink.open()

    def interrupted(self) -> None:
        """The broker is gone: no word of it counts any more, and what was being closed is closed."""
        self.interruptions += 1
        for record in [*self.consumers.values()]:
            record.sink = None
            if record.stopped:
                self.forget_consumer(record.info.id)

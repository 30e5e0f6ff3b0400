"""The open sessions, producers, consumers and temporary destinations of a failover connection. They are restored at the
next broker (S103)."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import Final

from pyjmsack.errors import (
    IllegalStateException,
    JMSException,
)
from pyjmsack.providers.failover.blame import Blame
from pyjmsack.providers.failover.transactions import Replay
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound, InboundSink, identify
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo, SessionInfo, TemporaryInfo
from pyjmsack.uri import BrokerUrl

__all__ = [
    "ConsumerRecord",
    "Resources",
    "SessionRecord",
]

MOST_NAMES: Final = 10_000
"""The largest number of former names of temporary destinations that a connection remembers. Each new broker gives a new
name to every temporary destination."""


class SessionRecord:
    """A session, with the state of its open transaction at the present broker."""

    __slots__ = ("in_doubt", "info", "replay", "work")

    def __init__(self, info: SessionInfo, *, replays: bool = False) -> None:
        self.info = info
        self.replay = Replay() if replays and info.transacted else None
        """The recorded work of the open transaction. ``None`` if the work will not be replayed (S107)."""
        self.work = 0
        """The number of sends and acknowledgements of the open transaction at the present broker."""
        self.in_doubt = False
        """True if the open transaction lost work and can only be rolled back (S92, S97)."""

    def clear(self) -> None:
        """Forget the work of the last transaction, because a new one begins."""
        self.work = 0
        self.in_doubt = False
        if self.replay is not None:
            self.replay = Replay()


class ConsumerRecord:
    """A consumer, with the state that is needed to restore it at the next broker.

    Args:
        core: the inbox of the consumer.
        closed: called when the broker closes only this consumer and keeps the connection open.
        elsewhere: ``elsewhere(work, then)`` runs long work on another thread (``Connector.elsewhere``).
    """

    def __init__(
        self,
        info: ConsumerInfo,
        core: InboundSink,
        closed: Callable[[int], None],
        elsewhere: Callable[[Callable[[], None], Callable[[], None]], None],
    ) -> None:
        self.info = info
        self.core = core
        self.elsewhere = elsewhere
        self.started = False
        self.stopped = False
        self.pulling = False
        """True if the consumer asked for one message with ``pull``, and the message has not come yet."""
        self.takes: Callable[[Inbound], bool] | None = None
        """A function that is called with each new message. If the open transaction acknowledged the message at an
        earlier broker, the function acknowledges the message again and returns True. ``None`` if no such message is
        missing (S107)."""
        self.created = False
        """True after a broker has confirmed the consumer. Before that, an error of the consumer is the answer to the
        request that creates it."""
        self.sink: MemberSink | None = None
        """The object that takes the messages of the present connection. Messages for earlier sinks are ignored."""
        self._closed = closed

    def attach(self) -> MemberSink:
        """Return a new sink for the next connection."""
        self.sink = MemberSink(self)
        return self.sink

    @property
    def identifies(self) -> bool:
        """True while another thread computes the identity of a large message. The large message and the messages behind
        it wait until the identity is known."""
        return self.sink is not None and bool(self.sink.held)

    def behind(self, done: Completion[None]) -> Completion[None]:
        """Return a completion that passes its result to ``done``. If :attr:`identifies` is true, ``done`` gets the
        result later, when :attr:`identifies` is false."""

        def settle(_: object) -> None:
            if self.identifies and self.sink is not None:
                self.sink.drained.append(partial(done.settle, answered.error))
            else:
                done.settle(answered.error)

        answered: Completion[None] = Completion()
        answered.add_callback(settle)
        return answered

    def close(self, error: BaseException) -> None:
        """Close this consumer with an error, because the broker closed it (S104, S126)."""
        self._closed(self.info.id)
        self.core.detached(error)


class MemberSink:
    """Takes the messages of one consumer from one connection, and puts them into the inbox of the core.

    While the connection is in use, messages go straight to the core. While the connection is being restored, the sink
    keeps the messages that arrive, because STOMP brokers deliver at once. If the connection is lost before everything
    is restored, these messages are dropped and count as not delivered.
    """

    def __init__(self, record: ConsumerRecord) -> None:
        core = record.core
        self._record = record
        self._deliver = core.deliver
        self._early: list[Inbound] = []
        self.held: deque[Inbound] = deque()
        """A large message whose identity another thread computes now, and the messages that wait behind it (S107)."""
        self.drained: list[Callable[[], None]] = []
        """The functions to call when no message is held any more."""
        self.deliver: Callable[[Inbound], None] = self._early.append
        self.redeliver = core.redeliver
        self.ended: Callable[[BaseException], None] = record.close
        """Called when the broker ends the consumer. A restoration sets this attribute until :meth:`open`."""
        self.arrived: Callable[[], None] = _nothing
        self.buffered: Callable[[], int] = lambda: len(self._early) + len(self.held) + core.buffered()

    def open(self) -> None:
        """Put the messages that arrived into the inbox, because the connection is in use now. From now on each new
        message goes there at once."""
        core = self._record.core
        self.arrived = core.arrived
        self.ended = self._record.close
        if self._record.takes is not None:
            self.deliver = self._deliver_new
        else:
            self.deliver, self.buffered = self._usual, core.buffered
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
        if self.held:
            self.held.append(inbound)
        elif self._is_heavy(inbound):
            self.held.append(inbound)
            self._identify()
        else:
            self._take_or_deliver(inbound)

    def _is_heavy(self, inbound: Inbound) -> bool:
        return self._record.takes is not None and inbound.heavy

    def _take_or_deliver(self, inbound: Inbound) -> None:
        takes = self._record.takes
        if takes is None:
            self.deliver = self._usual
        if takes is None or not takes(inbound):
            self._usual(inbound)

    def _identify(self) -> None:
        self._record.elsewhere(partial(identify, [self.held[0]]), self._identified)

    def _identified(self) -> None:
        """Deliver the first message that is held and the messages behind it, because the identity of the first message
        is known now. This method runs on the loop."""
        if not self.held:  # the connection was left
            return
        self._take_or_deliver(self.held.popleft())
        while self.held and not self._is_heavy(self.held[0]):
            self._take_or_deliver(self.held.popleft())
        self.arrived()
        if self.held:
            self._identify()
        else:
            self._settle_drains()

    def _settle_drains(self) -> None:
        drained, self.drained = self.drained, []
        for settle in drained:
            settle()

    def _deliver_pulled(self, inbound: Inbound) -> None:
        self._record.pulling = False
        self._deliver(inbound)

    def leave(self) -> None:
        """Ignore the messages that still arrive, because the connection is being left and the messages will be
        delivered again. Only presettled messages are still handed out, because their broker has forgotten them already.
        """
        self.deliver = self._deliver_settled
        held = [*self.held]
        self.held.clear()
        for inbound in held:
            self._deliver_settled(inbound)
        self._settle_drains()

    def _deliver_settled(self, inbound: Inbound) -> None:
        if inbound.settled:
            self._deliver(inbound)

    def detached(self, error: BaseException) -> None:
        """Handle the end of the consumer, because the broker closed it. If the connection was lost, do nothing, because
        the consumer will be restored."""
        if self._record.sink is self and self._record.created:
            self.ended(error)


def _nothing() -> None:
    """Do nothing, because the core must not get messages yet."""


class Resources:
    """The open resources of a connection, in the order in which they were opened."""

    def __init__(self) -> None:
        self.sessions: dict[int, SessionRecord] = {}
        self.producers: dict[int, ProducerInfo] = {}
        self.consumers: dict[int, ConsumerRecord] = {}
        self.temporaries: dict[int, tuple[TemporaryInfo, str]] = {}
        """The temporary destinations, with their names at the present broker."""
        self._former_names: OrderedDict[int, int] = OrderedDict()
        """The temporary destinations, found by each name that they had at an earlier broker. The dictionary holds a
        hash of each name, because a hash has a fixed length and a broker may choose a name of any length."""
        self.renamed = False
        """True if temporary destinations got new names since the last broker was lost."""
        self.transacted_consumers: dict[int, SessionRecord] = {}
        self.interruptions = 0
        """The number of connections that were lost, or were given up before they were ready."""
        self._refused: dict[int, tuple[int, BaseException]] = {}
        """For each producer that a broker refused or closed, its session and the error."""
        self.ended: dict[int, BaseException] = {}
        """For each session that a broker ended or refused and the caller has not closed yet, the error."""
        self.blame = Blame()
        """Counts the connections in a row that were lost while everything was being restored."""
        self.suspects: frozenset[int] = frozenset()
        """The ids of the sessions and links that were being requested when such a connection was lost last."""
        self.ended_at: set[BrokerUrl] = set()
        """The brokers that opened an object and ended it again, while everything was being restored."""
        self.refused_since: float | None = None
        """The time, by ``monotonic``, when a broker first refused or ended a session, since everything was restored."""

    def rebuilt(self) -> None:
        """Remember that everything is open again at a broker, so that nothing is suspected of causing losses any
        more."""
        self.blame.clear()
        self.ended_at.clear()
        self.refused_since = None

    def clear(self) -> None:
        """Forget all resources, because the connection is closed."""
        for table in (self.sessions, self.producers, self.consumers, self.temporaries, self.transacted_consumers):
            table.clear()
        self._refused.clear()
        self.ended.clear()
        self._former_names.clear()

    def present_name(self, name: str) -> str:
        """Return the present name of the temporary destination that had this name earlier."""
        number = self._former_names.get(hash(name))
        return self.temporaries[number][1] if number in self.temporaries else name

    def rename(self, info: TemporaryInfo, name: str) -> None:
        """Remember the new name of a temporary destination, and remember the former name, because waiting messages may
        still contain it."""
        _, former = self.temporaries[info.id]
        self.temporaries[info.id] = (info, name)
        self._former_names[hash(former)] = info.id
        if len(self._former_names) > MOST_NAMES:
            self._former_names.popitem(last=False)
        self.renamed = True

    def add_consumer(self, record: ConsumerRecord) -> None:
        """Remember a consumer that a broker has opened, and hand out its messages."""
        info = record.info
        record.created = True
        assert record.sink is not None  # the request called attach()
        record.sink.open()
        self.consumers[info.id] = record
        session = self.sessions.get(info.session_id)
        if session is not None and session.info.transacted:
            self.transacted_consumers[info.id] = session

    def forget_consumer(self, number: int) -> None:
        """Forget a consumer that was closed."""
        record = self.consumers.pop(number, None)
        self.transacted_consumers.pop(number, None)
        if record is not None:
            record.sink = None

    def forget_producer(self, number: int) -> None:
        """Forget a producer that was closed."""
        self.producers.pop(number, None)
        self._refused.pop(number, None)

    def forget_session(self, number: int) -> None:
        """Forget a session that was closed, with its producers and consumers."""
        self.sessions.pop(number, None)
        self.ended.pop(number, None)
        for producer in [p for p in self.producers.values() if p.session_id == number]:
            self.forget_producer(producer.id)
        for record in [r for r in self.consumers.values() if r.info.session_id == number]:
            self.forget_consumer(record.info.id)
        for producer_id in [p for p, (session_id, _) in self._refused.items() if session_id == number]:
            del self._refused[producer_id]

    def closed_by_broker(self, number: int, error: BaseException) -> None:
        """Forget a session or producer that the broker closed or refused, and remember the error (S104, S109)."""
        closed = [p for p in self.producers.values() if number in (p.id, p.session_id)]
        for record in [r for r in self.consumers.values() if r.info.session_id == number]:
            record.close(error)
        is_session = number in self.sessions
        self.forget_producer(number)
        self.forget_session(number)
        if is_session:
            self.ended[number] = error
        for producer in closed:
            self.forget_producer(producer.id)
            self._refused[producer.id] = (producer.session_id, error)

    def why_closed(self, producer_id: int) -> BaseException:
        """Return the error for a send through a producer that is not open."""
        if producer_id not in self._refused:
            return IllegalStateException("the producer is closed")
        _, error = self._refused[producer_id]
        return error.fresh() if isinstance(error, JMSException) else error

    def in_use(self) -> None:
        """Hand out the messages of all consumers, because everything is restored."""
        for record in [*self.consumers.values()]:
            if record.sink is not None:
                record.sink.open()

    def interrupted(self) -> None:
        """Ignore all messages that the lost broker still delivers, and forget the consumers that were being closed."""
        self.interruptions += 1
        for record in [*self.consumers.values()]:
            if record.sink is not None:
                record.sink.leave()
                record.sink = None
            if record.stopped:
                self.forget_consumer(record.info.id)

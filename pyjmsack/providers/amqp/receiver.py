"""One link on which this client receives messages. The link grants credit, receives messages and sends outcomes (AMQP
1.0 2.6.7, 2.6.12, 3.4)."""

from __future__ import annotations

from time import monotonic
from typing import Any

from pyjmsack.destination import Topic
from pyjmsack.errors import JMSException, RequestTimedOutException, UnsupportedFeatureException
from pyjmsack.providers.amqp import caution
from pyjmsack.providers.amqp.arrivals import Arrivals
from pyjmsack.providers.amqp.counts import LargeCounts
from pyjmsack.providers.amqp.credit import Credit
from pyjmsack.providers.amqp.drains import Drains
from pyjmsack.providers.amqp.engine.performatives import (
    ACCEPTED,
    RELEASED,
    Attach,
    Error,
    Modified,
    Rejected,
    Source,
    Target,
    encode,
)
from pyjmsack.providers.amqp.engines import AmqpEngine, SessionEnd
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.link import AmqpLink, words
from pyjmsack.providers.amqp.oversize import Oversize
from pyjmsack.providers.amqp.owed import Owed
from pyjmsack.providers.amqp.subscription import described_source
from pyjmsack.providers.amqp.wire_types import Described, ULong
from pyjmsack.spi.aside import Aside
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.envelope import InboundSink
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import Outcome

__all__ = ["AmqpReceiver"]

# the filters that both brokers understand, with their names and descriptor codes in the registry of Apache
_SELECTOR_FILTER = ("jms-selector", ULong(0x0000468C00000004))
_NO_LOCAL_FILTER = ("no-local", ULong(0x0000468C00000003))

_OVERDRAFT = 100
"""The number of messages beyond the prefetch that the broker may send without credit before the link is closed. A few
such messages come if a drain and a message cross each other on the wire, which is no reason to end a consumer. There is
a limit, because otherwise a broker could fill the memory."""
_TOO_MANY = "amqp:link:transfer-limit-exceeded"

_STATES = {
    Outcome.ACCEPTED: encode(ACCEPTED),
    Outcome.REJECTED: encode(Rejected()),
    Outcome.RELEASED: encode(RELEASED),
    Outcome.MODIFIED_FAILED: encode(Modified(delivery_failed=True)),
    Outcome.MODIFIED_FAILED_UNDELIVERABLE: encode(Modified(delivery_failed=True, undeliverable_here=True)),
}


def _described(name: str, info: ConsumerInfo, address: str, selector: str | None, explicit_client_id: bool) -> Attach:
    """Return the Attach frame for the link of a consumer."""
    filters: dict[str, Any] = {}
    if selector:
        filters[_SELECTOR_FILTER[0]] = Described(_SELECTOR_FILTER[1], selector)
    if info.no_local:
        filters[_NO_LOCAL_FILTER[0]] = Described(_NO_LOCAL_FILTER[1], "NoLocalFilter{}")
    source = Source(
        address=address,
        distribution_mode="copy" if info.browser else None,
        filter=filters or None,
        capabilities=words(info.destination),
    )
    if info.subscription is not None:
        source = described_source(source, info.subscription, explicit_client_id)
    return Attach(
        link_name=name,
        handle=0,
        role=True,
        snd_settle_mode=1 if info.presettled else 0,  # 1 means settled, 0 unsettled (2.8.2)
        source=source,
        target=Target(address=f"consumer:{info.id}"),
        properties=None if info.priority is None else {"priority": info.priority},
    )


def _returns(info: ConsumerInfo) -> bool:
    """Return True if unsettled messages go back to a queue when the link ends. The messages of a plain subscription or
    a temporary destination do not go back, because their queue ends with the connection."""
    destination = info.destination
    plain = isinstance(destination, Topic) and info.subscription is None
    return not (info.presettled or plain or destination.is_temporary)


class AmqpReceiver(AmqpLink):
    """The receiver of one consumer.

    Args:
        sink: the inbox of the consumer, which takes the messages.
        address: the name of the queue or topic in this broker's dialect.
        selector: the text of the selector in this broker's dialect. ``info`` has the text of the user, for errors.
        explicit_client_id: whether the user chose the client id. If so, subscriptions belong to this client id (S143).
        generation: the number of the connection, which is noted on every message (S96).
        kept_whole: whether this broker delivers a message with the same bytes each time, noted on every message (S105).
        dirty: the list of the receivers that got a message in the current burst; the receiver adds itself to this list.
        max_size: the number of bytes of the largest message that is kept (``jms.maxMessageSize``).
        drain_timeout: the number of seconds for which a drain may stay unanswered. After that the link is closed
            (``amqp.drainTimeout``).
        single: whether the link has credit for one message at a time (:mod:`pyjmsack.providers.amqp.caution`).
        spool_over: a bytes message with more bytes than this is written to a file (``amqp.spoolOver``).
        spool_directory: the directory of that file. ``None`` means the directory for temporary files.
        counts: counts the deliveries of large messages. ``None`` if the broker counts all deliveries.
        page: the number of messages after which the broker waits for more credit (``AmqpDialect.page``).
        answers_early: whether the broker may owe messages after a drain (``AmqpDialect.answers_early``).
    """

    def __init__(
        self,
        engine: AmqpEngine,
        session: SessionEnd,
        name: str,
        info: ConsumerInfo,
        sink: InboundSink,
        address: str,
        *,
        selector: str | None,
        explicit_client_id: bool,
        generation: int,
        kept_whole: bool,
        dirty: list[AmqpReceiver],
        connector: Connector,
        max_size: int,
        drain_timeout: float | None,
        single: caution.Single = caution.Single.NO,
        spool_over: int | None = None,
        spool_directory: str | None = None,
        counts: LargeCounts | None = None,
        page: int | None = None,
        answers_early: bool = False,
    ) -> None:
        attach = _described(name, info, address, selector, explicit_client_id)
        super().__init__(engine, session, attach, f"the consumer of {info.destination.name}")
        self.info = info
        self.selector = info.selector
        self._generation = generation
        self._kept_whole = kept_whole
        self._dirty = dirty
        self._connector = connector
        self._max_size = max_size
        self.caution = caution.Caution(single, address, returns=_returns(info), buffered=sink.buffered)
        self._caution_timer: Timer | None = None
        self._attached_at = monotonic()
        self._is_dirty = False
        self._credit = Credit(info.prefetch, self.caution, page)
        self._source = address
        self._counts = counts
        # the broker stores a message of a topic once for each subscription
        self._queue = address, info.subscription or (info.id if info.destination.is_topic else None)
        self._sink = sink
        self.aside = Aside(info, sink, connector)
        self._drains = Drains(
            connector,
            drain_timeout,
            repeat=self._repeat_drain,
            ask_again=self._ask_again,
            overdue=self._drain_overdue,
            progress=lambda: (self.caution.arrived, self._link.arriving),
            owed=Owed(possible=answers_early and info.presettled and not info.browser, pulls=info.prefetch == 0),
        )
        self._spool_over = spool_over if spool_over is not None and spool_over < max_size else None
        self._arrivals = Arrivals(connector, spool_directory, max_size, self._take, self._written)

    def _attach(self) -> None:
        self._link = self._session.attach_receiver(
            self._description,
            self,
            max_message_size=self._max_size,
            overdraft=None,
            pieces_over=self._spool_over,
        )

    # -- flow ---------------------------------------------------------------------------------------------------

    def replenish(self) -> None:
        """Grant credit again, because the caller took messages or waits for a message."""
        self._credit.held_back = False
        if self._credit.prefetch == 0 or self._credit.stopped or self.closed or self.aside.busy:
            return
        if self._drains.waiting:
            self._credit.due_after_drain = True
            return
        due = self._credit.due(self._link.credit, self._sink.buffered() + len(self._arrivals))
        if due:
            self._link.grant(due)
            if self.caution.single and self.caution.asked():
                self._look_again()

    def _top_up(self) -> None:
        """Grant credit again, unless a drain took the credit and the core has not asked for credit since."""
        if not self._credit.held_back:
            self.replenish()

    def _look_again(self) -> None:
        """Check whether the link may have its whole prefetch window. If so, grant the window. If not, set a timer for
        the next check.

        The link has to wait while Artemis may still send messages of an earlier, lost connection
        (``providers/amqp/caution.py``).
        """
        if left := self.caution.time_left():
            self._caution_timer = self._connector.call_later(left, self._look_again)
            return
        self.caution.single = caution.Single.NO
        self._top_up()
        self._engine.flush()

    def pull(self) -> None:
        """Grant credit for one message, unless the link has credit already (S50)."""
        if self._drains.waiting:
            self._credit.pulling = True  # the credit is granted when the drain is over
        elif not self._credit.stopped and (credit := self._link.credit) <= 0:
            self._credit.pulling = True
            if not self.aside.busy:  # otherwise copied() grants the credit
                self._link.grant(1 - credit)

    def copied(self) -> None:
        """Grant the credit that was not granted because too many copies of dead letters were on their way.

        Grant credit even if the link has some credit left. While no credit was granted, the core reported the messages
        that the caller took, and it will not report them again.
        """
        self.aside.copying -= 1
        if self.closed is not None:
            return
        if self._drains.waiting or self._link.credit > 0:
            self._top_up()
        else:
            self._grant_again()

    def drain(self, done: Completion[None]) -> None:
        """Ask the broker to send the messages that it has, and to give back the rest of the credit (AMQP 1.0 2.6.7).

        With prefetch 0, grant credit for one message first. If the link is stopped and its messages are settled, get
        those that the broker has already taken from the queue (S36).
        """
        self._drains.owed.kept = self._credit.stopped
        self._drain(done)

    def _drain(self, done: Completion[None]) -> None:
        if self.closed is not None:
            done.fail(self.closed)
            return
        if self._arrivals:
            self._drains.postpone(done)
            return
        self._credit.held_back = True
        credit = max(0, self._link.credit)
        fetching = credit == 0 and self._credit.stopped and self._drains.owed.wanted() > 0
        asks_nothing = not fetching and (self._credit.prefetch > 0 or self._credit.stopped or self.aside.busy)
        if credit == 0 and asks_nothing and not self._drains.waiting:
            done.succeed()
            return
        self._drains.waiting.append(done)
        if len(self._drains.waiting) == 1:
            self._credit.pulling = False
            self._engine.barrier()  # a grant goes out before the drain, so that Artemis delivers first
            # before the request, which ends the drain if it ends the connection
            self._drains.begin(credit or 1, fetching=fetching)
            self._link.start_drain(0 if credit else 1 - self._link.credit)

    def stop(self, done: Completion[None]) -> None:
        """Stop the deliveries: take the credit back by a drain, and give back to the broker the messages that still
        arrive. The broker does not count a delivery for these messages (S31)."""
        self._credit.stopped = True
        self._drains.owed.kept = False
        self._drain(done)

    def on_remote_open(self) -> None:
        """Handle the broker's Attach frame, which answers our Attach frame."""
        self.caution.answered(monotonic() - self._attached_at)
        super().on_remote_open()

    def on_flow(self) -> None:
        """Handle a Flow frame, by which the broker gives credit back without a message. The frame may answer the
        present drain, or come late and answer the drain before.
        """
        if self._link.cut_short and self._drains.may_cut_short:
            self._link.bring_rest()
        elif self._arrivals:
            self._drains.flow_postponed = True
        elif self._link.credit > 0 or self._drains.pausing:
            return
        elif not self._drains.waiting:
            self._grant_again()
        elif not self._drains.doubt_answer():
            self._end_drain(None)

    def _grant_again(self) -> None:
        if self._credit.pulling and not self._credit.stopped:
            self._link.grant(1 - self._link.credit)
        else:
            self._top_up()

    def _ask_again(self) -> None:
        """Drain once more, in two frames. The first one grants credit, because Artemis then delivers messages before it
        reads the drain."""
        self._drains.asked_again()
        self._link.grant(self._drains.credit)
        self._engine.barrier()
        self._repeat_drain()

    def _repeat_drain(self) -> None:
        """Send the drain again. The time between two repetitions grows.

        Artemis 2.56 ignores about one drain in five thousand, if the drain arrives while Artemis still writes the
        answer to the previous drain. A drain is a Flow frame, which only describes the present state, so a repeated
        frame does no harm (AMQP 1.0 2.7.4).
        """
        self._link.start_drain()
        self._engine.flush()
        self._drains.repeated()

    def _end_drain(self, error: BaseException | None, *, by_message: bool = False) -> None:
        if error is None and self.closed is None and (credit := self._drains.go_on(by_message=by_message)):
            if not self._drains.pausing:  # otherwise it is sent after the pause
                self._link.start_drain(credit - self._link.credit)
            return
        for done in self._drains.end(by_message=by_message):
            done.settle(error)
        if self._credit.due_after_drain:
            self._credit.due_after_drain = False
            self._top_up()
        elif self._credit.pulling and self.closed is None:
            self.pull()

    def _drain_overdue(self) -> None:
        what = "the file of a large message was not written" if self._arrivals else "a drain was not answered"
        text = f"{self._what}: {what} within amqp.drainTimeout ({self._drains.timeout:g} s)"
        if self._drains.owed.fetching:  # what has arrived must not be lost with the consumer
            error = RequestTimedOutException(text)
            for done in self._drains.take_postponed():
                done.fail(error)
            self._end_drain(error)
        else:
            self._give_up(RequestTimedOutException(f"{text}, so the consumer is closed"))

    def _give_up(self, error: JMSException) -> None:
        """Close the link, because the broker broke the protocol, a drain was not answered in time, or a large message
        could not be written to its file."""
        self.closed = error
        self.aside.cancel()  # because the consumer must get only one error
        self._part()
        self._engine.flush()
        self._fail_opening(error)  # the broker may send messages before its Attach frame names the source
        self._sink.detached(error)
        self._forget_arrivals(error)
        self._end_drain(error)

    # -- deliveries ---------------------------------------------------------------------------------------------

    def on_message(self, delivery: Any, payload: bytes, settled: bool) -> None:
        """Put a complete message into the inbox.

        The header of the message is read here only if the link takes one message at a time.
        """
        if self.caution.single:
            self.caution.took(payload)
        self._arrivals.add(delivery, AmqpInbound(payload), settled)

    def on_oversize(self, delivery: Any, start: bytes, size: int, settled: bool) -> None:
        """Put the kept part of a message that is too large into the inbox, so that the message can be refused."""
        self._arrivals.add(delivery, Oversize(start, size, self._max_size), settled)

    def on_beginning(self, delivery: Any, start: bytes) -> None:
        """Begin to write a large bytes message to a file. Other large messages are gathered in memory."""
        if self._arrivals.begin(delivery, start):
            self._link.take_pieces()

    def on_piece(self, payload: bytes, more: bool, settled: bool, aborted: bool) -> None:
        """Take the next piece of the large message, unless the message was given up."""
        if not self._arrivals.arriving:
            return
        if aborted:
            self._arrivals.abort()
            self.on_flow()
            return
        self._engine.pace(self._arrivals.feed(payload))
        if not more:
            download = self._arrivals.end(settled)
            if self.caution.single:
                self.caution.took(download.start)
            self._go_on()

    def _written(self, unwritten: int) -> None:
        """Handle the end of a write to the file of a large message. The write may have failed."""
        self._engine.pace(unwritten)
        failure = self._arrivals.failure
        if failure is not None and self.closed is None:
            self._give_up(failure)
        elif self._arrivals:
            self._engine.apart(self._go_on)

    def _go_on(self) -> None:
        """Hand out the messages that no longer wait for the disk. If no message waits any more, begin the postponed
        drains."""
        self._arrivals.go_on()
        if self._arrivals:
            return
        for done in self._drains.take_postponed():
            self._drain(done)
        flowed, self._drains.flow_postponed = self._drains.flow_postponed, False
        if flowed:
            self.on_flow()

    def _take(self, delivery: Any, inbound: AmqpInbound, settled: bool) -> None:
        if (settled or not self._credit.stopped) and self.closed is None:  # a settled message is not sent again
            self._deliver(delivery, inbound, settled)
        elif not settled:
            self._link.settle(delivery, _STATES[Outcome.RELEASED])
        self._credit.pulling = False
        if self._drains.owed.most:
            self._drains.owed.most -= 1
        if self._drains.waiting:
            self._drains.arrived += 1
            if self._link.credit <= 0 and not self._arrivals:
                self._end_drain(None, by_message=True)

    def _deliver(self, delivery: Any, inbound: AmqpInbound, settled: bool) -> None:
        inbound.consumer_id = self.info.id
        inbound.generation = self._generation
        inbound.kept_whole = self._kept_whole
        inbound.source = self._source
        if self._counts is not None:
            inbound.queue = self._queue
            self._counts.recall(inbound)
        if settled:  # no outcome is wanted any more (S36)
            inbound.settled = True
        else:
            inbound.handle = delivery
        self._sink.deliver(inbound)
        if not self._is_dirty:
            self._is_dirty = True
            self._dirty.append(self)

    def burst_end(self) -> None:
        """Wake the consumer once, after all messages of the burst.

        Close the link if the broker sent many more messages than it had credit for.
        """
        self._is_dirty = False
        self.caution.arrived = monotonic()
        if self.caution.single and not self._credit.held_back:
            self.replenish()
        self._sink.arrived()
        overdraft = self._link.overdraft
        if overdraft > self.info.prefetch + _OVERDRAFT and self.closed is None:
            text = f"the broker sent {overdraft} messages without credit; the link is closed"
            # without the name of the consumer, which may be longer than a frame of the broker
            self._link.detach(closed=True, error=Error(condition=_TOO_MANY, description=text))
            self._give_up(JMSException(f"{self._what}: {text}", error_code=_TOO_MANY))

    def settle(self, inbound: AmqpInbound, outcome: Outcome, template: bytes | None = None) -> bool:
        """Send the outcome of a message and settle its delivery. Return False if the outcome cannot be sent, because
        the link has ended or the broker has settled the delivery.

        With ``template``, an encoded transactional state, the outcome takes effect when the transaction is discharged
        (4.4.2). The delivery is settled in this case, too. An unsettled delivery would stay with this client after a
        rollback, but it has to go back to the queue.
        """
        delivery, inbound.handle = inbound.handle, None
        if delivery is None:
            return True
        if self._counts is not None and outcome is not Outcome.ACCEPTED:
            self._counts.goes_back(inbound, outcome)
        state = _STATES[outcome] if template is None else template
        return self.closed is None and self._link.settle(delivery, state)

    # -- end ----------------------------------------------------------------------------------------------------

    def _part(self) -> None:
        """Close the link, or detach it if it belongs to a durable subscription.

        A close would delete the subscription. Therefore the link is only detached, even if the broker has closed its
        own end (S141).
        """
        durable = self.info.subscription is not None and self.info.subscription.durable
        self._link.detach(closed=not durable)

    def _attached(self) -> bool:
        source = self._link.remote.source
        if source is None:
            return False
        ignored = self._ignored(source)
        if ignored:
            self.closed = UnsupportedFeatureException(f"the broker ignores {ignored} of {self._what}")
            self._part()
            self._fail_opening(self.closed)
        return not ignored

    def _ignored(self, source: Source) -> str:
        """Return what the broker ignores of our wishes, by its own answer (3.5.3). Without a filter the consumer would
        get messages of others, and a browser that does not copy would remove messages from the queue.
        """
        applied = source.filter or {}
        # Artemis ignores no_local for queues (S147)
        wishes = {"the selector": self.info.selector, "no_local": self.info.no_local}
        names = {"the selector": _SELECTOR_FILTER[0], "no_local": _NO_LOCAL_FILTER[0]}
        ignored = [what for what, wish in wishes.items() if wish and applied.get(names[what]) is None]
        if self.info.browser and source.distribution_mode != "copy":
            ignored.append("the mode of a browser")
        return " and ".join(ignored)

    def _ended(self, error: JMSException) -> None:
        self.aside.cancel()
        if self._caution_timer is not None:
            self._caution_timer.cancel()
        self._forget_arrivals(error)
        self._end_drain(error)

    def _forget_arrivals(self, error: JMSException) -> None:
        self._arrivals.forget()
        for done in self._drains.take_postponed():
            done.fail(error)

    def _lost(self, error: JMSException) -> None:
        self._sink.detached(error)

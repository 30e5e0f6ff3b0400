"""One AMQP session: its begin and end, and its transaction if it is transacted (AMQP 1.0 2.5, 4)."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from pyjmsack.errors import (
    IllegalStateException,
    JMSException,
    ResourceAllocationException,
    TransactionRolledBackException,
)
from pyjmsack.providers.amqp.coordinator import AmqpCoordinator
from pyjmsack.providers.amqp.counts import LargeCounts
from pyjmsack.providers.amqp.engine import StateError
from pyjmsack.providers.amqp.engines import AmqpEngine, SessionEnd
from pyjmsack.providers.amqp.errors import link_error
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.link import AmqpLink
from pyjmsack.providers.amqp.receiver import AmqpReceiver
from pyjmsack.spi.completion import Completion
from pyjmsack.types import Outcome

__all__ = ["AmqpSession"]


class AmqpSession:
    """A session and its links.

    Args:
        transacted: whether the session has transactions, and therefore a link to the transaction coordinator of the
            broker.
        closed_by_broker: called before the links fail, if the broker ends this session, but not the connection.
        number: the id of the session.
        counts: counts the deliveries of large messages. ``None`` if the broker counts all deliveries.
    """

    def __init__(
        self,
        engine: AmqpEngine,
        transacted: bool,
        closed_by_broker: Callable[[JMSException], None] = lambda _: None,
        number: int = 0,
        counts: LargeCounts | None = None,
    ) -> None:
        self._engine = engine
        self._number = number
        self.end: SessionEnd
        """The object of the engine for this session. It exists after the Begin frame was sent."""
        self._opening: Completion[None] | None = None
        self._closing: Completion[None] | None = None
        self._begun = False
        """Whether the broker has answered our Begin frame."""
        self.closed: JMSException | None = None
        self.links: dict[int, AmqpLink] = {}
        self.orphans: list[tuple[AmqpReceiver, AmqpInbound]] = []
        """Accepted messages that could not join the open transaction."""
        self._counts = counts
        self._large: list[AmqpInbound] = []
        """The messages of the open transaction whose deliveries this client counts."""
        self._transacted = transacted
        self._tell_closed = closed_by_broker
        self._coordinators = itertools.count(1)
        self.coordinator: AmqpCoordinator | None = None

    def open(self, done: Completion[None]) -> None:
        """Begin the session.

        If the session is transacted, ``done`` succeeds after the coordinator link is attached and the first transaction
        has begun (S76).
        """
        try:
            self.end = self._engine.begin(self)
        except StateError as error:
            self.closed = ResourceAllocationException(f"the session cannot be opened: {error}")
            done.fail(self.closed)
            return
        self._opening = done
        if self._transacted:
            self._open_coordinator(done).declare(done)

    def close(self, done: Completion[None]) -> None:
        """End the session. The broker then ends the links of the session and rolls its transaction back.

        If the broker has not answered our Begin yet, the session ends when the answer comes. The reason is that an End
        frame frees our channel number for the next session, and that the answer to a Begin frame names its session only
        by this number (2.7.2). A late answer would look like the answer to the next session.

        If the broker has not answered an Attach of this session yet, the session ends when the answer comes. Otherwise
        Artemis may write nothing more to this connection, and all other sessions on the connection would hang.
        """
        if self.closed is not None:
            done.succeed()
            return
        self.closed = IllegalStateException("the session is closed")
        self._closing = done
        if self._begun:
            self._end_when_attached()

    def _end_when_attached(self) -> None:
        """Send the End frame as soon as the broker has answered each Attach frame."""
        if self._closing is not None and not any(
            link.waits_for_attach(self._end_when_attached) for link in self._all()
        ):
            self.end.end()

    def _all(self) -> list[AmqpLink]:
        links: list[AmqpLink] = [*self.links.values()]
        return links if self.coordinator is None else [*links, self.coordinator]

    # -- transactions: a session has a coordinator exactly if it is transacted ----------------------------------

    def _the_coordinator(self) -> AmqpCoordinator:
        if self.coordinator is None:
            raise IllegalStateException("the session is not transacted")
        return self.coordinator

    def send_state(self) -> bytes:
        """Return the encoded delivery state for a message that is sent in the open transaction."""
        return self._the_coordinator().send_state()

    def ack_state(self) -> bytes:
        """Return the encoded delivery state for a message that is accepted in the open transaction."""
        return self._the_coordinator().ack_state()

    def joined(self, inbound: AmqpInbound) -> None:
        """Remember that an accepted message is part of the open transaction."""
        if self._counts is not None and self._counts.concerns(inbound):
            self._large.append(inbound)

    def _count_failed(self, large: list[AmqpInbound]) -> None:
        if self._counts is not None:
            for inbound in large:
                self._counts.failed(inbound)

    def declare(self, done: Completion[None]) -> None:
        """Begin a transaction. If the broker has closed the coordinator link, open a new coordinator link first."""
        coordinator = self._the_coordinator()
        if coordinator.closed is not None and self.closed is None:
            coordinator = self._open_coordinator(done)
        coordinator.declare(done)

    def _open_coordinator(self, done: Completion[None]) -> AmqpCoordinator:
        """Open a link to the transaction coordinator of the broker, and return the link. ``done`` fails if the broker
        refuses the link."""
        # two links of one connection must have different names, also in different sessions (2.6.1)
        name = f"pyjmsack:coordinator:{self._number}:{next(self._coordinators)}"
        coordinator = AmqpCoordinator(self._engine, self.end, name)
        attached: Completion[None] = Completion()
        attached.add_callback(lambda c: done.fail(c.error) if c.error is not None else None)
        coordinator.open(attached)
        self.coordinator = coordinator
        return coordinator

    def discharge(self, done: Completion[None], *, fail: bool) -> None:
        """End the transaction: roll it back if ``fail`` is true, and otherwise commit it.

        If accepted messages could not join the transaction, they go back to the queue, the broker counts their
        delivery, and a commit becomes a rollback.
        """
        orphans, self.orphans = self.orphans, []
        for receiver, inbound in orphans:
            receiver.settle(inbound, Outcome.MODIFIED_FAILED)
        if orphans and not fail:  # the sends must not take effect without the received messages (S75)
            undone: Completion[None] = Completion()
            lost = TransactionRolledBackException(
                "received messages could not join the transaction, because it was lost or the broker ended their link"
            )
            undone.add_callback(lambda _: done.fail(lost))
            self.discharge(undone, fail=True)
            return
        large, self._large = self._large, []
        if fail:
            self._count_failed(large)
            for link in [*self.links.values()]:
                link.rolled_back()
        elif large:
            done.add_callback(lambda c: self._count_failed(large) if c.error is not None else None)
        self._the_coordinator().discharge(done, fail=fail)

    # -- end ----------------------------------------------------------------------------------------------------

    def fail(self, error: BaseException) -> None:
        """Fail all requests and links of this session, because the connection or the session ended."""
        self.closed = error if isinstance(error, JMSException) else JMSException(str(error))
        for completion in (self._opening, self._closing):
            if completion is not None:
                completion.fail(error)
        self._opening = self._closing = None
        self._fail_links(error)

    def on_remote_open(self) -> None:
        """Handle the broker's answer to our Begin frame."""
        self._begun = True
        if self._closing is not None:  # the caller that asked for the session has given up
            self._end_when_attached()
        elif self._opening is not None and self.coordinator is None:
            opening, self._opening = self._opening, None
            opening.succeed()

    def on_remote_close(self) -> None:
        """Handle an End frame of the broker. The frame answers our End frame, or the broker ends the session itself."""
        if self._closing is not None:
            closing, self._closing = self._closing, None
            assert self.closed is not None  # set by close
            self._fail_links(self.closed)
            opening, self._opening = self._opening, None
            if opening is not None:
                opening.fail(self.closed)
            closing.succeed()
        else:
            error = link_error(self.end.remote_error, "the broker ended the session")
            self.end.end()
            if self._opening is None or self._opening.done:  # otherwise the caller of open() gets the error
                self._tell_closed(error)
            self.fail(error)

    def _fail_links(self, error: BaseException) -> None:
        links = self._all()
        self.links.clear()
        for link in links:
            link.fail(error)

"""One link on which this client sends messages. The link keeps messages while it has no credit, sends them, and
receives their outcomes (AMQP 1.0 2.6.7, 2.6.12)."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

from pyjmsack.errors import (
    JMSException,
    ResourceAllocationException,
    SendTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.providers.amqp.engine.performatives import (
    ACCEPTED,
    Attach,
    Composite,
    Modified,
    Rejected,
    Released,
    Source,
    Target,
    Transactional,
)
from pyjmsack.providers.amqp.engines import AmqpEngine, SessionEnd
from pyjmsack.providers.amqp.errors import outcome_error
from pyjmsack.providers.amqp.link import AmqpLink, words
from pyjmsack.providers.amqp.upload import Upload
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import Outbound, StreamedPayload
from pyjmsack.spi.resources import ProducerInfo

__all__ = ["AmqpSender"]

_UNSETTLED, _SETTLED = 0, 1
"""The values of ``snd_settle_mode``: messages are sent unsettled, or settled (2.8.2)."""
_STATE_NAMES: dict[type[Composite], str] = {Rejected: "rejected", Released: "released", Modified: "modified"}


class AmqpSender(AmqpLink):
    """The sender of one producer.

    Args:
        address: the name of the queue or topic. ``None`` means that each message names its own destination (the
            anonymous relay of AMQP).
        transactional_state: returns the encoded delivery state for messages of the open transaction. It raises an error
            if there is no transaction.
        closed_by_broker: called if the broker closes this link, but not its session or connection.
        connector: reads bodies that are not in memory. It is needed only if such bodies are sent.
        takes_back: whether the link can still be used after a message was taken back while it was being sent.
    """

    def __init__(
        self,
        engine: AmqpEngine,
        session: SessionEnd,
        name: str,
        info: ProducerInfo,
        address: str | None,
        transactional_state: Callable[[], bytes],
        closed_by_broker: Callable[[JMSException], None] = lambda _: None,
        connector: Connector | None = None,
        takes_back: bool = True,
    ) -> None:
        to = info.destination.name if info.destination else "any destination"
        attach = Attach(
            link_name=name,
            handle=0,
            role=False,
            snd_settle_mode=_SETTLED if info.presettled else _UNSETTLED,
            source=Source(address=f"producer:{info.id}"),
            target=Target(address=address, capabilities=words(info.destination)),
        )
        super().__init__(engine, session, attach, f"the producer for {to}")
        self.info = info
        self._transactional_state = transactional_state
        self._tell_closed = closed_by_broker
        self._backlog: OrderedDict[Outbound, None] = OrderedDict()
        """The messages that wait for credit, in order. The table is a dictionary, because after a loss each open send
        is looked up here, which must be fast (S91)."""
        self._connector = connector
        self._takes_back = takes_back
        self._upload: Upload | None = None
        """The message that is being sent in pieces. No other message can be sent on this link meanwhile."""
        self._largest: float = math.inf
        """The size in bytes of the largest message that the broker accepts."""

    def send(self, outbound: Outbound) -> None:
        """Send a message now, or as soon as the link has credit. Messages are sent in the order of the calls."""
        if self.closed is not None:
            outbound.done(self.closed)
        elif len(outbound.payload) > self._largest:
            outbound.done(self._too_large(len(outbound.payload)))
        elif self._backlog or self._link.credit <= 0 or self._upload is not None:
            self._backlog[outbound] = None
        else:
            self._transfer(outbound)

    def _too_large(self, size: int) -> JMSException:
        """Return the error for a message over the broker's limit. The broker would close the link because of such a
        message (2.7.3)."""
        return ResourceAllocationException(
            f"{self._what}: the message has {size:,} bytes, and this broker accepts {self._largest:,}"
            " (max-message-size)",
            error_code="amqp:link:message-size-exceeded",
        )

    def withdraw(self, outbound: Outbound) -> bool:
        """Take back a send. Return True if the message was not sent completely and never will be."""
        if self._upload is not None and self._upload.outbound is outbound:
            self._stop_upload()
            outbound.done(SendTimedOutException("the send was withdrawn while its body was being sent"))
            self.on_flow()
            return True
        if outbound not in self._backlog:
            return False
        del self._backlog[outbound]
        outbound.done(SendTimedOutException("the send was withdrawn, because the broker gave no credit"))
        return True

    def _stop_upload(self) -> None:
        """Abort a message of which a part was sent. If the broker does not allow this, close the link."""
        upload, self._upload = self._upload, None
        if upload is None:
            return
        upload.stop()
        if upload.begun and not self._takes_back:
            self.closed = JMSException(
                f"{self._what} was closed, because a message was taken back while it was being sent, and this broker"
                " accepts no other message after that; create another producer (S168)"
            )
            self._closing = Completion()
            self._closing.add_callback(lambda _: self._tell_closed(self.closed or JMSException(self._what)))
            self._part()

    def rolled_back(self) -> None:
        """Drop the messages that wait for credit.

        These messages belonged to the transaction that was rolled back, and must not be sent in the next transaction.
        """
        waiting = [*self._backlog]
        self._backlog.clear()
        if self._upload is not None:
            waiting.insert(0, self._upload.outbound)
            self._stop_upload()
        for outbound in waiting:
            outbound.done(
                TransactionRolledBackException("the transaction was rolled back before this message was sent")
            )

    def _transfer(self, outbound: Outbound) -> None:
        state = b""
        if outbound.transacted:
            try:
                state = self._transactional_state()
            except JMSException as error:  # the broker would store the message outside the lost transaction (S87)
                outbound.done(error)
                return
        payload = outbound.payload
        if isinstance(payload, StreamedPayload):
            assert self._connector is not None  # a session that sends such bodies gives a connector
            reading = self._connector.read(payload.body)
            self._upload = Upload(outbound, payload, reading, self._engine.flush, self._uploaded)
            self._upload.begin(self._link, state)
            return
        left = partial(outbound.done, None) if outbound.presettled else None
        self._link.send(payload, outbound, state=state, left=left)

    def _uploaded(self, error: JMSException | None) -> None:
        """Finish a message that is sent in pieces, because its last piece was written or its body cannot be read.

        Args:
            error: the error that prevents reading the body. ``None`` means that the last piece was written.
        """
        assert self._upload is not None  # an upload reports its end only once
        outbound = self._upload.outbound
        if error is not None:
            self._stop_upload()
        self._upload = None
        if error is not None or outbound.presettled:
            outbound.done(error)
        self.on_flow()

    def on_flow(self) -> None:
        """Send the messages that wait for credit. If the broker asked for a drain, give back the rest of the credit
        (2.6.7).

        If the connection is lost, the messages stay here, because failover has to see that they were never sent (S91).
        """
        if self._engine.failed is not None:
            return
        backlog, link = self._backlog, self._link
        while backlog and link.credit > 0 and self._upload is None:
            outbound, _ = backlog.popitem(last=False)
            self._transfer(outbound)
        if link.drain and self._upload is None:
            link.drained()

    def on_outcome(self, context: Any, state: Composite | None) -> None:
        """Handle the outcome of one message. If the outcome comes before the last piece of the message was sent, stop
        sending this message, and go on with the next messages."""
        stopped = self._upload is not None and self._upload.outbound is context
        if stopped:
            self._stop_upload()
        if state is ACCEPTED:
            context.done(None)
        else:
            outcome = state.outcome if isinstance(state, Transactional) else state
            context.done(None if outcome == ACCEPTED else self._refusal(outcome))
        if stopped:
            self.on_flow()

    @staticmethod
    def _refusal(outcome: Composite | None) -> JMSException:
        if outcome is None:  # as Artemis does when a link or session ends, also with messages that it has stored
            return JMSException(
                "the broker settled the message without an outcome, so the message may have been stored"
            )
        error = outcome.error if isinstance(outcome, Rejected) else None
        return outcome_error(_STATE_NAMES.get(type(outcome), outcome.name), error)

    def _ended(self, error: JMSException) -> None:
        """Fail the messages that have no outcome yet, because the broker will not confirm them."""
        pending = [*([] if self._link is None else self._link.abandon()), *self._backlog]
        self._backlog.clear()
        upload, self._upload = self._upload, None
        if upload is not None:
            upload.forget()
            if upload.outbound not in pending:  # no part of this message was sent
                pending.append(upload.outbound)
        for outbound in pending:
            outbound.done(error)

    def _closed_by_broker(self, error: JMSException) -> None:
        self._tell_closed(error)

    def _attached(self) -> bool:
        self._largest = self._link.remote.max_message_size or math.inf
        return self._link.remote.target is not None

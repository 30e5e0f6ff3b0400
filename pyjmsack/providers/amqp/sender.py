"""One sending link: a backlog for want of credit, transfers out, outcomes in (AMQP 1.0 2.6.7, 2.6.12)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
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
from pyjmsack.spi.envelope import Outbound
from pyjmsack.spi.resources import ProducerInfo

__all__ = ["AmqpSender"]

_UNSETTLED, _SETTLED = 0, 1
"""What a sender settles (2.8.2)."""
_STATE_NAMES: dict[type[Composite], str] = {Rejected: "rejected", Released: "released", Modified: "modified"}


class AmqpSender(AmqpLink):
    """The sender of one producer.

    Args:
        address: the node's name, or ``None`` for the anonymous relay.
        transactional_state: returns the encoded state to put on transfers of the open transaction, or raises why there
            is none.
        closed_by_broker: told when the broker closes this link alone.
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
        self._backlog: deque[Outbound] = deque()
        self._largest: float = math.inf
        """Bytes of the largest message that the broker takes."""

    def send(self, outbound: Outbound) -> None:
        """Transfer now, or as soon as there is credit, in order."""
        if self.closed is not None:
            outbound.done(self.closed)
        elif len(outbound.payload) > self._largest:
            outbound.done(self._too_large(len(outbound.payload)))
        elif self._backlog or self._link.credit <= 0:
            self._backlog.append(outbound)
        else:
            self._transfer(outbound)

    def _too_large(self, size: int) -> JMSException:
        """Return the error for a message over the broker's limit, for which it would close the link (2.7.3)."""
        return ResourceAllocationException(
            f"{self._what}: the message has {size:,} bytes, and this broker takes {self._largest:,} (max-message-size)",
            error_code="amqp:link:message-size-exceeded",
        )

    def withdraw(self, outbound: Outbound) -> bool:
        """Forget a send: return True if it had not left and never will."""
        try:
            self._backlog.remove(outbound)
        except ValueError:
            return False
        outbound.done(SendTimedOutException("withdrawn for want of credit"))
        return True

    def rolled_back(self) -> None:
        """What still waits for credit belonged to the transaction: it must not leave with the next one."""
        backlog, self._backlog = self._backlog, deque()
        for outbound in backlog:
            outbound.done(TransactionRolledBackException("rolled back before it could be sent"))

    def _transfer(self, outbound: Outbound) -> None:
        state = b""
        if outbound.transacted:
            try:
                state = self._transactional_state()
            except JMSException as error:  # the transaction is lost: the send would be stored outside it (S87)
                outbound.done(error)
                return
        self._link.send(outbound.payload, outbound, state=state, settled=outbound.presettled)
        if outbound.presettled:
            outbound.done(None)

    def on_flow(self) -> None:
        """Credit came: send what waits for it; a drain gives the rest back (2.6.7)."""
        backlog, link = self._backlog, self._link
        while backlog and link.credit > 0:
            self._transfer(backlog.popleft())
        if link.drain:
            link.drained()

    def on_outcome(self, context: Any, state: Composite | None) -> None:
        """The broker's outcome for one transfer."""
        if state is ACCEPTED:
            context.done(None)
            return
        outcome = state.outcome if isinstance(state, Transactional) else state
        context.done(None if outcome == ACCEPTED else self._refusal(outcome))

    @staticmethod
    def _refusal(outcome: Composite | None) -> JMSException:
        if outcome is None:
            return outcome_error("none (settled without an outcome)", None)
        error = outcome.error if isinstance(outcome, Rejected) else None
        return outcome_error(_STATE_NAMES.get(type(outcome), outcome.name), error)

    def _ended(self, error: JMSException) -> None:
        """The broker will not confirm the messages that were sent: fail them."""
        pending = [*([] if self._link is None else self._link.abandon()), *self._backlog]
        self._backlog.clear()
        for outbound in pending:
            outbound.done(error)

    def _closed_by_broker(self, error: JMSException) -> None:
        self._tell_closed(error)

    def _attached(self) -> bool:
        self._largest = self._link.remote.max_message_size or math.inf
        return self._link.remote.target is not None

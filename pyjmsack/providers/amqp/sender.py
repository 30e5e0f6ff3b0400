"""One sending link: a backlog for want of credit, transfers out, outcomes in (AMQP 1.0 2.6.7, 2.6.12)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from proton import Condition, Sender, Terminus

from pyjmsack.errors import (
    JMSException,
    ResourceAllocationException,
    SendTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.providers.amqp import native
from pyjmsack.providers.amqp.errors import outcome_error
from pyjmsack.providers.amqp.link import AmqpLink, set_terminus
from pyjmsack.providers.amqp.proton_engine import AmqpEngine
from pyjmsack.spi.envelope import Outbound
from pyjmsack.spi.resources import ProducerInfo

__all__ = ["AmqpSender", "new_tags"]

_STATE_NAMES = {
    native.REJECTED: "rejected",
    native.RELEASED: "released",
    native.MODIFIED: "modified",
    0: "none (settled without an outcome)",
}


def new_tags() -> Callable[[], bytes]:
    """Return a source of delivery tags that differ within a session (2.6.12): a counter of eight bytes."""
    number = 0

    def next_tag() -> bytes:
        nonlocal number
        number += 1
        return number.to_bytes(8, "big")

    return next_tag


class AmqpSender(AmqpLink):
    """The sender of one producer.

    Args:
        address: the node's name, or ``None`` for the anonymous relay.
        transactional_state: returns the state to put on transfers of the open transaction, or raises why there is none.
        closed_by_broker: told when the broker closes this link alone.
    """

    def __init__(
        self,
        engine: AmqpEngine,
        link: Sender,
        info: ProducerInfo,
        address: str | None,
        next_tag: Callable[[], bytes],
        transactional_state: Callable[[], Any],
        closed_by_broker: Callable[[JMSException], None] = lambda _: None,
    ) -> None:
        name = info.destination.name if info.destination else "any destination"
        super().__init__(engine, link, f"the producer for {name}")
        self.info = info
        self._next_tag = next_tag
        self._transactional_state = transactional_state
        self._tell_closed = closed_by_broker
        self._backlog: deque[Outbound] = deque()
        self._unsettled: dict[Any, Outbound] = {}
        self._largest: float = math.inf
        """Bytes of the largest message that the broker takes."""
        set_terminus(link.target, address, info.destination.capability if info.destination else None)
        link.source.address = f"producer:{info.id}"
        link.snd_settle_mode = link.SND_SETTLED if info.presettled else link.SND_UNSETTLED
        link.rcv_settle_mode = link.RCV_FIRST

    def send(self, outbound: Outbound) -> None:
        """Transfer now, or as soon as there is credit, in order."""
        if self.closed is not None:
            outbound.done(self.closed)
        elif len(outbound.payload) > self._largest:
            outbound.done(self._too_large(len(outbound.payload)))
        elif self._backlog or native.link_credit(self.native) <= 0:
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
        link = self.native
        state = None
        if outbound.transacted:
            try:
                state = self._transactional_state()
            except JMSException as error:  # the transaction is lost: the send would be stored outside it (S87)
                outbound.done(error)
                return
        delivery = native.new_delivery(link, self._next_tag())
        if state is not None:
            native.data_copy(native.delivery_data(delivery), state)
            native.delivery_update(delivery, native.TRANSACTIONAL)
        native.send(link, outbound.payload)
        native.link_advance(link)
        if outbound.presettled:
            native.delivery_settle(delivery)
            outbound.done(None)
        else:
            self._unsettled[delivery] = outbound

    def on_flow(self) -> None:
        """Credit came: send what waits for it; a drain gives the rest back (2.6.7)."""
        backlog = self._backlog
        while backlog and native.link_credit(self.native) > 0:
            self._transfer(backlog.popleft())
        if self._link.drain_mode:
            self._link.drained()

    def on_delivery(self, delivery: Any) -> None:
        """The broker's outcome for one transfer."""
        state = native.delivery_remote_state(delivery)
        if not state and not native.delivery_remote_settled(delivery):
            return
        outbound = self._unsettled.pop(delivery, None)
        if outbound is None:
            return
        if state == native.TRANSACTIONAL:
            state = native.remote_transactional_state(delivery)
        error = None if state == native.ACCEPTED else self._refusal(delivery, state)
        native.delivery_settle(delivery)
        outbound.done(error)

    @staticmethod
    def _refusal(delivery: Any, state: int) -> JMSException:
        condition: Condition | None = None
        if state == native.REJECTED:
            condition = native.wrap(delivery).remote.condition
        return outcome_error(_STATE_NAMES.get(state, f"0x{state:02x}"), condition)

    def _ended(self, error: JMSException) -> None:
        """Nobody will confirm what is out."""
        pending = [*self._unsettled.values(), *self._backlog]
        self._unsettled.clear()
        self._backlog.clear()
        for outbound in pending:
            outbound.done(error)

    def _closed_by_broker(self, error: JMSException) -> None:
        self._tell_closed(error)

    def _attached(self) -> bool:
        self._largest = self._link.remote_max_message_size or math.inf
        return bool(self._link.remote_target.type != Terminus.UNSPECIFIED)

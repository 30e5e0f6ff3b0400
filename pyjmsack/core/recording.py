"""Records the deliveries and the outcomes of messages in a ledger. Without a ledger none of this code runs.

A record is made before the outcome leaves for the broker, so that the ledger of a killed process never knows less than
the broker.
"""

from __future__ import annotations

from functools import partial
from time import time_ns

from pyjmsack.core.recorder import Recorder
from pyjmsack.core.send_window import Done, Send, SendWindow
from pyjmsack.core.state import SessionState
from pyjmsack.core.transaction import Transaction
from pyjmsack.destination import Destination
from pyjmsack.errors import (
    ConnectionLostException,
    MessageFormatException,
    RequestTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.message import Message
from pyjmsack.spi.envelope import DUPLICATE_ID, Encoder, Inbound, Payload
from pyjmsack.spi.ledger import LARGEST_COUNT, quoted
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo
from pyjmsack.types import Outcome

__all__ = ["Deliveries", "RecordedSend", "RecordedSends"]

_OUTCOMES = {outcome: outcome.name.lower() for outcome in Outcome}
_IN_TRANSACTION = {"committed": ("confirmed", "accepted")}
"""The names in the ledger for the outcome of a send and for the outcome of a received message, if their transaction was
committed. For a transaction that ended as ``rolled_back`` or ``unknown``, the ledger has this same word for both.
"""


class RecordedSends:
    """Knows the values that the lines for the sends of one producer have in common."""

    def __init__(self, recorder: Recorder, producer_id: int) -> None:
        self._recorder = recorder
        self._id = recorder.id_of(producer_id)
        self.write = recorder.ledger.send
        self.id_of = recorder.id_of
        self._tail = ""
        self._tail_of: tuple[Destination | None, ConnectionMetadata | None] = (None, None)

    def tail(self, target: Destination) -> str:
        """Return the last field of a line. The field is made anew for another destination or another broker."""
        if self._tail_of[0] is not target or self._tail_of[1] is not self._recorder.metadata:
            self._tail_of = target, self._recorder.metadata
            self._tail = self._recorder.tail(self._id, _place(target))
        return self._tail


class RecordedSend(Send):
    """A send whose outcome is recorded."""

    __slots__ = ("_duplicate_id", "_number", "_records", "_tail", "_time")

    def __init__(
        self,
        records: RecordedSends,
        number: int,
        window: SendWindow,
        transaction: Transaction | None,
        payload: Payload,
        encoder: Encoder,
        message: Message,
        then: Done,
    ) -> None:
        Send.__init__(self, window, transaction, payload, encoder, message, then)
        properties = message._properties
        self._duplicate_id = quoted(str(properties[DUPLICATE_ID])) if properties and DUPLICATE_ID in properties else ""
        self._number = number
        target = message._destination
        assert target is not None  # stamped by the producer
        self._records = records
        self._tail = records.tail(target)
        self._time = time_ns()

    def done(self, error: BaseException | None) -> None:
        """Record the broker's answer."""
        if self._transaction is None:
            self._write("confirmed" if error is None and not self.presettled else _send_outcome(error))
        elif error is None:
            self._transaction.record(self._write_transacted)
        else:
            self._write_transacted(_send_outcome(error))
        Send.done(self, error)

    def _write_transacted(self, end: str) -> None:
        assert self._transaction is not None  # the send belongs to a transaction
        self._write(_IN_TRANSACTION.get(end, (end,))[0], self._records.id_of(self._transaction.number))

    def _write(self, outcome: str, transaction: str = "") -> None:
        # this library made the id, but jms.connectionIDPrefix is a part of it
        self._records.write(
            f"{quoted(self.message_id)},{self._duplicate_id},{self._number},{self._time},{time_ns()},{outcome},{transaction},{self._tail}"
        )


def _send_outcome(error: BaseException | None) -> str:
    if error is None:
        return "unconfirmed"
    if isinstance(error, TransactionRolledBackException):
        return "rolled_back"
    return "unknown" if isinstance(error, ConnectionLostException | RequestTimedOutException) else "failed"


class Deliveries:
    """Records the messages that one consumer hands out."""

    def __init__(self, recorder: Recorder, session: SessionState, info: ConsumerInfo) -> None:
        self._recorder = recorder
        self._session = session
        self._transacted = session.info.transacted
        self._info = info
        scope = ""
        if info.destination.is_topic:  # each subscription gets a copy of its own
            scope = "#" + (recorder.id_of(info.id) if info.subscription is None else info.subscription.name)
        self._columns = (recorder.id_of(info.id), _place(info.destination) + scope, session.info.ack_mode.value)
        self._tail = ""
        self._tail_is_of: ConnectionMetadata | None = None
        self._receive = recorder.ledger.receive
        self._open: dict[Inbound, tuple[str | None, int, int, int]] = {}
        self._ordinal = 0

    def handed_over(self, inbound: Inbound, message: Message) -> None:
        """Record that the caller gets this message now."""
        if inbound in self._open:
            self._write(self._open[inbound], "recovered")
        self._ordinal += 1
        # the id is loaded here, because a read of the empty slot is slower: it raises and catches an error
        if message._lazy is not None:
            message._message_id = message._lazy.load_header("_message_id")
        delivery = (message._message_id, self._ordinal, time_ns(), message._redelivery_count)
        if inbound.settled:  # by the broker, before it was delivered
            self._write(delivery, "presettled")
        else:
            self._open[inbound] = delivery

    def settled(self, inbound: Inbound, outcome: Outcome, *, stale: bool) -> None:
        """Record that an outcome was chosen. The broker does not know it yet."""
        delivery = self._open.pop(inbound, None)
        if delivery is None:
            self._not_handed_over(inbound, outcome)
        elif outcome is not Outcome.ACCEPTED:
            self._write(delivery, _OUTCOMES[outcome])
        elif self._transacted:
            transaction = self._session.transactions.current
            transaction.record(partial(self._write_transacted, delivery, transaction))
        else:
            self._write(delivery, "stale" if stale else "accepted")

    def _not_handed_over(self, inbound: Inbound, outcome: Outcome) -> None:
        """Record a message that was not handed out, because it was processed before, has expired, was delivered too
        often or cannot be decoded.

        A message that goes back to the queue without being handed out is not recorded.
        """
        if outcome in (Outcome.RELEASED, Outcome.MODIFIED_FAILED) or self._info.browser:
            return
        try:
            message_id = inbound.to_message(self._info.destination).message_id
        except MessageFormatException:
            message_id = None
        delivery = (message_id, 0, time_ns(), inbound.redelivery_count)
        self._write(delivery, "skipped" if outcome is Outcome.ACCEPTED else "refused")

    def over(self) -> None:
        """Record that the consumer ends. Its messages without an outcome will not get one any more."""
        while self._open:
            self._write(self._open.popitem()[1], "none")

    def _write_transacted(self, delivery: tuple[str | None, int, int, int], transaction: Transaction, end: str) -> None:
        outcome = _IN_TRANSACTION.get(end, (end, end))[1]
        self._write(delivery, outcome, self._recorder.id_of(transaction.number))

    def _write(self, delivery: tuple[str | None, int, int, int], outcome: str, transaction: str = "") -> None:
        message_id, ordinal, received, redeliveries = delivery
        if self._tail_is_of is not self._recorder.metadata or not self._tail:
            self._tail_is_of = self._recorder.metadata
            self._tail = self._recorder.tail(*self._columns)
        message_id = quoted(message_id) if message_id is None or '"' in message_id else f'"{message_id}"'
        counts = "1,0" if not redeliveries else f"{min(redeliveries + 1, LARGEST_COUNT)},1"
        self._receive(f"{message_id},{ordinal},{received},{time_ns()},{counts},{outcome},{transaction},{self._tail}")


def _place(destination: Destination) -> str:
    return f"{'topic' if destination.is_topic else 'queue'}://{destination.name}"

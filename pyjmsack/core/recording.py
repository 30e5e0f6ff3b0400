"""What happens to messages, for a ledger: nothing here runs, and nothing costs, without one.

A record is made before the outcome leaves for the broker, so that the ledger of a killed process never knows less than
the broker does.
"""

from __future__ import annotations

from functools import partial
from time import time_ns
from typing import TYPE_CHECKING

from pyjmsack.core.producer import Done, Producer, Send
from pyjmsack.core.transaction import Transaction
from pyjmsack.destination import Destination
from pyjmsack.errors import (
    ConnectionLostException,
    MessageFormatException,
    RequestTimedOutException,
    TransactionRolledBackException,
)
from pyjmsack.message import Message
from pyjmsack.spi.envelope import Encoder, Inbound
from pyjmsack.spi.ledger import Ledger, quoted, tail
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo
from pyjmsack.types import Outcome

if TYPE_CHECKING:
    from pyjmsack.core.connection import Connection
    from pyjmsack.core.session import Session

__all__ = ["Deliveries", "RecordedSend", "Recorder"]

DUPLICATE_ID = "_AMQ_DUPL_ID"
_OUTCOMES = {outcome: outcome.name.lower() for outcome in Outcome}
_IN_TRANSACTION = {"committed": ("confirmed", "accepted")}
"""What the end of a transaction makes of its sends and receipts; any other end has one name for both."""


class Recorder:
    """A connection's way to its ledger."""

    def __init__(self, connection: Connection, ledger: Ledger) -> None:
        self._connection = connection
        self._metadata: ConnectionMetadata | None = None
        self._tails: dict[tuple[object, ...], str] = {}
        self.ledger = ledger
        self._closed = False

    def tail(self, *values: object) -> str:
        """Return the last field of a line: these columns, and where the connection leads now."""
        if self._connection.metadata is not self._metadata:
            self._metadata = self._connection.metadata
            self._tails.clear()
        known = self._tails.get(values)
        if known is None:
            if len(self._tails) >= 1000:  # an anonymous producer may meet any number of destinations
                self._tails.clear()
            known = self._tails[values] = tail(*values, *self._origin()) + "\n"
        return known

    def _origin(self) -> tuple[str, str, str]:
        metadata = self._metadata
        protocol = "" if metadata is None else metadata.protocol
        broker = (metadata.url if metadata is not None else "") or str(self._connection.url)
        return protocol, broker, self.ledger.connection_id

    def id_of(self, number: int) -> str:
        """Return the id of one of the connection's resources, unlike any other connection's."""
        return f"{self.ledger.connection_id}:{number}"

    def event(self, kind: str, detail: str = "") -> None:
        """``established``, ``interrupted``, ``restored``, ``failure`` or ``closed``."""
        self.ledger.event(f"{time_ns()},{quoted(kind)},{quoted(detail)},{self.tail()}")

    def close(self) -> None:
        """The connection is closed. Blocks; idempotent."""
        if not self._closed:
            self._closed = True
            self.event("closed")
            self.ledger.close()


class RecordedSend(Send):
    """A send whose outcome is recorded."""

    __slots__ = ("_duplicate_id", "_id", "_number", "_recorder", "_tail", "_time")

    def __init__(self, producer: Producer, payload: bytes, encoder: Encoder, message: Message, then: Done) -> None:
        super().__init__(producer, payload, encoder, message, then)
        recorder = producer.recorder
        assert recorder is not None  # else this class is not used
        properties = message._properties
        self._duplicate_id = properties.get(DUPLICATE_ID) if properties else None
        self._recorder = recorder
        self._number = producer.number
        self._tail = recorder.tail(producer.recorded_id, _place(producer.target))
        self._id = message._message_id
        self._time = time_ns()

    def done(self, error: BaseException | None) -> None:
        """The broker answered."""
        if self._transaction is None:
            self._write(_send_outcome(error, self.presettled))
        elif error is None:
            self._transaction.record(self._write)
        else:
            self._write(_send_outcome(error, self.presettled))
        super().done(error)

    def _write(self, outcome: str) -> None:
        transaction = ""
        if self._transaction is not None:
            transaction = self._recorder.id_of(self._transaction.number)
            outcome = _IN_TRANSACTION.get(outcome, (outcome,))[0]
        duplicate = "" if self._duplicate_id is None else quoted(str(self._duplicate_id))
        self._recorder.ledger.send(
            f"{quoted(self._id)},{duplicate},{self._number},{self._time},{time_ns()},{outcome},{transaction},{self._tail}"
        )


def _send_outcome(error: BaseException | None, presettled: bool) -> str:
    if error is None:
        return "unconfirmed" if presettled else "confirmed"
    if isinstance(error, TransactionRolledBackException):
        return "rolled_back"
    return "unknown" if isinstance(error, ConnectionLostException | RequestTimedOutException) else "failed"


class Deliveries:
    """What one consumer hands out."""

    def __init__(self, recorder: Recorder, session: Session, info: ConsumerInfo) -> None:
        self._recorder = recorder
        self._session = session
        self._transacted = session.info.transacted
        self._info = info
        scope = ""
        if info.destination.is_topic:  # each subscription gets a copy of its own
            scope = "#" + (recorder.id_of(info.id) if info.subscription is None else info.subscription.name)
        self._columns = (recorder.id_of(info.id), _place(info.destination) + scope, session.info.ack_mode.value)
        self._open: dict[Inbound, tuple[str | None, int, int, int]] = {}
        self._ordinal = 0

    def handed_over(self, inbound: Inbound, message: Message) -> None:
        """The caller gets this message now."""
        if inbound in self._open:
            self._write(self._open[inbound], "recovered")
        self._ordinal += 1
        delivery = (message.message_id, self._ordinal, time_ns(), message._redelivery_count)
        if inbound.settled:  # by the broker, before it was delivered
            self._write(delivery, "presettled")
        else:
            self._open[inbound] = delivery

    def settled(self, inbound: Inbound, outcome: Outcome, *, stale: bool) -> None:
        """An outcome was chosen; nobody was told yet."""
        delivery = self._open.pop(inbound, None)
        if delivery is None:
            self._not_handed_over(inbound, outcome)
        elif outcome is not Outcome.ACCEPTED:
            self._write(delivery, _OUTCOMES[outcome])
        elif self._transacted:
            transaction = self._session.transaction
            transaction.record(partial(self._write_transacted, delivery, transaction))
        else:
            self._write(delivery, "stale" if stale else "accepted")

    def _not_handed_over(self, inbound: Inbound, outcome: Outcome) -> None:
        """Given back unseen, which is no event; or skipped as processed before, expired, or over a limit."""
        if outcome in (Outcome.RELEASED, Outcome.MODIFIED_FAILED) or self._info.browser:
            return
        try:
            message_id = inbound.to_message(self._info.destination).message_id
        except MessageFormatException:
            message_id = None
        delivery = (message_id, 0, time_ns(), inbound.redelivery_count)
        self._write(delivery, "skipped" if outcome is Outcome.ACCEPTED else "refused")

    def over(self) -> None:
        """The consumer ends: what is open gets no outcome any more."""
        while self._open:
            self._write(self._open.popitem()[1], "none")

    def _write_transacted(self, delivery: tuple[str | None, int, int, int], transaction: Transaction, end: str) -> None:
        outcome = _IN_TRANSACTION.get(end, (end, end))[1]
        self._write(delivery, outcome, self._recorder.id_of(transaction.number))

    def _write(self, delivery: tuple[str | None, int, int, int], outcome: str, transaction: str = "") -> None:
        message_id, ordinal, received, redeliveries = delivery
        self._recorder.ledger.receive(
            f"{quoted(message_id)},{ordinal},{received},{time_ns()},{redeliveries + 1},{int(redeliveries > 0)},"
            f"{outcome},{transaction},{self._recorder.tail(*self._columns)}"
        )


def _place(destination: Destination) -> str:
    return f"{'topic' if destination.is_topic else 'queue'}://{destination.name}"

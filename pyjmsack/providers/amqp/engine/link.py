"""Links: attach and detach, credit, drain (AMQP 1.0 2.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyjmsack.providers.amqp.engine.deliveries import (
    SERIAL_MASK,
    Assembly,
    Outgoing,
    serial_distance,
)
from pyjmsack.providers.amqp.engine.errors import StateError, ViolationError
from pyjmsack.providers.amqp.engine.events import BEGINNING, CREDIT, DELIVERY, OVERSIZE, PIECE, Event
from pyjmsack.providers.amqp.engine.fastpath import TransferHeads
from pyjmsack.providers.amqp.engine.performatives import Attach, Detach, Error, Flow
from pyjmsack.providers.amqp.engine.streams import OutgoingStream

if TYPE_CHECKING:
    from pyjmsack.providers.amqp.engine.session import Session

__all__ = ["Link", "ReceiverLink", "SenderLink"]


class Link:
    """This client's end of a link. :meth:`.Session.attach` makes it.

    Its handle is free for another one when both ends are detached, not before (2.6.4).
    """

    __slots__ = (
        "_delivery_count",
        "_detached",
        "_session",
        "drain",
        "handle",
        "local",
        "owner",
        "remote",
        "remote_closed",
        "remote_error",
        "remote_handle",
    )

    def __init__(self, session: Session, local: Attach, owner: Any) -> None:
        self._session = session
        self.local = local
        """Our Attach."""
        self.handle = local.handle
        self.owner = owner
        """The caller's own."""
        self.remote: Attach | None = None
        """The peer's Attach, once it is here."""
        self.remote_handle: int | None = None
        self.remote_error: Error | None = None
        self.remote_closed = False
        """Whether the peer's Detach says that the link is closed, not merely suspended."""
        self.drain = False
        self._detached = False
        self._delivery_count = local.initial_delivery_count or 0

    @property
    def detached(self) -> bool:
        """Whether our Detach has been sent, or the link ended with its session."""
        return self._detached

    def detach(self, *, closed: bool, error: Error | None = None) -> None:
        """Send Detach. With ``closed`` the link is closed; without it, a durable node stays (2.6.4, 2.6.6). A second
        call does nothing."""
        if self._detached or self._session.ended:
            return
        self.over()
        self._session.send_detach(self, Detach(handle=self.handle, closed=closed, error=error))

    def over(self) -> None:
        """Nothing can be sent any more."""
        self._detached = True

    def attached(self, remote: Attach) -> None:
        """The peer's Attach is here."""
        self.remote, self.remote_handle = remote, remote.handle

    def on_flow(self, flow: Flow) -> list[Event]:
        """Handle a Flow of the peer."""
        raise NotImplementedError

    def flow_fields(self) -> dict[str, Any]:
        """Return the fields of a Flow frame that describe this link."""
        raise NotImplementedError


class SenderLink(Link):
    """A link that we send on. ``credit`` messages may be sent now; ``drain`` asks to use them up (2.6.7)."""

    __slots__ = ("_drained_later", "_heads", "_queued", "_room", "credit", "unsettled")

    def __init__(self, session: Session, local: Attach, owner: Any) -> None:
        super().__init__(session, local, owner)
        self.credit = 0
        self.unsettled: dict[int, Any] = {}
        """The contexts of messages without an outcome, by delivery-id."""
        self._heads = TransferHeads(session.channel, local.handle)
        self._room = 0
        self._queued = 0
        """Messages that wait for the session's window, or have left in part."""
        self._drained_later = False

    def over(self) -> None:
        """Nothing can be sent any more; outcomes may still come."""
        super().over()
        self.credit = 0
        if self._queued:
            self._session.forget_queued(self)
            self._queued = 0

    def attached(self, remote: Attach) -> None:
        """The peer takes messages of a size from now on; the frame size is known as well."""
        super().attached(remote)
        self._room = self._session.max_frame_size - TransferHeads.SIZE

    def send(self, payload: bytes, context: Any, *, state: bytes = b"", settled: bool = False) -> None:
        """Send one message.

        Args:
            payload: its sections, encoded.
            context: comes back with the outcome; not if ``settled``.
            state: an encoded delivery state to put on it, as that of a transaction (4.5.8).
            settled: no outcome is wanted.

        Raises:
            StateError: there is no credit.
        """
        if self.credit <= 0:
            raise StateError(f"no credit on link {self.local.link_name!r}")
        self.credit -= 1
        self._delivery_count = (self._delivery_count + 1) & SERIAL_MASK
        session = self._session
        delivery_id = session.next_delivery_id(None if settled else self)
        if not settled:
            self.unsettled[delivery_id] = context
        size = len(payload)
        if size <= self._room and not state and session.take_window():
            session.connection.put(self._heads.whole(delivery_id, settled, size), payload)
        else:
            self._queued += 1
            session.queue(Outgoing(self, self._heads, delivery_id, payload, state, settled))

    def stream(
        self, context: Any, wants: Callable[[], None], *, state: bytes = b"", settled: bool = False
    ) -> OutgoingStream:
        """Begin a message that is written in pieces, see there; the other arguments and errors are those of
        :meth:`send`."""
        if self.credit <= 0:
            raise StateError(f"no credit on link {self.local.link_name!r}")
        self.credit -= 1
        self._delivery_count = (self._delivery_count + 1) & SERIAL_MASK
        self._queued += 1
        return OutgoingStream(self._session, self, self._heads, context, wants, state, settled)

    def begin_stream(self, context: Any) -> int:
        """Number a message whose first piece is here; ``None``: no outcome is wanted."""
        delivery_id = self._session.next_delivery_id(None if context is None else self)
        if context is not None:
            self.unsettled[delivery_id] = context
        return delivery_id

    def forget(self, delivery_id: int) -> None:
        """Forget a message, because its outcome is not wanted any more."""
        self.unsettled.pop(delivery_id, None)
        self._session.forget_unsettled((delivery_id,))

    def unsent(self) -> None:
        """Use the credit of a message for another one, because it was given up before any part of it was sent."""
        self._delivery_count = (self._delivery_count - 1) & SERIAL_MASK
        self.credit += 1
        self.sent()

    def abandon(self) -> list[Any]:
        """Return the contexts of all messages without an outcome, and forget them."""
        contexts = list(self.unsettled.values())
        self._session.forget_unsettled(self.unsettled)
        self.unsettled.clear()
        return contexts

    def sent(self) -> None:
        """Note that a queued message was sent."""
        self._queued -= 1
        if not self._queued and self._drained_later:
            self._drained_later = False
            self.drained()

    def drained(self) -> None:
        """Answer a drain: give the credit back that is not needed (2.6.7)."""
        if self._detached:
            return
        if self._queued:
            self._drained_later = True
            return
        self._delivery_count = (self._delivery_count + self.credit) & SERIAL_MASK
        self.credit = 0
        self._session.send_flow(self)

    def on_flow(self, flow: Flow) -> list[Event]:
        """Compute the credit from the peer's count and ours (2.6.7)."""
        if self._detached or flow.link_credit is None:
            return []
        start = self.local.initial_delivery_count or 0
        limit = (start if flow.delivery_count is None else flow.delivery_count) + flow.link_credit
        self.credit = max(0, serial_distance(limit & SERIAL_MASK, self._delivery_count))
        self.drain = flow.drain
        return [(CREDIT, self)]

    def flow_fields(self) -> dict[str, Any]:
        """Return the fields of a Flow frame. Its delivery-count includes only messages that were sent."""
        count = (self._delivery_count - self._queued) & SERIAL_MASK
        credit = self.credit + self._queued
        return {"delivery_count": count, "link_credit": credit, "available": 0, "drain": self.drain}


class ReceiverLink(Link):
    """A link that we receive on.

    Args:
        max_message_size: bytes of the largest message that is kept; ``None`` = any.
        overdraft: messages without credit after which the peer is in the wrong; ``None``: the caller minds its credit,
            which goes below 0.
        pieces_over: bytes of a message after which its owner is asked whether it takes the message in pieces; ``None``:
            each message comes whole.
    """

    __slots__ = ("_assembly", "_credit", "_discarding", "_max_message_size", "_overdraft", "_pieces_over", "unsettled")

    def __init__(
        self,
        session: Session,
        local: Attach,
        owner: Any,
        *,
        max_message_size: int | None,
        overdraft: int | None,
        pieces_over: int | None = None,
    ) -> None:
        super().__init__(session, local, owner)
        self._overdraft = overdraft
        self._pieces_over = pieces_over
        self._max_message_size = max_message_size
        self._credit = 0
        self._assembly: Assembly | None = None
        self._discarding = False
        """True if the rest of a message that began to arrive is dropped."""
        self.unsettled: set[int] = set()
        """Ids of what was delivered and not settled; the peer cannot make it larger than the credit it was given."""

    @property
    def credit(self) -> int:
        """The number of messages that may still arrive, including one that has arrived in part."""
        return self._credit if self._assembly is None else self._credit + 1

    def over(self) -> None:
        """Nothing can be received or settled any more."""
        super().over()
        self._discarding = self._assembly is not None
        self._assembly = None
        self._credit = 0
        self.unsettled.clear()

    def attached(self, remote: Attach) -> None:
        """The peer says where it begins to count (2.6.7)."""
        super().attached(remote)
        self._delivery_count = remote.initial_delivery_count or 0

    def grant(self, credit: int) -> None:
        """Grant credit for more messages, and end a drain.

        Nothing happens on a link that is detached, or whose session we have ended: a timer that grants may run out
        before the peer has answered.
        """
        if self._detached:
            return
        self._credit += credit
        self.drain = False
        self._session.send_flow(self)

    def start_drain(self, credit: int = 0) -> None:
        """Ask the peer to use up the credit now, and ``credit`` in addition: to send the messages that it has, and to
        give the rest of the credit back (2.6.7)."""
        if not self._detached:
            self._credit += credit
            self.drain = True
            self._session.send_flow(self)

    def take_pieces(self) -> None:
        """Take the message that is arriving in pieces: an event for each transfer that follows, and nothing is kept.
        In answer to ``BEGINNING``, before the next event is asked for; else the message is gathered and comes whole.
        """
        if self._assembly is not None:
            self._assembly.pass_on()

    def settle(self, delivery_id: int, state: bytes) -> None:
        """Settle a message with an encoded outcome, or transactional state; or without one
        (``b""``). If the message is settled, or its link is gone, send nothing, because the peer knows."""
        if delivery_id in self.unsettled:
            self.unsettled.discard(delivery_id)
            self._session.connection.settle(self._session.channel, True, delivery_id, state)

    def on_flow(self, flow: Flow) -> list[Event]:
        """Handle a Flow, by which the peer may give credit back without a message."""
        if self._detached:
            return []
        if flow.delivery_count is not None:
            advance = serial_distance(flow.delivery_count, self._delivery_count)
            if self._overdraft is not None and not 0 <= advance <= self._credit + self._overdraft:
                text = f"the sender counts {advance} more messages than it sent, credit was {self._credit}"
                raise ViolationError("amqp:link:transfer-limit-exceeded", text)
            self._delivery_count = flow.delivery_count
            self._credit -= advance
        return [(CREDIT, self)]

    def flow_fields(self) -> dict[str, Any]:
        """Return the credit we gave."""
        count = None if self.remote is None else self._delivery_count  # the peer's to choose (2.6.7)
        return {"delivery_count": count, "link_credit": max(0, self._credit), "drain": self.drain}

    def on_transfer(
        self, delivery_id: int | None, settled: bool, more: bool, aborted: bool, payload: bytes
    ) -> Event | None:
        """Take a transfer; return the event of the message that is whole with it (2.6.12, 2.6.14)."""
        assembly = self._assembly
        if assembly is None:
            if self._detached:
                self._discard(delivery_id, more and not aborted)
                return None
            number = self._begin_delivery(delivery_id)
            if not more and not aborted and (self._max_message_size is None or len(payload) <= self._max_message_size):
                if not settled:
                    self.unsettled.add(number)
                return DELIVERY, self, number, payload, settled
            assembly = self._assembly = Assembly(number, self._max_message_size)
        elif delivery_id is not None and delivery_id != assembly.delivery_id:
            text = f"delivery {delivery_id} begins within delivery {assembly.delivery_id}"
            raise ViolationError("amqp:invalid-field", text)
        return self._continue(assembly, settled, more, aborted, payload)

    def _begin_delivery(self, delivery_id: int | None) -> int:
        """Count a message whose first transfer arrived."""
        number = self._session.begin_delivery(delivery_id)
        if self._credit <= 0 and self._overdraft is not None and self._credit <= -self._overdraft:
            text = f"a message on link {self.local.link_name!r}, which has no credit"
            raise ViolationError("amqp:link:transfer-limit-exceeded", text)
        self._credit -= 1
        self._delivery_count = (self._delivery_count + 1) & SERIAL_MASK
        return number

    def _discard(self, delivery_id: int | None, more: bool) -> None:
        """Follow what still arrives after our Detach: the session counts it."""
        if not self._discarding:
            self._session.begin_delivery(delivery_id)
        self._discarding = more

    def _continue(self, assembly: Assembly, settled: bool, more: bool, aborted: bool, payload: bytes) -> Event | None:
        number = assembly.delivery_id
        if assembly.in_pieces:
            return self._pass_on(assembly, settled, more, aborted, payload)
        if aborted:  # nothing of it counts but the credit it took
            self._assembly = None
            return CREDIT, self
        if more and self._is_to_offer(assembly, len(payload)):
            start = assembly.kept() + payload  # before a limit drops anything of it
            assembly.offered = True
            assembly.add(payload, settled)
            return BEGINNING, self, number, start
        assembly.add(payload, settled)
        if more:
            return None
        self._assembly = None
        settled = assembly.settled
        if not settled:
            self.unsettled.add(number)
        if assembly.oversize:
            return OVERSIZE, self, number, assembly.kept(), assembly.size, settled
        return DELIVERY, self, number, assembly.kept(), settled

    def _is_to_offer(self, assembly: Assembly, size: int) -> bool:
        return self._pieces_over is not None and not assembly.offered and assembly.size + size > self._pieces_over

    def _pass_on(self, assembly: Assembly, settled: bool, more: bool, aborted: bool, payload: bytes) -> Event:
        """Pass a transfer on to the owner, who takes the message in pieces."""
        assembly.settled = assembly.settled or settled
        if aborted or not more:
            self._assembly = None
            if not aborted and not assembly.settled:
                self.unsettled.add(assembly.delivery_id)
        return PIECE, self, payload, more, assembly.settled, aborted

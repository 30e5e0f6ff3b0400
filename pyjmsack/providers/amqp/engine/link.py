"""Links, which are the one-way paths of messages: how they are attached (opened) and detached (closed), credit, and
drain (AMQP 1.0 2.6).

Credit is the number of messages that a receiver allows the sender to send. By a drain, the receiver asks the sender to
use up the credit now.
"""

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
    """This client's end of a link. :meth:`.Session.attach_sender` and :meth:`.Session.attach_receiver` make the object.

    The handle is the number of the link in its session. Another link may use the handle only when both ends of this
    link are detached (2.6.4).
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
        """The Attach frame that this client sends."""
        self.handle = local.handle
        self.owner = owner
        """An object that the caller gave. The engine only keeps this object."""
        self.remote: Attach | None = None
        """The peer's Attach frame. ``None`` until the frame has arrived."""
        self.remote_handle: int | None = None
        self.remote_error: Error | None = None
        self.remote_closed = False
        """Whether the peer's Detach frame closed the link for good and not only suspended the link."""
        self.drain = False
        self._detached = False
        self._delivery_count = local.initial_delivery_count or 0

    @property
    def detached(self) -> bool:
        """Whether this client sent its Detach frame, or the link ended with its session."""
        return self._detached

    def detach(self, *, closed: bool, error: Error | None = None) -> None:
        """Send a Detach frame. A second call does nothing.

        If ``closed`` is true, the link is closed for good. Otherwise the peer keeps a durable queue or subscription of
        the link (2.6.4, 2.6.6).
        """
        if self._detached or self._session.ended:
            return
        self.over()
        self._session.send_detach(self, Detach(handle=self.handle, closed=closed, error=error))

    def over(self) -> None:
        """End the link. Nothing can be sent on the link any more."""
        self._detached = True

    def attached(self, remote: Attach) -> None:
        """Handle the peer's Attach frame."""
        self.remote, self.remote_handle = remote, remote.handle

    def on_flow(self, flow: Flow) -> list[Event]:
        """Handle a Flow frame of the peer, which contains the peer's view of the credit."""
        raise NotImplementedError

    def tell(self) -> None:
        """Send a Flow frame with the present state of this link, unless the link has ended."""
        if not self._detached:
            self._session.send_flow(self)

    def flow_fields(self) -> dict[str, Any]:
        """Return the fields of a Flow frame that describe this link."""
        raise NotImplementedError


class SenderLink(Link):
    """A link on which this client sends messages.

    ``credit`` is the number of messages that may be sent now. If ``drain`` is True, the peer asks this client to use
    the credit up (2.6.7).
    """

    __slots__ = ("_drained_later", "_heads", "_queued", "_room", "_waiting", "credit", "unsettled")

    def __init__(self, session: Session, local: Attach, owner: Any) -> None:
        super().__init__(session, local, owner)
        self.credit = 0
        self.unsettled: dict[int, Any] = {}
        """The contexts (the objects that :meth:`send` got) of the messages that have no outcome yet. The key is the
        delivery-id."""
        self._waiting: dict[object, Any] = {}
        """The contexts (the objects that :meth:`send` got) of the messages of which no transfer was sent yet, and of
        the settled messages of which the last transfer was not sent yet. The key is the object that waits in the
        session's queue. A message that is sent in pieces, and whose outcome is not wanted, is not in this table."""
        self._heads = TransferHeads(session.channel, local.handle)
        self._room = 0
        self._queued = 0
        """The number of messages that wait for the session's window, or of which only a part was sent."""
        self._drained_later = False

    def over(self) -> None:
        """End the link. Nothing can be sent on the link any more, but outcomes may still come."""
        super().over()
        self.credit = 0
        if self._queued:
            self._session.forget_queued(self)
            self._queued = 0

    def attached(self, remote: Attach) -> None:
        """Handle the peer's Attach frame. From now on, this client knows the largest payload of one frame."""
        super().attached(remote)
        self._room = self._session.max_frame_size - TransferHeads.SIZE

    def send(self, payload: bytes, context: Any, *, state: bytes = b"", left: Callable[[], None] | None = None) -> None:
        """Send one message.

        Args:
            payload: the encoded sections of the message.
            context: the engine returns this object with the outcome.
            state: an encoded delivery state for the message, for example the state of a transaction (4.5.8).
            left: if given, the message is sent settled and gets no outcome. ``left`` is called when the last transfer
                was sent: in this method, or when the peer opens its session window.

        Raises:
            StateError: there is no credit.
        """
        if self.credit <= 0:
            raise StateError(f"no credit on link {self.local.link_name!r}")
        self.credit -= 1
        self._delivery_count = (self._delivery_count + 1) & SERIAL_MASK
        session = self._session
        size = len(payload)
        if size <= self._room and not state and session.take_window():
            settled = left is not None
            delivery_id = session.next_delivery_id(None if settled else self)
            if not settled:
                self.unsettled[delivery_id] = context
            session.connection.put(self._heads.whole(delivery_id, settled, size), payload)
            if left is not None:
                left()
        else:
            self._queued += 1
            outgoing = Outgoing(self, self._heads, payload, state, left)
            self._waiting[outgoing] = context
            session.queue(outgoing)

    def stream(
        self, context: Any, wants: Callable[[], None], *, state: bytes = b"", settled: bool = False
    ) -> OutgoingStream:
        """Begin a message that is written in pieces, and return its :class:`.OutgoingStream`.

        ``wants`` is called when the next piece may be written. The other arguments and the errors are the same as for
        :meth:`send`.
        """
        if self.credit <= 0:
            raise StateError(f"no credit on link {self.local.link_name!r}")
        self.credit -= 1
        self._delivery_count = (self._delivery_count + 1) & SERIAL_MASK
        self._queued += 1
        return OutgoingStream(self._session, self, self._heads, context, wants, state, settled)

    def expect(self, outgoing: object, context: Any) -> None:
        """Remember a message that waits to be sent and whose outcome is wanted."""
        self._waiting[outgoing] = context

    def number(self, outgoing: Outgoing | OutgoingStream) -> int:
        """Return a new delivery-id for a message that waited, because its first transfer is sent now."""
        if outgoing.settled or outgoing not in self._waiting:
            return self._session.next_delivery_id(None)
        delivery_id = self._session.next_delivery_id(self)
        self.unsettled[delivery_id] = self._waiting.pop(outgoing)
        return delivery_id

    def forget(self, outgoing: object, delivery_id: int | None) -> None:
        """Forget a message, because its outcome is not wanted any more. ``delivery_id`` is ``None`` if the message
        has no number yet."""
        self._waiting.pop(outgoing, None)
        if delivery_id is not None:
            self.unsettled.pop(delivery_id, None)
            self._session.forget_unsettled((delivery_id,))

    def unsent(self, outgoing: object) -> None:
        """Take back the credit of a message that was given up before any part was sent. Another message may use the
        credit."""
        self._delivery_count = (self._delivery_count - 1) & SERIAL_MASK
        self.credit += 1
        self.sent(outgoing)

    def abandon(self) -> list[Any]:
        """Return the contexts (the objects that :meth:`send` got) of all messages without an outcome, and forget
        them."""
        contexts = [*self.unsettled.values(), *self._waiting.values()]
        self._session.forget_unsettled(self.unsettled)
        self.unsettled.clear()
        self._waiting.clear()
        return contexts

    def sent(self, outgoing: object) -> None:
        """Remember that a queued message was sent completely."""
        self._waiting.pop(outgoing, None)
        self._queued -= 1
        if not self._queued and self._drained_later:
            self._drained_later = False
            self.drained()

    def drained(self) -> None:
        """Answer the peer's request for a drain: give back the credit that is not needed (2.6.7). Queued messages are
        sent first."""
        if self._detached:
            return
        if self._queued:
            self._drained_later = True
            return
        self._delivery_count = (self._delivery_count + self.credit) & SERIAL_MASK
        self.credit = 0
        self._session.connection.postpone_flow(self)

    def on_flow(self, flow: Flow) -> list[Event]:
        """Compute the credit from the peer's count of messages and the count of this client (2.6.7)."""
        if self._detached or flow.link_credit is None:
            return []
        start = self.local.initial_delivery_count or 0
        received = start if flow.delivery_count is None else flow.delivery_count
        self.credit = max(0, flow.link_credit - serial_distance(self._delivery_count, received))
        self.drain = flow.drain
        return [(CREDIT, self)]

    def flow_fields(self) -> dict[str, Any]:
        """Return the fields of a Flow frame that describe this link. The field delivery-count includes only messages
        that were sent completely."""
        count = (self._delivery_count - self._queued) & SERIAL_MASK
        credit = self.credit + self._queued
        return {"delivery_count": count, "link_credit": credit, "available": 0, "drain": self.drain}


class ReceiverLink(Link):
    """A link on which this client receives messages.

    Args:
        max_message_size: the number of bytes of the largest message that is kept. ``None`` means no limit.
        overdraft: the number of messages that the peer may send without credit. One message more ends the connection.
            ``None`` means no limit. In this case the credit goes below 0, and the caller may close the link.
        pieces_over: if a message has more bytes than this, the engine asks the owner of the link whether to take the
            message in pieces. ``None`` means that each message comes whole.
    """

    __slots__ = (
        "_assembly",
        "_credit",
        "_discarding",
        "_max_message_size",
        "_overdraft",
        "_pieces_over",
        "_untold",
        "unsettled",
    )

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
        self._untold = 0
        """The part of the credit that the peer was not told yet, because it does not read."""
        self._assembly: Assembly | None = None
        self._discarding = False
        """True while the rest of a message is dropped, because the link ended after a part of the message arrived."""
        self.unsettled: set[int] = set()
        """The ids of deliveries that are not settled. Their number is limited by the credit that the peer got."""

    @property
    def credit(self) -> int:
        """The number of messages that may still arrive, including one that has arrived in part."""
        return self._credit if self._assembly is None else self._credit + 1

    @property
    def arriving(self) -> int | None:
        """The number of bytes that have arrived of a message whose end is still to come. ``None`` if there is none."""
        return None if self._assembly is None else self._assembly.size

    @property
    def cut_short(self) -> bool:
        """Whether a part of a message has arrived, and the peer has no credit for the rest by its own count.

        This is so if the peer counts a message after its last transfer, as Artemis does."""
        return self._assembly is not None and self._credit <= 0

    @property
    def overdraft(self) -> int:
        """The number of messages that arrived without credit, or 0 or less. Credit counts when the peer is told of
        it."""
        return self._untold - self._credit

    def over(self) -> None:
        """End the link. Nothing can be received or settled on the link any more.

        A link may end twice: by its Detach frame, and then with its session.
        """
        super().over()
        self._credit = self._untold = 0
        if self._assembly is not None:
            self._discarding = True
            self._finish(self._assembly, wanted=False)
        for number in self.unsettled:
            self._session.incoming.pop(number, None)
        self.unsettled.clear()

    def attached(self, remote: Attach) -> None:
        """Handle the peer's Attach frame, which contains the number from which the peer counts its messages (2.6.7)."""
        super().attached(remote)
        self._delivery_count = remote.initial_delivery_count or 0

    def grant(self, credit: int) -> None:
        """Grant credit for more messages, and end a drain.

        This does nothing if the link is detached or its session has ended, because a timer of the caller may call this
        method so late.
        """
        if self._detached:
            return
        self._credit += credit
        self._untold += credit
        self.drain = False
        self._session.connection.postpone_flow(self)

    def tell(self) -> None:
        """Send a Flow frame with the granted credit, unless the link has ended."""
        self._untold = 0
        super().tell()

    def start_drain(self, credit: int = 0) -> None:
        """Add ``credit`` to the credit of the link, and ask the peer to use up the whole credit now.

        The peer sends the messages that it has, and gives back the rest of the credit (2.6.7).
        """
        if not self._detached:
            self._session.connection.flush_postponed()  # a grant must not become a part of the drain
            self._credit += credit
            self.drain = True
            self._session.send_flow(self)

    def bring_rest(self) -> None:
        """Grant credit for the rest of a message that is :attr:`cut_short`.

        The rest uses up this credit, because the peer counts the message after its last transfer.
        """
        if self._detached:
            return
        if self.drain:
            self.start_drain(1)
        else:
            self.grant(1)
        self._credit -= 1
        self._delivery_count = (self._delivery_count + 1) & SERIAL_MASK

    def take_pieces(self) -> None:
        """Ask for the message that is arriving now to come in pieces. Each further transfer becomes an event, and the
        link keeps no bytes.

        Call this in answer to ``BEGINNING``, before you ask for the next event. Otherwise the message comes whole.
        """
        if self._assembly is not None:
            self._assembly.pass_on()

    def settle(self, delivery_id: int, state: bytes) -> bool:
        """Settle a message with an encoded outcome or transactional state, or with no state (``b""``).

        If the message is already settled or the link has ended, this method sends nothing and returns False, because
        the peer needs no outcome any more.
        """
        if delivery_id not in self.unsettled:
            return False
        self.unsettled.discard(delivery_id)
        self._session.incoming.pop(delivery_id, None)
        self._session.connection.settle(self._session.channel, True, delivery_id, state)
        return True

    def settled_by_sender(self, delivery_id: int) -> None:
        """Forget a message, because the peer settled it and wants no outcome any more."""
        self.unsettled.discard(delivery_id)
        if self._assembly is not None and self._assembly.delivery_id == delivery_id:
            self._assembly.settled = True

    def on_flow(self, flow: Flow) -> list[Event]:
        """Handle a Flow frame, with which the peer may give back credit without a message."""
        if self._detached:
            return []
        if flow.delivery_count is not None:
            advance = serial_distance(flow.delivery_count, self._delivery_count)
            if advance == -1 and self._assembly is not None:
                return []  # the sender may count a message after its last transfer, and this Flow came before
            if self._overdraft is not None and not 0 <= advance <= self._credit + self._overdraft:
                text = f"the sender counts {advance} more messages than it sent; its credit was {self._credit}"
                raise ViolationError("amqp:link:transfer-limit-exceeded", text)
            if advance > 0:  # a peer that counts backwards must not give itself credit
                self._delivery_count = flow.delivery_count
                self._credit -= advance
        return [(CREDIT, self)]

    def flow_fields(self) -> dict[str, Any]:
        """Return the fields of a Flow frame, with the credit that this client grants."""
        count = None if self.remote is None else self._delivery_count  # the peer chooses the first count (2.6.7)
        return {"delivery_count": count, "link_credit": max(0, self._credit), "drain": self.drain}

    def on_transfer(
        self, delivery_id: int | None, settled: bool, more: bool, aborted: bool, payload: bytes
    ) -> Event | None:
        """Handle a transfer, which carries a message or a part of a message. Return the event that the transfer causes,
        for example that a message is complete (2.6.12, 2.6.14)."""
        assembly = self._assembly
        if assembly is None:
            if self._detached:
                self._discard(delivery_id, more and not aborted)
                return None
            number = self._begin_delivery(delivery_id)
            if not more and not aborted and (self._max_message_size is None or len(payload) <= self._max_message_size):
                if not settled:
                    self.unsettled.add(number)
                    self._session.incoming[number] = self
                return DELIVERY, self, number, payload, settled
            assembly = self._assembly = Assembly(number, self._max_message_size)
            self._session.incoming[number] = self
        elif delivery_id is not None and delivery_id != assembly.delivery_id:
            text = f"delivery {delivery_id} begins within delivery {assembly.delivery_id}"
            raise ViolationError("amqp:invalid-field", text)
        return self._continue(assembly, settled, more, aborted, payload)

    def _begin_delivery(self, delivery_id: int | None) -> int:
        """Count a message whose first transfer arrived, and return its delivery-id."""
        number = self._session.begin_delivery(delivery_id)
        if self._credit <= 0 and self._overdraft is not None and self._credit <= -self._overdraft:
            text = f"a message came on link {self.local.link_name!r}, which has no credit"
            raise ViolationError("amqp:link:transfer-limit-exceeded", text)
        self._credit -= 1
        self._delivery_count = (self._delivery_count + 1) & SERIAL_MASK
        return number

    def _discard(self, delivery_id: int | None, more: bool) -> None:
        """Drop a transfer that arrived after our Detach frame. The session still counts the delivery."""
        if not self._discarding:
            self._session.begin_delivery(delivery_id)
        self._discarding = more

    def _continue(self, assembly: Assembly, settled: bool, more: bool, aborted: bool, payload: bytes) -> Event | None:
        number = assembly.delivery_id
        if assembly.in_pieces:
            return self._pass_on(assembly, settled, more, aborted, payload)
        if aborted:  # an aborted message only uses up its credit
            self._finish(assembly, wanted=False)
            return CREDIT, self
        if more and self._is_to_offer(assembly, len(payload)):
            start = assembly.kept() + payload  # taken now, because the limit may drop a part of the message below
            assembly.offered = True
            assembly.add(payload, settled)
            return BEGINNING, self, number, start
        assembly.add(payload, settled)
        if more:
            return None
        settled = assembly.settled
        self._finish(assembly, wanted=not settled)
        if assembly.oversize:
            return OVERSIZE, self, number, assembly.kept(), assembly.size, settled
        return DELIVERY, self, number, assembly.kept(), settled

    def _finish(self, assembly: Assembly, *, wanted: bool) -> None:
        """End a message that came in several transfers. Remember it if the peer wants an outcome."""
        self._assembly = None
        if wanted:
            self.unsettled.add(assembly.delivery_id)
        else:
            self._session.incoming.pop(assembly.delivery_id, None)

    def _is_to_offer(self, assembly: Assembly, size: int) -> bool:
        return self._pieces_over is not None and not assembly.offered and assembly.size + size > self._pieces_over

    def _pass_on(self, assembly: Assembly, settled: bool, more: bool, aborted: bool, payload: bytes) -> Event:
        """Return the event for one piece of a message. The owner of the link takes the message in pieces."""
        assembly.settled = assembly.settled or settled
        if aborted or not more:
            self._finish(assembly, wanted=not aborted and not assembly.settled)
        return PIECE, self, payload, more, assembly.settled, aborted

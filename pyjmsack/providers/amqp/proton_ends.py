"""Adapters from proton's sessions and links to the interfaces that the provider uses (:mod:`.engines`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from proton import Condition, Delivery, Endpoint, Link, Receiver, Sender, Session

from pyjmsack.errors import ConnectionLostException
from pyjmsack.providers.amqp.engine import StateError
from pyjmsack.providers.amqp.engine.deliveries import Assembly
from pyjmsack.providers.amqp.engine.performatives import Attach, Error
from pyjmsack.providers.amqp.engines import LinkHandler, SessionHandler
from pyjmsack.providers.amqp.proton_words import (
    configure,
    error_of,
    outcome_of,
    put_state,
    remote_attach,
    with_desired_capabilities,
)

if TYPE_CHECKING:
    from pyjmsack.providers.amqp.proton_engine import ProtonEngine

L = TypeVar("L", bound="ProtonLink")

__all__ = ["ProtonLink", "ProtonReceiver", "ProtonSender", "ProtonSession"]

_PIECE = 1 << 16
"""The largest number of bytes of a message that are taken from proton at once."""


class ProtonSession:
    """This client's end of a session."""

    def __init__(self, engine: ProtonEngine, session: Session, owner: SessionHandler) -> None:
        self._engine = engine
        self._session: Session | None = session
        self._tags = count(1)
        self._links: set[ProtonLink] = set()
        self.owner = owner
        engine.sessions[session] = self
        session.open()

    @property
    def remote_error(self) -> Error | None:
        """The error with which the peer ended the session. ``None`` if the peer gave no error."""
        return None if self._session is None else error_of(self._session.remote_condition)

    def attach_sender(self, attach: Attach, owner: LinkHandler) -> ProtonSender:
        """Attach a link on which this client sends messages.

        Raises:
            StateError: the session has no free handle.
        """
        assert self._session is not None  # the provider attaches nothing to a session that is over
        self._check_handles()
        link = self._session.sender(attach.link_name)
        return self._with(ProtonSender(self._engine, link, attach, owner, self._tags))

    def attach_receiver(
        self,
        attach: Attach,
        owner: LinkHandler,
        *,
        max_message_size: int | None = None,
        overdraft: int | None = 0,
        pieces_over: int | None = None,
    ) -> ProtonReceiver:
        """Attach a link on which this client receives messages. proton has no limit for messages without credit.

        Raises:
            StateError: the session has no free handle.
        """
        assert self._session is not None  # the provider attaches nothing to a session that is over
        self._check_handles()
        link = self._session.receiver(attach.link_name)
        return self._with(ProtonReceiver(self._engine, link, attach, owner, max_message_size, pieces_over))

    def _check_handles(self) -> None:
        """Refuse one link too many. For such a link, proton would write nothing more on the connection, without an
        error."""
        most = self._engine.handle_max
        if len(self._links) > most:
            raise StateError(f"the session has no free handle, because the peer allows only {most + 1}")

    def _with(self, link: L) -> L:
        self._links.add(link)
        link.forgotten = self._links.discard
        return link

    def end(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.close()

    def on_remote_close(self) -> None:
        """Handle the end of the session by the peer. Call the owner, then free proton's session and links."""
        self.owner.on_remote_close()
        if self._session is not None:
            self._engine.sessions.pop(self._session, None)
            self._session.free()
        self.forget()

    def forget(self) -> None:
        """Drop all references to proton's objects now, on the loop.

        Otherwise the garbage collector would free these objects on any thread and in any order, and proton would free
        some of them twice.
        """
        for link in [*self._links]:
            link.forget()
        self._session = None


class ProtonLink:
    """This client's end of a link.

    The object of proton is kept until both ends of the link have ended. After that, the methods of this class do
    nothing. The owner of the link never gets an object of proton, because Python may free the owner, and with it such
    an object, on any thread.
    """

    def __init__(self, engine: ProtonEngine, link: Link, attach: Attach, owner: LinkHandler) -> None:
        self._engine = engine
        self._link: Any = link
        self.forgotten: Callable[[ProtonLink], None] = lambda link: None
        """The function to call when the object of proton is dropped."""
        self.owner = owner
        engine.links[link] = self
        configure(link, attach)
        if attach.desired_capabilities:
            engine.rewritten(link.open, partial(with_desired_capabilities, names=attach.desired_capabilities))
        else:
            link.open()

    @property
    def credit(self) -> int:
        """The number of messages that may still be sent on this link, or that may still arrive on it."""
        return 0 if self._link is None else int(self._link.credit)

    @property
    def remote(self) -> Attach | None:
        """The peer's Attach frame. ``None`` until the frame has arrived."""
        if self._link is None or self._link.state & Endpoint.REMOTE_UNINIT:
            return None
        return remote_attach(self._link)

    @property
    def remote_error(self) -> Error | None:
        """The error with which the peer detached the link. ``None`` if the peer gave no error."""
        return None if self._link is None else error_of(self._link.remote_condition)

    def detach(self, *, closed: bool, error: Error | None = None) -> None:
        """Detach the link. If ``closed`` is true, the link ends for good."""
        if self._link is None:
            return
        if error is not None:
            self._link.condition = Condition(error.condition, error.description)
        if closed:
            self._link.close()
        else:
            self._link.detach()

    def on_remote_close(self) -> None:
        """Handle the Detach frame of the peer. Call the owner, then free proton's link."""
        self.owner.on_remote_close()
        if self._link is not None:
            self._link.free()
            self.forget()

    def forget(self) -> None:
        """Drop the reference to proton's object. Later events of the link are ignored."""
        if self._link is not None:
            self._engine.links.pop(self._link, None)
        self._link = None
        self.forgotten(self)

    def on_flow(self) -> None:
        """Handle a Flow frame of the peer."""
        self.owner.on_flow()

    def on_delivery(self, delivery: Delivery) -> None:
        """Handle an event of a delivery on this link."""
        raise NotImplementedError


class ProtonSender(ProtonLink):
    """This client's end of a link on which this client sends messages.

    Args:
        tags: yields delivery tags, the names of sent messages, which are unique in the session.
    """

    def __init__(
        self, engine: ProtonEngine, link: Sender, attach: Attach, owner: LinkHandler, tags: Iterator[int]
    ) -> None:
        super().__init__(engine, link, attach, owner)
        self._unsettled: dict[str, Any] = {}
        """The contexts (the objects that :meth:`send` got) of the messages that have no outcome yet. The key is the
        delivery tag, the name of a sent message."""
        self._tags = tags

    @property
    def drain(self) -> bool:
        """Whether the peer asks for a drain, so that this client has to use up or give back its credit."""
        return self._link is not None and bool(self._link.drain_mode)

    def send(self, payload: bytes, context: Any, *, state: bytes = b"", left: Callable[[], None] | None = None) -> None:
        """Send a message."""
        assert self._link is not None  # the provider sends nothing on a link that is over
        tag = str(next(self._tags))
        delivery = self._link.delivery(tag)
        if state:
            put_state(state, delivery)
        self._link.stream(payload)
        self._link.advance()
        if left is None:
            self._unsettled[tag] = context
        else:  # proton does not tell when the bytes have left
            delivery.settle()
            left()

    def stream(self, context: Any, wants: Callable[[], None], *, state: bytes = b"", settled: bool = False) -> Gathered:
        """Begin a message that is written in pieces. The pieces are gathered in memory."""
        left = _nothing if settled else None  # the end of the pieces tells the caller
        return Gathered(partial(self.send, context=context, state=state, left=left), wants)

    def drained(self) -> None:
        """Tell the peer that the rest of the credit is not needed, because the peer asked for a drain."""
        if self._link is not None:
            self._link.drained()

    def abandon(self) -> list[Any]:
        """Return the contexts (the objects that :meth:`send` got) of all messages without an outcome, and forget
        them."""
        contexts = list(self._unsettled.values())
        self._unsettled.clear()
        return contexts

    def on_delivery(self, delivery: Delivery) -> None:
        """Handle the peer's outcome for one message."""
        if delivery.tag not in self._unsettled:
            return
        state = outcome_of(delivery)
        if state is None and not delivery.settled:
            return
        context = self._unsettled.pop(delivery.tag)
        delivery.settle()
        self.owner.on_outcome(context, state)


def _nothing() -> None:
    """Do nothing: the caller learns in another way that the message has left."""


class Gathered:
    """A message that is written in pieces, but gathered in memory and sent as a whole.

    proton keeps all bytes in memory until it can send them, and does not tell their number. Therefore sending the
    pieces one by one would save no memory.

    Args:
        send: sends the whole message.
        wants: called when the next piece may be written.
    """

    def __init__(self, send: Callable[[bytes], None], wants: Callable[[], None]) -> None:
        self._send = send
        self._wants = wants
        self._pieces: list[bytes] = []

    def write(self, piece: bytes, *, last: bool) -> None:
        """Take a piece of a body. The last piece sends the message."""
        self._pieces.append(piece)
        if not last:
            self._wants()
            return
        self._send(b"".join(self._pieces))
        self._pieces.clear()

    def abort(self) -> None:
        """Forget the message, of which no part was sent."""
        self._pieces.clear()


class ProtonReceiver(ProtonLink):
    """This client's end of a link on which this client receives messages.

    Args:
        max_message_size: the number of bytes of the largest message that is kept. ``None`` means no limit.
        pieces_over: a message with more bytes than this is offered to the owner in pieces. ``None`` means never.
    """

    def __init__(
        self,
        engine: ProtonEngine,
        link: Receiver,
        attach: Attach,
        owner: LinkHandler,
        max_message_size: int | None,
        pieces_over: int | None,
    ) -> None:
        super().__init__(engine, link, attach, owner)
        self._max_message_size = max_message_size
        self._pieces_over = pieces_over
        self._allowed = 0
        """The number of messages that may still arrive by the count of this client: the granted credit, without the
        messages that arrived and without the credit that the peer gave back. It is needed because proton takes over the
        count of the peer, and a peer that counts backwards would give itself credit."""
        self._assembly: Assembly | None = None
        """The message that is arriving. ``None`` if there is none."""
        self._numbers = count(1)
        self._unsettled: dict[int, Delivery] = {}
        """The deliveries that are not settled. The key is the number by which the owner names the delivery."""

    @property
    def credit(self) -> int:
        """The number of messages that may still arrive. Below 0 if the peer sent messages without credit."""
        return min(super().credit, self._allowed)

    @property
    def arriving(self) -> int | None:
        """The number of bytes that have arrived of a message whose end is still to come. ``None`` if there is none."""
        return None if self._assembly is None else self._assembly.size

    @property
    def cut_short(self) -> bool:
        """Whether a part of a message has arrived, and the peer has no credit for the rest by its own count."""
        if self._assembly is None or self._link is None:
            return False
        return self.credit <= int(self._link.queued)  # proton counts this message as queued, too

    @property
    def overdraft(self) -> int:
        """The number of messages that arrived without credit, or 0 or less."""
        return -self.credit

    def on_flow(self) -> None:
        """Handle a Flow frame, with which the peer may give back credit."""
        self._allowed = self.credit
        super().on_flow()

    def grant(self, credit: int) -> None:
        """Allow the peer to send this number of further messages. This ends a drain."""
        if self._link is not None:
            self._allowed += credit
            self._link.drain_mode = False
            self._flow(self._link.flow, credit)

    def start_drain(self, credit: int = 0) -> None:
        """Add ``credit`` to the credit of the link, and ask the peer to use up the whole credit now."""
        if self._link is not None:
            self._allowed += credit
            self._flow(self._link.drain, credit)

    def _flow(self, act: Callable[[int], None], credit: int) -> None:
        """Grant credit. End the connection if proton cannot hold the number, because the peer counted backwards very
        far: proton takes over the count of the peer, and has 32 bits for the credit."""
        try:
            act(credit)
        except OverflowError as error:
            impossible = ConnectionLostException(f"the peer sent an impossible count of messages: {error}")
            impossible.__cause__ = error
            self._engine.fail(impossible)

    def bring_rest(self) -> None:
        """Grant credit for the rest of a message that is :attr:`cut_short`. The rest uses up this credit."""
        if self._link is None:
            return
        if self._link.drain_mode:
            self.start_drain(1)
        else:
            self.grant(1)
        self._allowed -= 1

    def settle(self, delivery: int, state: bytes) -> bool:
        """Settle a message with an encoded outcome or transactional state. Return False if the peer has settled it."""
        found = self._unsettled.pop(delivery, None)
        if found is None:
            return False
        by_peer: bool = found.settled
        if not by_peer:
            put_state(state, found)
        found.settle()
        return not by_peer

    def forget(self) -> None:
        """Drop all references to proton's objects."""
        self._unsettled.clear()
        super().forget()

    def take_pieces(self) -> None:
        """Ask for the message that is arriving now to come in pieces. :meth:`.ReceiverLink.take_pieces` explains
        this."""
        if self._assembly is not None:
            self._assembly.pass_on()

    def on_delivery(self, delivery: Delivery) -> None:
        """Take the bytes of a message that have arrived. Most messages arrive as a whole."""
        if not delivery.readable:
            return
        assembly = self._assembly
        if assembly is None:
            assembly = self._assembly = Assembly(next(self._numbers), self._max_message_size)
        if delivery.aborted:
            self._finish(delivery, None)
            if assembly.in_pieces:
                self.owner.on_piece(b"", False, bool(delivery.settled), True)
            else:
                self.owner.on_flow()
            return
        for piece in self._pieces(delivery):
            self._add(assembly, piece)
        if not delivery.partial:
            self._finish(delivery, assembly)

    def _pieces(self, delivery: Delivery) -> Iterator[bytes]:
        """Yield the bytes that have arrived, in at least one piece.

        A large message is yielded in several pieces, because a second copy of the whole message would take too much
        memory.
        """
        while True:
            yield bytes(self._link.recv(min(delivery.pending, _PIECE)) or b"")
            if delivery.pending <= 0:
                return

    def _add(self, assembly: Assembly, piece: bytes) -> None:
        over = self._pieces_over
        if assembly.in_pieces:
            self.owner.on_piece(piece, True, False, False)
        elif over is not None and not assembly.offered and assembly.size + len(piece) > over:
            assembly.offered = True
            start = assembly.kept() + piece  # taken now, because the limit may drop a part of the message below
            assembly.add(piece, settled=False)
            self.owner.on_beginning(assembly.delivery_id, start)
        else:
            assembly.add(piece, settled=False)

    def _finish(self, delivery: Delivery, assembly: Assembly | None) -> None:
        """End a delivery. An ``assembly`` of ``None`` means that the peer took the message back."""
        self._assembly = None
        self._allowed -= 1
        settled = bool(delivery.settled) or assembly is None
        if assembly is None:
            delivery.settle()
            return
        self._link.advance()
        number = assembly.delivery_id
        if settled:
            delivery.settle()
        else:
            self._unsettled[number] = delivery
        if assembly.in_pieces:
            self.owner.on_piece(b"", False, settled, False)
        elif assembly.oversize:
            self.owner.on_oversize(number, assembly.kept(), assembly.size, settled)
        else:
            self.owner.on_message(number, assembly.kept(), settled)

"""Sessions: how they begin and end, the limits for the frames on their way (windows), the numbers of links (handles),
and the routing of frames to links (AMQP 1.0 2.5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyjmsack.providers.amqp.engine.deliveries import SERIAL_MASK, Outgoing, States, Unsettled, ranges, serial_distance
from pyjmsack.providers.amqp.engine.errors import StateError, ViolationError
from pyjmsack.providers.amqp.engine.events import ATTACHED, DETACHED, OUTCOME, Event
from pyjmsack.providers.amqp.engine.fastpath import read_disposition, read_transfer
from pyjmsack.providers.amqp.engine.link import Link, ReceiverLink, SenderLink
from pyjmsack.providers.amqp.engine.performatives import Attach, Begin, Composite, Detach, End, Error, Flow
from pyjmsack.providers.amqp.engine.streams import OutgoingStream

if TYPE_CHECKING:
    from pyjmsack.providers.amqp.engine.connection import Connection

__all__ = ["LARGEST_WINDOW", "Session"]

L = TypeVar("L", bound=Link)

LARGEST_WINDOW: Final = 0x7FFFFFFF
"""The largest window, in transfer frames. The window covers half of all serial numbers, because serial numbers that are
further apart cannot be compared (RFC 1982)."""
_HANDLE_MAX: Final = 0xFFFFFFFF


class Session:
    """One session. :meth:`.Connection.begin` makes the object.

    A session has two windows, which count transfer frames and not messages (2.5.6): one for the frames that this client
    may send, and one for the frames that the peer may send. When the peer's window is half used, this client sends a
    Flow frame that opens the window again. The windows do not limit the memory, because the credit of the links does
    this.

    Args:
        incoming_window: the number of transfer frames that the peer may send before our next Flow frame.
        first_id: the first transfer-id and delivery-id.
    """

    def __init__(
        self, connection: Connection, channel: int, owner: Any, *, incoming_window: int, first_id: int = 0
    ) -> None:
        self.connection = connection
        self.channel = channel
        self.owner = owner
        """An object that the caller gave. The engine only keeps this object."""
        self.remote: Begin | None = None
        """The peer's Begin frame. ``None`` until the frame has arrived."""
        self.remote_channel: int | None = None
        self.remote_error: Error | None = None
        self.ended = False
        """True if our End frame was sent, or the connection has ended."""
        self.max_frame_size = 0
        """The number of bytes of the largest frame that the peer accepts. 0 until the peer's Begin frame has
        arrived."""
        self._links: dict[int, Link] = {}
        """The links. The key is our handle, the number of the link. A link stays here until both ends are detached."""
        self._remote_links: dict[int, Link] = {}
        self._unsettled = Unsettled()
        """The links of the messages that wait for an outcome. The key is the delivery-id."""
        self.incoming = Unsettled()
        """The links of the messages that arrived, at least in part, and for which the peer wants an outcome."""
        self._states = States()
        self._queue: deque[Outgoing | OutgoingStream] = deque()
        self._first_id = self._next_delivery_id = self._next_outgoing_id = first_id & SERIAL_MASK
        self._outgoing_room = 0
        """The number of transfer frames that the peer accepts now (remote-incoming-window)."""
        self._window = self._incoming_room = incoming_window
        self._next_incoming_id: int | None = None
        self._next_incoming_delivery: int | None = None

    # -- verbs --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Send a Begin frame, which opens the session."""
        begin = Begin(next_outgoing_id=self._first_id, incoming_window=self._window, outgoing_window=LARGEST_WINDOW)
        self.connection.send(self.channel, begin)

    def end(self, error: Error | None = None) -> None:
        """Send an End frame, which ends the session and its links. A second call does nothing."""
        if not self.ended:
            self.connection.send(self.channel, End(error=error))
            self.over()

    def over(self) -> None:
        """End the session and its links on this side. Nothing can be sent any more."""
        self.ended = True
        self._queue.clear()
        for link in self._links.values():
            link.over()

    def attach_sender(self, attach: Attach, owner: Any = None) -> SenderLink:
        """Attach a link on which this client sends messages.

        This method sets the handle, the role and the initial delivery-count of ``attach``.

        Raises:
            StateError: the session has ended or has no free handle, or the frame is larger than the peer accepts.
        """
        return self._attach(SenderLink(self, self._described(attach, role=False), owner))

    def attach_receiver(
        self,
        attach: Attach,
        owner: Any = None,
        *,
        max_message_size: int | None = None,
        overdraft: int | None = 0,
        pieces_over: int | None = None,
    ) -> ReceiverLink:
        """Attach a link on which this client receives messages.

        Args:
            attach: the fields of the Attach frame. This method sets the fields handle and role.
            owner: an object of the caller, which the engine only keeps.
            max_message_size: the number of bytes of the largest message. Only the first bytes of a larger message are
                kept. ``None`` means no limit.
            overdraft: the number of messages that the peer may send without credit. One message more ends the
                connection. ``None`` means no limit.
            pieces_over: a message with more bytes than this is offered in pieces. ``None`` means never.

        Raises:
            StateError: as in :meth:`attach_sender`.
        """
        local = self._described(attach, role=True)
        link = ReceiverLink(
            self, local, owner, max_message_size=max_message_size, overdraft=overdraft, pieces_over=pieces_over
        )
        return self._attach(link)

    def _described(self, attach: Attach, *, role: bool) -> Attach:
        if self.ended:
            raise StateError("the session has ended")
        most = _HANDLE_MAX if self.remote is None else self.remote.handle_max
        handle = next(number for number in range(len(self._links) + 1) if number not in self._links)
        if handle > most:
            raise StateError(f"the session has no free handle, because the peer allows only {most + 1}")
        return replace(attach, handle=handle, role=role, initial_delivery_count=None if role else 0)

    def _attach(self, link: L) -> L:
        self.connection.send(self.channel, link.local)
        self._links[link.handle] = link
        return link

    # -- for links ----------------------------------------------------------------------------------------------

    def next_delivery_id(self, link: SenderLink | None) -> int:
        """Return the delivery-id for a message whose first transfer is sent now. ``link`` gets the outcome. ``None``
        means that no outcome is wanted.

        A message gets no number while it waits to be sent. If its link ended during the wait, the number would be
        missing, and Artemis and ActiveMQ Classic close the connection if a number is missing (2.6.12).
        """
        number = self._next_delivery_id
        self._next_delivery_id = (number + 1) & SERIAL_MASK
        if link is not None:
            self._unsettled[number] = link
        return number

    def forget_unsettled(self, numbers: Iterable[int]) -> None:
        """Forget sent messages whose outcomes are not wanted any more."""
        for number in numbers:
            self._unsettled.pop(number, None)

    def take_window(self) -> bool:
        """Use room for one transfer frame in the window. Return False if there is no room, or other messages wait."""
        if self._outgoing_room <= 0 or self._queue:
            return False
        self._outgoing_room -= 1
        self._next_outgoing_id = (self._next_outgoing_id + 1) & SERIAL_MASK
        return True

    def queue(self, outgoing: Outgoing | OutgoingStream) -> None:
        """Send a message or a piece after the messages that wait already, in several transfers if needed."""
        self._queue.append(outgoing)
        self._send_queued()

    def forget_queued(self, link: SenderLink) -> None:
        """Drop the waiting messages of a link that was detached."""
        self._queue = deque(outgoing for outgoing in self._queue if outgoing.link is not link)

    def _send_queued(self) -> None:
        queue, size = self._queue, self.max_frame_size
        while queue and self._outgoing_room > 0:
            head, piece = queue[0].frame(size)
            self._outgoing_room -= 1
            self._next_outgoing_id = (self._next_outgoing_id + 1) & SERIAL_MASK
            self.connection.put(head, piece)
            if queue[0].done:
                queue.popleft().left()

    def begin_delivery(self, delivery_id: int | None) -> int:
        """Check and return the delivery-id of a new message. Delivery-ids count up without a gap (2.6.12)."""
        expected = self._next_incoming_delivery
        if delivery_id is None or (expected is not None and delivery_id != expected):
            raise ViolationError(
                "amqp:invalid-field", f"a message has the delivery-id {delivery_id}; expected {expected}"
            )
        self._next_incoming_delivery = (delivery_id + 1) & SERIAL_MASK
        return delivery_id

    def send_flow(self, link: Link | None) -> None:
        """Send a Flow frame with the state of the windows, and of one link if ``link`` is given (2.5.6, 2.6.7)."""
        fields: dict[str, Any] = {} if link is None else {"handle": link.handle, **link.flow_fields()}
        self._incoming_room = self._window
        flow = Flow(
            next_incoming_id=self._next_incoming_id,
            incoming_window=self._window,
            next_outgoing_id=self._next_outgoing_id,
            outgoing_window=LARGEST_WINDOW,
            **fields,
        )
        self.connection.send(self.channel, flow)

    def send_detach(self, link: Link, detach: Detach) -> None:
        """Send a Detach frame, which suspends or closes a link."""
        self.connection.send(self.channel, detach)
        self._forget_if_over(link)

    # -- frames of the peer -------------------------------------------------------------------------------------

    def begun(self, begin: Begin, remote_channel: int, max_frame_size: int) -> None:
        """Handle the peer's Begin frame, which opens the session."""
        self.remote, self.remote_channel, self.max_frame_size = begin, remote_channel, max_frame_size
        self._next_incoming_id = begin.next_outgoing_id
        self._outgoing_room = begin.incoming_window

    def on_transfer(self, buffer: bytes, start: int, end: int) -> Event | None:
        """Handle a transfer frame, which carries a message or a part of a message. Return the event that the frame
        causes, for example that a message is complete, or ``None``."""
        handle, delivery_id, settled, more, aborted, payload = read_transfer(buffer, start, end)
        link = self._remote_links.get(handle)
        if link is None:
            raise self._unattached(handle)
        if self._incoming_room <= 0:
            raise ViolationError(
                "amqp:session:window-violation", f"more transfer frames came than the allowed {self._window}"
            )
        self._incoming_room -= 1
        self._next_incoming_id = (self._next_incoming_id + 1) & SERIAL_MASK  # type: ignore[operator]  # set by begun()
        if not isinstance(link, ReceiverLink):
            raise ViolationError(
                "amqp:not-allowed", f"a transfer came on link {link.local.link_name!r}, which only sends"
            )
        event = link.on_transfer(delivery_id, settled, more, aborted, buffer[payload:end])
        if self._incoming_room <= self._window >> 1 and not self.ended:
            self.send_flow(None)
        return event

    def on_disposition(self, buffer: bytes, start: int, end: int) -> list[Event]:
        """Handle a disposition, by which the peer reports outcomes of our messages, or says that it settled its own
        messages (2.7.6)."""
        role, first, last, settled, encoded = read_disposition(buffer, start, end)
        if not role:
            if settled:
                self._settled_by_sender(first, last)
            return []
        state = self._states.read(encoded)
        if state is None and not settled:
            return []
        unsettled = self._unsettled
        if first == last and first in unsettled:
            numbers = [first]
        else:
            numbers = unsettled.within(first, last, self._next_delivery_id)
        events: list[Event] = []
        for number in numbers:
            link = unsettled.pop(number)
            events.append((OUTCOME, link, link.unsettled.pop(number), state))
        if not settled and not self.ended:  # the outcome has arrived, so this client settles as well
            for start_of, end_of in ranges(numbers):
                self.connection.settle(self.channel, False, start_of, b"", end_of)
        return events

    def _settled_by_sender(self, first: int, last: int) -> None:
        if self._next_incoming_delivery is None:  # no message has come yet
            return
        for number in self.incoming.within(first, last, self._next_incoming_delivery):
            self.incoming.pop(number).settled_by_sender(number)

    def on_attach(self, attach: Attach) -> list[Event]:
        """Handle the answer to our Attach frame. The answer has the same link name and the other role (2.6.3)."""
        if attach.handle in self._remote_links:
            raise ViolationError("amqp:session:handle-in-use", f"handle {attach.handle} is in use")
        wanted = (attach.link_name, not attach.role)
        waiting = (link for link in self._links.values() if link.remote is None)
        link = next((link for link in waiting if (link.local.link_name, link.local.role) == wanted), None)
        if link is None:
            raise ViolationError(
                "amqp:not-allowed", f"an Attach frame came for link {attach.link_name[:200]!r}, which nobody asked for"
            )
        link.attached(attach)
        self._remote_links[attach.handle] = link
        return [(ATTACHED, link)]

    def on_flow(self, flow: Flow) -> list[Event]:
        """Handle a Flow frame, which has the state of the windows and perhaps of one link."""
        received = self._first_id if flow.next_incoming_id is None else flow.next_incoming_id
        if serial_distance(received, self._next_outgoing_id) > 0:
            text = f"a Flow has next-incoming-id {received}, but next-outgoing-id is {self._next_outgoing_id}"
            raise ViolationError("amqp:invalid-field", text)
        on_the_way = serial_distance(self._next_outgoing_id, received)
        self._outgoing_room = max(0, flow.incoming_window - on_the_way)
        self._send_queued()
        link = None
        events: list[Event] = []
        if flow.handle is not None:
            link = self._remote_links.get(flow.handle)
            if link is None:
                raise self._unattached(flow.handle)
            events = link.on_flow(flow)
        if flow.echo and not self.ended:
            self.connection.echo(self, link)
        return events

    def on_detach(self, detach: Detach) -> list[Event]:
        """Handle a Detach frame. By this frame the peer answers our Detach frame, refuses our Attach frame, or detaches
        the link itself."""
        link = self._remote_links.pop(detach.handle, None)
        if link is None:
            raise self._unattached(detach.handle)
        link.remote_error, link.remote_closed = detach.error, detach.closed
        link.remote_handle = None
        if isinstance(link, SenderLink):
            self.forget_unsettled(link.unsettled)
        self._forget_if_over(link)
        return [(DETACHED, link)]

    def _forget_if_over(self, link: Link) -> None:
        """Free the handle of a link if both ends are detached."""
        if link.detached and link.remote is not None and link.remote_handle is None:
            self._links.pop(link.handle, None)

    @staticmethod
    def _unattached(handle: int) -> ViolationError:
        return ViolationError(
            "amqp:session:unattached-handle", f"a frame names handle {handle}, but no link has this handle"
        )


HANDLERS: Mapping[type[Composite], Any] = {
    Attach: Session.on_attach,
    Flow: Session.on_flow,
    Detach: Session.on_detach,
}
"""The methods that handle the less frequent performatives. The key is the class of the performative."""

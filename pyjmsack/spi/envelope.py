"""Messages on their way between the core and a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Final, Protocol, TypeAlias

from pyjmsack.destination import Destination
from pyjmsack.errors import MessageFormatException
from pyjmsack.message import BodySource, Message

__all__ = [
    "DUPLICATE_ID",
    "HEAVY",
    "Encoder",
    "Inbound",
    "InboundSink",
    "NotOneMessageError",
    "Outbound",
    "Payload",
    "StreamedPayload",
    "generations",
]

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
"""The property by which Artemis knows a repeated send (S106)."""


class StreamedPayload:
    """An encoded message whose body is read while it is sent (S168). Its length is that of the whole.

    Args:
        head: what comes before the body in any case.
        mark: what comes before a body of this length.
        empty: what stands for mark and body in a message that has none.
        body: where the body comes from.
        tail: what comes behind the body.
    """

    __slots__ = ("body", "empty", "head", "mark", "tail")

    def __init__(self, head: bytes, mark: bytes, body: BodySource, tail: bytes = b"", empty: bytes = b"") -> None:
        self.head = head
        self.mark = mark
        self.body = body
        self.tail = tail
        self.empty = empty

    @property
    def without_body(self) -> bytes:
        """The same message with an empty body."""
        return self.head + self.empty + self.tail

    @property
    def repeatable(self) -> bool:
        """Whether it can still be sent: an iterator that was read cannot."""
        return self.body.repeatable or not self.body.used

    def __len__(self) -> int:
        return len(self.head) + len(self.mark) + self.body.length + len(self.tail)


Payload: TypeAlias = "bytes | StreamedPayload"
Encoder = Callable[[Message, int], Payload]
"""``encoder(message, ttl_ms) -> payload``; ``ttl_ms`` 0 means no time to live. Runs on the caller's thread."""

generations: Iterator[int] = count(1)
"""Numbers of connections, over all providers of this process: each new connection to a broker takes the next (S96)."""


HEAVY = 1 << 20
"""Bytes of a message above which the digest for its identity is work for a thread of its own: 3 ms."""


class NotOneMessageError(MessageFormatException):
    """What one delivery brought is nothing, or more than one message: the broker has them whole, and may deliver them
    so when they are given back."""


class Outbound:
    """One encoded message for one producer.

    The payload is a snapshot: the caller may change and send the message again at once (S72). A subclass says what is
    to happen when it is done.
    """

    __slots__ = ("encoder", "left", "message_id", "notifies", "payload", "presettled", "producer_id", "transacted")

    producer_id: int
    payload: Payload
    encoder: Encoder
    """Made the payload. After a failover it says for which broker the payload was made (S91)."""
    notifies: bool
    """Whether a completion listener is told of the outcome: such a send is never repeated (S102)."""
    left: bool
    """Whether the message may have reached a broker before, so that this is a second copy (S91)."""
    message_id: str | None
    presettled: bool
    transacted: bool

    def done(self, error: BaseException | None) -> None:
        """Called once, on the loop: ``None`` when the broker confirmed (or the bytes left, if presettled)."""
        raise AssertionError("a subclass defines what a finished send does")


class Inbound(Protocol):
    """One delivered message, not decoded yet. Its methods run on the caller's thread."""

    consumer_id: int
    generation: int
    """Number of the connection that delivered it: an outcome for an older one is never sent (S95, S96)."""
    redeliveries: int
    """Local redeliveries by ``recover()``, on top of those the broker counted (S32)."""
    known: bool | None
    """Whether the file of the guard says that it was processed; ``None`` until the file was asked (S105)."""
    settled: bool
    """True once an outcome was chosen. True from the start if the broker sent the message presettled."""

    @property
    def redelivery_count(self) -> int:
        """How often the message was delivered before, as far as broker and client know (S110)."""
        ...

    @property
    def priority(self) -> int:
        """0 to 9; 4 if nothing can be read. Asked on the loop if messages are buffered by it, else never."""
        ...

    @property
    def correlation_id(self) -> str | None:
        """What message it answers. Asked on the loop, where a body is never decoded.

        Raises:
            MessageFormatException: it cannot be decoded.
        """
        ...

    def identity(self) -> bytes | None:
        """Return what two deliveries of the same message have in common, and no other message has: all that its sender
        made of it, and nothing that the broker changes when it delivers again; a digest stands for much of it.
        ``None`` for a message without an id, which may be repeated on purpose (S105)."""
        ...

    @property
    def heavy(self) -> bool:
        """Whether the first call of :meth:`identity` has more than :data:`HEAVY` bytes to look at, and is still to
        come: then it is made on a thread of its own, before the message is handed out."""
        ...

    def stored_id(self) -> bytes | None:
        """Return what all deliveries of one stored message have in common, and no other message has: of two messages
        that are alike in everything, each has its own. ``None`` where the broker does not say its number."""
        ...

    def expired(self, now_ms: int) -> bool:
        """Whether its time to live is over at ``now_ms`` (milliseconds since the epoch, S156)."""
        ...

    def to_message(self, consumer_destination: Destination, /) -> Message:
        """Return a message of its own (S169).

        Raises:
            NotOneMessageError: the transfer is damaged, and holds no message or several.
            MessageFormatException: it cannot be decoded (S166).
        """
        ...


class InboundSink(Protocol):
    """Where a provider puts what it received for one consumer. All run on the loop."""

    def deliver(self, inbound: Inbound, /) -> None:
        """Buffer one message; nobody is woken yet."""
        ...

    def redeliver(self, inbounds: Sequence[Inbound]) -> None:
        """Put messages that the caller had before everything buffered, oldest first, and wake whoever waits: local
        redelivery, where the protocol has no verb to hand a message back (S82)."""
        ...

    def arrived(self) -> None:
        """The burst is over: wake whoever waits, once."""
        ...

    def buffered(self) -> int:
        """Return how many messages wait in the inbox for the caller (S53)."""
        ...

    def detached(self, error: BaseException) -> None:
        """The broker closed this consumer (S126)."""
        ...

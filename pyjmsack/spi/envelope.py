"""Messages on their way between the core and a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
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
    "identify",
]

DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
"""The property by which Artemis recognises the second copy of a send (S106)."""


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
"""The numbers for the connections of this process. Each new connection to a broker takes the next one (S96)."""


HEAVY = 1 << 20
"""Bytes of a message above which the digest for its identity is work for a thread of its own: 3 ms."""


class NotOneMessageError(MessageFormatException):
    """A damaged transfer: one delivery contained no message or more than one. The broker still has the messages, and
    may deliver them undamaged after they are given back."""


def identify(inbounds: Iterable[Inbound]) -> None:
    """Compute the identities of large messages; on a thread that may take its time."""
    for inbound in inbounds:
        with suppress(Exception):  # the next call raises it again
            inbound.identity()


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
        """Handle the outcome. Called once, on the loop, with ``None`` when the broker confirmed the message (if
        presettled: when the bytes left)."""
        raise AssertionError("a subclass defines what a finished send does")


class Inbound(Protocol):
    """One delivered message, not decoded yet. Its methods run on the caller's thread."""

    consumer_id: int
    generation: int
    """The number of the connection that delivered the message. An outcome for an older connection is never sent (S95,
    S96)."""
    redeliveries: int
    """The number of local redeliveries by ``recover()``, which the broker does not count (S32)."""
    known: bool | None
    """True if the message was processed according to the file of the guard; ``None`` until the file was asked
    (S105)."""
    settled: bool
    """True once an outcome was chosen. True from the start if the broker sent the message presettled."""

    @property
    def redelivery_count(self) -> int:
        """How often the message was delivered before, as far as broker and client know (S110)."""
        ...

    @property
    def priority(self) -> int:
        """The priority, 0 to 9; 4 if it cannot be read. Called on the loop, and only if the inbox is ordered by
        priority."""
        ...

    @property
    def correlation_id(self) -> str | None:
        """The id of the message that this one answers. Called on the loop, where a body is never decoded.

        Raises:
            MessageFormatException: it cannot be decoded.
        """
        ...

    def identity(self) -> bytes | None:
        """Return bytes that are the same for all deliveries of this message and differ for all other messages. They
        contain what the sender wrote, and nothing that the broker changes at a redelivery. A digest replaces long
        parts. ``None`` for a message without an id, because its sender may repeat it on purpose (S105)."""
        ...

    @property
    def heavy(self) -> bool:
        """Whether the first call of :meth:`identity` has more than :data:`HEAVY` bytes to look at, and is still to
        come: then it is made on a thread of its own, before the message is handed out."""
        ...

    def stored_id(self) -> bytes | None:
        """Return bytes that are the same for all deliveries of one stored message. Two messages with the same content
        have different ones. ``None`` if the broker does not give its messages a number."""
        ...

    def expired(self, now_ms: int) -> bool:
        """Return True if the time to live is over at ``now_ms`` (milliseconds since 1970, S156)."""
        ...

    def to_message(self, consumer_destination: Destination, /) -> Message:
        """Return a new message at each call (S169).

        Raises:
            NotOneMessageError: the transfer is damaged and contains no message or several.
            MessageFormatException: it cannot be decoded (S166).
        """
        ...


class InboundSink(Protocol):
    """Takes the messages that a provider received for one consumer. All methods run on the loop."""

    def deliver(self, inbound: Inbound, /) -> None:
        """Put one message into the inbox, and wake no caller yet."""
        ...

    def redeliver(self, inbounds: Sequence[Inbound]) -> None:
        """Put messages that the caller had at the front of the inbox, oldest first, and wake the waiting caller. Used
        if the protocol has no way to give a message back (S82)."""
        ...

    def arrived(self) -> None:
        """Wake the waiting caller, once, because the burst is over."""
        ...

    def buffered(self) -> int:
        """Return the number of messages in the inbox (S53)."""
        ...

    def detached(self, error: BaseException) -> None:
        """Close this consumer with an error, because the broker closed it (S126)."""
        ...

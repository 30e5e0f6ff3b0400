"""The forms in which the core and a provider hand messages to each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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
"""The property by which Artemis recognises that a send is a second copy of an earlier send (S106)."""


class StreamedPayload:
    """An encoded message whose body is read while the message is sent (S168). ``len()`` returns the size of the whole
    message in bytes.

    Args:
        head: the bytes at the beginning of the message, which do not depend on the body.
        mark: the bytes directly before the body, which contain its length.
        empty: the bytes in place of ``mark`` and the body if the same message is encoded without a body.
        body: the source of the body.
        tail: the bytes after the body.
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
        """Whether the message can still be sent. The message cannot be sent if its body is an iterator that was already
        read."""
        return self.body.repeatable or not self.body.used

    def __len__(self) -> int:
        return len(self.head) + len(self.mark) + self.body.length + len(self.tail)


Payload: TypeAlias = "bytes | StreamedPayload"
Encoder = Callable[[Message, int], Payload]
"""A function ``encoder(message, ttl_ms) -> payload`` that runs on the caller's thread. ``ttl_ms`` is the time to live
in milliseconds; 0 means no limit."""

generations: Iterator[int] = count(1)
"""The numbers for the connections of this process. Each new connection to a broker takes the next number (S96)."""


HEAVY = 1 << 20
"""If a message has more bytes than this number, a thread computes the digest for its identity, because this takes 3 ms
or more."""


class NotOneMessageError(MessageFormatException):
    """The error of a damaged delivery, which contained no message or more than one.

    The broker still has the messages, and may deliver them undamaged after they are given back.
    """


def identify(inbounds: Iterable[Inbound]) -> None:
    """Compute the identities of large messages. This takes long, so it does not run on the loop."""
    for inbound in inbounds:
        with suppress(Exception):  # the next call of identity() raises the same error
            inbound.identity()


LARGE = 1 << 16
"""A message with more bytes than this number is decoded on a thread in asyncio unless it is quick, because it may have
very many values, which no loop should wait for. 65,536 values take 20 ms."""


class Outbound:
    """One encoded message for one producer.

    The payload is a snapshot, so the caller may change the message and send it again at once (S72). A subclass defines
    what happens when the send is finished.
    """

    __slots__ = ("encoder", "left", "message_id", "notifies", "payload", "presettled", "producer_id", "transacted")

    producer_id: int
    payload: Payload
    encoder: Encoder
    """The function that made the payload. After a failover, the provider learns from the encoder for which broker the
    payload was made (S91)."""
    notifies: bool
    """Whether a completion listener gets the outcome. Such a send is never repeated (S102)."""
    left: bool
    """Whether the message may have reached a broker already, so that a further send makes a second copy (S91)."""
    message_id: str | None
    presettled: bool
    transacted: bool

    def done(self, error: BaseException | None) -> None:
        """Handle the outcome of the send; called once, on the loop.

        ``error`` is ``None`` if the broker confirmed the message. The broker confirms no presettled message, so this
        method is called as soon as the bytes of such a message are sent.
        """
        raise AssertionError("a subclass of Outbound must define done(); this is a defect of pyjmsack")


class Inbound(Protocol):
    """One delivered message, not decoded yet. Its methods run on the caller's thread."""

    consumer_id: int
    generation: int
    """The number of the connection that delivered the message. The outcome of a message of an older connection is never
    sent (S95, S96)."""
    redeliveries: int
    """The number of local redeliveries by ``recover()``, which the broker does not count (S32)."""
    known: bool | None
    """True if the file of the guard says that the message was processed before. ``None`` until the guard has looked
    into the file (S105)."""
    settled: bool
    """True after an outcome was chosen. True from the start if the broker sent the message presettled."""
    read: Message | BaseException | None
    """What a thread read of a large message: the decoded message, or the error. ``None`` if no thread has read it."""
    sent: bool
    """True after the provider got the outcome. The core submits an outcome twice if Ctrl-C interrupted the first time,
    because nobody knows how far the first time came."""

    @property
    def redelivery_count(self) -> int:
        """The number of earlier deliveries of this message, as far as broker and client know (S110)."""
        ...

    @property
    def likely_failures(self) -> int:
        """How often messages failed that look like this one, if they have no id and the broker may not count their
        deliveries. At most 2. They let this message wait (S115), and do not count otherwise."""
        ...

    @property
    def maybe_unseen(self) -> bool:
        """True if nothing but a flag of the broker says that this message was delivered before, and the broker may set
        the flag for a message that nobody saw (S111)."""
        ...

    @property
    def priority(self) -> int:
        """The priority of the message, 0 to 9; 4 if the priority cannot be read.

        The loop reads this property, and only if the inbox is ordered by priority.
        """
        ...

    @property
    def correlation_id(self) -> str | None:
        """The correlation id: the id of the message that this message answers.

        The loop reads this property. Reading the property does not decode the body, because decoding could hold up the
        loop.

        Raises:
            MessageFormatException: the message cannot be decoded.
        """
        ...

    @property
    def size(self) -> int:
        """The approximate number of bytes that the broker sent for the message."""
        ...

    def quick_id(self) -> Hashable:
        """Return a value that is the same for all deliveries of this message over one connection. It is found quickly,
        because the body is not read. A sender may give two messages the same id.

        Returns ``None`` for a message without an id, and for a message that cannot be decoded.
        """
        ...

    def identity(self) -> bytes | None:
        """Return bytes that are the same for all deliveries of this message and differ for all other messages.

        The bytes contain only values that the sender wrote, and no value that the broker changes at a redelivery. A
        digest replaces long parts. Returns ``None`` for a message without an id, because a sender may send two such
        messages with the same content on purpose (S105).
        """
        ...

    @property
    def heavy(self) -> bool:
        """Whether the next call of :meth:`identity` takes long, because it must read more than :data:`HEAVY` bytes.

        For a heavy message, a separate thread calls :meth:`identity` before the message is handed out. Later calls are
        fast.
        """
        ...

    @property
    def quick(self) -> bool:
        """Whether the body is decoded quickly, although it may be large: it is one text or one run of bytes, or has few
        values.

        The loop reads this property, if the message has more than :data:`LARGE` bytes.
        """
        ...

    def stored_id(self) -> bytes | None:
        """Return bytes that are the same for all deliveries of one stored message.

        They differ for two messages with the same content. Returns ``None`` if the broker does not number its messages.
        """
        ...

    @property
    def lossy(self) -> bool:
        """Whether the broker may have left out the content of the message, because this protocol cannot carry it."""
        ...

    def original_destination(self) -> Destination | None:
        """Return the destination from which the broker moved this message, for example to a dead-letter queue.

        Returns ``None`` if the broker did not move the message, or if no header of the message contains the
        destination.
        """
        ...

    def expired(self, now_ms: int) -> bool:
        """Return True if the time to live is over at ``now_ms`` (milliseconds since 1970, S156)."""
        ...

    def to_message(self, consumer_destination: Destination, /) -> Message:
        """Return the decoded message. Each call returns a new object (S169).

        Raises:
            NotOneMessageError: the delivery is damaged and contains no message or several.
            MessageFormatException: the message cannot be decoded (S166).
        """
        ...


class InboundSink(Protocol):
    """Takes the messages that a provider received for one consumer. All methods run on the loop."""

    def deliver(self, inbound: Inbound, /) -> None:
        """Put one message into the inbox without waking the caller who waits for it."""
        ...

    def redeliver(self, inbounds: Sequence[Inbound]) -> None:
        """Put messages that the caller already had back at the front of the inbox, oldest first, and wake the caller.

        Used if the protocol has no way to give a message back to the broker (S82).
        """
        ...

    def arrived(self) -> None:
        """Wake the waiting caller once, because all messages that arrived together are in the inbox."""
        ...

    def buffered(self) -> int:
        """Return the number of messages in the inbox (S53)."""
        ...

    def detached(self, error: BaseException) -> None:
        """Close this consumer with an error, because the broker closed it (S126)."""
        ...

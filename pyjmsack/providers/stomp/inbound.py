"""A received MESSAGE frame. The frame is decoded only when the caller reads the message, on the thread of the
caller."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from pyjmsack.destination import Destination, Queue, Topic
from pyjmsack.errors import MessageFormatException
from pyjmsack.message import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    StreamMessage,
    TextMessage,
    portable,
)
from pyjmsack.message.headers import Headers
from pyjmsack.providers.stomp.dialect import StompDialect, parse_destination
from pyjmsack.providers.stomp.frames import Refusal
from pyjmsack.providers.stomp.header_lines import decode_head, has_legal_head, lines_that_name, raw_header, unescape
from pyjmsack.spi.envelope import DUPLICATE_ID, HEAVY, LARGE
from pyjmsack.spi.registry import decode_foreign
from pyjmsack.spi.stomp_names import BODY, COPY, properties_of

__all__ = ["StompInbound"]

MESSAGE, OBJECT, MAP, BYTES, STREAM, TEXT = range(6)
_CLASSES: dict[int, type[Message]] = {
    MESSAGE: Message,
    OBJECT: ObjectMessage,
    MAP: MapMessage,
    BYTES: BytesMessage,
    STREAM: StreamMessage,
    TEXT: TextMessage,
}
_CHANGED = (b"ack:", b"subscription:", b"message-id:", b"redelivered:", b"receipt:", b"transaction:")
"""Header lines that differ between two deliveries of a message, or between the two copies of a send that was
repeated."""
_BEGINNINGS = frozenset(name[:4] for name in _CHANGED)
"""The first four bytes of the names in ``_CHANGED``. A look into this set is quicker than six comparisons for each
line.
"""
_LARGE = 4096
"""A body of more bytes than this number is replaced by its digest in the identity of a message."""
_ABOUT_BODY = tuple(f"\n{name}:".encode() for name in (BODY, "content-type", "amq-msg-type", "JMS_AMQP_NATIVE"))
_KINDS = {"ANYCAST": Queue, "MULTICAST": Topic}
_BODY_LINE = f"\n{BODY}:".encode()
_LOSSY_KINDS = tuple(b"%d" % kind for kind in (OBJECT, MAP, STREAM))
"""The kinds, as an AMQP client of JMS writes them, of messages whose content Artemis does not convert for STOMP."""
_LOSSY_ENCODINGS = (b"3", b"7", b"8")
"""The same for the encodings of AMQP, as Artemis numbers them: a sequence, a map and a list."""
_STOMP_ID = re.compile(rb"(?:\\c|:)-1(?:\\c|:)\d+(?:\\c|:)\d+$")
"""The end of the message id that ActiveMQ Classic gives to a message of a STOMP client."""


class StompInbound:
    """One delivered message: the ``Inbound`` of the core, and the lazy content of the ``Message`` made from it.

    The constructor only keeps the bytes. Any thread may use the object, but only one thread at a time.

    Args:
        head: the header lines as they came.
        body: the body.
        dialect: the dialect of the broker that sent the frame.
        refusal: the reason why the frame cannot be decoded, if the parser already found one.
    """

    __slots__ = (
        "__weakref__",
        "_headers",
        "_identity",
        "ack",
        "body",
        "consumer_destination",
        "consumer_id",
        "cost",
        "counted",
        "dialect",
        "generation",
        "head",
        "known",
        "read",
        "redeliveries",
        "refusal",
        "sent",
        "sequence",
        "settled",
        "subscription",
        "unreadable",
    )

    def __init__(self, head: bytes, body: bytes, dialect: StompDialect, refusal: Refusal | None = None) -> None:
        self.head = head
        self.body = body
        self.dialect = dialect
        self.consumer_destination: Destination | None = None
        self.consumer_id = 0
        self.generation = 0
        self.redeliveries = 0
        self.known: bool | None = None
        self.read: Message | BaseException | None = None
        self.settled = self.sent = False
        self.counted: int | None = None
        """The number of earlier deliveries of this message that this connection knows of. ``None`` if the connection
        knows nothing of the message."""
        self.ack: bytes | None = None
        """The header lines that name the message in an ACK, the frame that acknowledges. ``None`` if the broker wants
        no ACK."""
        self.subscription: Any = None
        """The subscription that delivered the message."""
        self.cost = 0
        """The part of the window of the subscription that this message uses, in messages or bytes."""
        self.sequence = 0
        """The position of the message in the order in which messages arrived."""
        self.refusal = refusal
        self.unreadable = False
        """True if an attempt to decode the message failed."""
        self._headers: dict[str, str] | None = None
        self._identity: bytes | None = None

    # -- for the core -------------------------------------------------------------------------------------------

    @property
    def redelivery_count(self) -> int:
        """The estimated number of earlier deliveries (S110), which is the number that this connection remembers. If the
        connection knows nothing of the message and the frame says ``redelivered``, the number is 1."""
        if self.counted is not None:
            return self.counted
        if self.head.find(b"\nredelivered:true") < 0:  # as for most messages
            return 0
        return 1 if raw_header(self.head, b"\nredelivered:") == b"true" else 0

    @property
    def likely_failures(self) -> int:
        """0, because each message has the id of the broker."""
        return 0

    @property
    def maybe_unseen(self) -> bool:
        """True if nothing but the line ``redelivered`` says that the message was delivered before. Classic writes this
        line also if an earlier consumer ended before it handed the message out (S111)."""
        return self.counted is None and not self.redeliveries

    @property
    def priority(self) -> int:
        """The priority of the message, 0 to 9. It is 4 if the frame names no priority."""
        return min(9, _number(raw_header(self.head, b"\npriority:") or b"4"))

    @property
    def expiration_ms(self) -> int:
        """The time when the message expires, in milliseconds since 1970. 0 means that the message never expires.

        ActiveMQ Classic writes a property ``expires`` of an AMQP sender into the same header line. No message expires
        before it was sent, so an earlier time is such a property.
        """
        expires = _number(raw_header(self.head, b"\nexpires:"))
        return 0 if expires and self.dialect.own_ids and expires < self._timestamp_ms() else expires

    def expired(self, now_ms: int) -> bool:
        """Return True if the time to live of the message is over (S156)."""
        return 0 < self.expiration_ms <= now_ms

    def to_message(self, consumer_destination: Destination | None = None) -> Message:
        """Return a new message of the right JMS class (S151, S169).

        Args:
            consumer_destination: the destination of the consumer. If the frame names a destination without its kind,
                the message gets the kind of the consumer's destination.

        Raises:
            MessageFormatException: the header lines or the body cannot be decoded.
        """
        try:
            if self.refusal is not None:
                raise MessageFormatException(f"the frame has {self.refusal.reason}")
            return self._to_message(consumer_destination)
        except MessageFormatException:
            self.unreadable = True
            raise

    def _to_message(self, consumer_destination: Destination | None) -> Message:
        self.consumer_destination = consumer_destination
        if self._is_plain_text():
            return self._message(TextMessage, self._text())
        headers = self._decode()
        if headers.get("JMS_AMQP_NATIVE") == "true":  # ActiveMQ Classic delivers the messages of AMQP clients in AMQP
            message = decode_foreign("amqp", self.body, consumer_destination)
            message._redelivery_count = self.redelivery_count
            reply_to = message.reply_to
            if reply_to is not None and reply_to.is_temporary:
                # the name of AMQP would be the name of an ordinary queue over STOMP. The header reply-to is not used,
                # because a property of this name takes its place
                message.reply_to = parse_destination(reply_to.name, self.dialect, type(reply_to))
            return message
        wire_type, body = self._decode_body(headers)
        return self._message(_CLASSES[wire_type], body)

    def _message(self, kind: type[Message], body: Any) -> Message:
        message = kind.__new__(kind)
        message._lazy = self
        message._body = body
        message._redelivery_count = self.redelivery_count
        return message

    def _is_plain_text(self) -> bool:
        """Return True if the header lines say nothing about the body. In this case the body is text, and the header
        lines need not be decoded.

        Return False if decoding of the lines might fail, because a message with such lines must be refused (S166).
        """
        head = self.head
        mark, content_type, kind, native = _ABOUT_BODY
        find = head.find  # ``in`` takes twice as long, because it first asks whether the other operand is a number
        told = find(mark) >= 0 or find(content_type) >= 0 or find(kind) >= 0 or find(native) >= 0
        return not told and head.isascii() and has_legal_head(head) and not self.is_bytes

    @property
    def correlation_id(self) -> str | None:
        """The correlation id, for example the id of the request that this message answers. The body and the other
        header lines are not decoded for this, because a loop may wait for the id.

        Raises:
            MessageFormatException: its line cannot be decoded, or the frame was refused. The lines of a refused
                frame are not decoded, because they may be very many.
        """
        if self.refusal is not None:
            raise MessageFormatException(f"the frame has {self.refusal.reason}")
        if self._headers is not None:
            return self._headers.get("correlation-id")
        raw = raw_header(self.head, b"\ncorrelation-id:")
        return None if raw is None else decode_head(b"\n:" + raw)[""]

    @property
    def heavy(self) -> bool:
        """Whether the next call of :meth:`identity` takes long. Later calls are fast."""
        return self._identity is None and len(self.body) > HEAVY

    @property
    def quick(self) -> bool:
        """Whether the body is one text or one run of bytes, and the header lines are short. Otherwise the body holds
        values, or a whole message of AMQP."""
        head = self.head
        return len(head) <= LARGE and head.find(b"JMS_AMQP_NATIVE") < 0 and head.lower().find(portable.PREFIX) < 0

    def quick_id(self) -> bytes | None:
        """Return the id that the broker gave the message. ``None`` if the frame contains none."""
        return self.broker_id or None

    def identity(self) -> bytes | None:
        """Return bytes that are the same for each delivery of this message: they contain the parts that the sender
        wrote, without the parts that the broker changes (S105).

        If the sender gave the message no id, as is usual for STOMP clients, the identity contains the broker's number
        and time. The number alone is not enough, because another broker may give the same number to another message.
        """
        if self._identity is None:
            head, broker_id = self.head, b""
            if head.find(b"\nNATIVE_MESSAGE_ID:") < 0:
                broker_id = self.broker_id
                if not broker_id or raw_header(head, b"\ntimestamp:") in (None, b"0"):
                    return None
            lines = [line for line in head.split(b"\n") if line[:4] not in _BEGINNINGS or not line.startswith(_CHANGED)]
            if self.dialect.routed and head.count(b"\ntimestamp:") > 1:
                # the first of these lines has the time when Artemis stored this copy
                start = head.index(b"\ntimestamp:") + 1
                lines.remove(head[start : head.index(b"\n", start)])
            lines.sort()
            body = self.body if len(self.body) <= _LARGE else sha256(self.body).digest()
            self._identity = b"%b\n%b\0%d%d %b" % (broker_id, b"\n".join(lines), self.is_bytes, len(self.body), body)
        return self._identity

    def stored_id(self) -> bytes | None:
        """Return bytes that are made of the identity of the message and the number that the broker gave it. The number
        alone is not enough, because another broker may use the same number for another message.

        If the broker copies a message, for example as a dead letter, the copy gets another number.
        """
        number, identity = self.broker_id, self.identity()
        return b"%b\n%b" % (number, identity) if number and identity is not None else None

    def original_destination(self) -> Destination | None:
        """Return the original destination of the message, which ActiveMQ Classic writes into a header of its own."""
        noted = (self._headers or self._decode()).get("original-destination")
        return parse_destination(noted, self.dialect, Queue) if noted else None

    @property
    def whole(self) -> bool:
        """Whether the whole message is kept. Only a whole message can be copied."""
        return (self.refusal is None or self.refusal.whole) and not self.lossy

    @property
    def lossy(self) -> bool:
        """Whether the broker may have left out the content, because a client of another protocol sent a map, a stream
        or an object.

        No header line names the kind of such a message. On Classic its body is empty, as the body of an empty text is.
        Artemis reads the body as if it were a text. The result for a map or an object is empty or begins with NUL. The
        result for a stream begins with the number of a type, 2 to 11. A text may begin with a tab (9) or newline (10).
        """
        head = self.head
        if self.dialect.routed:
            kind = raw_header(head, b"\nJMS_AMQP_MA_x-opt-jms-msg-type:") or b""
            encoding = raw_header(head, b"\nJMS_AMQP_ORIGINAL_ENCODING:") or b""
            if kind or encoding:
                return kind in _LOSSY_KINDS or encoding in _LOSSY_ENCODINGS
            java = head.find(b"\n__AMQ_CID:") >= 0 or head.find(b"\n__HDR_") >= 0
            first = self.body[:4].decode(errors="replace")[:1]
            return java and not self.is_bytes and (not first or (ord(first) & 0xFF < 12 and first not in "\t\n"))
        if self.body or any(head.find(name) >= 0 for name in (b"\ncontent-length:", _BODY_LINE, b"\nscheduledJobId:")):
            return False  # the scheduler of Classic gives a message an id that does not name the protocol of the sender
        return self.dialect.own_ids and not _STOMP_ID.search(raw_header(head, b"\nmessage-id:") or b"")

    @property
    def size(self) -> int:
        """The approximate number of bytes that the broker sent for the message."""
        return len(self.head) + len(self.body) if self.refusal is None else self.refusal.size

    def forget(self) -> None:
        """Drop all parts of the message that an ACK does not need, to free memory."""
        self.head, self.body = lines_that_name(self.head), b""
        self._headers = None

    @property
    def broker_id(self) -> bytes:
        """The id that the broker gave the message. The id is the same for every consumer. It is empty if the frame
        contains none.

        The header of Artemis contains the consumer, a comma, and then the id of the message.
        """
        return (raw_header(self.head, b"\nmessage-id:") or b"").rpartition(b",")[2]

    def to_sent(self, destination: Destination) -> tuple[Message, int]:
        """Return two values: the message as the sender gave it to the encoder, and its time to live in milliseconds."""
        message = self.to_message(destination)
        message._properties = self.load_properties()
        if "AMQ_SCHEDULED_TIME" in self._decode():
            message._properties.pop("AMQ_SCHEDULED_DELAY", None)  # the encoder wrote it beside the time
        expires = message._expiration
        return message, max(1, expires - message._timestamp) if expires and message._timestamp else 0

    # -- for the message ----------------------------------------------------------------------------------------

    def load_header(self, slot: str) -> Any:
        """Return the value of one header field of ``Message``. ``slot`` is the name of its attribute."""
        if slot == "_message_id" and self._headers is None:  # a ledger needs only the id of each message
            raw = raw_header(self.head, b"\nNATIVE_MESSAGE_ID:")
            if raw is not None and raw.isascii() and has_legal_head(raw):
                return unescape(raw.decode())
        return _LOADERS[slot](self, self._headers or self._decode())

    def load_headers(self, message: Headers) -> None:
        """Set all header fields of a message."""
        decoded = self._decode()
        for slot, load in _LOADERS.items():
            setattr(message, slot, load(self, decoded))

    def load_properties(self) -> dict[str, Any]:
        """Return the application properties. The types of the values are in a header that this library adds to the
        messages that it sends.

        The duplicate mark is left out. If the caller forwards the message, Artemis would otherwise drop the forwarded
        message as a second copy of this one (S106).
        """
        found = properties_of(self._decode())
        found.pop(DUPLICATE_ID, None)
        return found

    # -- decoding -----------------------------------------------------------------------------------------------

    def _decode(self) -> dict[str, str]:
        if self._headers is None:
            self._headers = decode_head(self.head)
        return self._headers

    def _decode_body(self, headers: dict[str, str]) -> tuple[int, Any]:
        mark = headers.get(BODY)
        if mark == "message":
            return MESSAGE, None
        if mark == "null-text":
            return TEXT, None
        if mark == "bytes":
            return BYTES, self.body
        content_type = headers.get("content-type")
        if content_type is not None and portable.is_portable(content_type):
            return portable.decode(content_type, self._text())
        if mark == "text" or headers.get("amq-msg-type") == "text" or not self.is_bytes:
            return TEXT, self._text()
        return BYTES, self.body

    @property
    def is_bytes(self) -> bool:
        """True if the body is bytes. A body of bytes has a ``content-length`` (S167).

        Artemis adds a ``content-length`` to every body. In a message of bytes this line follows directly after
        ``subscription``, and in a text it is the last line.
        """
        length, message_id = self.head.find(b"\ncontent-length:"), self.head.find(b"\nmessage-id:")
        return length >= 0 and (not self.dialect.routed or message_id < 0 or length < message_id)

    def _text(self) -> str:
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            raise MessageFormatException(f"the text of the body is not UTF-8 at byte {error.start}") from error

    def _destination(self, headers: dict[str, str]) -> Destination | None:
        text = headers.get("destination", "")
        consumer = self.consumer_destination
        if not text.strip():
            return consumer
        if consumer is not None and text == self.dialect.name(consumer):
            return consumer
        kind = _KINDS.get(headers.get("destination-type", ""), Queue if consumer is None else type(consumer))
        return parse_destination(text, self.dialect, kind)

    def _reply_to(self, headers: dict[str, str]) -> Destination | None:
        text = headers.get("reply-to", "")
        return parse_destination(text, self.dialect, Queue) if text.strip() else None

    def _message_id(self, headers: dict[str, str]) -> str | None:
        """Return the id that the sender chose, which the brokers keep as a property. If there is none, return the id of
        ActiveMQ Classic (S159).

        The ``message-id`` of Artemis is not used, because it names a delivery and differs between two consumers.
        """
        for name in ("NATIVE_MESSAGE_ID", "__HDR_MESSAGE_ID"):
            if name in headers:
                return headers[name]
        return None if self.dialect.routed else headers.get("message-id")

    def _timestamp_ms(self) -> int:
        """Return the time when the message was sent, in milliseconds since 1970. Artemis writes its own time first, and
        keeps the time of the sender as a property. A property of this name that is no time does not count."""
        start = self.head.rfind(b"\ntimestamp:")
        if start < 0:
            return 0
        last = _number(raw_header(self.head[start:], b"\ntimestamp:"))
        return last or _number(raw_header(self.head, b"\ntimestamp:"))

    def _delivery_time(self, headers: dict[str, str]) -> int:
        scheduled = headers.get("_AMQ_SCHED_DELIVERY", headers.get("AMQ_SCHEDULED_TIME"))
        return _number(scheduled.encode()) if scheduled is not None else self._timestamp_ms()

    def _group_sequence(self, headers: dict[str, str]) -> int | None:
        text = _jmsx(headers, "JMSXGroupSeq") or headers.get("_AMQ_GROUP_SEQUENCE") or ""
        digits = text.removeprefix("-")
        return int(text) if digits.isdecimal() and len(digits) <= 10 else None


def _jmsx(headers: dict[str, str], name: str) -> str | None:
    """Return the property of this name, or the copy that this library adds when it sends, because some brokers drop the
    original."""
    return headers.get(name, headers.get(COPY + name))


def _number(raw: bytes | None) -> int:
    """Return the number in a header, for example a time in milliseconds. Return 0 if the text is not a number."""
    return int(raw) if raw and len(raw) < 20 and raw.isdigit() else 0


_LOADERS: dict[str, Callable[[StompInbound, dict[str, str]], Any]] = {
    "_message_id": StompInbound._message_id,
    "_correlation_id": lambda inbound, headers: headers.get("correlation-id"),
    "_timestamp": lambda inbound, headers: inbound._timestamp_ms(),
    "_destination": StompInbound._destination,
    "_reply_to": StompInbound._reply_to,
    "_persistent": lambda inbound, headers: headers.get("persistent") == "true",
    "_priority": lambda inbound, headers: inbound.priority,
    "_type": lambda inbound, headers: headers.get("type"),
    "_expiration": lambda inbound, headers: inbound.expiration_ms,
    "_delivery_time": StompInbound._delivery_time,
    "_user_id": lambda inbound, headers: _jmsx(headers, "JMSXUserID"),
    "_group_id": lambda inbound, headers: _jmsx(headers, "JMSXGroupID") or headers.get("_AMQ_GROUP_ID"),
    "_group_sequence": StompInbound._group_sequence,
    "_reply_to_group_id": lambda inbound, headers: headers.get("JMS_AMQP_REPLY_TO_GROUP_ID"),
}

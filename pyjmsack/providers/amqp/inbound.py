"""One delivered AMQP 1.0 message (3.2). Its bytes are decoded on the caller's thread, when the caller needs them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.errors import MessageFormatException
from pyjmsack.kept import LONGEST
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
from pyjmsack.providers.amqp import sections
from pyjmsack.providers.amqp.body import FEW_VALUES, is_quick, read_body
from pyjmsack.providers.amqp.identity import as_it_came, as_values
from pyjmsack.providers.amqp.ids import to_correlation_id, to_message_id
from pyjmsack.providers.amqp.wire import has_more_values
from pyjmsack.spi.envelope import DUPLICATE_ID, HEAVY, LARGE, NotOneMessageError
from pyjmsack.spi.stomp_names import properties_of, sent_over_stomp

__all__ = ["AmqpInbound"]

_CLASSES: dict[int, type[Message]] = {
    kind.wire_type: kind for kind in (Message, ObjectMessage, MapMessage, BytesMessage, StreamMessage, TextMessage)
}
_KINDS: dict[int, type[Destination]] = {0: Queue, 1: Topic, 2: TemporaryQueue, 3: TemporaryTopic}
_QUEUE = "queue://"
_JOB = "scheduledJobId"
"""The property that ActiveMQ Classic adds to a message which was delayed. Classic delivers a message that has the
property at once, so a forwarded message with another delay must not have it (S157)."""
_STOMP_CONTENT_TYPE = ("_AMQ_CONTENT_TYPE", "content-type")
"""The properties in which Artemis and Classic deliver the content type of a STOMP message."""
_PREFIXES: dict[str, type[Destination]] = {"queue://": Queue, "topic://": Topic}
_KEPT_PREFIXES: dict[str, type[Destination]] = {"temp-queue://": TemporaryQueue, "temp-topic://": TemporaryTopic}

_MOST_DAMAGED = 2
"""The number of damaged deliveries of a message with the same bytes that are given back. At the next delivery the
damage is in the broker's own copy, because a broken transfer has other bytes the next time."""

_destinations: dict[tuple[str, int | None, type[Destination] | None], Destination] = {}
_DESTINATIONS_LIMIT = 1024


class AmqpInbound(sections.Sections):
    """One delivered message: the ``Inbound`` of the core, and the content of the ``Message`` that is made from it.

    The constructor only keeps the bytes, which are decoded when they are needed. Any thread may use the object, but
    only one thread at a time.

    Args:
        payload: all sections of the message, as they arrived.
        arrival_ms: the time when the message arrived, in milliseconds since 1970. 0 means unknown. Without this time, a
            time to live in the header does not tell when the message expires.
    """

    __slots__ = (
        "__weakref__",
        "_bad_properties",
        "_fields",
        "_identity",
        "arrival_ms",
        "consumer_destination",
        "consumer_id",
        "counted",
        "generation",
        "handle",
        "kept_whole",
        "known",
        "payload",
        "queue",
        "read",
        "redeliveries",
        "sent",
        "settled",
        "source",
        "unreadable",
    )

    def __init__(self, payload: bytes, arrival_ms: int = 0) -> None:
        self.payload = payload
        self.arrival_ms = arrival_ms
        self.consumer_destination: Destination | None = None
        self.consumer_id: int = 0
        self.generation: int = 0
        self.redeliveries: int = 0
        self.counted: int = 0
        """The number of failed deliveries that this connection counted, because the broker does not count those of a
        large message, or because a message came damaged."""
        self.known: bool | None = None
        self.read: Message | BaseException | None = None
        self.settled: bool = False
        self.sent: bool = False
        self.queue: Hashable = None
        """The queue or the subscription that delivered the message, if this connection counts its large messages."""
        self.source: str | None = None
        """The address from which the message was received."""
        self.handle: Any = None
        """The engine's handle of the delivery. ``None`` after the delivery is settled."""
        self.kept_whole = False
        """True if the broker always delivers the bare message (the parts that the sender wrote) with the same bytes."""
        self.unreadable = False
        """True if an attempt to decode the message failed."""
        self._bad_properties: str | None = None
        """Why the application properties cannot be decoded, because a second attempt may take as long as the first."""
        self._identity: bytes | None = None
        self._fields: list[Any] | None = None

    @property
    def likely_failures(self) -> int:
        """The failures that this connection counted, if the message has no id, so that they may be those of another
        message that looks the same."""
        return min(self.counted, 2) if self.counted and self.quick_id() is None else 0

    @property
    def maybe_unseen(self) -> bool:
        """False, because the broker counts the deliveries (S111)."""
        return False

    @property
    def redelivery_count(self) -> int:
        """The number of earlier deliveries, as the broker counts them or this connection, whichever is more (S110). It
        is 0 if the message cannot be decoded."""
        try:
            fields = self._decode()
        except MessageFormatException:  # to_message() raises an error for the caller
            return 0
        # without an id, what this connection counted may be the failures of another message that looks the same
        counted = 0 if fields[sections.MESSAGE_ID] is None else self.counted
        return max(self._header.delivery_count, counted)

    @property
    def size(self) -> int:
        """The number of bytes of the message."""
        return len(self.payload)

    @property
    def priority(self) -> int:
        """The priority of the message, 0 to 9. It is 4 if the header cannot be decoded. Only the header is decoded
        here, because this property is read on the loop."""
        try:
            return sections.read_header(self.payload).priority
        except MessageFormatException:  # to_message() raises an error for the caller
            return 4

    @property
    def expiration_ms(self) -> int:
        """The time when the message expires, in milliseconds since 1970. 0 means that the message never expires, or
        that the time is unknown (S154).

        Raises:
            MessageFormatException: the message cannot be decoded.
        """
        expiry: int | None = self._decode()[sections.ABSOLUTE_EXPIRY_TIME]
        if expiry:
            return expiry
        ttl = self._header.ttl_ms
        return self.arrival_ms + ttl if ttl and self.arrival_ms else 0

    @property
    def persistent(self) -> bool:
        """Whether the message survives a restart of the broker. False if the header cannot be decoded. Only the header
        is decoded here, because the message may be refused for its other sections."""
        try:
            return sections.read_header(self.payload).durable
        except MessageFormatException:  # to_message() raises an error for the caller
            return False

    @property
    def delivery_count(self) -> int:
        """The number of earlier deliveries, as the header says. 0 if the header cannot be decoded."""
        try:
            return sections.read_header(self.payload).delivery_count
        except MessageFormatException:
            return 0

    def expired(self, now_ms: int) -> bool:
        """Return True if the message has expired (S156). Return False if the message cannot be decoded.

        A message that the broker moved to another queue, such as a dead letter, does not expire. ActiveMQ Classic
        leaves the time to live in such a message, and would discard the message if this client refused it as expired.
        """
        try:
            return 0 < self.expiration_ms <= now_ms and not self._was_moved()
        except MessageFormatException:  # to_message() raises an error for the caller
            return False

    def _was_moved(self) -> bool:
        # a message for a pattern, such as orders.>, counts as moved, because the pattern may cover a dead letter
        address, source = self._decode()[sections.TO] or "", self.source or ""
        return address != source and address.startswith(_QUEUE) and source.startswith(_QUEUE)

    def to_message(self, consumer_destination: Destination | None = None) -> Message:
        """Return a new message of the right JMS class (S165, S166, S169).

        This method decodes everything except the application properties, because no caller must get a message whose
        body cannot be decoded.

        Args:
            consumer_destination: the destination of the consumer. It is used if the message does not say to which
                destination, or to which kind of destination, it was sent.

        Raises:
            MessageFormatException: these bytes are no AMQP 1.0 message. The text names the section and the position.
        """
        self.consumer_destination = consumer_destination
        try:
            fields = self._fields or self._decode()
            wire_type, body = read_body(
                self.payload, self._body_code, self._body, self._annotations.wire_type, self._content_type(fields)
            )
        except MessageFormatException as error:
            self.unreadable = True
            raise self.told(error) from None
        kind = _CLASSES[wire_type]
        message = kind.__new__(kind)
        message._lazy = self
        message._body = body
        message._redelivery_count = self._header.delivery_count
        return message

    def told(self, error: MessageFormatException) -> MessageFormatException:
        """Return the error that the core gets for this error. If Artemis keeps sending a message with the same damage,
        it counts as one that cannot be decoded. Artemis would close the connection at its limit of deliveries if it
        cannot copy the message to the dead-letter queue.
        """
        if isinstance(error, NotOneMessageError) and self.counted >= _MOST_DAMAGED:
            return MessageFormatException(str(error))
        return error

    def _decode(self) -> list[Any]:
        """Return the 13 fields of the properties section (3.2.4). The first call also finds all sections."""
        if self._fields is None:
            self._scan(self.payload)
            self._fields = sections.read_properties(self.payload, self._properties)
        return self._fields

    def _content_type(self, fields: list[Any]) -> str | None:
        """Return the content type. Brokers deliver the content type of a STOMP message as an application property."""
        found: str | None = fields[sections.CONTENT_TYPE]
        span = self._application_properties
        if found is None and span is not None and self.payload.find(portable.PREFIX, *span) >= 0:
            properties = sections.read_application_properties(self.payload, span)
            kept = (properties.get(name) for name in _STOMP_CONTENT_TYPE)
            found = next((value for value in kept if isinstance(value, str)), None)
        return found

    @property
    def correlation_id(self) -> str | None:
        """The correlation id of the message. The body is not decoded for this.

        Raises:
            MessageFormatException: the message cannot be decoded.
        """
        found: str | None = self.load_header("_correlation_id")
        return found

    @property
    def heavy(self) -> bool:
        """Whether the next call of :meth:`identity` takes long. Later calls are fast."""
        # values are decoded for the identity, which takes much longer than a digest
        return self._identity is None and len(self.payload) > (HEAVY if self.kept_whole else LARGE)

    @property
    def quick(self) -> bool:
        """Whether the body is one text or one run of bytes, which no codec of the program has to read, or has few
        values."""
        payload = self.payload
        try:
            fields = self._fields or self._decode()
            span = self._application_properties
            # the content type may be one of the properties, so they are read with the body
            if span is not None and (span[1] - span[0] > LARGE or has_more_values(FEW_VALUES, payload, *span)):
                return False
            content_type = self._content_type(fields)
            return is_quick(payload, self._body_code, self._body, self._annotations.wire_type, content_type)
        except MessageFormatException:  # to_message() raises an error for the caller
            return False

    def quick_id(self) -> Hashable:
        """Return the id that the sender chose. ``None`` if there is none, or the message cannot be decoded."""
        try:
            found: Hashable = (self._fields or self._decode())[sections.MESSAGE_ID]
        except MessageFormatException:  # to_message() raises an error for the caller
            return None
        return found

    def identity(self) -> bytes | None:
        """Return the identity of the message, or ``None`` if the message has no id (S105).

        The identity contains everything that the sender wrote, and nothing that the broker changes at a redelivery.
        """
        if self._identity is None:
            try:
                fields = self._fields or self._decode()
            except MessageFormatException:  # to_message() raises an error for the caller
                return None
            if fields[sections.MESSAGE_ID] is None:
                return None
            payload = self.payload
            self._identity = as_it_came(self, payload) if self.kept_whole else as_values(self, payload, fields)
        return self._identity

    def stored_id(self) -> None:
        """Return ``None``, because over AMQP a broker does not send the number under which it stores a message."""

    @property
    def lossy(self) -> bool:
        """False, because AMQP carries every kind of message."""
        return False

    def original_destination(self) -> None:
        """Return ``None``, because over AMQP no header contains the original destination. Artemis adds an annotation
        instead, and Classic keeps the address."""

    def load_header(self, slot: str) -> Any:
        """Return the value of one header field of ``Message``. ``slot`` is the name of its attribute."""
        return _LOADERS[slot](self, self._fields or self._decode())

    def load_headers(self, message: Headers) -> None:
        """Set all header fields of a message."""
        decoded = self._decode()
        for slot, load in _LOADERS.items():
            setattr(message, slot, load(self, decoded))

    def load_properties(self) -> dict[str, Any]:
        """Return the application properties. Properties with names that JMS does not allow can be read too (S160).

        The duplicate mark is left out. If the caller forwards the message, Artemis would otherwise take the forwarded
        message for a second copy and drop it (S106). The origin of a dead letter is added from the annotations. If the
        message was sent over STOMP, the properties that the broker made from STOMP headers are left out.

        Raises:
            MessageFormatException: the section of the properties cannot be decoded.
        """
        if self._bad_properties is not None:
            raise MessageFormatException(self._bad_properties)
        try:
            found = sections.read_application_properties(self.payload, self._application_properties)
        except MessageFormatException as error:
            self._bad_properties = str(error)
            raise
        found.pop(DUPLICATE_ID, None)
        if not self.kept_whole:
            found.pop(_JOB, None)
        annotations = self._annotations
        # Classic notes the kind of destination in a message that it converts, but no JMS class; JMS clients note both
        by_classic = annotations.to_kind is not None and annotations.wire_type is None
        if sent_over_stomp(found, self._decode()[sections.TO], by_classic=by_classic):
            found = properties_of(found)
        found.update(annotations.origin)
        return found

    def to_sent(self, destination: Destination) -> tuple[Message, int]:
        """Return two values: the message as the sender gave it to the encoder, with its duplicate mark, and its time to
        live in milliseconds."""
        message = self.to_message(destination)
        message._properties = sections.read_application_properties(self.payload, self._application_properties)
        return message, self._header.ttl_ms

    def _destination(self, fields: list[Any]) -> Destination | None:
        address: str | None = fields[sections.TO]
        if address is None or not _has_name(address):
            return self.consumer_destination
        return _to_destination(address, self._annotations.to_kind, self.consumer_destination)

    def _reply_to(self, fields: list[Any]) -> Destination | None:
        address: str | None = fields[sections.REPLY_TO]
        if address is None or not _has_name(address):
            return None
        return _to_destination(address, self._annotations.reply_kind, self.consumer_destination)

    def _delivery_time(self, fields: list[Any]) -> int:
        return self._annotations.delivery_time or fields[sections.CREATION_TIME] or 0


def _to_destination(address: str, mark: int | None, consumer: Destination | None) -> Destination:
    if len(address) > LONGEST:
        return _make_destination(address, mark, consumer)
    key = (address, mark, None if consumer is None else type(consumer))
    known = _destinations.get(key)
    if known is None:
        if len(_destinations) >= _DESTINATIONS_LIMIT:
            _destinations.clear()
        known = _destinations[key] = _make_destination(address, mark, consumer)
    return known


def _has_name(address: str) -> bool:
    """Return True if an address contains more than spaces."""
    return bool(address.strip())


def _make_destination(address: str, mark: int | None, consumer: Destination | None) -> Destination:
    """Return the destination for an address.

    The kind of the destination, such as queue or topic, comes from the annotation ``mark``. Without the annotation, the
    kind comes from a prefix of ActiveMQ Classic, or from the destination of the consumer.
    """
    kind = None if mark is None else _KINDS.get(mark)
    for prefix, prefixed in _PREFIXES.items():
        if address.startswith(prefix) and _has_name(address[len(prefix) :]):
            return (kind or prefixed)._literal(address[len(prefix) :])
    for prefix, prefixed in _KEPT_PREFIXES.items():
        if address.startswith(prefix):
            return (kind or prefixed)._literal(address)
    return (kind or (Queue if consumer is None else type(consumer)))._literal(address)


def _user_id(inbound: AmqpInbound, fields: list[Any]) -> str | None:
    raw: bytes | None = fields[sections.USER_ID]
    return raw.decode("utf-8", "replace") if raw else None


def _group_sequence(inbound: AmqpInbound, fields: list[Any]) -> int | None:
    number: int | None = fields[sections.GROUP_SEQUENCE]
    if number is None:
        return None
    return int(number) if number < 1 << 31 else int(number) - (1 << 32)


_LOADERS: dict[str, Callable[[AmqpInbound, list[Any]], Any]] = {
    "_message_id": lambda inbound, fields: to_message_id(fields[sections.MESSAGE_ID]),
    "_correlation_id": lambda inbound, fields: to_correlation_id(fields[sections.CORRELATION_ID]),
    "_timestamp": lambda inbound, fields: fields[sections.CREATION_TIME] or 0,
    "_destination": AmqpInbound._destination,
    "_reply_to": AmqpInbound._reply_to,
    "_persistent": lambda inbound, fields: inbound._header.durable,
    "_priority": lambda inbound, fields: inbound._header.priority,
    "_type": lambda inbound, fields: fields[sections.SUBJECT],
    "_expiration": lambda inbound, fields: inbound.expiration_ms,
    "_delivery_time": AmqpInbound._delivery_time,
    "_user_id": _user_id,
    "_group_id": lambda inbound, fields: fields[sections.GROUP_ID],
    "_group_sequence": _group_sequence,
    "_reply_to_group_id": lambda inbound, fields: fields[sections.REPLY_TO_GROUP_ID],
}

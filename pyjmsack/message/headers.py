"""The header fields of a message and the slots that hold them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Protocol

from pyjmsack.destination import Destination
from pyjmsack.errors import MessageFormatException, MessageNotWriteableException
from pyjmsack.java_options.names import no_such_name
from pyjmsack.types import DeliveryMode, Outcome

if TYPE_CHECKING:
    from pyjmsack.message.base import Message

__all__ = ["Acknowledger", "Headers", "LazyContent"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)
_LATEST = datetime.max.replace(tzinfo=timezone.utc)

RECEIVED_DEFAULTS: dict[str, Any] = {
    "_ack": None,
    "_ack_type": None,
    "_delivery": None,
    "_locked": False,
    "_validate_names": True,
    "_properties_readonly": True,
    "_body_readonly": True,
    "_amqp_ttl": None,
    "_away": None,
    "_buffer": None,
    "_part": None,
    "_position": 0,
    "_ready": None,
}
"""The values of the slots that a received message does not fill from the bytes of the wire.

The last five slots belong to ``BytesMessage``, ``StreamMessage`` and ``ObjectMessage``.
"""


class LazyContent(Protocol):
    """The source of the headers and properties of a received message. A value is decoded when the caller reads it for
    the first time."""

    def load_header(self, slot: str) -> Any:
        """Return the value for one slot of ``Headers``, such as ``_message_id``."""
        ...

    def load_headers(self, message: Headers) -> None:
        """Fill all header slots of a message at once."""
        ...

    def load_properties(self) -> dict[str, Any]:
        """Return the application properties in a new dict. Properties with names that are not allowed stay readable
        (S160)."""
        ...


class Acknowledger(Protocol):
    """Settles a received message. The session puts it into the slot ``_ack``."""

    allows_outcome: bool
    """Whether the acknowledge mode of the session lets one message have its own outcome (S34, S38)."""

    def acknowledge(self, message: Message) -> Any:
        """Acknowledge by the rules of the session's mode. The outcome in ``message._ack_type`` is checked and sent
        (S38)."""
        ...

    def settle(self, message: Message, outcome: Outcome) -> Any:
        """Tell the broker the outcome of this one message."""
        ...


class Headers:
    """The header fields of a message. The core and the codecs read and write the slots directly. The codecs are
    ``providers/amqp/encode.py`` and ``inbound.py``, and ``providers/stomp/encode.py`` and ``inbound.py``.

    ========================= ========================================== ============================ ==================
    slot                      holds                                      AMQP 1.0 3.2                 STOMP header
    ========================= ========================================== ============================ ==================
    ``_message_id``           ``str | None``, with ``ID:`` prefix (S159) message-id                   NATIVE_MESSAGE_ID
    ``_correlation_id``       ``str | None``                             correlation-id               correlation-id
    ``_timestamp``            ``int`` ms since 1970; 0: no time stamp    creation-time                timestamp
    ``_destination``          ``Destination | None``                     to, x-opt-jms-dest           destination
    ``_reply_to``             ``Destination | None``                     reply-to, x-opt-jms-reply-to reply-to
    ``_persistent``           ``bool``                                   header durable               persistent
    ``_priority``             ``int`` 0-9                                header priority              priority
    ``_type``                 ``str | None``, JMSType                    subject                      type
    ``_expiration``           ``int`` ms since 1970; 0: no expiration    absolute-expiry-time         expires
    ``_delivery_time``        ``int`` ms since 1970; 0: no delay         x-opt-delivery-time          AMQ_SCHEDULED_TIME
    ``_redelivery_count``     ``int``, deliveries before this one (S110) header delivery-count        redelivered
    ``_user_id``              ``str | None``, JMSXUserID                 user-id                      JMSXUserID
    ``_group_id``             ``str | None``, JMSXGroupID                group-id                     JMSXGroupID
    ``_group_sequence``       ``int | None``, JMSXGroupSeq               group-sequence               JMSXGroupSeq
    ``_reply_to_group_id``    ``str | None``, JMS_AMQP_REPLY_TO_GROUP_ID reply-to-group-id            (the JMS name)
    ``_amqp_ttl``             ``int | None`` ms, JMS_AMQP_TTL (S154)     header ttl
    ``_properties``           ``dict | None``, application properties
    ``_body``                 text, bytes or decoded value
    ``_lazy``                 ``LazyContent``; ``None`` if the message was not received
    ``_ack``, ``_ack_type``   ``Acknowledger | None`` and JMS_AMQP_ACK_TYPE
    ``_delivery``             the delivery of the provider, for ``_ack``
    ``_locked``               whether all is read-only until the completion listener was called (S73)
    ``_validate_names``       whether property names must be Java identifiers (S160)
    ``_properties_readonly``  whether the properties are read-only until ``clear_properties()`` (S163)
    ``_body_readonly``        whether the body is read-only until ``clear_body()`` (S163)
    ========================= ========================================== ============================ ==================

    A received message starts with empty slots. The first read of a slot fills the slot, with the value from the wire or
    with a default. A slot that was written before keeps its value, because only an empty slot is filled.
    """

    __slots__ = (
        "__weakref__",
        "_ack",
        "_ack_type",
        "_amqp_ttl",
        "_body",
        "_body_readonly",
        "_correlation_id",
        "_delivery",
        "_delivery_time",
        "_destination",
        "_expiration",
        "_group_id",
        "_group_sequence",
        "_lazy",
        "_locked",
        "_message_id",
        "_persistent",
        "_priority",
        "_properties",
        "_properties_readonly",
        "_redelivery_count",
        "_reply_to",
        "_reply_to_group_id",
        "_timestamp",
        "_type",
        "_user_id",
        "_validate_names",
    )

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._correlation_id: str | None = None
        self._timestamp: int = 0
        self._destination: Destination | None = None
        self._reply_to: Destination | None = None
        self._persistent: bool = True
        self._priority: int = 4
        self._type: str | None = None
        self._expiration: int = 0
        self._delivery_time: int = 0
        self._redelivery_count: int = 0
        self._user_id: str | None = None
        self._group_id: str | None = None
        self._group_sequence: int | None = None
        self._reply_to_group_id: str | None = None
        self._amqp_ttl: int | None = None
        self._properties: dict[str, Any] | None = None
        self._body: Any = None
        self._lazy: LazyContent | None = None
        self._ack: Acknowledger | None = None
        self._delivery: Any = None
        self._ack_type: int | None = None
        self._locked: bool = False
        self._validate_names: bool = True
        self._properties_readonly: bool = False
        self._body_readonly: bool = False

    if not TYPE_CHECKING:  # hidden from type checkers, because they must keep refusing misspelt attributes

        def __getattr__(self, name: str) -> Any:
            # Python calls this only for a slot that is still empty
            if name in RECEIVED_DEFAULTS:
                value = RECEIVED_DEFAULTS[name]
            elif name == "_properties":
                value = self._lazy.load_properties()
            elif name in _LOADABLE:
                value = self._lazy.load_header(name)
            else:
                text = no_such_name(type(self), name)
                if name in _BODIES and text.endswith(repr(name)):
                    text = f"{text}: the body of this message is {self._body_is}"
                raise AttributeError(text, name=name, obj=self)
            setattr(self, name, value)
            return value

    def _load_headers(self) -> None:
        """Fill all slots of a received message at once, because filling them one by one costs five times as much.

        Every setter reads ``_locked`` before it writes, and this read gives ``_locked`` a value. So if ``_locked`` is
        still empty, no setter was called yet, and this method overwrites nothing.
        """
        if self._lazy is not None and _is_empty(self, "_locked"):
            self._locked = False
            self._amqp_ttl = None
            try:
                self._lazy.load_headers(self)
            except MessageFormatException:  # the caller gets the error when it reads the slot that cannot be decoded
                return

    def _check_unlocked(self) -> None:
        if self._locked:
            raise MessageNotWriteableException(
                "the message is being sent with a completion listener; it is read-only until the listener was called"
            )

    def _set_text(self, slot: str, name: str, value: object) -> None:
        self._check_unlocked()
        if value is not None and not isinstance(value, str):
            raise MessageFormatException(f"{name}: expected str or None, not {type(value).__name__}")
        setattr(self, slot, value)

    def _set_time(self, slot: str, name: str, value: object) -> None:
        self._check_unlocked()
        if value is not None and not (isinstance(value, datetime) and value.tzinfo is not None):
            raise MessageFormatException(f"{name}: expected a datetime with a time zone, or None, not {value!r}")
        setattr(self, slot, 0 if value is None else (value - _EPOCH) // _MILLISECOND)

    def _set_destination(self, slot: str, name: str, value: object) -> None:
        self._check_unlocked()
        if value is not None and not isinstance(value, Destination):
            raise MessageFormatException(f"{name}: expected a Destination or None, not {type(value).__name__}")
        setattr(self, slot, value)

    @property
    def message_id(self) -> str | None:
        """JMSMessageID, such as ``ID:...``. The send sets the id (S71). ``None`` if message ids are disabled (S158)."""
        return self._message_id

    @message_id.setter
    def message_id(self, value: str | None) -> None:
        self._set_text("_message_id", "message_id", value)

    @property
    def correlation_id(self) -> str | None:
        """JMSCorrelationID: a message id (``ID:...``), or any text that the application chose."""
        return self._correlation_id

    @correlation_id.setter
    def correlation_id(self, value: str | None) -> None:
        self._set_text("_correlation_id", "correlation_id", value)

    @property
    def type(self) -> str | None:
        """JMSType: the kind of the message, as a text that the application chose. ``None`` if there is no such text."""
        return self._type

    @type.setter
    def type(self, value: str | None) -> None:
        self._set_text("_type", "type", value)

    @property
    def timestamp(self) -> datetime | None:
        """JMSTimestamp in UTC: the time at which the message was given to ``send``. ``None`` if time stamps are
        disabled (S158)."""
        return as_datetime(self._timestamp)

    @timestamp.setter
    def timestamp(self, value: datetime | None) -> None:
        self._set_time("_timestamp", "timestamp", value)

    @property
    def expiration(self) -> datetime | None:
        """JMSExpiration in UTC: the time after which nobody gets the message. ``None`` if the message does not expire
        (S154)."""
        return as_datetime(self._expiration)

    @expiration.setter
    def expiration(self, value: datetime | None) -> None:
        self._set_time("_expiration", "expiration", value)

    @property
    def delivery_time(self) -> datetime | None:
        """JMSDeliveryTime in UTC: the broker does not deliver the message before this time. ``None`` if there is no
        such time (S157)."""
        return as_datetime(self._delivery_time)

    @delivery_time.setter
    def delivery_time(self, value: datetime | None) -> None:
        self._set_time("_delivery_time", "delivery_time", value)

    @property
    def destination(self) -> Destination | None:
        """JMSDestination: the destination to which the message was sent."""
        return self._destination

    @destination.setter
    def destination(self, value: Destination | None) -> None:
        self._set_destination("_destination", "destination", value)

    @property
    def reply_to(self) -> Destination | None:
        """JMSReplyTo: the destination for the reply."""
        return self._reply_to

    @reply_to.setter
    def reply_to(self, value: Destination | None) -> None:
        self._set_destination("_reply_to", "reply_to", value)

    @property
    def delivery_mode(self) -> DeliveryMode:
        """JMSDeliveryMode: whether the broker keeps the message on its disk. Each send overwrites this value with the
        argument of the send, or, without an argument, with the value of the producer (S153).
        """
        return DeliveryMode.PERSISTENT if self._persistent else DeliveryMode.NON_PERSISTENT

    @delivery_mode.setter
    def delivery_mode(self, value: int) -> None:
        self._check_unlocked()
        if value not in (1, 2):
            raise MessageFormatException(f"delivery_mode: expected 1 (NON_PERSISTENT) or 2 (PERSISTENT), not {value!r}")
        self._persistent = value == DeliveryMode.PERSISTENT

    @property
    def priority(self) -> int:
        """JMSPriority, from 0 (lowest) to 9 (highest). Each send overwrites this value with the argument of the send,
        or, without an argument, with the value of the producer (S153).
        """
        return self._priority

    @priority.setter
    def priority(self, value: int) -> None:
        self._check_unlocked()
        if not isinstance(value, int) or not 0 <= value <= 9:
            raise MessageFormatException(f"priority: expected an int from 0 to 9, not {value!r}")
        self._priority = int(value)

    @property
    def redelivered(self) -> bool:
        """JMSRedelivered: whether the message was delivered before (S110)."""
        return self._redelivery_count > 0

    @redelivered.setter
    def redelivered(self, value: bool) -> None:
        self._check_unlocked()
        self._redelivery_count = max(self._redelivery_count, 1) if value else 0

    @property
    def delivery_count(self) -> int:
        """JMSXDeliveryCount: the number of deliveries of this message, including this delivery. It is 1 at the first
        delivery (S110)."""
        return self._redelivery_count + 1


def _is_empty(message: Headers, slot: str) -> bool:
    try:
        object.__getattribute__(message, slot)
    except AttributeError:
        return True
    return False


_BODIES = frozenset(("text", "data", "object", "getText", "getObject", "get_text", "get_data"))
"""Names with which a program asks for the body of one class of messages."""
_LOADABLE = frozenset(Headers.__slots__) - {"__weakref__", "_lazy"}


def as_datetime(milliseconds: int) -> datetime | None:
    """Return the time in UTC for a number of milliseconds since 1970.

    The result is ``None`` for 0. For a number that is too large for a ``datetime``, the result is the largest
    ``datetime``.
    """
    if milliseconds == 0:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return _LATEST

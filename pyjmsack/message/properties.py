"""The properties of a message, as a mapping with the rules of JMS, and with the typed getters and setters of JMS."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pyjmsack.errors import IllegalStateException, MessageFormatException, MessageNotWriteableException
from pyjmsack.message.convert import check_name, check_value, convert, sized
from pyjmsack.types import Value

if TYPE_CHECKING:
    from pyjmsack.message.base import Message

__all__ = ["Properties", "TypedProperties"]

DELIVERY_COUNT = "JMSXDeliveryCount"
ACK_TYPE = "JMS_AMQP_ACK_TYPE"
TYPED_ENCODING = "JMS_AMQP_TYPED_ENCODING"
TTL = "JMS_AMQP_TTL"
_TTL_LIMIT = 1 << 32


class _Reserved(NamedTuple):
    slot: str
    kind: str


RESERVED = {
    "JMSXGroupID": _Reserved("_group_id", "string"),
    "JMSXGroupSeq": _Reserved("_group_sequence", "int"),
    "JMSXUserID": _Reserved("_user_id", "string"),
    "JMS_AMQP_REPLY_TO_GROUP_ID": _Reserved("_reply_to_group_id", "string"),
    TTL: _Reserved("_amqp_ttl", "long"),
    ACK_TYPE: _Reserved("_ack_type", "int"),
}
"""The names of properties whose values are in a slot of the message, and not among the application properties (S164).
"""

_UNLISTED = {ACK_TYPE, DELIVERY_COUNT, TYPED_ENCODING}
_ORIGIN = {"_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_QUEUE", "_AMQ_ORIG_MESSAGE_ID", "_AMQ_ACTUAL_EXPIRY"}
"""The properties that Artemis adds to a dead letter. Selectors of Artemis use the same names."""
_NOT_APPLICATION = _UNLISTED | set(RESERVED)
_NOT_LISTED = _NOT_APPLICATION | _ORIGIN

HEADER_NAMES = {
    "JMSCorrelationID": "correlation_id",
    "JMSDeliveryMode": "delivery_mode",
    "JMSDeliveryTime": "delivery_time",
    "JMSDestination": "destination",
    "JMSExpiration": "expiration",
    "JMSMessageID": "message_id",
    "JMSPriority": "priority",
    "JMSRedelivered": "redelivered",
    "JMSReplyTo": "reply_to",
    "JMSTimestamp": "timestamp",
    "JMSType": "type",
}


class Properties(MutableMapping[str, Value]):
    """The properties of one message.

    Some properties can be read by name, but are not listed, because they do not belong to the application. These are
    ``JMSXDeliveryCount``, ``JMS_AMQP_ACK_TYPE``, ``JMS_AMQP_TYPED_ENCODING``, and the notes of Artemis on a dead letter
    (``_AMQ_ORIG_ADDRESS``, ``_AMQ_ORIG_QUEUE``, ``_AMQ_ORIG_MESSAGE_ID``, ``_AMQ_ACTUAL_EXPIRY``). So
    ``new.properties.update(old.properties)`` copies only properties that may be copied.

    Args:
        message: the message. A write to the mapping changes the message.

    Raises (on writing):
        MessageFormatException: the name or the value is not allowed (S160, S161).
        MessageNotWriteableException: the message was received, or is being sent with a completion listener (S163, S73).
        IllegalStateException: the name is ``JMS_AMQP_ACK_TYPE``, and the session's mode allows no outcome for a single
            message (S38).
    """

    __slots__ = ("_message",)

    def __init__(self, message: Message) -> None:
        self._message = message

    def __getitem__(self, name: str) -> Value:
        if name in _NOT_APPLICATION:
            value: Value = self._reserved_value(name)
            if value is None:
                raise KeyError(name)
            return value
        held: dict[str, Value] | None = self._message._properties
        if held is None:
            raise KeyError(name)
        return held[name]

    def _reserved_value(self, name: str) -> Any:
        if name == DELIVERY_COUNT:
            return self._message.delivery_count
        if name == TYPED_ENCODING:
            return self._message._typed_encoding or None
        return getattr(self._message, RESERVED[name].slot)

    def __setitem__(self, name: str, value: Value) -> None:
        message = self._message
        check_name(name, message._validate_names)
        if name != ACK_TYPE:
            self._check_writeable(name)
        if name in _NOT_APPLICATION or name in HEADER_NAMES:
            self._set_reserved(name, value)
            return
        value = check_value(name, value)
        if message._properties is None:
            message._properties = {}
        message._properties[name] = value

    def _check_writeable(self, name: str) -> None:
        message = self._message
        message._check_unlocked()
        if message._properties_readonly:
            raise MessageNotWriteableException(
                f"property {name!r}: the properties of a received message are read-only; clear_properties() removes"
                " them and makes them writeable"
            )

    def _set_reserved(self, name: str, value: Any) -> None:
        if name == DELIVERY_COUNT:
            raise MessageNotWriteableException(f"property {name!r} cannot be set, because the library sets it")
        if name == TYPED_ENCODING:
            self._message._set_typed_encoding(convert(name, check_value(name, value), "boolean"))
            return
        if name in HEADER_NAMES:
            raise MessageFormatException(f"{name!r} is a header field; set message.{HEADER_NAMES[name]} instead")
        if name == ACK_TYPE:
            self._check_outcome_allowed()
        slot, kind = RESERVED[name]
        plain = None if value is None else convert(name, check_value(name, value), kind)
        if name == TTL and plain is not None and not 0 <= plain < _TTL_LIMIT:
            raise MessageFormatException(f"property {name!r}: expected milliseconds from 0 to 2**32 - 1, not {plain}")
        setattr(self._message, slot, plain)

    def _check_outcome_allowed(self) -> None:
        ack = self._message._ack
        if ack is None or not ack.allows_outcome:
            raise IllegalStateException(
                f"property {ACK_TYPE!r} needs a message that was received in a session with CLIENT_ACKNOWLEDGE or"
                " INDIVIDUAL_ACKNOWLEDGE"
            )

    def __delitem__(self, name: str) -> None:
        if name != ACK_TYPE:
            self._check_writeable(name)
        if name not in self:
            raise KeyError(name)
        if name in _NOT_APPLICATION:
            self._set_reserved(name, None)
        elif self._message._properties is not None:
            del self._message._properties[name]

    def copy(self) -> dict[str, Value]:
        """Return the listed properties in a new ``dict``. This is faster than ``dict(properties)``."""
        self._message._load_headers()
        held: dict[str, Value] = self._message._properties or {}
        found = {name: held[name] for name in held if name not in _NOT_LISTED}
        for name, (slot, _) in RESERVED.items():
            if name not in _UNLISTED and (value := getattr(self._message, slot)) is not None:
                found[name] = value
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.copy())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Properties({dict(self)!r})"


class TypedProperties:
    """The property methods of the JMS interface, with the conversions of S162.

    A getter treats a missing property like a property with the value ``None``. ``get_boolean_property`` then returns
    ``False``. ``get_string_property`` and ``get_object_property`` return ``None``. The other getters raise
    ``MessageFormatException``. They also raise this error for a conversion that JMS does not allow.
    """

    __slots__ = ()

    @property
    def properties(self) -> Properties:
        """The properties as a mapping. A write to the mapping changes the message."""
        return Properties(self)  # type: ignore[arg-type]  # mixed into Message only

    def _convert(self, name: str, wanted: str) -> Any:
        return convert(name, self.properties.get(name), wanted)

    def property_exists(self, name: str) -> bool:
        """Return whether the message has the property. A property with the value ``None`` counts too.

        Args:
            name: the name of the property.
        """
        return name in self.properties

    def get_boolean_property(self, name: str) -> bool:
        """Return the property as a boolean (S162).

        Only a boolean and a string can be read as a boolean. The string ``true``, in any letter case, gives ``True``.
        Each other string gives ``False``.

        Args:
            name: the name of the property. If the property is missing, the result is ``False``.

        Raises:
            MessageFormatException: the property has another type.
        """
        return self._convert(name, "boolean")

    def get_byte_property(self, name: str) -> int:
        """Return the property as a byte (S162).

        Only a byte, or a string with a number, can be read as a byte.

        Args:
            name: the name of the property.

        Raises:
            MessageFormatException: the property is missing or ``None``, has another type, or is a string that is not a
                number of this type.
        """
        return self._convert(name, "byte")

    def get_short_property(self, name: str) -> int:
        """Return the property as a short (S162).

        Only a byte, a short, or a string with a number can be read as a short.

        Args:
            name: the name of the property.

        Raises:
            MessageFormatException: the property is missing or ``None``, has another type, or is a string that is not a
                number of this type.
        """
        return self._convert(name, "short")

    def get_int_property(self, name: str) -> int:
        """Return the property as an int (S162).

        Only a byte, a short, an int, or a string with a number can be read as an int.

        Args:
            name: the name of the property.

        Raises:
            MessageFormatException: the property is missing or ``None``, has another type, or is a string that is not a
                number of this type.
        """
        return self._convert(name, "int")

    def get_long_property(self, name: str) -> int:
        """Return the property as a long (S162).

        Any whole number, or a string with a number, can be read as a long.

        Args:
            name: the name of the property.

        Raises:
            MessageFormatException: the property is missing or ``None``, has another type, or is a string that is not a
                number of this type.
        """
        return self._convert(name, "long")

    def get_float_property(self, name: str) -> float:
        """Return the property as a float (S162).

        Only a float (32 bits), or a string with a number, can be read as a float.

        Args:
            name: the name of the property.

        Raises:
            MessageFormatException: the property is missing or ``None``, has another type, or is a string that is not a
                number of this type.
        """
        return self._convert(name, "float")

    def get_double_property(self, name: str) -> float:
        """Return the property as a double (S162).

        Only a float, a double, or a string with a number can be read as a double.

        Args:
            name: the name of the property.

        Raises:
            MessageFormatException: the property is missing or ``None``, has another type, or is a string that is not a
                number of this type.
        """
        return self._convert(name, "double")

    def get_string_property(self, name: str) -> str | None:
        """Return the property as text (S162). The property may have any type.

        Args:
            name: the name of the property.

        Returns:
            The text. A boolean gives ``true`` or ``false``. ``None`` if the property is missing or ``None``.
        """
        return self._convert(name, "string")

    def get_object_property(self, name: str) -> Value:
        """Return the property as it was set, without a conversion.

        Args:
            name: the name of the property.

        Returns:
            The value. ``None`` if the property is missing.
        """
        return self.properties.get(name)

    def set_boolean_property(self, name: str, value: bool) -> None:
        """Set a property to a boolean.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: ``True`` or ``False``.

        Raises:
            MessageFormatException: the name is not allowed (S160), or the value is not a ``bool``.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self.properties[name] = sized(name, "boolean", value)

    def set_byte_property(self, name: str, value: int) -> None:
        """Set a property to a byte.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: a whole number of 8 bits, -128 to 127.

        Raises:
            MessageFormatException: the name is not allowed (S160), or the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self.properties[name] = sized(name, "byte", value)

    def set_short_property(self, name: str, value: int) -> None:
        """Set a property to a short.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: a whole number of 16 bits, -32,768 to 32,767.

        Raises:
            MessageFormatException: the name is not allowed (S160), or the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self.properties[name] = sized(name, "short", value)

    def set_int_property(self, name: str, value: int) -> None:
        """Set a property to an int.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: a whole number of 32 bits, -2,147,483,648 to 2,147,483,647.

        Raises:
            MessageFormatException: the name is not allowed (S160), or the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self.properties[name] = sized(name, "int", value)

    def set_long_property(self, name: str, value: int) -> None:
        """Set a property to a long.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: a whole number of 64 bits, -2**63 to 2**63 - 1.

        Raises:
            MessageFormatException: the name is not allowed (S160), or the value is not a whole number, or does not fit.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self.properties[name] = sized(name, "long", value)

    def set_float_property(self, name: str, value: float) -> None:
        """Set a property to a float.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: a number, which is rounded to 32 bits.

        Raises:
            MessageFormatException: the name is not allowed (S160), or the value is not a number, or is too large for 32
                bits.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self.properties[name] = sized(name, "float", value)

    def set_double_property(self, name: str, value: float) -> None:
        """Set a property to a double.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: a number of 64 bits.

        Raises:
            MessageFormatException: the name is not allowed (S160), or the value is not a number.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self.properties[name] = sized(name, "double", value)

    def set_string_property(self, name: str, value: str | None) -> None:
        """Set a property to a string.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: a text, or ``None``.

        Raises:
            MessageFormatException: the name is not allowed (S160), or the value is neither a ``str`` nor ``None``.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
        """
        self.properties[name] = sized(name, "string", value)

    def set_object_property(self, name: str, value: Value) -> None:
        """Set a property, and keep the type of the value. This is the same as ``properties[name] = value``.

        Args:
            name: the name, which must be a Java identifier and not a reserved word of selectors.
            value: a ``bool``, ``int``, ``float``, ``str``, ``None`` or a wrapper such as ``Short`` (S161). An ``int``
                becomes an int of Java if it fits in 32 bits, and otherwise a long. A ``float`` becomes a double. A
                wrapper keeps its own type.

        Raises:
            MessageFormatException: the name is not allowed (S160), or JMS does not allow the type of the value.
            MessageNotWriteableException: the message was received (S163), or is sent with a completion listener (S73).
            IllegalStateException: the name is ``JMS_AMQP_ACK_TYPE``, and the session's mode allows no outcome for a
                single message (S38).
        """
        self.properties[name] = value

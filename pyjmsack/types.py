"""Enumerations, such as acknowledge modes and outcomes, and wrappers for values whose Java type matters."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any

from pyjmsack.errors import JMSException, MessageFormatException

__all__ = [
    "AckMode",
    "AckType",
    "Byte",
    "Char",
    "ConnectionState",
    "DeliveryMode",
    "Double",
    "Float",
    "Int",
    "Long",
    "Outcome",
    "PossiblyMillisecondsWarning",
    "Short",
    "Value",
]


class ConnectionState(str, Enum):
    """The state of a connection. A state equals its text, so ``connection.state == "connected"`` may be true."""

    CONNECTING = "connecting"
    """The connection is being opened, or opened again under another client id."""
    CONNECTED = "connected"
    INTERRUPTED = "interrupted"
    """The connection is lost, and failover looks for a broker."""
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"
    """The connection is lost for good. It can only be closed."""

    __str__ = str.__str__


class PossiblyMillisecondsWarning(UserWarning):
    """A time in seconds is so large that it may be meant in milliseconds, as in Java."""


class AckMode(IntEnum):
    """The acknowledge mode of a session (rule S1). Mode 4 behaves like mode 101, and mode 100 like mode 257.
    ``core/unsettled.py`` acknowledges at the moment that the mode asks for, ``core/listening.py`` acknowledges after a
    listener, and ``core/transaction.py`` serves mode 0."""

    SESSION_TRANSACTED = 0
    AUTO_ACKNOWLEDGE = 1
    CLIENT_ACKNOWLEDGE = 2
    DUPS_OK_ACKNOWLEDGE = 3
    ACTIVEMQ_INDIVIDUAL_ACKNOWLEDGE = 4
    ARTEMIS_PRE_ACKNOWLEDGE = 100
    INDIVIDUAL_ACKNOWLEDGE = 101
    NO_ACKNOWLEDGE = 257

    @classmethod
    def resolve(cls, mode: int, transacted: bool | None = None) -> AckMode:
        """Return the mode that a session gets from the two arguments of ``create_session`` (S3-S6).

        >>> AckMode.resolve(1, True).name
        'SESSION_TRANSACTED'

        Args:
            mode: an acknowledge mode, or its number.
            transacted: ``True`` makes mode 0, whatever ``mode`` is. ``None`` follows ``mode``.

        Raises:
            TypeError: ``mode`` is a ``bool``, as in the Java call ``createSession(false, mode)``.
            JMSException: the mode is unknown, or ``transacted=False`` was given with mode 0.
        """
        if isinstance(mode, bool):
            raise TypeError(
                f"create_session({mode}, ...) is the Java call; in Python write "
                "create_session(AckMode.AUTO_ACKNOWLEDGE) or create_session(AckMode.SESSION_TRANSACTED)"
            )
        if transacted:
            return cls.SESSION_TRANSACTED
        try:
            resolved = cls(mode)
        except ValueError as error:
            known = ", ".join(f"{m.value} ({m.name})" for m in cls)
            raise JMSException(f"acknowledge mode {mode!r} is unknown; expected one of {known}") from error
        if resolved is cls.SESSION_TRANSACTED and transacted is not None:
            raise JMSException("acknowledge mode 0 (SESSION_TRANSACTED) contradicts transacted=False")
        return resolved

    @property
    def individual(self) -> bool:
        """True for the modes in which ``acknowledge()`` covers one message (S34)."""
        return self in (AckMode.ACTIVEMQ_INDIVIDUAL_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE)

    @property
    def presettled(self) -> bool:
        """True for the modes in which the broker forgets a message as soon as it has sent the message (S36)."""
        return self in (AckMode.ARTEMIS_PRE_ACKNOWLEDGE, AckMode.NO_ACKNOWLEDGE)


class AckType(IntEnum):
    """The kinds of acknowledgement, with the names and numbers of ActiveMQ. Logs, statistics and traces use these
    names."""

    DELIVERED = 0
    POISON = 1
    STANDARD = 2
    REDELIVERED = 3
    INDIVIDUAL = 4
    UNMATCHED = 5
    EXPIRED = 6


class Outcome(Enum):
    """The outcome of one message; the values are those of the property ``JMS_AMQP_ACK_TYPE`` (S38, AMQP 1.0 3.4)."""

    ACCEPTED = 1
    REJECTED = 2
    RELEASED = 3
    MODIFIED_FAILED = 4
    MODIFIED_FAILED_UNDELIVERABLE = 5


class DeliveryMode(IntEnum):
    """Whether the broker must keep the message over a restart (S152)."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


class _SizedInt(int):
    """An ``int`` with its width in Java. The constructor refuses a number that does not fit."""

    bits = 0

    def __new__(cls, value: Any = 0) -> _SizedInt:
        self = super().__new__(cls, value)
        if not -(1 << (cls.bits - 1)) <= self < 1 << (cls.bits - 1):
            raise MessageFormatException(f"{value!r} does not fit a Java {cls.__name__.lower()} ({cls.bits} bits)")
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"

    __str__ = int.__repr__  # otherwise str() of a number from a message would be "Long(5)"


class Byte(_SizedInt):
    """A Java ``byte``: 8 bits, signed."""

    bits = 8


class Short(_SizedInt):
    """A Java ``short``: 16 bits, signed."""

    bits = 16


class Int(_SizedInt):
    """A Java ``int``: 32 bits, signed."""

    bits = 32


class Long(_SizedInt):
    """A Java ``long``: 64 bits, signed."""

    bits = 64


class Float(float):
    """A Java ``float``: 32 bits on the wire."""

    def __repr__(self) -> str:
        return f"Float({float(self)})"

    __str__ = float.__repr__


class Double(float):
    """A Java ``double``: 64 bits. A bare Python ``float`` becomes a double."""

    def __repr__(self) -> str:
        return f"Double({float(self)})"

    __str__ = float.__repr__


class Char(str):
    """A Java ``char``: exactly one UTF-16 code unit."""

    def __new__(cls, value: str) -> Char:
        if len(value) != 1 or ord(value) > 0xFFFF:
            raise MessageFormatException(f"{value!r} is not one UTF-16 character")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"


Value = bool | int | float | str | bytes | None
"""A value of a property or of a field in a map or stream body. ``bytes`` are not allowed as a property."""

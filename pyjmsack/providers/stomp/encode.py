"""Makes the SEND frame of a JMS message, without the headers ``receipt`` and ``transaction``, which the connection
adds.

Brokers take a body with the header ``content-length`` for bytes, and a body without this header for text (S167). Parts
of a message for which STOMP has no header go into headers of our own, which ``pyjmsack.spi.stomp_names`` lists.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import uuid4

from pyjmsack.errors import MessageFormatException
from pyjmsack.message import BodySource, BytesMessage, Message, StreamMessage, portable
from pyjmsack.providers.stomp.dialect import StompDialect
from pyjmsack.providers.stomp.frames import Limits
from pyjmsack.providers.stomp.heads import check_size, encode_head
from pyjmsack.spi.envelope import DUPLICATE_ID, Payload, StreamedPayload
from pyjmsack.spi.stomp_names import BODY, COPY, TYPES, header_name, text_of, types_line
from pyjmsack.types import Long

__all__ = ["encode"]

MESSAGE, OBJECT, MAP, BYTES, STREAM, TEXT = range(6)


def encode(
    message: Message,
    *,
    lines: str,
    dialect: StompDialect,
    escape: Callable[[str], str],
    limits: Limits | None = None,
    marks_repetitions: bool = False,
) -> Payload:
    """Return a SEND frame without its first line. The result contains the header lines, an empty line, the body and a
    NUL. A large body is read later, when the frame is sent.

    This function resets a bytes or stream message, because JMS requires this of a send (S171).

    Args:
        message: the message, whose headers the producer has set (S71).
        lines: the header lines of the destination.
        dialect: the dialect of the broker.
        escape: returns a text with the escapes of the STOMP version that the connection speaks.
        limits: the limits of the broker for one frame.
        marks_repetitions: whether to add the duplicate mark if the message has none (S106).

    Raises:
        MessageFormatException: STOMP or this broker cannot carry a text or property of the message. The error names the
            text or property.
    """
    body, marks = _body(message, dialect)
    parts = [lines, marks, _headers(message, dialect, escape)]
    held = message._properties
    if marks_repetitions and DUPLICATE_ID not in (held or ()):
        parts.append(f"{DUPLICATE_ID}:{escape(message._message_id or f'ID:{uuid4()}')}\n")
    if held:
        parts.append(_properties(held, escape))
    head = encode_head("".join(parts), limits)
    if isinstance(body, BodySource):
        return check_size(StreamedPayload(head + b"\n", b"", body, b"\0"), limits)
    return check_size(b"".join((head, b"\n", body, b"\0")), limits)


def _headers(message: Message, dialect: StompDialect, escape: Callable[[str], str]) -> str:
    """Return the lines of the JMS header fields."""
    text = "persistent:true\n" if message._persistent else ""
    if message._priority != 4:
        text += f"priority:{message._priority}\n"
    if message._message_id is not None:
        text += f"NATIVE_MESSAGE_ID:{escape(message._message_id)}\n"
    if message._timestamp:
        text += f"timestamp:{message._timestamp}\n"
    expires = _expires(message)
    if expires:
        text += f"expires:{expires}\n"
    if message._correlation_id is not None:
        text += f"correlation-id:{escape(message._correlation_id)}\n"
    if message._type is not None:
        text += f"type:{escape(message._type)}\n"
    if message._reply_to is not None:
        text += f"reply-to:{escape(dialect.reply_to(message._reply_to))}\n"
    if message._delivery_time:
        text += f"AMQ_SCHEDULED_TIME:{message._delivery_time}\n"
        if dialect.delays:  # this broker reads only the delay, but receivers read the time
            text += f"AMQ_SCHEDULED_DELAY:{max(1, message._delivery_time - _now(message))}\n"
    return text + _jmsx(message, dialect, escape)


def _jmsx(message: Message, dialect: StompDialect, escape: Callable[[str], str]) -> str:
    """Return the lines of the JMSX properties, which a message keeps apart from its other properties (S164)."""
    text = ""
    if message._group_id is not None:
        text += f"JMSXGroupID:{escape(message._group_id)}\n"
    if message._group_sequence is not None:
        text += f"JMSXGroupSeq:{message._group_sequence}\n"
    if message._user_id is not None:
        text += f"JMSXUserID:{escape(message._user_id)}\n"
    if dialect.hides_jmsx and text:
        text += "".join(f"{COPY}{line}\n" for line in text[:-1].split("\n"))
    if message._reply_to_group_id is not None:
        text += f"JMS_AMQP_REPLY_TO_GROUP_ID:{escape(message._reply_to_group_id)}\n"
    return text


def _now(message: Message) -> int:
    return message._timestamp or time.time_ns() // 1_000_000


def _expires(message: Message) -> int:
    ttl: int | None = message._amqp_ttl
    if ttl is None:
        return message._expiration
    return _now(message) + ttl if ttl else 0


def _properties(properties: dict[str, object], escape: Callable[[str], str]) -> str:
    lines = []
    for name, value in properties.items():
        if not name:
            raise MessageFormatException("a property without a name cannot be sent over STOMP")
        if isinstance(value, int):
            if not -(1 << 63) <= value < 1 << 63:
                Long(value)  # raises the error that the number does not fit
        elif value is not None and not isinstance(value, str | float):  # a sender over AMQP may choose other types
            raise MessageFormatException(f"property {name!r} is a {type(value).__name__}, which STOMP cannot carry")
        lines.append(f"{escape(header_name(name))}:{escape(text_of(value))}\n")
    types = types_line(properties)
    if types is not None:
        lines.append(f"{TYPES}:{escape(types)}\n")
    return "".join(lines)


def _body(message: Message, dialect: StompDialect) -> tuple[bytes | BodySource, str]:
    """Return the body and the header lines that describe it."""
    kind = message.wire_type
    if kind == BYTES and isinstance(message, BytesMessage):
        if isinstance(message._body, BodySource):
            return message._body, _bytes_lines(message._body.length, dialect)
        message.reset()
        return message.data, _bytes_lines(len(message.data), dialect)
    if kind == STREAM and isinstance(message, StreamMessage):
        message.reset()
    if kind in portable.CONTENT_TYPES:
        content_type, text = portable.encode(message)
        return text.encode(), f"content-type:{content_type}\n"
    if kind == TEXT:
        return _text(message._body, dialect)
    if message._body is not None:
        raise MessageFormatException(f"{message!r} has a body that STOMP cannot carry: {type(message._body).__name__}")
    return b"", f"{BODY}:message\n"


def _bytes_lines(length: int, dialect: StompDialect) -> str:
    """Return the header lines of a body of bytes. An empty body gets a line more, because Artemis would otherwise
    deliver it as a text."""
    return f"content-length:{length}\n" + (f"{BODY}:bytes\n" if dialect.routed and not length else "")


def _text(text: str | None, dialect: StompDialect) -> tuple[bytes, str]:
    if text is None:
        return b"", f"{BODY}:null-text\n"
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatException(f"the body is not Unicode at character {error.start}: {error.reason}") from error
    if data.find(b"\0") < 0:  # ``in`` takes twice as long for bytes
        return data, ""
    # a text with a NUL needs a length, but with a length every receiver except this library takes the text for bytes
    mark = "amq-msg-type:text" if dialect.typed_text else f"{BODY}:text"
    return data, f"content-length:{len(data)}\n{mark}\n"

"""The columns of the format ``jms``. This module turns messages into rows, and texts of properties into values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import pyarrow as pa

from pyjmsack import (
    Byte,
    Destination,
    Double,
    Float,
    Int,
    JMSException,
    Long,
    Message,
    MessageFormatException,
    ObjectMessage,
    Queue,
    Short,
    Topic,
    portable,
)
from pyjmsack.spark.bodies import body_of

__all__ = [
    "DUPLICATE_ID",
    "GROUP",
    "PORTABLE",
    "SPARK_SCHEMA",
    "arrow_schema",
    "destination_of",
    "property_value",
    "spark_schema",
    "to_batch",
]

DUPLICATE_ID = "_AMQ_DUPL_ID"
"""The property by which Artemis recognises the second copy of a send."""
GROUP = "JMSXGroupID"
PORTABLE = "portable"
"""The kind of a property whose type JMS does not have, such as bytes or a list. A sender over AMQP may use such a
type.
"""

_TEXTS = pa.map_(pa.string(), pa.string())
_TIME = pa.timestamp("us", tz="UTC")
_COLUMNS: tuple[tuple[str, str, pa.DataType], ...] = (
    ("message_id", "string", pa.string()),
    ("dedup_key", "string", pa.string()),
    ("correlation_id", "string", pa.string()),
    ("destination", "string", pa.string()),
    ("reply_to", "string", pa.string()),
    ("origin", "string", pa.string()),
    ("type", "string", pa.string()),
    ("group_id", "string", pa.string()),
    ("body", "binary", pa.binary()),
    ("body_type", "string", pa.string()),
    ("properties", "map<string,string>", _TEXTS),
    ("property_types", "map<string,string>", _TEXTS),
    ("priority", "int", pa.int32()),
    ("durable", "boolean", pa.bool_()),
    ("delivery_count", "int", pa.int32()),
    ("created", "timestamp", _TIME),
    ("expires", "timestamp", _TIME),
    ("received", "timestamp", _TIME),
    ("batch", "bigint", pa.int64()),
    ("part", "int", pa.int32()),
    ("idx", "int", pa.int32()),
    ("decode_error", "string", pa.string()),
)
SPARK_SCHEMA = {name: spark for name, spark, _ in _COLUMNS}
"""The type of each column in Spark, in the order of the columns."""

_KINDS: dict[type, str] = {
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    Int: "int",
    Long: "long",
    Float: "float",
    Double: "double",
    float: "double",
}
_PARSERS: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: {"true": True, "false": False}[text],
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "int": lambda text: Int(int(text)),
    "long": lambda text: Long(int(text)),
    "float": lambda text: Float(float(text)),
    "double": lambda text: Double(float(text)),
}


def spark_schema(include_body: bool) -> str:
    """Return the schema for Spark, as DDL."""
    return ", ".join(f"{name} {kind}" for name, kind in SPARK_SCHEMA.items() if include_body or name != "body")


def arrow_schema(include_body: bool) -> pa.Schema:
    """Return the schema for Arrow. Spark needs exactly the types of :func:`spark_schema`."""
    return pa.schema([(name, kind) for name, _, kind in _COLUMNS if include_body or name != "body"])


def to_batch(
    messages: Sequence[Message], received: Sequence[datetime], place: tuple[int, int], key: str | None, with_body: bool
) -> pa.RecordBatch:
    """Return the messages as rows.

    Args:
        messages: the messages in the order of their arrival.
        received: the time of each arrival, in UTC.
        place: the numbers of the pull and of the partition.
        key: the property by which the application identifies its messages, or ``None``.
        with_body: whether there is a column ``body``.
    """
    count = len(messages)
    rows = [_row(message, key) for message in messages]
    columns: dict[str, Any] = {name: [row[n] for row in rows] for n, name in enumerate(_FROM_MESSAGE)}
    columns |= {"received": received, "batch": [place[0]] * count, "part": [place[1]] * count, "idx": range(count)}
    schema = arrow_schema(with_body)
    errors = columns["decode_error"]
    # decode_error is the last column, because the columns before it may add errors
    arrays = [_column(field, columns[field.name], errors) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(field: pa.Field, values: Sequence[Any], errors: list[str | None]) -> pa.Array:
    """Return a column. A value that Arrow cannot hold becomes null, and its row gets an error, because the other rows
    of the batch must not fail."""
    try:
        return pa.array(values, field.type)
    except MemoryError:
        raise
    except Exception:  # Arrow raises errors of many kinds for a value that does not fit
        return pa.array([_cell(field, n, value, errors) for n, value in enumerate(values)], field.type)


def _cell(field: pa.Field, row: int, value: Any, errors: list[str | None]) -> Any:
    try:
        pa.array([value], field.type)
    except MemoryError:
        raise
    except Exception as error:
        earlier = f"{errors[row]}; " if errors[row] else ""
        errors[row] = f"{earlier}no value for the column {field.name}: {_reason(error)}"
        return None
    return value


def _reason(error: Exception) -> str:
    """Return the text of an error, in a form that fits in a column."""
    text = str(error) if isinstance(error, JMSException | pa.ArrowException) else f"{type(error).__name__}: {error}"
    return text[:_LONGEST_REASON].encode("utf-8", "backslashreplace").decode()


_LONGEST_REASON = 1000
"""The largest number of characters of an error's text in ``decode_error``, because the text may hold the value."""
_SHOWN = 40
_MOST = (1 << 31) - 1
"""The largest number that fits in the column ``delivery_count``. The count of AMQP may be larger."""


def _row(message: Message, key: str | None) -> tuple[Any, ...]:
    """Return the values of the columns ``_FROM_MESSAGE`` for a message. Whatever is in the message, this raises no
    error but ``MemoryError``."""
    errors: list[str] = []
    body, body_type = _read(body_of, message, errors, (None, "other"))
    texts, kinds, group_id = _read(_properties, message, errors, ({}, {}, None))
    plain = [_read(reader, message, errors, None) for reader in _READERS.values()]
    lost = next((name for name, kind in kinds.items() if kind == "string"), None)
    if lost is not None:  # such a text was written back as if it were the value
        errors.append(
            f"the value of the property {str(lost)[:_SHOWN]!r} has no type in JMS; its column has a text instead"
        )
    dedup_key = (key and texts.get(key)) or plain[0]
    error = "; ".join(dict.fromkeys(errors)) or None
    return (*plain, dedup_key, group_id, body, body_type, texts, kinds, error)


def _read(reader: Callable[[Message], Any], message: Message, errors: list[str], otherwise: Any) -> Any:
    """Return what ``reader`` returns for the message. After an error the row gets the error and the value
    ``otherwise``, because no message may be lost and the other rows of the batch must not fail."""
    try:
        return reader(message)
    except MemoryError:
        raise
    except Exception as error:  # the content of the message is a stranger's, so it may meet an error of any kind
        errors.append(_reason(error))
        return otherwise


def _properties(message: Message) -> tuple[dict[str, str | None], dict[str, str], Any]:
    """Return the texts and the types of the properties, and the group of the message."""
    properties: dict[str, Any] = message.properties.copy()
    group_id = properties.pop(GROUP, None)
    odd = {name: text for name, value in properties.items() if (text := _portable(value)) is not None}
    kinds = {name: _kind(value) for name, value in properties.items() if not _is_text(value)}
    kinds |= dict.fromkeys(odd, PORTABLE)
    texts = {name: odd[name] if name in odd else _as_text(value) for name, value in properties.items()}
    return texts, kinds, group_id


def _name(destination: Destination | None) -> str | None:
    if destination is None:
        return None
    return f"topic://{destination.name}" if destination.is_topic else destination.name


def _origin(message: Message) -> str | None:
    """Return where a dead letter comes from: the queue, or ``address::queue`` for the subscription of a topic. If only
    the topic is known, return its name with ``topic://`` in front."""
    if "_AMQ_ORIG_ADDRESS" not in message.properties:
        return None
    address, queue = (message.get_string_property(f"_AMQ_ORIG_{name}") for name in ("ADDRESS", "QUEUE"))
    if queue in (None, address):
        return address
    return queue if queue == f"topic://{address}" else f"{address}::{queue}"


_READERS: dict[str, Callable[[Message], Any]] = {
    "message_id": attrgetter("message_id"),
    "correlation_id": attrgetter("correlation_id"),
    "destination": lambda message: _name(message.destination),
    "reply_to": lambda message: _name(message.reply_to),
    "origin": _origin,
    "type": attrgetter("type"),
    "priority": attrgetter("priority"),
    "durable": lambda message: message.delivery_mode == 2,
    "delivery_count": lambda message: min(message.delivery_count, _MOST),
    "created": attrgetter("timestamp"),
    "expires": attrgetter("expiration"),
}
"""The columns whose values come from one header each, or from a note of the broker."""
_FROM_MESSAGE = (
    *_READERS,
    *("dedup_key", "group_id", "body", "body_type", "properties", "property_types", "decode_error"),
)
"""The columns whose values come from the message, in the order of :func:`_row`."""


def destination_of(name: str) -> Destination:
    """Return the destination for a text of the column ``destination``."""
    kind = Topic if name.startswith("topic://") else Queue
    # the name must not set options, because a stranger may have chosen the name
    return kind._literal(name.removeprefix("topic://"))


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _kind(value: Any) -> str:
    """Return the type of a property that is no text. ``string`` means that only a text shows the value."""
    known = _KINDS.get(type(value))
    if known is None and isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return "int" if -(1 << 31) <= value < 1 << 31 else "long"
    return known or "string"


def _portable(value: Any) -> str | None:
    """Return the value as JSON if JMS does not have its type, or if the value is half a surrogate pair, for which
    Arrow has no bytes. A ``char`` of AMQP may be such a value.

    Return ``None`` for any other value, and if the value cannot be written as JSON.
    """
    if value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and _is_unicode(value)):
        return None
    try:
        return portable.encode(ObjectMessage(value))[1]
    except MessageFormatException:
        return None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_text(value: Any) -> str | None:
    if _is_text(value):
        return value if value is None else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    return repr(float(value)) if isinstance(value, float) else repr(value)


def property_value(text: str | None, kind: str | None) -> Any:
    """Return the value of a property. ``kind`` is the type in the column ``property_types``. Without a type the value
    is a ``str``.

    Raises:
        ValueError: the type is unknown, or the text does not fit the type.
    """
    if text is None or kind is None or kind == "string":
        return text
    if kind == PORTABLE:
        return portable.decode(portable.CONTENT_TYPES[ObjectMessage.wire_type], text)[1]
    if kind not in _PARSERS:
        raise ValueError(f"property type {kind!r}: expected one of {', '.join(_PARSERS)}, portable or string")
    try:
        return _PARSERS[kind](text)
    except (KeyError, ValueError) as error:
        raise ValueError(f"expected a {kind}, not {text!r}") from error

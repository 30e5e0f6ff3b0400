"""The columns of the format ``jms``. This module turns messages into rows, and texts of properties into values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
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
    rows = zip(*[_row(message, key) for message in messages], strict=True) if count else [()] * len(_FROM_MESSAGE)
    columns: dict[str, Any] = dict(zip(_FROM_MESSAGE, rows, strict=True))
    columns |= {"received": received, "batch": [place[0]] * count, "part": [place[1]] * count, "idx": range(count)}
    schema = arrow_schema(with_body)
    columns["decode_error"] = errors = [*columns["decode_error"]]
    # decode_error is the last column, because the columns before it may add errors
    arrays = [_column(field, columns[field.name], errors) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(field: pa.Field, values: Sequence[Any], errors: list[str | None]) -> pa.Array:
    """Return a column. A value that Arrow cannot hold becomes null, and its row gets an error, because the other rows
    of the batch must not fail."""
    try:
        return pa.array(values, field.type)
    except _NO_VALUE:
        return pa.array([_cell(field, n, value, errors) for n, value in enumerate(values)], field.type)


def _cell(field: pa.Field, row: int, value: Any, errors: list[str | None]) -> Any:
    try:
        pa.array([value], field.type)
    except _NO_VALUE as error:
        earlier = f"{errors[row]}; " if errors[row] else ""
        errors[row] = f"{earlier}no value for the column {field.name}: {_reason(error)}"
        return None
    return value


def _reason(error: Exception) -> str:
    """Return the text of an error, in a form that fits in a column."""
    return str(error)[:_LONGEST_REASON].encode("utf-8", "backslashreplace").decode()


_NO_VALUE = (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError)
"""The errors of Arrow for a value that does not fit in a column."""
_LONGEST_REASON = 1000
"""The largest number of characters of an error's text in ``decode_error``, because the text may hold the value."""
_MOST = (1 << 31) - 1
"""The largest number that fits in the column ``delivery_count``. The count of AMQP may be larger."""
_FROM_MESSAGE = [name for name in SPARK_SCHEMA if name not in ("received", "batch", "part", "idx")]


def _row(message: Message, key: str | None) -> tuple[Any, ...]:
    """Return the values of the columns ``_FROM_MESSAGE`` for a message."""
    body, body_type, origin, error = None, "other", None, None
    properties: dict[str, Any] = {}
    try:
        body, body_type = body_of(message)
        properties = message.properties.copy()
        origin = _origin(message)
    except JMSException as failure:
        # the row gets the error, because no message may be lost and the other rows of the batch must not fail
        error = _reason(failure)
    group_id = properties.pop(GROUP, None)
    odd = {name: text for name, value in properties.items() if (text := _portable(value)) is not None}
    kinds = {name: _kind(value) for name, value in properties.items() if not _is_text(value)}
    kinds |= dict.fromkeys(odd, PORTABLE)
    texts = {name: odd[name] if name in odd else _as_text(value) for name, value in properties.items()}
    message_id = message.message_id
    return (
        message_id,
        (key and texts.get(key)) or message_id,
        message.correlation_id,
        _name(message.destination),
        _name(message.reply_to),
        origin,
        message.type,
        group_id,
        body,
        body_type,
        texts,
        kinds,
        message.priority,
        message.delivery_mode == 2,
        min(message.delivery_count, _MOST),
        message.timestamp,
        message.expiration,
        error,
    )


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


def destination_of(name: str) -> Destination:
    """Return the destination for a text of the column ``destination``."""
    kind = Topic if name.startswith("topic://") else Queue
    # the name must not set options, because a stranger may have chosen the name
    return kind._literal(name.removeprefix("topic://"))


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _kind(value: Any) -> str:
    known = _KINDS.get(type(value))
    if known is None and isinstance(value, int):
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

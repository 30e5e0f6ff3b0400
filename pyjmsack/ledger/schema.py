"""The tables of a ledger, and the code that makes the tables from raw lines (:mod:`pyjmsack.spi.ledger`)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from pyjmsack.spi.ledger import LARGEST_COUNT, SEPARATOR

__all__ = ["SCHEMAS", "parse_lines"]

_TIME = pa.timestamp("us", "UTC")
"""The type of a time in the tables. A line has nanoseconds since 1970. The tables have microseconds, because Spark has
no finer unit."""
_COUNT = pa.int32()
_WIDER = (_TIME, _COUNT)
"""The types that are read as numbers of 64 bits. Older versions wrote counts that do not fit in 32 bits."""
_ORIGIN = [("protocol", pa.string()), ("broker", pa.string()), ("connection_id", pa.string())]

SCHEMAS: dict[str, pa.Schema] = {
    "sends": pa.schema(
        [
            ("message_id", pa.string()),
            ("dedup_key", pa.string()),
            ("seq", pa.int64()),
            ("t_send", _TIME),
            ("t_confirm", _TIME),
            ("send_outcome", pa.string()),
            ("transaction", pa.string()),
            ("producer_id", pa.string()),
            ("destination", pa.string()),
            *_ORIGIN,
        ]
    ),
    "receives": pa.schema(
        [
            ("message_id", pa.string()),
            ("ordinal", pa.int64()),
            ("t_recv", _TIME),
            ("t_ack", _TIME),
            ("delivery_count", _COUNT),
            ("redelivered", pa.bool_()),
            ("ack_outcome", pa.string()),
            ("transaction", pa.string()),
            ("consumer_id", pa.string()),
            ("destination", pa.string()),
            ("ack_mode", pa.int16()),
            *_ORIGIN,
        ]
    ),
    "events": pa.schema(
        [("time", _TIME), ("kind", pa.string()), ("detail", pa.string()), *_ORIGIN],
    ),
}


_TAIL_STARTS = {"sends": "producer_id", "receives": "consumer_id", "events": "protocol"}


def parse_lines(name: str, raw: bytes) -> pa.Table:
    """Return the complete lines of a raw part as a table.

    The rest of the file is ignored. It is empty space, or an incomplete line of a process that was killed.

    Args:
        name: the name of the table.
        raw: the whole file.

    Raises:
        pyarrow.ArrowInvalid: the lines do not belong to this table.
    """
    schema = SCHEMAS[name]
    raw = raw.rstrip(b"\0")
    end = raw.rfind(b"\n") + 1
    odd = raw.count(b'"', 0, end) % 2
    while odd:  # the last line break is inside quotes, so it belongs to an id and does not end a line
        quote = raw.rfind(b'"', 0, end)
        end, line = raw.rfind(b"\n", 0, quote) + 1, end
        odd = (odd + raw.count(b'"', end, line)) % 2
    raw = raw[:end]
    if not raw:
        return schema.empty_table()
    first = schema.get_field_index(_TAIL_STARTS[name])
    front, back = list(schema)[:first], list(schema)[first:]
    types = {field.name: pa.int64() if field.type in _WIDER else field.type for field in front}
    lines = csv.read_csv(
        pa.BufferReader(raw),
        # a block as large as the file, because a line may have any length
        csv.ReadOptions(use_threads=False, column_names=[*types, "tail"], block_size=len(raw)),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(
            column_types={**types, "tail": pa.string()},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    ).combine_chunks()
    columns = [_column(lines[field.name], field) for field in front] + _split(lines["tail"], back)
    return pa.Table.from_arrays(columns, schema=schema)


def _column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if field.type == _COUNT:
        least = pc.min_element_wise  # pyright: ignore[reportAttributeAccessIssue] - pyarrow makes it at import
        return least(column, LARGEST_COUNT, skip_nulls=False).cast(_COUNT)
    if field.type != _TIME:
        return column
    return column.cast(pa.timestamp("ns", "UTC")).cast(_TIME, safe=False)


def _split(tails: pa.ChunkedArray, fields: list[pa.Field]) -> list[pa.Array]:
    """Split the last field of the lines into its columns. Only the distinct values are split, because they are few."""
    encoded = tails.combine_chunks().dictionary_encode()
    parts = [(text or "").split(SEPARATOR) for text in encoded.dictionary.to_pylist()]
    if any(len(part) != len(fields) for part in parts):
        raise pa.ArrowInvalid(f"the last field of a line does not have {len(fields)} parts")
    columns = []
    for number, field in enumerate(fields):
        values = pa.array([part[number] for part in parts]).cast(field.type)
        columns.append(values.take(encoded.indices))
    return columns

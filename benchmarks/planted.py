"""Ledgers in which it is known what went wrong: losses, duplicates, redeliveries, reorderings, doubts, torn
transactions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from pyarrow import parquet

from pyjmsack.ledger import SCHEMAS

PRODUCERS, CONSUMERS = 4, 3
START = 1_700_000_000_000_000  # microseconds since 1970
GAP = 50  # microseconds between two sends
LATENCY = 2_000  # microseconds
_LATE = 1_000  # so many messages overtake one that is out of order
_CHUNK = 500_000
_CLASSES = ("lost", "duplicated", "redelivered", "out_of_order", "in_doubt", "torn", "dead_lettered")


@dataclass(frozen=True)
class Plan:
    """The planted defects: numbers of messages for each class. A message is in one class only."""

    rows: int
    planted: dict[str, Any]

    def ids(self, name: str) -> set[str]:
        """Return the message ids of a class."""
        return {message_id(int(number)) for number in self.planted[name]}


def message_id(number: int) -> str:
    """Return the id of a message."""
    return f"ID:0e2d4b9c-7a83-4f6e-9a8b-2f1d3c4b5a69:1:{number % PRODUCERS}-{number // PRODUCERS + 1}"


def plan(rows: int, each: int, seed: int = 1) -> Plan:
    """Choose ``each`` messages for every class; those out of order are not among the last."""
    random = np.random.default_rng(seed)
    chosen = random.choice(rows - 2 * _LATE, each * len(_CLASSES), replace=False)
    return Plan(rows, dict(zip(_CLASSES, np.split(chosen, len(_CLASSES)), strict=True)))


def write(path: Path, plan: Plan, outage: tuple[int, int] | None = None) -> None:
    """Write the ledger, in parts.

    Args:
        path: the directory.
        plan: the planted defects.
        outage: numbers of the messages at which the connection is lost and restored.
    """
    for name in SCHEMAS:
        (path / name).mkdir(parents=True)
    for part, first in enumerate(range(0, plan.rows, _CHUNK)):
        numbers = np.arange(first, min(first + _CHUNK, plan.rows))
        _write(path, "sends", part, _sends(numbers, plan))
    for part, table in enumerate(_receives(plan)):
        _write(path, "receives", part, table)
    _write(path, "events", 0, _events(plan, outage))


def _write(path: Path, name: str, part: int, columns: dict[str, Any]) -> None:
    table = pa.table({field.name: pa.array(columns[field.name]).cast(field.type) for field in SCHEMAS[name]})
    parquet.write_table(table, path / name / f"planted-{part}.parquet", compression="zstd")


def _ids(numbers: Any) -> pa.Array:
    prefix = pa.array([message_id(p).rpartition("-")[0] for p in range(PRODUCERS)])
    return pa.compute.binary_join_element_wise(
        prefix.take(pa.array(numbers % PRODUCERS)), pa.array(numbers // PRODUCERS + 1).cast(pa.string()), "-"
    )


def _constant(text: str | None, count: int) -> pa.Array:
    return pa.array([text], pa.string()).take(pa.array(np.zeros(count, np.int8)))


def _chosen(options: list[str | None], which: Any) -> pa.Array:
    return pa.array(options, pa.string()).take(pa.array(which))


def _origin(count: int) -> dict[str, Any]:
    return {
        "protocol": _constant("AMQP 1.0", count),
        "broker": _constant("amqp://broker:5672", count),
        "connection_id": _constant("planted", count),
    }


def _sends(numbers: Any, plan: Plan) -> dict[str, Any]:
    count = len(numbers)
    outcome = np.zeros(count, np.int8)
    outcome[np.isin(numbers, plan.planted["in_doubt"])] = 1
    outcome[np.isin(numbers, plan.planted["in_doubt"][1::4])] = 3  # an error, and yet it arrives
    torn = np.isin(numbers, plan.planted["torn"])
    outcome[torn] = 2
    sent = START + numbers * GAP
    return {
        "message_id": _ids(numbers),
        "dedup_key": _constant(None, count),
        "seq": numbers // PRODUCERS + 1,
        "t_send": sent,
        "t_confirm": sent + LATENCY // 2,
        "send_outcome": _chosen(["confirmed", "unknown", "rolled_back", "failed"], outcome),
        "transaction": _chosen([None, "planted:1"], torn.astype(np.int8)),
        "producer_id": _chosen([f"planted:{p}" for p in range(PRODUCERS)], numbers % PRODUCERS),
        "destination": _constant("queue://planted", count),
        **_origin(count),
    }


def _deliveries(plan: Plan) -> tuple[Any, Any, Any]:
    """Return, in the order of delivery, numbers of messages, outcomes and whether each is delivered again."""
    numbers = np.arange(plan.rows)
    place = numbers.astype(np.float64)
    place[plan.planted["out_of_order"]] += _LATE + 0.5
    arrives = np.ones(plan.rows, bool)
    arrives[plan.planted["lost"]] = False
    arrives[plan.planted["in_doubt"][::2]] = False  # one half of the messages in doubt arrives
    outcome = np.zeros(plan.rows, np.int8)
    outcome[plan.planted["redelivered"]] = 1
    outcome[plan.planted["dead_lettered"]] = 2
    again = np.concatenate([plan.planted["duplicated"], plan.planted["redelivered"]])
    numbers = np.concatenate([numbers[arrives], again])
    place = np.concatenate([place[arrives], again + _LATE + 0.25])
    outcome = np.concatenate([outcome[arrives], np.zeros(len(again), np.int8)])
    flagged = np.concatenate([np.zeros(arrives.sum(), bool), np.isin(again, plan.planted["redelivered"])])
    order = np.argsort(place, kind="stable")
    return numbers[order], outcome[order], flagged[order]


def _receives(plan: Plan) -> Iterator[dict[str, Any]]:
    numbers, outcome, flagged = _deliveries(plan)
    consumer = (numbers // 7) % CONSUMERS
    ordinal = np.empty(len(numbers), np.int64)
    for one in range(CONSUMERS):
        mine = consumer == one
        ordinal[mine] = np.arange(1, mine.sum() + 1)
    for first in range(0, len(numbers), _CHUNK):
        part = slice(first, first + _CHUNK)
        count = len(numbers[part])
        received = START + numbers[part] * GAP + LATENCY
        yield {
            "message_id": _ids(numbers[part]),
            "ordinal": ordinal[part],
            "t_recv": received,
            "t_ack": received + 100,
            "delivery_count": flagged[part].astype(np.int32) + 1,
            "redelivered": flagged[part],
            "ack_outcome": _chosen(["accepted", "rolled_back", "rejected"], outcome[part]),
            "transaction": _constant(None, count),
            "consumer_id": _chosen([f"planted:{9 + c}" for c in range(CONSUMERS)], consumer[part]),
            "destination": _constant("queue://planted", count),
            "ack_mode": np.full(count, 101, np.int16),
            **_origin(count),
        }


def _events(plan: Plan, outage: tuple[int, int] | None) -> dict[str, Any]:
    events = [("established", 0), ("closed", plan.rows)]
    if outage is not None:
        events[1:1] = [("interrupted", outage[0]), ("restored", outage[1])]
    return {
        "time": [START + number * GAP for _, number in events],
        "kind": [kind for kind, _ in events],
        "detail": [""] * len(events),
        **_origin(len(events)),
    }

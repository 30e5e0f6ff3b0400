"""Which messages are the same, and which rows hostile messages get: without a broker and without a JVM."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from pyjmsack import Byte, Char, Double, Float, Int, Long, MapMessage, Message, Queue, Short, StreamMessage
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.wire_encode import encode_value
from pyjmsack.providers.amqp.wire_types import Described, Symbol, Timestamp, UByte, ULong
from pyjmsack.spark import columns
from pyjmsack.spark.bodies import body_of, message_of
from pyjmsack.spark.columns import _READERS, arrow_schema, property_value, to_batch
from pyjmsack.spark.pull import _without_known, identities
from pyjmsack.spark.spool import Spool

ANNOTATIONS, PROPERTIES, VALUE = 0x72, 0x73, 0x77
KEY = UUID(int=7)


def received(body: Any, message_id: str | None = "one", *, at: int | None = None, **annotations: Any) -> Message:
    """Return a message as it comes over AMQP from a sender that chose its id, and the time of its creation in ms."""
    properties = [message_id] if at is None else [message_id, *[None] * 8, Timestamp(at)]
    sections = {PROPERTIES: properties, VALUE: body}
    if annotations:
        noted = {f"x-opt-{name.replace('_', '-')}": value for name, value in annotations.items()}
        sections = {ANNOTATIONS: noted, **sections}
    payload = b"".join(b"\x00\x53%c" % code + encode_value(value) for code, value in sections.items())
    inbound = AmqpInbound(payload)
    message = inbound.to_message(Queue("orders"))
    message._delivery = inbound
    return message


def rows_of(*messages: Message) -> tuple[pa.RecordBatch, pa.Array]:
    now = datetime.now(timezone.utc)
    batch = to_batch(messages, [now] * len(messages), (1, 0), None, True)
    return batch, identities(messages, batch)


def spool_with(tmp_path: Path, *messages: Message) -> Spool:
    """Return a spool whose first pull has these messages."""
    spool = Spool(tmp_path, "query")
    spool.prepare(1)
    assert spool.publish(1, 0, *rows_of(*messages), taken=len(messages), short=True)
    return spool


def bodies(batch: pa.RecordBatch) -> list[bytes]:
    return batch["body"].to_pylist()


def test_different_messages_with_one_id_are_all_rows(tmp_path: Path) -> None:
    """A sender chooses the id. The second one was acknowledged and dropped."""
    spool = spool_with(tmp_path, received("paid"))
    batch, found = _without_known(*rows_of(received("shipped"), received("sent back"), received("paid")), spool)
    assert bodies(batch) == [b"shipped", b"sent back"]
    assert len(set(found.to_pylist())) == 2


def test_dead_letters_of_two_subscribers_are_two_rows(tmp_path: Path) -> None:
    letters = [received("paid", ORIG_ADDRESS="prices", ORIG_QUEUE=name) for name in ("first", "second", "second")]
    batch, _ = _without_known(*rows_of(*letters), Spool(tmp_path, "query"))
    assert batch["origin"].to_pylist() == ["prices::first", "prices::second"]


def test_a_letter_of_which_only_the_topic_is_known_has_the_topic_as_its_origin() -> None:
    batch, _ = rows_of(received("paid", ORIG_ADDRESS="prices", ORIG_QUEUE="topic://prices"))
    assert batch["origin"].to_pylist() == ["topic://prices"]


def test_identities_outlive_the_rows_of_their_pull(tmp_path: Path) -> None:
    spool = spool_with(tmp_path, received("paid"), received("no id", None))
    spool.retire(2, window=60)
    assert not spool.has_rows()
    batch, _ = _without_known(*rows_of(received("paid"), received("shipped"), received("no id", None)), spool)
    assert bodies(batch) == [b"shipped", b"no id"]


def test_rows_are_read_without_the_column_of_the_spool(tmp_path: Path) -> None:
    spool = spool_with(tmp_path, received("paid"))
    (batch,) = spool.read(1, 0)
    assert batch.schema.names[:-1] == arrow_schema(True).names


def test_strange_files_in_the_spool_are_left_alone(tmp_path: Path) -> None:
    spool = spool_with(tmp_path, received("paid"))
    strange = spool.root / "2026-backup"
    strange.mkdir()
    (spool.root / "1").write_text("mine")
    spool.retire(2, window=60)
    assert strange.is_dir()
    assert (spool.root / "1").read_text() == "mine"


@pytest.mark.parametrize("retired", [False, True], ids=["rows", "identities alone"])
def test_a_message_from_before_1970_is_known_when_it_comes_again(tmp_path: Path, retired: bool) -> None:
    """Its sender chooses the time. Each later pull raised, and its messages became dead letters."""
    old, older, new = (received(str(time), at=time) for time in (-86_400_000, -90_000_000, 5))
    spool = spool_with(tmp_path, old, older)
    if retired:
        spool.retire(2, window=60)
    batch, _ = _without_known(*rows_of(new, old), spool)
    assert bodies(batch) == [b"5"]
    batch, _ = _without_known(*rows_of(received("no time"), older), spool)
    assert bodies(batch) == [b"no time"]


def test_what_arrow_cannot_hold_costs_only_its_own_cell() -> None:
    """A property with half a surrogate pair, which is a ``char`` of AMQP, failed the whole pull at each attempt. After
    that all its messages were dead letters."""
    half, whole, late = received("a"), received("b"), received("c")
    half._properties = {"c": Char("\ud800"), "d": "text"}
    late._properties = {"\ud800": "a name that no broker sends"}
    late.type = "\udfff"
    batch, _ = rows_of(half, whole, late)
    assert bodies(batch) == [b"a", b"b", b"c"]
    assert dict(batch["properties"][0].as_py()) == {"c": '{"char":"\\ud800"}', "d": "text"}
    assert dict(batch["property_types"][0].as_py()) == {"c": "portable"}
    assert property_value('{"char":"\\ud800"}', "portable") == Char("\ud800")
    assert (batch["properties"][2].as_py(), batch["type"][2].as_py()) == (None, None)
    (*good, error) = batch["decode_error"].to_pylist()
    assert good == [None, None]
    assert [f"no value for the column {name}: " in error for name in ("properties", "type")] == [True] * 2


def test_the_largest_float_as_the_origin_is_a_text() -> None:
    """The pull raised OverflowError, was rolled back, and in the end its other messages were dead letters."""
    message = received("a")
    message._properties = {"_AMQ_ORIG_ADDRESS": Float(3.4028234663852886e38)}
    batch, _ = rows_of(received("b"), message)
    assert batch["origin"].to_pylist() == [None, "3.4028235e+38"]
    assert batch["decode_error"].to_pylist() == [None, None]


@pytest.mark.parametrize("error", [OverflowError, RecursionError, AttributeError, ZeroDivisionError, KeyError])
@pytest.mark.parametrize("column", [*_READERS, "body", "properties"])
def test_any_error_of_a_message_costs_only_its_own_row(
    monkeypatch: pytest.MonkeyPatch, column: str, error: type[Exception]
) -> None:
    """An error of any class but JMSException failed the pull at each attempt. After that all its messages were dead
    letters."""
    broken, whole = received("a"), received("b")

    def fail(reader: Any) -> Any:
        def read(message: Message) -> Any:
            if message is broken:
                raise error("\ud800")
            return reader(message)

        return read

    if column in _READERS:
        monkeypatch.setitem(_READERS, column, fail(_READERS[column]))
    else:
        name = {"body": "body_of", "properties": "_properties"}[column]
        monkeypatch.setattr(columns, name, fail(getattr(columns, name)))
    batch, _ = rows_of(broken, whole)
    first, second = batch["decode_error"].to_pylist()
    assert first.startswith(f"{error.__name__}: ")
    assert second is None
    assert bodies(batch) == [None if column == "body" else b"a", b"b"]


def test_a_message_whose_identity_cannot_be_read_has_none() -> None:
    message = received("a")
    message._delivery = None
    batch, found = rows_of(message, received("b"))
    assert bodies(batch) == [b"a", b"b"]
    assert [each is None for each in found.to_pylist()] == [True, False]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({b"a": 1}, b"""{"b'a'": 1}"""),
        ({KEY: 1}, b"""{"UUID('00000000-0000-0000-0000-000000000007')": 1}"""),
        ([{b"a": {b"b": [1]}}], b"""[{"b'a'": {"b'b'": [1]}}]"""),
        ({"x": {b"a": 1}}, b"""{"x": {"b'a'": 1}}"""),
    ],
)
def test_a_body_with_keys_that_json_does_not_know_is_a_row(body: Any, shown: bytes) -> None:
    """One such message made each pull fail, and after ten deliveries all messages of the pull were dead letters."""
    assert bodies(rows_of(received(body))[0]) == [shown]


class Maker:
    """Makes messages, as a session does."""

    create_map_message = staticmethod(MapMessage)
    create_stream_message = staticmethod(StreamMessage)


@pytest.mark.parametrize(
    "value",
    [[1], {}, {"byte": Int(5)}, {"bytes": "AAE="}, [b"\xff"], ULong(1 << 63), ULong((1 << 64) - 1)],
    ids=repr,
)
@pytest.mark.parametrize("body", [lambda value: {"a": value}, lambda value: ["a", value]], ids=["map", "stream"])
def test_a_map_or_stream_that_cannot_be_given_back_is_of_the_type_other(body: Any, value: Any) -> None:
    """Some stopped whatever wrote them back, for ever. Others came back as another value, without a word."""
    batch, _ = rows_of(received(body(value)), received("b"))
    assert batch["body_type"].to_pylist() == ["other", "text"]
    assert batch["body"][0].as_py()


@pytest.mark.parametrize("name", ["", 5, True, b"a"])
def test_a_map_with_a_name_that_jms_does_not_allow_is_of_the_type_other(name: Any) -> None:
    batch, _ = rows_of(received({name: 1}))
    assert batch["body_type"].to_pylist() == ["other"]


@pytest.mark.parametrize(
    "value",
    [None, True, Byte(1), Short(1), Int(1), Long(1), Float(0.1), Double(0.1), 1.5, "a", b"\xff", Char("a"), UByte(5),
     Symbol("a"), KEY, Timestamp(5), ULong(5), ULong((1 << 63) - 1), Long(-1 << 63), Described("x", "a")],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("body", [lambda value: {"a": value}, lambda value: ["a", value]], ids=["map", "stream"])
def test_a_value_of_a_map_or_stream_comes_back_as_it_was_read(body: Any, value: Any) -> None:
    message = received(body(value))
    maker: Any = Maker()
    again = message_of(maker, *body_of(message))
    assert type(again) is type(message)
    assert repr(again.body) == repr(message.body)


@pytest.mark.parametrize("value", [ULong(1 << 63), ULong((1 << 64) - 1), [ULong(1 << 63)]], ids=repr)
def test_a_property_that_cannot_be_given_back_is_an_error_of_its_row(value: Any) -> None:
    """Its row said that it was a long. A write of the row raised, each time, or wrote a text."""
    odd = received("a")
    odd._properties = {"n": 5, "u" * 1000: value}
    batch, _ = rows_of(odd, received("b"))
    error, none = batch["decode_error"].to_pylist()
    assert error.startswith("the value of the property 'uuuu")
    assert len(error) < 200
    assert none is None
    assert dict(batch["properties"][0].as_py())["n"] == "5"
    assert str(int(value) if isinstance(value, int) else 1 << 63) in dict(batch["properties"][0].as_py())["u" * 1000]


def test_the_size_of_a_message_counts_all_of_it() -> None:
    """Nested values counted 8 bytes each, so that ``maxBytesPerPartition`` did not limit the memory of a pull."""
    assert received([[b"x" * 1000]])._delivery.size > 1000

"""The readers and the writer without a JVM: they are Python that Spark calls, and a killed task is a killed process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructType

from pyjmsack import (
    ConnectionFactory,
    InvalidDestinationException,
    JMSException,
    Long,
    MessageFormatException,
    Queue,
    SendTimedOutException,
    Session,
)
from pyjmsack.spark import batch as draining
from pyjmsack.spark import pull as pulling
from pyjmsack.spark.batch import JmsBrowseReader, JmsDrainReader, batch_reader
from pyjmsack.spark.columns import property_value, to_batch
from pyjmsack.spark.options import OptionError
from pyjmsack.spark.pull import Place, Received
from pyjmsack.spark.spool import Span, Spool
from pyjmsack.spark.stream import JmsStreamReader
from pyjmsack.spark.writer import JmsStreamWriter, JmsWriter, Sent, check_columns, send_rows
from pyjmsack.testing import Wire

from .rows import ids, of_pull, read, rows_of

if TYPE_CHECKING:
    from .conftest import Fill, Left, MakeOptions


def read_batch(reader: JmsStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all rows of a micro-batch."""
    return [row for part in reader.partitions(start, end) for batch in reader.read(part) for row in batch.to_pylist()]


def next_offset(reader: JmsStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return reader.latestOffset(start, reader.getDefaultReadLimit())


# -- attempts -----------------------------------------------------------------------------------------------------


def test_of_two_attempts_at_once_one_wins_and_the_other_hands_back_what_it_took(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = fill(queue_name, 100)
    given = options()
    place = Place("query", 1, 0, 50)
    Spool(given.spool, "query").prepare(1)
    winner: list[pa.RecordBatch] = []

    def lose(spool: Spool, *how: Any, **notes: Any) -> bool:
        monkeypatch.undo()
        winner.extend(pulling.read_pull(given, place))
        return spool.publish(*how, **notes)

    monkeypatch.setattr(Spool, "publish", lose)
    loser = list(pulling.read_pull(given, place))
    assert pa.Table.from_batches(loser).equals(pa.Table.from_batches(winner))
    assert left(queue_name) == 50
    rest = pulling.read_pull(given, Place("query", 1, 1, 100))
    assert ids([row for batch in [*winner, *rest] for row in batch.to_pylist()]) == sorted(sent)


def test_an_acknowledgement_in_doubt_leaves_the_rows_and_what_comes_again_is_dropped(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = fill(queue_name, 20)
    given = options()
    spool = Spool(given.spool, "query")
    spool.prepare(1)

    def fail(session: Session) -> None:
        session.rollback()
        raise SendTimedOutException("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(Session, "commit", fail)
        first = of_pull(given, Place("query", 1, 0, 50))
    assert ids(first) == sorted(sent)
    spool.retire(2, window=0)  # the ids of unconfirmed pulls outlive the window
    spool.prepare(2)
    again = list(pulling.read_pull(given, Place("query", 2, 0, 50)))
    assert sum(batch.num_rows for batch in again) == 0
    assert spool.taken(2) == 20
    assert left(queue_name) == 0


# -- streams ------------------------------------------------------------------------------------------------------


def test_a_batch_is_read_again_with_the_parts_of_its_offset_not_of_the_options(
    options: MakeOptions, queue_name: str, fill: Fill
) -> None:
    sent = fill(queue_name, 40)
    reader = JmsStreamReader(options(partitions="4", maxMessagesPerPartition="10"))
    start = reader.initialOffset()
    assert reader.initialOffset() == start, "Spark asks twice"
    end = next_offset(reader, start)
    rows = read_batch(reader, start, end)
    restarted = JmsStreamReader(options(partitions="1"))
    assert read_batch(restarted, start, end) == rows
    assert ids(rows) == sorted(sent)
    assert restarted.partitions(end, end) == []


def test_a_first_batch_that_was_not_committed_is_read_again_by_its_own_checkpoint(
    options: MakeOptions, queue_name: str, fill: Fill
) -> None:
    """Then Spark has no committed offset, and asks for the initial one."""
    sent = fill(queue_name, 20)
    reader = JmsStreamReader(options())
    end = next_offset(reader, reader.initialOffset())
    rows = read_batch(reader, reader.initialOffset(), end)
    restarted = JmsStreamReader(options(pollMs="10"))
    assert read_batch(restarted, restarted.initialOffset(), end) == rows
    assert ids(rows) == sorted(sent)
    assert next_offset(restarted, end) == end


def test_an_empty_queue_makes_no_batch(options: MakeOptions) -> None:
    reader = JmsStreamReader(options(pollMs="10"))
    start = reader.initialOffset()
    assert next_offset(reader, start) == start


def test_available_now_ends_with_a_producer_at_work(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left
) -> None:
    fill(queue_name, 30)
    reader = JmsStreamReader(options(partitions="1", maxMessagesPerPartition="20"))
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    sizes = []
    while (end := next_offset(reader, start)) != start:
        fill(queue_name, 10)
        sizes.append(len(read_batch(reader, start, end)))
        reader.commit(end)
        start = end
    assert sizes == [20, 10]
    assert left(queue_name) == 20


def test_available_now_ends_when_what_a_browser_sees_is_not_for_us(
    options: MakeOptions, queue_name: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a queue that is paused. A pull that took nothing may be a slow broker's; two are the end."""
    fill(queue_name, 5)
    monkeypatch.setattr(pulling, "receive", lambda *_: Received([], [], True))
    reader = JmsStreamReader(options())
    offsets = [reader.initialOffset()]
    reader.prepareForTriggerAvailableNow()
    while (end := next_offset(reader, offsets[-1])) != offsets[-1]:
        assert read_batch(reader, offsets[-1], end) == []
        reader.commit(end)
        offsets.append(end)
    assert len(offsets) == 3


def test_a_pull_prefetches_no_more_than_twice_what_it_takes(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser does not see what another consumer holds, and another partition could not have it either."""
    fill(queue_name, 200)
    seen: list[int] = []
    publish = Spool.publish

    def look(spool: Spool, *how: Any, **notes: Any) -> bool:
        seen.append(left(queue_name))
        return publish(spool, *how, **notes)

    monkeypatch.setattr(Spool, "publish", look)
    Spool(options().spool, "query").prepare(1)
    assert len(of_pull(options(), Place("query", 1, 0, 50))) == 50
    assert seen[0] >= 100


def test_a_checkpoint_whose_spool_is_gone_is_refused(
    options: MakeOptions, queue_name: str, fill: Fill, tmp_path: Path
) -> None:
    fill(queue_name, 1)
    reader = JmsStreamReader(options())
    start = reader.initialOffset()
    end = next_offset(reader, start)
    (tmp_path / "spool").rename(tmp_path / "lost")
    with pytest.raises(OptionError, match="The spool belongs to the checkpoint"):
        reader.partitions(start, end)


def test_committed_rows_are_deleted_and_their_identities_kept_for_the_window(
    options: MakeOptions, queue_name: str, fill: Fill
) -> None:
    fill(queue_name, 5)
    given = options(partitions="1")
    reader = JmsStreamReader(given)
    start = reader.initialOffset()
    end = next_offset(reader, start)
    read_batch(reader, start, end)
    spool = Spool(given.spool, start["q"])
    with pa.memory_map(str(spool.file(end["n"], 0))) as source:
        spooled = pa.ipc.open_file(source).read_all()["identity"].to_pylist()
    reader.commit(end)
    assert not spool.has_rows()
    asked = pa.array([*spooled, "another", None])
    assert len(spooled) == 5
    assert spool.known(Span(0, 1 << 62), asked) == set(spooled)
    assert spool.known(Span(1, 2), asked) == set(), "of another time: not even read"
    spool.retire(9, window=-1)
    assert spool.known(Span(0, 1 << 62), asked) == set()


def test_a_checkpoint_older_than_its_spool_is_refused_and_takes_nothing(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left
) -> None:
    """One from a backup, or a second driver that is late: the sink has the batch, and would drop what it gets now."""
    fill(queue_name, 3)
    reader = JmsStreamReader(options())
    start = reader.initialOffset()
    end = next_offset(reader, start)
    assert len(read_batch(reader, start, end)) == 3
    reader.commit(end)
    fill(queue_name, 2)
    with pytest.raises(OptionError, match="older than its spool"):
        JmsStreamReader(options()).partitions(start, end)
    rows = read_batch(reader, end, next_offset(reader, end))
    assert len(rows) == 2
    assert left(queue_name) == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"maxBytesPerPartition": 1 << 60}, "bytes are free"),
        ({"spoolLocation": Path("/elsewhere")}, "do not share one spoolLocation"),
    ],
)
def test_a_spool_that_cannot_be_used_is_found_before_a_message_is_taken(
    options: MakeOptions, queue_name: str, fill: Fill, given: dict[str, Any], says: str
) -> None:
    """Each message that is given back counts as delivered, and after ten such the broker makes it a dead letter."""
    fill(queue_name, 3)
    place = Place("query", 1, 0, 10)
    Spool(options().spool, "query").prepare(1)
    for _ in range(11):
        with pytest.raises(OSError, match=says):
            of_pull(replace(options(), **given), place)
    assert [row["delivery_count"] for row in of_pull(options(), place)] == [1, 1, 1]


def test_what_killed_tasks_left_unfinished_is_deleted_at_the_next_start(
    options: MakeOptions, queue_name: str, fill: Fill
) -> None:
    fill(queue_name, 3)
    reader = JmsStreamReader(options())
    start = reader.initialOffset()
    end = next_offset(reader, start)
    rows = read_batch(reader, start, end)
    unfinished = options().spool / start["q"] / "tmp" / "unfinished"
    unfinished.write_bytes(b"a body")
    restarted = JmsStreamReader(options(pollMs="10"))
    assert next_offset(restarted, end) == end
    assert not unfinished.exists()
    assert read_batch(restarted, start, end) == rows


def test_bodies_that_were_not_spooled_cannot_be_asked_for_later(
    options: MakeOptions, queue_name: str, fill: Fill
) -> None:
    fill(queue_name, 1)
    place = Place("query", 1, 0, 5)
    Spool(options().spool, "query").prepare(1)
    (row,) = of_pull(options(includeBody="false"), place)
    with pytest.raises(OptionError, match="spooled without their bodies"):
        of_pull(options(), place)
    assert of_pull(options(includeBody="false"), place) == [row]


def test_bodies_that_were_spooled_can_be_left_out_later(options: MakeOptions, queue_name: str, fill: Fill) -> None:
    fill(queue_name, 1)
    place = Place("query", 1, 0, 5)
    Spool(options().spool, "query").prepare(1)
    (row,) = of_pull(options(), place)
    assert of_pull(options(includeBody="false"), place) == [{n: v for n, v in row.items() if n != "body"}]


def test_an_attempt_that_comes_after_its_batch_was_processed_takes_nothing(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left
) -> None:
    fill(queue_name, 5)
    given = options()
    Spool(given.spool, "query").prepare(1)
    Spool(given.spool, "query").retire(2, window=60)
    with pytest.raises(FileNotFoundError):
        list(pulling.read_pull(given, Place("query", 1, 0, 5)))
    assert left(queue_name) == 5


# -- batches ------------------------------------------------------------------------------------------------------


def test_a_drain_takes_no_more_than_its_limit_and_reads_the_same_again(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left
) -> None:
    fill(queue_name, 40)
    given = options(mode="drain", drainId="one", limit="15", maxMessagesPerPartition="4")
    rows = read(JmsDrainReader(given))
    assert len(rows) == 15
    assert left(queue_name) == 25
    assert read(JmsDrainReader(options(mode="drain", drainId="one", partitions="1"))) == rows


def test_a_drain_id_belongs_to_one_queue_and_ends_for_good(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left
) -> None:
    sent = fill(queue_name, 10)
    given = options(mode="drain", drainId="one", maxMessagesPerPartition="4")
    assert ids(read(JmsDrainReader(given))) == sorted(sent)
    fill(queue_name, 3)
    assert ids(read(JmsDrainReader(given))) == sorted(sent)
    assert left(queue_name) == 3
    with pytest.raises(OptionError, match=f"was used for {queue_name}"):
        JmsDrainReader(options(mode="drain", drainId="one", queue="elsewhere")).partitions()


def test_of_two_readings_of_a_drain_at_once_neither_has_what_the_other_lacks(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One holds the last messages and has not published them; the other sees an empty queue."""
    fill(queue_name, 5)
    given = options(mode="drain", drainId="one", partitions="1")
    other: list[dict[str, Any]] = []
    publish = Spool.publish

    def publish_late(spool: Spool, pull: int, *how: Any, **notes: Any) -> bool:
        if pull == 1:
            monkeypatch.undo()
            other.extend(read(JmsDrainReader(given)))
        return publish(spool, pull, *how, **notes)

    monkeypatch.setattr(Spool, "publish", publish_late)
    monkeypatch.setattr(draining, "is_waiting", lambda *_: bool(fill(queue_name, 3)))
    rows = read(JmsDrainReader(given))
    assert rows == other == read(JmsDrainReader(given))
    assert len(rows) + left(queue_name) == 8


def test_a_drain_does_not_take_a_broker_that_is_slow_for_an_empty_queue(
    options: MakeOptions, queue_name: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = fill(queue_name, 5)

    def get_nothing(*_: Any) -> Received:
        monkeypatch.undo()
        return Received([], [], True)

    monkeypatch.setattr(pulling, "receive", get_nothing)
    assert ids(read(JmsDrainReader(options(mode="drain", drainId="one", partitions="1")))) == sorted(sent)


def test_a_drain_ends_although_a_browser_sees_what_it_cannot_get(
    options: MakeOptions, queue_name: str, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "is_waiting", lambda *_: True)
    given = options(mode="drain", drainId="one", partitions="1")
    assert read(JmsDrainReader(given)) == []
    fill(queue_name, 5)
    assert read(JmsDrainReader(given)) == [], "for good"


def test_drains_may_share_the_directory_of_a_stream(options: MakeOptions, queue_name: str, fill: Fill) -> None:
    fill(queue_name, 1)
    assert len(read(JmsDrainReader(options(mode="drain", drainId="dlq-2031-01-05")))) == 1
    fill(queue_name, 1)
    reader = JmsStreamReader(options())
    assert next_offset(reader, reader.initialOffset())["n"] == 1


def test_a_browser_stops_at_its_limit(options: MakeOptions, queue_name: str, fill: Fill) -> None:
    fill(queue_name, 10)
    assert len(read(JmsBrowseReader(options(mode="browse", limit="4")))) == 4


def test_a_batch_of_a_browser_ends_at_the_bytes_of_a_partition(
    options: MakeOptions, queue_name: str, fill: Fill
) -> None:
    """Otherwise it had up to 1,000 messages of any size, which one task kept in memory."""
    fill(queue_name, 5)
    reader = JmsBrowseReader(options(mode="browse", maxBytesPerPartition="1"))
    parts = list(reader.read(reader.partitions()[0]))
    assert [row["body"] for part in parts for row in part.to_pylist()] == [b"body %d" % n for n in range(5)]
    assert [part.num_rows for part in parts] == [1] * 5


@pytest.mark.parametrize(
    ("given", "says"),
    [({}, "'drain', which takes the messages"), ({"mode": "stream"}, "'drain'"), ({"mode": "drain"}, "'drainId'")],
)
def test_a_batch_needs_to_be_told_whether_it_takes_the_messages(
    options: MakeOptions, given: dict[str, str], says: str
) -> None:
    with pytest.raises(OptionError, match=says):
        batch_reader(options(**given))


# -- writing ------------------------------------------------------------------------------------------------------


def test_without_keys_every_write_adds_its_rows_and_with_keys_only_the_first(
    options: MakeOptions, queue_name: str, left: Left
) -> None:
    for _ in range(2):
        assert send_rows(options(), rows_of(body=["a", "b"])).count == 2
    assert left(queue_name) == 4
    for _ in range(2):
        assert send_rows(options(dedupColumn="key"), rows_of(body=["a", "b"], key=[1, 2])).count == 2
    assert left(queue_name) == 6


def test_rows_that_the_broker_does_not_take_fail_the_task(options: MakeOptions, queue_name: str) -> None:
    """Queues named limited.* take two messages."""
    given = options(queue=f"limited.{queue_name}", confirmMs="1000")
    with pytest.raises(Exception, match=r"confirmMs|limited"):
        send_rows(given, rows_of(body=["x"] * 20))


def test_a_broker_without_room_fails_the_task_in_time(options: MakeOptions, broker_url: str) -> None:
    """More rows than may be unconfirmed at a time, to a broker that is silent, as with a full queue (S66)."""
    with Wire(broker_url) as wire:

        def rows() -> Iterator[pa.RecordBatch]:
            wire.swallow_replies()
            yield from rows_of(body=["x"] * 5000)

        with pytest.raises(SendTimedOutException, match="sendTimeout"):
            send_rows(options(url=f"{wire.url}?jms.closeTimeout=100", confirmMs="500"), rows())
        wire.heal()


def test_a_row_without_its_key_fails_the_task_by_name(options: MakeOptions) -> None:
    with pytest.raises(ValueError, match="column 'key' is the dedupColumn, and must not be null"):
        send_rows(options(dedupColumn="key"), rows_of(body=["a"], key=pa.array([None], pa.string())))


@pytest.mark.parametrize(
    ("columns", "given", "says"),
    [
        ({"id": StringType()}, {}, "column 'id' cannot be sent; expected"),
        ({"bdy": StringType()}, {}, "did you mean 'body'"),
        ({"type": StringType()}, {}, "column 'body' is missing"),
        ({"body": IntegerType()}, {}, "column 'body': expected binary or string, not int"),
        ({"body": StringType()}, {"dedupColumn": "key"}, "there is no column 'key'"),
    ],
)
def test_a_frame_that_cannot_be_written_is_refused_by_its_column(
    options: MakeOptions, columns: dict[str, Any], given: dict[str, str], says: str
) -> None:
    schema = StructType()
    for name, kind in columns.items():
        schema.add(name, kind)
    with pytest.raises(OptionError, match=says):
        check_columns(options(**given), schema)


def test_a_body_or_property_of_an_unknown_type_is_refused_by_name(options: MakeOptions) -> None:
    for body, kind in ((b"x", "object"), (b"x", "map"), (b'{"a": {"date": 1}}', "map")):
        with pytest.raises(MessageFormatException, match=kind):
            send_rows(options(), rows_of(body=[body], body_type=[kind]))
    for text, kind in (("1", "date"), ("x", "int"), ("yes", "boolean")):
        with pytest.raises(ValueError, match=kind):
            property_value(text, kind)


def test_properties_that_no_program_can_set_are_read_and_written_back_as_they_were(
    options: MakeOptions, broker_url: str, queue_name: str
) -> None:
    """One such letter stopped a whole `send_back`; a list became a text without a word."""
    odd = {"bytes": b"\x00", "list": [1, [Long(2)]], "a-b": 1, "JMSType": "x", "plain": "text"}
    back = f"{queue_name}.back"
    with ConnectionFactory(broker_url).create_connection() as connection, connection.create_session() as session:
        connection.start()
        message = session.create_text_message("body")
        message._properties, message.reply_to = dict(odd), Queue._literal("answers?to=me")
        session.create_producer(Queue(queue_name)).send(message)
        received = session.create_consumer(Queue(queue_name)).receive(60)
        assert received is not None
        batch = to_batch([received], [datetime.now(timezone.utc)], (0, 0), None, True)
        with pytest.raises(MessageFormatException, match="'a-b'"):
            send_rows(options(queue=back), iter([batch]))
        send_rows(options(queue=back, anyPropertyName="true"), iter([batch]))
        again = session.create_consumer(Queue(back)).receive(60)
    assert again is not None
    assert dict(again.properties) == odd
    assert str(again.reply_to) == "answers?to=me"


def test_properties_with_names_of_other_clients_are_written_if_the_url_allows_them(
    options: MakeOptions, broker_url: str, queue_name: str, left: Left
) -> None:
    """Of AMQP and STOMP clients that know no Java (S160)."""
    properties = pa.array([[("trace-id", "7")]], pa.map_(pa.string(), pa.string()))
    with pytest.raises(MessageFormatException, match=r"'trace-id'.*jms\.validatePropertyNames=false"):
        send_rows(options(), rows_of(body=["a"], properties=properties))
    given = options(url=f"{broker_url}?jms.validatePropertyNames=false")
    assert send_rows(given, rows_of(body=["a"], properties=properties)).count == 1
    Spool(given.spool, "query").prepare(1)
    assert of_pull(given, Place("query", 1, 0, 1))[0]["properties"] == [("trace-id", "7")]
    assert left(queue_name) == 0


UNSENDABLE: dict[str, Any] = {
    "a body that no write can send": {"body_type": "other"},
    "a body that does not fit its type": {"body_type": "map"},
    "a property that is no long": {"properties": [("a", str(1 << 64))], "property_types": [("a", "long")]},
    "a property that Artemis would ignore": {"properties": [("_AMQ_SCHED_DELIVERY", "x")]},
    "a float out of range": {"body": '{"a": {"float": 1' + "0" * 400 + "}}", "body_type": "map"},
    "an int that is infinite": {"body": '[{"int": Infinity}]', "body_type": "stream"},
    "a priority above 9": {"priority": 200},
    "a priority below 0": {"priority": -1},
    "more than wireFormat.maxFrameSize": {"body": "x" * 5000},
}


@pytest.mark.parametrize("odd", UNSENDABLE)
@pytest.mark.parametrize("unsendable", ["skip", "failAtEnd"])
def test_a_row_that_cannot_be_sent_does_not_hold_up_the_others(
    options: MakeOptions,
    broker_url: str,
    queue_name: str,
    left: Left,
    caplog: pytest.LogCaptureFixture,
    odd: str,
    unsendable: str,
) -> None:
    """One message of a stranger stopped its stream for ever, and each start sent the rows before it again."""
    texts = pa.map_(pa.string(), pa.string())
    types = dict.fromkeys(("body", "message_id", "body_type"), pa.string()) | {
        "properties": texts,
        "property_types": texts,
        "priority": pa.int32(),
    }
    rows = [{"body": "a"}, {"body": "[", "message_id": "odd", **UNSENDABLE[odd]}, {"body": "b"}]
    schema = pa.schema([*types.items()])
    given = options(url=f"{broker_url}?wireFormat.maxFrameSize=4000", unsendable=unsendable)
    sent = send_rows(given, iter([pa.RecordBatch.from_pylist(rows, schema)]))
    assert (sent.count, sent.left_out, left(queue_name)) == (2, 1, 2)
    (warning,) = (each.getMessage() for each in caplog.records if each.name == "pyjmsack.spark")
    assert warning.startswith("a row cannot be sent and was left out: message id 'odd': ")
    assert sent.reason is not None
    assert sent.reason in warning


def test_a_write_that_left_rows_out_says_so_at_its_end(options: MakeOptions, caplog: pytest.LogCaptureFixture) -> None:
    done = [Sent(7), Sent(5, left_out=2, reason="message id 'a': odd"), None]
    schema = StructType().add("body", StringType())
    JmsWriter(options(unsendable="skip"), schema).commit([*done])
    assert "2 rows cannot be sent and were left out" in caplog.text
    with pytest.raises(JMSException, match=r"2 rows cannot be sent, and the 12 others were sent.* message id 'a': odd"):
        JmsWriter(options(unsendable="failAtEnd"), schema).commit([*done])
    JmsWriter(options(unsendable="failAtEnd"), schema).commit([Sent(7)])


def rows_with_one_that_artemis_refuses(queue: str) -> pa.RecordBatch:
    """Return three rows. Nobody may send to the address of the second one."""
    keys = [f"{queue}-{number}" for number in range(3)]
    return pa.record_batch({"body": ["a", "b", "c"], "destination": [queue, f"{queue}#", queue], "key": keys})


@pytest.mark.parametrize("unsendable", ["fail", "failAtEnd"])
def test_a_row_that_the_broker_refused_is_told_and_the_task_is_not_repeated(
    options: MakeOptions, queue_name: str, left: Left, unsendable: str
) -> None:
    """Artemis kept the duplicate id. So it confirmed the row of the repeated task, and the row was lost in silence."""
    given = replace(options(dedupColumn="key", unsendable=unsendable), queue=None)
    sent = send_rows(given, iter([rows_with_one_that_artemis_refuses(queue_name)]))
    assert (sent.count, sent.left_out, sent.refused, left(queue_name)) == (2, 0, 1, 2)
    schema = StructType().add("body", StringType()).add("destination", StringType()).add("key", StringType())
    with pytest.raises(
        JMSException, match=f"1 rows, and the 2 others.* with the same 'key'.*{queue_name}-1.*AMQ229260"
    ):
        JmsWriter(given, schema).commit([sent, None])


@pytest.mark.parametrize("given", [{"dedupColumn": "key", "unsendable": "skip"}, {"unsendable": "failAtEnd"}])
def test_a_row_that_the_broker_refused_does_not_hold_up_the_others(
    options: MakeOptions, queue_name: str, left: Left, caplog: pytest.LogCaptureFixture, given: dict[str, str]
) -> None:
    sent = send_rows(replace(options(**given), queue=None), iter([rows_with_one_that_artemis_refuses(queue_name)]))
    assert (sent.count, sent.left_out, sent.refused, left(queue_name)) == (2, 1, 0, 2)
    assert "a row cannot be sent and was left out: message id 'None'" in caplog.text


def test_a_row_for_a_pattern_can_be_left_out(options: MakeOptions, queue_name: str, left: Left) -> None:
    """S67: the broker would refuse it, and create a queue that keeps a copy of every message."""
    rows = rows_of(body=["a", "b", "c"], destination=[queue_name, "#", queue_name])
    sent = send_rows(replace(options(unsendable="skip"), queue=None), rows)
    assert (sent.count, sent.left_out, left(queue_name)) == (2, 1, 2)
    with pytest.raises(InvalidDestinationException, match="wildcards"):
        send_rows(replace(options(), queue=None), rows_of(body=["a"], destination=["#"]))


def test_a_row_too_large_for_the_journal_of_the_broker_does_not_hold_up_the_others(
    options: MakeOptions, queue_name: str, left: Left
) -> None:
    """A stranger's message that is not durable may be as large, and its row is durable."""
    values = [[("p", "v" * size)] for size in (1, 600_000, 1)]
    rows = rows_of(body=["a", "b", "c"], properties=pa.array(values, pa.map_(pa.string(), pa.string())))
    sent = send_rows(options(unsendable="skip"), rows)
    assert (sent.count, sent.left_out, left(queue_name)) == (2, 1, 2)
    assert sent.reason is not None
    assert "AMQ149005" in sent.reason


def test_a_refused_row_without_a_duplicate_id_fails_the_task(options: MakeOptions, queue_name: str) -> None:
    """Spark may repeat this task, because the broker refuses the row each time."""
    for _ in range(2):
        with pytest.raises(JMSException, match="AMQ229260"):
            send_rows(replace(options(), queue=None), iter([rows_with_one_that_artemis_refuses(queue_name)]))


def test_a_refused_row_is_told_although_the_task_ends_with_another_error(options: MakeOptions, queue_name: str) -> None:
    """Otherwise Spark would repeat the task, and the broker would confirm the row."""

    def rows() -> Iterator[pa.RecordBatch]:
        yield rows_with_one_that_artemis_refuses(queue_name)
        raise RuntimeError("no more rows")

    sent = send_rows(replace(options(dedupColumn="key"), queue=None), rows())
    assert (sent.count, sent.refused) == (2, 1)
    assert sent.refusal is not None
    assert sent.refusal.endswith("then the task ended early: RuntimeError: no more rows")


def test_a_stream_is_not_told_to_fail_after_each_batch(options: MakeOptions) -> None:
    with pytest.raises(OptionError, match="expected fail or skip"):
        JmsStreamWriter(options(unsendable="failAtEnd"), StructType().add("body", StringType()))


def test_what_can_be_written_needs_a_broker_that_is_there(options: MakeOptions) -> None:
    with pytest.raises(ConnectionError):
        send_rows(options(url="amqp://127.0.0.1:1"), rows_of(body=["a"]))

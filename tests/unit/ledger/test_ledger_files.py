"""The files of a ledger: complete at every moment, readable while they are written and after a kill."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from pyjmsack import ConnectionFactory, UnsupportedFeatureException, aio
from pyjmsack.ledger import SCHEMAS, Ledger, LedgerError, read_ledgers, writer
from pyjmsack.ledger.schema import parse_lines
from pyjmsack.spi.ledger import quoted, tail

TAIL = tail("p", "queue://q", "AMQP", "amqp://b", "c")


def line(number: int, message_id: str | None = "ID:1") -> str:
    return f"{quoted(message_id)},,{number},1700000000123456789,1700000000223456789,confirmed,,{TAIL}\n"


def numbers(path: Path) -> list[int]:
    return sorted(read_ledgers([path]).table("sends")["seq"].to_pylist())


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    "message_id",
    [
        'with "quotes", commas\nand a line',
        "",
        None,
        "ümläut ✓",
        "\ud800",
        "a\0b\0",
        '\r\n"\r""\n\0',
        "\ufeff\x1f\x85\u2028\U0010ffff",
    ],
)
def test_any_message_id_comes_back_raw_and_as_parquet(tmp_path: Path, message_id: str | None, closed: bool) -> None:
    ledger = Ledger(tmp_path)
    ledger.send(line(1, message_id))
    if closed:
        ledger.close()
    [row] = read_ledgers([tmp_path]).table("sends").to_pylist()
    assert row["message_id"] == ("?" if message_id == "\ud800" else message_id)
    assert (row["dedup_key"], row["transaction"], row["broker"]) == (None, None, "amqp://b")
    assert (row["t_confirm"] - row["t_send"]).total_seconds() == 0.1
    ledger.close()


@pytest.mark.parametrize("closed", [False, True])
def test_a_count_that_does_not_fit_leaves_its_part_readable(tmp_path: Path, closed: bool) -> None:
    """The sender of a message chooses its count over AMQP. Older versions wrote the count as it came, and after that
    the whole ledger could not be read."""
    ledger = Ledger(tmp_path)
    receiving = tail("c", "queue://q", 101, "AMQP", "amqp://b", "c")
    for count in (1, 1 << 32, (1 << 31) - 1):
        ledger.receive(f'"ID:1",7,1700000000123456789,1700000000123456789,{count},1,accepted,,{receiving}\n')
    if closed:
        ledger.close()
    assert len(list((tmp_path / "receives").glob("*.parquet"))) == closed
    found = read_ledgers([tmp_path]).table("receives")
    assert found["delivery_count"].to_pylist() == [1, (1 << 31) - 1, (1 << 31) - 1]
    ledger.close()


def test_tables_have_one_schema_raw_and_as_parquet(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    times = "1700000000123456789,1700000000123456789"
    receiving = tail("c", "queue://q", 101, "AMQP", "amqp://b", "c")
    for closed in (False, True):
        ledger.receive(f'"ID:1",7,{times},2,1,accepted,,{receiving}\n')
        ledger.event(f'1700000000123456789,"closed","",{tail("AMQP", "amqp://b", "c")}\n')
        if closed:
            ledger.close()
        files = read_ledgers([tmp_path])
        assert all(files.table(name).schema == SCHEMAS[name] for name in SCHEMAS)
        row = files.table("receives").to_pylist()[0]
        assert (row["ordinal"], row["delivery_count"], row["redelivered"], row["ack_mode"]) == (7, 2, True, 101)


def test_many_threads_and_parts_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts are small here, so that many become Parquet at once."""
    monkeypatch.setitem(writer._PART_BYTES, "sends", 4000)
    ledger = Ledger(tmp_path)

    def write(first: int) -> None:
        for number in range(first, first + 500):
            ledger.send(line(number))

    threads = [threading.Thread(target=write, args=(500 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found = numbers(tmp_path)  # whatever the moment, no row is there twice and none of an early part is missing
        assert len(found) == len({*found})
    for thread in threads:
        thread.join()
    assert numbers(tmp_path) == [*range(2000)]
    ledger.close()
    assert numbers(tmp_path) == [*range(2000)]
    assert not [*tmp_path.rglob("*.raw")]


def test_a_signal_handler_closes_a_ledger_that_its_thread_is_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler waited for ever for the lock of the thread that it interrupts."""
    ledger = Ledger(tmp_path)
    opened = Path.open

    def interrupted(path: Path, *how: Any, **named: Any) -> object:
        monkeypatch.undo()
        ledger.send(line(2))
        ledger.close()
        return opened(path, *how, **named)

    monkeypatch.setattr(Path, "open", interrupted)
    writing = threading.Thread(target=ledger.send, args=(line(1),), daemon=True)
    writing.start()
    writing.join(60)
    assert not writing.is_alive()
    assert numbers(tmp_path) == [1, 2]
    ledger.close()


def test_a_connection_that_gets_no_thread_closes_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files stayed open until the next garbage collection."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    closed: list[Ledger] = []
    monkeypatch.setattr(Ledger, "close", lambda ledger: closed.append(ledger))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr("pyjmsack.io.thread._threads", {})  # another test may have left a connection with its thread
    with pytest.raises(RuntimeError, match="can't start new thread"):
        ConnectionFactory("amqp://127.0.0.1:1", ledger=tmp_path).create_connection()
    assert len(closed) == 1


def test_a_connection_without_a_library_for_its_protocol_closes_its_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In asyncio its files stayed open until the next garbage collection."""

    def missing(*_: object) -> None:
        raise UnsupportedFeatureException("amqp.engine=proton needs the extra proton")

    closed: list[Ledger] = []
    monkeypatch.setattr(Ledger, "close", lambda ledger: closed.append(ledger))
    monkeypatch.setattr("pyjmsack.aio.connection.create_provider", missing)

    async def connect() -> None:
        await aio.ConnectionFactory("amqp://127.0.0.1:1", ledger=tmp_path).create_connection()

    with pytest.raises(UnsupportedFeatureException, match="needs the extra"):
        asyncio.run(connect())
    assert len(closed) == 1


def test_a_part_stays_raw_if_the_system_refuses_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error went to the send or to the loop that wrote the line."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setitem(writer._PART_BYTES, "sends", 500)
    ledger = Ledger(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for number in range(20):
            ledger.send(line(number))
        ledger.close()
    assert numbers(tmp_path) == list(range(20))


def test_a_line_longer_than_a_part_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(writer._PART_BYTES, "sends", 100)
    ledger = Ledger(tmp_path)
    for number, size in enumerate((1000, 3_000_000, 10)):
        ledger.send(line(number, "x" * size))
    assert numbers(tmp_path) == [0, 1, 2]
    ledger.close()
    assert numbers(tmp_path) == [0, 1, 2]
    assert not [*tmp_path.rglob("*.raw")]


KILLED = """
import os, signal, sys
from pyjmsack.ledger import Ledger
ledger = Ledger(sys.argv[1])
for number in range(int(sys.argv[2])):
    ledger.send(sys.argv[3].replace("NUMBER", str(number)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_part_that_another_thread_fills_at_once_is_followed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line may be as long as a part. The call that wrote it raised, for example a send."""
    monkeypatch.setitem(writer._PART_BYTES, "sends", 10)
    ledger = Ledger(tmp_path)
    table = ledger._tables["sends"]
    first = table._next_part

    def raced(room: int) -> bool:
        monkeypatch.setattr(table, "_next_part", first)
        opened = first(room)
        table._append(line(2).encode())
        return opened

    monkeypatch.setattr(table, "_next_part", raced)
    ledger.send(line(1))
    ledger.close()
    assert numbers(tmp_path) == [1, 2]


def test_a_killed_process_leaves_every_line_that_it_wrote(tmp_path: Path) -> None:
    template = line(0).replace(",0,", ",NUMBER,")
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path, "5000", template], check=False)
    assert done.returncode == -9
    assert numbers(tmp_path) == [*range(5000)]


@pytest.mark.parametrize("size", [3, 6, 9, 20])
def test_half_a_line_at_the_end_is_left_out(tmp_path: Path, size: int) -> None:
    ledger = Ledger(tmp_path)
    ledger.send(line(1, "with a\nline break"))
    ledger.send(line(2, 'a\n"b\nc')[:size])
    assert numbers(tmp_path) == [1]
    ledger.close()


@pytest.mark.timeout(60)
def test_an_id_of_many_lines_that_was_cut_takes_no_time() -> None:
    """The sender chooses the id, and each line of it was looked for in all lines before."""
    cut = '"ID:' + "\n" * 2_000_000
    assert parse_lines("sends", (line(1) + cut).encode())["seq"].to_pylist() == [1]


def test_a_part_that_is_both_raw_and_parquet_counts_once(tmp_path: Path) -> None:
    """Killed between the two steps."""
    ledger = Ledger(tmp_path)
    ledger.send(line(1))
    [raw] = tmp_path.rglob("sends/*.raw")
    content = raw.read_bytes()
    ledger.close()
    raw.write_bytes(content)
    assert numbers(tmp_path) == [1]


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no limit of the size of a file")
def test_a_part_for_which_the_disk_has_no_room_does_not_stay_and_keep_the_disk_full(tmp_path: Path) -> None:
    """The zeros that found room stayed, up to 4 MB for each connection, and no other program could use the space."""
    program = """
import resource, sys
from pyjmsack.ledger import Ledger
ledger = Ledger(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
ledger.send("x\\n")
ledger.close()
"""
    told = subprocess.run([sys.executable, "-c", program, tmp_path], check=True, capture_output=True, text=True)
    assert "the ledger of this connection ends here" in told.stderr
    assert [*tmp_path.rglob("*.raw")] == []


def test_a_ledger_that_cannot_grow_says_so_once_and_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(writer._PART_BYTES, "sends", 400)
    ledger = Ledger(tmp_path)
    ledger.send(line(1))
    (tmp_path / "sends" / f"{ledger.connection_id}-2.raw").touch()  # the name of the next part is taken
    with caplog.at_level(logging.ERROR, "pyjmsack"):
        for number in range(2, 20):
            ledger.send(line(number))
            ledger.event(f'1700000000123456789,"closed","",{tail("AMQP", "amqp://b", "c")}\n')
    ledger.close()
    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "the ledger of this connection ends here"
    ]
    assert 19 not in numbers(tmp_path)
    assert len(read_ledgers([tmp_path]).table("events")) < 18, "it must not look as if it were complete"


@pytest.mark.parametrize("content", [b"1,2,3\n", b'"ID:1",,x,y,z,confirmed,,"a"\n'])
def test_a_damaged_part_is_named(tmp_path: Path, content: bytes) -> None:
    Ledger(tmp_path)
    (tmp_path / "sends" / "bad-1.raw").write_bytes(content)
    with pytest.raises(LedgerError, match=r"bad-1\.raw is damaged"):
        read_ledgers([tmp_path])


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_part_that_was_cut_short_when_it_was_copied_is_named(tmp_path: Path, share: float) -> None:
    Ledger(tmp_path)
    whole = tmp_path / "sends" / "cut-1.parquet"
    parquet.write_table(SCHEMAS["sends"].empty_table(), whole)
    assert read_ledgers([tmp_path]).table("sends").num_rows == 0
    os.truncate(whole, int(whole.stat().st_size * share))
    with pytest.raises(LedgerError, match=r"cut-1\.parquet is damaged: its \d+ bytes do not end like a Parquet file"):
        read_ledgers([tmp_path])


def test_what_is_no_ledger_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="is not a ledger: expected"):
        read_ledgers([tmp_path])


def test_without_pyarrow_the_factory_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyjmsack.core.factory.find_spec", lambda name: None)
    with pytest.raises(UnsupportedFeatureException, match=r"pyjmsack\[ledger\]"):
        ConnectionFactory("amqp://localhost", ledger=tmp_path)

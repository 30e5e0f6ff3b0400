"""The files of large messages: shared, in order, gone with their last message."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pyjmsack.io import spooling
from pyjmsack.io.spooling import Spooler


class Thread:
    """Stands for the thread that writes: works when the test says so."""

    def __init__(self) -> None:
        self.works: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def __call__(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        self.works.append((work, then))

    def run(self) -> None:
        while self.works:
            work, then = self.works.pop(0)
            work()
            then()


def test_one_write_at_a_time_and_each_is_told() -> None:
    """S168: with the bytes of all messages that still wait."""
    thread, told = Thread(), list[int]()
    spooler = Spooler(thread)
    one, other = spooler.open(None, told.append), spooler.open(None, told.append)
    one.write(b"12")
    one.write(b"345")
    other.write(b"6")
    assert len(thread.works) == 1
    assert one.unwritten == other.unwritten == 6
    one.finish()
    thread.run()
    assert (one.written, other.written, told) == (5, 1, [4, 0, 0])
    assert (one.read(1, 3), other.read(0, 1)) == (b"234", b"6")
    with pytest.raises(OSError, match="2 bytes are missing at its end"):
        other.read(0, 3)


def test_small_pieces_wait_together_and_are_told_once() -> None:
    """S168: a million pieces of a byte, or of none, cost no more than their bytes, whatever the disk does."""
    thread, told = Thread(), list[int]()
    spooler = Spooler(thread)
    one, other = spooler.open(None, told.append), spooler.open(None, told.append)
    one.write(b"0")
    large = b"x" * spooling._SMALL
    for _ in range(1000):
        one.write(b"1")
        other.write(b"2")
        one.write(b"")
    one.write(large)
    one.write(b"3")
    one.write(b"4")
    assert len(spooler._waiting) == 4
    thread.run()
    assert told == [2002 + len(large), 0, 0]
    assert (one.written, other.written) == (1003 + len(large), 1000)
    assert one.read(0, one.written) == b"0" + b"1" * 1000 + large + b"34"
    assert other.read(0, 1000) == b"2" * 1000


def test_messages_share_a_file_one_after_the_other() -> None:
    """S168: a descriptor for each message would be too many."""
    thread = Thread()
    spooler = Spooler(thread)
    places = []
    for number in range(50):
        spool = spooler.open(None, lambda unwritten: None)
        spool.write(b"%04d" % number)
        spool.finish()
        places.append(spool)
    thread.run()
    assert [place.read(0, 4) for place in places] == [b"%04d" % number for number in range(50)]
    assert len({id(place._file) for place in places}) == 1


def test_a_full_file_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "_ENOUGH", 10)
    spooler = Spooler(Thread())
    files = []
    for _ in range(3):
        spool = spooler.open(None, lambda unwritten: None)
        spool.write(b"123456")
        spool.finish()
        files.append(spool._file)
    assert files[0] is files[1] is not files[2]


def test_the_place_of_a_dropped_message_is_used_again() -> None:
    thread = Thread()
    spooler = Spooler(thread)
    kept = spooler.open(None, lambda unwritten: None)
    kept.write(b"kept")
    kept.finish()
    dropped = spooler.open(None, lambda unwritten: None)
    dropped.write(b"dropped")
    dropped.drop()
    dropped.write(b"more")
    after = spooler.open(None, lambda unwritten: None)
    after.write(b"after")
    after.finish()
    thread.run()
    assert (kept.read(0, 4), after.read(0, 5), after._begin) == (b"kept", b"after", 4)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at the open files in /proc")
def test_a_file_is_closed_with_its_last_message_and_has_no_name(tmp_path: Path) -> None:
    """S168: nothing of it stays, whatever ends the process."""
    thread = Thread()
    spooler = Spooler(thread)
    one, other = spooler.open(str(tmp_path), lambda unwritten: None), None
    one.write(b"1")
    one.finish()
    other = spooler.open(str(tmp_path), lambda unwritten: None)
    other.write(b"2")
    other.finish()
    thread.run()
    assert list(tmp_path.iterdir()) == []
    assert inside(tmp_path) == 1
    del one
    assert inside(tmp_path) == 1
    del other
    assert inside(tmp_path) == 0


def test_no_message_goes_into_a_file_that_is_being_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """S168, S166: the caller forgot a large message while the next one arrived, and its consumer ended with an error.

    Closing lets other threads run. Here ``close`` itself does what the loop did meanwhile.
    """
    thread, places = Thread(), list[spooling.Spool]()
    spooler = Spooler(thread)

    def arrive() -> None:
        spool = spooler.open(None, lambda unwritten: None)
        spool.write(b"whole")
        spool.finish()
        places.append(spool)

    class Closing(io.FileIO):
        def close(self) -> None:
            if not self.closed and not places:
                arrive()
            super().close()

    def temporary(**_: object) -> io.FileIO:
        with tempfile.NamedTemporaryFile(delete=False) as made:
            file = Closing(made.name, "r+")
        os.unlink(made.name)
        return file

    monkeypatch.setattr(spooling.tempfile, "TemporaryFile", temporary)
    arrive()
    thread.run()
    first = places.pop()
    del first
    thread.run()
    assert [(spool.error, spool.read(0, 5)) for spool in places] == [(None, b"whole")]


def inside(directory: Path) -> int:
    """Return how many files of a directory this process has open."""
    found = 0
    for path in Path("/proc/self/fd").iterdir():
        try:
            found += os.readlink(path).startswith(str(directory))
        except OSError:  # the descriptor of the look itself
            continue
    return found


def test_an_error_is_kept_and_names_the_options(tmp_path: Path) -> None:
    """S168."""
    thread, told = Thread(), list[int]()
    spool = Spooler(thread).open(str(tmp_path / "none"), told.append)
    spool.write(b"1")
    thread.run()
    spool.write(b"2")
    thread.run()
    assert spool.written == 0
    assert told == [0]
    assert "amqp.spoolDirectory" in str(spool.error)
    assert isinstance(spool.error.__cause__ if spool.error else None, FileNotFoundError)

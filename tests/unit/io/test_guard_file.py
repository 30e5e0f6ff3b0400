"""The file of ``failover.duplicateGuard=sqlite:PATH``: nobody waits for it, and nothing is acknowledged before it is
written (S105)."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from interrupting import Interrupt

from pyjmsack.errors import JMSException
from pyjmsack.io import guard_file
from pyjmsack.io.guard_file import GuardFile, open_guard_file

PATIENCE = 60
KEYS = [b"%d" % number for number in range(1500)]


class User:
    """A session: it writes, asks, and is told."""

    def __init__(self, path: Path, size: int = 1000) -> None:
        self.errors: Queue[JMSException] = Queue()
        self.report = self.errors.put
        self.file: GuardFile = open_guard_file(str(path), size, self.report)

    def opened(self) -> JMSException | None:
        told: Queue[JMSException | None] = Queue()
        self.file.opened(told.put)
        return told.get(timeout=PATIENCE)

    def found(self, *keys: bytes) -> set[bytes]:
        told: Queue[set[bytes]] = Queue()
        self.file.ask(lambda: keys, told.put)
        return told.get(timeout=PATIENCE)

    def write(self, *keys: bytes) -> threading.Event:
        written = threading.Event()
        self.file.write(keys, written.set)
        return written

    def close(self) -> None:
        self.file.close(self.report)


@contextmanager
def using(path: Path, size: int = 1000) -> Iterator[User]:
    user = User(path, size)
    try:
        yield user
    finally:
        user.close()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the file, as another process may."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def stored(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as reader:
        return [key for (key,) in reader.execute("SELECT key FROM processed ORDER BY number")]


def ended(user: User) -> None:
    user.file._thread.join(PATIENCE)
    assert not user.file._thread.is_alive()


def test_a_key_is_in_the_file_when_its_acknowledgement_is_called_for(tmp_path: Path) -> None:
    """A process that is killed then does not undo it."""
    path = tmp_path / "ids"
    with using(path) as user:
        seen: Queue[list[Any]] = Queue()
        user.file.write([b"1", b"2"], lambda: seen.put(stored(path)))
        assert seen.get(timeout=PATIENCE) == [b"1", b"2"]


def test_it_outlives_its_users_is_bounded_and_tells_what_others_wrote(tmp_path: Path) -> None:
    path = tmp_path / "ids"
    with using(path, 100) as user:
        assert user.write(*KEYS).wait(PATIENCE)
    ended(user)
    with using(path, 100) as later:
        assert later.found(KEYS[0], KEYS[-1], b"x") == {KEYS[-1]}
        assert KEYS[-1] not in later.file
        with closing(sqlite3.connect(path)) as other:
            other.execute("INSERT INTO processed (key) VALUES (?)", (b"x",))
            other.commit()
        assert later.found(b"x") == {b"x"}


def test_the_sessions_of_a_process_share_one_thread_which_ends_with_the_last(tmp_path: Path) -> None:
    """S123: and what one wrote the others know at once."""
    with using(tmp_path / "ids") as one:
        with using(tmp_path / "ids") as two:
            assert one.file is two.file
        one.write(b"1")
        assert b"1" in one.file
        assert one.found(b"1") <= {b"1"}
    ended(one)
    assert guard_file._files == {}


def test_a_file_that_is_locked_is_written_later_and_can_be_read_meanwhile(tmp_path: Path) -> None:
    """Acknowledgements wait, in their order; nothing else does, and nobody is told of a short wait."""
    path = tmp_path / "ids"
    order: list[str] = []
    with using(path) as user:
        assert user.write(b"1").wait(PATIENCE)
        with locked(path):
            user.file.write([b"2"], lambda: order.append("2"))
            user.file.write([], lambda: order.append("end"))
            for _ in range(3):
                assert user.found(b"1", b"2") == {b"1"}
            assert order == []
        assert user.write(b"3").wait(PATIENCE)
        assert order == ["2", "end"]
        assert user.errors.empty()


def test_who_uses_a_file_that_stays_locked_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its name, and again only after it could be written."""
    monkeypatch.setattr(guard_file, "_PATIENCE", 0.0)
    path = tmp_path / "ids"
    with using(path) as user:
        assert user.write(b"1").wait(PATIENCE)
        for number in (2, 3):
            with locked(path):
                written = user.write(b"%d" % number)
                error = str(user.errors.get(timeout=PATIENCE))
                assert f"failover.duplicateGuard=sqlite:{path}: database is locked" in error
                assert "acknowledged when the file can be written" in error
                assert user.found(b"1") == {b"1"}
            assert written.wait(PATIENCE)
        assert user.errors.empty()


def test_a_broken_file_is_told_at_once_and_mended(tmp_path: Path) -> None:
    """Somebody dropped its table: the next try makes it again."""
    path = tmp_path / "ids"
    with using(path) as user:
        assert user.opened() is None
        with closing(sqlite3.connect(path)) as other:
            other.execute("DROP TABLE processed")
        assert user.write(b"1").wait(PATIENCE)
        assert "no such table" in str(user.errors.get(timeout=PATIENCE))
        assert stored(path) == [b"1"]


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_somebody_replaces_is_told_and_gets_the_keys_of_this_process(tmp_path: Path, how: str) -> None:
    """The keys went into a file without a name. After a restart all messages since then were handed out twice, and
    nobody was told."""
    path, other = tmp_path / "ids", tmp_path / "backup"
    with using(path) as user:
        assert user.write(b"1").wait(PATIENCE)
        if how == "replaced":
            with closing(sqlite3.connect(other)) as backup:
                backup.execute("CREATE TABLE processed (number INTEGER PRIMARY KEY, key BLOB UNIQUE)")
            other.replace(path)
        for name in ("ids", "ids-wal", "ids-shm"):
            if how == "removed" or name != "ids":
                (tmp_path / name).unlink(missing_ok=True)
        assert user.write(b"2").wait(PATIENCE)
        assert "was replaced or removed while it was in use" in str(user.errors.get(timeout=PATIENCE))
        assert sorted(stored(path)) == [b"1", b"2"]
        assert user.write(b"3").wait(PATIENCE)
        assert user.errors.empty()


def test_a_program_that_changes_its_directory_keeps_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with using(Path("ids")) as user:
        assert user.write(b"1").wait(PATIENCE)
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert user.write(b"2").wait(PATIENCE)
        assert user.errors.empty()
    assert stored(tmp_path / "ids") == [b"1", b"2"]
    assert [entry.name for entry in (tmp_path / "elsewhere").iterdir()] == []


def test_a_file_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    """The text names the option and the file."""
    path = tmp_path / "no" / "such" / "folder"
    with using(path) as user:
        assert f"failover.duplicateGuard=sqlite:{path}: unable to open" in str(user.opened())


def test_what_cannot_be_written_is_not_acknowledged_when_the_last_session_ends(tmp_path: Path) -> None:
    """S105: it comes again. The ends of links and sessions that wait behind it are still told to the broker."""
    path = tmp_path / "ids"
    order: list[str] = []
    with locked_after_use(path) as user:
        user.file.write([b"2"], lambda: order.append("acknowledged"))
        user.file.write([], lambda: order.append("closed"))
        user.close()
        ended(user)
    assert order == ["closed"]
    assert stored(path) == [b"1"]


@contextmanager
def locked_after_use(path: Path) -> Iterator[User]:
    user = User(path)
    assert user.write(b"1").wait(PATIENCE)
    with locked(path):
        yield user


def test_more_than_the_file_remembers_may_not_wait(tmp_path: Path) -> None:
    """Else a key would be forgotten before it is written."""
    path = tmp_path / "ids"
    with using(path, 3) as user:
        assert user.write(b"0").wait(PATIENCE)
        with locked(path):
            events = []
            for number in range(1, 4):
                assert not user.file.full
                events.append(user.write(b"%d" % number))
            assert user.file.full
        assert all(event.wait(PATIENCE) for event in events)
        assert not user.file.full


def test_a_question_that_cannot_be_answered_is_asked_again_now_and_then_and_ends_with_the_last_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread neither runs without a pause beside a broken disk, nor for ever after the last session."""
    path = tmp_path / "ids"
    tries: list[str] = []
    answers: list[set[bytes]] = []
    user = User(path)
    assert user.opened() is None
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE processed")

    def broken(*_: Any, **__: Any) -> None:
        tries.append("")
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(guard_file, "_RETRY", 60.0)
    monkeypatch.setattr(guard_file.sqlite3, "connect", broken)
    user.file.ask(lambda: [b"1"], answers.append)
    assert "no such table" in str(user.errors.get(timeout=PATIENCE))
    user.close()
    ended(user)
    assert len(tries) <= 2
    assert answers == []


def test_an_error_that_is_not_sqlites_is_told_and_the_thread_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S105: else each later acknowledgement would wait for ever."""
    with using(tmp_path / "ids") as user:
        assert user.opened() is None
        with monkeypatch.context() as patch:
            patch.setattr(user.file, "_insert", lambda rows: [].pop())
            written = user.write(b"1")
            assert "acknowledged when the file can be written" in str(user.errors.get(timeout=PATIENCE))
        assert written.wait(PATIENCE)


def test_a_question_whose_keys_cannot_be_made_is_answered_and_keeps_no_other_waiting(tmp_path: Path) -> None:
    """One bad message costs itself alone."""

    def broken() -> list[bytes]:
        raise MemoryError

    with using(tmp_path / "ids") as user:
        assert user.write(b"1").wait(PATIENCE)
        told: Queue[set[bytes]] = Queue()
        user.file.ask(broken, told.put)
        assert told.get(timeout=PATIENCE) == set()
        assert user.found(b"1") == {b"1"}


def test_a_process_without_a_thread_for_it_refuses_one_session_and_leaves_no_user_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next session tries again, and the thread ends with the last one."""
    path = tmp_path / "ids"

    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            User(path)
    with using(path) as user:
        assert user.write(b"1").wait(PATIENCE)
    ended(user)


def test_a_lock_between_two_steps_of_the_opening_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table was missing then, although the session had been told that the file can be used."""
    connect = sqlite3.connect

    class Locked(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            if "CREATE" in arguments[0]:
                monkeypatch.setattr(sqlite3, "connect", connect)
                raise sqlite3.OperationalError("database is locked")
            return super().execute(*arguments)

    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **named, factory=Locked))
    with using(tmp_path / "ids") as user:
        assert user.opened() is None
        assert user.found(b"a") == set()
        assert user.errors.empty()


def test_processes_that_remember_few_messages_each_do_not_let_the_file_grow(tmp_path: Path) -> None:
    path = tmp_path / "ids"
    for run in range(5):
        with using(path, size=10) as user:
            assert user.write(*(b"%d-%d" % (run, number) for number in range(8))).wait(PATIENCE)
        ended(user)
    assert len(stored(path)) == 10


def test_a_size_that_was_lowered_takes_effect_in_steps_between_which_questions_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement removed millions of keys, and no consumer of the file got a message for a minute."""
    monkeypatch.setattr(guard_file, "_TRIMMED_AT_ONCE", 7)
    path = tmp_path / "ids"
    with using(path, size=100) as user:
        assert user.write(*(b"%d" % number for number in range(50))).wait(PATIENCE)
    ended(user)
    left = []
    with using(path, size=10) as user:
        for number in range(7):
            assert user.write(b"new %d" % number).wait(PATIENCE)
            left.append(len(stored(path)))
    ended(user)
    assert left == [44, 38, 32, 26, 20, 14, 10]


def test_one_acknowledgement_of_many_messages_does_not_let_the_file_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLIENT_ACKNOWLEDGE writes the keys of all its messages at once."""
    monkeypatch.setattr(guard_file, "_TRIMMED_AT_ONCE", 7)
    monkeypatch.setattr(guard_file, "_TRIM_EVERY", 10)
    path = tmp_path / "ids"
    with using(path, size=10) as user:
        for run in range(5):
            assert user.write(*(b"%d-%d" % (run, number) for number in range(50))).wait(PATIENCE)
    ended(user)
    assert len(stored(path)) == 10


def test_ctrl_c_at_any_step_of_an_acknowledgement_keeps_no_lock_that_the_loop_of_all_connections_needs(
    tmp_path: Path,
) -> None:
    """The steps inside of the standard library count, too. A condition of ``threading`` stayed locked."""

    with using(tmp_path / "guard") as user:
        assert user.opened() is None
        for event in range(1, 200):
            interrupt = Interrupt(event)
            interrupt.run(partial(user.file.write, (b"%d" % event,), bool))
            loop = threading.Thread(target=user.file.ask, args=(tuple, bool), daemon=True)
            loop.start()
            loop.join(PATIENCE)
            assert not loop.is_alive(), f"the loop stands still after Ctrl-C at event {event}"
            if interrupt.left > 0:
                break
        else:
            pytest.fail("the call has more steps than the test")
        assert event > 3
        assert user.write(b"last").wait(PATIENCE)
        assert user.found(b"%d" % event) == {b"%d" % event}

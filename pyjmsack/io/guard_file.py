"""The file of ``failover.duplicateGuard=sqlite:PATH``, and the only thread that uses it.

A disk may be slow or full, and another process may lock the file. Therefore no loop waits for the file. Callers give
their work to the thread, and the thread calls them when the work is done. ``core/guard.py`` has ``Store``, the
interface of every store, and chooses the store of a guard.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
from _thread import allocate_lock
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TypeVar

from pyjmsack.errors import JMSException
from pyjmsack.io.forks import at_end_of_child, own_lock, shared_lock
from pyjmsack.loggers import get_logger
from pyjmsack.spi.guard_file import Answer, Keys, Report

__all__ = ["GuardFile", "open_guard_file"]

log = get_logger("pyjmsack")
T = TypeVar("T")

_ROWS = 500
"""The number of keys that one statement writes or looks up."""
_TRIM_EVERY = 1000
_TRIMMED_AT_ONCE = 2000
"""The number of keys that one statement removes after a small write. The file has far more old keys if
``duplicateGuardSize`` was lowered, and lookups must not wait until all are removed."""
_BUSY = 0.1
"""The number of seconds for which one statement waits while another process locks the file. After that, the thread does
the lookups that came meanwhile, before it tries the statement again.
"""
_RETRY = 0.2
"""Seconds until the next try after the file could not be written."""
_PATIENCE = 5.0
"""Seconds for which another process may lock the file. After that, the sessions that use the file get an error."""
_SCHEMA = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "CREATE TABLE IF NOT EXISTS processed (number INTEGER PRIMARY KEY, key BLOB UNIQUE)",
)
_files: dict[tuple[int, str], GuardFile] = {}
_opening = shared_lock()


def open_guard_file(path: str, size: int, report: Report) -> GuardFile:
    """Return the object for a file. All sessions of this process that name the same file share one object. Each session
    has to close the object.

    Args:
        path: the path of the file, which is created if it does not exist.
        size: the largest number of keys that are remembered.
        report: called with the error if the disk fails, on the thread of the file. Further errors are not reported
            until the file has worked again.
    """
    place = os.getpid(), os.path.realpath(path)
    with _opening:
        file = _files.get(place)
        if file is None or not file.share(report):
            file = _files[place] = GuardFile(path, size, partial(_files.pop, place, None))
            file.share(report)
        at_end_of_child(_finish_all)
        return file


class GuardFile:
    """A set of keys of processed messages, kept in a file. :class:`pyjmsack.spi.guard_file.GuardFile` explains the
    methods."""

    def __init__(self, path: str, size: int, gone: Callable[[], object]) -> None:
        self._path = path
        self._absolute = os.path.abspath(path)
        """The path that is opened, also after the program has changed its directory."""
        self._gone = gone
        self._size = size
        self._recent: OrderedDict[bytes, None] = OrderedDict()
        """The keys that this process wrote, or is about to write."""
        self._left: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        """Work that the thread has not seen yet: calls that put it into the queues below. ``None`` only wakes the
        thread. There is no lock around this queue, because the loop of all connections leaves work here too, and
        Ctrl-C may leave a :class:`threading.Condition` locked for ever."""
        self._sharing = own_lock()
        self._openers: deque[Callable[[JMSException | None], None]] = deque()
        self._questions: deque[tuple[Keys, Answer]] = deque()
        self._writes: deque[tuple[Sequence[bytes], Callable[[], None]]] = deque()
        self._unwritten: deque[None] = deque()
        """Has an entry for each write that is not done, also while the write is on its way to the thread."""
        self._users: list[Report] = []
        self._database: sqlite3.Connection | None = None
        self._place: tuple[int, int] | None = None
        """The device and the number of the open file. Another file with the same name has another number."""
        self._replaced = False
        """True if the open file is another one than before, and does not have the keys of this process yet."""
        self._added = 0
        self._failing_since: float | None = None
        self._told = False
        self._stuck = False
        """True if the last try failed before the thread had done the lookups. The lookups then wait for the next
        try."""
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="pyjmsack-guard", daemon=True)

    # -- for the sessions; from any thread ----------------------------------------------------------------------

    def share(self, report: Report) -> bool:
        """Add a session that uses the file. Return False if the last session has closed the file already."""
        with self._sharing:
            if self._ended:
                return False
            if not self._thread.is_alive():
                self._thread.start()  # before the session is added, because the system may refuse a new thread
            self._users.append(report)
            return True

    def close(self, report: Report) -> None:
        """Remove a session that uses the file.

        The thread still writes the keys of this session. After the last session was removed, the thread ends at the
        first failure of the disk.
        """
        with suppress(ValueError):  # the session was removed before
            self._users.remove(report)
        self._left.put(None)

    def opened(self, answer: Callable[[JMSException | None], None]) -> None:
        """Call ``answer(None)`` when the file can be used, or ``answer(error)`` if it cannot be used."""
        self._leave(self._openers, answer)

    def ask(self, keys: Keys, answer: Answer) -> None:
        """Let the thread call ``keys()``, look these keys up in the file, and call ``answer`` with the keys that the
        file contains. Another process may have written them."""
        self._leave(self._questions, (keys, answer))

    def write(self, keys: Sequence[bytes], then: Callable[[], None]) -> None:
        """Remember keys, and call ``then`` when these and all earlier keys are in the file."""
        for key in keys:
            self._recent[key] = None
        while len(self._recent) > self._size:
            self._recent.popitem(last=False)
        self._unwritten.append(None)
        self._leave(self._writes, (keys, then))

    def __contains__(self, key: bytes) -> bool:
        return key in self._recent

    @property
    def full(self) -> bool:
        """True if the number of waiting writes has reached the number of keys that the file remembers. If more keys
        came now, some keys would be forgotten before they are written."""
        return len(self._unwritten) >= self._size

    def _leave(self, queue: deque[T], work: T) -> None:
        self._left.put(partial(queue.append, work))  # one step, so that Ctrl-C cannot leave half of it behind

    def finish(self, timeout: float) -> None:
        """Wait until the work that waits now is done, or until ``timeout`` seconds have passed."""
        working = allocate_lock()
        working.acquire()
        self.write((), working.release)
        if self._thread.is_alive():
            working.acquire(True, timeout)

    # -- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._wait():
            try:
                self._stuck = True
                self._open()
                self._answer()
                self._stuck = False
                self._write()
                self._failing_since, self._told = None, False
            except Exception as error:  # any error: without this thread nothing would be acknowledged any more
                self._failed(error)
        # a callback without keys still runs; an acknowledgement whose keys cannot be written is not sent
        for keys, then in self._writes:
            if not keys:
                self._call(then)
        self._close_database()

    def _wait(self) -> bool:
        """Wait for work, or for the next try after a failure. Return False if the thread has to end."""
        while True:
            self._take_in()
            if self._openers or self._questions or self._writes:
                answers = (self._questions or self._openers) and not self._stuck
                if self._failing_since is None or answers:
                    return True
                if self._users:
                    self._take_in(_RETRY)
                    return True
            if not self._users and self._may_end():
                return False
            if not (self._openers or self._questions or self._writes):
                self._take_in(None)

    def _may_end(self) -> bool:
        """Return whether the thread ends, because no session uses the file, and nothing is left that can be done."""
        with self._sharing:
            if self._users or not self._left.empty():
                return False
            self._ended = True
            self._gone()
        if self._writes:
            log.error(
                "failover.duplicateGuard=sqlite:%s cannot be written, and is given up;"
                " messages may be handed out twice",
                self._path,
            )
        return True

    def _take_in(self, timeout: float | None = 0) -> None:
        """Put the work that callers left into the queues of the thread. If there is none, wait for ``timeout`` seconds;
        ``None`` means without limit."""
        if not self._take_all() and timeout != 0:
            # only now: CPython 3.10 to 3.12 may wait for ever if the time runs out at the beginning of ``get``. After
            # ``get_nowait`` has found nothing, only a signal that reaches this very thread could cause that
            with suppress(Empty):
                leave = self._left.get(True, timeout)
                if leave is not None:
                    leave()
            self._take_all()

    def _take_all(self) -> bool:
        """Take in the work that is there. Return whether there was an entry."""
        found = False
        with suppress(Empty):
            while True:
                leave = self._left.get_nowait()
                found = True
                if leave is not None:
                    leave()
        return found

    def _open(self) -> None:
        if self._database is not None and self._found() != self._place:
            self._close_database()  # nobody else would ever see what is written to the open file
            self._replaced = True
        if self._database is None:
            self._database = self._prepared()
            self._place = self._found()
            # set so high that the first write trims the file, because otherwise processes that end early would let the
            # file grow without end
            self._added = _TRIM_EVERY
        if self._replaced:
            self._insert([*self._recent])
            self._replaced = False
            self._report(
                "the file was replaced or removed while it was in use; the messages of this process are in the new file"
                " now, and other messages that were processed may be handed out twice"
            )
        while self._openers:
            self._call(self._openers.popleft(), None)

    def _found(self) -> tuple[int, int] | None:
        """Return the device and the number of the file that has the name now, or ``None`` if there is no such file."""
        try:
            found = os.stat(self._absolute)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # the process may not look there any more, but the open file still works
            return self._place
        return found.st_dev, found.st_ino

    def _error(self, why: object) -> JMSException:
        return JMSException(f"failover.duplicateGuard=sqlite:{self._path}: {why}")

    def _report(self, why: object) -> None:
        error = self._error(why)
        for report in [*self._users]:
            self._call(report, error)

    def _prepared(self) -> sqlite3.Connection:
        """Open the file, make its table if there is none, and return the database."""
        database = sqlite3.connect(self._absolute, isolation_level=None, timeout=_BUSY)
        try:
            for statement in _SCHEMA:
                database.execute(statement)
        except BaseException:  # for example, another process has locked the file; the next try opens the file again
            database.close()
            raise
        return database

    def _answer(self) -> None:
        assert self._database is not None
        while self._questions:
            keys, answer = self._questions[0]
            wanted = self._made(keys)
            found: set[bytes] = set()
            for start in range(0, len(wanted), _ROWS):
                some = wanted[start : start + _ROWS]
                marks = ",".join("?" * len(some))
                rows = self._database.execute(f"SELECT key FROM processed WHERE key IN ({marks})", some)  # noqa: S608 - marks only
                found.update(key for (key,) in rows)
            self._questions.popleft()
            self._call(answer, found)
            self._take_in()

    def _write(self) -> None:
        assert self._database is not None
        while self._writes and not self._questions:
            batch: list[Callable[[], None]] = []
            rows: list[bytes] = []
            for keys, then in islice(self._writes, _ROWS):
                if rows and len(rows) + len(keys) > _ROWS:
                    break
                rows += keys
                batch.append(then)
            self._insert(rows)
            for then in batch:
                self._writes.popleft()
                self._unwritten.popleft()
                self._call(then)
            self._take_in()

    def _insert(self, rows: Sequence[bytes]) -> None:
        assert self._database is not None
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            marks = ",".join(["(?)"] * len(some))
            self._database.execute(f"INSERT OR IGNORE INTO processed (key) VALUES {marks}", some)  # noqa: S608 - marks only
        self._added += len(rows)
        if self._added >= _TRIM_EVERY:
            self._added = 0
            if self._trim(max(_TRIMMED_AT_ONCE, 2 * len(rows))):
                self._added = _TRIM_EVERY  # the next write goes on

    def _trim(self, most: int) -> bool:
        """Remove the oldest keys, at most so many. Return whether there are more keys to remove."""
        assert self._database is not None
        ends = "SELECT (SELECT min(number) FROM processed), (SELECT max(number) FROM processed)"
        oldest, newest = self._database.execute(ends).fetchone()
        if newest is None:
            return False
        until = min(newest - self._size, oldest + most - 1)
        self._database.execute("DELETE FROM processed WHERE number <= ?", (until,))
        return bool(until < newest - self._size)

    @staticmethod
    def _made(keys: Keys) -> Sequence[bytes]:
        """Return the keys of one lookup. Return no keys if ``keys`` raises an error.

        An error must not stop the thread here, because other lookups wait.
        """
        try:
            return keys()
        except Exception:
            log.exception("failover.duplicateGuard: some messages are not looked up, and may be handed out twice")
            return ()

    def _failed(self, error: Exception) -> None:
        """Report an error. The waiting work is kept for the next try.

        A lock is reported only after a while, because it may soon be released. Any other error is reported at once.
        """
        locked = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
        now = monotonic()
        self._failing_since = since = now if self._failing_since is None else self._failing_since
        if not locked:
            self._close_database()  # the next try opens the file again, or makes it
        if locked and now - since < _PATIENCE:
            return
        while self._openers:
            self._call(self._openers.popleft(), self._error(error))
        if not self._told:
            self._told = True
            self._report(f"{error}; processed messages are acknowledged when the file can be written")

    def _close_database(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with suppress(sqlite3.Error):  # no key is lost by an error here, because each statement was a transaction
                database.close()

    @staticmethod
    def _call(call: Callable[..., None], *arguments: object) -> None:
        try:
            call(*arguments)
        except Exception:  # such as a loop that is closed; the other callbacks must be called
            log.debug("a session that used the guard's file is gone", exc_info=True)


@atexit.register
def _finish_all() -> None:
    """Wait until the waiting keys are in the file. This runs at the end of the program, because a program may end
    without closing its connections.

    After each write, the thread also sends the acknowledgements that waited for the write.
    """
    for (process, _), file in [*_files.items()]:
        if process == os.getpid():
            file.finish(timeout=2.0)

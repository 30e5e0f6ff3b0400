"""How the blocking face waits: locks for callers, one thread per dispatcher, the shared loop thread for I/O."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from pyjmsack.core.runtime import Command, refuse_commands, run_commands, taken
from pyjmsack.core.steps import Steps
from pyjmsack.errors import IllegalStateException
from pyjmsack.io.thread import LoopThread
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Timer

__all__ = ["SyncRuntime", "ThreadDispatcher"]

log = logging.getLogger("pyjmsack")
BURST = 100
"""Commands that may wait for the loop before their thread waits too."""
GATHER = 0.001
"""Seconds that commands which nobody waits for may gather before the loop is woken for them."""
_JOIN_TIMEOUT = 5.0
"""Seconds to wait for the thread of a listener that does not return; it is a daemon and ends with its listener."""
_FOREIGN = "this connection belongs to the parent process; make one in this process"
T = TypeVar("T")


def wait(completion: Completion[Any], timeout: float | None) -> bool:
    """Block until the completion is done; False if ``timeout`` seconds passed first. Ctrl-C gets through."""
    lock = allocate_lock()
    lock.acquire()
    completion.add_callback(lambda _: lock.release())
    return lock.acquire(True, -1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)) or completion.done


class SyncRuntime:
    """One connection's outbox to the loop thread.

    Commands run in order; the loop is woken once per burst, and the provider flushes once per burst.

    Args:
        thread: of the loop; :meth:`close` gives it back.
        flush: sends what the commands of a burst produced.
        keeps_process: whether the process lives as long as the connection (``jms.useDaemonThread=false``).
    """

    def __init__(self, thread: LoopThread, flush: Callable[[], None], *, keeps_process: bool = False) -> None:
        self._thread = thread
        self.loop = thread.loop
        self._flush = flush
        self._pid = os.getpid()
        self._outbox: deque[Command] = deque()
        self._woken = False
        self._gathering = False
        self._timer: Timer | None = None
        self._ran_at = 0.0
        self._written: deque[Completion[None]] = deque()
        self._closed = False
        self._closing = threading.Lock()
        self.keeper = Keeper() if keeps_process else None
        _open.add(self)

    def submit(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Queue a command for the loop; a long burst waits for the loop to catch up."""
        outbox = self._outbox
        outbox.append((command, arguments))
        if not self._woken:
            self._wake()
        elif len(outbox) >= BURST:
            self._hand_over()

    submit_from_thread = submit
    """Any thread may submit."""

    def submit_lazily(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Queue a command that nobody waits for yet. The first one wakes the loop; those that follow at once gather for
        ``GATHER`` seconds, until ``BURST`` of them are there, or until somebody waits (:meth:`hurry`)."""
        outbox = self._outbox
        outbox.append((command, arguments))
        if self._woken:
            if len(outbox) >= BURST:
                self._hand_over()
        elif len(outbox) >= BURST:
            self._wake()
        elif not self._gathering:
            if monotonic() - self._ran_at < GATHER:
                self._gather()
            else:
                self._wake()

    def elsewhere(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Run ``work`` on a thread of the loop's executor, then ``then`` on the loop. Called on the loop."""
        self.loop.run_in_executor(None, work).add_done_callback(lambda _: then())

    def away(self, work: Callable[[], Any]) -> Any:
        """Run work that waits for a disk: here, on the caller's thread."""
        return work()

    def hurry(self) -> None:
        """Somebody waits for what was queued lazily."""
        if self._gathering and not self._woken:
            self._wake()

    def _hand_over(self) -> None:
        """Let the loop thread have the interpreter until the burst is on the wire.

        A thread that computes gives the interpreter away only every 5 ms, and the loop would wait that long after each
        of its system calls; measured, this halves the throughput of pipelined sends.
        """
        if threading.get_ident() != self._thread.ident:
            written: Completion[None] = Completion()
            self._written.append(written)
            if self._woken:
                wait(written, None)

    def _wake(self) -> None:
        if self._usable():
            try:
                self._woken = True
                self.loop.call_soon_threadsafe(self._run)
            except BaseException:  # Ctrl-C in between: the next command must wake the loop
                self._woken = False
                raise

    def _gather(self) -> None:
        if self._usable():
            try:
                self._gathering = True
                self.loop.call_soon_threadsafe(self._await_company)
            except BaseException:
                self._gathering = False
                raise

    def _await_company(self) -> None:
        if self._gathering and self._timer is None:
            self._timer = self.loop.call_later(GATHER, self._run)

    def _usable(self) -> bool:
        if self._closed:  # by another thread, a moment ago: nobody may wait for what will not run
            refuse_commands(self._outbox, IllegalStateException("the connection is closed"))
            return False
        if self._pid != os.getpid():
            raise IllegalStateException(_FOREIGN)
        return True

    def _run(self) -> None:
        self._woken = self._gathering = False  # first: what is appended from here on wakes the loop again
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        run_commands(self._outbox)
        try:
            self._flush()
        finally:  # whatever becomes of the stream, nobody waits for its burst for ever
            self._ran_at = monotonic()
            if self._written:  # after the turn that comes, so that what the broker answered meanwhile is handled first
                self.loop.call_soon(self.loop.call_soon, self._release)

    def _release(self) -> None:
        while self._written:
            self._written.popleft().succeed()

    def run(self, steps: Steps[T]) -> T:
        """Drive steps to their end on the caller's thread."""
        if self._pid != os.getpid():
            raise IllegalStateException(_FOREIGN)
        if not self._closed and threading.get_ident() == self._thread.ident:  # an ended thread's number is used again
            steps.close()
            raise IllegalStateException("a blocking call on the I/O thread would wait for itself")
        try:
            completion, timeout = next(steps)
            while True:
                if not completion.done:
                    self.hurry()
                completion, timeout = steps.send(completion.done or wait(completion, timeout))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # Generator's return type is lost in StopIteration
        except BaseException:
            steps.close()  # Ctrl-C while waiting: let the steps clean up
            raise

    def call_later(self, delay: float, callback: Callable[[], None]) -> None:
        """Run ``callback`` on the loop after ``delay`` seconds."""
        self.submit(self.loop.call_later, delay, callback)

    thread = staticmethod(threading.get_ident)

    def lock(self) -> AbstractContextManager[Any]:
        """Return a new lock."""
        return threading.Lock()

    def dispatcher(self, name: str) -> ThreadDispatcher:
        """Return a new dispatcher."""
        return ThreadDispatcher(name)

    def flush_out(self, timeout: float | None) -> None:
        """Wait until what is queued now has run on the loop."""
        if not self._closed and self._pid == os.getpid():
            done: Completion[None] = Completion()
            self.submit(done.succeed)
            wait(done, timeout)

    def close(self) -> None:
        """Give the loop thread back, once what is queued has run. Idempotent, from any thread."""
        if self._pid == os.getpid():
            with self._closing:
                if not self._closed:
                    self.flush_out(None)
                    self._closed = True
                    self._thread.release()
                    if self.keeper is not None:
                        self.keeper.end()


class Keeper:
    """Keeps the process alive until the connection is closed or lost, as a thread that is no daemon does
    (``jms.useDaemonThread=false``)."""

    def __init__(self) -> None:
        self._over = threading.Event()
        threading.Thread(target=self._over.wait, name="pyjmsack-keeper").start()

    def end(self) -> None:
        """The process may end. Idempotent, from any thread."""
        self._over.set()

    def on_connection_failure(self, error: object) -> None:
        """The connection is lost for good."""
        self.end()


_open: weakref.WeakSet[SyncRuntime] = weakref.WeakSet()


@atexit.register
def _flush_open_connections() -> None:
    """A program that ends without closing its connections still hands the loop what it sent and acknowledged."""
    for runtime in [*_open]:
        runtime.flush_out(timeout=2.0)


class ThreadDispatcher:
    """Runs calls in order on a daemon thread that starts with the first one.

    A call stays in ``_calls`` until it is over, so that it counts as queued or at work at every moment.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: deque[Callable[[], Any]] = deque()
        self._signal: SimpleQueue[None] = SimpleQueue()
        """Has an entry when there is something to look for. One too many does no harm."""
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._waiters: deque[Completion[None]] = deque()

    def submit(self, call: Callable[[], Any]) -> None:
        """Queue a call. A late one, after ``close``, gets a short-lived thread: nobody's callback is dropped."""
        with self._starting:
            if not self._closed:
                self._calls.append(call)
                self._wake()
                return
        threading.Thread(target=self._guarded, args=(call,), name=self._name, daemon=True).start()

    def _wake(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        self._signal.put(None)

    def _run(self) -> None:
        me = threading.current_thread()
        with self._starting:
            if self._thread not in (None, me):  # Ctrl-C came when I had just been started, and there is another one now
                return
            self._thread = me
        closed = False
        while not closed:
            self._signal.get()
            closed = self._closed  # first: then all that was queued before is there
            while self._calls:
                self._guarded(self._calls[0])
                self._calls.popleft()
                if self._waiters:
                    self._release_waiters()

    def _guarded(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except BaseException:  # whatever a listener does, the next call must run
            log.exception("a listener raised on %s", self._name)

    def _release_waiters(self) -> None:
        for waiter in taken(self._waiters):
            waiter.succeed()

    def running_here(self) -> bool:
        """Whether the caller is inside a call of this dispatcher."""
        return self._thread is not None and self._thread.ident == threading.get_ident()

    @property
    def busy(self) -> bool:
        """Whether a call is at work or queued."""
        return bool(self._calls)

    def idle(self) -> Steps[None]:
        """Wait for the call at work. The waiter is published before ``_calls`` is read; the thread does the reverse."""
        if not self._calls or self.running_here():
            return
        done: Completion[None] = Completion()
        self._waiters.append(done)
        if self._calls:
            with self._starting:
                self._wake()  # Ctrl-C may have taken away who queued a call before it said so
            yield done, None

    def through(self) -> Steps[None]:
        """Wait for all that is queued now."""
        if self._calls and not self.running_here():
            done: Completion[None] = Completion()
            self.submit(done.succeed)
            yield done, None

    def close(self) -> None:
        """Run what is queued, then end; wait for that unless this is the dispatcher's own thread."""
        with self._starting:
            self._closed = True
        self._signal.put(None)
        if self._thread is not None and not self.running_here():
            self._thread.join(_JOIN_TIMEOUT)

"""The ways in which the blocking face waits: locks for callers, one thread for each dispatcher, and the shared loop
thread for I/O."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from pyjmsack.core.runtime import Command, Elsewhere, Later, SecondRun, refuse_commands, run_commands, taken
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.errors import ConnectionLostException, IllegalStateException
from pyjmsack.io.forks import at_end_of_child, when_forked
from pyjmsack.io.helpers import MOST_DIGESTS, Helpers
from pyjmsack.io.thread import LoopThread
from pyjmsack.loggers import get_logger
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Timer

__all__ = ["SyncRuntime", "ThreadDispatcher"]

log = get_logger("pyjmsack")
BURST = 100
"""A thread that has queued this number of commands waits until the loop has run them."""
GATHER = 0.001
"""Seconds for which commands may gather before the loop is woken, if nobody waits for these commands."""
_LAST_SECONDS = 2.0
"""Seconds in which the sends and acknowledgements of all open connections may leave, when the program ends."""
_LOOK = 0.01
"""Seconds until the next look whether the sockets have taken all bytes, when the program ends."""
_AGAIN = 0.1
"""Seconds until the next try after the system refused to start a thread."""
_JOIN_TIMEOUT = 5.0
"""Seconds to wait for the thread of a listener that does not return. The thread is a daemon, and ends with its
listener."""
_FOREIGN = "this connection belongs to the parent process; make a new connection in this process"
_ENDING = "the program is ending, and the I/O thread does not run any more; close connections before the program ends"
T = TypeVar("T")


def _ignore(error: ConnectionLostException) -> None:
    """Stands for the connection that is told of the loss, while there is none yet."""


def wait(completion: Completion[Any], timeout: float | None) -> bool:
    """Block until the completion is done. Return False if ``timeout`` seconds passed first. Ctrl-C ends the wait.

    Raises:
        IllegalStateException: the interpreter is ending. Then Python runs ``__del__`` methods, and no daemon thread.
    """
    if sys.is_finalizing():
        raise IllegalStateException(_ENDING)
    lock = allocate_lock()
    lock.acquire()
    completion.add_callback(lambda _: lock.release())
    return lock.acquire(True, -1 if timeout is None else min(timeout, threading.TIMEOUT_MAX)) or completion.done


class SyncRuntime:
    """One connection's outbox to the loop thread.

    Commands run in order. The loop is woken once for each burst, and the provider flushes once for each burst.

    Args:
        thread: the loop thread. :meth:`close` gives it back.
        flush: sends the bytes that the commands of a burst produced.
        keeps_process: whether the process lives as long as the connection (``jms.useDaemonThread=false``).
    """

    callers_on_loop = False
    idle_acknowledger = None

    def __init__(self, thread: LoopThread, flush: Callable[[], None], *, keeps_process: bool = False) -> None:
        self._thread = thread
        self.loop = thread.loop
        self.elsewhere = Helpers(self.loop, "pyjmsack-digest", MOST_DIGESTS).elsewhere
        """``elsewhere(work, then)`` lets a thread run ``work``, and calls ``then`` on the loop after that."""
        self._flush = flush
        self._pid = os.getpid()
        self._outbox: deque[Command] = deque()
        self._woken = False
        self._second_run = SecondRun()
        self._waking = False
        """Whether a thread set ``_woken`` and may not have told the loop yet."""
        self._lazy = False
        """Whether commands were queued lazily since the last burst."""
        self._gathering = False
        """Whether a timer of the loop will look for commands. In this case a lazy command need not wake the loop."""
        self._timer: Timer | None = None
        self._written: deque[Completion[None]] = deque()
        self._ending = False
        """True while the connection is being closed. Then no timer is set any more, because the loop may end before the
        timer."""
        self._closed = False
        self._lost: ConnectionLostException | None = None
        """The error that each command gets, because the loop ended by itself."""
        self.tell_lost: Callable[[ConnectionLostException], object] = _ignore
        """Called on the thread of the loop if the loop ends by itself."""
        self.finish: Callable[[Completion[None]], object] = Completion.succeed
        """Called on the loop at the end of the program. The function lets its argument succeed when the broker has
        answered each send and has each acknowledgement."""
        self.unwritten: Callable[[], bool] = lambda: False
        """Whether a socket has not taken all bytes yet. Called on the loop at the end of the program."""
        self._closing = threading.RLock()
        self._leavings: deque[Callable[[], None]] = deque([thread.release])
        """The function that gives the loop thread back. The queue is empty after the call, because the function must
        not be called a second time."""
        thread.when_lost(self._on_loop_lost)  # raises if the loop has ended; so the keeper is started after it
        self.keeper = Keeper() if keeps_process else None
        _open.add(self)
        at_end_of_child(_flush_open_connections)

    def submit(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Queue a command for the loop. In a long burst this call waits until the loop has caught up."""
        outbox = self._outbox
        outbox.append((command, arguments))
        if not self._woken:
            self._wake()
        elif len(outbox) >= BURST:
            self._hand_over()

    submit_from_thread = submit
    """Queue a command for the loop. Any thread may call this, as it may call :meth:`submit`."""

    def submit_lazily(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Queue a command that nobody waits for yet. The first such command wakes the loop. Later commands gather for
        ``GATHER`` seconds, until there are ``BURST`` of them, or until a caller waits (:meth:`hurry`).
        """
        outbox = self._outbox
        outbox.append((command, arguments))
        self._lazy = True
        if self._woken:
            if len(outbox) >= BURST:
                self._hand_over()
        elif not self._gathering or len(outbox) >= BURST:
            self._wake()

    def run_queued(self) -> None:
        """Run the queued commands at once. The caller is on the loop thread."""
        run_commands(self._outbox, self._run_later)

    def away(self, work: Callable[[], Any]) -> Any:
        """Run ``work``, which waits for a disk, on the caller's thread."""
        return work()

    def hurry(self) -> None:
        """Wake the loop for the commands that were queued lazily, because a caller waits for them.

        The caller may be a signal handler that interrupted :meth:`_wake` on the same thread. This :meth:`_wake` may not
        have woken the loop yet, and goes on only when the handler returns. So this method wakes the loop itself.
        """
        if self._waking:
            self._tell_loop()
        elif self._gathering and self._outbox and not self._woken:
            self._wake()

    def _hand_over(self) -> None:
        """Let the loop thread have the interpreter until the burst is written to the socket.

        A thread that computes gives the interpreter away only every 5 ms. Without this method the loop would wait up to
        5 ms after each of its system calls. In a measurement, these waits halved the number of sends per second.
        """
        if not self._thread.runs_here():
            written: Completion[None] = Completion()
            self._written.append(written)
            self.hurry()
            if self._woken:
                wait(written, None)

    def _wake(self) -> None:
        if self._usable():
            try:
                self._waking = self._woken = True
                self._tell_loop()
            except BaseException:  # Ctrl-C in between: the next command must wake the loop
                self._woken = False
                raise
            finally:
                self._waking = False

    def _tell_loop(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._run)
            self._second_run.ask(self.loop.call_soon_threadsafe, self.loop.call_later, self._run)
        except RuntimeError:  # the loop has ended, because another thread or a signal handler closed the connection
            if self._lost is None and self._usable():
                raise
        if self._lost is not None:  # set while this thread was about to tell the loop
            self._refuse()

    def _usable(self) -> bool:
        # another thread may just have closed the connection, and no caller may wait for a command that will not run
        if self._closed or self._lost is not None:
            self._refuse()
            return False
        if self._pid != os.getpid():
            raise IllegalStateException(_FOREIGN)
        if sys.is_finalizing():
            raise IllegalStateException(_ENDING)
        return True

    def disown(self) -> None:
        """Let each later command get an error, because this process is a child made by ``fork``. The loop does not run
        in the child, so commands that the parent had queued do not run either.
        """
        self._woken = self._gathering = False

    def _refuse(self) -> None:
        self._woken = False  # so that each later command comes to :meth:`_usable`
        refuse_commands(self._outbox, self._lost or IllegalStateException("the connection is closed"))
        self._release()

    def _on_loop_lost(self, error: ConnectionLostException) -> None:
        """Let each command get an error, and each caller that waits, because the loop has ended by itself."""
        self._lost = error
        self._refuse()
        self.tell_lost(error)

    def _run(self) -> None:
        # before the commands run, so that a command that is appended later wakes the loop again, or waits for the timer
        self._woken = False
        self._gathering, self._lazy = self._lazy and not self._ending, False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            run_commands(self._outbox, self._run_later)
            self._flush()
        finally:  # also if the stream broke, because otherwise a caller would wait for its burst for ever
            if self._gathering:
                self._timer = self.loop.call_later(GATHER, self._run)
            # after the next turn of the loop, so that the broker's answers of this turn are handled first
            if self._written:
                self.loop.call_soon(self.loop.call_soon, self._release)

    def _run_later(self) -> None:
        self.loop.call_soon(self._run)

    def _release(self) -> None:
        while self._written:
            self._written.popleft().succeed()

    def run(self, steps: Steps[T]) -> T:
        """Run an operation of the core (``core/steps.py``) to its end, and block the caller's thread meanwhile."""
        if self._pid != os.getpid():
            raise IllegalStateException(_FOREIGN)
        if self._thread.runs_here():
            steps.close()
            raise IllegalStateException("a blocking call is not allowed on the I/O thread, which would wait for itself")
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

    def call_later(self, delay: float, callback: Callable[[], None]) -> Later:
        """Run ``callback`` on the loop after ``delay`` seconds, unless it is cancelled before."""
        later = Later(callback)
        self.submit(later.start, self.loop.call_later, delay)
        return later

    thread = staticmethod(threading.get_ident)

    def lock(self) -> AbstractContextManager[Any]:
        """Return a new lock. A signal handler may take the lock again if its thread holds the lock already."""
        return threading.RLock()

    def helper(self, name: str) -> Elsewhere:
        """Return a function like :attr:`elsewhere` with a thread of its own."""
        return Helpers(self.loop, name, 1).elsewhere

    def dispatcher(self, name: str) -> ThreadDispatcher:
        """Return a new dispatcher."""
        return ThreadDispatcher(name, self.call_later)

    def let_leave(self) -> Completion[None]:
        """Return what succeeds when each send is answered and the sockets have taken each acknowledgement. The program
        is ending, and the connection stays open.
        """
        gone: Completion[None] = Completion()
        if self._closed or self._pid != os.getpid():
            gone.succeed()
        else:
            # not by ``submit``, which waits for a loop that is held up; as an argument, so that it fails with the loop
            self._outbox.append((self._let_leave, (gone,)))
            self._wake()
        return gone

    def _let_leave(self, gone: Completion[None]) -> None:
        finished: Completion[None] = Completion()
        # in the next turn of the loop, because this burst is not written yet
        finished.add_callback(lambda _: self.loop.call_soon(self._when_written, gone))
        self.finish(finished)

    def _when_written(self, gone: Completion[None]) -> None:
        self._flush()  # for acknowledgements that waited for a file
        if self.unwritten():
            self.loop.call_later(_LOOK, self._when_written, gone)
        else:
            gone.succeed()

    def flush_out(self, timeout: float | None) -> None:
        """Wait until the commands that are queued now have run on the loop."""
        if not self._closed and self._pid == os.getpid():
            done: Completion[None] = Completion()
            self.submit(Completion.succeed, done)  # as an argument, so that it fails if the loop is lost
            self.hurry()
            wait(done, timeout)

    def close(self) -> None:
        """Give the loop thread back after the queued commands have run. Any thread may call this. A second call has no
        effect.
        """
        if self._pid == os.getpid() and not sys.is_finalizing():
            with self._closing:
                if not self._closed:
                    try:
                        self._give_loop_back()
                    finally:  # also if a signal handler has raised, because the process would never end
                        if self.keeper is not None:
                            self.keeper.end()

    def _give_loop_back(self) -> None:
        self._ending = True
        self.flush_out(None)
        self._closed = True
        for leave in taken(self._leavings):  # a signal handler may have taken it out already
            leave()
        # refuse a command that came when the loop ended; the caller of a later command sees ``_closed``
        self._refuse()


class Keeper:
    """Keeps the process alive until the connection is closed or lost (``jms.useDaemonThread=false``), by a thread that
    is not a daemon.
    """

    def __init__(self) -> None:
        # no Event, because Ctrl-C may leave its lock taken, and the loop calls ``end`` too
        self._over: SimpleQueue[None] = SimpleQueue()
        threading.Thread(target=self._over.get, name="pyjmsack-keeper").start()

    def end(self) -> None:
        """Let the process end. Any thread may call this. A second call has no effect."""
        self._over.put(None)

    def on_connection_failure(self, error: object) -> None:
        """Let the process end, because the connection is lost for good."""
        self.end()


_open: weakref.WeakSet[SyncRuntime] = weakref.WeakSet()


def _disown_all() -> None:
    for runtime in [*_open]:
        runtime.disown()


when_forked(_disown_all)


@atexit.register
def _flush_open_connections() -> None:
    """Wait until the sends and acknowledgements of open connections have left, when a program ends without closing its
    connections. All connections share the time. They stay open, because another function for the end of the program
    may use them.
    """
    deadline = Deadline(_LAST_SECONDS)
    leaving = []
    for runtime in [*_open]:
        with suppress(RuntimeError):  # its loop has ended
            leaving.append(runtime.let_leave())
    for gone in leaving:
        wait(gone, deadline.remaining())


class ThreadDispatcher:
    """Runs calls in order on a daemon thread. The thread starts with the first call.

    A call stays in ``_calls`` until it is over. So each call counts as queued or at work at every moment.

    Args:
        name: the name of the thread.
        call_later: ``call_later(seconds, callback)`` calls ``callback`` on the loop after this time. It is used if the
            system refuses a new thread. In this case no error is raised, because the caller may be the loop, in the
            middle of its work for a connection.
    """

    def __init__(self, name: str, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        self._name = name
        self._call_later = call_later
        self._refused = False
        """Whether the system refused the thread, and a timer of the loop will try again."""
        self._calls: deque[Callable[[], Any]] = deque()
        self._signal: SimpleQueue[None] = SimpleQueue()
        """Has an entry when the thread must look for calls. One entry too many does no harm."""
        self._thread: threading.Thread | None = None
        self._starting = threading.RLock()
        self._closed = False
        self._late: deque[Callable[[], Any]] = deque()
        """The calls that came after ``close``."""
        self._late_runs = False
        """Whether a thread runs the late calls, or is about to start."""
        self._waiters: deque[Completion[None]] = deque()

    def submit(self, call: Callable[[], Any]) -> None:
        """Queue a call. A short-lived thread runs the calls that come after ``close``, because no callback may be
        dropped.
        """
        with self._starting:
            if not self._closed:
                self._calls.append(call)
                self._wake()
                return
            self._late.append(call)
            if self._late_runs:
                return
            self._late_runs = True
        self._start_late()

    def _start_late(self) -> None:
        try:
            threading.Thread(target=self._run_late, name=self._name, daemon=True).start()
        except RuntimeError:  # the system refuses new threads
            self._call_later(_AGAIN, self._start_late)

    def _run_late(self) -> None:
        """Run the calls that came after ``close``: one at a time, in order, and after all earlier calls."""
        if self._thread is not None:
            self._thread.join()
        while True:
            with self._starting:
                if not self._late:
                    self._late_runs = False
                    return
                call = self._late.popleft()
            self._guarded(call)

    def _wake(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system refuses new threads
                if not self._refused:
                    self._refused = True
                    self._call_later(_AGAIN, self._wake_again)
                return
            self._thread = thread
        self._signal.put(None)

    def _wake_again(self) -> None:
        with self._starting:
            self._refused = False
            self._wake()

    def _run(self) -> None:
        me = threading.current_thread()
        with self._starting:
            # Ctrl-C came just after this thread was started, and there is another thread now
            if self._thread not in (None, me):
                return
            self._thread = me
        closed = False
        while not closed:
            self._signal.get()
            closed = self._closed  # read before the calls, so that no call from before the close is left behind
            while self._calls:
                self._guarded(self._calls[0])
                self._calls.popleft()
                if self._waiters:
                    self._release_waiters()

    def _guarded(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except BaseException:  # the next call must run after any error of a listener, and of a log handler
            with suppress(BaseException):
                log.exception("a listener raised on %s", self._name)

    def _release_waiters(self) -> None:
        for waiter in taken(self._waiters):
            waiter.succeed()

    def running_here(self) -> bool:
        """Whether the caller is inside a call of this dispatcher."""
        return self._thread is not None and self._thread.ident == threading.get_ident()

    started_here = running_here
    """The same as :meth:`running_here`, because a thread does not know which thread started it."""

    @property
    def busy(self) -> bool:
        """Whether a call is at work or queued."""
        return bool(self._calls)

    def idle(self) -> Steps[None]:
        """Wait until the call that runs now is over.

        This method first adds its waiter, and then reads ``_calls``. The thread first removes a call, and then looks
        for waiters. So either this method finds no call, or the thread finds the waiter.
        """
        if not self._calls or self.running_here():
            return
        done: Completion[None] = Completion()
        self._waiters.append(done)
        if self._calls:
            with self._starting:
                self._wake()  # Ctrl-C may have ended a caller after it queued a call and before it woke the thread
            yield done, None

    def through(self) -> Steps[None]:
        """Wait for all calls that are queued now."""
        if self._calls and not self.running_here():
            done: Completion[None] = Completion()
            self.submit(done.succeed)
            yield done, None

    def let_end(self) -> None:
        """Run the queued calls, then end. Do not wait for the end. A second call has no effect."""
        with self._starting:
            self._closed = True
        self._signal.put(None)

    def close(self, deadline: Deadline | None = None) -> None:
        """Run the queued calls, then end. Wait for the end, unless this is the dispatcher's own thread.

        Args:
            deadline: the latest moment until which this method waits for calls that are at work or queued. Without
                calls the thread ends at once.
        """
        self.let_end()
        if self._thread is not None and not self.running_here():
            left = deadline.remaining() if deadline is not None and self._calls else None
            self._thread.join(_JOIN_TIMEOUT if left is None else min(_JOIN_TIMEOUT, left))

"""The ways in which the asyncio face waits: futures and tasks on the caller's own loop, and no thread."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeGuard, TypeVar

from pyjmsack.aio._ending import Ending
from pyjmsack.aio._work import Work
from pyjmsack.core.runtime import SECOND_RUN, Command, Elsewhere, Later, SecondRun, run_commands
from pyjmsack.core.steps import TURN, Deadline, Steps
from pyjmsack.errors import IllegalStateException
from pyjmsack.io.forks import own_lock, when_forked
from pyjmsack.io.helpers import MOST_DIGESTS, Helpers
from pyjmsack.loggers import get_logger
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.types import Outcome

__all__ = [
    "AioRuntime",
    "Opening",
    "OwnThreads",
    "SessionLock",
    "TaskDispatcher",
    "ends_task",
    "is_cancelled",
    "make_task",
]

log = get_logger("pyjmsack")
T = TypeVar("T")
_AGAIN = 1.0
"""Seconds until a dispatcher continues in a new task, after its task was cancelled or ended by an error."""
_MOST_FILES = 4
"""The largest number of threads with which one connection saves and reads large messages for its callers."""
HAS_CANCELLING = sys.version_info >= (3, 11)
"""Whether a task of asyncio has the method ``cancelling``, which tells how often the task was cancelled."""


class Done:
    """The result of a call that had nothing to wait for. Awaiting the result costs nothing. A program may leave out the
    ``await``.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield  # makes this a generator function


DONE = Done()


class IdleAcknowledger:
    """Belongs to each received message that needs no acknowledgement, so that ``await message.acknowledge()`` works in
    each mode, and does nothing (S12).
    """

    allows_outcome = False
    __slots__ = ()

    def __reduce__(self) -> str:
        """Let such a message be copied and pickled, because no session waits for its outcome."""
        return "_IDLE"

    def acknowledge(self, message: Message) -> Done:
        """Do nothing."""
        return DONE

    def settle(self, message: Message, outcome: Outcome) -> NoReturn:
        """Never called, because ``allows_outcome`` is false."""
        raise NotImplementedError


_IDLE = IdleAcknowledger()


class OwnThreads:
    """Threads that serve one user of the running loop, because other work may keep the executor of the loop busy.

    Args:
        name: the name of the threads.
        most: the largest number of threads. Further calls wait in line.
    """

    def __init__(self, name: str, most: int = 1) -> None:
        self._name, self._most = name, most
        self._loop: asyncio.AbstractEventLoop | None = None
        self._helpers: Helpers | None = None

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Call a function in a thread, and return the future of its result, as :meth:`Helpers.run`."""
        loop = asyncio.get_running_loop()
        if self._helpers is None or self._loop is not loop:
            self._loop, self._helpers = loop, Helpers(loop, self._name, self._most)
        return self._helpers.run(work)


async def wait(completion: Completion[Any], timeout: float | None) -> bool:
    """Wait until the completion is done. Return False if ``timeout`` seconds passed first."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def wake(_: object) -> None:
        if not future.done():
            future.set_result(None)

    completion.add_callback(wake)
    timer = None if timeout is None else loop.call_later(timeout, wake, None)
    try:
        await future
    finally:
        if timer is not None:
            timer.cancel()
    return completion.done


class AioRuntime:
    """One connection's outbox on the caller's loop. Commands run in order, with one flush for each burst.

    Args:
        loop: the caller's loop.
        flush: sends the bytes that the commands of a burst produced.
    """

    callers_on_loop = True
    idle_acknowledger = _IDLE

    def __init__(self, loop: asyncio.AbstractEventLoop, flush: Callable[[], None]) -> None:
        self.loop = loop
        self._flush = flush
        self.elsewhere = Helpers(loop, "pyjmsack-digest", MOST_DIGESTS).elsewhere
        """``elsewhere(work, then)`` lets a thread run ``work``, and calls ``then`` on the loop after that."""
        self.away = Helpers(loop, "pyjmsack-files", _MOST_FILES, daemon=False).run
        """``away(work)`` lets a thread run ``work``, which waits for a disk, and returns a future of the result. The
        process waits for the end of such work, so that no file is half written."""
        self._outbox: deque[Command] = deque()
        self._scheduled = False
        self._second_run = SecondRun()
        self._pid = os.getpid()
        self.ending = Ending()
        self.work = Work(loop)
        _runtimes.add(self)

    def submit(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Queue a command for the end of this turn of the loop.

        Any thread may acknowledge a message, because programs give messages to ``asyncio.to_thread``.

        Raises:
            IllegalStateException: this process is a child of the process that made the connection.
            RuntimeError: the loop is closed.
        """
        self._outbox.append((command, arguments))
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        if self._pid != os.getpid():
            raise IllegalStateException("this connection belongs to the parent process; make a new one in this process")
        loop = self.loop
        elsewhere = loop.is_running() and asyncio._get_running_loop() is not loop
        self._scheduled = True
        try:
            call_soon = loop.call_soon_threadsafe if elsewhere else loop.call_soon
            call_soon(self._run)
            self._second_run.ask(call_soon, loop.call_later, self._run)
        except BaseException:  # the loop is closed: each later command must get the error, too
            self._scheduled = False
            raise

    def disown(self) -> None:
        """Let each later command get an error, because this process is a child made by ``fork``. Commands that the loop
        of the parent was about to run do not run in the child.
        """
        self._scheduled = False

    submit_lazily = submit
    """The same as :meth:`submit`. A later start of the commands would save nothing here, because there is no thread to
    wake."""

    def run_queued(self) -> None:
        """Run the queued commands at once."""
        run_commands(self._outbox, self._run_later)

    def submit_from_thread(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Queue a command from another thread, such as the thread of the guard's file. The loop need not run now."""
        self._outbox.append((command, arguments))
        call_soon = self.loop.call_soon_threadsafe
        call_soon(self._run)
        self._second_run.ask(call_soon, self.loop.call_later, self._run)

    def _run(self) -> None:
        self._scheduled = False
        run_commands(self._outbox, self._run_later)
        self._flush()

    def _run_later(self) -> None:
        self.loop.call_soon(self._run)

    async def run(self, steps: Steps[T]) -> T:
        """Run an operation of the core (``core/steps.py``) to its end in the caller's task. If the task is cancelled,
        the steps are closed, and no message is lost.
        """
        if asyncio.get_running_loop() is not self.loop:
            raise IllegalStateException("this connection belongs to another event loop; make a connection in each loop")
        try:
            completion, timeout = next(steps)
            while True:
                completion, timeout = steps.send(completion.done or await wait(completion, timeout))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # Generator's return type is lost in StopIteration
        except BaseException:
            steps.close()
            raise

    def call_later(self, delay: float, callback: Callable[[], None]) -> Later:
        """Run ``callback`` on the loop after ``delay`` seconds, unless it is cancelled before."""
        later = Later(callback)
        self.submit(later.start, self.loop.call_later, delay)
        return later

    def thread(self) -> int:
        """Always return the same number, because all callers are on the loop."""
        return 1

    def lock(self) -> AbstractContextManager[Any]:
        """Return a new lock, because any thread may acknowledge a message."""
        return own_lock()

    def helper(self, name: str) -> Elsewhere:
        """Return a function like :attr:`elsewhere` with a thread of its own."""
        return Helpers(self.loop, name, 1).elsewhere

    def dispatcher(self, name: str) -> TaskDispatcher:
        """Return a new dispatcher."""
        return TaskDispatcher(self.loop, name, self.ending)


_runtimes: weakref.WeakSet[AioRuntime] = weakref.WeakSet()


def _disown_all() -> None:
    for runtime in [*_runtimes]:
        runtime.disown()


when_forked(_disown_all)


class _CountingTask(asyncio.Task[T]):
    """A task for Python before 3.11. It counts its cancellations, as tasks of later versions do."""

    _cancellations = 0

    def cancel(self, msg: Any | None = None) -> bool:
        self._cancellations += 1
        return super().cancel(msg)

    def cancelling(self) -> int:
        """Return how often somebody cancelled this task."""
        return self._cancellations


def make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T], name: str, *, counts: bool = not HAS_CANCELLING
) -> asyncio.Task[T]:
    """Return a task that has the method ``cancelling`` in each version of Python, also before 3.11."""
    return _CountingTask(coroutine, loop=loop, name=name) if counts else loop.create_task(coroutine, name=name)


def ends_task(error: BaseException | None) -> TypeGuard[BaseException]:
    """Return whether the task that caught this error must end. The task must end if somebody cancelled this very task,
    or if the program ends.

    A ``CancelledError`` may also come from something that the listener awaited. In this case the task goes on. The task
    must come from :func:`make_task`.
    """
    if isinstance(error, asyncio.CancelledError):
        return is_cancelled()
    return error is not None and not isinstance(error, Exception)


def is_cancelled() -> bool:
    """Return whether somebody has cancelled this task, perhaps although nobody raises the error any more.

    A listener may have caught the ``CancelledError`` and gone on. Then ``asyncio.run`` waits for the end of the task.
    Or the listener had a time limit, or a task group, after which the count of cancellations stayed too high, as in
    Python 3.11 and 3.12. The task must come from :func:`make_task`.
    """
    cancelling = getattr(asyncio.current_task(), "cancelling", None)
    return cancelling is not None and cancelling() > 0


_inside: ContextVar[object] = ContextVar("pyjmsack_inside", default=None)
"""The call of a dispatcher in which a task is, or in which the task was started."""
_held: ContextVar[frozenset[object]] = ContextVar("pyjmsack_held", default=frozenset())
"""The turns at session locks for which a task acts."""


class TaskDispatcher:
    """Runs calls in order in a task, and awaits their results. The task lives while there are calls.

    After ``TURN`` seconds of calls the loop has a turn, because a call need not wait for anything.

    If a call ends the task, because somebody cancelled the task or the call raised an error such as ``SystemExit``, the
    queued calls run in a new task, because they may belong to other listeners.

    Args:
        loop: the loop of the connection.
        name: the name of the task.
        ending: says whether the loop is being shut down. Then no new task starts.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, ending: Ending) -> None:
        self._loop = loop
        self._name = name
        self._ending = ending
        ending.add(self)
        self._calls: deque[Callable[[], Any]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._pausing = False
        """Whether queued calls wait for the next task, because the last task was ended from outside."""
        self._pause = _AGAIN
        """Seconds until the next task, if this one ends before the queued calls."""
        self._waiters: list[Completion[None]] = []
        self._behind: set[Completion[None]] = set()
        """The callers of :meth:`through`. When the loop is shut down, the calls before them never run."""
        self._call: object = None
        """An object that stands for the call that runs now. ``None`` if no call runs."""

    def submit(self, call: Callable[[], Any]) -> None:
        """Queue a call."""
        self._calls.append(call)
        self._start()

    def _start(self) -> None:
        if self._task is None and not self._ending.over:
            self._pausing = False
            self._task = make_task(self._loop, self._run(), self._name)
            self._task.add_done_callback(self._ended)

    async def _run(self) -> None:
        if self._task is None:
            # the loop starts tasks eagerly (``asyncio.eager_task_factory``), and this one has begun before the caller
            # of ``make_task`` could note it; without the note the task would not know itself, and the next call would
            # start a second task
            await asyncio.sleep(0)
        _held.set(frozenset())  # this task may have been made inside of a listener of another session
        until = monotonic() + TURN
        while self._calls and not self._ending.over:
            if monotonic() >= until:
                await asyncio.sleep(0)
                until = monotonic() + TURN
            self._call = call = object()
            _inside.set(call)
            try:
                result = self._calls.popleft()()
                if inspect.isawaitable(result):
                    await result
            except BaseException as error:
                if ends_task(error):
                    raise
                log.exception("a listener raised on %s", self._name)
            finally:
                self._call = None
            self._release_waiters()
            if is_cancelled():
                self._pause = 0.0
                return  # the queued calls run in a new task
        self._task = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Continue in a new task if this task ended before its calls were done: somebody cancelled the task, perhaps
        before its first step, or a call raised an error such as ``SystemExit``. Then there is a pause. There is none if
        a call caught the cancellation, because its count may also be too high.
        """
        if self._task is task:
            self._task = None
            self._pausing = bool(self._calls) and not self._ending.over
            self._release_waiters()
            pause, self._pause = self._pause, _AGAIN
            if self._pausing:
                self._loop.call_later(pause, self._go_on)

    def _go_on(self) -> None:
        if self._pausing:
            self._start()

    def _release_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for done in (*waiters, *self._behind) if self._ending.over else waiters:
            done.succeed()

    def give_up(self) -> None:
        """Let nobody wait for calls that never run, because the loop is being shut down."""
        self._pausing = False
        self._release_waiters()

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that runs calls now. ``None`` if no call runs."""
        return self._task

    def running_here(self) -> bool:
        """Whether the caller is inside a call of this dispatcher."""
        return self._task is not None and asyncio.current_task() is self._task

    def started_here(self) -> bool:
        """Whether the caller is inside a call of this dispatcher, or in a task that this call started, such as a task
        of ``gather``. The call may wait for this task."""
        return self._call is not None and _inside.get() is self._call

    @property
    def busy(self) -> bool:
        """Whether a call is at work or queued."""
        return self._task is not None or (self._pausing and not self._ending.over)

    def idle(self) -> Steps[None]:
        """Wait until the call that runs now has ended."""
        if self.busy and not self.running_here():
            done: Completion[None] = Completion()
            self._waiters.append(done)
            yield done, None

    def through(self) -> Steps[None]:
        """Wait for all calls that are queued now."""
        if self.busy and not self.running_here():
            done: Completion[None] = Completion()
            self.submit(done.succeed)
            self._behind.add(done)
            try:
                yield done, None
            finally:
                self._behind.discard(done)

    def let_end(self) -> None:
        """Do nothing, because the task ends by itself when no call is left."""

    def close(self, deadline: Deadline | None = None) -> None:
        """Do nothing, because the task ends by itself when no call is left."""


class SessionLock:
    """Makes the operations of a session take turns: commits, rollbacks, transacted sends and calls of listeners (S15).

    A running listener has its turn, so calls that the listener makes do not wait. Calls in tasks that the listener
    starts (``gather``, ``wait_for``) do not wait either, because these tasks inherit the listener's context.

    A signal handler may raise at the first step of any function, and after any call. So a turn ends with one call of
    the interpreter, and nobody hands the lock over: the first turn in the queue has the lock. If the end of a turn
    could not wake the next one, the second in the queue looks by itself after ``SECOND_RUN`` seconds.
    """

    def __init__(self) -> None:
        self._turns: OrderedDict[Turn, None] = OrderedDict()
        """The turns in their order. The first has the lock, or is about to take it. In a ``dict`` the time to find the
        first would grow with the number of those that have left."""

    async def in_turn(self, work: Callable[[], Awaitable[T]]) -> T:
        """Wait for a turn, unless this task, or the task that started it, has one already. Then await ``work()``, and
        return its result.
        """
        turns, held = self._turns, _held.get()
        first = next(iter(turns), None)
        if first in held:
            return await work()
        turn, token = Turn(), None
        try:
            turns[turn] = None
            if first is not None:
                await self._wait(turn)
            turn.begun = True
            token = _held.set(held | {turn})
            return await work()
        finally:
            try:  # Python 3.10 lets a handler run before the first step of a ``finally``, unless this is a ``try``
                turns.pop(turn, None)
            finally:
                self._leave(token)

    async def _wait(self, turn: Turn) -> None:
        """Wait until this turn is the first. Only the second looks by itself, because there may be very many others."""
        turns, loop, before = self._turns, asyncio.get_running_loop(), None
        while (first := next(iter(turns))) is not turn:
            if first is before and not first.begun:
                turns.pop(first)  # asyncio dropped the step of its task; if it goes on after all, it queues again
                continue
            first.wake()  # the end of the turn before may have failed to do so
            before, turn.future = first, loop.create_future()
            timer = loop.call_later(SECOND_RUN, turn.wake) if turn in islice(turns, 2) else None
            try:
                await turn.future
            finally:
                if timer is not None:
                    timer.cancel()
            turns[turn] = None
        for behind in islice(turns, 1, 2):  # it is the second now, and the end of the turn before may not have told it
            behind.wake()

    def _leave(self, token: Token[frozenset[object]] | None) -> None:
        """Let the next turn begin, and let the one behind it look by itself, after this turn has left the queue."""
        for turn in [*islice(self._turns, 2)]:
            turn.wake()
        if token is not None:
            try:
                _held.reset(token)
            except ValueError:
                return  # the coroutine is being destroyed, outside of its task


class Turn:
    """One turn at a :class:`SessionLock`. Each turn is a new object, so a task that lives longer than its listener does
    not hold the lock any more.
    """

    __slots__ = ("begun", "future")

    def __init__(self) -> None:
        self.begun = False
        self.future: asyncio.Future[None] | None = None
        """What the turn waits for, or waited for. ``None`` if it never waited."""

    def wake(self) -> None:
        """Let the task of this turn look whether it is the first."""
        future = self.future
        if future is not None and not future.done() and not future.get_loop().is_closed():
            future.set_result(None)


class Opening(Generic[T]):
    """The result of ``create_*``. Use ``await`` to get the object, or ``async with``, which also closes the object at
    the end.

    Args:
        opening: the coroutine that makes the object.
        end: the name of the method that ``async with`` calls at the end.
    """

    __slots__ = ("_end", "_object", "_opening")

    def __init__(self, opening: Coroutine[Any, Any, T], end: str = "close") -> None:
        self._opening = opening
        self._end = end
        self._object: T | None = None

    if not TYPE_CHECKING:  # type checkers must keep refusing each attribute

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"this object is still to be opened and has no attribute {name!r}: write `await ...` to open it, or"
                " `async with ... as name:` to open and close it",
                name=name,
                obj=self,
            )

    def __await__(self) -> Generator[Any, None, T]:
        return self._opening.__await__()

    async def __aenter__(self) -> T:
        self._object = await self._opening
        return self._object

    async def __aexit__(self, *exc: object) -> None:
        await getattr(self._object, self._end)()

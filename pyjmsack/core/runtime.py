"""The parts that a face supplies to the core."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from math import inf
from time import monotonic
from typing import Any, Protocol, TypeVar

from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.errors import JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.message import Acknowledger
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import Outbound

__all__ = [
    "LAST_CALLS",
    "Command",
    "Dispatcher",
    "Elsewhere",
    "Later",
    "Runtime",
    "SecondRun",
    "all_called",
    "refuse_commands",
    "run_commands",
    "taken",
]


log = get_logger("pyjmsack")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


Command = tuple[Callable[..., Any], tuple[Any, ...]]
Elsewhere = Callable[[Callable[[], None], Callable[[], None]], None]
"""``elsewhere(work, then)`` runs ``work`` on another thread, and then ``then`` on the loop."""
_NOTHING: Command = (lambda: None, ())
"""Stands for the present command while no command has been taken from the outbox."""
LAST_CALLS = 5.0
"""Seconds after the deadline of a ``close()`` in which completion listeners and event listeners still run. All sessions
of a connection share this time. The listeners need this time, because a send without an answer fails only at the
deadline (S74)."""
SECOND_RUN = 0.5
"""Seconds until the loop runs an outbox a second time, in case the first run was lost."""


def run_commands(outbox: deque[Command], again: Callable[[], object]) -> None:
    """Run the commands of an outbox on the loop. If a command raises, only the call that waits for this command gets
    the error.

    An error such as ``SystemExit`` of a program's code ends this function too. The other commands then stay in the
    outbox.

    Under asyncio a signal handler may raise between any two steps. A command is looked at before it is taken, and put
    back if it had not begun, so that no such error loses it.

    Args:
        again: called before such an error is raised, so that the loop runs the other commands later, if it goes on.
    """
    entry = begun = _NOTHING
    while outbox:
        try:
            while outbox:
                entry = outbox[0]
                outbox.popleft()
                begun = entry
                entry[0](*entry[1])
                entry = begun = _NOTHING  # an error that comes now belongs to no command
        except Exception as error:
            _note_failure(outbox, entry, begun, error)
            log.error("a command of the provider failed", exc_info=error)
        except BaseException as error:
            failure = JMSException(f"a command of the provider was ended by {type(error).__name__}: {error}")
            failure.__cause__ = error
            _note_failure(outbox, entry, begun, failure)
            again()
            raise


def _note_failure(outbox: deque[Command], entry: Command, begun: Command, error: Exception) -> None:
    """Tell the call that waits for the command that began. Put a command back that was taken and had not begun.

    Nobody waits for outcomes of messages. Their owner is told here, because the error may have come before the first
    step of the command, which could not catch it.
    """
    if entry is begun:
        _fail(entry[1], error)
        tell = getattr(getattr(entry[0], "__self__", None), "on_failed_command", None)
        if tell is not None:
            tell(error)
    elif not outbox or outbox[0] is not entry:
        outbox.appendleft(entry)


class SecondRun:
    """Lets the loop run an outbox once more, a moment after it was told to run it.

    The first run may be lost: if a signal handler of a program with asyncio raises at its first step, asyncio drops the
    call. Everybody who submits a command would believe for ever that a run is on its way. A second run finds nothing to
    do otherwise. One timer serves all runs of a short time, so that a burst costs only a look at the clock.
    """

    __slots__ = ("_covered",)

    def __init__(self) -> None:
        self._covered = -inf
        """The time until which a timer that was set serves each run."""

    def ask(self, call_soon: Callable[..., object], call_later: Callable[..., object], run: Callable[[], None]) -> None:
        """Let the loop call ``run`` after ``SECOND_RUN`` seconds, unless a timer of this object serves the present
        moment, too.

        Args:
            call_soon: makes a call on the loop, such as ``call_soon_threadsafe``.
            call_later: sets a timer. Called on the loop.
            run: runs the outbox.

        Raises:
            RuntimeError: the loop is closed.
        """
        if monotonic() >= self._covered:
            call_soon(self._set_timer, call_later, run)

    def _set_timer(self, call_later: Callable[..., object], run: Callable[[], None]) -> None:
        """Set the timer. Only now runs are covered, because this call may be lost, too."""
        call_later(SECOND_RUN, run)
        self._covered = monotonic() + SECOND_RUN / 2


def refuse_commands(outbox: deque[Command], error: Exception) -> None:
    """Let each call that waits for a command get this error, because the loop does no more work for this
    connection.
    """
    for _, arguments in taken(outbox):
        _fail(arguments, error)


class Queue(Protocol[T_co]):
    """The methods of a deque that are used to take messages out."""

    def __len__(self) -> int: ...

    def popleft(self) -> T_co:
        """Take out the first entry, or raise ``IndexError``."""
        ...


def taken(queue: Queue[T]) -> Iterator[T]:
    """Take out the entries one by one until none is left. Meanwhile another thread may add entries, or take some of
    them.
    """
    while queue:
        try:
            item = queue.popleft()
        except IndexError:  # the other thread took the last one
            return
        yield item


def _fail(arguments: tuple[Any, ...], error: Exception) -> None:
    for argument in arguments:
        if isinstance(argument, Completion):
            argument.fail(error)
        elif isinstance(argument, Outbound):
            argument.done(error)


class Later:
    """A call that the loop makes later. Any thread may ask for the call, and the loop then sets the timer."""

    __slots__ = ("_callback", "_timer")

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._timer: Timer | None = None

    def start(self, call_later: Callable[[float, Callable[[], None]], Timer], delay: float) -> None:
        """Set the timer. Runs on the loop."""
        self._timer = call_later(delay, self._callback)

    def cancel(self) -> None:
        """Cancel the call. Runs on the loop, as a command that was queued after the call was asked for."""
        if self._timer is not None:
            self._timer.cancel()


class Dispatcher(Protocol):
    """Runs user code on a thread or in a task of its own, one call at a time and in order. The I/O loop never waits for
    this code."""

    def submit(self, call: Callable[[], Any]) -> None:
        """Queue a call, from any thread. An exception of the call is logged (S127). In asyncio the call may return an
        awaitable.
        """
        ...

    def running_here(self) -> bool:
        """Whether the caller is inside a call of this dispatcher."""
        ...

    def started_here(self) -> bool:
        """Whether the caller is inside a call of this dispatcher, or in a task of asyncio that this call started. The
        call may wait for this task, so the caller must not wait for the end of the call without a limit."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a call is at work or queued."""
        ...

    def idle(self) -> Steps[None]:
        """Wait until the present call is over. If calls are only queued, the first of them is the present call."""
        ...

    def through(self) -> Steps[None]:
        """Wait until all calls that are queued now are over, unless the caller is one of them."""
        ...

    def let_end(self) -> None:
        """Run the queued calls, then end. Do not wait for the end. A second call has no effect."""
        ...

    def close(self, deadline: Deadline | None = None) -> None:
        """Run the queued calls, then end. Wait for the end.

        Args:
            deadline: the latest moment until which this method waits for calls that are at work or queued. ``None``
                means that only the dispatcher limits this wait.
        """
        ...


def all_called(dispatcher: Dispatcher, deadline: Deadline) -> Steps[None]:
    """Wait until a dispatcher has nothing left to call, unless the caller is one of its calls. If a call does not
    return, perhaps because it waits for the caller, the wait ends at the deadline.
    """
    while dispatcher.busy and not dispatcher.running_here() and not deadline.expired:
        for idle, _ in dispatcher.idle():
            yield idle, deadline.remaining()


class Runtime(Protocol):
    """One connection's way to the loop."""

    callers_on_loop: bool
    """Whether callers run on the loop, as in asyncio, so that a call that takes long keeps the loop waiting."""

    @property
    def idle_acknowledger(self) -> Acknowledger | None:
        """The acknowledger of a received message that needs no acknowledgement (S12). ``None`` if ``acknowledge()`` of
        such a message simply returns ``None``."""
        ...

    def submit(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Run ``command(*arguments)`` on the loop, in order, with one wake and one write for each burst. Any thread may
        call this.
        """
        ...

    def submit_lazily(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Run ``command(*arguments)`` on the loop, as :meth:`submit` does, perhaps a moment later. Commands that follow
        at once then run together with this command. Nobody may wait for the answer.
        """
        ...

    def run_queued(self) -> None:
        """Run the queued commands at once. The caller is on the loop."""
        ...

    def submit_from_thread(self, command: Callable[..., Any], *arguments: Any) -> None:
        """Run ``command(*arguments)`` on the loop, as :meth:`submit` does. Called on a thread that is neither the
        caller's thread nor the thread of the loop, such as the thread of the guard's file."""
        ...

    def elsewhere(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Run ``work``, which takes long, on a thread that nobody waits for. Then run ``then`` on the loop, also if
        ``work`` raised. Called on the loop.
        """
        ...

    def helper(self, name: str) -> Elsewhere:
        """Return a function like :meth:`elsewhere` with a thread of its own, so that work that does not return keeps
        nothing else from being done."""
        ...

    def away(self, work: Callable[[], Any]) -> Any:
        """Run ``work`` for the caller, and return its result. In asyncio return an awaitable of the result.

        ``work`` may wait for a disk.
        """
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Later:
        """Run ``callback`` on the loop after ``delay`` seconds, unless it is cancelled before."""
        ...

    def thread(self) -> int:
        """Return the number of the calling thread, which is not 0."""
        ...

    def lock(self) -> AbstractContextManager[Any]:
        """Return a new lock for data that both the loop and a caller change. The lock is held for a few steps only."""
        ...

    def dispatcher(self, name: str) -> Dispatcher:
        """Return a new dispatcher; it starts with its first call."""
        ...

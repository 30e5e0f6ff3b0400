"""The future of one send, which costs so little that each message can have one.

``concurrent.futures.Future`` makes a condition, a lock and three containers at once. With ten thousand sends under way,
the garbage collector then took 13 of 33 µs for each message. :class:`SendFuture` makes these objects only when somebody
waits. Programs can use a ``SendFuture`` like any ``Future``, also with ``concurrent.futures.wait`` and
``as_completed``.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from concurrent.futures._base import FINISHED, LOGGER, PENDING
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any

from pyjmsack.core.runtime import taken
from pyjmsack.core.steps import Deadline
from pyjmsack.errors import JMSException
from pyjmsack.spi.completion import Completion
from pyjmsack.sync._face import SessionFace
from pyjmsack.sync._runtime import wait

__all__ = ["SendFuture"]


class _Event:
    """Takes the place of the ``threading.Event`` of a waiter of ``concurrent.futures``.

    The loop only leaves calls here, which tell the waiter of its answers. The waiting thread makes these calls, because
    they take the lock of the waiter. A signal handler that waits for the loop may run while its own thread has it.
    """

    def __init__(self) -> None:
        self._set = False
        self._calls: deque[Callable[[], object]] = deque()
        # a plain lock, taken while there is nothing to do. A ``SimpleQueue`` of CPython 3.10 to 3.12 may wait for ever
        # if its time runs out in the middle of ``get``, for example because a signal handler takes longer
        self._signal = allocate_lock()
        self._signal.acquire()

    def leave(self, call: Callable[[], object]) -> None:
        """Leave a call for the waiting thread."""
        self._calls.append(call)
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the thread is awake, or about to look again
            self._signal.release()

    def set(self) -> None:
        """Wake the waiting thread. The thread of an executor calls this method too."""
        self._set = True
        self._wake()

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        """Make calls until the event is set, or ``timeout`` seconds have passed. ``None`` means no limit. Either way,
        make all calls that are there. Return whether the event is set."""
        deadline = Deadline(timeout)
        while True:
            for call in taken(self._calls):
                call()
            left = 0 if self._set else deadline.remaining()
            if not self._signal.acquire(True, -1 if left is None else min(left, threading.TIMEOUT_MAX)):
                return self._set


class _Condition:
    """Stands for the condition of a future. ``concurrent.futures`` takes the condition, looks at the state twice, and
    adds its waiter. So the state that this thread sees stays the same until the thread releases the condition. Other
    threads go on, because Ctrl-C may end the call before it releases the conditions of all its futures.

    Args:
        future: the future.
        seen: for each thread the state that it sees, the last of several that it took.
    """

    __slots__ = ("_future", "_seen")

    def __init__(self, future: SendFuture, seen: dict[int, list[bool]]) -> None:
        self._future = future
        self._seen = seen

    def acquire(self) -> bool:
        self._seen.setdefault(get_ident(), []).append(self._future.done())
        return True

    def release(self) -> None:
        seen = self._seen.get(get_ident())
        if seen:
            seen.pop()  # an empty list stays, because a signal handler may release in the middle of ``acquire``

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Waiters(dict[Any, Callable[[], object]]):
    """Takes the place of the list to which ``concurrent.futures`` adds its waiters. For each waiter it has the call
    that the loop will make. A waiter is told once, and only if the future was not done for the thread that adds it.
    """

    def __init__(self, future: SendFuture) -> None:
        super().__init__()
        self._future = future

    def append(self, waiter: Any) -> None:
        future = self._future
        if not isinstance(waiter.event, _Event):
            waiter.event = _Event()
        if future._state is PENDING:
            call = self[waiter] = partial(waiter.event.leave, partial(future._tell, waiter))
            future._when_answered(call)

    def remove(self, waiter: Any) -> None:
        call = self.pop(waiter, None)
        if call is not None:
            self._future._take_out(call)


class SendFuture(Future[None]):
    """The future of one send. The future is done when the broker has answered. The future cannot be cancelled, because
    its message is on its way already.

    Nobody takes a lock, because Ctrl-C may leave a ``threading.Condition`` locked for ever, and the loop serves all
    connections. Instead, the loop sets ``_answered`` first, and then makes the calls that it finds. The waiting side
    adds its call first, and then looks at ``_answered``. So at least one side sees what the other side did, and only
    one side can take the call out.
    """

    _face: SessionFace
    _result = None
    _exception = None
    _answered = False
    _calls: deque[Callable[[], object]] | None = None
    """What waiters left for the loop. An instance has the queue when somebody waits."""
    _seen: dict[int, list[bool]] | None = None
    """See :class:`_Condition`. An instance has the table when ``concurrent.futures`` waits."""

    def __init__(self, face: SessionFace) -> None:
        # ``Future.__init__`` is not called, because ``__getattr__`` makes the objects when somebody needs them.
        # ``__dict__`` is read here, before the loop and other threads know the future. CPython 3.11 makes the dict when
        # it is read first, and its garbage collector may let other threads run in the middle. What they set was lost.
        self.__dict__["_face"] = face

    @property
    def _state(self) -> str:  # type: ignore[override]  # an attribute in the standard library, which only reads it
        seen = None if self._seen is None else self._seen.get(get_ident())
        return FINISHED if (seen[-1] if seen else self._answered) else PENDING

    def __getattr__(self, name: str) -> Any:
        if name not in ("_condition", "_waiters"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        mine = self.__dict__  # several threads and a signal handler may do so at the same time
        seen = mine.setdefault("_seen", {})
        mine.setdefault("_waiters", _Waiters(self))
        mine.setdefault("_condition", _Condition(self, seen))
        return mine[name]

    def _when_answered(self, call: Callable[[], object]) -> None:
        """Make a call when the broker has answered, or now if it has answered. The call must not block."""
        calls = self.__dict__.setdefault("_calls", deque())
        calls.append(call)
        if not self._answered:
            self._face.hurry()
        elif self._take_out(call):
            call()

    def _tell(self, waiter: Any) -> None:
        """Tell a waiter of ``concurrent.futures`` of the answer. Runs on the waiting thread."""
        waiter.add_result(self) if self._exception is None else waiter.add_exception(self)

    def _take_out(self, call: Callable[[], object]) -> bool:
        """Take a call out of the queue. Return False if the loop has taken it."""
        try:
            self.__dict__["_calls"].remove(call)
        except ValueError:
            return False
        return True

    def settle(self, error: BaseException | None) -> None:
        """Take the broker's answer. Called once, on the loop."""
        if error is not None:
            self._exception = error.fresh() if isinstance(error, JMSException) else error
        self._answered = True
        if self._calls is not None:
            for call in taken(self._calls):
                call()

    def done(self) -> bool:
        """Return whether the broker has answered."""
        return self._answered

    def result(self, timeout: float | None = None) -> None:
        """Wait for the broker's answer.

        Args:
            timeout: seconds. ``None`` means no limit.

        Raises:
            JMSException: the error that ``send`` would have raised.
            TimeoutError: the broker has not answered in time.
        """
        if self._answered and self._exception is None:
            return
        error = self.exception(timeout)
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame, which would keep the error alive

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the broker's answer, and return the error that ``send`` would have raised, or ``None``.

        Args:
            timeout: seconds. ``None`` means no limit.

        Raises:
            TimeoutError: the broker has not answered in time.
        """
        if not self._answered:
            answered: Completion[None] = Completion()
            call = answered.succeed
            self._when_answered(call)
            try:
                if not wait(answered, None if timeout is None else max(0, timeout)):
                    raise TimeoutError
            finally:
                self._take_out(call)
        return self._exception

    def add_done_callback(self, fn: Callable[[Future[None]], Any]) -> None:
        """Call ``fn(future)`` when the broker has answered. The call is made on the session's completion thread, never
        on the thread of the loop. If the broker has answered already, ``fn`` is called at once.
        """
        if self._answered:
            try:
                fn(self)
            except Exception:
                LOGGER.exception("exception calling callback for %r", self)
        else:
            self._when_answered(partial(self._face.dispatch_completion, partial(fn, self)))

    def cancel(self) -> bool:
        """Return False, because a send that was handed over cannot be taken back."""
        return False

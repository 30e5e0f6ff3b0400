"""The blocking face of an app, which runs each worker in a thread."""

from __future__ import annotations

import os
import signal
import threading
from _thread import LockType, allocate_lock
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from inspect import GEN_CLOSED, getgeneratorstate
from types import FrameType
from typing import Any, Final

from pyjmsack.app.service import Service
from pyjmsack.app.steps import Away, Event, Limit, Steps, Task
from pyjmsack.app.trial import embedded, own_url
from pyjmsack.loggers import get_logger
from pyjmsack.sync import ConnectionFactory, Session

__all__ = ["App"]

log = get_logger("pyjmsack.app")
_LOOK: Final = 0.1
"""Seconds after which a caller that waits for its turn looks by itself."""
_SIGNAL_LOOK: Final = 1.0
"""Seconds after which :meth:`App.run` looks whether a signal came."""


def run(steps: Steps[Any]) -> Any:
    """Make the calls that the steps yield, one after the other, and return the result of the steps.

    If a signal handler raises between two steps, the steps get its error too. They would not be able to clean up when
    Python deletes them, because they could not yield any more.
    """
    answer: Callable[[], Any] = steps.__next__
    while True:
        try:
            return _run(steps, answer)
        except BaseException as error:
            if getgeneratorstate(steps) == GEN_CLOSED:
                raise
            answer = _Answer(steps.throw, error)


def _run(steps: Steps[Any], answer: Callable[[], Any]) -> Any:
    while True:
        try:
            step = answer()
        except StopIteration as end:
            return end.value
        try:
            value = step()
        except BaseException as error:
            answer = _Answer(steps.throw, error)
        else:
            answer = _Answer(steps.send, value)


class _Answer:
    """Gives the result or the error of one step to the generator. :func:`_run` keeps only the object for the latest
    step, because a variable with an older error would keep its traceback in memory.
    """

    __slots__ = ("_argument", "_give")

    def __init__(self, give: Callable[[Any], Any], argument: Any) -> None:
        self._give = give
        self._argument = argument

    def __call__(self) -> Any:
        return self._give(self._argument)


class Flag:
    """An event that a wait cannot lock for ever. A signal handler may raise it.

    A signal handler may end a wait by an error at any step. A ``threading.Event`` may then stay locked, and the thread
    that keeps the connection of the app would wait for it. Here each caller that waits has a lock of its own.
    """

    def __init__(self) -> None:
        self._set = False
        self._waiters: deque[LockType] = deque()
        """A lock of each caller that waits, which is free when the caller must look."""

    def set(self) -> None:
        """Raise the flag."""
        self._set = True  # before the waiters are woken: a caller adds its lock, then looks at the flag
        for lock in [*self._waiters]:
            with suppress(RuntimeError):  # it is free already
                lock.release()

    def clear(self) -> None:
        """Lower the flag."""
        self._set = False

    def is_set(self) -> bool:
        """Whether the flag is raised."""
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the flag, at most ``timeout`` seconds. Return whether it was raised."""
        lock = allocate_lock()
        lock.acquire()
        left = -1 if timeout is None else min(max(0, timeout), threading.TIMEOUT_MAX)
        try:
            self._waiters.append(lock)
            return self._set or lock.acquire(True, left) or self._set
        finally:
            with suppress(ValueError):  # a signal handler came before it was added
                self._waiters.remove(lock)


class Places:
    """Lets a number of callers work at a time. The others wait for their turn.

    A signal handler may raise at the first step of any function, and after any call. A semaphore of ``threading`` then
    stays locked for ever, or loses a place. So a caller leaves with one call of the interpreter, and nobody hands a
    place over: the first callers in the queue have the places. If the end of a call could not wake the next caller,
    that one looks by itself after ``_LOOK`` seconds.

    Args:
        count: how many callers work at a time.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._queue: OrderedDict[object, LockType | None] = OrderedDict()
        """The callers in their order. A caller that waits, or did so, has a lock, which is free when it must look."""
        self.leave = self._queue.pop

    def take(self, caller: object) -> None:
        """Wait for a place."""
        queue = self._queue
        queue[caller] = None
        if caller in [*queue][: self._count]:
            return
        lock = allocate_lock()
        lock.acquire()
        queue[caller] = lock  # before the next look, because who leaves now wakes only those with a lock
        while caller not in [*queue][: self._count]:
            lock.acquire(True, _LOOK * (1 + len(queue) // 500))  # seldom if many look, because a look copies the queue

    def wake(self) -> None:
        """Let those look that may have got a place."""
        for lock in [*self._queue.values()][: self._count]:
            if lock is not None:
                with suppress(RuntimeError):  # it is free already
                    lock.release()


class Thread:
    """A thread that runs steps. The thread is a daemon, because otherwise a listener that never returns would keep the
    process alive.
    """

    def __init__(self, steps: Steps[None], name: str) -> None:
        self._steps = steps
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            run(self._steps)
        except Exception:
            log.exception("%s ended", self._thread.name)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread ends. Return whether the thread ended in time."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def abandon(self) -> None:
        """Do nothing, because a thread cannot be ended from outside. The app closes the session of the thread."""


class BlockingFace:
    """The blocking face of an app: each step blocks the thread that runs the step."""

    coroutines = False
    session = Session
    run = staticmethod(run)

    def factory(self, url: str, **how: Any) -> ConnectionFactory:
        """Return the factory of this face."""
        return ConnectionFactory(url, **how)

    def event(self) -> Event:
        """Return a new flag."""
        return Flag()

    def limit(self, count: int) -> Limit:
        """Return new places."""
        return Places(count)

    def lock(self) -> threading.Lock:
        """Return a lock, because any thread may start or stop a listener."""
        return threading.Lock()

    def spawn(self, steps: Steps[None], name: str) -> Task:
        """Run steps in a thread of their own."""
        return Thread(steps, name)

    def away(self, name: str) -> Away:
        """Return a function that returns its argument, because a slow function holds up only the thread of its
        worker."""
        return lambda function: function

    def ends(self, error: BaseException) -> bool:
        """Return whether this error ends the worker. Only ``GeneratorExit`` ends a worker. A ``KeyboardInterrupt`` or
        ``SystemExit`` counts as an error of the listener.
        """
        return isinstance(error, GeneratorExit)

    def here(self) -> object:
        """Return the id of this thread, because a session belongs to one thread (S15)."""
        return threading.get_ident()


class App(Service):
    """A service with functions that take messages, and with a sender. See ``docs/app.md``.

    ::

        app = App("amqp://localhost:5672")

        @app.listener("orders")
        def order(order: dict) -> None:
            app.sender.send("invoices", {"order": order["id"]})

        if __name__ == "__main__":
            app.run()
    """

    _face = BlockingFace()

    def _prepare(self) -> None:
        self._stop_wanted = Flag()
        """Raised by a signal, and at the end of :meth:`stop`."""

    def start(self) -> None:
        """Start the listeners, the sender and the schedules. The call returns when each listener and the sender is
        ready or has failed in its first attempt, and after a minute at the latest. The app goes on trying while the
        broker is away. If the call is interrupted, the app begins to stop. If the app is stopped meanwhile, the call
        returns.

        Raises:
            IllegalStateException: the app is running.
        """
        run(self._start())

    def stop(self) -> bool:
        """Take no further message, start no scheduled function, let the functions at work finish, and close the
        connections. A second call has no effect.

        A listener or a scheduled function may call ``stop``. In this case ``stop`` returns at once, and the app ends
        when the function has finished. A signal handler may call ``stop``, too. If it interrupts a start of the app,
        ``stop`` returns at once, and the app ends when it has started. In the first steps of ``start``, before the app
        runs, ``stop`` has no effect.

        Returns:
            Whether all listeners and scheduled functions finished within ``stop_timeout``, also if an earlier call
            stopped the app. The messages of listeners that did not finish go back to the broker. If one of these
            functions calls ``stop``, the result is False, because that function is still at work.
        """
        try:
            return bool(run(self._stop()))
        finally:
            self._stop_wanted.set()

    def run(self) -> bool:
        """Start the app, wait for SIGTERM, SIGINT or a call of ``stop()``, and stop the app.

        A SIGINT during the stop ends the process at once. If ``run`` is not called in the main thread, only ``stop()``
        ends the call, because only the main thread can have signal handlers.

        Returns:
            Whether all listeners and scheduled functions finished within ``stop_timeout``.

        Raises:
            IllegalStateException: the app is running.
        """
        self._check_stopped()
        self._stop_wanted.clear()  # of an earlier run
        with self._signalled():
            with self._starting():
                self._launch()
            try:
                # a signal that comes just before a wait does not end the wait, and its handler runs only after the wait
                while not self._stop_wanted.wait(_SIGNAL_LOOK):
                    pass
            finally:
                ended = self.stop()
            return ended

    @contextmanager
    def test(self, url: str | None = None) -> Iterator[App]:
        """For a test: start the app with another broker, and stop the app at the end. Schedules run too::

            with app.test():
                app.sender.send("orders", {"id": 7})

        The options of the app's URL stay, except the options of TLS, the login and the virtual host, because they
        belong to the usual broker of the app.

        Args:
            url: a broker that runs, such as ``artemis.amqp_url`` of the pytest plugin. ``None`` starts an Artemis for
                this test alone, and stops it with its data at the end. This needs the extra ``broker``.

        Raises:
            IllegalStateException: the app is running.
            BrokerError: the broker cannot be started.
        """
        with ExitStack() as opened:
            if url is None:
                url = own_url(self._url, opened.enter_context(embedded()))
            opened.enter_context(self._elsewhere(url))
            yield opened.enter_context(self)

    @contextmanager
    def _signalled(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():  # only the main thread can set signal handlers
            yield
            return
        signals: list[int] = []

        def on_signal(number: int, _: FrameType | None) -> None:
            if signals and number == signal.SIGINT:
                os._exit(128 + number)
            signals.append(number)
            self._stop_wanted.set()

        previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def __enter__(self) -> App:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

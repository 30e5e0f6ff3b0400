"""The asyncio face of an app, which runs each worker in a task."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from contextvars import copy_context
from functools import partial
from typing import Any

from pyjmsack.aio._runtime import OwnThreads, ends_task, make_task
from pyjmsack.aio.connection import ConnectionFactory
from pyjmsack.aio.session import Session
from pyjmsack.app.service import Service
from pyjmsack.app.steps import Away, Event, Limit, Steps, Task
from pyjmsack.app.trial import embedded, own_url
from pyjmsack.loggers import get_logger

__all__ = ["App"]

log = get_logger("pyjmsack.app")


async def run(steps: Steps[Any]) -> Any:
    """Make the calls that the steps yield, await each awaitable, and return the result of the steps."""
    give: Callable[[Any], Any] = steps.send
    argument: Any = None
    while True:
        try:
            step = give(argument)
        except StopIteration as end:
            return end.value
        try:
            argument = step()
            if inspect.isawaitable(argument):
                argument = await argument
            give = steps.send
        except BaseException as error:  # a cancellation goes to the generator too
            give, argument = steps.throw, error


class _OwnThread:
    """Calls functions in a thread, one after another. The thread ends when it has nothing to do.

    Each worker of a listener has its own, because its message must not wait for that of another one. The threads of the
    loop are not used, because the program may keep all of them busy.
    """

    def __init__(self, name: str) -> None:
        self._threads = OwnThreads(name)

    async def call(self, function: Callable[[], Any]) -> Any:
        """Call a function in the thread. A ``StopIteration`` of the function would never reach a future of asyncio, so
        the thread returns each error."""
        context = copy_context()
        result, error = await self._threads.run(lambda: context.run(_outcome, function))
        if error is not None:
            raise error
        return result


def _outcome(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except BaseException as error:  # the task raises it
        return None, error


class Flag(asyncio.Event):
    """An event with a ``wait`` that can have a time limit."""

    async def wait(self, timeout: float | None = None) -> bool:  # type: ignore[override]  # as in threading.Event
        """Wait for the flag, at most ``timeout`` seconds. Return whether the flag is raised."""
        try:
            await asyncio.wait_for(super().wait(), timeout)
        except asyncio.TimeoutError:
            return self.is_set()
        return True


class Places:
    """Lets a number of callers work at a time. The others wait for their turn."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.BoundedSemaphore(count)
        self._callers: set[object] = set()

    async def take(self, caller: object) -> None:
        """Wait for a place."""
        await self._free.acquire()
        self._callers.add(caller)

    def leave(self, caller: object, _: None) -> None:
        """Give the place back, if the caller has one. This lets the next caller begin."""
        if caller in self._callers:
            self._callers.remove(caller)
            self._free.release()

    def wake(self) -> None:
        """Do nothing, because :meth:`leave` has done so."""


class AioTask:
    """A task that runs steps."""

    def __init__(self, steps: Steps[None], name: str) -> None:
        self._name = name
        self._task = make_task(asyncio.get_running_loop(), self._run(steps), name)

    async def _run(self, steps: Steps[None]) -> None:
        try:
            await run(steps)
        except Exception:
            log.exception("%s ended", self._name)

    async def join(self, timeout: float | None = None) -> bool:
        """Wait until the task ends. Return whether the task ended in time."""
        await asyncio.wait([self._task], timeout=timeout)
        return self._task.done()

    def abandon(self) -> None:
        """Cancel the task."""
        self._task.cancel()


class AioFace:
    """The asyncio face of an app: while a step waits, other tasks run."""

    coroutines = True
    session = Session
    run = staticmethod(run)

    def factory(self, url: str, **how: Any) -> ConnectionFactory:
        """Return the factory of this face."""
        return ConnectionFactory(url, **how)

    def event(self) -> Event:
        """Return a flag."""
        return Flag()

    def limit(self, count: int) -> Limit:
        """Return new places."""
        return Places(count)

    def lock(self) -> AbstractContextManager[None]:
        """Return a context manager that locks nothing, because only the event loop changes the tables of an app."""
        return nullcontext()

    def spawn(self, steps: Steps[None], name: str) -> Task:
        """Run steps in a task of their own."""
        return AioTask(steps, name)

    def away(self, name: str) -> Away:
        """Return a function that makes steps which call functions in a thread, because on the event loop they would
        hold up all tasks."""
        thread = _OwnThread(name)
        return lambda function: partial(thread.call, function)

    def ends(self, error: BaseException) -> bool:
        """Return whether this task itself is to be cancelled. A ``CancelledError`` alone does not show this, because
        the error may come from another task that the listener awaited.
        """
        if isinstance(error, asyncio.CancelledError):
            return ends_task(error)
        return isinstance(error, GeneratorExit | KeyboardInterrupt)

    def here(self) -> object:
        """Return ``None``, because in asyncio all tasks may use a session (S15)."""
        return None


class App(Service):
    """A service with functions that take messages, and with a sender. Listeners may be coroutine functions. See
    ``docs/app.md``.

    ::

        app = App("amqp://localhost:5672")

        @app.listener("orders")
        async def order(order: dict) -> None:
            await app.sender.send("invoices", {"order": order["id"]})

        async with app:  # or: await app.run()
            ...
    """

    _face = AioFace()

    def _prepare(self) -> None:
        self._stopped: Event = Flag()

    async def start(self) -> None:
        """Start the listeners, the sender and the schedules. The call returns when each listener and the sender is
        ready or has failed in its first attempt, and after a minute at the latest. The app goes on trying while the
        broker is away. If the call is cancelled, the app begins to stop. If the app is stopped meanwhile, the call
        returns.

        Raises:
            IllegalStateException: the app is running.
        """
        await run(self._start())

    async def stop(self) -> bool:
        """Take no further message, start no scheduled function, let the functions at work finish, and close the
        connections. A second call has no effect.

        A listener or a scheduled function may call ``stop``. In this case ``stop`` returns at once, and the app ends
        when the function has finished.

        Returns:
            Whether all listeners and scheduled functions finished within ``stop_timeout``, also if an earlier call
            stopped the app. Functions that did not finish are cancelled, and the messages of these listeners go back
            to the broker. If one of these functions calls ``stop``, the result is False, because that function is still
            at work.
        """
        try:
            return bool(await run(self._stop()))
        finally:
            self._stopped.set()

    async def run(self) -> bool:
        """Start the app, wait for SIGTERM, SIGINT or a call of ``stop()``, and stop the app.

        A SIGINT during the stop ends the process at once. If ``run`` is not called in the main thread, only ``stop()``
        ends the call, because only the main thread can have signal handlers.

        Returns:
            Whether all listeners and scheduled functions finished within ``stop_timeout``.

        Raises:
            IllegalStateException: the app is running.
        """
        self._check_stopped()
        self._stopped = Flag()
        async with self._signalled():
            with self._starting():
                self._launch()
            try:
                await run(iter_wait(self._stopped))
            finally:
                ended = await self.stop()
            return ended

    @asynccontextmanager
    async def test(self, url: str | None = None) -> AsyncIterator[App]:
        """For a test: start the app with another broker, and stop the app at the end. Schedules run too::

            async with app.test():
                await app.sender.send("orders", {"id": 7})

        The options of the app's URL stay, except the options of TLS, the login and the virtual host, because they
        belong to the usual broker of the app.

        Args:
            url: a broker that runs, such as ``artemis.amqp_url`` of the pytest plugin. ``None`` starts an Artemis for
                this test alone, and stops it with its data at the end. This needs the extra ``broker``.

        Raises:
            IllegalStateException: the app is running.
            BrokerError: the broker cannot be started.
        """
        async with AsyncExitStack() as opened:
            if url is None:
                broker = embedded()
                opened.push_async_callback(asyncio.to_thread, broker.stop)
                url = own_url(self._url, await asyncio.to_thread(broker.start))
            opened.enter_context(self._elsewhere(url))
            yield await opened.enter_async_context(self)

    @asynccontextmanager
    async def _signalled(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        signals: list[int] = []

        def on_signal(number: int) -> None:
            if signals and number == signal.SIGINT:
                os._exit(128 + number)
            signals.append(number)
            self._stopped.set()

        numbers = [signal.SIGINT, signal.SIGTERM]
        try:
            for number in numbers:
                loop.add_signal_handler(number, on_signal, number)
        # the thread is not the main thread, or the system is not Unix
        except (RuntimeError, ValueError, NotImplementedError):
            numbers = []
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    async def __aenter__(self) -> App:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()


def iter_wait(flag: Event) -> Steps[None]:
    """Yield the step that waits for a flag."""
    yield flag.wait

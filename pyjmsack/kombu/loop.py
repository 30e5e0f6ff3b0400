"""The event loop of one connection to a broker, on a thread of its own.

Celery and kombu call from any thread, but only the loop may use the objects of the connection. So other threads post
their calls to the loop. Each connection has a thread of its own, so that connections share nothing. A child made by
``fork`` opens connections of its own, so that it need not repair the loop of its parent.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from pyjmsack import ConnectionLostException
from pyjmsack.kombu.waiting import Answer, way

__all__ = ["LoopThread"]

T = TypeVar("T")


class LoopThread:
    """A running event loop on a thread of its own.

    Raises:
        UnsupportedFeatureException: eventlet has replaced the threads of this process.
    """

    def __init__(self) -> None:
        self._way = way()
        self._pid = os.getpid()
        self._stopped = False
        self._ended = False
        self._waited_for: set[Answer] = set()
        self._loop = self._way.start(self._run)

    @property
    def foreign(self) -> bool:
        """Whether this process is a child made by ``fork``. The thread of the loop does not run in such a child."""
        return self._pid != os.getpid()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
            self._ended = True  # set before the answers are cancelled, so that a later caller sees the end
            for answer in [*self._waited_for]:
                answer.cancel()

    def post(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Run a call on the loop soon, after the calls that were posted before.

        Raises:
            ConnectionLostException: the loop has ended.
        """
        self._check()
        self._wake(call, *arguments)

    def call(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine on the loop and wait for its result. If the wait is interrupted, the coroutine is cancelled.

        Args:
            coroutine: the coroutine to run.
            timeout: seconds to wait. ``None`` waits until the coroutine ends, because it has time limits of its own.

        Raises:
            ConnectionLostException: the loop has ended, before the call or during it.
            TimeoutError: the time is over.
            BaseException: what the coroutine raises.
        """
        try:
            self._check()
            answer = Answer(coroutine, self._loop, self._way.gate())
        except BaseException:
            coroutine.close()
            raise
        try:
            self._waited_for.add(answer)
            answer.start()
            if self._ended:
                answer.cancel()
            return answer.result(timeout)
        except CancelledError as error:
            raise ConnectionLostException("the connection to the broker was closed during the call") from error
        except BaseException:
            answer.cancel()
            raise
        finally:
            self._waited_for.discard(answer)

    def stop(self, timeout: float = 5.0) -> None:
        """End the loop, and wait at most ``timeout`` seconds for the end of its thread. A second call has no effect."""
        if self._stopped or self.foreign:
            self._stopped = True
            return
        self._stopped = True
        self._wake(self._loop.stop)
        self._way.join(timeout)

    def _check(self) -> None:
        if self._stopped or self.foreign:
            raise ConnectionLostException(
                "this connection to the broker belongs to another process, which made it before a fork"
                if self.foreign
                else "the connection to the broker is closed"
            )

    def _wake(self, call: Callable[..., Any], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(call, *arguments)
        except BaseException as error:
            if self._loop.is_closed():  # meanwhile
                raise ConnectionLostException("the connection to the broker is closed") from error
            # a signal handler has raised, perhaps after the loop got the call and before it was woken
            self._loop.call_soon_threadsafe(int)
            raise

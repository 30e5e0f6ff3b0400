"""The workers of one listener. More workers run while messages wait, and a stop lets each worker finish its message."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

from pyjmsack.app.link import Link
from pyjmsack.app.listener import Listener
from pyjmsack.app.steps import Face, Step, Steps
from pyjmsack.app.worker import Counts, Worker
from pyjmsack.backoff import Backoff
from pyjmsack.loggers import get_logger

__all__ = ["Container"]

log = get_logger("pyjmsack.app")
IDLE: Final = 5.0
"""A worker ends after this number of seconds without a message, if the listener has more workers than the smallest
number that ``concurrency`` allows.
"""
SLOW: Final = 1.0
"""If all workers are busy, and no worker has begun a message for this number of seconds, one more worker starts."""


class Container:
    """Runs one listener, on a connection of its own.

    Args:
        face: the face of the app.
        listener: the listener that the workers call.
        factory: makes the connection.
        stop_timeout: seconds that listeners at work have when the app stops.
    """

    def __init__(self, face: Face, listener: Listener, factory: Any, stop_timeout: float) -> None:
        self.listener = listener
        self._face = face
        self._stop_timeout = stop_timeout
        self._workers: list[Worker] = []
        self._ended = Counts()
        self._backoff = Backoff()
        self._not_before = 0.0
        self.left_behind = 0
        """The number of workers that did not finish in time when the listener was stopped."""
        self.link = Link(face, factory, f"listener {listener.name!r}", self._serve)

    # -- its state ----------------------------------------------------------------------------------------------

    @property
    def at_work(self) -> bool:
        """Whether the listener was stopped, and a worker that did not finish in time still works."""
        return self.left_behind > 0 and any(not worker.ended for worker in self._workers)

    @property
    def ready(self) -> bool:
        """Whether the listener takes messages now."""
        return self.link.state == "connected" and any(worker.ready for worker in [*self._workers])

    def health(self) -> dict[str, Any]:
        """Return the state of the connection, and the number of workers."""
        workers = [*self._workers]
        return {
            "state": self.link.state,
            "workers": sum(worker.ready for worker in workers),
            "busy": sum(worker.busy for worker in workers),
        }

    def counts(self) -> Counts:
        """Return how many messages were received, succeeded, failed or were rolled back so far."""
        total = Counts()
        total.add(self._ended)
        for worker in [*self._workers]:
            total.add(worker.counts)
        return total

    def counted(self, before: Counts) -> None:
        """Add the counts of an earlier container of this listener, so that the counts go on after a restart."""
        self._ended.add(before)

    # -- life ---------------------------------------------------------------------------------------------------

    def _serve(self, connection: Any) -> Steps[None]:
        link = self.link
        try:
            while not link.stopping and not link.lost:
                link.wake.clear()
                self._reap()
                wait = self._fill(connection)
                if not link.stopping and not link.lost:
                    yield partial(link.wake.wait, wait)
        finally:
            yield from self._end()

    def _reap(self) -> None:
        for worker in [*self._workers]:
            if not worker.ended:
                continue
            self._workers.remove(worker)
            self._ended.add(worker.counts)
            if worker.error is not None:
                log.warning("a worker of listener %r ended: %r", self.listener.name, worker.error)
                self.link.tried.set()
                self._not_before = time.monotonic() + self._backoff.after_failure()

    def _fill(self, connection: Any) -> float | None:
        """Start the workers that are missing. Return the seconds until the container must check again whether a worker
        is missing, or ``None`` if no such time is known.
        """
        listener, workers = self.listener, self._workers
        left = self._not_before - time.monotonic()
        if len(workers) < listener.low:
            if left > 0:
                return left
            while len(workers) < listener.low:
                self._hire(connection, None)
        wait = None
        if len(workers) < listener.high and all(worker.ready for worker in workers):
            backlog = any(worker.backlog for worker in workers)
            wait = max(0.0 if backlog else self._patience(), left) if backlog or self._all_busy else None
            if wait is not None and wait <= 0:
                self._hire(connection, IDLE)
                wait = None
        for worker in workers:
            worker.backlog = False
        if sum(worker.ready for worker in workers) >= listener.low:
            self.link.tried.set()
        return wait

    @property
    def _all_busy(self) -> bool:
        return all(worker.busy for worker in self._workers)

    def _patience(self) -> float:
        """Return the seconds until one more worker may start; 0 or less means now.

        One more worker starts if all workers have been busy for a time, because a message may wait behind another
        message whose work takes long.
        """
        return max(worker.busy_since for worker in self._workers) + SLOW - time.monotonic()

    def _begun(self) -> None:
        if len(self._workers) < self.listener.high and self._all_busy:
            self.link.wake.set()

    def _hire(self, connection: Any, idle: float | None) -> None:
        wake = self.link.wake.set
        worker = Worker(self._face, self.listener, lambda: self.link.stopping, wake, self._begun, idle)
        self._workers.append(worker)
        worker.task = self._face.spawn(worker.run(connection), f"pyjmsack-app-{self.listener.name}")

    # -- the end ------------------------------------------------------------------------------------------------

    def _end(self) -> Steps[None]:
        """Take no further message, and let each worker finish.

        A stop gives the workers ``stop_timeout`` seconds. After a lost connection there is no limit, because otherwise
        an old and a new worker could be at work on the same message.
        """
        link = self.link
        limit: float | None = None
        closed: set[Worker] = set()
        while True:
            link.wake.clear()
            for worker in [*self._workers]:
                end = worker.end()
                if end is not None and worker not in closed and not worker.ended:
                    closed.add(worker)
                    yield from self._close(end)
            self._reap()
            if not self._workers:
                return
            if link.stopping and limit is None:
                limit = time.monotonic() + self._stop_timeout
            left = None if limit is None else limit - time.monotonic()
            if left is not None and left <= 0:
                break
            yield partial(link.wake.wait, left)
        self.left_behind = len(self._workers)
        log.error(
            "listener %r: %d workers did not finish in %g s; their messages go back to the broker",
            self.listener.name,
            self.left_behind,
            self._stop_timeout,
        )
        for worker in self._workers:
            if worker.task is not None:
                worker.task.abandon()

    def _close(self, end: Step) -> Steps[None]:
        try:
            yield end
        except Exception as error:  # the connection is lost
            log.debug("closing a consumer of listener %r: %s", self.listener.name, error)

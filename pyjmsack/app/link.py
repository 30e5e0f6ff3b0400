"""Keeps one connection of an app. When the connection is lost, a new connection is made after a pause."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pyjmsack.app.steps import Face, Steps
from pyjmsack.backoff import Backoff
from pyjmsack.errors import JMSException
from pyjmsack.loggers import get_logger

__all__ = ["Link"]

log = get_logger("pyjmsack.app")


class Link:
    """Keeps one connection of an app. When the connection is lost, the link makes a new connection after a pause.

    Args:
        face: the face of the app.
        factory: makes the connection.
        name: the name in the log.
        serve: returns the steps that use a connection. These steps wait for ``wake``. After each wake they check
            ``stopping`` and the connection, and end if ``stopping`` is true or the connection is lost.
    """

    def __init__(self, face: Face, factory: Any, name: str, serve: Callable[[Any], Steps[None]]) -> None:
        self._factory = factory
        self.name = name
        self._serve = serve
        self._backoff = Backoff()
        self.connection: Any = None
        self.connected = face.event()
        self.wake = face.event()
        self.tried = face.event()
        """Set when the first attempt to connect and to run ``serve`` has succeeded or failed, or at a stop."""
        self.stopping = False
        self.error: BaseException | None = None
        """The error of the last attempt, if the link is not connected."""

    @property
    def state(self) -> str:
        """The state of the connection, as a value of ``connection.state`` such as ``connected``. While there is no
        connection, the state is ``connecting``. After a stop the state is ``closed``."""
        connection = self.connection
        if connection is not None:
            return str(connection.state.value)
        return "closed" if self.stopping else "connecting"

    @property
    def lost(self) -> bool:
        """Whether the connection can no longer be used."""
        return self.state in ("failed", "closed")

    def stop(self) -> None:
        """Close the connection as soon as the steps that use it have ended."""
        self.stopping = True
        self.wake.set()
        self.tried.set()  # a link that is stopped before the end of its first attempt may make no other attempt

    def run(self) -> Steps[None]:
        """Connect and run the steps of ``serve``. When the connection is lost, connect and run the steps again."""
        while not self.stopping:
            try:
                yield from self._once()
            except Exception as error:  # the app goes on after any error
                self._failed(error)
            if not self.stopping:
                yield from self.pause()

    def _failed(self, error: Exception) -> None:
        self.error = error
        self.tried.set()
        expected = isinstance(error, JMSException | OSError)
        log.warning("%s: %s", self.name, error, exc_info=None if expected else error)

    def pause(self) -> Steps[None]:
        """Wait before the next attempt; a stop ends the wait."""
        end = time.monotonic() + self._backoff.after_failure()
        while not self.stopping and (left := end - time.monotonic()) > 0:
            self.wake.clear()
            if self.stopping:  # if stop() came just before wake was cleared, no call would end the wait
                return
            yield partial(self.wake.wait, left)

    def _once(self) -> Steps[None]:
        connection = yield self._factory.create_connection
        try:
            connection.exception_listener = self._on_error
            yield connection.start
            self.connection, self.error = connection, None
            self.connected.set()
            yield from self._serve(connection)
        finally:
            self.connected.clear()
            self.connection = None
            yield connection.close

    def _on_error(self, error: JMSException) -> None:
        log.warning("%s: %s", self.name, error)
        self.error = error
        self.wake.set()

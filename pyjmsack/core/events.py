"""What listeners of a connection are told, and in what order (S64, S109, S126-S128)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from pyjmsack.core.recorder import Recorder
from pyjmsack.core.runtime import Dispatcher, Runtime, all_called, taken
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.errors import JMSException

__all__ = ["Events", "RemoteClose"]

log = logging.getLogger("pyjmsack")
ExceptionListener = Callable[[JMSException], Any]


class Events:
    """The listeners of one connection; they run one at a time, on a dispatcher of their own.

    Args:
        runtime: makes the dispatcher, once there is something to tell.
        recorder: each event is recorded as well.
    """

    def __init__(self, runtime: Runtime, recorder: Recorder | None) -> None:
        self._runtime = runtime
        self._recorder = recorder
        self._dispatcher: Dispatcher | None = None
        self.exception_listener: ExceptionListener | None = None
        self._listeners: list[Any] = []
        self._remote_closes: WeakValueDictionary[int, RemoteClose] = WeakValueDictionary()

    def add(self, listener: object, established: str | None = None) -> None:
        """Call ``listener`` for each event from now on. If the connection is ``established``, call it at once with this
        address."""
        self._listeners.append(listener)
        if established is not None:
            self._tell(listener, "on_connection_established", established)

    def tell(self, event: str, *arguments: object) -> None:
        """Call this method of each listener that has it; record the event."""
        if self._recorder is not None:
            failed = type(arguments[-1]).__name__ if isinstance(arguments[-1], BaseException) else ""
            self._recorder.event(event.removeprefix("on_").removeprefix("connection_"), failed)
        for listener in self._listeners:
            self._tell(listener, event, *arguments)

    def _tell(self, listener: object, event: str, *arguments: object) -> None:
        method = getattr(listener, event, None)
        if method is not None:
            self._own_dispatcher().submit(partial(method, *arguments))

    def report(self, error: BaseException) -> None:
        """Give an error that no caller waits for to the exception listener (S64, S126-S128)."""
        listener = self.exception_listener
        if listener is None:
            log.error("no exception listener is set for: %s", error)
            return
        jms = error if isinstance(error, JMSException) else JMSException(str(error))
        self._own_dispatcher().submit(partial(listener, jms))

    def _own_dispatcher(self) -> Dispatcher:
        if self._dispatcher is None:
            self._dispatcher = self._runtime.dispatcher("pyjmsack-events")
        return self._dispatcher

    def running_here(self) -> bool:
        """Whether the caller is inside one of these listeners."""
        return self._dispatcher is not None and self._dispatcher.running_here()

    def close(self, deadline: Deadline) -> Steps[None]:
        """Make the calls that wait, then end."""
        if self._dispatcher is not None:
            yield from all_called(self._dispatcher, deadline)
            self._dispatcher.close()

    # -- what the broker closes ---------------------------------------------------------------------------------

    def remote_close(self, number: int, event: str) -> RemoteClose:
        """Return what tells the listeners if the broker closes a resource, which keeps it as long as it lives."""
        self._remote_closes[number] = remote_close = RemoteClose(self, event)
        return remote_close

    def resource_closed(self, number: int, error: BaseException) -> None:
        """The broker closed a session or producer, and not the connection (S109)."""
        remote_close = self._remote_closes.get(number)
        if remote_close is not None:
            remote_close.happened(error)


class RemoteClose:
    """Tells the connection listeners, once, that the broker closed a session, producer or consumer.

    The loop learns of it, perhaps before the caller has the object that the listeners are to be told: whoever comes
    second tells them. An object that no caller gets, such as the consumer of a browser, is not told.

    Args:
        event: the listeners' method, ``on_session_closed``.
    """

    __slots__ = ("__weakref__", "_events", "_object", "_untold", "error")

    def __init__(self, events: Events, event: str) -> None:
        self._events = events
        self._untold = deque([event])
        self._object: object = None
        self.error: BaseException | None = None
        """Why the broker closed it; ``None`` if it did not."""

    def given(self, to_caller: object) -> None:
        """The caller has the object of its face. Any thread."""
        self._object = to_caller
        self._tell()

    def forget(self) -> None:
        """The caller closed the object: nobody is told, and it is not kept alive from here."""
        self._object = None

    def happened(self, error: BaseException) -> None:
        """The broker closed it. On the loop."""
        self.error = error
        self._tell()

    def _tell(self) -> None:
        told = self._object
        if self.error is not None and told is not None:
            for event in taken(self._untold):
                self._events.tell(event, told, self.error)

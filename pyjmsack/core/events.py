"""Calls the listeners of a connection, one event after the other (S64, S109, S126-S128).

To add an event, add its name to :data:`Event` and to the table of :class:`Events`, describe it in
``add_connection_listener`` (``core/facade.py``), and call :meth:`Events.tell` in the file that notices the event.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import Any, Final, Literal, TypeAlias, get_args
from weakref import WeakValueDictionary

from pyjmsack.core.recorder import Recorder
from pyjmsack.core.runtime import LAST_CALLS, Dispatcher, Runtime, all_called
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.errors import JMSException
from pyjmsack.loggers import get_logger

__all__ = ["Event", "Events", "RemoteClose"]

log = get_logger("pyjmsack")
ExceptionListener = Callable[[JMSException], Any]
Event: TypeAlias = Literal[
    "on_connection_established",
    "on_connection_failure",
    "on_connection_interrupted",
    "on_connection_restored",
    "on_session_closed",
    "on_producer_closed",
    "on_consumer_closed",
]
"""An event is the name of a method that a connection listener may have."""
_EVENTS: Final[tuple[str, ...]] = get_args(Event)
_ALIKE = 0.9
"""How much a name must resemble the name of an event, from 0 to 1, to count as a misspelt event."""


class Events:
    """The listeners of one connection; they run one at a time, on a dispatcher of their own. A listener is any object
    that has some of these methods.

    ============================= ====================================================================
    event                         called by
    ============================= ====================================================================
    ``on_connection_established`` ``open`` in ``core/connection.py``, and :meth:`add` for late listeners
    ``on_connection_failure``     ``on_failure`` in ``core/connection.py``
    ``on_connection_interrupted`` ``on_interrupted`` in ``core/connection.py``
    ``on_connection_restored``    ``on_restored`` in ``core/connection.py``
    ``on_session_closed``         :class:`RemoteClose` of a session, made in ``core/state.py``
    ``on_producer_closed``        :class:`RemoteClose` of a producer, made in ``core/producer.py``
    ``on_consumer_closed``        :class:`RemoteClose` of a consumer, made in ``core/consumer.py``
    ============================= ====================================================================

    Args:
        runtime: makes the dispatcher when the first event happens.
        recorder: records each event for the ledger. ``None`` means no ledger.
    """

    def __init__(self, runtime: Runtime, recorder: Recorder | None) -> None:
        self._runtime = runtime
        self._recorder = recorder
        self._dispatcher: Dispatcher | None = None
        self.exception_listener: ExceptionListener | None = None
        self._listeners: list[Any] = []
        self._remote_closes: WeakValueDictionary[int, RemoteClose] = WeakValueDictionary()

    def add(self, listener: object, established: str | None = None) -> None:
        """Call the methods of ``listener`` for all later events. If the connection to the address ``established`` is
        already open, call ``on_connection_established`` at once. Warn if a method seems to be a misspelt event."""
        _check_names(listener)
        self._listeners.append(listener)
        if established is not None:
            self._tell(listener, "on_connection_established", established)

    def tell(self, event: Event, *arguments: object) -> None:
        """Call the method named ``event`` of each listener that has such a method, and record the event."""
        if self._recorder is not None:
            failed = type(arguments[-1]).__name__ if isinstance(arguments[-1], BaseException) else ""
            self._recorder.event(event.removeprefix("on_").removeprefix("connection_"), failed)
        for listener in self._listeners:
            self._tell(listener, event, *arguments)

    def _tell(self, listener: object, event: Event, *arguments: object) -> None:
        method = getattr(listener, event, None)
        if method is not None:
            self._own_dispatcher().submit(partial(method, *arguments))

    def report(self, error: BaseException) -> None:
        """Call the exception listener with an error that no caller waits for (S64, S126-S128)."""
        listener = self.exception_listener
        if listener is None:
            log.error("an error for which no caller waits, and no exception listener is set: %s", error)
            return
        jms = error if isinstance(error, JMSException) else JMSException(str(error))
        self._own_dispatcher().submit(partial(listener, jms))

    def _own_dispatcher(self) -> Dispatcher:
        if self._dispatcher is None:
            self._dispatcher = self._runtime.dispatcher("pyjmsack-events")
        return self._dispatcher

    def running_here(self) -> bool:
        """Return True if the caller is inside one of these listeners."""
        return self._dispatcher is not None and self._dispatcher.running_here()

    def close(self, deadline: Deadline) -> Steps[None]:
        """Wait until the listeners got all pending events, then end the dispatcher."""
        if self._dispatcher is not None:
            yield from all_called(self._dispatcher, deadline)
            self._dispatcher.close(deadline.extended(LAST_CALLS))

    def let_end(self) -> None:
        """Let the dispatcher call the listeners with all pending events, and then end. Do not wait for the end."""
        if self._dispatcher is not None:
            self._dispatcher.let_end()

    # -- what the broker closes ---------------------------------------------------------------------------------

    def remote_close(self, number: int, event: Event) -> RemoteClose:
        """Return an object that calls the listeners if the broker closes this resource. The resource must keep the
        object, because this class has only a weak reference to it."""
        self._remote_closes[number] = remote_close = RemoteClose(self, event)
        return remote_close

    def resource_closed(self, number: int, error: BaseException) -> None:
        """Call the listeners, because the broker closed a session or producer, and not the connection (S109)."""
        remote_close = self._remote_closes.get(number)
        if remote_close is not None:
            remote_close.happened(error)


def _check_names(listener: object) -> None:
    for name in dir(listener):
        if name.startswith("on_") and name not in _EVENTS and (near := get_close_matches(name, _EVENTS, 1, _ALIKE)):
            log.warning(
                "the method %s of the connection listener %s is never called; did you mean %s? (S109)",
                name,
                type(listener).__name__,
                near[0],
            )


class RemoteClose:
    """Calls the connection listeners, once, when the broker closed a session, producer or consumer.

    The listeners get the public object as an argument. The loop may learn of the close before the caller has this
    object. So the listeners are called when both :meth:`given` and :meth:`happened` were called. For an object that no
    caller gets, such as the consumer of a browser, no listener is called.

    Args:
        event: the name of the listeners' method, such as ``on_session_closed``.
    """

    __slots__ = ("__weakref__", "_events", "_object", "_untold", "error")

    def __init__(self, events: Events, event: Event) -> None:
        self._events = events
        self._untold: list[Event] = [event]
        self._object: object = None
        self.error: BaseException | None = None
        """The error with which the broker closed the object. ``None`` if the broker did not close it."""

    def given(self, to_caller: object) -> None:
        """Remember the public object, which the caller has now. Called on any thread."""
        self._object = to_caller
        self._tell()

    def forget(self) -> None:
        """Forget the public object, because the caller closed it. No listener is called after that."""
        self._object = None

    def happened(self, error: BaseException) -> None:
        """Remember the error with which the broker closed the object. Called on the loop."""
        self.error = error
        self._tell()

    def _tell(self) -> None:
        told = self._object
        if self.error is not None and told is not None:
            try:
                event = self._untold.pop()
            except IndexError:  # the listeners were called, or another thread calls them
                return
            self._events.tell(event, told, self.error)

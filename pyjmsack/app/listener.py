"""Checks the arguments of ``@app.listener`` when the program starts. The options of a listener without an ``App`` are
the arguments of ``set_message_listener`` in ``core/facade.py``.

To add an argument, add the keyword in ``app/service.py`` and the field in :class:`Settings`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from pyjmsack.app.arguments import Arguments
from pyjmsack.app.converters import Converter
from pyjmsack.app.joining import CURRENT, Joined, Recorder
from pyjmsack.app.retry import Failures, Retry
from pyjmsack.app.steps import Face, Steps
from pyjmsack.destination import Destination, Queue, Topic, named
from pyjmsack.message import Message
from pyjmsack.types import AckMode

__all__ = ["MODES", "Listener", "Settings", "destination_of", "span"]

MODES: Final = {
    "transacted": AckMode.SESSION_TRANSACTED,
    "individual": AckMode.INDIVIDUAL_ACKNOWLEDGE,
    "no-ack": AckMode.NO_ACKNOWLEDGE,
}
_MOST: Final = 1000
"""The largest number of workers of one listener."""
_SPAN: Final = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


@dataclass(frozen=True)
class Settings:
    """The arguments of ``@app.listener``, as they were given."""

    concurrency: int | str = 1
    selector: str | None = None
    retry: Retry | None = None
    on_error: Callable[..., Any] | None = None
    reply_to: str | Destination | None = None
    topic: bool = False
    subscription: str | None = None
    shared: bool = False
    durable: bool = True
    mode: str = "transacted"
    client_id: str | None = None
    autostart: bool = True


def destination_of(destination: str | Destination, topic: bool = False) -> Destination:
    """Return the queue or topic with this name. ``topic://name`` is a topic. A destination stays as it is.

    Args:
        destination: a name or a destination.
        topic: whether a plain name is the name of a topic.

    Raises:
        InvalidDestinationException: the name is empty, or has the prefix of a queue where a topic is expected, or the
            prefix of a topic where a queue is expected.
    """
    if isinstance(destination, Destination):
        return destination
    if destination.lower().startswith("topic://"):
        topic = True
    return named(Topic, destination) if topic else named(Queue, destination)


def span(concurrency: int | str) -> tuple[int, int]:
    """Return the smallest and the largest number of workers: 3 and 3 for ``3``, 3 and 10 for ``"3-10"``.

    Raises:
        ValueError: the value has neither of these forms, or a number is not between 1 and 1000.
    """
    found = _SPAN.fullmatch(str(concurrency))
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if isinstance(concurrency, bool) or not 1 <= low <= high <= _MOST:
        raise ValueError(f"concurrency is {concurrency!r}; expected 1 to {_MOST}, or two such numbers as in '3-10'")
    return low, high


class Starter(Protocol):
    """The methods of an app that a listener calls."""

    def _start_one(self, listener: Listener) -> Steps[None]: ...

    def _stop_one(self, listener: Listener) -> Steps[bool]: ...

    def _runs(self, listener: Listener) -> bool: ...


class Listener:
    """One listener of an app. ``start`` and ``stop`` work while the app runs. ``call`` tries the function without a
    broker.

    Args:
        name: the name, unique in the app.
        function: the function that takes the messages.
        destination: the destination that the messages come from.
        settings: the other arguments of ``@app.listener``.
        converter: turns messages into bodies, and answers into messages.
        face: the face of the app.
        app: the app that this listener belongs to.

    Raises:
        ValueError: settings contradict each other.
        TypeError: the function cannot be a listener of this app.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        destination: str | Destination,
        settings: Settings,
        converter: Converter,
        face: Face,
        app: Starter,
    ) -> None:
        self.name = name
        self.app = app
        self.function = function
        self.destination = destination_of(destination, settings.topic)
        self.settings = settings
        self.converter = converter
        self.low, self.high = span(settings.concurrency)
        self.retry = settings.retry
        self.failures = Failures()
        self.unanswered = Failures()
        """The messages whose answers the broker refused."""
        self.reply_to = None if settings.reply_to is None else destination_of(settings.reply_to)
        self._face = face
        self._check()
        self.mode = MODES[settings.mode]
        self.arguments = Arguments.of(function, face.session)
        self.on_error = None if settings.on_error is None else _error_handler(settings.on_error)

    def __repr__(self) -> str:
        return f"<listener {self.name!r} of {self.destination!r}>"

    @property
    def needs_client_id(self) -> bool:
        """Whether the subscription of the listener belongs to a client id (S141)."""
        settings = self.settings
        return settings.subscription is not None and settings.durable and not settings.shared

    def _check(self) -> None:
        settings, name = self.settings, self.name
        if settings.mode not in MODES:
            raise ValueError(f"listener {name!r}: mode is {settings.mode!r}; expected one of {', '.join(MODES)}")
        if not callable(self.function):
            raise TypeError(f"listener {name!r}: expected a function, not {type(self.function).__name__}")
        for each in (self.function, settings.on_error):
            if is_coroutine_function(each) and not self._face.coroutines:
                raise TypeError(f"listener {name!r}: a coroutine function needs pyjmsack.aio.App")
        if settings.client_id == "":
            raise ValueError(f"listener {name!r}: client_id is empty; leave it out, or give a name")
        if settings.subscription is None and settings.shared:
            raise ValueError(f"listener {name!r}: shared=True needs the name of a subscription")
        if settings.subscription is not None and not self.destination.is_topic:
            raise ValueError(f"listener {name!r}: a subscription needs topic=True")
        if settings.subscription is not None and not settings.shared and not settings.durable:
            given = f"subscription={settings.subscription!r}"
            raise ValueError(f"listener {name!r}: {given} needs shared=True or durable=True")
        if self.destination.is_topic and not settings.shared and self.high > 1:
            raise ValueError(
                f"listener {name!r}: each worker would get each message of the topic; give shared=True and a"
                " subscription, or leave concurrency out"
            )

    # -- start and stop -----------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the listener was started and not stopped. It may have no connection at the moment."""
        return self.app._runs(self)

    def start(self) -> Any:
        """Start this listener alone, after a stop or if it has ``autostart=False``. If the listener runs already,
        nothing changes. In ``pyjmsack.aio`` the call is awaited.

        The call returns when the listener is ready, its first attempt to connect has failed or the listener is stopped
        again, and after a minute at the latest.

        Raises:
            IllegalStateException: the app is not running, or the listener is still at work after a stop, for example
                because the caller is the listener itself.
        """
        return self._face.run(self.app._start_one(self))

    def stop(self) -> Any:
        """Stop this listener alone: take no further message, finish the messages at work, and close the connection. The
        rest of the app goes on. In ``pyjmsack.aio`` the call is awaited.

        The listener itself may call this method. In this case the method returns False at once, and the listener stops
        when it has finished its message.

        Returns:
            Whether the listener finished within ``stop_timeout``.
        """
        return self._face.run(self.app._stop_one(self))

    # -- one consumer -------------------------------------------------------------------------------------------

    def subscribe(self, session: Any) -> Steps[Any]:
        """Return a consumer for this listener.

        Raises:
            InvalidDestinationException: the destination or ``reply_to`` names several destinations, as ``a,b``, and
                this broker would take the text as one name.
        """
        settings, destination, reply_to = self.settings, self.destination, self.reply_to
        if reply_to is not None and reply_to._several:  # this raises now the error that each answer would raise later
            (session.create_topic if reply_to.is_topic else session.create_queue)(reply_to.name)
        if settings.subscription is None:
            return (yield partial(session.create_consumer, destination, settings.selector))
        if not settings.shared:
            create = session.create_durable_consumer
        else:
            create = session.create_shared_durable_consumer if settings.durable else session.create_shared_consumer
        return (yield partial(create, destination, settings.subscription, settings.selector))

    # -- a test -------------------------------------------------------------------------------------------------

    def call(
        self, body: Any, *, properties: Mapping[str, Any] | None = None, sent: list[tuple[str, Any]] | None = None
    ) -> Any:
        """Call the listener in a test as if a message had arrived, without a broker. In ``pyjmsack.aio`` the call is
        awaited.

        The converter makes a message of the body and reads the message, so that a body that cannot be sent or read is
        an error here too.

        Args:
            body: what a sender would give to ``app.sender.send``; or a message.
            properties: properties to set in the message.
            sent: a list that gets ``(name of the destination, message)`` for each send of the listener. Nothing is
                sent.

        Returns:
            The result of the listener.

        Raises:
            MessageFormatException: the converter cannot write or read the body. An error of the listener is raised as
                it is.
        """
        return self._face.run(self._call(body, dict(properties or {}), [] if sent is None else sent))

    def _call(self, body: Any, properties: dict[str, Any], sent: list[tuple[str, Any]]) -> Steps[Any]:
        message: Message = self.converter.to_message(body)
        for key, value in properties.items():
            message.properties[key] = value
        joined = Joined(self.app, Recorder(sent), self._face.here())
        token = CURRENT.set(joined)
        try:
            arguments = self.arguments.bind(message, None, self.converter.from_message)
            return (yield partial(self.function, **arguments))
        finally:
            joined.over = joined.done = True
            CURRENT.reset(token)


def is_coroutine_function(function: object) -> bool:
    """Return whether a call of ``function`` returns a coroutine. This is also true for an object with
    ``async def __call__``.
    """
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - looks at the method


def _error_handler(handler: Callable[..., Any]) -> Callable[[BaseException, Message], Any]:
    """Return a function that takes the error and the message, and calls the handler. The handler gets the error and the
    message, or only the error if the handler takes one argument.

    Raises:
        TypeError: the handler takes neither one nor two arguments.
    """
    try:
        signature = inspect.signature(handler)
    except ValueError:  # the arguments of a function in C cannot be read
        return lambda error, _: handler(error)
    for count in (2, 1):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return handler if count == 2 else lambda error, _: handler(error)
    raise TypeError(f"on_error: {handler!r} takes neither (error, message) nor (error)")

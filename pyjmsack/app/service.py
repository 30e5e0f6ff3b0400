"""The part of an app that is the same in both faces: the listeners, the sender, start and stop. The class ``App`` of
each face inherits from :class:`Service`.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pyjmsack.app.checks import Checks
from pyjmsack.app.container import Container
from pyjmsack.app.converters import Converter, JsonConverter
from pyjmsack.app.description import described
from pyjmsack.app.joining import CURRENT
from pyjmsack.app.link import Link
from pyjmsack.app.listener import Listener, Settings, destination_of
from pyjmsack.app.retry import Retry
from pyjmsack.app.running import TRIED, Running
from pyjmsack.app.schedule import Schedule, Schedules, check_times
from pyjmsack.app.sender import Sender
from pyjmsack.app.steps import Event, Face, Steps, Task
from pyjmsack.app.trial import options_elsewhere, url_elsewhere
from pyjmsack.destination import Destination
from pyjmsack.errors import IllegalStateException
from pyjmsack.loggers import get_logger
from pyjmsack.types import AckMode

__all__ = ["Service"]

log = get_logger("pyjmsack.app")
F = TypeVar("F", bound=Callable[..., Any])
_CLOSING: Final = 20.0
"""Seconds that the connections of the listeners have to close after the listeners finished. The connection of the
sender has the same time after that."""
_CONNECTING: Final = 5.0
"""Seconds that a stop waits for a connection that is being made."""
_LAUNCHING: Final = 10.0
"""Seconds that a stop waits for a start in another thread, which makes the threads or tasks of the app."""


class Service:
    """The part of an app that both faces share.

    Args:
        url: the broker. One attempt to connect with a ``failover:`` URL tries each of its brokers once. If the attempt
            fails, the app waits and tries again.
        converter: turns bodies into messages and back. ``None`` = :class:`pyjmsack.JsonConverter` without a type
            property.
        username, password, ssl_context: as for :class:`pyjmsack.ConnectionFactory`.
        options: more URL options, as for :class:`pyjmsack.ConnectionFactory`.
        client_id: the client id for the listener with an unshared durable subscription (S141). Each other connection
            gets a generated id, unless its listener has a ``client_id``.
        stop_timeout: seconds that listeners and scheduled functions at work have to finish when the app stops.
        send_timeout: seconds that ``app.sender`` waits for each answer of the broker, unless the URL has
            ``jms.sendTimeout``. See :class:`pyjmsack.app.sender.Sender`.

    Raises:
        InvalidURLException: the URL or an option is wrong.
        ValueError: the URL or the options contain a client id.
    """

    _face: Face

    def __init__(
        self,
        url: str,
        *,
        converter: Converter | None = None,
        username: str | None = None,
        password: str | None = None,
        client_id: str | None = None,
        options: Mapping[str, object] | None = None,
        ssl_context: Any = None,
        stop_timeout: float = 30.0,
        send_timeout: float = 30.0,
    ) -> None:
        if "jms.clientid" in f"{url} {' '.join(options or ())}".lower():
            raise ValueError("App: give client_id=... instead of jms.clientID, because an app has several connections")
        self._url = url
        self._converter = JsonConverter() if converter is None else converter
        self._login = {"username": username, "password": password, "ssl_context": ssl_context}
        self._client_id = client_id
        self._options = dict(options or {})
        self._stop_timeout = stop_timeout
        self._send_timeout = send_timeout
        self._listeners: dict[str, Listener] = {}
        self._serving = Running(self._face, self._container)
        self._schedules: dict[str, Schedule] = {}
        self._ticking = Schedules(self._face)
        self._checks = Checks()
        self._sending: Task | None = None
        self._started_in: int | None = None
        """The id of the process in which the app runs. ``None`` if the app does not run."""
        self._may_stop: deque[None] = deque()
        """Has one entry for each run of the app. The thread or task that takes the entry ends the run. Only one can
        take it, because ``pop`` is atomic."""
        self._stopping: Task | None = None
        self._ended: Event
        self._launched: Event = self._face.event()
        """Raised when the threads or tasks of a run are made. A stop waits for it, because it ends all of them."""
        self._launching: object = None
        """The id of the thread that makes them now. ``None`` in asyncio."""
        self._in_time = True
        self._prepare()
        self.sender = Sender(self, self._face, self._factory(self._patience()), self._converter, send_timeout)

    def _patience(self) -> dict[str, object]:
        """Return the options that limit how long :attr:`sender` waits for a broker that is away or does not answer. A
        URL with ``jms.sendTimeout`` sets its own limits."""
        given = f"{self._url} {' '.join(self._options)}".lower()
        if "sendtimeout" in given:
            return {}
        limit = max(1, round(self._send_timeout * 1000))
        limits: dict[str, object] = {"jms.sendTimeout": limit, "jms.requestTimeout": limit}
        # a close that waits longer than usual would only hold up the caller after an error
        limits["jms.closeTimeout"] = min(limit, 60_000)
        return {name: value for name, value in limits.items() if name[4:].lower() not in given}

    def _prepare(self) -> None:
        """Make the objects that only one of the faces needs. The class ``App`` of a face may override this method."""

    @property
    def _running(self) -> bool:
        return self._started_in == os.getpid()

    @property
    def _inherited(self) -> bool:
        """Whether the app runs in the parent of this process: its threads, tasks and connections do not work here."""
        return self._started_in is not None and not self._running

    def __repr__(self) -> str:
        state = "running" if self._running else "stopped"
        return f"<{type(self).__module__}.{type(self).__name__}, {len(self._listeners)} listeners, {state}>"

    # -- listeners ----------------------------------------------------------------------------------------------

    def listener(
        self,
        destination: str | Destination,
        *,
        name: str | None = None,
        concurrency: int | str = 1,
        selector: str | None = None,
        retry: Retry | None = None,
        on_error: Callable[..., Any] | None = None,
        reply_to: str | Destination | None = None,
        topic: bool = False,
        subscription: str | None = None,
        shared: bool = False,
        durable: bool = True,
        mode: str = "transacted",
        client_id: str | None = None,
        autostart: bool = True,
    ) -> Callable[[F], F]:
        """Call the decorated function with each message of a destination. The decorator does not change the function.

        Args:
            destination: the name of a queue, or of a topic if ``topic`` is set; or a destination object.
            name: the name in ``app.listeners`` and in the log. ``None`` = the name of the destination.
            concurrency: the number of workers, 1 to 1000; or ``"3-10"``, which means 3 workers, and up to 10 if
                messages wait.
            selector: a condition. The listener gets only the messages that fulfil the condition. ``None`` = all
                messages.
            retry: what happens when the function raises. ``None`` = the redelivery policy in the URL. If the URL has no
                policy, the message is delivered again after 1 to 30 seconds, until the broker's limit is reached.
            on_error: called with ``(error, message)``, or ``(error)``, when the function raised. The sends of
                ``on_error`` are not part of the transaction.
            reply_to: where the returned value goes if the message itself has no ``reply_to``.
            topic: whether ``destination`` is the name of a topic.
            subscription: the name of the subscription of a topic. ``None`` = a subscription that ends with its
                consumer.
            shared: whether several consumers divide the messages of the subscription.
            durable: whether the subscription keeps messages while the app does not run.
            mode: ``"transacted"``: the message, the answer and the sends of the function take effect together.
                ``"individual"``: the message is acknowledged when the function has returned. ``"no-ack"``: the message
                is never acknowledged.
            client_id: the client id of the listener's connection, to which a durable subscription belongs. ``None`` =
                the client id of the app if the subscription is unshared and durable, otherwise a generated id.
            autostart: whether the listener starts with the app. Otherwise ``app.listeners[name].start()`` starts it.

        Raises:
            ValueError: arguments contradict each other, or the name is in use.
            TypeError: the function cannot be a listener of this app.
            IllegalStateException: the app is running.
        """
        settings = Settings(
            concurrency, selector, retry, on_error, reply_to, topic, subscription, shared, durable, mode,
            client_id, autostart,
        )  # fmt: skip

        def register(function: F) -> F:
            self._register(name, function, destination, settings)
            return function

        return register

    def _register(
        self, name: str | None, function: Callable[..., Any], destination: str | Destination, settings: Settings
    ) -> None:
        if self._running:
            raise IllegalStateException("the app is running; register its listeners before it starts")
        known = name or destination_of(destination, settings.topic).name
        if known in self._listeners:
            raise ValueError(f"there is a listener {known!r} already; give the new listener another name=")
        listener = Listener(known, function, destination, settings, self._converter, self._face, self)
        client_id = self._client_id_of(listener)
        if listener.needs_client_id and client_id is None:
            raise ValueError(
                f"listener {known!r}: a durable subscription that is not shared needs a client id; give client_id=..."
                " to the listener or to the App, or give shared=True"
            )
        if client_id is not None and client_id in map(self._client_id_of, self._listeners.values()):
            raise ValueError(
                f"listener {known!r}: only one listener of an app can have the client id {client_id!r}, because the"
                " client id belongs to one connection; use shared=True, or another client_id"
            )
        self._listeners[known] = listener

    def _client_id_of(self, listener: Listener) -> str | None:
        return listener.settings.client_id or (self._client_id if listener.needs_client_id else None)

    @property
    def listeners(self) -> Mapping[str, Listener]:
        """The listeners by name. ``app.listeners["orders"].call(body)`` calls one listener in a test, without a
        broker.
        """
        return MappingProxyType(self._listeners)

    # -- schedules ----------------------------------------------------------------------------------------------

    def every(self, seconds: float, *, delay: float = 0.0, name: str | None = None) -> Callable[[F], F]:
        """Run the decorated function at regular intervals while the app runs, as Spring's ``@Scheduled(fixedRate)``
        does. The function has no arguments. The decorator does not change the function.

        Two runs never overlap. If a run takes longer than ``seconds``, the runs that were due meanwhile are left out.
        An error of the function is logged, and the next run comes at its time. A stop of the app waits up to
        ``stop_timeout`` seconds for a run at work. The messages that the function sends leave at once.

        Args:
            seconds: the time from the start of one run to the start of the next run, 0.01 seconds to 31 days.
            delay: seconds from the start of the app to the first run, up to 31 days.
            name: the name in ``app.schedules`` and in the log. ``None`` = the name of the function.

        Raises:
            ValueError: a time is out of its range, or the name is in use. The decorator raises the error about the
                name.
            TypeError: a time is not a number. The decorator also raises this if the function has arguments, or is a
                coroutine function and the app is not one of ``pyjmsack.aio``.
            IllegalStateException: the app is running.
        """
        check_times(seconds, delay)

        def register(function: F) -> F:
            known = name or str(getattr(function, "__name__", function))
            if self._running:
                raise IllegalStateException("the app is running; register its schedules before it starts")
            if known in self._schedules:
                raise ValueError(f"there is a schedule {known!r} already; give the new schedule another name=")
            self._schedules[known] = Schedule(known, function, seconds, delay, self._face, self)
            return function

        return register

    @property
    def schedules(self) -> Mapping[str, Schedule]:
        """The functions of :meth:`every` by name. ``app.schedules["report"].call()`` runs one function in a test,
        without a broker.
        """
        return MappingProxyType(self._schedules)

    # -- connections --------------------------------------------------------------------------------------------

    def options_of(self, listener: Listener) -> dict[str, object]:
        """Return the URL options that a listener's connection gets in addition to the options of the app.

        Args:
            listener: one of ``app.listeners``.
        """
        given = f"{self._url} {' '.join(self._options)}".lower()
        chosen: dict[str, object] = {}
        if "prefetchpolicy" not in given:
            # with 1, no message waits behind a slow message while another worker is free
            chosen["jms.prefetchPolicy.all"] = 1
        if listener.retry is not None or "redeliverypolicy" not in given:
            transacted = listener.mode is AckMode.SESSION_TRANSACTED
            chosen |= (listener.retry or Retry()).options(transacted=transacted)
        return chosen

    def _factory(self, chosen: Mapping[str, object], client_id: str | None = None) -> Any:
        options: dict[str, object] = {**self._options, **chosen}
        if self._url.strip().lower().startswith("failover:") and "startupmaxreconnect" not in self._url.lower():
            # failover: tries once, and the app itself tries again, because the log shows the wait of an app, and stop()
            # ends this wait
            options.setdefault("failover.startupMaxReconnectAttempts", 1)
        return self._face.factory(self._url, options=options, client_id=client_id, **self._login)

    @contextmanager
    def _elsewhere(self, broker_url: str) -> Iterator[None]:
        """Let the app use another broker for the time of a test."""
        self._check_stopped()
        kept = self._url, self._options, self._login
        self._url, self._options = url_elsewhere(self._url, broker_url), options_elsewhere(self._options)
        self._login = dict.fromkeys(self._login)
        self.sender.use(self._factory(self._patience()))
        try:
            yield
        finally:
            self._url, self._options, self._login = kept
            self.sender.use(self._factory(self._patience()))

    # -- its state ----------------------------------------------------------------------------------------------

    @property
    def stop_timeout(self) -> float:
        """Seconds that listeners and scheduled functions at work have to finish when the app stops."""
        return self._stop_timeout

    def health(self) -> dict[str, Any]:
        """Return the state of the app as values that JSON can hold.

        ``status`` is ``"UP"`` if the app runs, its sender is connected, each listener takes messages, and each check
        (:meth:`check`) succeeds. Otherwise ``status`` is ``"DOWN"``. Schedules do not affect the status. A listener
        does not affect the status after a call of its own ``stop()``. ``sender``, ``listeners`` and ``checks`` have the
        details.

        In a child process made by ``fork``, an app that runs in the parent is ``"DOWN"``, and ``reason`` says so.
        ``start()`` starts it anew in the child.
        """
        if self._inherited:
            return {
                "status": "DOWN",
                "reason": "the app was started in the parent process; start it in this process, too",
                "sender": "closed",
                "listeners": {name: {"state": "stopped", "workers": 0, "busy": 0} for name in self._listeners},
                "checks": self._checks.results(),
            }
        sender, checks = self.sender.link.state, self._checks.results()
        up = self._running and sender == "connected" and self._serving.ready
        up = up and all(check["status"] == "UP" for check in checks.values())
        return {
            "status": "UP" if up else "DOWN",
            "sender": sender,
            "listeners": self._serving.health(self._listeners.values()),
            "checks": checks,
        }

    def check(self, name: str) -> Callable[[F], F]:
        """Let the decorated function take part in :meth:`health`. The decorator does not change the function.

        Each call of ``health`` calls the function, in the thread of the caller. The health endpoint of ``pyjmsack run``
        calls ``health`` in threads of its own, several at a time. Therefore the function must be quick and safe for
        threads. If the function raises or returns ``False``, the app is ``"DOWN"``. When a check begins to fail, its
        error is logged once.

        Args:
            name: the name of the check in ``health()["checks"]``.

        Raises:
            ValueError: the name is in use. The decorator raises this.
            TypeError: the function has arguments, or is a coroutine function. The decorator raises this.
        """

        def register(function: F) -> F:
            self._checks.add(name, function)
            return function

        return register

    def describe(self) -> list[dict[str, Any]]:
        """Return the settings of each listener, and the facts that ``pyjmsack explain`` shows for it. No connection is
        made.
        """
        return [
            described(each, self._url, {**self._options, **self.options_of(each)}) for each in self._listeners.values()
        ]

    def stats(self) -> dict[str, dict[str, int]]:
        """Return for each listener how many messages it received, and how many succeeded, failed, or were rolled back
        by the broker."""
        return self._serving.stats()

    # -- steps --------------------------------------------------------------------------------------------------

    def _check_stopped(self) -> None:
        if self._running:
            raise IllegalStateException("the app is running already; stop the app first")

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Begin to stop the app if its start is cancelled or fails, because the ``with`` block of the caller does not
        begin, and so its end stops nothing.
        """
        self._check_stopped()
        if self._inherited:
            self._begin_anew()
        try:
            yield
        except BaseException:
            self._launched.set()  # a signal handler may have raised before _launch could say so
            self._launching = None
            with suppress(RuntimeError):  # no thread can start, or the loop is closed: a later stop() tries again
                self._begin_stop()
            raise

    def _launch(self) -> list[Link]:
        face, sender = self._face, self.sender
        sender.renew()  # first, because a stop ends the link that it finds
        self._ended, self._launched = face.event(), face.event()
        self._launching = face.here()
        self._may_stop = deque([None])
        self._started_in, self._in_time = os.getpid(), True
        try:
            self._sending = face.spawn(sender.link.run(), "pyjmsack-app-sender")
            started = [each for each in self._listeners.values() if each.settings.autostart]
            links = [sender.link, *self._serving.launch(started)]
            self._ticking.launch(self._schedules.values())
            return links
        finally:
            self._launched.set()  # first, because a signal handler that stops the app in between waits for this
            self._launching = None

    def _begin_anew(self) -> None:
        """Leave everything that belongs to the parent process alone, such as locks that a thread of the parent held
        when it made this process."""
        self._serving, self._ticking = Running(self._face, self._container), Schedules(self._face)
        for schedule in self._schedules.values():
            schedule.begin_anew()

    def _container(self, listener: Listener) -> Container:
        factory = self._factory(self.options_of(listener), self._client_id_of(listener))
        if listener.retry is not None:  # otherwise jms.redeliveryPolicy[orders.>].… would override the listener's retry
            factory._drop_policies_of_destinations()
        return Container(self._face, listener, factory, self._stop_timeout)

    def _start(self) -> Steps[None]:
        with self._starting():
            links = self._launch()
            end = time.monotonic() + TRIED
            for link in links:
                yield partial(link.tried.wait, max(0.0, end - time.monotonic()))

    def _runs(self, listener: Listener) -> bool:
        return self._running and self._serving.runs(listener)

    def _start_one(self, listener: Listener) -> Steps[None]:
        if self._inherited:
            raise IllegalStateException(
                f"listener {listener.name!r}: the app was started in the parent process; start the app in this process"
            )
        if self._works_for(listener) and not self._runs(listener):
            raise IllegalStateException(
                f"listener {listener.name!r}: it stopped itself, and is still at work: start it when it has returned"
            )
        yield from self._serving.start(listener, self._stop_timeout + _CLOSING)

    def _stop_one(self, listener: Listener) -> Steps[bool]:
        if self._inherited:
            return True
        if self._works_for(listener):
            self._serving.tell(listener)
            return False  # the listener that calls stop() has not finished
        return (yield from self._serving.stop(listener, self._stop_timeout + _CLOSING))

    def _works_for(self, listener: Listener) -> bool:
        """Return whether the caller is this listener."""
        joined = CURRENT.get()
        return joined is not None and joined.works_for(self, self._face.here()) and joined.listener is listener

    def _stop(self) -> Steps[bool]:
        """Stop, or wait for a stop that is already under way. Return whether all listeners and scheduled functions
        finished in time.

        The stop runs in a thread or task of its own. A listener or scheduled function that calls this method does not
        wait for the stop, because the stop waits for the caller. A signal handler that interrupts a start does not wait
        either, because the start goes on behind the handler.
        """
        if not self._running:
            return self._in_time
        ended = self._ended  # now, because another thread may start the app again before this call waits
        self._begin_stop()
        here, joined = self._face.here(), CURRENT.get()
        if joined is not None and joined.works_for(self, here):
            return False  # the function that calls stop() has not finished
        if here is not None and here == self._launching:
            return False  # a signal handler calls stop(), and the start goes on behind it
        yield ended.wait
        return self._in_time

    def _begin_stop(self) -> None:
        """Let a thread or task end this run of the app, unless another one is at work on that.

        The thread itself takes the permission. If no thread can start, or Ctrl-C comes first, a later call begins the
        stop.
        """
        if self._may_stop:
            self._stopping = self._face.spawn(self._end(self._may_stop, self.sender.link), "pyjmsack-app-stop")

    def _end(self, may_stop: deque[None], sending: Link) -> Steps[None]:
        """Let the functions at work finish, and close the connections. After an interrupted start in a test, the sender
        may have its next link already.
        """
        try:
            may_stop.pop()
        except IndexError:  # another thread or task ends this run, or has ended it
            return
        ended = self._ended
        try:
            yield partial(self._launched.wait, _LAUNCHING)
            start = time.monotonic()
            self._ticking.close()
            serving = self._serving.close()
            self._in_time = yield from self._ticking.join(self._stop_timeout)
            for container, task in serving:
                joined = yield from self._joined(container.link, task, start, self._stop_timeout + _CLOSING)
                self._in_time = self._in_time and joined
            self._in_time = self._in_time and not any(container.left_behind for container, _ in serving)
            sending.stop()  # the sender stops last, because listeners and their on_error may send
            if self._sending is not None:
                yield from self._joined(sending, self._sending, time.monotonic(), _CLOSING)
        finally:
            self._serving.forget()
            self._sending = None
            self._started_in = None
            ended.set()

    @staticmethod
    def _joined(link: Link, task: Task, start: float, patience: float) -> Steps[bool]:
        """Wait for the end of a link, but not longer than ``patience`` seconds after ``start``. If the link has no
        connection yet, the wait is shorter.

        Return False if the link had a connection and did not end in time, because its listeners may not have finished.
        """
        end = start + (patience if link.connection is not None else _CONNECTING)
        if not (yield partial(task.join, max(0.0, end - time.monotonic()))):
            log.warning("the connection of %s did not close in time", link.name)
            task.abandon()
            return link.connection is None
        return True

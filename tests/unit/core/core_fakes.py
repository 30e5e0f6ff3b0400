"""A core without sockets, threads or time: a runtime stepped by hand, a provider that writes down its calls."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pyjmsack.core.connection import Connection
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.listening import Listening
from pyjmsack.core.producer import Producer
from pyjmsack.core.runtime import Later, run_commands, taken
from pyjmsack.core.session import Session
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.destination import Destination, Queue
from pyjmsack.errors import MessageFormatException
from pyjmsack.message import Message, TextMessage
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.types import AckMode, Outcome
from pyjmsack.uri import parse_url

__all__ = ["Bench", "FakeDispatcher", "FakeInbound", "FakeProvider", "FakeRuntime"]

T = TypeVar("T")


class FakeDispatcher:
    """Runs what was submitted when it is told to."""

    def __init__(self) -> None:
        self.calls: deque[Callable[[], Any]] = deque()
        self.running = False
        self.closed = False

    def submit(self, call: Callable[[], Any]) -> None:
        self.calls.append(call)

    def run(self) -> None:
        while self.calls:
            self.running = True
            try:
                self.calls.popleft()()
            finally:
                self.running = False

    def running_here(self) -> bool:
        return self.running

    started_here = running_here

    @property
    def busy(self) -> bool:
        return bool(self.calls)

    def idle(self) -> Steps[None]:
        self.run()
        return
        yield

    def let_end(self) -> None:
        self.closed = True

    def close(self, deadline: Deadline | None = None) -> None:
        self.closed = True


class FakeTimer:
    """A timer in a list of the timers that are set."""

    def __init__(self, timers: list[tuple[float, Callable[[], None]]], delay: float, callback: Callable[[], None]):
        self._timers, self._entry = timers, (delay, callback)
        timers.append(self._entry)

    def cancel(self) -> None:
        if self._entry in self._timers:
            self._timers.remove(self._entry)


class FakeRuntime:
    """Commands wait until :meth:`turn`; a wait that no turn ends has timed out."""

    def __init__(self) -> None:
        self.commands: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self.dispatchers: dict[str, FakeDispatcher] = {}
        self.waits: list[float | None] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.work: deque[tuple[Callable[[], None], Callable[[], None]]] = deque()
        self.meanwhile: deque[Callable[[], Any]] = deque()
        """What happens while steps wait, one thing for each wait."""
        self.callers_on_loop = False
        self.idle_acknowledger: Any = None

    def submit(self, command: Callable[..., Any], *arguments: Any) -> None:
        self.commands.append((command, arguments))

    submit_lazily = submit_from_thread = submit

    def run_queued(self) -> None:
        run_commands(self.commands, lambda: None)

    def elsewhere(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        self.work.append((work, then))

    def helper(self, name: str) -> Callable[[Callable[[], None], Callable[[], None]], None]:
        return self.elsewhere

    def away(self, work: Callable[[], Any]) -> Any:
        return work()

    def work_off(self) -> None:
        """What runs on other threads comes to its end."""
        for work, then in taken(self.work):
            work()
            then()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Later:
        later = Later(callback)
        later.start(partial(FakeTimer, self.timers), delay)
        return later

    def fire(self) -> None:
        """All timers are due."""
        timers = [*self.timers]
        self.timers.clear()
        for _, callback in timers:
            callback()

    def turn(self) -> None:
        """Run the loop once."""
        run_commands(self.commands, lambda: None)

    def run(self, steps: Steps[T]) -> T:
        """Drive steps to their end."""
        try:
            completion, timeout = next(steps)
            while True:
                self.waits.append(timeout)
                self.turn()
                if not completion.done and self.meanwhile:
                    self.meanwhile.popleft()()
                    self.turn()
                completion, timeout = steps.send(completion.done)
        except StopIteration as stop:
            return stop.value

    thread = staticmethod(threading.get_ident)

    def lock(self) -> Any:
        return threading.RLock()

    def dispatcher(self, name: str) -> FakeDispatcher:
        return self.dispatchers.setdefault(name, FakeDispatcher())


class FakeFace:
    """Does what a face does: one dispatcher call feeds a listener until the inbox is empty."""

    acknowledger: Any = None

    def feed(self, listening: Listening) -> None:
        while (call := listening.begin()) is not None:
            error: BaseException | None = None
            try:
                call.listener(call.message)
            except Exception as raised:
                error = raised
            listening.end(call.message, error)
            listening.leave(call)
        listening.unscheduled()


class FakeProvider:
    """Answers every request at once, except those named in ``held``; ``calls`` holds the names and arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.held: dict[str, list[Completion[Any]]] = {}
        self.failing: dict[str, Exception] = {}
        self.sent: list[Any] = []
        self.outcomes: list[tuple[Any, Outcome]] = []
        self.alone: list[Any] = []
        """The names of the messages whose outcome is no part of a transaction."""

    def hold(self, *names: str) -> None:
        for name in names:
            self.held[name] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        def verb(*arguments: Any) -> None:
            self.calls.append((name, *(a for a in arguments if not isinstance(a, Completion))))
            done = next((a for a in arguments if isinstance(a, Completion)), None)
            if name in self.held and done is not None:
                self.held[name].append(done)
            elif done is not None:
                done.settle(self.failing.get(name))

        return verb

    def connect(self, info: Any, listener: Any, done: Completion[ConnectionMetadata]) -> None:
        self.listener = listener
        done.succeed(ConnectionMetadata("fake", "fake", "1", "1"))

    def encoder(self, destination: Destination) -> Callable[[Message, int], bytes]:
        return lambda message, ttl: str(message.body).encode()

    def send(self, outbound: Any) -> None:
        self.sent.append(outbound)

    def settle(self, inbound: Any, outcome: Outcome, joins: bool = True) -> None:
        self.outcomes.append((inbound.name, outcome))
        if not joins:
            self.alone.append(inbound.name)

    def names(self) -> list[str]:
        return [call[0] for call in self.calls]


class FakeInbound:
    """A delivered message."""

    def __init__(
        self,
        name: str,
        *,
        redeliveries: int = 0,
        expired: bool = False,
        broken: bool = False,
        priority: int = 4,
    ) -> None:
        self.name = name
        self.consumer_id = 0
        self.generation = 1
        self.redeliveries = 0
        self.redelivery_count = redeliveries
        self.likely_failures = 0
        self.maybe_unseen = False
        self.priority = priority
        self.settled = self.sent = False
        self.known: bool | None = None
        self.read: Any = None
        self.size = len(name)
        self.heavy = False
        self._expired = expired
        self._broken = broken

    def expired(self, now_ms: int) -> bool:
        return self._expired

    def quick_id(self) -> str | None:
        return self.name or None

    def identity(self) -> bytes | None:
        return self.name.encode() or None

    def to_message(self, destination: Destination, /) -> Message:
        if self._broken:
            raise MessageFormatException("broken")
        return TextMessage(self.name)


class Bench:
    """A started connection on fakes."""

    def __init__(self, *options: str, runtime: FakeRuntime | None = None, tracing: Any = None) -> None:
        self.runtime = runtime or FakeRuntime()
        self.provider: Any = FakeProvider()
        url = parse_url("amqp://broker?" + "&".join(options))
        me = ConnectionInfo("me")
        self.connection = Connection(url, self.runtime, self.provider, me, lambda session: FakeFace(), tracing=tracing)
        self.run = self.runtime.run
        self.run(self.connection.open())
        self.connection.start()
        self.failed: Counter[str] = Counter()
        """How often :meth:`fail` let each message fail."""

    def session(self, mode: int = 1) -> Session:
        return self.run(self.connection.create_session(mode, None))

    def producer(self, session: Session | None = None) -> Producer:
        return self.run((session or self.session()).create_producer(Queue("q")))

    def consumer(self, session: Session | None = None, prefetch: int = 10) -> Consumer:
        queue = Queue(f"q?consumer.prefetchSize={prefetch}")
        return self.run((session or self.session()).create_consumer(queue, None, False))

    def arrive(self, consumer: Consumer, *inbounds: FakeInbound | str) -> None:
        """One burst from the broker."""
        for inbound in inbounds:
            item = FakeInbound(inbound) if isinstance(inbound, str) else inbound
            item.consumer_id = consumer.info.id
            consumer.deliver(item)
        consumer.arrived()

    def fail(self, name: str, times: int = 1) -> None:
        """Let another consumer of the queue get a message, and give it back as failed, so often."""
        consumer = self.consumer(self.session(AckMode.INDIVIDUAL_ACKNOWLEDGE))
        for _ in range(times):
            inbound = FakeInbound(name)
            self.arrive(consumer, inbound)
            message = consumer.receiving.receive_now()
            assert message is not None
            inbound.redelivery_count = self.failed[name]  # set late, so that no delivery waits here
            self.failed[name] += 1
            consumer.settle_one(message, Outcome.MODIFIED_FAILED)
        self.runtime.turn()
        self.provider.outcomes.clear()

    def outcomes(self) -> list[tuple[str, Outcome]]:
        """Run the loop and return what the broker was told."""
        self.runtime.turn()
        return list(self.provider.outcomes)

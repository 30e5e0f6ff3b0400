"""A failover provider on providers that are scripted, and on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjmsack.destination import Destination, Queue
from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.message import Message, TextMessage
from pyjmsack.providers.failover.provider import FailoverProvider
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Outbound, generations
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata, ConsumerInfo, ProducerInfo, SessionInfo
from pyjmsack.types import AckMode, Outcome
from pyjmsack.uri import BrokerUrl, parse_url

__all__ = ["Bench", "FakeInbound", "FakeMember", "FakeSend", "Sink"]


class Clock:
    """A connector whose time stands still until :meth:`pass_by`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._calls: list[_Call] = []
        self.work: list[tuple[Callable[[], None], Callable[[], None]]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> _Call:
        call = _Call(self.now + delay, callback)
        self._calls.append(call)
        return call

    def elsewhere(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        self.work.append((work, then))

    def work_off(self) -> None:
        """What runs on other threads comes to its end."""
        while self.work:
            work, then = self.work.pop(0)
            work()
            then()

    def for_url(self, url: BrokerUrl) -> Clock:
        return self

    def connect(self, *arguments: Any) -> None:
        raise AssertionError("the failover provider opens no streams")

    def cancel(self) -> None: ...

    def pass_by(self, seconds: float) -> None:
        """Let time pass, and what is due happen."""
        end = self.now + seconds
        while due := [call for call in self._calls if not call.cancelled and call.at <= end]:
            call = min(due, key=lambda c: c.at)
            self._calls.remove(call)
            self.now = max(self.now, call.at)
            call.callback()
        self.now = end

    @property
    def waits(self) -> list[float]:
        """How long the pending calls are off."""
        return sorted(round(call.at - self.now, 6) for call in self._calls if not call.cancelled)


class _Call:
    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at = at
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeMember:
    """One broker's provider. It answers at once, but for verbs in ``bench.silent``; those in ``bench.refused`` fail.

    ``calls`` holds verb and first argument, ids for descriptors; ``bench.calls`` those of all members.
    """

    def __init__(self, bench: Bench, url: BrokerUrl) -> None:
        self._bench = bench
        self.url = url
        self.name = url.endpoints[0].host
        self.generation = 0
        self.sent: list[Outbound] = []
        self.outcomes: list[tuple[Any, Outcome]] = []
        self.pending: list[tuple[str, Completion[Any]]] = []
        self.unsent: set[Outbound] = set()
        self.sinks: dict[int, Any] = {}
        self.aborted = False
        self.doomed = False
        """Whether it was asked for what ends it: what comes behind is not answered."""

    def connect(self, info: ConnectionInfo, listener: Any, done: Completion[ConnectionMetadata]) -> None:
        self.info, self.listener = info, listener
        self.generation = next(generations)
        self._bench.calls.append(("connect", self.name))
        error = self._bench.down.get(self.name)
        if error is not None:
            done.fail(error)
        elif "connect" in self._bench.silent:
            self.pending.append(("connect", done))
        else:
            done.succeed(self.metadata)

    @property
    def metadata(self) -> ConnectionMetadata:
        broker = self._bench.brokers.get(self.name, "unknown")
        return ConnectionMetadata("fake", self.name, "1", "1", properties=self._bench.properties, broker=broker)

    def __getattr__(self, verb: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            done = next((a for a in arguments if isinstance(a, Completion)), None)
            subject = arguments[0] if arguments else None
            number = getattr(subject, "id", subject)
            if verb not in ("flush", "abort"):
                self._bench.calls.append((verb, number if not isinstance(number, Completion) else None))
            if verb == "create_consumer":
                self.sinks[number] = arguments[1]
            if done is None:
                return
            if verb.startswith("create_") and number in self._bench.deadly and not self.doomed:
                self.doomed = True
                self._bench.clock.call_later(0.001, self._die)
            if self.doomed or verb in self._bench.silent:
                self.pending.append((verb, done))
            elif (verb, number) in self._bench.refused and self.name not in self._bench.lenient:
                done.fail(self._bench.refused[verb, number])
            elif verb == "create_temporary":
                done.succeed(f"temporary-{number}-of-{self.name}")
            else:
                done.succeed()

        return call

    def abort(self, error: BaseException) -> None:
        self.aborted = True
        for _, done in self.pending:
            done.fail(error)

    def send(self, outbound: Outbound) -> None:
        self._bench.calls.append(("send", outbound.payload.decode()))
        if outbound.payload.decode() in self._bench.poison and not self.doomed:
            self.doomed = True
            self._bench.clock.call_later(0.001, self._die)
        if self.doomed or "send" in self._bench.silent:
            self.sent.append(outbound)
        else:
            outbound.done(None)

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        if outbound in self.unsent:
            outbound.done(JMSException("withdrawn"))
        withdrawn.succeed(outbound in self.unsent)

    def settle(self, inbound: Any, outcome: Outcome, joins: bool = True) -> None:
        self.outcomes.append((inbound, outcome))

    def encoder(self, destination: Destination) -> Callable[[Message, int], bytes]:
        broker = self._bench.brokers.get(self.name, "")
        return lambda message, ttl: f"{broker}{message.body}".encode()

    def decode(self, payload: bytes, destination: Destination) -> tuple[Message, int]:
        broker = self._bench.brokers.get(self.name, "")
        return TextMessage(payload.decode().removeprefix(broker)), 0

    def _die(self) -> None:
        if not self.aborted:
            if self._bench.reason is None:
                self.fail()
            else:
                self.fail(ConnectionLostException("the broker says why", error_code=self._bench.reason))

    def fail(self, error: JMSException | None = None) -> None:
        """Lose the connection, as a provider does: first the listener, then what is pending."""
        error = error or ConnectionLostException("gone")
        self.listener.on_failure(error)
        pending, self.pending = self.pending, []
        for _, done in pending:
            done.fail(error)
        sent, self.sent = self.sent, []
        for outbound in sent:
            outbound.done(error)


class FakeSend(Outbound):
    """A send that writes down its end; ``outcome`` is ``"open"`` until then."""

    __slots__ = ("outcome",)

    def __init__(self, bench: Bench, body: str, producer_id: int, *, transacted: bool, notifies: bool) -> None:
        self.producer_id = producer_id
        self.encoder = bench.provider.encoder(Queue("q"))
        self.payload = self.encoder(TextMessage(body), 0)
        self.message_id = None
        self.presettled = False
        self.transacted = transacted
        self.notifies = notifies
        self.outcome: Any = "open"

    def done(self, error: BaseException | None) -> None:
        assert self.outcome == "open", "told twice"
        self.outcome = error


class FakeInbound:
    """A delivery of the present connection."""

    def __init__(self, consumer_id: int, generation: int, name: str | None = None) -> None:
        self.consumer_id = consumer_id
        self.generation = generation
        self.name = name
        self.settled = False
        self.heavy = False

    def identity(self) -> bytes | None:
        return None if self.name is None else self.name.encode()


class Sink:
    """A consumer of the core."""

    def __init__(self) -> None:
        self.delivered: list[Any] = []
        self.errors: list[BaseException] = []

    def deliver(self, inbound: Any) -> None:
        self.delivered.append(inbound)

    def redeliver(self, inbounds: Any) -> None: ...

    def arrived(self) -> None: ...

    def buffered(self) -> int:
        return 0

    def detached(self, error: BaseException) -> None:
        self.errors.append(error)


class Bench:
    """A failover connection over ``members``, whose brokers are as the attributes say."""

    def __init__(self, members: str = "amqp://a,amqp://b", options: str = "", *, connect: bool = True) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.silent: set[str] = set()
        self.refused: dict[tuple[str, Any], JMSException] = {}
        self.lenient: set[str] = set()
        """Brokers that refuse nothing."""
        self.down: dict[str, JMSException] = {}
        self.missing: dict[str, JMSException] = {}
        """Brokers for which no provider can be made, because a library is not installed."""
        self.restored: Callable[[], None] = lambda: None
        """Called when all is rebuilt, before what waits is asked."""
        self.leaving: Callable[[Completion[None]], None] = lambda done: done.succeed()
        """Called when acknowledgements are to leave before the connection moves."""
        self.deadly: set[int] = set()
        """Links that end the connection which is asked for them."""
        self.poison: set[str] = set()
        """Bodies of messages that end the connection over which they are sent."""
        self.reason: str | None = "amqp:connection:framing-error"
        """What the broker says when one does; ``None`` = nothing, as a bad network."""
        self.brokers: dict[str, str] = {}
        self.properties: dict[str, Any] = {}
        self.members: list[FakeMember] = []
        self.events: list[Any] = []
        self.clock = Clock()
        self.url = parse_url(f"failover:({members})?jms.connectTimeout=15000&{options}".rstrip("&"))
        self.provider = FailoverProvider(self.url, self.clock, self._create)
        self.opened: Completion[ConnectionMetadata] = Completion()
        if connect:
            self.connect()

    def _create(self, url: BrokerUrl, connector: Any) -> Any:
        if (error := self.missing.get(url.endpoints[0].host)) is not None:
            raise error
        self.members.append(FakeMember(self, url))
        return self.members[-1]

    def connect(self) -> None:
        self.provider.connect(ConnectionInfo("me"), self, self.opened)
        self.clock.pass_by(0)

    @property
    def member(self) -> FakeMember:
        """The newest connection."""
        return self.members[-1]

    @property
    def tried(self) -> list[str]:
        """The brokers that were tried, in order."""
        return [number for verb, number in self.calls if verb == "connect"]

    # -- the core's end -----------------------------------------------------------------------------------------

    def on_failure(self, error: BaseException) -> None:
        self.events.append(("failure", str(error)))

    def on_leaving(self, done: Completion[None]) -> None:
        self.leaving(done)

    def on_interrupted(self, error: BaseException, generation: int) -> None:
        self.events.append("interrupted")

    def on_restored(self, metadata: ConnectionMetadata) -> None:
        self.events.append(("restored", metadata.broker_name))
        self.restored()
        self.calls.append(("told", None))

    def on_temporary_renamed(self, temporary_id: int, name: str) -> None:
        self.events.append(("renamed", temporary_id, name))

    def on_resource_closed(self, number: int, error: BaseException) -> None:
        self.events.append(("closed", number, str(error)))

    def ask(self, verb: str, *arguments: Any) -> Completion[Any]:
        """Make a request."""
        done: Completion[Any] = Completion()
        getattr(self.provider, verb)(*arguments, done)
        return done

    def session(self, number: int = 1, mode: AckMode = AckMode.AUTO_ACKNOWLEDGE) -> None:
        self.ask("create_session", SessionInfo(number, mode))

    def producer(self, number: int = 2, session: int = 1) -> None:
        self.ask("create_producer", ProducerInfo(number, session, Queue("q")))

    def consumer(self, number: int = 3, session: int = 1, *, prefetch: int = 10, browser: bool = False) -> Sink:
        sink = Sink()
        self.ask("create_consumer", ConsumerInfo(number, session, Queue("q"), prefetch, browser=browser), sink)
        return sink

    def send(self, body: str, producer: int = 2, *, transacted: bool = False, notifies: bool = False) -> FakeSend:
        send = FakeSend(self, body, producer, transacted=transacted, notifies=notifies)
        self.provider.send(send)
        return send

    def outage(self) -> None:
        """The broker is gone, and no other answers."""
        self.silent.add("connect")
        self.member.fail()
        self.clock.pass_by(0)

    def end_outage(self) -> None:
        """The broker that was asked answers."""
        self.silent.discard("connect")
        (_, done), *_ = self.member.pending
        self.member.pending.clear()
        done.succeed(self.member.metadata)
        self.clock.pass_by(0)

    def since(self, count: int) -> list[tuple[str, Any]]:
        """Return the calls of all members after the first ``count``."""
        return self.calls[count:]

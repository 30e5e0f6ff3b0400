"""A provider without sockets or clock, and a core that only records its events."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pyjmsack.errors import JMSException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConnectionInfo

__all__ = ["MOST_WRITTEN", "PREFETCH", "Bench", "FindingError", "Input", "Sink", "fed"]

Input: TypeAlias = "list[bytes]"
"""What a target runs, piece by piece."""
MOST_WRITTEN: Final = 1 << 22
"""Bytes that hostile input may make a client write."""
PREFETCH: Final = 10
"""Of the consumers."""


class FindingError(AssertionError):
    """Something that hostile input must not bring about."""


class Sink:
    """A consumer of the core. The messages that it keeps count as memory."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def deliver(self, inbound: Any) -> None:
        self.kept.append(inbound)

    def redeliver(self, inbounds: Any) -> None:
        self.kept.extend(inbounds)

    def arrived(self) -> None: ...

    def buffered(self) -> int:
        return len(self.kept)

    def detached(self, error: BaseException) -> None:
        if not isinstance(error, JMSException):
            raise FindingError(f"a consumer is told {error!r}")


class _Call:
    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at, self.callback, self.cancelled = at, callback, False

    def cancel(self) -> None:
        self.cancelled = True


class Bench:
    """A connector, a stream and a listener in one."""

    encrypted = False

    def __init__(self) -> None:
        self.engine: Any = None
        self.now = 1000.0
        self.written = 0
        self.closed = False
        self.failures: list[BaseException] = []
        self.asked: list[tuple[str, Completion[Any]]] = []
        self._calls: list[_Call] = []

    # -- connector ----------------------------------------------------------------------------------------------

    def connect(self, endpoint: Any, engine: Any, failed: Any) -> None:
        self.engine = engine
        engine.connection_made(self)

    def cancel(self) -> None: ...

    def for_url(self, url: Any) -> Bench:
        return self

    def read(self, source: Any) -> Any:
        raise AssertionError("no body is read from a source here")

    def call_later(self, delay: float, callback: Callable[[], None]) -> _Call:
        call = _Call(self.now + delay, callback)
        self._calls.append(call)
        return call

    def elsewhere(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        work()
        self.call_later(0, then)

    def pass_by(self, seconds: float) -> None:
        """Let time pass, for timers and for the engine."""
        self.now += seconds
        due = [call for call in self._calls if not call.cancelled and call.at <= self.now]
        self._calls = [call for call in self._calls if not call.cancelled and call.at > self.now]
        for call in due:
            call.callback()
        self.engine.tick(self.now)

    # -- stream -------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        while not self.closed and (data := self.engine.data_to_send()):
            self.written += len(data)

    def retick(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    # -- listener -----------------------------------------------------------------------------------------------

    def on_failure(self, error: BaseException) -> None:
        self.failures.append(error)

    def on_resource_closed(self, number: int, error: BaseException) -> None:
        if not isinstance(error, JMSException):
            raise FindingError(f"a resource is closed with {error!r}")

    # -- the core -----------------------------------------------------------------------------------------------

    def open(self, provider: Any) -> None:
        done: Completion[Any] = Completion()
        self.asked.append(("connect", done))
        provider.connect(ConnectionInfo("fuzz"), self, done)

    def ask(self, provider: Any, verb: str, *arguments: Any) -> None:
        done: Completion[Any] = Completion()
        self.asked.append((verb, done))
        getattr(provider, verb)(*arguments, done)
        provider.flush()

    def end(self) -> None:
        """Lose the stream, and check that all who waited were told, and told something of ours."""
        self.engine.connection_lost(None)
        for verb, done in self.asked:
            if not done.done:
                raise FindingError(f"{verb} is never answered")
            if done.error is not None and not isinstance(done.error, JMSException):
                raise FindingError(f"{verb} fails with {done.error!r}")
        if len(self.failures) > 1:
            raise FindingError(f"the failure is told {len(self.failures)} times")
        if self.failures and not isinstance(self.failures[0], JMSException):
            raise FindingError(f"the failure is {self.failures[0]!r}")


def fed(dice: random.Random, data: bytes) -> list[bytes]:
    """Cut bytes into pieces as a socket may."""
    pieces = []
    while data:
        size = dice.choice([1, 2, 7, 100, 4096, 1 << 18])
        pieces.append(data[:size])
        data = data[size:]
        if len(pieces) > 40:
            pieces.append(data)
            break
    return pieces

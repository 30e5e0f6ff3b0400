"""By what a connection of kombu learns that messages have arrived, and what an interrupt does to that."""

from __future__ import annotations

import select
import socket
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")
from interrupting import Interrupt

from pyjmsack.kombu.connection import Connection
from pyjmsack.kombu.window import Window


class Local(Connection):
    """A connection without a broker and without a loop."""

    def __init__(self) -> None:
        self._ready = deque()
        self._signalled = self._told = False
        self.error, self.closed = None, False
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)

    def arrive(self) -> None:
        delivery: Any = SimpleNamespace(window=Window())
        self.arrived(delivery)

    @property
    def readable(self) -> bool:
        return bool(select.select([self], [], [], 0)[0])

    def __enter__(self) -> Local:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True
        self._reader.close()
        self._writer.close()


def take_all(connection: Local) -> None:
    """Take what has arrived, as the next call of the program does, until it would block."""
    while connection.has_more:
        connection.wait(0)
    with pytest.raises(TimeoutError):
        connection.wait(0)


def test_a_message_after_an_interrupt_wakes_the_program() -> None:
    """The interrupt came when the byte was read and the note of it was still there, so no byte was written again, and
    ``drain_events`` waited for ever."""
    event, left = 0, 0
    while left <= 0:
        event += 1
        with Local() as connection:
            connection.arrive()
            interrupt = Interrupt(event)
            interrupt.run(lambda connection=connection: connection.wait(0))  # type: ignore[misc]
            left = interrupt.left
            take_all(connection)
            assert not connection.readable
            connection.arrive()
            assert connection.readable, f"after an interrupt at step {event}"
    assert event > 5


def test_a_message_that_arrives_while_the_signal_is_cleared_is_seen_or_wakes_the_program() -> None:
    """At each moment of the call, and the message behind it wakes the program, too."""

    class Between:
        """The reading end, with a message that arrives before or after each read."""

        def __init__(self, connection: Local, moment: str) -> None:
            self._connection, self._inner, self._moment = connection, connection._reader, moment

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def recv(self, size: int, *flags: int) -> bytes:
            if self._moment == "before":
                self._connection.arrive()
            try:
                return self._inner.recv(size, *flags)
            finally:
                if self._moment == "after":
                    self._connection.arrive()

    for moment in ("before", "after"):
        for earlier in (0, 1):
            with Local() as connection:
                for _ in range(earlier):
                    connection.arrive()
                inner = connection._reader
                connection._reader = Between(connection, moment)  # type: ignore[assignment]
                connection.clear_signal()
                connection._reader = inner
                while connection.next() is not None:
                    pass
                connection.clear_signal()  # of the next call
                assert connection.next() is None
                connection.arrive()
                assert connection.readable, (moment, earlier)

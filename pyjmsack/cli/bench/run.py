"""One run: its clients in threads, from the first connection to the figures."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from pyjmsack import JMSException
from pyjmsack.cli.bench.clients import PATIENCE, Client
from pyjmsack.cli.bench.histogram import Histogram
from pyjmsack.cli.bench.plan import Turns
from pyjmsack.cli.options import Login
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.terminal import Counter

__all__ = ["Result", "run_clients"]

_LOOK = 0.1
"""The number of seconds between two checks whether the clients still work."""


@dataclass
class Result:
    """The result of a run: the figures of all clients together."""

    times: Histogram = field(default_factory=Histogram)
    done: int = 0
    bytes: int = 0
    """The number of bytes in the bodies."""
    unanswered: int = 0
    """The number of messages that the broker did not confirm. Nobody knows whether the broker has these messages."""
    seconds: float = 0.0
    error: BaseException | None = None
    """The first error, which ended the run. ``None`` means that there was no error."""
    ended: float = 0.0
    """The moment at which the last client ended, in seconds of the monotonic clock."""
    stopped: bool = False
    """Whether a signal ended the run."""
    connected: bool = True
    """Whether any client was connected. If so, the broker may have messages of this run."""

    @property
    def per_second(self) -> float:
        """The number of messages per second, for all clients together."""
        return self.done / self.seconds if self.seconds else 0.0


def run_clients(login: Login, clients: Sequence[Client], turns: Turns, stop: Stop, show: Counter) -> Result:
    """Let all clients work until the turns end, one of them fails, or a signal comes. The result has the first
    error.
    """
    result = Result(connected=False)
    with ExitStack() as opened:
        try:
            _open(login, clients, opened, stop, result)
        except JMSException as error:
            result.error = error
            return result
        threads = [threading.Thread(target=_work, args=(each, turns, result), daemon=True) for each in clients]
        turns.begin()
        began = time.monotonic()
        for thread in threads if not stop.requested else ():
            thread.start()
        _watch(threads, clients, turns, stop, show)
        at_work = any(thread.is_alive() for thread in threads)
        result.seconds = (time.monotonic() if at_work else max(result.ended, began)) - began
    result.stopped = stop.requested
    for client in clients:
        result.times.merge(client.times)
        result.done += client.done
        result.bytes += client.bytes
        result.unanswered += client.sent - client.done
    return result


def _open(login: Login, clients: Sequence[Client], opened: ExitStack, stop: Stop, result: Result) -> None:
    for client in clients:
        if stop.requested:
            return
        connection = opened.enter_context(login.factory().create_connection())
        result.connected = True
        # this listener ignores the error of the connection, because the waiting calls of the client raise it
        connection.exception_listener = lambda error: None
        connection.start()
        client.open(connection)


def _work(client: Client, turns: Turns, result: Result) -> None:
    try:
        client.work(turns)
    except BaseException as error:  # the main thread raises this error
        if result.error is None:
            result.error = error
        turns.end()
    finally:
        result.ended = max(result.ended, time.monotonic())


def _watch(
    threads: Sequence[threading.Thread], clients: Sequence[Client], turns: Turns, stop: Stop, show: Counter
) -> None:
    """Wait for the threads. After the end of the turns the wait has a limit, because a broker may not answer."""
    until: float | None = None
    while any(thread.is_alive() for thread in threads):
        stop.wait(_LOOK) if not stop.requested else threads[0].join(_LOOK)
        if stop.requested:
            turns.end()
        show(sum(client.done for client in clients), "")
        if until is None and turns.over:
            until = time.monotonic() + 2 * PATIENCE
        if until is not None and time.monotonic() > until:
            return

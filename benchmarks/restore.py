"""``python -m benchmarks restore``: how soon all is as before when a killed broker is back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.environment import embedded
from benchmarks.job import BenchmarkError
from pyjmsack import AckMode, Connection, ConnectionFactory
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.broker.readiness import answers_amqp, answers_stomp

CONSUMERS = 1000
MESSAGE_LIMIT, CONSUMERS_LIMIT = 0.3, 3.0
MAX_RECONNECT_DELAY = 0.1
"""Seconds. By default the waits between attempts grow up to 30 s, as in Java: no broker is found sooner than the next
attempt."""
_PATIENCE = 60.0
_PROBE_SECONDS = 0.002


@dataclass(frozen=True)
class RestoreReport:
    """Seconds from the port's first answer, of every round."""

    protocol: str
    first_message: list[float]
    consumers: list[float]

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "protocol": self.protocol,
            "max_reconnect_delay": MAX_RECONNECT_DELAY,
            "first_message": {"seconds": self.first_message, "limit": MESSAGE_LIMIT},
            "consumers": {"count": CONSUMERS, "seconds": self.consumers, "limit": CONSUMERS_LIMIT},
        }

    def sentences(self) -> str:
        """Say it in two lines."""
        first = _sentence("first message", self.first_message, MESSAGE_LIMIT)
        return f"{self.protocol}: {first}\n{self.protocol}: " + _sentence(
            f"{CONSUMERS:,} consumers on one connection", self.consumers, CONSUMERS_LIMIT
        )


def _sentence(what: str, seconds: list[float], limit: float) -> str:
    middle, worst = median(seconds), max(seconds)
    verdict = "within" if middle <= limit else "over"
    return (
        f"{what}: {middle * 1e3:,.0f} ms, at most {worst * 1e3:,.0f} ms; {verdict} the limit of {limit * 1e3:,.0f} ms"
    )


def measure(protocol: str, rounds: int, progress: Callable[[int], None]) -> RestoreReport:
    """Kill and restart an embedded Artemis, first with one consumer that waits, then with many.

    Raises:
        BenchmarkError: the connection did not come back.
    """
    with embedded() as broker:
        first, many = [], []
        for number in range(rounds):
            first.append(_first_message(broker, protocol))
            progress(2 * number + 1)
            many.append(_consumers(broker, protocol))
            progress(2 * number + 2)
    return RestoreReport(protocol, first, many)


def _first_message(broker: EmbeddedArtemis, protocol: str) -> float:
    """From the port's answer to the arrival of a message whose sending began when there was no broker."""
    arrived = threading.Event()
    with _connection(broker, protocol) as connection, ExitStack() as stack:
        session, listening = (stack.enter_context(connection.create_session()) for _ in range(2))
        queue = session.create_queue("bench-restore")
        producer = session.create_producer(queue)
        listening.create_consumer(queue).message_listener = lambda message: arrived.set()
        connection.start()

        def flows() -> None:
            producer.send("x")
            _wait(arrived)

        return _after_restart(broker, protocol, flows)


def _consumers(broker: EmbeddedArtemis, protocol: str) -> float:
    """From the port's answer to the event that all is restored, with a queue for each consumer."""
    restored = _Restored()
    with _connection(broker, protocol) as connection, connection.create_session(AckMode.AUTO_ACKNOWLEDGE) as session:
        connection.start()
        for number in range(CONSUMERS):
            session.create_consumer(session.create_queue(f"bench-restore-{number}"))
        connection.add_connection_listener(restored)
        return _after_restart(broker, protocol, lambda: _wait(restored.event))


class _Restored:
    def __init__(self) -> None:
        self.event = threading.Event()

    def on_connection_restored(self, url: str) -> None:
        self.event.set()


def _wait(event: threading.Event) -> None:
    if not event.wait(_PATIENCE):
        raise BenchmarkError(f"nothing came back within {_PATIENCE:g} s")


@contextmanager
def _connection(broker: EmbeddedArtemis, protocol: str) -> Iterator[Connection]:
    member = broker.stomp_url if protocol == "stomp" else broker.amqp_url
    options = f"failover.maxReconnectDelay={MAX_RECONNECT_DELAY * 1e3:.0f}&failover.warnAfterReconnectAttempts=0"
    with ConnectionFactory(f"failover:({member})?{options}").create_connection() as connection:
        yield connection


def _after_restart(broker: EmbeddedArtemis, protocol: str, wait: Callable[[], None]) -> float:
    """Kill the broker, restart it, and return the seconds between its answer and the end of ``wait``."""
    broker.kill()
    with ThreadPoolExecutor(2) as executor:
        waiting = executor.submit(_timed, wait)
        answering = executor.submit(_timed, lambda: _await_answer(broker, protocol))
        broker.restart()
        return waiting.result() - answering.result()


def _timed(work: Callable[[], None]) -> float:
    work()
    return time.monotonic()


def _await_answer(broker: EmbeddedArtemis, protocol: str) -> None:
    """Return when the broker answers a client of the protocol."""
    url, answers = (broker.stomp_url, answers_stomp) if protocol == "stomp" else (broker.amqp_url, answers_amqp)
    port = int(url.rpartition(":")[2])
    while not answers(port):
        time.sleep(_PROBE_SECONDS)

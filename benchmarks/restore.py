"""``python -m benchmarks restore``: how soon all is as before when a killed broker, or a cut network, is back."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.environment import embedded
from benchmarks.job import BenchmarkError
from pyjmsack import AckMode, Connection, ConnectionFactory, DeliveryMode, MessageConsumer
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.broker.readiness import answers_amqp, answers_stomp
from pyjmsack.testing import Wire

CONSUMERS = 1000
MESSAGE_LIMIT, CONSUMERS_LIMIT, SPEED_LIMIT = 0.3, 3.0, 2.0
BACKLOG = 60_000
"""Messages that wait when the speed is measured."""
STEPS = 3
"""Measurements of a round."""
OUTAGE_LIMIT = 1.0
MAX_RECONNECT_DELAY = 0.1
"""Seconds. By default the waits between attempts grow up to 0.75 s, and no broker is found sooner than at the next
attempt."""
_SHORT_WAITS = f"?failover.maxReconnectDelay={MAX_RECONNECT_DELAY * 1e3:.0f}&failover.warnAfterReconnectAttempts=0"
_PATIENCE = 60.0
_PROBE_SECONDS = 0.002
_BIN = 0.1
"""Seconds over which messages are counted."""
_FULL = 0.8
"""The share of the speed before the cut that counts as full speed."""


@dataclass(frozen=True)
class RestoreReport:
    """Seconds from the port's first answer (the network's, for the speed), of every round."""

    protocol: str
    first_message: list[float]
    consumers: list[float]
    speed: list[float]

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "protocol": self.protocol,
            "max_reconnect_delay": MAX_RECONNECT_DELAY,
            "first_message": {"seconds": self.first_message, "limit": MESSAGE_LIMIT},
            "consumers": {"count": CONSUMERS, "seconds": self.consumers, "limit": CONSUMERS_LIMIT},
            "full_speed": {"share": _FULL, "seconds": self.speed, "limit": SPEED_LIMIT},
        }

    def sentences(self) -> str:
        """Say it in three lines."""
        lines = (
            _sentence("first message", self.first_message, MESSAGE_LIMIT),
            _sentence(f"{CONSUMERS:,} consumers on one connection", self.consumers, CONSUMERS_LIMIT),
            _sentence("full speed after a cut", self.speed, SPEED_LIMIT),
        )
        return "\n".join(f"{self.protocol}: {line}" for line in lines)


def _sentence(what: str, seconds: list[float], limit: float) -> str:
    middle, worst = median(seconds), max(seconds)
    verdict = "within" if middle <= limit else "over"
    return (
        f"{what}: {middle * 1e3:,.0f} ms, at most {worst * 1e3:,.0f} ms; {verdict} the limit of {limit * 1e3:,.0f} ms"
    )


@dataclass(frozen=True)
class OutageReport:
    """For each outage, the seconds from the port's first answer to the first message, of every round."""

    protocol: str
    first_message: dict[float, list[float]]

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        outages = [{"outage": outage, "seconds": seconds} for outage, seconds in self.first_message.items()]
        return {"protocol": self.protocol, "options": "default", "limit": OUTAGE_LIMIT, "first_message": outages}

    def sentences(self) -> str:
        """Return one line for each outage."""
        return "\n".join(
            f"{self.protocol}: {_sentence(f'first message after an outage of {outage:g} s', seconds, OUTAGE_LIMIT)}"
            for outage, seconds in self.first_message.items()
        )


def measure_outages(
    protocol: str, outages: Sequence[float], rounds: int, progress: Callable[[int], None]
) -> OutageReport:
    """Kill an embedded Artemis, start it again after some seconds, and time the first message with default options.

    Raises:
        BenchmarkError: the connection did not come back.
    """
    seconds: dict[float, list[float]] = {outage: [] for outage in outages}
    with embedded() as broker:
        for number in range(rounds):
            for place, outage in enumerate(seconds):
                seconds[outage].append(_first_message(broker, protocol, "", outage))
                progress(len(seconds) * number + place + 1)
    return OutageReport(protocol, seconds)


def measure(protocol: str, rounds: int, progress: Callable[[int], None]) -> RestoreReport:
    """Kill and restart an embedded Artemis, first with one consumer that waits, then with many; then cut a wire.

    Raises:
        BenchmarkError: the connection did not come back.
    """
    with embedded() as broker:
        measures = (_first_message, _consumers, _full_speed)
        seconds: list[list[float]] = [[] for _ in measures]
        for number in range(rounds):
            for place, measured in enumerate(measures):
                seconds[place].append(measured(broker, protocol))
                progress(STEPS * number + place + 1)
    return RestoreReport(protocol, *seconds)


def _first_message(broker: EmbeddedArtemis, protocol: str, options: str = _SHORT_WAITS, outage: float = 0.0) -> float:
    """From the port's answer to the arrival of a message whose sending began when there was no broker."""
    arrived = threading.Event()
    with _connection(address(broker, protocol), options) as connection, ExitStack() as stack:
        session, listening = (stack.enter_context(connection.create_session()) for _ in range(2))
        queue = session.create_queue("bench-restore")
        producer = session.create_producer(queue)
        listening.create_consumer(queue).message_listener = lambda message: arrived.set()
        connection.start()

        def flows() -> None:
            producer.send("x")
            _wait(arrived, outage)

        return after_restart(broker, protocol, flows, outage)


def _consumers(broker: EmbeddedArtemis, protocol: str) -> float:
    """From the port's answer to the event that all is restored, with a queue for each consumer."""
    restored = _Restored()
    with (
        _connection(address(broker, protocol)) as connection,
        connection.create_session(AckMode.AUTO_ACKNOWLEDGE) as session,
    ):
        connection.start()
        for number in range(CONSUMERS):
            session.create_consumer(session.create_queue(f"bench-restore-{number}"))
        connection.add_connection_listener(restored)
        return after_restart(broker, protocol, lambda: _wait(restored.event))


def _full_speed(broker: EmbeddedArtemis, protocol: str) -> float:
    """From the end of a cut to the end of the first tenth of a second in which messages come as fast as before it."""
    member, name = address(broker, protocol), f"bench-speed-{time.monotonic_ns()}"
    with ConnectionFactory(member).create_context() as context:
        producer = context.create_producer(context.create_queue(name))
        producer.delivery_mode = DeliveryMode.NON_PERSISTENT
        for sent in [producer.send_async("x" * 1024) for _ in range(BACKLOG)]:
            sent.result(_PATIENCE)
    with Wire(member) as wire, _connection(wire.url) as connection, connection.create_session() as session:
        consumer = session.create_consumer(session.create_queue(name))
        connection.start()
        before = median(_rates(_arrivals(consumer, BACKLOG // 3)))
        wire.cut()
        wire.heal()
        for number, rate in enumerate(_rates(_arrivals(consumer, BACKLOG // 2)), start=1):
            if rate >= _FULL * before:
                return number * _BIN
    raise BenchmarkError(f"{BACKLOG // 2:,} messages came after the cut, and never at {_FULL:.0%} of the speed before")


def _arrivals(consumer: MessageConsumer, count: int) -> list[float]:
    """Receive so many messages; return when each came, in seconds from now."""
    begun, moments = time.monotonic(), list[float]()
    for _ in range(count):
        if consumer.receive(_PATIENCE) is None:
            raise BenchmarkError(f"no message came within {_PATIENCE:g} s")
        moments.append(time.monotonic() - begun)
    return moments


def _rates(moments: list[float]) -> list[int]:
    """Return how many came in each whole tenth of a second."""
    counts = Counter(int(moment / _BIN) for moment in moments)
    return [counts[number] for number in range(max(counts))]


class _Restored:
    def __init__(self) -> None:
        self.event = threading.Event()

    def on_connection_restored(self, url: str) -> None:
        self.event.set()


def _wait(event: threading.Event, outage: float = 0.0) -> None:
    if not event.wait(outage + _PATIENCE):
        raise BenchmarkError(f"nothing came back within {outage + _PATIENCE:g} s")


def address(broker: EmbeddedArtemis, protocol: str) -> str:
    """Return the broker's URL for a protocol."""
    return broker.stomp_url if protocol == "stomp" else broker.amqp_url


@contextmanager
def _connection(member: str, options: str = _SHORT_WAITS) -> Iterator[Connection]:
    with ConnectionFactory(f"failover:({member}){options}").create_connection() as connection:
        yield connection


def after_restart(broker: EmbeddedArtemis, protocol: str, wait: Callable[[], None], outage: float = 0.0) -> float:
    """Kill the broker, restart it after ``outage`` seconds, and return the seconds between its answer and the end of
    ``wait``."""
    broker.kill()
    with ThreadPoolExecutor(2) as executor:
        waiting = executor.submit(_timed, wait)
        answering = executor.submit(_timed, lambda: _await_answer(broker, protocol))
        time.sleep(outage)
        broker.restart()
        return waiting.result() - answering.result()


def _timed(work: Callable[[], None]) -> float:
    work()
    return time.monotonic()


def _await_answer(broker: EmbeddedArtemis, protocol: str) -> None:
    """Return when the broker answers a client of the protocol."""
    answers = answers_stomp if protocol == "stomp" else answers_amqp
    port = int(address(broker, protocol).rpartition(":")[2])
    while not answers(port):
        time.sleep(_PROBE_SECONDS)

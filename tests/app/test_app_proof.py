"""The proof: services that are killed under load, and brokers that are killed under them, lose and double nothing."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from contract.brokers import Embedded
from polling import wait_until
from ports import free_ports

from pyjmsack import AckMode, App, ConnectionFactory, TextMessage

pytestmark = pytest.mark.timeout(240)
HERE = Path(__file__).parent
MESSAGES = 1500
KILLS = 3


@contextmanager
def service(url: str, queue: str, app: str, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program beside this file."""
    environment = {**os.environ, "PYJMSACK_TEST_URL": url, "PYJMSACK_TEST_QUEUE": queue}
    command = [sys.executable, "-m", "pyjmsack", "run", f"service_program:{app}", *more]
    process = subprocess.Popen(command, cwd=HERE, env=environment, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def fill(url: str, queue: str) -> None:
    """Send the numbers, all or none."""
    with App(url) as app:
        app.sender.send_many(queue, range(MESSAGES))


class Moved:
    """Counts what the services have done, with a consumer of its own; what it takes it remembers."""

    def __init__(self, url: str, queue: str) -> None:
        self._factory = ConnectionFactory(f"failover:({url})")
        self._queue = queue
        self.numbers: list[int] = []

    def take(self, at_least: int) -> None:
        """Take what is done, until there is this much in all."""
        with self._factory.create_connection() as connection:
            connection.start()
            with connection.create_session(AckMode.SESSION_TRANSACTED) as session:
                consumer = session.create_consumer(session.create_queue(f"{self._queue}.done"))
                while len(self.numbers) < at_least:
                    message = consumer.receive(60)
                    assert isinstance(message, TextMessage), f"{len(self.numbers)} of {at_least}"
                    session.commit()
                    self.numbers.append(int(message.text or ""))

    def take_what_is_there(self) -> None:
        """Take all that is done, while no service works."""
        with self._factory.create_connection() as connection:
            connection.start()
            with connection.create_session() as session:
                consumer = session.create_consumer(session.create_queue(f"{self._queue}.done"))
                while (message := consumer.receive(0.5)) is not None:
                    assert isinstance(message, TextMessage)
                    self.numbers.append(int(message.text or ""))

    def rest(self) -> int:
        """Return how many more there are than expected, in either queue."""
        with self._factory.create_connection() as connection, connection.create_session() as session:
            connection.start()
            left = 0
            for name in (self._queue, f"{self._queue}.done"):
                consumer = session.create_consumer(session.create_queue(name))
                while consumer.receive(0.5) is not None:
                    left += 1
            return left


@pytest.mark.parametrize("app", ["app", "async_app"])
def test_services_killed_under_load_lose_and_double_nothing(
    mortal_brokers: Callable[[str], Embedded], queue_name: str, app: str
) -> None:
    """S75: SIGKILL three times, then SIGTERM, which ends well; each number is done once."""
    url = mortal_brokers("patient").amqp_url
    fill(url, queue_name)
    moved = Moved(url, queue_name)
    for kill in (*[signal.SIGKILL] * KILLS, signal.SIGTERM):
        with service(url, queue_name, app) as process:
            moved.take(len(moved.numbers) + 50)
            process.send_signal(kill)
            assert process.wait(60) == (0 if kill == signal.SIGTERM else -kill)
        moved.take_what_is_there()  # so that the next service is known to work when more comes
        assert len(moved.numbers) < MESSAGES, "it was not killed under load"
    with service(url, queue_name, app):
        moved.take(MESSAGES)
        assert moved.rest() == 0
    assert sorted(moved.numbers) == [*range(MESSAGES)]


@pytest.mark.parametrize("scheme", ["{}", "failover:({})"])
def test_a_broker_killed_three_times_under_a_service_loses_and_doubles_nothing(
    mortal_brokers: Callable[[str], Embedded], queue_name: str, scheme: str
) -> None:
    """With a plain URL the app connects again itself; with failover the library does."""
    broker = mortal_brokers("patient")
    url = broker.amqp_url
    fill(url, queue_name)
    moved = Moved(url, queue_name)
    with service(scheme.format(url), queue_name, "app"):
        for kill in range(1, KILLS + 1):
            moved.take(kill * MESSAGES // (KILLS + 1))
            broker.kill()
            broker.restart()
        moved.take(MESSAGES)
        assert moved.rest() == 0
    assert sorted(moved.numbers) == [*range(MESSAGES)]


def test_run_tells_its_health_and_several_processes_end_together(broker_url: str, queue_name: str) -> None:
    port, _ = free_ports(2)

    def health(port: int, which: str) -> tuple[int, dict[str, object]]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/{which}", timeout=5) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except (OSError, http.client.HTTPException):  # a killed process may end in the middle of an answer
            return 0, {}

    with service(broker_url, queue_name, "app", "--workers", "2", "--health-port", str(port)) as process:
        wait_until(lambda: [health(port + at, "ready")[0] for at in range(2)] == [200, 200], patience=60)
        assert health(port, "live") == (200, {"status": "UP"})
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert health(port, "live") == health(port + 1, "live") == (0, {})
    with service(broker_url, queue_name, "app", "--workers", "2", "--health-port", str(port)) as process:
        wait_until(lambda: [health(port + at, "ready")[0] for at in range(2)] == [200, 200], patience=60)
        process.kill()
        wait_until(lambda: [health(port + at, "live")[0] for at in range(2)] == [0, 0], patience=60)
    with service("amqp://127.0.0.1:1", queue_name, "async_app", "--health-port", str(port)) as process:
        # the listeners are there after the handlers of signals
        wait_until(lambda: health(port, "ready")[1].get("listeners"), patience=60)
        assert health(port, "ready")[0] == 503
        assert health(port, "live")[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_listeners_are_described_without_a_broker(queue_name: str) -> None:
    environment = {**os.environ, "PYJMSACK_TEST_URL": "amqp://127.0.0.1:1", "PYJMSACK_TEST_QUEUE": queue_name}
    command = [sys.executable, "-m", "pyjmsack", "listeners", "service_program:app", "--json"]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=True)
    row = json.loads(done.stdout)
    assert (row["function"], row["concurrency"], row["mode"]) == ("move", "3 to 10", "transacted")
    assert {fact["about"] for fact in row["facts"]} >= {"who acknowledges", "after a crash", "a listener raises"}
    for wrong, why in (("nowhere:app", "no module 'nowhere'"), ("service_program:URL", "not str"), ("x", "module:app")):
        failed = subprocess.run([*command[:-2], wrong], cwd=HERE, env=environment, capture_output=True, text=True)
        assert (failed.returncode, why in failed.stderr) == (2, True), failed.stderr

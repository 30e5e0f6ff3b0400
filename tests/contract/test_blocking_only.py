"""What only the blocking face has: futures of ``concurrent.futures``, and calls from several threads."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

import pyjmsack
from contract.harness import PATIENCE

pytestmark = pytest.mark.usefixtures("no_leaks")


@pytest.fixture
def connection(broker_url: str, no_leaks: None) -> Iterator[pyjmsack.Connection]:
    """A started connection."""
    with pyjmsack.ConnectionFactory(broker_url).create_connection() as opened:
        opened.start()
        yield opened


@pytest.fixture
def queue(queue_name: str) -> pyjmsack.Queue:
    """A queue of this test's own."""
    return pyjmsack.Queue(queue_name)


def test_futures_work_with_concurrent_futures(connection: pyjmsack.Connection, queue: pyjmsack.Queue) -> None:
    """S64."""
    with connection.create_session() as session, session.create_producer(queue) as producer:
        futures = [producer.send_async(str(number)) for number in range(10)]
        done, pending = concurrent.futures.wait(futures, timeout=PATIENCE)
        assert (len(done), len(pending)) == (10, 0)
        assert all(future.exception() is None for future in futures)
        assert set(concurrent.futures.as_completed(futures, timeout=PATIENCE)) == set(futures)


def test_a_future_cannot_be_cancelled(connection: pyjmsack.Connection, queue: pyjmsack.Queue) -> None:
    """A send that was handed over cannot be taken back."""
    with connection.create_session() as session:
        future = session.create_producer(queue).send_async("a")
        assert not future.cancel()
        future.result(PATIENCE)


def test_callbacks_of_futures_run_on_no_thread_of_io(connection: pyjmsack.Connection, queue: pyjmsack.Queue) -> None:
    """S74: a callback may block, and call the library."""
    names: list[str] = []
    called = threading.Event()
    with connection.create_session() as session:
        producer = session.create_producer(queue)

        def callback(_: object) -> None:
            names.append(threading.current_thread().name)
            producer.send("b")
            called.set()

        producer.send_async("a").add_done_callback(callback)
        assert called.wait(PATIENCE)
        assert names != ["pyjmsack-io"]


@pytest.mark.parametrize("closed", ["session", "connection"])
def test_a_callback_given_to_a_future_after_the_end_is_called(
    broker_url: str, queue: pyjmsack.Queue, closed: str
) -> None:
    """S64, and the contract of ``concurrent.futures``."""
    called = threading.Event()
    with pyjmsack.ConnectionFactory(broker_url).create_connection() as connection:
        session = connection.create_session()
        future = session.create_producer(queue).send_async("a")
        future.result(PATIENCE)
        (session if closed == "session" else connection).close()
        future.add_done_callback(lambda _: called.set())
        assert called.wait(PATIENCE / 3)


def test_threads_with_a_session_each_share_a_connection(connection: pyjmsack.Connection, queue: pyjmsack.Queue) -> None:
    """S15, S120."""

    def work(name: str) -> None:
        with connection.create_session() as session, session.create_producer(queue) as producer:
            for number in range(50):
                producer.send(f"{name}{number}")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(work, name) for name in "abcd"]:
            each.result(PATIENCE)
    with connection.create_session() as session, session.create_consumer(queue) as consumer:
        bodies = [message.body for message in iter(lambda: consumer.receive(timeout=0), None)]
    assert len(bodies) == 200
    for name in "abcd":
        assert [body for body in bodies if body[0] == name] == [f"{name}{number}" for number in range(50)]


def test_two_threads_that_use_one_session_lose_nothing(connection: pyjmsack.Connection, queue: pyjmsack.Queue) -> None:
    """S15: a call is refused as a whole or done as a whole."""
    refused = pyjmsack.IllegalStateException
    with connection.create_session() as session, session.create_producer(queue) as producer:

        def send(name: str) -> int:
            done = 0
            for number in range(200):
                try:
                    producer.send(f"{name}{number}")
                    done += 1
                except refused:
                    continue
            return done

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            sent = sum(pool.map(send, "ab"))
    with connection.create_session() as session, session.create_consumer(queue) as consumer:
        assert len([*iter(lambda: consumer.receive(timeout=0), None)]) == sent


_LAST_CLOSE = """
import sys, threading
import pyjmsack

def loops():
    return [thread.name for thread in threading.enumerate()].count("pyjmsack-io")

for _ in range(3):
    connections = [pyjmsack.ConnectionFactory(sys.argv[1]).create_connection() for _ in range(3)]
    assert loops() == 1, loops()
    for connection in connections:
        connection.close()
    assert loops() == 0, loops()
"""


def test_the_last_close_ends_the_thread_and_the_next_connection_starts_one(broker_url: str) -> None:
    """S123. In a process of its own, because another test of this one may have a connection open."""
    done = subprocess.run([sys.executable, "-c", _LAST_CLOSE, broker_url], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_blocked_receive_ends_with_none_when_another_thread_closes(
    connection: pyjmsack.Connection, queue: pyjmsack.Queue
) -> None:
    """S123: the receiver is inside ``receive`` for certain, as the session refuses this thread."""
    session = connection.create_session(pyjmsack.AckMode.CLIENT_ACKNOWLEDGE)
    consumer = session.create_consumer(queue)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(consumer.receive)
        while True:
            try:
                session.acknowledge()
            except pyjmsack.IllegalStateException:
                break
        session.close()
        assert blocked.result(PATIENCE) is None


def test_with_deletes_a_temporary_destination(connection: pyjmsack.Connection) -> None:
    """S130."""
    session = connection.create_session()
    with session.create_temporary_queue() as queue, session.create_temporary_topic() as topic:
        assert {queue.deleted, topic.deleted} == {False}
    assert {queue.deleted, topic.deleted} == {True}


PROGRAM = """
import sys, threading, pyjmsack

def heard(message):
    print(message.text, flush=True)
    threading.Thread(target=connection.close).start()

connection = pyjmsack.ConnectionFactory(sys.argv[1]).create_connection()
connection.create_session().create_consumer(pyjmsack.Queue(sys.argv[2])).message_listener = heard
connection.start()
print("main is over", flush=True)
"""


@pytest.mark.parametrize("daemon", [True, False])
def test_an_open_connection_keeps_the_process_alive_only_if_it_is_told_to(
    connection: pyjmsack.Connection, broker_url: str, queue: pyjmsack.Queue, daemon: bool
) -> None:
    """A.1 ``jms.useDaemonThread``: false is as in Java, where listeners go on when main() has returned."""
    url = f"{broker_url}?jms.useDaemonThread={str(daemon).lower()}"
    command = [sys.executable, "-c", PROGRAM, url, queue.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "main is over\n"
        if not daemon:
            with connection.create_session() as session:
                session.create_producer(queue).send("to a listener")
            assert program.stdout.readline() == "to a listener\n"
        assert program.wait(PATIENCE) == 0
        assert program.stdout.read() == ""

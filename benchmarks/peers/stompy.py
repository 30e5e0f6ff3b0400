"""stomp.py, used as its documentation shows: a listener object on its own thread, receipts counted by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import stomp

from benchmarks.job import PATIENCE, BenchmarkError, Job, Scenarios, Stopwatch, Timing, check_text, login

CLIENT = f"stomp.py {version('stomp.py')}"
_WINDOW = 1000 * 4096  # bytes, as pyjmsack with its prefetch of 1000
_HEADERS = {"destination-type": "ANYCAST", "persistent": "true"}


@contextmanager
def _connection(job: Job, listener: stomp.ConnectionListener) -> Iterator[Any]:
    address = urlsplit(job.url)
    host = [(address.hostname, address.port)]
    connection = stomp.Connection12(host, heartbeats=(10_000, 10_000), auto_content_length=False)
    connection.set_listener("", listener)
    username, password = login()
    connection.connect(username, password, wait=True)
    try:
        yield connection
    finally:
        connection.disconnect()


class _Receipts(stomp.ConnectionListener):
    """Counts receipts."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.seen = 0
        self.watch = Stopwatch()
        self.timing: Timing | None = None
        self.finished = threading.Event()
        self.each = threading.Semaphore(0)

    def on_receipt(self, frame: Any) -> None:
        """The broker has one more message."""
        self.seen += 1
        self.each.release()
        if self.seen == self.wanted:
            self.timing = self.watch.timing(self.seen, CLIENT)
            self.finished.set()

    def on_error(self, frame: Any) -> None:
        """Nothing more will be confirmed."""
        self.finished.set()

    def on_disconnected(self) -> None:
        """Nothing more will be confirmed."""
        self.finished.set()


def _send_async(job: Job) -> Timing:
    """Timed from the first send to the last receipt."""
    receipts, text = _Receipts(job.count), job.text
    with _connection(job, receipts) as connection:
        receipts.watch = Stopwatch()
        for number in range(job.count):
            connection.send(job.queue, text, receipt=str(number), **_HEADERS)
        receipts.finished.wait(PATIENCE)
        return _checked(receipts.timing, receipts.seen, job)


def _send_nonpersistent(job: Job) -> Timing:
    """Timed from the first send to the receipt of the last one."""
    receipts, text = _Receipts(1), job.text
    headers = {**_HEADERS, "persistent": "false"}
    with _connection(job, receipts) as connection:
        receipts.watch = Stopwatch()
        for _ in range(job.count - 1):
            connection.send(job.queue, text, **headers)
        connection.send(job.queue, text, receipt="last", **headers)
        receipts.finished.wait(PATIENCE)
        if receipts.timing is None:
            raise BenchmarkError("stomp.py got no receipt")
        return replace(receipts.timing, count=job.count)


def _send(job: Job) -> Timing:
    """Timed from the first send to the last receipt, each awaited before the next send."""
    receipts, text = _Receipts(job.count), job.text
    with _connection(job, receipts) as connection:
        receipts.watch = Stopwatch()
        for number in range(job.count):
            connection.send(job.queue, text, receipt=str(number), **_HEADERS)
            if not receipts.each.acquire(timeout=PATIENCE):
                break
        return _checked(receipts.timing, receipts.seen, job)


class _Messages(stomp.ConnectionListener):
    """Acknowledges each message by itself, then unsubscribes."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.connection: Any = None
        self.seen = 0
        self.watch: Stopwatch | None = None
        self.timing: Timing | None = None
        self.finished = threading.Event()
        self.error: BaseException | None = None

    def on_message(self, frame: Any) -> None:
        """Read one message."""
        self.watch = self.watch or Stopwatch()
        try:
            check_text(frame.body, self.job)
        except BenchmarkError as error:
            self.error = error
            self.finished.set()
        self.connection.ack(frame.headers["ack"])
        self.seen += 1
        if self.seen == self.job.count:
            self.connection.unsubscribe("0", receipt="end")

    def on_receipt(self, frame: Any) -> None:
        """The broker has taken every acknowledgement."""
        if self.watch is not None:
            self.timing = self.watch.timing(self.seen, CLIENT)
        self.finished.set()


def _listen(job: Job) -> Timing:
    """Timed from the first message to the receipt of the unsubscription."""
    messages = _Messages(job)
    with _connection(job, messages) as connection:
        messages.connection = connection
        headers = {"subscription-type": "ANYCAST", "consumer-window-size": _WINDOW}
        connection.subscribe(job.queue, "0", ack="client-individual", headers=headers)
        messages.finished.wait(PATIENCE)
        if messages.error is not None:
            raise messages.error
        return _checked(messages.timing, messages.seen, job)


def _checked(timing: Timing | None, seen: int, job: Job) -> Timing:
    if seen == job.count and timing is not None:
        return timing
    raise BenchmarkError(f"stomp.py ended after {seen} of {job.count} messages")


SCENARIOS: Scenarios = {
    "send-async": _send_async,
    "listener": _listen,
    "send": _send,
    "send-nonpersistent": _send_nonpersistent,
}

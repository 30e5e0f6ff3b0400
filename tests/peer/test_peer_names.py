"""A name server that does not answer delays the connections that need it, and not the work of other connections."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import proton
import pytest
from peer_faces import PATIENCE, AioFace, Face
from polling import wait_until

from pyjmsack import JMSException, Queue
from pyjmsack.io.driver import AsyncioConnector
from pyjmsack.io.thread import acquire
from pyjmsack.uri import parse_url

Q = Queue("q")
BODY = bytes(range(256)) * 8192
CONNECTIONS = 40
THREADS = min(32, (os.cpu_count() or 1) + 4)
"""The most threads that Python's executor has."""


class Silence:
    """A name server that does not answer, and many connections that wait for it on the loop of a face."""

    def __init__(self, face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
        self._go_on = threading.Event()
        self._asked: list[str] = []
        self._failed: list[Exception] = []
        self._ask = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._answer)
        self._thread = None if isinstance(face, AioFace) else acquire()
        self._loop: asyncio.AbstractEventLoop = face.loop if isinstance(face, AioFace) else self._thread.loop
        self._loop.call_soon_threadsafe(self._connect)
        wait_until(lambda: len(self._asked) >= THREADS)

    def _answer(self, host: Any, *more: Any, **named: Any) -> Any:
        if str(host).endswith(".silent"):
            self._asked.append(host)
            assert self._go_on.wait(3 * PATIENCE)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return self._ask(host, *more, **named)

    def _connect(self) -> None:
        for number in range(CONNECTIONS):
            url = parse_url(f"amqp://b{number}.silent:5672")
            AsyncioConnector(url, self._loop, None).connect(url.endpoints[0], None, self._failed.append)  # type: ignore[arg-type]

    def end(self) -> None:
        self._go_on.set()
        wait_until(lambda: len(self._failed) == CONNECTIONS)
        if self._thread is not None:
            self._thread.release()


@pytest.fixture
def silence(face: Face, monkeypatch: pytest.MonkeyPatch) -> Iterator[Silence]:
    made = Silence(face, monkeypatch)
    yield made
    made.end()


def large() -> bytes:
    return bytes(proton.Message(BODY, id="ID:large", durable=True, inferred=True).encode())


@pytest.mark.usefixtures("silence")
def test_the_digest_of_a_large_message_does_not_wait_for_names_of_others(face: Face) -> None:
    """S104: the message was handed out when the name server answered, 29 s later."""
    peer = face.peer(messages=[large()])
    connection = face.failover(peer, options="nested.amqp.spoolOver=-1&jms.requestTimeout=20000")
    consumer = connection.create_session().create_consumer(Q)
    assert consumer.receive(timeout=10).body_length == len(BODY)


@pytest.mark.usefixtures("silence")
def test_the_file_of_a_large_message_does_not_wait_for_names_of_others(face: Face, tmp_path: Path) -> None:
    """S168."""
    peer = face.peer(messages=[large()])
    consumer = face.session(peer, "amqp.spoolOver=100000").create_consumer(Q)
    message = consumer.receive(timeout=PATIENCE / 2)
    saved = message.save_to(tmp_path / "body")
    assert (saved.result(PATIENCE / 2) if isinstance(saved, Future) else saved) == len(BODY)


@pytest.mark.usefixtures("silence")
def test_a_name_that_is_known_is_found_while_others_are_not(face: Face) -> None:
    peer = face.peer()
    url = peer.url.replace("127.0.0.1", "localhost")
    connection = face.wrap(face.module.ConnectionFactory(f"{url}?jms.closeTimeout=3000")).create_connection()
    connection.close()


def test_certificates_on_a_disk_that_hangs_do_not_stop_the_loop(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections of a process share the loop of the blocking face."""
    began, go_on = threading.Event(), threading.Event()

    def hang(*_: Any) -> None:
        began.set()
        assert go_on.wait(PATIENCE)
        raise OSError("the disk is gone")

    monkeypatch.setattr("pyjmsack.io.driver.client_context", hang)
    peer = face.peer(messages=[large()])
    factory = face.wrap(face.module.ConnectionFactory("amqps://127.0.0.1:1"))
    hanging = face.background(factory.create_connection)
    assert began.wait(PATIENCE)
    consumer = face.session(peer).create_consumer(Q)
    assert consumer.receive(timeout=PATIENCE / 2).body_length == len(BODY)
    go_on.set()
    with pytest.raises(JMSException, match="the disk is gone"):
        hanging.result(PATIENCE)

"""Answers that no broker should give: each is a JMSException of the call that asked, and nothing else."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from polling import eventually

from pyjmsack import ConnectionFactory, JMSException, RequestTimedOutException, aio
from pyjmsack import management as blocking
from pyjmsack.management import aio as tasks
from pyjmsack.management.classic import Classic
from pyjmsack.management.jolokia import Jolokia
from pyjmsack.management.model import Request

FACTORY = "amqp://localhost"
Server = Callable[..., tuple[str, list[bytes]]]


@pytest.fixture
def server() -> Iterator[Server]:
    """Answer each request with the same bytes; return the URL, and the requests as they come."""
    with ExitStack() as stack:

        def serve(*pieces: bytes, pause: float = 0) -> tuple[str, list[bytes]]:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            requests: list[bytes] = []
            over = threading.Event()

            def run() -> None:
                try:
                    while True:
                        connection, _ = listening.accept()
                        with connection:
                            requests.append(connection.recv(65536))
                            for piece in pieces:
                                connection.sendall(piece)
                                over.wait(pause)
                except OSError:  # the test is over, or the client has gone
                    return

            thread = threading.Thread(target=run)
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(listening.shutdown, socket.SHUT_RDWR)
            stack.callback(over.set)
            return f"http://me:secret@127.0.0.1:{listening.getsockname()[1]}/api/jolokia", requests

        yield serve


def answered(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body


def value(value: Any) -> bytes:
    return answered(json.dumps({"status": 200, "value": value}).encode())


HOSTILE = {
    "no-json": answered(b"<html>"),
    "deep": answered(b"[" * 200_000),
    "long-number": answered(b'{"status": 200, "value": ' + b"9" * 5000 + b"}"),
    "many-values": answered(b'{"status": 200, "value": [' + b"[]," * 1_600_000 + b"0]}"),
    "not-utf-8": answered(b'"\xff"'),
    "other-form": value({"a": 5}),
    "list": value([1, 2]),
    "infinite": value({"a": {"Name": "orders", "QueueSize": float("inf")}}),
    "no-http": b"SSH-2.0-OpenSSH\r\n",
    "endless-header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    "many-headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
    "half": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_answer_that_is_none_of_jolokia_is_a_jms_exception(name: str, server: Server) -> None:
    """In both faces; it was an error of Python's parsers before, and a traceback of the command line."""
    url, _ = server(HOSTILE[name])
    with blocking.Manager(ConnectionFactory(FACTORY), jolokia=url) as manager, pytest.raises(JMSException) as caught:
        manager.queues()
    assert "secret" not in str(caught.value)

    async def ask() -> None:
        async with tasks.Manager(aio.ConnectionFactory(FACTORY), jolokia=url) as manager:
            await manager.queues()

    with pytest.raises(JMSException):
        asyncio.run(ask())


UNREADABLE = {
    "empty": b"",
    "no-json": b"<html>",
    "deep": b"[" * 200_000,
    "long-number": b'{"status": 200, "value": ' + b"9" * 5000 + b"}",
    "many-values": b"[" + b"[]," * 1_600_000 + b"0]",
    "not-utf-8": b'"\xff"',
    "compressed": b"\x1f\x8b" + bytes(100),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_the_error_of_an_answer_that_cannot_be_read_names_the_url(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was an error of Python's parser."""
    monkeypatch.setattr(Jolokia, "_post", lambda agent, question: UNREADABLE[name])
    with pytest.raises(JMSException, match="the answer of http://host/x cannot be read as JSON: ") as caught:
        Jolokia("http://me:secret@host/x", 10).ask(Request("a:b=c", ("x",)))
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("url", ["http://a..b:1/x", "http://127.0.0.1:1/\u20ac"])
def test_a_url_with_characters_of_no_url_is_a_jms_exception(url: str) -> None:
    with pytest.raises(JMSException):
        Jolokia(url, 10).ask(Request("a:b=c", ("x",)))


def test_a_long_reason_is_cut_in_the_error(server: Server) -> None:
    url, _ = server(answered(json.dumps({"status": 500, "error": "E" * 1_000_000}).encode()))
    with blocking.Manager(ConnectionFactory(FACTORY), jolokia=url) as manager, pytest.raises(JMSException) as caught:
        manager.queues()
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_login_does_not_go_where_an_answer_leads(status: int, server: Server) -> None:
    elsewhere, requests = server(value({}))
    target = elsewhere.replace("me:secret@", "").encode()
    url, _ = server(b"HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (status, target))
    with blocking.Manager(ConnectionFactory(FACTORY), jolokia=url) as manager, pytest.raises(JMSException):
        manager.queues()
    assert requests == []


DRIPPING = {
    "body": (answered(b"["), b" "),
    "status": (b"HTTP/1.1 200 O", b"K"),
    "header": (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
    "chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "error": (b"HTTP/1.1 500 Wrong\r\nX: ", b"y"),
}


@pytest.mark.parametrize("part", DRIPPING)
def test_an_answer_that_drips_is_over_with_the_time_of_a_request(part: str, server: Server) -> None:
    """Each byte came within the time-out of the socket, so the answer had no end."""
    first, more = DRIPPING[part]
    url, _ = server(first, *[more] * 2000, pause=0.02)
    manager = blocking.Manager(ConnectionFactory(FACTORY), jolokia=url, timeout=0.2)
    with manager, pytest.raises(RequestTimedOutException):
        manager.queues()


@pytest.mark.parametrize("unit", [b"y", b"a\r"])
def test_the_head_of_an_answer_has_a_limit(server: Server, unit: bytes) -> None:
    """The parser of the standard library took 1.6 s and 287 MB for a head of 6 MB with many lone CRs."""
    line = b"A: " + unit * (30_000 // len(unit)) + b"\r\n"
    url, _ = server(b"HTTP/1.1 200 OK\r\n" + line * 50 + b"\r\n")
    with (
        blocking.Manager(ConnectionFactory(FACTORY), jolokia=url) as manager,
        pytest.raises(JMSException, match="64 KiB"),
    ):
        manager.queues()


def test_a_large_answer_is_read_after_its_head(server: Server) -> None:
    """The limit of the head is none for the body: the error is about the content."""
    url, _ = server(value([1] * 200_000))
    with blocking.Manager(ConnectionFactory(FACTORY), jolokia=url) as manager, pytest.raises(JMSException) as caught:
        manager.queues()
    assert "KiB" not in str(caught.value)


def test_a_silent_broker_does_not_keep_the_executor_of_the_program(server: Server) -> None:
    """Some silent consoles kept all its threads for 30 s, and with them the lookups of names."""

    async def main() -> int:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        url, requests = server(b"HTTP/1.1 200 OK\r\n", pause=60)
        manager = tasks.Manager(aio.ConnectionFactory(FACTORY), jolokia=url)
        asking = asyncio.ensure_future(manager.broker())
        await eventually(lambda: bool(requests))
        free = await asyncio.wait_for(asyncio.to_thread(int, "7"), 20)
        asking.cancel()
        return free

    assert asyncio.run(main()) == 7


def test_answers_are_read_in_the_thread_of_the_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of a million names stopped the loop of the program for ten seconds."""
    threads: list[str] = []

    class Verbs(Classic):
        def broker(self) -> Any:
            for _ in range(2):
                yield Request("broker")
                threads.append(threading.current_thread().name)
            return "done"

    async def main() -> Any:
        manager = tasks.Manager(aio.ConnectionFactory(FACTORY), jolokia="http://localhost:1/api/jolokia")
        manager._verbs = Verbs()
        return await manager.broker()

    monkeypatch.setattr(Jolokia, "ask", lambda self, request: threads.append(threading.current_thread().name))
    assert asyncio.run(main()) == "done"
    assert threads == ["pyjmsack-management"] * 4

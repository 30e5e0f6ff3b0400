"""Lookups of host names: a name server that does not answer harms only the connections that need it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from polling import eventually

from pyjmsack.io.names import MOST, Names

pytestmark = pytest.mark.usefixtures("no_leaks")
HERE = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))


class NameServer:
    """Stands for the name server: it says nothing about ``*.silent`` until the test lets it answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.answers = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", self._answer)

    def _answer(self, host: str, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        if host.endswith(".silent"):
            assert self.answers.wait(60)
        if host.startswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [HERE]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    made = NameServer(monkeypatch)
    yield made
    made.answers.set()


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 60))


def test_one_connection_whose_names_get_no_answer_does_not_delay_another_one(server: NameServer) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        stuck = Names(loop)
        waiting = [loop.create_task(stuck.look_up(f"{number}.silent", 1)) for number in range(100)]
        await eventually(lambda: len(server.asked) == MOST)
        assert await Names(loop).look_up("other", 1) == [HERE]
        assert len(server.asked) == MOST + 1
        server.answers.set()
        assert await asyncio.gather(*waiting) == [[HERE]] * 100

    run(main())


def test_connections_that_need_the_same_name_share_one_lookup(server: NameServer) -> None:
    """Otherwise a thousand connections that look for one broker would have a thousand threads."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(Names(loop).look_up("one.silent", 1)) for _ in range(50)]
        await eventually(lambda: server.asked)
        for given_up in waiting[:10]:
            given_up.cancel()
        server.answers.set()
        assert await asyncio.gather(*waiting[10:]) == [[HERE]] * 40
        assert server.asked == ["one.silent"]
        assert await Names(loop).look_up("one.silent", 1) == [HERE]
        assert server.asked == ["one.silent"] * 2  # an answer is not kept

    run(main())


def test_nobody_waits_for_a_lookup_that_waits_in_line_for_another_connection(server: NameServer) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        stuck = Names(loop)
        waiting = [loop.create_task(stuck.look_up(f"{number}.silent", 1)) for number in range(MOST)]
        waiting.append(loop.create_task(stuck.look_up("good", 1)))
        await eventually(lambda: len(server.asked) == MOST)
        assert await Names(loop).look_up("good", 1) == [HERE]
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        server.answers.set()
        assert await stuck.look_up("next", 1) == [HERE]
        assert server.asked.count("good") == 1  # the lookup in line was given up

    run(main())


def test_an_error_of_a_lookup_that_was_given_up_is_not_reported(
    server: NameServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        names = Names(loop)
        task = loop.create_task(names.look_up("unknown.silent", 1))
        await eventually(lambda: server.asked)
        task.cancel()
        server.answers.set()
        with pytest.raises(socket.gaierror):
            await names.look_up("unknown.silent", 1)

    run(main())
    assert caplog.records == []


@pytest.mark.parametrize(
    ("host", "place"), [("127.0.0.1", ("127.0.0.1", 5)), ("::1", ("::1", 5, 0, 0))], ids=["IPv4", "IPv6"]
)
def test_an_ip_address_is_not_looked_up(server: NameServer, host: str, place: tuple[Any, ...]) -> None:
    async def main() -> None:
        ((family, kind, _, _, found),) = await Names(asyncio.get_running_loop()).look_up(host, 5)
        assert (family, kind, found) == (socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, place)

    run(main())
    assert server.asked == []


ENDS = """
import asyncio, socket, threading
from pyjmsack import aio, ConnectionFactory, JMSException

socket.getaddrinfo = lambda *_, **__: threading.Event().wait()
URL = "amqp://broker?transport.connectTimeout=50"
try:
    ConnectionFactory(URL).create_connection()
except JMSException as error:
    print(error)

async def main():
    await aio.ConnectionFactory(URL).create_connection()

try:
    asyncio.run(main())
except JMSException as error:
    print(error)
"""


def test_a_lookup_without_an_answer_does_not_keep_the_process() -> None:
    """Python waits for the threads of a loop's executor, so that the process never ended."""
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("transport.connectTimeout (0.05 s)") == 2

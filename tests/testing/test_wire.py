"""The wire: what it lets through, what it breaks, and how much of it. The other end is an echo."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

from pyjmsack.testing import Wire

PATIENCE = 60.0
HELD = 0.2
"""Seconds without an answer after which it counts as held back. Too short a time would only hide a fault."""


class Echo:
    """A server that sends back what it gets, and remembers it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"amqp://127.0.0.1:{self._listener.getsockname()[1]}"
        self.received = b""
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._echo, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _echo(self, connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65536):
                    self.received += data
                    connection.sendall(data)
            except OSError:
                return

    def ended(self) -> bytes:
        """Return all that was received, when every connection has ended."""
        for thread in self._threads[1:]:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        return self.received

    def close(self) -> None:
        """End, with every connection."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(PATIENCE)
        self.ended()


@pytest.fixture
def echo(no_leaks: None) -> Iterator[Echo]:
    """The other end."""
    made = Echo()
    yield made
    made.close()


@pytest.fixture
def line(echo: Echo) -> Iterator[Wire]:
    """A wire to it."""
    with Wire(echo.url) as made:
        yield made


def dial(wire: Wire) -> socket.socket:
    """Return a connection through the wire."""
    port = int(wire.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def hear(connection: socket.socket, size: int) -> bytes:
    """Return that many bytes, or fewer if the connection ends."""
    heard = b""
    try:
        while len(heard) < size and (data := connection.recv(size - len(heard))):
            heard += data
    except ConnectionError:
        pass
    return heard


def is_silent(connection: socket.socket) -> bool:
    """Whether nothing comes, and the connection lives."""
    connection.settimeout(HELD)
    try:
        return connection.recv(1, socket.MSG_PEEK) is None
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE)


def test_everything_passes_both_ways_until_one_end_closes(echo: Echo, line: Wire) -> None:
    everything = bytes(range(256)) * 20_000
    with dial(line) as connection:
        sending = threading.Thread(target=connection.sendall, args=(everything,))
        sending.start()
        assert hear(connection, len(everything)) == everything
        sending.join()
        connection.shutdown(socket.SHUT_WR)
        assert hear(connection, 1) == b""
    assert echo.ended() == everything


def test_a_cut_ends_every_connection_and_each_new_one_until_it_is_healed(line: Wire) -> None:
    with dial(line) as first, dial(line) as second:
        for connection in (first, second):
            connection.sendall(b"x")
            assert hear(connection, 1) == b"x"
        line.cut()
        assert hear(first, 1) == hear(second, 1) == b""
    with dial(line) as third:
        assert hear(third, 1) == b""
    assert line.broken
    line.heal()
    assert not line.broken
    with dial(line) as fourth:
        fourth.sendall(b"y")
        assert hear(fourth, 1) == b"y"


@pytest.mark.parametrize("count", [0, 1, 7, 100_000])
def test_cut_after_lets_exactly_so_many_bytes_reach_the_broker(echo: Echo, line: Wire, count: int) -> None:
    with dial(line) as connection:
        connection.sendall(b"hello")
        assert hear(connection, 5) == b"hello"
        line.cut_after(count)
        sending = threading.Thread(target=_send_until_broken, args=(connection, bytes(300_000)))
        sending.start()
        hear(connection, 300_000)
        sending.join()
    assert echo.ended() == b"hello" + bytes(count)


def test_cut_after_mends_a_cut_wire_for_so_many_bytes(line: Wire) -> None:
    line.cut()
    for count in (2, 3):
        line.cut_after(count)
        assert not line.broken
        with dial(line) as connection:
            connection.sendall(b"x" * count)
            hear(connection, count + 1)
        assert line.broken


@pytest.mark.parametrize("count", [0, 5])
def test_cut_after_counts_replies_when_told_to_and_the_broker_has_got_everything(
    echo: Echo, line: Wire, count: int
) -> None:
    with dial(line) as connection:
        connection.sendall(b"hello")
        assert hear(connection, 5) == b"hello"
        line.cut_after(count, replies=True)
        connection.sendall(b"0123456789")
        assert hear(connection, 10) == b"0123456789"[:count]
    assert echo.ended() == b"hello0123456789"


def _send_until_broken(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
    except OSError:
        return


def test_swallowed_replies_come_after_it_is_healed(echo: Echo, line: Wire) -> None:
    with dial(line) as connection:
        line.swallow_replies()
        connection.sendall(b"question")
        assert is_silent(connection)
        assert echo.received == b"question"
        line.heal()
        assert hear(connection, 8) == b"question"


def test_a_cut_loses_what_was_swallowed(echo: Echo, line: Wire) -> None:
    with dial(line) as connection:
        line.swallow_replies()
        connection.sendall(b"question")
        assert is_silent(connection)
        line.cut()
        assert hear(connection, 8) == b""
    assert echo.ended() == b"question"


def test_a_delay_counts_in_each_direction_and_keeps_the_order(line: Wire) -> None:
    with dial(line) as connection:
        line.delay(0.1)
        started = time.monotonic()
        for digit in b"0123456789":
            connection.sendall(bytes([digit]))
        assert hear(connection, 10) == b"0123456789"
        assert time.monotonic() - started >= 0.2


def test_it_can_be_used_from_a_coroutine(line: Wire) -> None:
    async def scenario() -> None:
        port = int(line.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        line.cut()
        try:
            assert await reader.read() == b""
        except ConnectionError:
            pass
        finally:
            writer.close()

    asyncio.run(scenario())


def test_a_broker_that_is_not_there_ends_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Wire(f"stomp://localhost:{port}") as line, dial(line) as connection:
        assert hear(connection, 1) == b""


def test_the_url_keeps_scheme_and_options_and_the_name_of_this_machine() -> None:
    with Wire("amqp://127.0.0.1:1?amqp.idleTimeout=0") as line:
        assert line.url.startswith("amqp://127.0.0.1:")
        assert line.url.endswith("?amqp.idleTimeout=0")
    with Wire("stomp+ssl://localhost:1") as line:
        assert line.url.startswith("stomp+ssl://localhost:")


@pytest.mark.parametrize("url", ["", "amqp://host", "host:5672", "failover:(amqp://a:1,amqp://b:2)", "amqp://h:x"])
def test_a_url_of_anything_but_one_broker_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"expected SCHEME://HOST:PORT"):
        Wire(url)


def test_what_it_cannot_do_is_refused(line: Wire) -> None:
    with pytest.raises(ValueError, match="count: -1"):
        line.cut_after(-1)
    with pytest.raises(ValueError, match="seconds: -1"):
        line.delay(-1)
    line.close()
    line.close()
    with pytest.raises(RuntimeError, match="closed"):
        line.cut()


def test_closing_leaves_no_socket_of_clients_that_connect_again_and_again(echo: Echo) -> None:
    """Whatever becomes of a connection at that moment: asked for, accepted, on its way to the broker."""
    wires: list[Wire] = []
    stopped = threading.Event()

    def connect() -> None:
        while not stopped.is_set():
            with contextlib.suppress(OSError, IndexError):  # closed, or there is none yet
                dial(wires[-1]).close()

    clients = [threading.Thread(target=connect) for _ in range(3)]
    for client in clients:
        client.start()
    try:
        with warnings.catch_warnings(record=True) as left:
            warnings.simplefilter("always", ResourceWarning)
            for _ in range(40):
                with Wire(echo.url) as wire, dial(wire) as connection:
                    wires.append(wire)
                    connection.sendall(b"hello")
                    assert hear(connection, 5) == b"hello"
            gc.collect()
    finally:
        stopped.set()
        for client in clients:
            client.join(PATIENCE)
    assert [str(each.message) for each in left] == []

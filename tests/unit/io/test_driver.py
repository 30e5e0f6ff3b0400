"""Bytes in, bytes out, deadlines and errors of one stream (S127-S129)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
import trustme
from io_fakes import RecordingEngine
from ports import free_ports

from pyjmsack.errors import ConnectionLostException, JMSException, JMSSecurityException, RequestTimedOutException
from pyjmsack.io.driver import AsyncioConnector, Driver
from pyjmsack.uri import Endpoint, parse_url


class FakeEngine(RecordingEngine):
    def __init__(self) -> None:
        super().__init__()
        self.ticks: list[float] = []
        self.deadline: float | None = None
        self.made = asyncio.Event()
        self.gone = asyncio.Event()

    def connection_made(self, stream: Any) -> None:
        super().connection_made(stream)
        self.made.set()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.gone.set()

    def tick(self, now: float) -> float | None:
        self.ticks.append(now)
        return self.deadline


class FakeTransport:
    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.state = "open"

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.state = "closed"

    def abort(self) -> None:
        self.state = "aborted"


class FakeHandle:
    def __init__(self, at: float, call: Any) -> None:
        self.at = at
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """Time stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[FakeHandle] = []

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Any) -> FakeHandle:
        self.timers.append(FakeHandle(at, call))
        return self.timers[-1]

    def call_soon(self, call: Any) -> FakeHandle:
        return self.call_at(0.0, call)

    def pending(self) -> list[float]:
        return [timer.at for timer in self.timers if not timer.cancelled]

    def fire(self) -> None:
        (timer,) = (timer for timer in self.timers if not timer.cancelled)
        timer.cancelled = True
        self.now = max(self.now, timer.at)
        timer.call()


ENDPOINT = Endpoint("amqp", "broker", 5672, False)


@pytest.fixture
def parts() -> tuple[Any, FakeEngine, Any, FakeLoop]:
    """A connected driver with everything around it."""
    engine, transport, loop = FakeEngine(), FakeTransport(), FakeLoop()
    driver: Any = Driver(engine, loop, ENDPOINT)
    driver.connection_made(transport)
    return driver, engine, transport, loop


Parts = tuple[Any, FakeEngine, Any, FakeLoop]


def test_what_the_engine_has_is_written_until_it_has_no_more(parts: Parts) -> None:
    driver, engine, transport, _ = parts
    engine.output = [b"a", b"b", b"c"]
    driver.flush()
    assert b"".join(transport.written) == b"abc"


def test_other_connections_have_a_turn_while_very_many_bytes_are_written(parts: Parts) -> None:
    """A peer may read as fast as this client writes."""
    driver, engine, transport, loop = parts
    engine.output = [b"x" * (1 << 20)] * 20
    driver.flush()
    assert sum(map(len, transport.written)) == 8 << 20
    assert driver.unwritten
    loop.fire()
    assert sum(map(len, transport.written)) == 16 << 20
    driver.flush()  # another command has something to send before the turn is over
    assert sum(map(len, transport.written)) == 20 << 20
    assert (loop.pending(), driver.unwritten) == ([], False)


def test_a_close_writes_also_what_waits_for_the_next_turn(parts: Parts) -> None:
    driver, engine, transport, _ = parts
    engine.output = [b"x" * (1 << 20)] * 20
    driver.flush()
    driver.close()
    assert sum(map(len, transport.written)) == 20 << 20


def test_while_the_socket_is_full_bytes_stay_in_the_engine(parts: Parts) -> None:
    """Memory is bounded by the engine, not by an endless socket buffer."""
    driver, engine, transport, _ = parts
    driver.pause_writing()
    engine.output = [b"a"]
    driver.flush()
    assert (transport.written, engine.output) == ([], [b"a"])
    driver.resume_writing()
    assert transport.written == [b"a"]


def test_a_large_output_is_written_in_pieces_that_notice_a_full_socket(parts: Parts) -> None:
    driver, engine, transport, _ = parts
    engine.output = [bytes(60_000) for _ in range(40)]
    transport.write = lambda data: (transport.written.append(data), driver.pause_writing())
    driver.flush()
    assert len(transport.written) == 1
    assert engine.output


def test_a_write_without_memory_ends_the_connection(parts: Parts) -> None:
    """A part of the frame has left. The peer took the next frames for its rest, and the send waited for ever."""
    driver, engine, transport, _ = parts
    engine.output = [b"a", b"b"]

    def write(data: bytes) -> None:
        raise MemoryError

    transport.write = write
    driver.flush()
    assert transport.state == "aborted"
    engine.output = [b"c"]
    driver.flush()
    assert engine.output == [b"c"]
    driver.connection_lost(None)
    (error,) = engine.lost
    assert isinstance(error, ConnectionLostException)
    assert isinstance(error.__cause__, MemoryError)


def test_bytes_reach_the_engine(parts: Parts) -> None:
    driver, engine, _, _ = parts
    driver.received(b"abc")
    assert engine.received == [b"abc"]


def test_a_stream_whose_bytes_take_long_gets_fewer_of_them_in_a_turn_of_the_loop(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many tiny frames would hold up the other connections of the loop. The time that counts is this thread's own."""
    driver, _, _, _ = parts
    clock = [0.0]
    monkeypatch.setattr(time, "thread_time", lambda: clock[0])

    def read(seconds: float) -> int:
        room = len(driver.get_buffer(-1))
        monkeypatch.setattr(driver, "received", lambda data: clock.append(clock.pop() + seconds))
        driver.buffer_updated(room)
        return room

    rooms = [read(seconds) for seconds in (0.01, 0.3, 0.3, 0.3, 0.3, 0.01, 0.01, 0.01, 0.01, 0.01)]
    assert [room >> 10 for room in rooms] == [256, 256, 64, 16, 16, 16, 32, 64, 128, 256]
    driver.encrypted = True
    assert {read(0.3) for _ in range(3)} == {256 << 10}


def test_the_last_bytes_of_a_tls_stream_arrive_also_if_the_bytes_before_them_took_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """asyncio reads once more when the stream ends. What did not fit in this read was lost: the last messages, or the
    reason of the end."""
    seconds = count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    sent = b"AMQP\x03\x01\x00\x00".ljust(400_000, b"x")

    class Slow(FakeEngine):
        def receive_data(self, data: bytes) -> None:
            super().receive_data(data)
            all_sent.wait(0.5)  # the end of the stream is there, too, before the next read

    all_sent = threading.Event()

    def serve(server: socket.socket) -> None:
        with context.wrap_socket(server.accept()[0], server_side=True) as stream:
            stream.sendall(sent)
        all_sent.set()

    async def main(port: int) -> bytes:
        engine = Slow()
        url = parse_url(f"amqps://127.0.0.1:{port}?transport.trustAll=true")
        connector = AsyncioConnector(url, asyncio.get_running_loop(), None)
        connector.connect(url.endpoints[0], engine, engine.lost.append)
        await asyncio.wait_for(engine.gone.wait(), 60)
        engine.stream.abort()  # Python 3.10 warns of an unclosed transport otherwise
        return b"".join(engine.received)

    with socket.create_server(("127.0.0.1", 0)) as server:
        serving = threading.Thread(target=serve, args=(server,))
        serving.start()
        received = asyncio.run(main(server.getsockname()[1]))
        serving.join(60)
    assert received == sent


def test_the_engine_is_asked_for_its_deadline_and_ticked_then(parts: Parts) -> None:
    driver, engine, _, loop = parts
    assert (engine.ticks, loop.pending()) == ([100.0], [])
    engine.deadline = 105.0
    driver.received(b"x")
    assert loop.pending() == [105.0]
    engine.deadline = 111.0
    loop.fire()
    assert engine.ticks[-1] == 105.0
    assert loop.pending() == [111.0]


def test_a_deadline_that_came_nearer_replaces_the_old_one(parts: Parts) -> None:
    """The peer's idle time-out is known only after the timer for ours was set."""
    driver, engine, _, loop = parts
    engine.deadline = 160.0
    driver.received(b"sasl")
    engine.deadline = 100.2
    driver.retick()
    loop.fire()
    assert loop.pending() == [100.2]


def test_bytes_in_each_turn_of_the_loop_do_not_put_a_tick_off(parts: Parts) -> None:
    """The loop takes the bytes first, and a cancelled timer does not run any more, although it was due."""
    driver, engine, _, loop = parts
    engine.deadline = 100.0  # the engine has more to read
    driver.received(b"x")
    (due,) = (timer for timer in loop.timers if not timer.cancelled)
    driver.retick()
    assert not due.cancelled
    loop.now = 100.3
    driver.retick()
    assert not due.cancelled
    assert loop.pending() == [100.0]


def test_an_engine_that_asks_for_a_tick_in_a_tick_has_one_timer(parts: Parts) -> None:
    """Two timers would double with each turn of the loop."""
    driver, engine, _, loop = parts
    loop.timers.clear()
    driver._timer = None
    engine.tick = lambda now: driver.retick() or now + 5.0  # type: ignore[method-assign]
    driver.retick()
    loop.fire()
    loop.fire()
    assert loop.pending() == [100.0]


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt()])
def test_an_error_in_a_tick_ends_the_connection(parts: Parts, error: BaseException) -> None:
    """S127: the frames that a tick reads would be lost, and their callers would wait for ever."""
    driver, engine, transport, loop = parts

    def tick(now: float) -> float:
        raise error

    engine.tick = tick  # type: ignore[method-assign]
    driver.retick()
    with contextlib.suppress(KeyboardInterrupt):
        loop.fire()
    assert isinstance(engine.lost[0], ConnectionLostException)
    assert transport.state == "aborted"


def test_close_writes_what_is_left(parts: Parts) -> None:
    driver, engine, transport, _ = parts
    engine.output = [b"bye"]
    driver.close()
    assert (transport.written, transport.state) == ([b"bye"], "closed")
    engine.output = [b"late"]
    driver.flush()
    assert transport.written == [b"bye"]


def test_close_writes_nothing_to_a_peer_that_does_not_read(parts: Parts) -> None:
    """What is pending is repeated at another broker, and this one may read again some day."""
    driver, engine, transport, _ = parts
    driver.pause_writing()
    engine.output = [b"pending"]
    driver.close()
    assert (transport.written, transport.state) == ([], "aborted")


def test_close_ends_at_once_if_the_last_bytes_fill_the_socket(parts: Parts) -> None:
    driver, engine, transport, _ = parts
    transport.write = lambda data: (transport.written.append(data), driver.pause_writing())
    engine.output = [b"x" * (1 << 20), b"more"]
    driver.close()
    assert (len(transport.written), transport.state) == (1, "aborted")


def test_a_peer_that_never_reads_the_last_bytes_keeps_the_socket_for_a_few_seconds_only(parts: Parts) -> None:
    driver, engine, transport, loop = parts
    engine.output = [b"bye"]
    driver.close()
    driver.retick()
    (end,) = loop.pending()
    assert end - loop.now == 5
    loop.fire()
    assert transport.state == "aborted"


def test_a_socket_that_closes_in_time_is_not_aborted(parts: Parts) -> None:
    driver, _, transport, loop = parts
    driver.close()
    driver.connection_lost(None)
    assert (loop.pending(), transport.state) == ([], "closed")


def test_abort_drops_what_is_left(parts: Parts) -> None:
    driver, engine, transport, _ = parts
    engine.output = [b"bye"]
    driver.abort()
    assert (transport.written, transport.state) == ([], "aborted")


def test_the_end_of_the_socket_stops_the_timer_and_tells_the_engine(parts: Parts) -> None:
    driver, engine, _, loop = parts
    engine.deadline = 105.0
    driver.received(b"x")
    error = ConnectionResetError()
    driver.connection_lost(error)
    assert loop.pending() == []
    assert engine.lost == [error]


def test_no_timer_is_set_by_bytes_that_arrive_while_closing(parts: Parts) -> None:
    driver, engine, _, loop = parts
    driver.close()
    before = loop.pending()
    engine.deadline = 102.0
    driver.received(b"x")
    assert loop.pending() == before


def test_a_stream_that_is_not_connected_yet_can_be_flushed_and_closed() -> None:
    driver: Any = Driver(FakeEngine(), FakeLoop(), ENDPOINT)
    driver.flush()
    driver.close()
    driver.abort()


# -- opening ----------------------------------------------------------------------------------------------------


async def open_stream(
    url: str, context: ssl.SSLContext | None = None, engine: FakeEngine | None = None
) -> Exception | FakeEngine:
    """Return the engine once connected, or the error."""
    parsed = parse_url(url)
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[Exception] = loop.create_future()
    engine = engine or FakeEngine()
    connector = AsyncioConnector(parsed, loop, context)
    connector.connect(parsed.endpoints[0], engine, failed.set_result)
    made = asyncio.ensure_future(engine.made.wait())
    await asyncio.wait({failed, made}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
    if failed.done():
        made.cancel()
        return failed.result()
    return engine


def opened(url: str) -> Exception | FakeEngine:
    return asyncio.run(open_stream(url))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_refused_connection_is_lost_with_its_cause_s129(host: str) -> None:
    """On this machine the error says how to start a broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = opened(f"amqp://{host}:{port}")
    assert isinstance(error, ConnectionLostException)
    assert isinstance(error.__cause__, OSError)
    assert str(error).endswith("; no broker listens there: start one with `pyjmsack broker`")


@pytest.mark.parametrize("host", ["10.0.0.1", "broker.example", "fd00::1"])
def test_a_refused_connection_of_another_machine_is_no_reason_to_start_a_broker(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr("pyjmsack.io.driver.Names.look_up", refuse)
    error = opened(f"amqp://{f'[{host}]' if ':' in host else host}")
    assert "cannot connect" in str(error)
    assert "pyjmsack broker" not in str(error)


def test_a_connect_that_the_system_gives_up_is_a_lost_connection_s129(monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.11 this was taken for our own time limit. Without a limit the caller waited for ever."""

    async def give_up(*_: object, **__: object) -> None:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    monkeypatch.setattr("pyjmsack.io.driver.Names.look_up", give_up)
    error = opened("amqp://10.0.0.1?transport.connectTimeout=0")
    assert isinstance(error, ConnectionLostException)
    assert "Connection timed out" in str(error)


def test_a_name_that_does_not_exist_is_a_lost_connection_s129() -> None:
    assert isinstance(opened("amqp://no-such-host.invalid"), ConnectionLostException)


def test_a_silent_tls_peer_is_a_time_out_that_names_its_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        error = opened(f"amqps://127.0.0.1:{port}?transport.connectTimeout=50&transport.trustAll=true")
    assert isinstance(error, RequestTimedOutException)
    assert "transport.connectTimeout" in str(error)


def test_a_peer_that_answers_tls_with_something_else_is_a_security_error() -> None:
    """S129."""

    async def main() -> Any:
        answered = asyncio.Event()

        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            answered.set()

        server = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            result = await open_stream(f"amqps://127.0.0.1:{port}?transport.trustAll=true")
            await asyncio.wait_for(answered.wait(), 60)
            return result

    error = asyncio.run(main())
    assert isinstance(error, JMSException)
    assert isinstance(error, JMSSecurityException | ConnectionLostException)
    assert isinstance(error, ConnectionLostException) or "this port does not speak TLS" in str(error)


def on_uvloop(main: Coroutine[Any, Any, Any]) -> Any:
    """Run on the loop that web servers bring along."""
    import uvloop  # not made for Windows

    return uvloop.run(main)


LOOPS = pytest.mark.parametrize(
    "run",
    [
        pytest.param(asyncio.run, id="asyncio"),
        pytest.param(on_uvloop, id="uvloop", marks=pytest.mark.skipif(sys.platform == "win32", reason="no uvloop")),
    ],
)


@pytest.mark.option("transport.localAddress", "core")
@pytest.mark.option("transport.soLinger", "core")
@pytest.mark.option("transport.receiveBufferSize", "core")
@pytest.mark.option("transport.sendBufferSize", "core")
@pytest.mark.option("transport.tcpKeepAlive", "core")
@pytest.mark.option("transport.tcpNoDelay", "core")
@pytest.mark.option("transport.trafficClass", "core")
@LOOPS
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_socket_options_of_the_url_are_set_and_bytes_flow(run: Callable[[Any], Any], host: str) -> None:
    async def main() -> None:
        peer: list[asyncio.StreamWriter] = []
        arrived = asyncio.Event()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peer.append(writer)
            assert await reader.readexactly(5) == b"hello"
            arrived.set()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        options = "transport.tcpKeepAlive=true&transport.tcpNoDelay=false&transport.localAddress=127.0.0.1"
        options += "&transport.soLinger=7&transport.trafficClass=8"
        options += "&transport.sendBufferSize=20000&transport.receiveBufferSize=30000"
        async with server:
            engine = await open_stream(f"amqp://{host}:{port}?{options}")
            assert isinstance(engine, FakeEngine)
            await asyncio.sleep(0)
            sock = engine.stream._transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert not sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert struct.unpack("ii", sock.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)) == (1, 7)
            assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 8
            sizes = [sock.getsockopt(socket.SOL_SOCKET, name) for name in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
            assert sizes in ([20000, 30000], [40000, 60000])  # Linux doubles what it is told
            engine.output = [b"hello"]
            engine.stream.flush()
            await asyncio.wait_for(arrived.wait(), 60)
            peer[0].close()
            await asyncio.wait_for(engine.gone.wait(), 60)
            assert engine.lost == [None]
            with suppress(OSError):
                await peer[0].wait_closed()

    run(main())


@pytest.mark.option("transport.localPort", "core")
@LOOPS
@pytest.mark.parametrize("address", ["", "&transport.localAddress=127.0.0.1"])
def test_the_port_of_the_url_is_bound(run: Callable[[Any], Any], address: str) -> None:
    """Without an address of the URL, that of any interface: it was looked for under an empty name."""

    async def main() -> None:
        seen: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.set_result(writer.get_extra_info("peername"))
            writer.close()

        (local,) = free_ports()
        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            engine = await open_stream(f"amqp://127.0.0.1:{port}?transport.localPort={local}{address}")
            assert isinstance(engine, FakeEngine), engine
            assert (await asyncio.wait_for(seen, 60))[1] == local
            await asyncio.wait_for(engine.gone.wait(), 60)

    run(main())


class Player(FakeEngine):
    """Returns what it gets, and notes whether TCP acknowledges at once when that is read."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt: list[int] = []
        self.done = asyncio.Event()

    def receive_data(self, data: bytes) -> None:
        asyncio.get_running_loop().call_soon(self.answer, data)

    def answer(self, data: bytes) -> None:
        sock = self.stream._transport.get_extra_info("socket")
        self.prompt.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK))
        if len(self.prompt) == 20:
            self.done.set()
        else:
            self.output.append(data)
            self.stream.flush()


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="an option of Linux")
@LOOPS
@pytest.mark.parametrize(("no_delay", "prompt"), [("true", 1), ("false", 0)])
def test_what_is_read_is_acknowledged_at_once_also_in_a_conversation(
    run: Callable[[Any], Any], no_delay: str, prompt: int
) -> None:
    """ActiveMQ Classic would hold back its second answer for 40 ms: after some questions and answers TCP acknowledges
    with the next question only, unless it is told otherwise after each."""

    async def main() -> list[int]:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"x")
            while data := await reader.read(1):
                writer.write(data)
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            player = Player()
            await open_stream(f"amqp://127.0.0.1:{port}?transport.tcpNoDelay={no_delay}", engine=player)
            await asyncio.wait_for(player.done.wait(), 60)
            player.stream.close()
            await asyncio.wait_for(player.gone.wait(), 60)
        return player.prompt

    assert run(main())[-5:] == [prompt] * 5


class Quitter(FakeEngine):
    """Closes its stream as soon as it has one, as after a login that cannot be sent."""

    def connection_made(self, stream: Any) -> None:
        super().connection_made(stream)
        stream.close()


@LOOPS
def test_the_socket_of_a_stream_that_its_engine_closes_at_once_is_closed_once(
    run: Callable[[Any], Any], recwarn: pytest.WarningsRecorder
) -> None:
    """A second close would come when the descriptor belongs to another connection, which was lost with uvloop."""

    async def main() -> None:
        async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
            url = f"amqp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            engine = await open_stream(url, engine=Quitter())
            assert isinstance(engine, Quitter)
            await asyncio.wait_for(engine.gone.wait(), 60)

    run(main())
    gc.collect()
    assert [str(warning.message) for warning in recwarn if "unclosed" in str(warning.message)] == []


def test_streams_that_are_being_opened_can_be_given_up() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = parse_url(f"amqps://127.0.0.1:{server.getsockname()[1]}?transport.trustAll=true")
            connector = AsyncioConnector(url, asyncio.get_running_loop(), None)
            failed: list[Exception] = []
            connector.connect(url.endpoints[0], FakeEngine(), failed.append)
            await asyncio.sleep(0)
            connector.cancel()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), 60)
            assert failed == []

    asyncio.run(main())


@pytest.mark.parametrize("steps", [0, 1], ids=["before its first step", "at work"])
def test_a_stream_whose_task_the_program_cancels_has_failed(steps: int) -> None:
    """S101: failover waited for ever for the end of the attempt."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = parse_url(f"amqps://127.0.0.1:{server.getsockname()[1]}?transport.trustAll=true")
            connector = AsyncioConnector(url, asyncio.get_running_loop(), None)
            failed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
            connector.connect(url.endpoints[0], FakeEngine(), failed.set_result)
            for _ in range(steps):
                await asyncio.sleep(0)
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            error = await asyncio.wait_for(failed, 60)
            assert isinstance(error, ConnectionLostException)

    asyncio.run(main())


def test_an_endpoint_is_shown_without_secrets() -> None:
    assert str(Endpoint("amqp", "::1", 5672, False)) == "amqp://[::1]:5672"

"""A port that is silent to one protocol is asked, once and beside the stream, whether it speaks the other one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from io_fakes import RecordingEngine

from pyjmsack.errors import ConnectionLostException
from pyjmsack.io import inquiry
from pyjmsack.io.driver import AsyncioConnector
from pyjmsack.probing import GREETINGS
from pyjmsack.uri import parse_url

PATIENCE = 60.0
ANSWERS = {"AMQP": b"AMQP\3\1\0\0", "STOMP": b"CONNECTED\nversion:1.2\n\n\0", "TLS": b"\x15\3\1\0\2\2\x28"}
EITHER = pytest.mark.parametrize(("scheme", "other"), [("amqp", "STOMP"), ("stomp", "AMQP")])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams lose patience at once, and no address was asked before."""
    monkeypatch.setattr(inquiry, "SILENCE", 0.01)
    monkeypatch.setattr(inquiry, "SILENCE_OF_TLS", 0.01)
    monkeypatch.setattr(inquiry, "_asked", {})


class Port:
    """Answers the second and all later connections as ``answer`` says; the first one is the stream, which hears nothing
    unless a test says so."""

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self._answer = answer
        self.number = 0
        self.heard: list[bytes] = []
        self.closed = 0
        self.ended = asyncio.Event()
        """The second probe is over."""
        self.stream: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.heard)
        self.heard.append(b"")
        if not number:
            self.stream = writer
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(512):
                self.heard[number] += data
                said = self._answer(data) if number else None
                if said:
                    writer.write(said)
        if number == 2:
            self.ended.set()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.closed += 1


@contextlib.asynccontextmanager
async def listening(answer: Callable[[bytes], bytes | None]) -> AsyncIterator[Port]:
    port = Port(answer)
    async with await asyncio.start_server(port.serve, "127.0.0.1", 0) as server:
        port.number = server.sockets[0].getsockname()[1]
        yield port
        await until(lambda: port.closed == len(port.heard))


class Stream(RecordingEngine):
    """An engine that tells when it hears and loses something."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()
        self.over: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def receive_data(self, data: bytes) -> None:
        super().receive_data(data)
        self.heard.set()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if not self.over.done():
            self.over.set_result(error)


def connected(scheme: str, port: Port, connector: AsyncioConnector | None = None) -> tuple[Stream, AsyncioConnector]:
    url = parse_url(f"{scheme}://127.0.0.1:{port.number}")
    connector = connector or AsyncioConnector(url, asyncio.get_running_loop(), None)
    stream = Stream()
    connector.connect(url.endpoints[0], stream, stream.connection_lost)
    return stream, connector


async def until(condition: Callable[[], Any]) -> None:
    """Let the loop run until something holds that tells nobody."""

    async def turn() -> None:
        while not condition():  # noqa: ASYNC110  # no event tells of it
            await asyncio.sleep(0)

    await asyncio.wait_for(turn(), PATIENCE)


def speaks(*protocols: str) -> Callable[[bytes], bytes | None]:
    """Return what a port answers to whoever greets it in one of these."""
    return lambda data: next((ANSWERS[name] for name in protocols if data.startswith(GREETINGS[name][:4])), None)


@EITHER
def test_a_silent_port_that_speaks_the_other_protocol_is_named(scheme: str, other: str) -> None:
    """S129: the same error as for a port that says at once what it speaks."""

    async def main() -> None:
        async with listening(speaks(other)) as port:
            stream, _ = connected(scheme, port)
            error = await asyncio.wait_for(stream.over, PATIENCE)
            assert isinstance(error, ConnectionLostException)
            assert f"{scheme}://127.0.0.1:{port.number} speaks {other}, not {scheme.upper()}: use {other.lower()}" in (
                str(error)
            )
            assert port.heard[1:] == [GREETINGS[other], GREETINGS[scheme.upper()]]

    asyncio.run(main())


@EITHER
def test_a_slow_broker_behind_a_port_for_both_protocols_is_waited_for(scheme: str, other: str) -> None:
    async def main() -> None:
        async with listening(speaks("AMQP", "STOMP")) as port:
            stream, _ = connected(scheme, port)
            await asyncio.wait_for(port.ended.wait(), PATIENCE)
            assert port.stream is not None
            port.stream.write(ANSWERS[scheme.upper()])
            await asyncio.wait_for(stream.heard.wait(), PATIENCE)
            assert stream.received == [ANSWERS[scheme.upper()]]
            assert not stream.lost
            stream.stream.close()
            await asyncio.wait_for(stream.over, PATIENCE)

    asyncio.run(main())


def test_an_answer_that_comes_meanwhile_ends_the_asking() -> None:
    async def main() -> None:
        async with listening(lambda data: None) as port:
            stream, _ = connected("amqp", port)
            await until(lambda: len(port.heard) == 2 and port.heard[1])
            assert port.stream is not None
            port.stream.write(ANSWERS["AMQP"])
            await asyncio.wait_for(stream.heard.wait(), PATIENCE)
            others = asyncio.all_tasks() - {asyncio.current_task()}
            asking = [task for task in others if "Inquiry" in repr(task)]
            await asyncio.wait_for(asyncio.gather(*asking, return_exceptions=True), PATIENCE)
            assert not stream.lost
            stream.stream.close()
            await asyncio.wait_for(stream.over, PATIENCE)
            assert len(port.heard) == 2

    asyncio.run(main())


def test_many_connections_to_one_silent_address_ask_once_a_minute() -> None:
    """A thousand clients that wait for a slow broker are no burden to it."""

    async def main() -> None:
        async with listening(speaks("STOMP")) as port:
            streams = [connected("amqp", port)[0] for _ in range(5)]
            done, _ = await asyncio.wait([s.over for s in streams], return_when="FIRST_COMPLETED", timeout=PATIENCE)
            assert len(done) == 1
            greeted = [heard for heard in port.heard if heard]
            assert sorted(greeted) == sorted([GREETINGS["STOMP"], GREETINGS["AMQP"]])
            for stream in streams:
                if not stream.over.done():
                    stream.stream.close()
                    await asyncio.wait_for(stream.over, PATIENCE)

    asyncio.run(main())


def test_an_address_is_asked_again_after_a_minute_and_the_memory_is_bounded() -> None:
    assert inquiry._may_ask(("a", 1), 100.0)
    assert not inquiry._may_ask(("a", 1), 159.0)
    assert inquiry._may_ask(("a", 2), 159.0)
    assert inquiry._may_ask(("a", 1), 160.0)
    for number in range(inquiry.MOST - 2):
        assert inquiry._may_ask(("b", number), 160.0)
    assert not inquiry._may_ask(("c", 1), 160.0)
    assert inquiry._may_ask(("c", 1), 219.5)
    assert len(inquiry._asked) == inquiry.MOST


def test_a_connection_that_has_met_its_broker_asks_nobody_when_it_is_lost() -> None:
    """Neither do the members of its failover URL: brokers that come back are slow, and all clients come at once."""

    async def main() -> None:
        async with listening(speaks("STOMP")) as port:
            stream, connector = connected("amqp", port)
            await until(lambda: port.stream)
            assert port.stream is not None
            port.stream.write(ANSWERS["AMQP"])
            await asyncio.wait_for(stream.heard.wait(), PATIENCE)
            stream.stream.close()
            await asyncio.wait_for(stream.over, PATIENCE)
            member = connector.for_url(parse_url(f"amqp://127.0.0.1:{port.number}"))
            again, _ = connected("amqp", port, member)
            await until(lambda: again.stream)
            assert again.stream._inquiry is None
            again.stream.close()
            await asyncio.wait_for(again.over, PATIENCE)

    asyncio.run(main())


@pytest.mark.parametrize(("scheme", "spoken"), [("amqps", "AMQP"), ("stomp+ssl", "STOMP"), ("amqps", "STOMP")])
def test_a_port_that_does_not_answer_tls_is_asked_what_it_speaks_without_tls(scheme: str, spoken: str) -> None:
    """S129: it took until ``jms.connectTimeout``."""

    async def main() -> None:
        async with listening(speaks(spoken)) as port:
            stream, _ = connected(scheme, port)
            error = await asyncio.wait_for(stream.over, PATIENCE)
            assert isinstance(error, ConnectionLostException)
            assert f"{scheme}://127.0.0.1:{port.number} speaks {spoken}, not TLS: use {spoken.lower()}://" in str(error)
            assert port.heard[-1] == GREETINGS["TLS"]

    asyncio.run(main())


def test_a_slow_port_with_and_without_tls_is_waited_for() -> None:
    async def main() -> None:
        async with listening(speaks("AMQP", "TLS")) as port:
            stream, connector = connected("amqps", port)
            await until(lambda: port.heard and port.heard[-1] == GREETINGS["TLS"])
            await until(lambda: not [task for task in asyncio.all_tasks() if "Inquiry" in repr(task)])
            assert not stream.lost
            connector.cancel()

    asyncio.run(main())


def test_a_stream_that_is_given_up_during_its_handshake_leaves_no_socket() -> None:
    async def main() -> None:
        async with listening(lambda data: None) as port:
            stream, connector = connected("amqps", port)
            await until(lambda: port.heard and port.heard[0])
            connector.cancel()
            await until(lambda: port.stream and port.stream.is_closing())
            assert not stream.lost

    asyncio.run(main())


def test_a_connection_that_has_met_its_broker_asks_no_port_about_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that comes back is slow, and all its clients come at once."""
    monkeypatch.delattr("pyjmsack.io.driver.shaken")

    async def main() -> None:
        async with listening(speaks("AMQP")) as port:
            url = parse_url(f"amqps://127.0.0.1:{port.number}")
            connector = AsyncioConnector(url, asyncio.get_running_loop(), None)
            connector._history.answered = True
            stream, _ = connected("amqps", port, connector)
            await until(lambda: port.heard and port.heard[0])
            assert not stream.lost
            connector.cancel()

    asyncio.run(main())

"""The first of several addresses that answers gets the connection, and no socket is left over."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from polling import eventually

from pyjmsack.io import reaching
from pyjmsack.io.names import Address
from pyjmsack.io.reaching import connect, reach

pytestmark = pytest.mark.usefixtures("no_leaks")


def at(host: str) -> Address:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return (family, socket.SOCK_STREAM, 6, "", (host, 1))


class Loop(asyncio.SelectorEventLoop):
    """A loop whose network does what the test says."""

    def __init__(self, network: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        super().__init__()
        self._network = network
        self.tried: list[str] = []
        self.sockets: list[socket.socket] = []

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        self.tried.append(address[0])
        self.sockets.append(sock)
        await self._network(address[0])


def run(loop: Loop, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        loop.run_until_complete(asyncio.wait_for(main(), 60))
    finally:
        loop.close()
    assert all(sock.fileno() < 0 for sock in loop.sockets), "a socket was left open"


def test_an_address_that_does_not_answer_gets_a_rival_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "HEAD_START", 0.01)

    async def network(host: str) -> None:
        if host == "10.0.0.1":
            await asyncio.Event().wait()

    loop = Loop(network)

    async def main() -> None:
        sock = await reach(loop, [at("10.0.0.1"), at("10.0.0.2"), at("10.0.0.3")])
        assert loop.tried == ["10.0.0.1", "10.0.0.2"]
        assert sock is loop.sockets[1]
        assert not sock.getblocking()
        sock.close()
        await eventually(lambda: loop.sockets[0].fileno() < 0)

    run(loop, main)


def test_the_families_take_turns_and_an_address_that_refuses_is_followed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RFC 8305: where IPv6 is broken, the second try is IPv4."""
    monkeypatch.setattr(reaching, "HEAD_START", 3600)

    async def network(host: str) -> None:
        raise ConnectionRefusedError(111, f"{host} refused")

    loop = Loop(network)

    async def main() -> None:
        with pytest.raises(OSError, match=r"fd00::1 refused.*10\.0\.0\.1 refused") as raised:
            await reach(loop, [at("fd00::1"), at("fd00::2"), at("10.0.0.1"), at("fd00::3")])
        assert loop.tried == ["fd00::1", "10.0.0.1", "fd00::2", "fd00::3"]
        assert str(raised.value).count("refused") == 4

    run(loop, main)


def test_the_error_of_a_single_address_stays_as_it_is() -> None:
    error = ConnectionRefusedError(111, "refused")

    async def network(host: str) -> None:
        raise error

    loop = Loop(network)

    async def main() -> None:
        with pytest.raises(ConnectionRefusedError) as raised:
            await reach(loop, [at("10.0.0.1"), at("10.0.0.2")])
        assert raised.value is error

    run(loop, main)


def test_of_two_addresses_that_answer_in_the_same_moment_one_socket_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "HEAD_START", 0)
    both = asyncio.Event()

    async def network(host: str) -> None:
        if len(loop.tried) == 2:
            both.set()
        await both.wait()

    loop = Loop(network)

    async def main() -> None:
        (await reach(loop, [at("10.0.0.1"), at("10.0.0.2")])).close()
        assert len(loop.tried) == 2
        await eventually(lambda: all(sock.fileno() < 0 for sock in loop.sockets))

    run(loop, main)


def test_who_gives_up_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaching, "HEAD_START", 0)

    async def network(host: str) -> None:
        await asyncio.Event().wait()

    loop = Loop(network)

    async def main() -> None:
        task = loop.create_task(reach(loop, [at("10.0.0.1"), at("10.0.0.2")]))
        await eventually(lambda: len(loop.tried) == 2)
        task.cancel()
        await asyncio.wait([task])
        await eventually(lambda: all(sock.fileno() < 0 for sock in loop.sockets))

    run(loop, main)


def test_a_broker_that_ends_as_soon_as_it_is_reached_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker was killed between the connect and the look at its address: the descriptor stayed open."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        reset = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()  # with a reset
        with pytest.raises(ConnectionResetError):
            reset.recv(1)

    async def reached(*_: object) -> socket.socket:
        return reset

    async def main() -> None:
        await connect(asyncio.get_running_loop(), asyncio.Protocol, [], ssl=None, server_hostname=None)

    monkeypatch.setattr(reaching, "reach", reached)
    with pytest.raises(OSError, match="not connected"):
        asyncio.run(main())
    assert reset.fileno() == -1


def test_an_address_of_this_machine_of_another_family_is_refused_with_its_option() -> None:
    async def network(host: str) -> None:
        raise AssertionError("not reached")

    loop = Loop(network)

    async def main() -> None:
        with pytest.raises(OSError, match=r"transport\.localAddress .* AF_INET6"):
            await reach(loop, [at("fd00::1")], [at("127.0.0.1")])

    run(loop, main)


def test_an_address_that_this_machine_does_not_have_is_named() -> None:
    async def network(host: str) -> None:
        raise AssertionError("not reached")

    loop = Loop(network)

    async def main() -> None:
        with pytest.raises(OSError, match=r"cannot bind to 203\.0\.113\.9 port 1: "):
            await reach(loop, [at("10.0.0.1")], [at("203.0.113.9")])

    run(loop, main)


class OtherLoop:
    """A loop that is not one of asyncio, and opens what the test says."""

    def __init__(self, *answers: object) -> None:
        self._answers = [*answers]
        self.asked: list[tuple[str, Any]] = []

    async def create_connection(self, protocol: Any, host: str, port: int, **named: Any) -> Any:
        self.asked.append((host, named["local_addr"]))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def connected(loop: Any, *local: Address) -> Any:
    return asyncio.run(
        connect(loop, asyncio.Protocol, [at("fd00::1"), at("10.0.0.1")], local, ssl=None, server_hostname=None)
    )


def test_another_loop_gets_the_addresses_one_after_the_other_and_makes_the_sockets() -> None:
    loop = OtherLoop(OSError("unreachable"), "the transport")
    assert connected(loop) == "the transport"
    assert loop.asked == [("fd00::1", None), ("10.0.0.1", None)]
    loop = OtherLoop("the transport")
    assert connected(loop, at("127.0.0.1")) == "the transport"
    assert loop.asked == [("10.0.0.1", ("127.0.0.1", 1))]


def test_another_loop_that_reaches_no_address_gives_the_reason_for_each() -> None:
    with pytest.raises(OSError, match="unreachable; refused"):
        connected(OtherLoop(OSError("unreachable"), OSError("refused")))


def test_another_loop_ends_at_the_first_address_that_refuses_tls() -> None:
    """Its certificate is wrong, and not its address."""
    loop = OtherLoop(ssl.SSLError("the certificate is wrong"))
    with pytest.raises(ssl.SSLError):
        connected(loop)
    assert len(loop.asked) == 1

"""Connects a socket to the first of several addresses that answers (RFC 8305, "happy eyeballs").

asyncio can do this too, but asyncio would also look up the name, on the threads of the loop's executor.
:mod:`pyjmsack.io.helpers` says why these threads must not do this.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from ssl import SSLContext, SSLError
from typing import Any, TypeVar

from pyjmsack.io.names import Address

__all__ = ["connect", "reach"]

P = TypeVar("P", bound=asyncio.BaseProtocol)

HEAD_START = 0.25
"""Seconds for which an address may stay silent before the next address is tried as well."""


async def connect(
    loop: asyncio.AbstractEventLoop,
    protocol: Callable[[], P],
    addresses: Sequence[Address],
    local: Sequence[Address] = (),
    *,
    ssl: SSLContext | None,
    server_hostname: str | None,
    opened: Callable[[tuple[str, int]], None] = lambda place: None,
) -> tuple[asyncio.BaseTransport, P]:
    """Connect to one of the addresses. Return the transport and the protocol, as ``loop.create_connection`` does.

    A loop of another library, such as uvloop, gets the addresses one after the other and makes the sockets itself. This
    function gives such a loop no connected socket, because uvloop 0.23 may close the file descriptor of such a socket
    twice: uvloop takes the socket over only after ``connection_made``, and the protocol may have closed the connection
    before. At the second close the descriptor may belong to another connection.

    Args:
        opened: called with the address when the socket is connected, and before the TLS handshake. For a loop of
            another library, which connects the socket itself, ``opened`` is called just before this loop connects.

    Raises:
        OSError: no address can be reached, or the TLS handshake failed.
    """
    if isinstance(loop, asyncio.BaseEventLoop):
        sock = await reach(loop, addresses, local)
        try:
            opened(sock.getpeername()[:2])  # an error if the broker has ended meanwhile and reset the connection
        except BaseException:
            sock.close()
            raise
        return await loop.create_connection(protocol, sock=sock, ssl=ssl, server_hostname=server_hostname)
    errors: list[BaseException] = []
    for family, _, _, _, place in addresses:
        try:
            ours: Any = _place(family, local)[:2] if local else None  # the stubs of asyncio do not allow None
            host, port = place[:2]
            opened((host, port))
            return await loop.create_connection(
                protocol, host, port, ssl=ssl, server_hostname=server_hostname, local_addr=ours
            )
        except SSLError:
            raise
        except OSError as error:
            errors.append(error)
    raise _all_of(errors)


async def reach(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[Address], local: Sequence[Address] = ()
) -> socket.socket:
    """Return a socket that is connected to one of the addresses.

    Args:
        addresses: the addresses of the host, at least one.
        local: the addresses to bind the socket to. The first one of the right family is used. If there are none, the
            socket is not bound.

    Raises:
        OSError: no address can be reached; the text names the reason for each address.
    """
    rest = deque(_by_turns(addresses))
    attempts: set[asyncio.Task[socket.socket]] = set()
    errors: list[BaseException] = []
    try:
        while rest or attempts:
            if rest:
                attempts.add(loop.create_task(_connected(loop, rest.popleft(), local)))
            patience = HEAD_START if rest else None
            done, _ = await asyncio.wait(attempts, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                attempts.discard(attempt)
                error = attempt.exception()
                if error is None:
                    return attempt.result()
                errors.append(error)
    finally:
        for attempt in attempts:
            _give_up(attempt)
    raise _all_of(errors)


def _by_turns(addresses: Sequence[Address]) -> list[Address]:
    """Return the addresses in an order in which IPv4 and IPv6 take turns, beginning with the family of the first
    address."""
    families: dict[int, list[Address]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    return [address for address in chain(*zip_longest(*families.values())) if address is not None]


async def _connected(loop: asyncio.AbstractEventLoop, address: Address, local: Sequence[Address]) -> socket.socket:
    family, kind, protocol, _, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        if local:
            _bind(sock, local)
        await loop.sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


def _bind(sock: socket.socket, local: Sequence[Address]) -> None:
    place = _place(sock.family, local)
    try:
        sock.bind(place)
    except OSError as error:
        raise OSError(error.errno, f"cannot bind to {place[0]} port {place[1]}: {error.strerror}") from error


def _place(family: int, local: Sequence[Address]) -> tuple[Any, ...]:
    """Return the first of the local addresses that belongs to this family, IPv4 or IPv6."""
    for address in local:
        if address[0] == family:
            return address[4]
    name = socket.AddressFamily(family).name
    raise OSError(f"transport.localAddress has no address of the family {name}, to which the broker's address belongs")


def _give_up(attempt: asyncio.Task[socket.socket]) -> None:
    """End an attempt that is not needed any more, because another attempt was faster or the caller gave up the
    connection."""
    if not attempt.done():
        attempt.cancel()
    elif not attempt.cancelled() and attempt.exception() is None:  # another attempt succeeded at the same moment
        attempt.result().close()


def _all_of(errors: Sequence[BaseException]) -> BaseException:
    """Combine the errors of all addresses in one error."""
    texts = [*dict.fromkeys(map(str, errors))]
    if len(texts) == 1:
        return errors[0]
    refused = all(isinstance(error, ConnectionRefusedError) for error in errors)
    return (ConnectionRefusedError if refused else OSError)("; ".join(texts))

"""Looks up host names. A name server that does not answer delays only the connections that need it."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from weakref import WeakKeyDictionary

from pyjmsack.io.helpers import Helpers

__all__ = ["Address", "Names"]

Address = tuple[int, int, int, str, tuple[Any, ...]]
"""One address as ``socket.getaddrinfo`` returns it: family, type, protocol, canonical name, address of the socket."""
Lookup = asyncio.Future[list[Address]]

MOST = 4
"""The largest number of names that one connection looks up at the same time."""
_running: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str | None, int], Lookup]] = WeakKeyDictionary()
"""For each loop, the lookups that have begun and have not ended yet."""


class Names:
    """The lookups of one connection. All methods are called on the loop.

    A running lookup cannot be stopped, and therefore its thread stays after the connection has given up. But the number
    of threads stays small: one connection has at most ``MOST``, and connections of one loop that look up the same name
    share one thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._helpers = Helpers(loop, "pyjmsack-names", MOST)
        self._running = _running.setdefault(loop, {})

    async def look_up(self, host: str | None, port: int) -> list[Address]:
        """Return the addresses of a host. The host ``None`` stands for the addresses of a socket that listens on all
        interfaces.

        Raises:
            OSError: the name is unknown, or the name server does not answer.
            UnicodeError: Python refuses the name.
        """
        known = _literal(host, port)
        if known is not None:
            return [known]
        place = host, port
        running = self._running.get(place)
        if running is None:
            # a lookup that waits for a thread of this connection is not shared with other connections
            if not self._helpers.free:
                return await self._helpers.run(partial(_ask, host, port))
            running = self._running[place] = self._helpers.run(partial(_ask, host, port))
            running.add_done_callback(partial(self._ended, place))
        await asyncio.wait([running])  # if this call is cancelled, the lookup goes on for the other callers
        return running.result()

    def _ended(self, place: tuple[str | None, int], lookup: Lookup) -> None:
        del self._running[place]
        if not lookup.cancelled():
            lookup.exception()  # so that asyncio does not report the error of a lookup for which nobody waits any more


def _literal(host: str | None, port: int) -> Address | None:
    """Return the address if ``host`` is an IP address. Return ``None`` if a lookup is needed: for a name, and for an
    address with a zone (``fe80::1%eth0``)."""
    try:
        address: IPv4Address | IPv6Address = ip_address(host or "")
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)
    return (
        None if address.scope_id else (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0))
    )


def _ask(host: str | None, port: int) -> list[Address]:
    # AI_PASSIVE has an effect only without a host: then the addresses stand for all interfaces
    return [*socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)]

"""Something answers the port of a WebSocket, and never opens the WebSocket."""

from __future__ import annotations

import asyncio
import socket

import pytest
from peer_faces import PATIENCE

import pyjmsack
import pyjmsack.aio
from pyjmsack import RequestTimedOutException


@pytest.mark.parametrize("scheme", ["amqpws", "stomp+ws"])
@pytest.mark.parametrize("face", ["sync", "aio"])
def test_an_attempt_that_is_given_up_closes_its_socket(scheme: str, face: str) -> None:
    """With failover each attempt left a socket open, until the program could open no file any more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"{scheme}://127.0.0.1:{server.getsockname()[1]}?jms.connectTimeout=300"
        if face == "aio":
            asyncio.run(give_up(url, server))
        else:
            with pytest.raises(RequestTimedOutException):
                pyjmsack.ConnectionFactory(url).create_connection()
            read_to_the_end(server)


async def give_up(url: str, server: socket.socket) -> None:
    with pytest.raises(RequestTimedOutException):
        await pyjmsack.aio.ConnectionFactory(url).create_connection()
    await asyncio.to_thread(read_to_the_end, server)  # while the loop lives, because its end closes the socket too


def read_to_the_end(server: socket.socket) -> None:
    """Return when the client has closed its socket."""
    server.settimeout(PATIENCE)
    line, _ = server.accept()
    with line:
        line.settimeout(PATIENCE)
        while line.recv(4096):
            pass

"""The upgrade to WebSocket, and its frames."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.fuzz.bench import Bench, FindingError, Input, fed
from benchmarks.fuzz.values import damaged
from pyjmsack.errors import JMSException
from pyjmsack.io.websocket import WebSocketEngine
from pyjmsack.uri import Endpoint

__all__ = ["UPGRADED", "Inner", "run_websocket", "websocket_input"]

UPGRADED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
)


class Inner:
    """A protocol that accepts all bytes."""

    def __init__(self) -> None:
        self.received = 0
        self.lost: list[BaseException | None] = []

    def opening(self, stream: Any) -> None: ...

    def connection_made(self, stream: Any) -> None: ...

    def receive_data(self, data: bytes) -> None:
        self.received += len(data)

    def data_to_send(self) -> bytes:
        return b""

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def tick(self, now: float) -> float | None:
        return None


def websocket_input(dice: random.Random) -> Input:
    frames = b""
    for _ in range(dice.randrange(8)):
        payload = dice.randbytes(dice.choice([0, 1, 125, 126, 1000]))
        first = bytes((dice.choice([0x80, 0, 0x90, 0x40]) | dice.choice([0, 1, 2, 2, 2, 8, 9, 9, 10, 3]),))
        size = bytes((len(payload),)) if len(payload) < 126 else b"\x7e" + len(payload).to_bytes(2, "big")
        frames += first + size + payload
    upgraded = UPGRADED if dice.random() < 0.7 else damaged(dice, UPGRADED)
    return [upgraded, *fed(dice, damaged(dice, frames))]


def run_websocket(chunks: Input) -> None:
    from wsproto.utilities import generate_accept_token

    bench, inner = Bench(), Inner()
    engine = WebSocketEngine(inner, Endpoint("amqpws", "peer", 80, False))
    bench.engine = engine
    engine.connection_made(bench)
    accepted = generate_accept_token(engine._connection.handshake._nonce)  # wsproto chooses it and hides it
    for chunk in chunks:
        engine.receive_data(chunk.replace(b"%s", accepted))
        if bench.closed:
            break
    engine.connection_lost(None)
    if inner.lost and inner.lost[0] is not None and not isinstance(inner.lost[0], JMSException):
        raise FindingError(f"the protocol is told {inner.lost[0]!r}")

"""An engine that writes down what a stream does with it."""

from __future__ import annotations

from typing import Any

__all__ = ["RecordingEngine"]


class RecordingEngine:
    """Takes everything; ``output`` is what it has to send."""

    def __init__(self) -> None:
        self.stream: Any = None
        self.opens: Any = None
        self.received: list[bytes] = []
        self.output: list[bytes] = []
        self.lost: list[Exception | None] = []

    def opening(self, stream: Any) -> None:
        self.opens = stream

    def connection_made(self, stream: Any) -> None:
        self.stream = stream

    def receive_data(self, data: bytes) -> None:
        self.received.append(data)

    def data_to_send(self) -> bytes:
        return self.output.pop(0) if self.output else b""

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def tick(self, now: float) -> float | None:
        return now + 1

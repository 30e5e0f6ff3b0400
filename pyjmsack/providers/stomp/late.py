"""Acknowledgements of messages that the caller need not acknowledge (S36).

Artemis delivers messages as long as the window of the consumer has room, and each acknowledgement makes room. If the
client acknowledged every message at once, the broker would send a whole queue into the inbox of a slow consumer.
"""

from __future__ import annotations

from collections import deque

from pyjmsack.providers.stomp.engine import StompEngine
from pyjmsack.spi.envelope import InboundSink

__all__ = ["LateAcks"]


class LateAcks:
    """Acknowledges each arriving message at once if the inbox has room. Otherwise acknowledges the message later, when
    the caller has taken other messages.

    A message waits here while at least ``prefetch`` older messages are before it in the inbox. The core calls
    :meth:`send` each time the caller has taken a tenth of the prefetch. Therefore each message is acknowledged while
    older messages are still before it, and so before the caller gets it.

    Args:
        prefetch: the number of acknowledged messages that may wait in the inbox.
    """

    def __init__(self, engine: StompEngine, sink: InboundSink, prefetch: int) -> None:
        self._engine = engine
        self._sink = sink
        self._prefetch = max(1, prefetch)
        self._waiting: deque[bytes] = deque()
        """The header lines that name the newest messages of the inbox. The broker still waits for the acknowledgements
        of these messages."""

    def add(self, lines: bytes) -> None:
        """Acknowledge a message that was put into the inbox: acknowledge it now if the inbox has room, and otherwise
        later."""
        self._waiting.append(lines)
        self.send()

    def send(self) -> None:
        """Acknowledge waiting messages, as many as the inbox has room for."""
        if self._waiting:
            self._send(max(0, self._sink.buffered() - self._prefetch))

    def send_all(self) -> None:
        """Acknowledge all messages that wait in the inbox, before the subscription ends. Otherwise the broker would
        deliver these messages again, although the caller may still take them from the inbox."""
        self._send(0)

    def _send(self, left: int) -> None:
        while len(self._waiting) > left:
            self._engine.write(b"ACK\n", self._waiting.popleft(), b"\n\0")

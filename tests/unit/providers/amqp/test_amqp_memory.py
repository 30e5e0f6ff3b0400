"""How many copies of a large body the codec makes (S168)."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from pyjmsack.message import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    SerializedObject,
    StreamMessage,
    TextMessage,
)
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import AmqpInbound

SIZE = 4 << 20
DATA, TEXT = b"x" * SIZE, "x" * SIZE
MESSAGES: dict[str, tuple[Message, int]] = {
    # beside the body of the message: copies while it is encoded, the result being one of them
    "text": (TextMessage(TEXT), 2),
    "bytes": (BytesMessage(DATA), 1),
    "map of bytes": (MapMessage({"k": DATA}), 2),
    "map of text": (MapMessage({"k": TEXT}), 2),
    "stream of bytes": (StreamMessage([DATA]), 2),
    "stream of text": (StreamMessage([TEXT]), 2),
    "object": (ObjectMessage([DATA]), 2),
    "serialised object": (ObjectMessage(SerializedObject(DATA)), 1),
}


def copies(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return how many times ``SIZE`` the action had in memory at most, and its result."""
    gc.collect()
    tracemalloc.start()
    try:
        result = action()
        return tracemalloc.get_traced_memory()[1] / SIZE, result
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", MESSAGES)
def test_a_large_body_is_copied_as_little_as_can_be_s168(name: str) -> None:
    message, allowed = MESSAGES[name]
    peak, payload = copies(lambda: encode(message, "q"))
    assert peak < allowed + 0.2
    peak, twin = copies(lambda: AmqpInbound(payload).to_message())
    assert peak < 2.2
    assert type(twin) is type(message)
    assert len(payload) - SIZE < 200


def test_bytes_written_in_pieces_are_copied_as_little_as_can_be_s168() -> None:
    """Buffer and body, then body and payload."""
    piece = b"x" * (SIZE // 8)

    def write() -> bytes:
        message = BytesMessage()
        for _ in range(8):
            message.write_bytes(piece)
        return encode(message, "q")

    assert copies(write)[0] < 2.4

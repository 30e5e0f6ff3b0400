"""The code of a tracing is slow, or never returns (S123)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest
from peer import unanswered
from peer_faces import PATIENCE, Face

from pyjmsack import Queue
from pyjmsack.spi.tracing import Sent, install

Q = Queue("q")


@pytest.fixture
def ends() -> Iterator[Callable[[Callable[..., None]], None]]:
    """Trace the connections that are opened from now on: the given function ends each send."""

    def use(end: Callable[..., None]) -> None:
        def tracing() -> Any:
            made = MagicMock()
            made.send.return_value = Sent(MagicMock(end=end), None)
            return made

        install(tracing)

    yield use
    install(None)


def test_a_span_processor_that_blocks_delays_a_close_for_its_time_only(
    face: Face, ends: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """S123: the close waited until all spans were ended. In asyncio the loop stood still meanwhile."""
    begun, over, in_time = threading.Event(), threading.Event(), list[bool]()

    def end(*_: object) -> None:
        begun.set()
        in_time.append(over.wait(PATIENCE))

    ends(end)
    peer = face.peer()
    connection = face.connect(peer, "jms.closeTimeout=500")
    producer = connection.create_session().create_producer(Q)
    for _ in range(5):
        producer.send_async("x")
    assert begun.wait(PATIENCE)
    connection.close()
    assert in_time == [], "the close waited for the span processor"
    over.set()
    assert [record.getMessage() for record in caplog.records if "5 spans" in record.getMessage()]


def test_spans_of_sends_that_fail_with_the_close_are_ended_and_not_on_the_loop(
    face: Face, ends: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """S74, S123: nothing was left of ``jms.closeTimeout``, and these are the spans that somebody looks for."""
    ended: list[tuple[str, bool]] = []
    ends(lambda error, at: ended.append((threading.current_thread().name, error is not None)))
    peer = face.peer(on_transfer=unanswered)
    connection = face.connect(peer, "jms.closeTimeout=100")
    producer = connection.create_session().create_producer(Q)
    for _ in range(3):
        producer.send_async("x")
    peer.wait_transfers(3)
    connection.close()
    assert ended == [("pyjmsack-tracing", True)] * 3
    assert "spans" not in caplog.text

"""A signal handler may use a connection in the middle of a call of its own thread, and close it."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from peer_faces import SyncFace
from stomp_peer import start

from pyjmsack import AckMode, JMSException, Queue

QUEUE = Queue("q")
WHERE = ("unsettled.py", "_runtime.py")
"""The files that have locks, or hand commands over to the loop."""


class Handler:
    """Closes a connection at one line of the library, as a signal handler would that the system calls there."""

    def __init__(self, line: int, connection: Any) -> None:
        self._left = line
        self._connection = connection
        self.called = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.endswith(WHERE):
            return None
        self._left -= event == "line"
        if self._left <= 0 and not self.called:
            self.called = True
            self._connection.close()
        return self


def work(handler: Handler, session: Any, consumer: Any) -> None:
    """Use a session, and meet the handler on the way."""
    sys.settrace(handler)
    try:
        consumer.receive(timeout=60).acknowledge()
        consumer.receive(timeout=60)
        session.recover()
        consumer.receive(timeout=60)
        session.acknowledge()
    except (JMSException, AttributeError):  # the latter because receive() on a closed connection gives None
        if not handler.called:
            raise
    finally:
        sys.settrace(None)


@pytest.mark.parametrize("first", range(5))
def test_a_handler_that_closes_the_connection_at_any_line_does_not_wait_for_its_own_thread(
    sync: SyncFace, first: int
) -> None:
    """S30, S123: the handler gets the locks that its thread has, and the loop learns of its commands."""
    called, line = True, first
    while called:
        peer = start(sync, messages=["a", "b"])
        connection = sync.connect(peer)
        session = connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)
        handler = Handler(line, connection)
        sync.background(work, handler, session, session.create_consumer(QUEUE)).result(timeout=60)
        called, line = handler.called, line + 5
        connection.close()
        peer.stop()
    assert line > 100, "the handler never came"

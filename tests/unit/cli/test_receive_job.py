"""What a run of `pyjmsack receive` counts as taken, with an output whose reader ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pyjmsack import AckMode
from pyjmsack.cli.receive_job import ReceiveJob
from pyjmsack.cli.stopping import Stop


class Output:
    """Takes three messages, and then its reader ends."""

    batch = 2

    def __init__(self) -> None:
        self.written = 0

    def write(self, message: object) -> None:
        self.written += 1

    def flush(self) -> None:
        if self.written > 3:
            raise BrokenPipeError


@pytest.mark.parametrize(
    ("mode", "transaction", "expected"),
    [
        (AckMode.INDIVIDUAL_ACKNOWLEDGE, None, 2),
        (AckMode.CLIENT_ACKNOWLEDGE, None, 2),
        (AckMode.SESSION_TRANSACTED, 3, 3),
        (AckMode.SESSION_TRANSACTED, 4, 0),
    ],
)
def test_only_messages_that_left_the_queue_are_counted(mode: AckMode, transaction: int | None, expected: int) -> None:
    """`export --take` counted messages that no reader had taken, and that stayed in the queue."""
    done: list[str] = []
    message = SimpleNamespace(acknowledge=lambda: done.append("acknowledge"), properties={})
    session: Any = SimpleNamespace(
        acknowledge_mode=mode, acknowledge=lambda: done.append("all"), commit=lambda: done.append("commit")
    )
    consumer: Any = SimpleNamespace(receive=lambda wait: message, stats=SimpleNamespace(buffered=1))
    stop = Stop()
    job = ReceiveJob(session, Output(), stop, lambda number, text: None, transaction)
    job._warned = True
    job.run(consumer, None, None)
    stop.close()
    assert job.reader_gone
    assert job.acknowledged == expected

"""The sending end of the blocking face."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import islice

from pyjmsack import AckMode, MessageProducer, Session
from pyjmsack.cli.demo.job import LOOK_SECONDS, Job
from pyjmsack.cli.demo.source import Line, line_message

__all__ = ["BATCH", "send_all"]

WINDOW = 1024
BATCH = 200
"""The number of lines of one transaction."""


def send_all(job: Job) -> None:
    """Send every line. In a transacted mode the lines are sent in transactions, of which one is rolled back. In the
    other modes each send follows the last one without a wait for the confirmation.
    """
    transacted = job.mode is AckMode.SESSION_TRANSACTED
    with job.login.factory().create_connection() as connection:
        connection.exception_listener = job.on_exception
        mode = AckMode.SESSION_TRANSACTED if transacted else AckMode.AUTO_ACKNOWLEDGE
        with connection.create_session(mode) as session:
            producer = session.create_producer(session.create_queue(job.queue))
            if transacted:
                _send_transacted(job, session, producer)
            else:
                _send_pipelined(job, producer)


def _send_pipelined(job: Job, producer: MessageProducer) -> None:
    now, later = job.portions
    _send_lines(job, producer, now)
    while job.held():
        time.sleep(LOOK_SECONDS)
    _send_lines(job, producer, later)


def _send_lines(job: Job, producer: MessageProducer, lines: Sequence[Line]) -> None:
    unconfirmed: deque[Future[None]] = deque()
    for line in lines:
        if job.abandoned:
            return
        unconfirmed.append(producer.send_async(line_message(line)))
        job.sent += 1
        if len(unconfirmed) >= WINDOW:
            _confirm(job, unconfirmed)
    while unconfirmed:
        _confirm(job, unconfirmed)


def _confirm(job: Job, unconfirmed: deque[Future[None]]) -> None:
    unconfirmed.popleft().result()
    job.confirmed += 1


def _send_transacted(job: Job, session: Session, producer: MessageProducer) -> None:
    lines = iter(job.source.lines)
    rolled_back = False
    while (batch := list(islice(lines, BATCH))) and not job.abandoned:
        if not rolled_back and batch[-1].sequence >= len(job.source.lines) // 2:
            rolled_back = True
            _send_batch(producer, batch, rolled_back=True)
            session.rollback()
        _send_batch(producer, batch, rolled_back=False)
        job.sent += len(batch)
        session.commit()
        job.confirmed += len(batch)


def _send_batch(producer: MessageProducer, batch: list[Line], *, rolled_back: bool) -> None:
    for line in batch:
        producer.send(line_message(line, rolled_back=rolled_back))

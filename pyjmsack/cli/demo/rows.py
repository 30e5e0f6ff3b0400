"""The rows of the demo, as a table. To add a row, add a line here."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from pyjmsack import AckMode
from pyjmsack.cli.demo.asyncio_end import run_on_asyncio
from pyjmsack.cli.demo.job import Job, Result
from pyjmsack.cli.demo.killing import Kills
from pyjmsack.cli.demo.ledger import Ledger
from pyjmsack.cli.demo.receiving import (
    listen_and_recover,
    listen_and_return,
    listen_individually,
    receive_in_transactions,
)
from pyjmsack.cli.demo.source import Source
from pyjmsack.cli.options import Login

__all__ = ["FAILOVER_ROWS", "ROWS", "Row"]

_LEFT_LIMIT = 1000
_IMPATIENT = "failover.maxReconnectDelay=100&failover.warnAfterReconnectAttempts=0"


@dataclass(frozen=True)
class Row:
    """One run of all lines: an acknowledge mode, and how its two ends work."""

    mode: AckMode
    title: str
    execute: Callable[[Job], None]
    face: str = "blocking"
    kills: int = 0
    """How often the broker is killed during the row. If it is killed, the connections use a failover URL."""

    @property
    def label(self) -> str:
        """The title, followed by the face if the face is asyncio."""
        return self.title if self.face == "blocking" else f"{self.title}, {self.face}"

    def job(self, login: Login, source: Source, patience: float, kills: Kills) -> Job:
        """Return the state that the sending and the receiving end of this row share. The job has a queue of its own."""
        if self.kills:
            login = replace(login, url=f"failover:({login.url})?{_IMPATIENT}")
        queue = f"pyjmsack.demo.{self.mode.value}.{uuid.uuid4()}"
        ledger = Ledger(source, fails_after=self.mode.presettled, broker_dies=self.kills > 0)
        return Job(login, self.mode, queue, source, ledger, patience, kills)

    def run(self, job: Job, protocol: str) -> Result:
        """Send and receive all lines. The result says whether the promises of the mode were kept.

        Raises:
            JMSException: the connection failed, or the broker refused something.
        """
        self.execute(job)
        died = self.kills - job.kills.left
        return Result.of(job, self.label, self.face, protocol, died, _left(job.login, job.queue))


def _left(login: Login, queue: str) -> int:
    """Count the messages that are left in the queue after the row. The count takes the messages off the queue, because
    not every broker has browsers.
    """
    with login.factory().create_connection() as connection, connection.create_session() as session:
        connection.start()
        with session.create_consumer(session.create_queue(queue)) as consumer:
            return sum(1 for _ in islice(iter(consumer.receive_nowait, None), _LEFT_LIMIT))


ROWS: tuple[Row, ...] = (
    Row(AckMode.AUTO_ACKNOWLEDGE, "auto", listen_and_return),
    Row(AckMode.CLIENT_ACKNOWLEDGE, "client, recover()", listen_and_recover),
    Row(AckMode.DUPS_OK_ACKNOWLEDGE, "dups-ok", listen_and_return),
    Row(AckMode.ACTIVEMQ_INDIVIDUAL_ACKNOWLEDGE, "individual (ActiveMQ)", listen_individually),
    Row(AckMode.INDIVIDUAL_ACKNOWLEDGE, "individual", listen_individually),
    Row(AckMode.ARTEMIS_PRE_ACKNOWLEDGE, "no-ack (Artemis)", listen_and_return),
    Row(AckMode.NO_ACKNOWLEDGE, "no-ack", listen_and_return),
    Row(AckMode.SESSION_TRANSACTED, "transacted, rollback()", receive_in_transactions),
    Row(AckMode.AUTO_ACKNOWLEDGE, "auto", run_on_asyncio, face="asyncio"),
)

FAILOVER_ROWS: tuple[Row, ...] = (
    Row(AckMode.INDIVIDUAL_ACKNOWLEDGE, "individual, 2 kills", listen_individually, kills=2),
    Row(AckMode.AUTO_ACKNOWLEDGE, "auto, 2 kills", run_on_asyncio, face="asyncio", kills=2),
)
"""Rows that run only with a broker that the demo started, because they kill it."""

"""One run of ``pyjmsack send``: it counts the sent and the confirmed messages, and keeps the place of an error."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from functools import partial

import click

from pyjmsack import JMSException, MessageProducer, Session
from pyjmsack.cli.errors import Failure, explain
from pyjmsack.cli.send_input import InputError, Item
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.terminal import Counter
from pyjmsack.cli.values import Value

__all__ = ["SendJob"]

WINDOW = 2048
"""The largest number of unconfirmed sends. The number is below the producer's own limit, because a signal does not
interrupt a wait of the producer."""

_FOR_TEXT = "FILE is the name of a file; to send a text, pipe it: echo TEXT | pyjmsack send DESTINATION"


class SendJob:
    """Sends items without waiting for each answer. The answers arrive on the session's completion thread.

    Args:
        patience: the seconds of ``jms.sendTimeout``, after which a wait without any answer fails; ``None`` means no
            limit.
    """

    def __init__(
        self,
        stop: Stop,
        show: Counter,
        properties: Mapping[str, Value],
        transaction: int | None,
        patience: float | None,
    ) -> None:
        self._stop = stop
        self._patience = patience
        self._show = show
        self._properties = properties
        self._transaction = transaction
        self._sent = 0
        self._answered = 0
        self._accepted = 0
        self._committed = 0
        self._limit: int | None = None
        self._error: str | None = None
        self._started = time.monotonic()
        self._seconds = 0.0

    def run(self, session: Session, producer: MessageProducer, items: Iterable[Item]) -> None:
        """Send until the items end, a send fails, or a stop is requested. Then wait for the answers."""
        try:
            for item in items:
                self._await_answers(WINDOW)
                if self._stop.requested:
                    break
                self._send(producer, item)
                if self._transaction and self._sent % self._transaction == 0:
                    self._commit(session)
            if self._transaction:
                self._commit(session)
            self._await_answers(0)
        except InputError as error:
            absent = isinstance(error.__cause__, FileNotFoundError)
            self._fail(f"{error}; {_FOR_TEXT}" if absent else str(error))
        except JMSException as error:
            self._fail(explain(error))
        finally:
            producer.close()  # waits for the answers, also after a stop
            self._seconds = time.monotonic() - self._started

    def _send(self, producer: MessageProducer, item: Item) -> None:
        try:
            item.message.properties.update(self._properties)
            future = producer.send_async(item.message, **item.options)
        except JMSException as error:
            raise InputError(f"{item.place}: {explain(error)}") from error
        self._sent += 1
        future.add_done_callback(partial(self._on_answer, item.place))
        self._show(self._sent, f"{self._confirmed:,} confirmed")

    def _commit(self, session: Session) -> None:
        """Commit, unless a send failed. The answers come first, because a commit knows of a failed send before the
        callback that knows its place."""
        self._await_answers(0)
        if self._error is None:
            session.commit()
            self._committed = self._sent

    @property
    def _confirmed(self) -> int:
        return self._committed if self._transaction else self._accepted

    def _await_answers(self, limit: int) -> None:
        """Wait until at most ``limit`` sends are unanswered, or for a stop, or until no answer came in time (S66)."""
        # This method sets the limit before it reads the counts. The callback changes a count before it reads the limit.
        # So this method sees the new count, or the callback sees the limit and wakes this method.
        self._limit = limit
        answered, since = self._answered, time.monotonic()
        while self._sent - self._answered > limit and not self._stop.requested:
            self._stop.wait(self._patience)
            if answered != self._answered:
                answered, since = self._answered, time.monotonic()
            elif self._patience is not None and time.monotonic() - since >= self._patience:
                self._fail(
                    f"the broker answered no send within jms.sendTimeout ({self._patience:g} s);"
                    f" {self._sent - answered} messages were not confirmed, and may or may not be stored"
                )
        self._limit = None

    def _on_answer(self, place: str, future: Future[None]) -> None:
        error = future.exception()
        if error is None:
            self._accepted += 1
        else:
            self._fail(f"{place}: {explain(error)}")
        self._answered += 1
        limit = self._limit
        if limit is not None and self._sent - self._answered <= limit:
            self._stop.wake()

    def on_connection_error(self, error: JMSException) -> None:
        """Remember that the connection is lost, because a wait for input would hide the loss."""
        self._fail(explain(error))

    def _fail(self, text: str) -> None:
        """Keep the text of the first failure, and stop the command."""
        if self._error is None:
            self._error = text
        self._stop.request()

    def report(self, as_json: bool) -> None:
        """Print how many messages were sent and confirmed.

        Raises:
            Failure: a message was not confirmed.
        """
        if self._error is None and self._confirmed < self._sent:
            self._error = f"{self._sent - self._confirmed} messages were not confirmed; they may or may not be stored"
        if as_json:
            click.echo(json.dumps({"sent": self._sent, "confirmed": self._confirmed, "error": self._error}))
        else:
            rate = self._confirmed / self._seconds if self._seconds else 0
            click.echo(f"Sent {self._sent:,}, confirmed {self._confirmed:,} ({rate:,.0f} messages/s).", err=True)
        if self._error is not None:
            raise Failure(self._error)

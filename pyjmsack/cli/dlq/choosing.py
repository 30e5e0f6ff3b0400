"""The options that choose dead letters, and the chosen dead letters on an open connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import click

from pyjmsack import Connection, Message, Queue
from pyjmsack.cli.dlq.letters import Choice, choice_of, dead_letter_queue
from pyjmsack.cli.existing import Checked, OutOfSight, check_queue
from pyjmsack.cli.managing import duration, jolokia_option, remark
from pyjmsack.cli.options import Command, Login, condition
from pyjmsack.cli.whole import Whole
from pyjmsack.management import UnknownQueueError

__all__ = ["AHEAD", "Letters", "Wanted", "choosing", "opened_letters"]

AHEAD = 400
"""The limit for dead letters whose time stamp is in the future: one run takes at most this number of them, because a
browser of ActiveMQ Classic shows no more messages."""


@dataclass(frozen=True)
class Wanted:
    """The values of the options that choose dead letters."""

    queue: str | None
    origin: str | None
    selector: str | None
    cause: str | None
    older_than: float | None
    jolokia: str | None


def choosing(command: Command) -> Command:
    """Add the options that choose dead letters. The command gets them as a :class:`Wanted` with the name ``wanted``."""

    def chosen(
        *arguments: object,
        queue: str | None,
        origin: str | None,
        selector: str | None,
        cause: str | None,
        older_than: float | None,
        jolokia: str | None,
        **options: object,
    ) -> object:
        return command(*arguments, wanted=Wanted(queue, origin, selector, cause, older_than, jolokia), **options)

    chosen.__doc__, chosen.__name__ = command.__doc__, command.__name__
    chosen.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined] # click reads it
    made: Command = chosen
    for option in (
        click.option(
            "--queue", metavar="NAME", help="The dead-letter queue; by default DLQ, or ActiveMQ.DLQ on Classic."
        ),
        click.option("--origin", type=condition, metavar="QUEUE", help="Only dead letters that came from QUEUE."),
        click.option(
            "--selector", type=condition, metavar="TEXT", help="Only dead letters that fulfil this condition."
        ),
        click.option(
            "--cause",
            type=condition,
            metavar="TEXT",
            help="Only dead letters with this cause. Artemis: expired or failed. Classic: a part of the cause's text.",
        ),
        click.option("--older-than", type=duration, metavar="TIME", help="Only letters sent longer ago, such as 2h."),
    ):
        made = option(made)
    return jolokia_option(made)


@dataclass
class Letters:
    """An open connection and the choice of dead letters on it."""

    connection: Connection
    queue: str
    choice: Choice
    absent: bool = False
    """Whether the dead-letter queue does not exist yet, because the broker had no dead letter."""
    checked: Checked | None = None
    """The result of the check of the queue. ``None`` if there is no such queue."""
    named: bool = False
    """Whether the user gave the name of the queue."""
    unreadable: int = 0
    """How many messages the last browser could not show, because nobody can decode them."""
    _shown: int = 0
    """How many messages the last browser has shown, including the messages that were not chosen."""

    def browse(self, limit: int | None = None) -> Iterator[Message]:
        """Yield the chosen dead letters without taking them.

        Raises:
            Failure: ActiveMQ Classic may not have shown all messages of the queue.
        """
        if self.absent:
            return
        seen = 0
        selected = self.choice.selector is not None
        messages = None if self.checked is None else self.checked.messages
        whole = Whole(self.connection, self.queue, selected=selected, messages=messages)
        for seen, message in enumerate(self.first(limit), 1):  # noqa: B007 - the last number is used below
            yield message
        if seen != limit:
            whole.check(self._shown + self.unreadable)

    def first(self, limit: int | None) -> Iterator[Message]:
        """Yield the chosen dead letters that a browser shows, at most ``limit``. ActiveMQ Classic may not show all."""
        if self.absent:
            return
        seen = self._shown = 0
        with (
            self.connection.create_session() as session,
            session.create_browser(Queue(self.queue), self.choice.selector) as browser,
        ):
            fitting = (each for each in map(self._counted, browser) if self.choice.fits(each, self.queue))
            for seen, message in enumerate(islice(fitting, limit), 1):  # noqa: B007 - the last number is used below
                yield message
            self.unreadable = browser.unreadable
        if self.checked is not None and self.named:
            self.checked.warn_if_empty(seen)

    @property
    def chosen(self) -> bool:
        """Whether only some letters were chosen."""
        return self.choice.selector is not None or self.choice.choosy

    def missed(self, *, earlier: bool = True) -> OutOfSight | None:
        """Return the messages of the queue that are out of sight, so that the command fails; see
        :meth:`Checked.out_of_sight`.

        If the user chose some of the letters, print a remark and return ``None``, because nobody can tell whether the
        choice fits the messages. A dead-letter queue has the letters of many queues, and each of these queues may have
        a program that reads its letters.
        """
        if not self.chosen:
            return self._out_of_sight(earlier)
        self.warn_of_missed(earlier=earlier)
        return None

    def warn_of_missed(self, *, earlier: bool = True) -> None:
        """Print how many messages of the queue are out of sight, if there are any."""
        found = self._out_of_sight(earlier)
        if found is not None:
            remark(f"{found.why}.")

    def _out_of_sight(self, earlier: bool) -> OutOfSight | None:
        return None if self.checked is None else self.checked.out_of_sight(earlier=earlier)

    def _counted(self, message: Message) -> Message:
        self._shown += 1
        return message

    def shown(self, limit: int | None, fits: Callable[[Message], bool]) -> int:
        """Return how many of the chosen dead letters a browser shows, at most ``limit``. On Artemis return 0.

        A command calls this method before it moves letters. If it then moves fewer letters than this number, another
        consumer held some of them. This consumer may be a second command, because on ActiveMQ Classic a command also
        holds letters that it did not choose. On Artemis a command receives only the letters that it chose, so nobody
        needs the number.
        """
        if self.artemis:
            return 0
        most = AHEAD - 1 if limit is None else min(limit, AHEAD - 1)  # a browser shows no more than AHEAD letters
        return sum(map(fits, self.first(most)))

    @property
    def artemis(self) -> bool:
        """Whether the broker is Artemis."""
        return not self.connection.metadata.broker.startswith("classic")


@contextmanager
def opened_letters(login: Login, wanted: Wanted) -> Iterator[Letters]:
    with login.factory(jms__receiveLocalOnly=True).create_connection() as connection:
        # this listener ignores the error of the connection, because the call under way raises it
        connection.exception_listener = lambda error: None
        connection.start()
        letters = Letters(connection, dead_letter_queue(connection, wanted.queue), Choice())
        try:
            letters.checked = check_queue(connection, login, wanted.jolokia, letters.queue)
            letters.named = wanted.queue is not None
        except UnknownQueueError:
            if wanted.queue is not None:
                raise
            letters.absent = True
        letters.choice = choice_of(letters.artemis, wanted.selector, wanted.origin, wanted.cause, wanted.older_than)
        yield letters

"""Asks a broker which messages its queues still have, so that the audit can tell lost messages from waiting ones."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timezone

from pyjmsack import Connection, ConnectionFactory, Queue, UnsupportedFeatureException
from pyjmsack.ledger import read_ledgers
from pyjmsack.management import ManagementDeniedError, Manager, UnknownQueueError

__all__ = ["Look", "look_into", "queues_of"]

MOST_IDS = 1_000_000
"""The largest number of message ids that one look keeps, because the ids of a huge queue would fill the memory."""
_MOST_QUEUES = 1000
_QUEUE = "queue://"
_GRAVES = {"artemis": ("DLQ", "ExpiryQueue"), "classic": ("ActiveMQ.DLQ",)}
"""For each kind of broker, the default queues of dead letters and expired messages."""


@dataclass
class Look:
    """The content of the broker's queues when the audit looked into them."""

    protocol: str
    """The protocol over which the broker was asked: ``AMQP`` or ``STOMP``."""
    begun: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    """The time at which the look began. The look may have missed a message that was confirmed after this time."""
    ids: list[str] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    """The number of messages that were seen in each queue."""
    absent: list[str] = field(default_factory=list)
    """Queues that the broker does not have."""
    hidden: int | None = 0
    """The number of messages in the queues that no browser shows, because consumers hold the messages, the messages are
    scheduled, or a limit was reached. ``None`` means that the messages could not be counted.
    """
    reason: str = ""
    """The reason why the hidden messages could not be counted."""


def queues_of(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the queues that messages of these ledgers were sent to.

    Args:
        paths: the ledgers.

    Raises:
        LedgerError: a path is not a ledger, or a ledger is damaged.
    """
    from pyarrow import parquet

    files = read_ledgers(paths)
    found = {*files.raw["sends"]["destination"].unique().to_pylist()}
    for path in files.parquet["sends"]:
        found |= {*parquet.read_table(path, columns=["destination"])["destination"].unique().to_pylist()}
    return sorted(name.removeprefix(_QUEUE) for name in found if name is not None and name.startswith(_QUEUE))


def look_into(factory: ConnectionFactory, queues: Iterable[str], *, jolokia: str | None = None) -> Look:
    """Browse queues and their dead letters.

    Args:
        factory: makes the connection.
        queues: the names. The default queues of dead letters are added.
        jolokia: URL of Jolokia, which counts the messages of ActiveMQ Classic.

    Raises:
        UnsupportedFeatureException: this broker has no browser over this protocol.
        ValueError: there are too many queues.
        JMSException: the broker cannot be reached, or refuses the browsers.
    """
    with factory.create_connection() as connection:
        # this listener ignores the error of the connection, because the browser raises the same error
        connection.exception_listener = lambda error: None
        connection.start()
        broker = connection.metadata.broker.partition("-")[0]
        look = Look(connection.metadata.protocol.partition(" ")[0].upper())
        names = [*dict.fromkeys([*queues, *_GRAVES.get(broker, ())])]
        if len(names) > _MOST_QUEUES:
            raise ValueError(f"{len(names):,} queues are too many to look into; the limit is {_MOST_QUEUES:,}")
        manager = _manager(factory, jolokia, look)
        with nullcontext() if manager is None else manager:
            for name in names:
                _look(connection, manager, name, look)
    return look


def _manager(factory: ConnectionFactory, jolokia: str | None, look: Look) -> Manager | None:
    """Return a connected manager. If the user may not manage the broker, note the reason in the look and return
    ``None``.
    """
    try:
        manager = Manager(factory, jolokia=jolokia)
    except (ManagementDeniedError, UnsupportedFeatureException) as error:
        look.hidden, look.reason = None, str(error)
        return None
    try:
        manager.broker()
    except ManagementDeniedError as error:
        manager.close()
        look.hidden, look.reason = None, str(error)
        return None
    except BaseException:
        manager.close()
        raise
    return manager


def _look(connection: Connection, manager: Manager | None, name: str, look: Look) -> None:
    own = Queue(name).name.rpartition("::")[2]
    if manager is None:
        if name in {grave for some in _GRAVES.values() for grave in some}:
            return  # without a manager nobody knows whether the queue exists, and a browser might create the queue
        _browse(connection, name, look)
        return
    try:
        manager.queue(own)
        _browse(connection, name, look)
        there = manager.queue(own).messages
    except UnknownQueueError:
        look.absent.append(name)
        return
    if look.hidden is not None:
        look.hidden += max(0, there - look.seen[name])


def _browse(connection: Connection, name: str, look: Look) -> None:
    seen = 0
    with connection.create_session() as session, session.create_browser(Queue(name)) as browser:
        for message in browser:
            if len(look.ids) >= MOST_IDS:  # messages beyond the limit count as hidden
                break
            if message.message_id is not None:
                look.ids.append(message.message_id)
                seen += 1
    look.seen[name] = seen

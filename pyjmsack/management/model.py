"""The state of a broker: values without behaviour, the same for both kinds of broker."""

from __future__ import annotations

import difflib
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from itertools import takewhile
from typing import Any, TypeVar

from pyjmsack import InvalidDestinationException, JMSSecurityException

__all__ = [
    "BrokerStatus",
    "ConnectionStatus",
    "ConsumerStatus",
    "ManagementDeniedError",
    "QueueStatus",
    "Request",
    "Steps",
    "UnknownQueueError",
    "shown",
    "unknown_queue",
]

_NEAREST = 3
_COMPARED = 500
"""The largest number of names that are compared with a misspelt name, because a broker may have a hundred thousand
queues."""
_LONGEST = 256
"""The largest number of characters of a proposed name, because nobody types longer names."""
_SHOWN = 500
"""The largest number of characters of a broker's reason that an error shows."""


def shown(reason: object) -> str:
    """Return a broker's reason as an error shows it: a long text is cut."""
    text = str(reason)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@dataclass(frozen=True)
class BrokerStatus:
    """Name, kind and version of the broker."""

    product: str
    """``artemis`` or ``classic``."""
    name: str
    version: str


@dataclass(frozen=True)
class QueueStatus:
    """The state of a queue at one moment.

    ``added``, ``acknowledged``, ``expired`` and ``killed`` count from the start of the broker. ``None`` means that the
    broker does not say the number.
    """

    name: str
    messages: int
    """The number of messages in the queue now, including the messages that consumers hold. If ``delivering`` is
    ``None``, messages that consumers hold may be missing from this number."""
    delivering: int | None
    """The number of messages that were sent to consumers and are not acknowledged yet. ``None`` if the broker's count
    is wrong: on Artemis it falls below zero when the broker cannot convert messages for a consumer."""
    consumers: int
    added: int
    acknowledged: int
    expired: int
    killed: int | None = None
    """The number of messages that the broker gave up after too many deliveries."""
    scheduled: int | None = None
    """The number of delayed messages that are not due yet."""
    paused: bool | None = None
    address: str = ""
    """On Artemis, the address (the name that senders use) from which the queue gets its messages. On Classic, the name
    of the queue."""
    durable: bool | None = None
    temporary: bool = False
    multicast: bool = False
    """Whether this is the queue of one subscription of a topic, on Artemis."""


@dataclass(frozen=True)
class ConsumerStatus:
    """A consumer of a queue."""

    queue: str
    connection: str
    """The id of the consumer's connection, as in ``ConnectionStatus.id``, if the broker gives the id."""
    client_id: str
    selector: str
    address: str
    """The address of the client, such as ``10.0.0.7:41234``; empty if the broker does not say."""
    delivering: int | None
    """The number of messages that were sent to this consumer and are not acknowledged yet. ``None`` if the broker's
    count is wrong; see ``QueueStatus.delivering``."""
    acknowledged: int | None
    prefetch: int | None = None


@dataclass(frozen=True)
class ConnectionStatus:
    """A connection of a client."""

    id: str
    client_id: str
    address: str
    user: str
    protocol: str
    sessions: int | None = None


class ManagementDeniedError(JMSSecurityException):
    """The broker let the user log in, but the user may not manage the broker. The user may still do other work, such as
    sending and receiving.
    """


class UnknownQueueError(InvalidDestinationException):
    """The broker has no such queue.

    Args:
        text: the text of the error.
        nearest: at most three names of queues that look like the wanted name, the most similar name first.

    Attributes:
        nearest: the names from the argument ``nearest``.
    """

    def __init__(self, text: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.nearest = nearest


def unknown_queue(name: str, known: Iterable[str]) -> UnknownQueueError:
    """Return the error for a queue that does not exist, with the names that look most like it."""
    wanted = name.lower()[:_LONGEST]
    folded = {each.lower(): each for each in known if len(each) <= _LONGEST}
    likely = nlargest(_COMPARED, folded, key=lambda each: _same_at_the_ends(each, wanted))
    alike = [folded[each] for each in difflib.get_close_matches(wanted, likely, _NEAREST, 0.6)]
    within = (proper for each, proper in folded.items() if wanted in each and proper not in alike)
    nearest = tuple([*alike, *nsmallest(_NEAREST, within)][:_NEAREST])
    hint = f"; the nearest names are {', '.join(map(repr, nearest))}" if nearest else ""
    return UnknownQueueError(f"the broker has no queue {name!r}{hint}", nearest)


def _same_at_the_ends(one: str, other: str) -> int:
    """Return how many letters two names share at both ends. After a typing error most letters are the same."""
    return _same_at_the_start(one, other) + _same_at_the_start(reversed(one), reversed(other))


def _same_at_the_start(one: Iterable[str], other: Iterable[str]) -> int:
    return sum(1 for _ in takewhile(lambda letters: letters[0] == letters[1], zip(one, other, strict=False)))


@dataclass(frozen=True)
class Request:
    """One request to the broker: to call an operation with arguments, or to tell the values of attributes."""

    resource: str
    """On Artemis, ``broker`` or ``queue.NAME``. On Classic, the name of a bean, or a pattern of such names."""
    operation: str | None = None
    arguments: tuple[Any, ...] = ()
    attributes: tuple[str, ...] = ()
    lists: bool = False
    """Whether Artemis answers with a text that is JSON itself, which may be large."""


T = TypeVar("T")
Steps = Generator[Request, Any, T]
"""A generator that both faces run. The generator yields a request to the broker. The face then sends the answer into
the generator, or throws the error."""

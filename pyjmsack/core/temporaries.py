"""The temporary destinations of a connection (S130-S132)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyjmsack.core.steps import Steps
from pyjmsack.destination import Destination, TemporaryQueue, TemporaryTopic
from pyjmsack.errors import IllegalStateException, InvalidDestinationException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import TemporaryInfo

if TYPE_CHECKING:
    from pyjmsack.core.connection import Connection

__all__ = ["Temporaries"]

Temporary = TemporaryQueue | TemporaryTopic
T = TypeVar("T", TemporaryQueue, TemporaryTopic)


class Temporaries:
    """What the connection made and did not delete."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.live: dict[int, Temporary] = {}

    def create(self, kind: type[T], run: Callable[[Steps[None]], Any]) -> Steps[T]:
        """Create one; ``run`` is how its ``delete()`` waits in this face.

        Raises:
            UnsupportedFeatureException: this broker and protocol have none.
        """
        connection, provider = self._connection, self._connection.provider
        connection.require("temporary-destination")
        info = TemporaryInfo(connection.next_id(), kind)
        named: Completion[str] = Completion()
        connection.submit(provider.create_temporary, info, named)
        what = f"creating a temporary {'topic' if kind.is_topic else 'queue'}"
        name = yield from connection.request(named, what, provider.delete_temporary, info.id)
        destination: T = kind._literal(name)
        destination._delete = lambda: run(self.delete(destination))
        self.live[info.id] = destination
        return destination

    def delete(self, destination: Temporary) -> Steps[None]:
        """Delete it at the broker. Idempotent.

        Raises:
            IllegalStateException: a consumer of this connection uses it (S131).
        """
        if destination.deleted:
            return
        connection = self._connection
        connection.check_open()
        number = next(key for key, live in self.live.items() if live is destination)
        if self._in_use(destination):
            raise IllegalStateException(f"{destination.name} still has a consumer; close that first (S131)")
        destination.deleted = True  # first: a send that follows would make the name anew at some brokers (S68)
        done: Completion[None] = Completion()
        connection.submit(connection.provider.delete_temporary, number, done)
        done.add_callback(partial(self._deleted, number, destination))
        yield from connection.await_answer(done, f"deleting {destination.name}")

    def _deleted(self, number: int, destination: Temporary, answered: Completion[None]) -> None:
        """The broker answered, whether somebody still waits for that or not."""
        if answered.error is None:
            self.live.pop(number, None)
        else:
            destination.deleted = not self._connection.usable

    def _in_use(self, destination: Temporary) -> bool:
        sessions = [*self._connection.sessions.values()]
        consumers = (consumer for session in sessions for consumer in [*session.consumers.values()])
        return any(not consumer.closed and consumer.info.destination == destination for consumer in consumers)

    def check_consumable(self, destination: Destination) -> None:
        """Raise for a temporary destination of another connection (S130).

        Raises:
            InvalidDestinationException: this connection did not make it.
        """
        if destination.is_temporary and destination not in [*self.live.values()]:
            raise InvalidDestinationException(
                f"temporary destination {destination.name} belongs to another connection, "
                "and only that one can consume from it (S130)"
            )

    def renamed(self, number: int, name: str) -> None:
        """The next broker gave it another name; the object is the same (S133)."""
        if number in self.live:
            self.live[number].name = name

    def end(self) -> None:
        """The connection is over, and they with it."""
        for destination in [*self.live.values()]:
            destination.deleted = True

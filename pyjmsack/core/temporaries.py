"""The temporary destinations of a connection (S130-S132)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from pyjmsack.core.channel import Channel
from pyjmsack.core.steps import Steps, answered
from pyjmsack.destination import Destination, TemporaryQueue, TemporaryTopic
from pyjmsack.errors import IllegalStateException, InvalidDestinationException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import TemporaryInfo

__all__ = ["Temporaries"]

Temporary = TemporaryQueue | TemporaryTopic
T = TypeVar("T", TemporaryQueue, TemporaryTopic)


class Temporaries:
    """The temporary destinations that the connection made and did not delete.

    Args:
        channel: the connection.
        in_use: whether an open consumer of the connection has this destination.
    """

    def __init__(self, channel: Channel, in_use: Callable[[Destination], bool]) -> None:
        self._channel = channel
        self._in_use = in_use
        self.live: dict[int, Temporary] = {}

    def create(self, kind: type[T], run: Callable[[Steps[None]], Any]) -> Steps[T]:
        """Create a temporary destination. Its ``delete()`` calls ``run``, which carries out the steps of a delete and
        waits for them in the way of this face.

        Raises:
            UnsupportedFeatureException: this protocol or this broker has no temporary destinations.
        """
        channel, provider = self._channel, self._channel.provider
        channel.require("temporary-destination")
        info = TemporaryInfo(channel.next_id(), kind)
        named: Completion[str] = Completion()
        what = f"creating a temporary {'topic' if kind.is_topic else 'queue'}"
        try:  # before the request leaves, because Ctrl-C may come at any step
            channel.submit(provider.create_temporary, info, named)
            name = yield from answered(named, channel.deadline(), what)
            destination: T = kind._literal(name)
            destination._delete = lambda: run(self.delete(destination))
            self.live[info.id] = destination
            return destination
        except BaseException:
            if named.error is None:
                self.live.pop(info.id, None)
                channel.submit(provider.delete_temporary, info.id, Completion())
            raise

    def delete(self, destination: Temporary) -> Steps[None]:
        """Delete a temporary destination at the broker. A second call does nothing.

        Raises:
            IllegalStateException: a consumer of this connection uses it (S131).
        """
        if destination.deleted:
            return
        channel = self._channel
        channel.check_open()
        number = next(key for key, live in self.live.items() if live is destination)
        if self._in_use(destination):
            raise IllegalStateException(f"{destination.name} still has a consumer; close the consumer first (S131)")
        # before the request, because at some brokers a send that follows would create the destination again (S68)
        destination.deleted = True
        done: Completion[None] = Completion()
        channel.submit(channel.provider.delete_temporary, number, done)
        done.add_callback(partial(self._deleted, number, destination))
        yield from answered(done, channel.deadline(), f"deleting {destination.name}")

    def _deleted(self, number: int, destination: Temporary, answered: Completion[None]) -> None:
        """Remember the broker's answer to a delete, even if the caller gave up."""
        if answered.error is None:
            self.live.pop(number, None)
        else:
            destination.deleted = not self._channel.usable

    def check_consumable(self, destination: Destination) -> None:
        """Raise for a temporary destination of another connection (S130).

        Raises:
            InvalidDestinationException: this connection did not make the destination.
        """
        if destination.is_temporary and destination not in [*self.live.values()]:
            raise InvalidDestinationException(
                f"temporary destination {destination.name} belongs to another connection, "
                "and only that connection can consume from it (S130)"
            )

    def renamed(self, number: int, name: str) -> None:
        """Change the name of a temporary destination, because the next broker chose another name. The object stays the
        same (S133).
        """
        if number in self.live:
            self.live[number].name = name

    def end(self) -> None:
        """Mark all temporary destinations as deleted, because the connection is over."""
        for destination in [*self.live.values()]:
            destination.deleted = True

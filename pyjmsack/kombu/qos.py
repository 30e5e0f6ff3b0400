"""The messages that a channel of kombu has not acknowledged, and its prefetch count."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

from pyjmsack.kombu.connection import Connection
from pyjmsack.kombu.receiving import Delivery
from pyjmsack.kombu.window import Window
from pyjmsack.loggers import get_logger

__all__ = ["Checked", "QoS"]

log = get_logger("pyjmsack.kombu")


class Checked(Protocol):
    """A channel of kombu, with the only method that :class:`QoS` calls."""

    def checked(self) -> Connection:
        """Return the connection, after a check that the channel and the connection are open.

        Raises:
            ConnectionLostException: the connection or the channel is closed.
        """
        ...


class QoS:
    """The messages that kombu has not acknowledged, by delivery tag, and the prefetch count.

    Acknowledgements may come from any thread. When the channel closes, unacknowledged messages go back to the broker,
    which delivers them again. The client never sends them a second time.

    Args:
        channel: the channel that got the messages.
    """

    def __init__(self, channel: Checked) -> None:
        self.channel = channel
        self.window = Window()
        self._delivered: dict[str, tuple[Any, Delivery]] = {}

    @property
    def prefetch_count(self) -> int:
        """The largest number of messages that may be unacknowledged. 0 means no limit."""
        return self.window.limit

    @prefetch_count.setter
    def prefetch_count(self, value: int) -> None:
        self.channel.checked().post(self.window.change, value or 0)

    def can_consume(self) -> bool:
        """Return whether the prefetch count allows one more message."""
        return not self.window.limit or self.window.held < self.window.limit

    def can_consume_max_estimate(self) -> int | None:
        """Return how many more messages the prefetch count allows. ``None`` means any number."""
        return max(self.window.limit - self.window.held, 0) if self.window.limit else None

    def append(self, message: Any, delivery_tag: str, delivery: Delivery | None = None) -> None:
        """Remember a message that kombu gets, until the message is acknowledged.

        Args:
            message: the message of kombu.
            delivery_tag: the tag of the message.
            delivery: the delivery that needs an outcome. With ``None`` the message is not remembered.
        """
        if delivery is not None:
            delivery.forget()  # the tag of an earlier try, which a signal handler cut
            delivery.forget = partial(self._delivered.pop, delivery_tag, None)
            self._delivered[delivery_tag] = message, delivery

    def get(self, delivery_tag: str) -> Any:
        """Return a message that is not acknowledged.

        Args:
            delivery_tag: the tag of the message.

        Raises:
            KeyError: no unacknowledged message has this tag.
        """
        return self._delivered[delivery_tag][0]

    def ack(self, delivery_tag: str) -> None:
        """Tell the broker that a message was processed. An unknown tag is ignored.

        Args:
            delivery_tag: the tag of the message.

        Raises:
            ConnectionLostException: the channel or the connection is closed. The broker delivers the message again.
        """
        self._settle(delivery_tag, "accept")

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Give a message back to its queue, or make it a dead letter. An unknown tag is ignored.

        Args:
            delivery_tag: the tag of the message.
            requeue: whether the message goes back to its queue. Otherwise it becomes a dead letter.

        Raises:
            ConnectionLostException: the channel or the connection is closed. The broker delivers the message again.
        """
        self._settle(delivery_tag, "release" if requeue else "reject")

    def _settle(self, delivery_tag: str, outcome: str) -> None:
        connection = self.channel.checked()
        found = self._delivered.get(delivery_tag)  # its end removes it, so that a call that is cut can be repeated
        if found is None:
            log.debug("%s: no unacknowledged message has the tag %s", outcome, delivery_tag)
            return
        if outcome == "release":
            connection.requeue(found[1])
        else:
            connection.settle(found[1], outcome)

    def up_to(self, delivery_tag: str) -> Iterator[str]:
        """Yield tags of unacknowledged messages in the order of their delivery, up to and including one tag.

        Args:
            delivery_tag: the last tag. If no unacknowledged message has this tag, no tag is yielded, because nobody can
                tell which messages came before.
        """
        delivered = [*self._delivered]
        if delivery_tag not in delivered:
            log.debug("up to: no unacknowledged message has the tag %s", delivery_tag)
            return
        for tag in delivered:
            yield tag
            if tag == delivery_tag:
                return

    def release_all(self) -> None:
        """Give all unacknowledged messages back to their queues."""
        for tag in [*self._delivered]:
            self._settle(tag, "release")

    restore_unacked = release_all

    def restore_unacked_once(self, stderr: Any = None) -> None:
        """Do nothing. kombu would put unacknowledged messages back into their queues here, but the broker does so.

        Args:
            stderr: ignored.
        """

    def restore_visible(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing. kombu would put messages back that were not acknowledged in time, but the broker keeps them.

        Args:
            args, kwargs: ignored.
        """

"""The answer of a listener with its own properties, destination or times; and the arguments of a send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyjmsack.destination import Destination

__all__ = ["Answer", "how_to_send"]


@dataclass(frozen=True)
class Answer:
    """A listener returns an ``Answer`` instead of a body, to set the properties, the destination or the times of the
    answer.

    Args:
        body: the body of the answer, or a message.
        to: the destination of the answer: the name of a queue, or a destination object. With ``None`` the answer goes
            to the ``reply_to`` of the message, or to the ``reply_to`` of the listener if the message has none.
        properties: properties to set in the answer. ``None`` = none.
        delivery_mode, priority, time_to_live, delivery_delay: as for :meth:`pyjmsack.MessageProducer.send`.
    """

    body: Any
    to: str | Destination | None = None
    properties: Mapping[str, Any] | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    time_to_live: float | timedelta | None = None
    delivery_delay: float | timedelta | None = None

    def how(self) -> dict[str, Any]:
        """Return the arguments for the send of the answer. An argument that the listener did not give is left out."""
        return how_to_send(self.delivery_mode, self.priority, self.time_to_live, self.delivery_delay)


def how_to_send(
    delivery_mode: int | None,
    priority: int | None,
    time_to_live: float | timedelta | None,
    delivery_delay: float | timedelta | None,
) -> dict[str, Any]:
    """Return the arguments for a send. An argument that is ``None`` is left out.

    Args:
        delivery_mode, priority, time_to_live, delivery_delay: as for :meth:`pyjmsack.MessageProducer.send`.
    """
    how = {
        "delivery_mode": delivery_mode,
        "priority": priority,
        "time_to_live": time_to_live,
        "delivery_delay": delivery_delay,
    }
    return {name: value for name, value in how.items() if value is not None}

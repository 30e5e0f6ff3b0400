"""Decides when a consumer gets one message at a time, because its connections were lost again and again.

Artemis counts a delivery for each message that it sent ahead on a lost connection over STOMP, whether the message was
handed out or not. After ten deliveries it makes a dead letter of the message. Over STOMP one cause can end connection
after connection. Examples are a message that Artemis cannot convert, a send of another producer to a full address, and
an administrator who closes connections. The other messages that Artemis had sent ahead would become dead letters too,
although they are harmless.

So from the third loss on, a consumer of Artemis subscribes for one message at a time. From then on, Artemis counts a
delivery for only one message of the queue at each further loss. At each loss, some bytes wait for an acknowledgement,
and this module remembers the largest number of these bytes. If a message of the queue causes the losses, it comes
directly after these bytes. So the consumer gets its whole window again only when it has acknowledged twice as many
bytes, and has therefore passed this message.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Caution"]

_LOSSES = 3
"""The number of losses after which a consumer gets one message at a time."""
_MOST_QUEUES = 1000
"""The largest number of queues for which losses are remembered. If there are more queues, the oldest one is forgotten.
"""
_FACTOR = 2
"""The bytes to acknowledge, as a multiple of the bytes that waited at the largest loss. With the factor 1, the consumer
would get its whole window again just before the message that is to blame.
"""


@dataclass(slots=True)
class _Losses:
    count: int = 0
    generation: int = 0
    """The number of the connection whose loss was counted last. If several consumers of one connection lose messages,
    the loss counts once.
    """
    left: int = 0
    """The number of bytes that must be acknowledged before the losses are forgotten."""


_losses: dict[tuple[str, str], _Losses] = {}
"""The losses by broker and name of the queue.

All connections of the process share this dictionary, because a program may open its consumers again itself, and
failover makes a new receiver for each connection. Loops on several threads use the dictionary without a lock. At worst,
a count is wrong by one.
"""


class Caution:
    """The memory of the losses of one queue.

    Args:
        place: the address of the broker.
        name: the name of the queue.
    """

    losses = _losses
    """The losses of all queues. The caller of :meth:`acknowledged` first checks whether this dictionary is empty,
    because the check is quick."""

    def __init__(self, place: str, name: str) -> None:
        self._key = place, name

    @property
    def single(self) -> bool:
        """True if a consumer of the queue must get one message at a time."""
        losses = _losses.get(self._key)
        return losses is not None and losses.count >= _LOSSES

    def lost(self, generation: int, waiting: int) -> None:
        """Remember that a connection was lost while messages of the queue were not acknowledged.

        Args:
            generation: the number of the connection.
            waiting: the number of bytes of these messages.
        """
        losses = _losses.pop(self._key, None) or _Losses()
        _losses[self._key] = losses  # moved to the end, as the newest
        losses.count += losses.generation != generation
        losses.generation = generation
        losses.left = max(losses.left, _FACTOR * waiting)
        for oldest in list(_losses)[:-_MOST_QUEUES]:
            _losses.pop(oldest, None)

    def acknowledged(self, size: int) -> None:
        """Remember that a message of ``size`` bytes was acknowledged. When enough bytes were acknowledged, forget the
        losses.
        """
        losses = _losses.get(self._key)
        if losses is not None:
            losses.left -= size
            if losses.left <= 0:
                _losses.pop(self._key, None)

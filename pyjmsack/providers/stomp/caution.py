"""Decides when a consumer gets one message at a time, because its connections were lost again and again.

Artemis counts a delivery for each message that it sent ahead on a lost connection over STOMP, whether the message was
handed out or not. After ten deliveries it makes a dead letter of the message. Over STOMP one cause can end connection
after connection: a message that Artemis cannot convert, a full address that another producer of the connection sends
to, an administrator. The messages that only waited behind or before the cause would become dead letters with it.

So from the third loss on, a consumer of Artemis subscribes for one message at a time. Then each further loss counts one
message of the queue. The consumer gets its whole window again when it has acknowledged twice as many bytes as waited
at the largest of these losses, because the cause was right behind them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Caution"]

_LOSSES = 3
"""The number of losses after which a consumer gets one message at a time."""
_MOST_QUEUES = 1000
"""The largest number of queues for which losses are remembered. If there are more, the oldest is forgotten."""
_FACTOR = 2
"""The bytes to acknowledge, as a multiple of the bytes that waited at the largest loss. With 1 the whole window would
come back just before the message that is to blame."""


@dataclass(slots=True)
class _Losses:
    count: int = 0
    generation: int = 0
    """The connection of the newest loss. Several consumers of one connection count once."""
    left: int = 0
    """The number of bytes that must be acknowledged before the losses are forgotten."""


_losses: dict[tuple[str, str], _Losses] = {}
"""The losses by broker and name of the queue.

All connections of the process share this, because a program may open its consumers again itself, and failover makes a
new receiver for each connection. Loops on several threads use this without a lock; at worst a count is wrong by one."""


class Caution:
    """The memory of the losses of one queue.

    Args:
        place: the address of the broker.
        name: the name of the queue.
    """

    losses = _losses
    """Empty as long as no queue lost messages. Each acknowledgement looks here first, because this is quick."""

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
        """Remember that a message of so many bytes was acknowledged. In the end the losses are forgotten."""
        losses = _losses.get(self._key)
        if losses is not None:
            losses.left -= size
            if losses.left <= 0:
                _losses.pop(self._key, None)

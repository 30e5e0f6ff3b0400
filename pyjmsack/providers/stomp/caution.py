"""Decides when a consumer gets one message at a time, because its connections were lost again and again, and when a
consumer is closed, because Artemis cannot convert a message of its queue.

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

If Artemis says that it ended a consumer, the queue is known, and one loss is enough. Artemis then sends one more
message before it ends the connection, the one behind the message that it cannot convert. Each loss counts a delivery
for both, so both would become dead letters at the same time, and nobody can receive the harmless one before. Therefore
the consumers of the queue are closed at the third of these losses (S101), long before the tenth.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

__all__ = ["Caution"]

_LOSSES = 3
"""The number of losses after which a consumer gets one message at a time."""
_REMEMBERED = 60.0
"""The seconds after which an ended consumer is forgotten. A message that Artemis cannot convert stays at the head of
its queue, so the next loss follows soon: after a pause of failover, or after 10 seconds for which Artemis holds an ACK.
"""
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
    ended: int = 0
    """The number of connections in a row that were lost because Artemis ended a consumer of the queue."""
    ended_by: int = 0
    """The number of the connection that was counted last in ``ended``."""
    certain: bool = False
    """True if Artemis named the queue at one of these losses."""
    ended_at: float = 0.0
    """The time when ``ended`` was raised last, by ``monotonic``."""


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
        return losses is not None and losses.left > 0 and (losses.count >= _LOSSES or losses.ended > 0)

    def ended(self, generation: int, waiting: int, *, certain: bool) -> bool:
        """Remember that a connection was lost because Artemis ended a consumer of the queue.

        Args:
            generation: the number of the connection.
            waiting: the number of bytes of the messages of the queue that were not acknowledged.
            certain: False if the broker only refused an ACK. Such a loss is counted, but not enough alone, because
                there are other reasons to refuse an ACK.

        Returns:
            True if the consumers of the queue must be closed.
        """
        losses = self._newest(waiting)
        now = monotonic()
        if now - losses.ended_at > _REMEMBERED:
            losses.ended, losses.certain = 0, False
        losses.ended += losses.ended_by != generation or not losses.ended
        losses.ended_by, losses.ended_at = generation, now
        losses.certain |= certain
        return losses.certain and losses.ended >= _LOSSES

    def lost(self, generation: int, waiting: int) -> None:
        """Remember that a connection was lost while messages of the queue were not acknowledged.

        Args:
            generation: the number of the connection.
            waiting: the number of bytes of these messages.
        """
        losses = self._newest(waiting)
        losses.count += losses.generation != generation
        losses.generation = generation

    def _newest(self, waiting: int) -> _Losses:
        losses = _losses.pop(self._key, None) or _Losses()
        _losses[self._key] = losses  # moved to the end, as the newest
        losses.left = max(losses.left, _FACTOR * waiting, 1)
        for oldest in list(_losses)[:-_MOST_QUEUES]:
            _losses.pop(oldest, None)
        return losses

    def acknowledged(self, size: int) -> None:
        """Remember that a message of ``size`` bytes was acknowledged. When enough bytes were acknowledged, forget the
        losses.
        """
        losses = _losses.get(self._key)
        if losses is not None:
            losses.left -= size
            if losses.left <= 0:
                losses.count = 0
                # another consumer may have acknowledged this message, so an ended consumer is forgotten by time alone
                if not losses.ended or monotonic() - losses.ended_at > _REMEMBERED:
                    _losses.pop(self._key, None)

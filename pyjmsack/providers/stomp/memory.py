"""Remembers how often each message was delivered without success. The count stays even after the end of the
subscription that delivered the message (S110)."""

from __future__ import annotations

from collections import OrderedDict

from pyjmsack.providers.stomp.inbound import StompInbound

__all__ = ["DeliveryCounts"]

_LIMIT = 10_000
"""The largest number of messages that are remembered. If more are added, the oldest one is forgotten. The number is
usually small, because only messages that go back to the broker are counted."""


class DeliveryCounts:
    """The delivery counts of messages, for one connection."""

    def __init__(self) -> None:
        self._counts: OrderedDict[int, int] = OrderedDict()
        """The count for each message. The key is a hash of the id of the message, because a hash has a fixed length and
        a sender may choose an id of any length."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def of(self, inbound: StompInbound) -> int | None:
        """Return the count of a message and forget this count, because from now on the message itself has the count.
        Return ``None`` if this connection knows nothing of the message."""
        return self._counts.pop(hash(inbound.broker_id), None)

    def remember(self, inbound: StompInbound, *, unseen: bool = False) -> None:
        """Keep the count of a message that goes back to the broker.

        Args:
            unseen: whether to keep the count even if it is 0. A message needs this if the caller never had the message,
                and the same consumer gets it again at once by another subscription. The broker marks this message as
                redelivered, and the kept count of 0 shows that no delivery has failed.
        """
        count = inbound.redelivery_count + inbound.redeliveries
        if count or unseen:
            self._counts[hash(inbound.broker_id)] = count
            if len(self._counts) > _LIMIT:
                self._counts.popitem(last=False)

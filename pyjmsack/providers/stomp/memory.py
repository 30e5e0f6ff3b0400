"""Remembers how often messages were delivered without success, also after the end of the subscription that delivered
them (S110)."""

from __future__ import annotations

from collections import OrderedDict

from pyjmsack.providers.stomp.inbound import StompInbound

__all__ = ["DeliveryCounts"]

_LIMIT = 10_000
"""The most messages that are remembered. If there are more, the oldest one is forgotten. Only messages
that were given back are counted, so there are few."""


class DeliveryCounts:
    """The delivery counts of messages, for one connection."""

    def __init__(self) -> None:
        self._counts: OrderedDict[int, int] = OrderedDict()
        """The count for each hash of an id. The hash has a fixed length, but a sender may choose an id of any
        length."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def of(self, inbound: StompInbound) -> int:
        """Return the count of a message and forget it, because the message keeps its own count from now on."""
        return self._counts.pop(hash(inbound.broker_id), 0)

    def remember(self, inbound: StompInbound) -> None:
        """Keep the count of a message that goes back to the broker."""
        count = inbound.redelivery_count + inbound.redeliveries
        if count:
            self._counts[hash(inbound.broker_id)] = count
            if len(self._counts) > _LIMIT:
                self._counts.popitem(last=False)

"""How often messages were delivered in vain, kept beyond the subscription that delivered them (S110)."""

from __future__ import annotations

from collections import OrderedDict

from pyjmsack.providers.stomp.inbound import StompInbound

__all__ = ["DeliveryCounts"]

_LIMIT = 10_000
"""The number of messages that are remembered, the latest ones. Each was given back, so there are few."""


class DeliveryCounts:
    """Counts by message, for one connection."""

    def __init__(self) -> None:
        self._counts: OrderedDict[int, int] = OrderedDict()
        """By a hash of the id, which a sender may have chosen, in any length."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def of(self, inbound: StompInbound) -> int:
        """Return the count and forget it: the message carries it from now on."""
        return self._counts.pop(hash(inbound.broker_id), 0)

    def remember(self, inbound: StompInbound) -> None:
        """Keep the count of a message that goes back to the broker."""
        count = inbound.redelivery_count + inbound.redeliveries
        if count:
            self._counts[hash(inbound.broker_id)] = count
            if len(self._counts) > _LIMIT:
                self._counts.popitem(last=False)

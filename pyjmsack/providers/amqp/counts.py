"""Counts the deliveries of large messages, because Artemis does not (S110).

Artemis writes the delivery count into the header of a small message. It sends a large message again with the same bytes
as before, so the header says 0 each time. A message is large from 100 KB on, unless the broker says otherwise
(``amqpMinLargeMessageSize``). Without an id another message may look the same. Then the failures only let a message
wait (S115), and are no part of its delivery count (S110). A small message that comes damaged is counted here as well,
so that it is recognised when it comes with the same damage again (S166).
"""

from __future__ import annotations

from collections import OrderedDict

from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.sections import after_header
from pyjmsack.types import Outcome

__all__ = ["LargeCounts"]

_FROM = 8192
"""The number of bytes from which a message may be large for the broker. The header of a smaller message always has the
count."""
_BEGINNING, _END = 8192, 2048
"""The number of bytes at the beginning and at the end by which a message is recognised. They include the id of the
message, unless its annotations are very long. A digest of a whole message would take too long for the loop."""
_MOST_COUNTED = 10_000
"""The number of messages that are remembered. If more are added, the oldest one is forgotten."""


class LargeCounts:
    """The failed deliveries of the large and of the damaged messages that one connection gave back. Only the loop calls
    the methods."""

    def __init__(self) -> None:
        self._counts: OrderedDict[int, int] = OrderedDict()
        self._damaged = False
        """Whether a small message came damaged. Until then no small message is looked for."""

    @staticmethod
    def concerns(inbound: AmqpInbound) -> bool:
        """Return whether the broker may leave out the count of this message."""
        return inbound.size >= _FROM

    def recall(self, inbound: AmqpInbound) -> None:
        """Tell a message that arrives how often its delivery failed before, and forget the number."""
        if self._counts and (self._damaged or self.concerns(inbound)):
            inbound.counted = self._counts.pop(_key(inbound), 0)

    def goes_back(self, inbound: AmqpInbound, outcome: Outcome) -> None:
        """Remember a message that gets this outcome, if the broker delivers the message again after it."""
        # not an empty one: after a reconnection Artemis sends such for several messages that it has whole
        damaged = inbound.unreadable and inbound.payload and not self.concerns(inbound)
        # one that was refused here goes to the other consumers, and some of them may be those of this connection
        refused = outcome is Outcome.MODIFIED_FAILED_UNDELIVERABLE and inbound.counted
        if damaged and (outcome is Outcome.MODIFIED_FAILED or refused):
            self._damaged = True
            self._remember(inbound, inbound.counted + 1)
        elif outcome in (Outcome.MODIFIED_FAILED, Outcome.MODIFIED_FAILED_UNDELIVERABLE):
            self.failed(inbound)
        elif outcome is Outcome.RELEASED and inbound.counted:
            self._remember(inbound, inbound.counted)

    def failed(self, inbound: AmqpInbound) -> None:
        """Count a failed delivery of a message that goes back to the broker."""
        if self.concerns(inbound):
            # redelivery_count is 0 if the message cannot be decoded
            self._remember(inbound, max(inbound.redelivery_count, inbound.counted) + 1)

    def _remember(self, inbound: AmqpInbound, count: int) -> None:
        self._counts[_key(inbound)] = count
        if len(self._counts) > _MOST_COUNTED:
            self._counts.popitem(last=False)


def _key(inbound: AmqpInbound) -> int:
    payload = inbound.payload
    start = after_header(payload)  # the header of a small message has its delivery count
    end = max(start, len(payload) - _END)
    return hash((inbound.queue, inbound.size - start, payload[start : start + _BEGINNING], payload[end:]))

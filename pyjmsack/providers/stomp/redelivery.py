"""Delivers again the messages that the caller gave back.

STOMP has no frame that gives one message back to the broker. So such a message stays in the client and goes to the
front of the inbox again. UNSUBSCRIBE gives all unacknowledged messages back to the broker.
"""

from __future__ import annotations

import logging
from typing import Final

from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.subscriptions import Shared, Subscriptions
from pyjmsack.spi.envelope import InboundSink

__all__ = ["LocalRedelivery"]

log = logging.getLogger("pyjmsack.stomp")
_MANY: Final = 100
"""A message that failed so often will hardly ever be processed. Brokers give such a message up after some ten
deliveries, but they do not see deliveries inside the client."""


class LocalRedelivery:
    """The messages of one consumer that the caller gave back in this burst.

    Args:
        shared: the common state of the connection.
        sink: the inbox, which gets the messages again.
        subscriptions: get the messages of a stopped consumer, and give them back to the broker.
        name: the name of the destination, for the log.
    """

    def __init__(self, shared: Shared, sink: InboundSink, subscriptions: Subscriptions, name: str) -> None:
        self._shared = shared
        self._sink = sink
        self._subscriptions = subscriptions
        self._name = name
        self._back: list[StompInbound] = []
        self._has_warned = False

    def count(self, inbound: StompInbound, times: int) -> None:
        """Add to the delivery count of a message that was delivered without success (S80, S110). The log has one
        warning for a consumer with a message that never succeeds, because nothing else would tell of this loop.
        """
        inbound.counted = inbound.redelivery_count + times
        inbound.redeliveries = 0
        if inbound.counted >= _MANY and not self._has_warned:
            self._has_warned = True
            log.warning(
                "a message of %s failed %d times: over STOMP the client delivers it again without a limit, unless"
                " jms.redeliveryPolicy.maxRedeliveries is set; reject() makes it a dead letter",
                self._name,
                inbound.counted,
            )

    def roll_back(self, inbound: StompInbound) -> None:
        """Deliver a message again and count it, because its transaction was rolled back (S80)."""
        self.count(inbound, inbound.redeliveries + 1)
        self.give_back(inbound)

    def give_back(self, inbound: StompInbound) -> None:
        """Deliver a message again at the end of this burst. The message of a stopped consumer, or of a retired
        subscription, goes back to the broker."""
        if self._subscriptions.stopped or (inbound.subscription is not None and inbound.subscription.retired):
            if inbound in self._subscriptions.outstanding:
                inbound.subscription.returned += 1
                self._subscriptions.release(inbound.subscription)
            return
        if not self._back:
            self._shared.giving_back.append(self)
        self._back.append(inbound)

    def redeliver(self) -> None:
        """Put the messages that were given back in this burst into the inbox again, in the order of their arrival."""
        back, self._back = self._back, []
        back.sort(key=lambda inbound: inbound.sequence)
        for inbound in back:
            inbound.settled = False
        self._sink.redeliver(back)

    def redeliver_now(self) -> None:
        """Call :meth:`redeliver` after an answer of the broker, because no call of the core ends this burst."""
        if self._back:
            self._shared.giving_back.remove(self)
            self.redeliver()

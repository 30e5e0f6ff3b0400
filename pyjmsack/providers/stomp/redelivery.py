"""Delivers again the messages that the caller gave back.

STOMP has no frame that gives one message back to the broker. Therefore such a message stays in the client and goes to
the front of the inbox again. Only the end of a subscription (UNSUBSCRIBE) gives messages back to the broker: all
unacknowledged messages of this subscription.
"""

from __future__ import annotations

from typing import Final

from pyjmsack.loggers import get_logger
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.providers.stomp.subscriptions import Shared, StompSubscription, Subscriptions
from pyjmsack.spi.envelope import InboundSink

__all__ = ["LocalRedelivery"]

log = get_logger("pyjmsack.stomp")
_MANY: Final = 100
"""After this number of failed deliveries, the log gets a warning, because the message will hardly ever be processed. A
broker would give up such a message after some ten deliveries, but it does not see deliveries inside the client."""


class LocalRedelivery:
    """The messages of one consumer that the caller gave back in this burst.

    Args:
        shared: the common state of the connection.
        sink: the inbox, which gets the messages again.
        subscriptions: the subscriptions of the consumer. They give the messages of a stopped consumer back to the
            broker.
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
        """Add to the delivery count of a message that was delivered without success (S80, S110). If a message never
        succeeds, log one warning for the consumer, because nobody else would notice the endless redelivery."""
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
        """Deliver a message again and count its delivery, because the transaction of the message was rolled back
        (S80)."""
        self.count(inbound, inbound.redeliveries + 1)
        self.give_back(inbound)

    def give_back(self, inbound: StompInbound) -> None:
        """Deliver a message again at the end of this burst. If the consumer is stopped or the subscription of the
        message is retired, the message goes back to the broker instead."""
        subscription: StompSubscription | None = inbound.subscription
        if self._subscriptions.stopped or (subscription is not None and subscription.retired):
            if subscription is not None and inbound in self._subscriptions.outstanding:
                if not self._subscriptions.stopped:
                    self._shared.counts.remember(inbound, unseen=True)
                subscription.returned += 1
                self._subscriptions.release(subscription)
            return
        if not self._back:
            self._shared.giving_back.append(self)
        self._back.append(inbound)

    def redeliver(self) -> None:
        """Put the messages that the caller gave back in this burst into the inbox again, in the order in which they
        first arrived."""
        back, self._back = self._back, []
        back.sort(key=lambda inbound: inbound.sequence)
        for inbound in back:
            inbound.settled = inbound.sent = False
        self._sink.redeliver(back)

    def redeliver_now(self) -> None:
        """Call :meth:`redeliver` after an answer of the broker, because no call of the core ends this burst."""
        if self._back:
            self._shared.giving_back.remove(self)
            self.redeliver()

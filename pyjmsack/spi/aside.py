"""Limits how many messages one consumer can set aside (S118, S166).

A message is set aside if its consumer can neither hand it out nor remove it. The message waits, unacknowledged, until
the consumer ends. There is a limit, because a sender can send any number of such messages. A consumer that reaches the
limit takes no more messages, and ends with an error when its inbox is empty. Then the messages that it set aside go
back to the broker. So does a consumer for which the broker has no more room, because such messages fill its window.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyjmsack.errors import JMSException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.envelope import InboundSink
from pyjmsack.spi.resources import ConsumerInfo

__all__ = ["MOST_ASIDE", "MOST_COPIES", "Aside"]

MOST_ASIDE = 1_000
"""A consumer ends after it has set aside this number of messages."""
MOST_COPIES = 100
"""A consumer asks for no more messages while this number of its messages are being copied to the dead-letter queue."""

_LOOK = 0.1
"""Seconds between two checks whether the inbox is empty."""

Stop = Callable[[Completion[None]], None]
"""A function that stops the deliveries of a consumer, and then completes its argument."""


class Aside:
    """Counts the messages that one consumer has set aside, and ends the consumer at the limit.

    All methods run on the loop.

    Args:
        info: describes the consumer.
        sink: the inbox of the consumer. It gets the error.
        connector: has the timers.
    """

    def __init__(self, info: ConsumerInfo, sink: InboundSink, connector: Connector) -> None:
        self._name = info.destination.name
        self._remedy = _remedy(info)
        self._sink = sink
        self._connector = connector
        self._stop: Stop | None = None
        self._error: JMSException | None = None
        self._timer: Timer | None = None
        self.count = 0
        """The number of messages that were set aside."""
        self.copying = 0
        """The number of copies that are on their way to the dead-letter queue. Each original message waits until the
        broker has answered for its copy."""

    @property
    def busy(self) -> bool:
        """True if so many copies are on their way that the consumer must not ask for more messages."""
        return self.copying >= MOST_COPIES

    def add(self, stop: Stop) -> None:
        """Count one more message that was set aside. End the consumer if this message reaches the limit.

        Before the end, the consumer hands out the messages in its inbox. The caller may acknowledge the messages that
        it holds even after the end.

        Args:
            stop: stops the deliveries of the consumer.
        """
        self._stop = stop
        self.count += 1
        if self.count == MOST_ASIDE:
            self.end()

    def end(self, why: str = "") -> None:
        """End the consumer with an error as soon as its inbox is empty. A second call has no effect.

        Args:
            why: why the number of messages so far is too large. The text is empty if :data:`MOST_ASIDE` is reached.
        """
        if self._error is not None or self._stop is None:
            return
        self._error = JMSException(
            f"the consumer of {self._name} ended, because it could neither hand out nor remove {self.count:,}"
            f" message{'s' * (self.count > 1)}{why}; the log names the reasons. {self._remedy} (S166)"
        )
        self._stop(Completion())
        self._end(self._error)

    def _end(self, error: JMSException) -> None:
        if self._sink.buffered():
            self._timer = self._connector.call_later(_LOOK, partial(self._end, error))
            return
        self._timer = None
        self._sink.detached(error)

    def cancel(self) -> None:
        """Stop waiting until the inbox is empty, because the consumer or its connection ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _remedy(info: ConsumerInfo) -> str:
    """Return what the caller can do after the end of this consumer."""
    if info.destination.is_temporary:
        return (
            "Close the requestor or the consumer of this temporary queue, and create another one with another temporary"
            " queue: the broker deletes this one with these messages"
        )
    if info.destination.is_topic and info.subscription is None:
        return "Close the consumer, and create another one: the topic does not keep these messages"
    return "Close the consumer, so that these messages go back to the broker, and remove them there"

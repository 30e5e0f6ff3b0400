"""Limits how many messages one consumer can set aside (S118, S166).

A message is set aside if its consumer can neither hand it out nor remove it. The message waits, unacknowledged, until
the consumer ends. There is a limit, because a sender can send any number of such messages. A consumer that reaches the
limit takes no more messages, and ends with an error when its inbox is empty. Then the messages that it set aside go
back to the broker.
"""

from __future__ import annotations

from collections.abc import Callable

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
        self._sink = sink
        self._connector = connector
        self._count = 0
        self._timer: Timer | None = None
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
        self._count += 1
        if self._count == MOST_ASIDE:
            stop(Completion())
            self._end()

    def _end(self) -> None:
        if self._sink.buffered():
            self._timer = self._connector.call_later(_LOOK, self._end)
            return
        self._timer = None
        self._sink.detached(
            JMSException(
                f"the consumer of {self._name} ended, because it could neither hand out nor remove {MOST_ASIDE:,}"
                " messages; the log names the reasons. Close the consumer, so that these messages go back to the"
                " broker, and remove them there (S166)"
            )
        )

    def cancel(self) -> None:
        """Stop waiting until the inbox is empty, because the consumer or its connection ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

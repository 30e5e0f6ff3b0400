"""Bounds the messages that a consumer cannot pass on, and that no outcome can remove.

Some messages wait, unacknowledged, until their consumer ends (S118, S166). A sender decides how many there are. So
there is a limit. A consumer that reaches the limit takes no more, and ends with an error when its inbox is empty. Then
all these messages go back to the broker.
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
"""The number of such messages at which their consumer ends."""
MOST_COPIES = 100
"""The number of copies of dead letters that a consumer has on their way before it asks for no more messages."""

_LOOK = 0.1
"""Seconds between two looks whether the inbox is empty."""

Stop = Callable[[Completion[None]], None]
"""Stops the deliveries of a consumer."""


class Aside:
    """Counts the messages of one consumer that wait for its end. All methods run on the loop.

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
        """The number of copies on their way to the dead-letter queue. Their originals wait for the answer."""

    @property
    def busy(self) -> bool:
        """Whether the consumer has so many copies on their way that it must not ask for more messages."""
        return self.copying >= MOST_COPIES

    def add(self, stop: Stop) -> None:
        """Count one more message, and end the consumer if this is the last one that it may set aside.

        The inbox is handed out first. Messages that the caller holds may still be acknowledged after the end.

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
                f"the consumer of {self._name} ended, because {MOST_ASIDE:,} messages wait that it can neither hand out"
                " nor remove; the log names the reasons. Close the consumer, so that the messages go back to the"
                " broker, and remove them there (S166)"
            )
        )

    def cancel(self) -> None:
        """End the wait for the empty inbox, because the consumer or its connection ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

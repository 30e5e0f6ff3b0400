"""Browsers, which look at the messages of a queue without taking them (S134, S135)."""

from __future__ import annotations

from functools import partial

from pyjmsack.core.consumer import Consumer
from pyjmsack.core.steps import Steps, turn
from pyjmsack.core.taking import REFUSED_AT_ONCE
from pyjmsack.errors import RequestTimedOutException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion

__all__ = ["Browser"]


class Browser:
    """Goes through the messages of a queue once, from the head of the queue.

    Args:
        consumer: a consumer of the queue that was created as a browser.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    @property
    def refused(self) -> int:
        """The number of messages that were not shown, because nobody can decode them."""
        return self._consumer.refused

    def next(self) -> Steps[Message | None]:
        """Return the next message. Return ``None`` if there are no more messages, or if the connection is stopped.

        Raises:
            RequestTimedOutException: the broker does not say in time whether it has more messages.
        """
        consumer = self._consumer
        session, channel, info = consumer.session, consumer.session.channel, consumer.info
        session.check_open()
        timeout = channel.options.request_timeout
        message = yield from self._take()
        looks = 2  # twice, because Artemis 2.56 sometimes answers a drain before it delivers the messages
        while message is None and looks and session.started and not consumer.closed:
            looks -= 1
            done: Completion[None] = Completion()
            channel.submit(channel.provider.start_consumer, info.id)
            channel.submit(channel.provider.drain, info.id, done)
            answered = (yield done, timeout) or done.done
            message = yield from self._take()
            if message is None:
                consumer.check_alive()
            if message is None and not consumer.closed:
                if not answered:
                    raise RequestTimedOutException(
                        f"browsing {info.destination.name}: no answer within jms.requestTimeout ({timeout:g} s)"
                    )
                done.result()
        if message is not None and consumer.guard is not None:
            consumer.guard.add_one(message._delivery)
        return message

    def _take(self) -> Steps[Message | None]:
        """Take a message that is there. In asyncio the loop has a turn after many refused messages."""
        consumer, taking = self._consumer, self._consumer.taking
        take = partial(taking.take, REFUSED_AT_ONCE)
        while (message := (yield from consumer.receiving.answered(take))) is None and taking.cut:
            yield from turn()
        return message

    def close(self) -> Steps[None]:
        """End the browser. A second call has no effect."""
        return self._consumer.close()

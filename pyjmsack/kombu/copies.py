"""Lets a queue take a message once, even if several bindings of the queue bring a copy of the message.

A queue gets one copy from each binding that covers the message and existed when the message was sent. A binding that
was made later brings no copy, even if it covers the message. So the queue must not drop a copy only because another
binding covers the message too. All copies of a message have the same identity, by which this module recognises the
copies.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from datetime import datetime, timezone
from hashlib import blake2b
from typing import Any, Final

from pyjmsack import (
    InvalidDestinationException,
    JMSException,
    Message,
    Queue,
    ResourceAllocationException,
    UnsupportedFeatureException,
)
from pyjmsack.aio import Session
from pyjmsack.kombu.envelope import DUPLICATE_ID
from pyjmsack.kombu.refused import OF_THE_MESSAGE

__all__ = ["Copies"]

_REMEMBERED: Final = 10_000
"""The largest number of messages of a queue that are remembered."""
_APART: Final = 0.025
"""The seconds between the copies of a message that different bindings bring. Artemis may keep two copies that come at
the same moment over two connections, although they have the same duplicate id."""
_LATEST: Final = 0.1
"""The largest number of seconds that a copy waits, however many bindings cover the message."""
_SOON: Final = 0.001
"""The time to live, in seconds, for a message that has just expired. The broker then handles the message as
expired."""
Name = tuple[str, str]


class Copies:
    """Lets one copy of each message through.

    Several processes may consume a durable queue. Therefore each of them sends the copies on to the JMS queue of the
    durable queue, and there the broker keeps only the first copy. The copy of the first binding is sent at once, and
    the copies of the other bindings follow later, because the broker may keep both of two copies that come at the same
    moment. A temporary queue has one consumer. This consumer remembers by which binding a message came first.

    Args:
        session: a session of the connection.
        queue: the JMS queue of kombu's queue.
        durable: whether several processes may consume the queue. If so, the broker has to recognise duplicate ids.
    """

    def __init__(self, session: Session, queue: Queue, *, durable: bool) -> None:
        self._session = session
        self._queue = queue
        self.is_durable = durable
        self._seen: OrderedDict[str, Name] = OrderedDict()
        self.passed_on = 0
        """The number of messages that went into the JMS queue so far."""

    async def takes(self, message: Message, binding: Name, others: Iterable[Name]) -> bool:
        """Return whether the consumer takes this copy. If the consumer does not take the copy, the caller accepts the
        copy, so that the broker removes it.

        Args:
            message: a message that several bindings of the queue cover.
            binding: the binding that brought this copy.
            others: the other bindings that cover the message.

        Raises:
            JMSException: the connection was lost, or the user may not send to the JMS queue.
        """
        mark = _mark(message)
        if mark is None:  # nobody can recognise the copies of this message; to take it twice is better than to lose it
            return True
        if not self.is_durable:
            return self._is_first(mark, binding)
        if mark not in self._seen:
            # the order of the names is the same in all processes, so the copies of two workers do not meet
            await asyncio.sleep(min(_APART * sum(other < binding for other in others), _LATEST))
        if mark in self._seen:  # the broker has confirmed another copy of this message
            return False
        try:
            await self.pass_on(message)
        except (*OF_THE_MESSAGE, ResourceAllocationException):
            # this message cannot be sent, or the JMS queue is full; to take the message twice is better than to stop
            return True
        self._is_first(mark, binding)
        return False

    def is_new(self, message: Message, binding: Name) -> bool:
        """Return whether the consumer takes a message that only this binding covers now. ``False`` means that another
        binding, which has ended since, brought a copy of the message before.
        """
        if self.is_durable or not self._seen:
            return True
        mark = _mark(message)
        return mark is None or self._seen.get(mark, binding) == binding

    def _is_first(self, mark: str, binding: Name) -> bool:
        # a message that was given back comes by the same binding again, and then counts as the first copy again
        first = self._seen.setdefault(mark, binding)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return first == binding

    async def pass_on(self, message: Message) -> None:
        """Send a message to the JMS queue, with everything that its sender wrote. The broker drops a second copy.

        Raises:
            InvalidDestinationException, MessageFormatException, UnsupportedFeatureException: this message cannot be
                sent.
            JMSException: the connection was lost, or the broker takes no messages into the queue.
        """
        held: dict[str, Any] = message._properties or {}
        mark = _mark(message) if self.is_durable else None
        message._properties = held if mark is None else {**held, DUPLICATE_ID: mark}
        message._properties_readonly = False
        how: dict[str, Any] = {"priority": message.priority, "delivery_mode": message.delivery_mode}
        if message.expiration is not None:
            left = (message.expiration - datetime.now(timezone.utc)).total_seconds()
            how["time_to_live"] = max(left, _SOON)
        try:
            async with self._session.create_producer(self._queue) as producer:
                await producer.send(message, **how)
        except (InvalidDestinationException, UnsupportedFeatureException) as error:
            if error.error_code is None:
                raise
            # the broker says so of the queue, so the message must not be blamed
            raise JMSException(f"the messages cannot be passed on: {error}", error_code=error.error_code) from error
        self.passed_on += 1


def _mark(message: Message) -> str | None:
    identity: bytes | None = message._delivery.identity()
    return None if identity is None else blake2b(identity, digest_size=16).hexdigest()

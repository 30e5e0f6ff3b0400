"""Dead letters that the broker would not keep: ActiveMQ Classic discards a rejected message that is not persistent. A
copy goes first, and when the broker has confirmed it the original is accepted (S118; docs/broker-facts.md, trap 8).

A message that is rejected out of the dead-letter queue stays there: Classic would discard it, and Artemis would deliver
it again at once, without end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from pyjmsack.destination import Queue
from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp import sections
from pyjmsack.providers.amqp.download import SpooledInbound
from pyjmsack.providers.amqp.encode import streamed
from pyjmsack.providers.amqp.engines import AmqpEngine
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.oversize import Oversize
from pyjmsack.providers.amqp.receiver import AmqpReceiver
from pyjmsack.providers.amqp.sender import AmqpSender
from pyjmsack.providers.amqp.session import AmqpSession
from pyjmsack.providers.amqp.wire_encode import encode_value
from pyjmsack.providers.amqp.wire_types import Timestamp, UByte
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.demands import is_dead_letter_queue
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import Outbound, Payload
from pyjmsack.spi.resources import ProducerInfo
from pyjmsack.types import Outcome

__all__ = ["DeadLetters"]

log = logging.getLogger("pyjmsack.amqp")

_LINK = 0
"""Number of the link in its session; those of the core are positive."""


class DeadLetters:
    """The copies of one connection.

    Args:
        session: the connection's own.
        queue: the dead-letter queue.
        address: what the broker calls that queue.
        connector: reads the bodies that are in files.
        copies: whether the broker would discard messages that are not persistent, so that they are copied.
    """

    def __init__(
        self,
        engine: AmqpEngine,
        session: AmqpSession,
        queue: Queue,
        address: str,
        connector: Connector,
        *,
        copies: bool,
    ) -> None:
        self._engine = engine
        self._session = session
        self._queue = queue
        self._address = address
        self._connector = connector
        self._copies = copies
        self._sender: AmqpSender | None = None
        self._numbers = count(1)
        self._under_way: dict[_Copy, AmqpReceiver] = {}
        self._waiting: list[tuple[Callable[[AmqpReceiver], bool], Callable[[], None]]] = []

    def take(self, receiver: AmqpReceiver, inbound: AmqpInbound, outcome: Outcome) -> bool:
        """Copy a message that the broker would discard, then accept it. If it cannot be copied, it is delivered again.
        A dead letter that is rejected once more waits for the end of its consumer.

        Returns:
            False if nothing of this is needed, so that the outcome can be sent as usual.
        """
        if outcome is not Outcome.REJECTED:
            return False
        why = None
        if is_dead_letter_queue(receiver.info.destination, self._queue.name):
            why = "this is the dead-letter queue itself"
        elif not self._copies or inbound.persistent:
            return False
        elif isinstance(inbound, Oversize):
            why = "it is too large to be copied to the dead-letter queue, and rejecting would discard it"
        elif isinstance(inbound, SpooledInbound) and inbound.has_footer:
            why = "it is large and has a footer, which cannot be copied, and rejecting would discard it"
        if why is not None:
            log.error("a message of %s waits for the end of this consumer: %s", receiver.info.destination.name, why)
            return True
        if self._sender is None or self._sender.closed is not None:
            self._sender = self._attach()
        copy = _Copy(_payload(inbound), partial(self._copied, receiver, inbound))
        self._under_way[copy] = receiver
        self._sender.send(copy)
        return True

    def _attach(self) -> AmqpSender:
        """Return a sender that takes copies at once, and fails them if the broker refuses it."""
        session = self._session
        name = f"pyjmsack:dead-letters:{next(self._numbers)}"
        info = ProducerInfo(_LINK, 0, self._queue)
        sender = AmqpSender(
            self._engine,
            session.end,
            name,
            info,
            self._address,
            session.send_state,
            connector=self._connector,
            takes_back=False,
        )
        session.links[_LINK] = sender
        opened: Completion[None] = Completion()
        opened.add_callback(lambda _: None if opened.error is None else sender.fail(opened.error))
        sender.open(opened)
        return sender

    def _copied(self, receiver: AmqpReceiver, inbound: AmqpInbound, copy: _Copy, error: BaseException | None) -> None:
        del self._under_way[copy]
        self._settle(receiver, inbound, error)
        waiting, self._waiting = self._waiting, []
        for concerns, then in waiting:
            self.afterwards(concerns, then)

    def _settle(self, receiver: AmqpReceiver, inbound: AmqpInbound, error: BaseException | None) -> None:
        if error is not None:
            log.error("a message of %s cannot be dead-lettered: %s", receiver.info.destination.name, error)
        receiver.settle(inbound, Outcome.ACCEPTED if error is None else Outcome.MODIFIED_FAILED)

    def afterwards(self, concerns: Callable[[AmqpReceiver], bool], then: Callable[[], None]) -> None:
        """Call ``then`` when no message of these receivers is being copied, because the end of a link gives it back."""
        if any(map(concerns, self._under_way.values())):
            self._waiting.append((concerns, then))
        else:
            then()


class _Copy(Outbound):
    """A copy on its way."""

    __slots__ = ("_done",)

    def __init__(self, payload: Payload, done: Callable[[_Copy, BaseException | None], None]) -> None:
        self.payload = payload
        self.presettled = self.transacted = self.notifies = False
        self._done = done

    def done(self, error: BaseException | None) -> None:
        """Handle the outcome of the copy."""
        self._done(self, error)


def _payload(inbound: AmqpInbound) -> Payload:
    """Return the copy of a message. The body of a large one is read from its file while the copy is sent."""
    payload = _without_expiry(inbound)
    if not isinstance(inbound, SpooledInbound):
        return payload
    return streamed(payload[: sections.body_begins(payload)], inbound.body)


def _without_expiry(inbound: AmqpInbound) -> bytes:
    """Return the message without its expiry, so that it stays in the dead-letter queue. The body is not decoded,
    because this runs on the loop."""
    try:
        fields = inbound._decode()
    except MessageFormatException:
        return inbound.payload
    header, payload = inbound._header, inbound.payload
    if not header.ttl_ms and not fields[sections.ABSOLUTE_EXPIRY_TIME]:
        return payload
    parts = [_section(sections.HEADER, [header.durable, UByte(header.priority)])]
    for code, begin, (_, end) in sections.split(payload):
        if code == sections.PROPERTIES:
            fields = [*fields]
            fields[sections.ABSOLUTE_EXPIRY_TIME] = None
            if fields[sections.CREATION_TIME] is not None:
                fields[sections.CREATION_TIME] = Timestamp(fields[sections.CREATION_TIME])
            parts.append(_section(code, fields))
        elif code not in (sections.HEADER, sections.DELIVERY_ANNOTATIONS):  # said above; the broker's
            parts.append(payload[begin:end])
    return b"".join(parts)


def _section(code: int, fields: list[Any]) -> bytes:
    return b"\x00\x53%c" % code + encode_value(fields)

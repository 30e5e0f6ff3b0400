"""Saves dead letters that the broker would discard.

ActiveMQ Classic discards a rejected message that is not persistent. Therefore the client sends a copy of the message to
the dead-letter queue. When the broker has confirmed the copy, the client accepts the original (S118;
docs/broker-facts.md, trap 8).

If a consumer of the dead-letter queue rejects a message, the client sends no outcome and the message stays there.
Otherwise Classic would discard the message, and Artemis would deliver it again at once, without end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from pyjmsack.destination import Queue
from pyjmsack.errors import MessageFormatException
from pyjmsack.loggers import get_logger
from pyjmsack.message.utf import encode_utf
from pyjmsack.providers.amqp import sections
from pyjmsack.providers.amqp.download import SpooledInbound
from pyjmsack.providers.amqp.encode import streamed
from pyjmsack.providers.amqp.engines import AmqpEngine
from pyjmsack.providers.amqp.ids import to_message_id
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

log = get_logger("pyjmsack.amqp")

_MOST_REFUSED = 10
"""The number of earlier deliveries of a message from which on it is set aside if its copy is refused. ActiveMQ Classic
may refuse a copy and keep it, so the dead-letter queue would fill up with copies of one message."""
_LONGEST_ID = 65_535
"""The largest number of bytes of the id of a message that can be rejected at ActiveMQ Classic. Classic writes the
length in 16 bits. It closes the consumer or the connection if the id does not fit, and delivers the message again,
without end."""
_LINK = 0
"""The number of this sender's link in its session. The core numbers its own links from 1, so 0 is free."""


class DeadLetters:
    """Copies the dead letters of one connection to the dead-letter queue.

    Args:
        session: the session of the connection itself.
        queue: the dead-letter queue.
        address: the name that the broker has for that queue.
        connector: reads the bodies of large messages from their files.
        copies: whether to copy messages that are not persistent, because the broker would discard them.
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
        """Copy a rejected message that the broker would discard, then accept the original.

        If the broker refuses the copy, the original is delivered again. After ten deliveries, it gets no outcome until
        its consumer ends. Neither does a message that cannot be copied, whose id is too long for Classic, or that was
        rejected by a consumer of the dead-letter queue.

        Returns:
            False if the message needs no copy. The caller then sends the outcome as usual.
        """
        if outcome is not Outcome.REJECTED:
            return False
        why = None
        if is_dead_letter_queue(receiver.info.destination, self._queue.name):
            why = "the message is already in the dead-letter queue"
        elif self._copies and _has_too_long_id(inbound):
            why = "its message id is so long that ActiveMQ Classic would close the consumer and deliver it again"
        elif not self._copies or inbound.persistent:
            return False
        elif isinstance(inbound, Oversize):
            why = "it is too large to be copied to the dead-letter queue, and the broker would discard it"
        elif isinstance(inbound, SpooledInbound) and inbound.has_footer:
            why = "it is large and has a footer, which cannot be copied, and the broker would discard it"
        if why is not None:
            self._set_aside(receiver, why)
            return True
        if self._sender is None or self._sender.closed is not None:
            self._sender = self._attach()
        copy = _Copy(_payload(inbound), partial(self._copied, receiver, inbound))
        self._under_way[copy] = receiver
        receiver.aside.copying += 1
        self._sender.send(copy)
        return True

    def _attach(self) -> AmqpSender:
        """Return a sender for the copies. The sender accepts copies even before its link is open. If the broker refuses
        the link, the copies fail."""
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
        alive = receiver.closed is None and self._engine.failed is None
        if error is not None and alive and inbound.delivery_count >= _MOST_REFUSED:
            self._set_aside(receiver, f"the broker refuses its copies for the dead-letter queue ({error})")
            receiver.copied()
            return
        receiver.settle(inbound, Outcome.ACCEPTED if error is None else Outcome.MODIFIED_FAILED)
        receiver.copied()
        if error is not None:
            log.error(
                "a message of %s cannot be copied to the dead-letter queue and is delivered again: %s",
                receiver.info.destination.name,
                error,
            )

    @staticmethod
    def _set_aside(receiver: AmqpReceiver, why: str) -> None:
        receiver.aside.add(receiver.stop)
        log.error(
            "a message of %s stays unacknowledged until its consumer ends: %s", receiver.info.destination.name, why
        )

    def afterwards(self, concerns: Callable[[AmqpReceiver], bool], then: Callable[[], None]) -> None:
        """Wait until no message of certain receivers is being copied, and then call ``then``. ``concerns`` returns True
        for these receivers.

        The caller ends these receivers in ``then``. If a link ended earlier, the original message would go back to its
        queue although it was copied.
        """
        if any(map(concerns, self._under_way.values())):
            self._waiting.append((concerns, then))
        else:
            then()


class _Copy(Outbound):
    """The copy of a dead letter while it is being sent to the dead-letter queue."""

    __slots__ = ("_done",)

    def __init__(self, payload: Payload, done: Callable[[_Copy, BaseException | None], None]) -> None:
        self.payload = payload
        self.presettled = self.transacted = self.notifies = False
        self._done = done

    def done(self, error: BaseException | None) -> None:
        """Handle the broker's answer to the copy."""
        self._done(self, error)


def _has_too_long_id(inbound: AmqpInbound) -> bool:
    """Return True if ActiveMQ Classic cannot write the id of a message. Classic writes an id of bytes as a text."""
    if isinstance(inbound, Oversize):
        return False
    try:
        found = inbound._decode()[sections.MESSAGE_ID]
    except MessageFormatException:
        return False
    text = found if isinstance(found, str) else to_message_id(found)
    return text is not None and len(encode_utf(text)) > _LONGEST_ID


def _payload(inbound: AmqpInbound) -> Payload:
    """Return the copy of a message. The body of a large message is read from its file while the copy is sent."""
    payload = _without_expiry(inbound)
    if not isinstance(inbound, SpooledInbound):
        return payload
    return streamed(payload[: sections.body_begins(payload)], inbound.body)


def _without_expiry(inbound: AmqpInbound) -> bytes:
    """Return the encoded message without its expiry, because a copy in the dead-letter queue must not expire.

    The body is not decoded, because this function runs on the loop.
    """
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
        elif code not in (sections.HEADER, sections.DELIVERY_ANNOTATIONS):
            # the header was written above, and the delivery annotations belong to the broker
            parts.append(payload[begin:end])
    return b"".join(parts)


def _section(code: int, fields: list[Any]) -> bytes:
    return b"\x00\x53%c" % code + encode_value(fields)

"""Copies a message to the dead-letter queue if a NACK would lose the message (S118; traps 1 and 8 of
broker-facts.md).
"""

from __future__ import annotations

import re
import time
from dataclasses import replace

from pyjmsack.destination import Destination, Queue
from pyjmsack.providers.stomp.frames import escape
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.spi.envelope import DUPLICATE_ID

__all__ = ["dead_letter"]

_NOT_COPIED = re.compile(
    rb"\n(?:subscription|message-id|ack|destination|destination-type|content-length|redelivered|receipt|expires"
    rb"|transaction|browser|%b|_AMQ_ORIG_ADDRESS|_AMQ_ORIG_QUEUE|_AMQ_SCHED_DELIVERY|AMQ_SCHEDULED_TIME"
    rb"|_AMQ_LARGE_SIZE|AMQ_SCHEDULED_DELAY|scheduledJobId)(?::[^\n]*)?(?![^\n])" % DUPLICATE_ID.encode()
)
"""Header lines that belong to this delivery. One search finds all, because a message may have many lines."""


def dead_letter(inbound: StompInbound, queue: str, source: Destination, subscriber: str) -> bytes:
    """Return the rest of a SEND frame with the message as it came, without its expiry, and with its origin.

    An expired message goes to the queue to which the broker itself moves expired messages. If the connection is lost
    before the original is acknowledged, a second copy may be made. Artemis drops it, because the id of the copy is made
    from the id of the original.

    Args:
        subscriber: the name of a subscriber of a topic, because each may reject its own copy; empty for a queue.
    """
    dialect = replace(inbound.dialect, queue_prefix="")  # that queue is the broker's, and has its own name
    if inbound.expired(time.time_ns() // 1_000_000):
        queue = dialect.expired
    lines = [copied] if (copied := _NOT_COPIED.sub(b"", inbound.head)[1:]) else []
    origin = escape(source.name).encode()
    lines.append(b"_AMQ_ORIG_ADDRESS:" + origin)
    lines.append(b"_AMQ_ORIG_QUEUE:" + origin)
    number = inbound.broker_id
    if dialect.routed and number:
        owner = b"-" + escape(subscriber).encode() if subscriber else b""
        lines.append(DUPLICATE_ID.encode() + b":" + origin + owner + b"-" + number)
    if inbound.is_bytes or b"\0" in inbound.body:
        lines.append(b"content-length:%d" % len(inbound.body))
    return b"".join((dialect.send_lines(Queue(queue)).encode(), b"\n".join(lines), b"\n\n", inbound.body, b"\0"))

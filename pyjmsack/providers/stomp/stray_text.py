"""Refuses a text with a NUL that ended the connection, so that it does not end the next connections too (S166).

ActiveMQ Classic writes the text of an OpenWire client into a MESSAGE frame without a content-length. By the protocol
the first NUL ends this frame (STOMP 1.2, Body). If the text contains a NUL, the rest of the text stands where the next
frame should be. The client cannot know where this rest ends, so the connection has to end. The broker then sends the
message again on the next connection. Therefore the client sends a NACK, the frame that refuses a message, before the
connection ends. Classic makes a dead letter of the message.
"""

from __future__ import annotations

from time import monotonic

from pyjmsack.errors import ResourceAllocationException
from pyjmsack.loggers import get_logger
from pyjmsack.providers.stomp.header_lines import raw_header
from pyjmsack.providers.stomp.subscriptions import Shared

__all__ = ["refuse_text"]

log = get_logger("pyjmsack.stomp")

_MOST_ENDS = 3
"""The number of connections that may end directly behind a message that cannot be refused. At the last one, the client
closes the consumer."""
_MOST_MESSAGES = 1_000
"""The number of messages for which these ends are counted. The oldest message is forgotten first."""
_LONGEST_ID = 1_024
"""The largest number of bytes of the id of such a message. The broker chooses the ids of messages of its producers."""

_REMEMBERED = 600.0
"""The number of seconds after which an end is forgotten."""

_ends: dict[tuple[str, bytes], tuple[int, float]] = {}
"""For each broker and message id, the number of connections that ended directly behind the message, and the time of the
last end on the monotonic clock in seconds.

All connections of the process share this dictionary, because the next connection gets the same message. Loops on
several threads use the dictionary without a lock. At worst, a count is wrong by one.
"""


def refuse_text(shared: Shared, name: bytes, head: bytes, most_ends: int) -> None:
    """Send a NACK for the message that is to blame for the end of the connection.

    A message that is not persistent gets no NACK, because Classic would discard it. For such a message the consumer is
    closed when this happens again and again, so that the other consumers of the connection go on.

    Args:
        shared: the common state of the connection, which is about to end.
        name: the name of the subscription of the last message.
        head: the header lines of the last message.
        most_ends: the number of connections that may end behind the message. The client refuses it at the last one.
    """
    subscription = shared.subscriptions.get(name)
    if subscription is None:
        return
    name_of_queue = subscription.receiver.info.destination.name
    message_id = raw_header(head, b"\nmessage-id:") or name_of_queue.encode()  # the head may have lost its id
    if len(message_id) > _LONGEST_ID:
        return
    key = shared.place, message_id
    before, since = _ends.pop(key, (0, 0.0))
    ends = 1 if monotonic() - since > _REMEMBERED else before + 1
    if ends >= most_ends and subscription.receiver.refuse_unread(subscription, head):
        log.error("a message of %s is refused, because its text probably contains a NUL (S166)", name_of_queue)
        return
    _ends[key] = ends, monotonic()
    for oldest in list(_ends)[:-_MOST_MESSAGES]:
        _ends.pop(oldest, None)
    if ends >= max(most_ends, _MOST_ENDS):
        subscription.receiver.give_up(_unreadable(name_of_queue))


def _unreadable(name: str) -> ResourceAllocationException:
    return ResourceAllocationException(
        f"pyjmsack closed the consumer of {name!r}, because the connection ended again and again behind a message whose"
        " text probably contains a NUL, and ActiveMQ would discard the message or accepts no refusal of it; receive it"
        " over amqp:// (S166)"
    )

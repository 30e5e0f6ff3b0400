"""Refuses a text with a NUL that ended the connection, so that it does not end the next connections too (S166).

ActiveMQ Classic writes the text of an OpenWire client into a MESSAGE frame without a content-length. By the protocol
the first NUL ends this frame (STOMP 1.2, Body). If the text contains a NUL, the rest of the text stands where the next
frame should be. The client cannot know where this rest ends, so the connection has to end. The broker then sends the
message again on the next connection. Therefore the client sends a NACK, the frame that refuses a message, before the
connection ends. Classic makes a dead letter of the message.
"""

from __future__ import annotations

from pyjmsack.loggers import get_logger
from pyjmsack.providers.stomp.header_lines import raw_header
from pyjmsack.providers.stomp.subscriptions import Shared

__all__ = ["refuse_text"]

log = get_logger("pyjmsack.stomp")

_MOST_ENDS = 3
"""The number of connections that may end directly behind a message, each by an error that may come from the broker
itself. The client refuses the message at the last one."""
_MOST_MESSAGES = 1_000
"""The number of messages for which these ends are counted. The oldest message is forgotten first."""
_LONGEST_ID = 1_024
"""The largest number of bytes of the id of such a message. The broker chooses the ids of messages of its producers."""

_ends: dict[tuple[str, bytes], int] = {}
"""For each broker and message id, the number of connections that ended directly behind the message.

All connections of the process share this dictionary, because the next connection gets the same message. Loops on
several threads use the dictionary without a lock. At worst, a count is wrong by one.
"""


def refuse_text(shared: Shared, name: bytes, head: bytes, *, certain: bool) -> None:
    """Send a NACK for the message that is to blame for the end of the connection.

    A message that is not persistent gets no NACK, because Classic would discard it. A message that was acknowledged
    gets none either.

    Args:
        shared: the common state of the connection, which is about to end.
        name: the name of the subscription of the last message.
        head: the header lines of the last message.
        certain: whether bytes that are no frame followed the message. If not, an error followed that may come from the
            broker itself. Then the message is refused when this happens again and again.
    """
    subscription = shared.subscriptions.get(name)
    message_id = raw_header(head, b"\nmessage-id:")
    if subscription is None or message_id is None or len(message_id) > _LONGEST_ID:
        return
    key = shared.place, message_id
    ends = _ends.pop(key, 0) + 1
    if not certain and ends < _MOST_ENDS:
        _ends[key] = ends
        for oldest in list(_ends)[:-_MOST_MESSAGES]:
            _ends.pop(oldest, None)
        return
    refused = subscription.receiver.refuse_unread(subscription, head)
    log.error(
        "the connection ends behind a message of %s, whose text probably contains a NUL; %s",
        subscription.receiver.info.destination.name,
        "the message is refused" if refused else "receive this destination over AMQP",
    )

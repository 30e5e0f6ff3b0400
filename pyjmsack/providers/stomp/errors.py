"""Turns ERROR frames, by which a broker reports an error, into JMS exceptions (S129). STOMP has no error codes, so the
words of the broker decide which exception is raised."""

from __future__ import annotations

import re

from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    JMSSecurityException,
    MessageFormatException,
    ResourceAllocationException,
)
from pyjmsack.providers.stomp.header_lines import decode_head, raw_header

__all__ = ["ConsumerEnded", "ended_consumer", "error_of", "unconvertible"]

_BY_WORDS: tuple[tuple[re.Pattern[str], type[JMSException]], ...] = tuple(
    (re.compile(words, re.IGNORECASE), kind)
    for words, kind in (
        (r"connection TTL|heart-?beat|^consumer with ID", ConnectionLostException),
        (r"InvalidClientID|client-?id .*(already|in use)", InvalidClientIDException),
        (r"Security|User name|password|not authori[sz]ed|permission|unable to validate user", JMSSecurityException),
        (r"selector|invalid filter", InvalidSelectorException),
        (r"Durable consumer is in use", IllegalStateException),
        (
            r"InvalidDestination|does not exist|subscription exists|cannot find (queue|address)|no subscription",
            InvalidDestinationException,
        ),
        (r"is full|resource|quota|memory limit", ResourceAllocationException),
    )
)
"""Patterns for the words of an ERROR frame, each with the class of the exception. The first pattern that matches
decides."""

_FOREIGN = re.compile(r"\S{0,40}Message\[.*|\b(?:temp-)?(?:queue|topic)://\S*", re.DOTALL)
"""Matches the parts of an error text that come from senders and users: a whole message, and the names of destinations.
These parts are removed before the words of the text choose the class of the exception."""
_UNNAMED = "AMQ339011"
"""The code of Artemis for a refused send. The text of this error contains the whole message, but no reason."""
_REASONS = (
    "over STOMP Artemis gives no reason: the address may be full, or the user may lack a permission for it; the"
    " reason is in the broker's log, and a connection over amqp:// reports it"
)
_CODE = re.compile(r"AMQ[0-9]{6}|[A-Za-z]+Exception")
_LONGEST = 500
_SHOWN = 4 * _LONGEST
_ENDED = re.compile(rb"consumer with ID [^,]*\[id=([0-9]{1,20}),.*closed=true\] disconnected by server", re.DOTALL)
"""The words of Artemis when it cannot convert a message for a consumer. If somebody deletes the queue, the words are
the same, but with ``closed=false``."""
_NOT_ACKNOWLEDGED = re.compile(rb"\nmessage:AMQ339018 Error acknowledging message ([0-9]{1,20})(?:,|\\c)")
"""The words of Artemis when an ACK came while it was ending the consumer."""
_LONGEST_END = 1 << 16
_ADVICE = (
    "Artemis cannot convert a message of this queue for STOMP: an object with a list or a dict inside, a stream with"
    " bytes, or a text that is not UTF-8, which was sent over AMQP; receive it over amqp://, or move it (S101)"
)


class ConsumerEnded(ConnectionLostException):
    """The connection was lost, because Artemis ended a consumer for which it cannot convert a message.

    The error has no code, because no other link is to blame (S104).

    Args:
        number: the number of the consumer at the broker. The ids of the messages of this consumer begin with it.
        names: the names that a destination of the consumer may have. If there are none, the broker only refused an ACK,
            and there may be another reason.
    """

    def __init__(self, number: bytes, names: tuple[str, ...]) -> None:
        what = f"ended the consumer of {names[0][:_LONGEST]!r}" if names else "refused an ACK (AMQ339018)"
        super().__init__(f"the broker ended the connection, because it {what}; probably {_ADVICE}")
        self.number = number
        self.names = names


def ended_consumer(head: bytes, body: bytes) -> ConsumerEnded | None:
    """Return the error for an ERROR frame that says that Artemis ended a consumer, or ``None`` for other frames."""
    refused = _NOT_ACKNOWLEDGED.search(head)
    if refused is not None:
        return ConsumerEnded(refused[1], ())
    ended = _ENDED.match(body, 0, _LONGEST_END)
    if ended is None:
        return None
    described = ended[0].decode("utf-8", "replace").partition("[address=")[2]
    address, _, rest = described.partition(", queue=QueueImpl[name=")
    queue, found, _ = rest.partition(", postOffice=")
    return ConsumerEnded(ended[1], (address, f"{address}::{queue}") if found else ())


def unconvertible(queue: str) -> ResourceAllocationException:
    """Return the error of a consumer that is closed, because the broker cannot convert a message of its queue."""
    return ResourceAllocationException(
        f"pyjmsack closed the consumer of {queue!r}, because Artemis ended the connection again and again when it"
        f" delivered from this queue: {_ADVICE}"
    )


def error_of(head: bytes, body: bytes, what: str) -> JMSException:
    """Return the exception for an ERROR frame. The body of an ERROR of ActiveMQ Classic is a stack trace, whose first
    line names the exception.
    """
    raw = raw_header(head, b"\nmessage:") or b""  # Artemis may put a whole message into this header
    try:
        shown = raw[:_SHOWN].decode("utf-8", "replace").rstrip("\\")
        text = decode_head(f"\nmessage:{shown}".encode())["message"].strip()
    except MessageFormatException:
        text = ""
    trace = body[:_LONGEST].decode("utf-8", "replace").strip()
    text = text or (trace or "no reason given").splitlines()[0]
    own = [_FOREIGN.sub("", part) for part in (text, trace)]
    kind = next((kind for words, kind in _BY_WORDS if any(map(words.search, own))), JMSException)
    code = _CODE.search(text)
    if text.startswith(_UNNAMED):
        text = f"{own[0].strip()} ({_REASONS})"
    return kind(f"{what}: {text[:_LONGEST]}", error_code=code and code[0])

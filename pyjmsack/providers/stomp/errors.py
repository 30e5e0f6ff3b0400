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

__all__ = ["error_of"]

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

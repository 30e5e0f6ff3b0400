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
from pyjmsack.providers.stomp.frames import decode_head, raw_header

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
    kind = next((kind for words, kind in _BY_WORDS if words.search(text) or words.search(trace)), JMSException)
    code = _CODE.search(text)
    return kind(f"{what}: {text[:_LONGEST]}", error_code=code and code[0])

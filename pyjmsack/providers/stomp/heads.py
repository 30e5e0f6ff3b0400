"""Header lines on their way out: what a frame cannot carry, and what a broker answers by closing, is refused here.

A broker that closes says nothing, and a connection in a ``failover:`` URL would send the same again and again.
"""

from __future__ import annotations

from pyjmsack.errors import InvalidClientIDException, JMSSecurityException, MessageFormatException
from pyjmsack.message.stomp_names import property_name
from pyjmsack.providers.stomp.frames import Limits

__all__ = ["CONNECT_LINE", "check_connect_line", "check_size", "encode_head"]

CONNECT_LINE = 10240
"""Bytes of a header line of CONNECT, which leaves before the broker has said who it is: ActiveMQ Classic takes no
more."""

_ADDED = 4
"""Lines that the connection puts before these, at most: destination, its type, receipt, transaction."""


def encode_head(text: str, limits: Limits | None) -> bytes:
    """Return header lines, each with its line feed, as they are sent.

    Args:
        text: the lines, escaped.
        limits: of the broker; ``None`` if it has none that matter.

    Raises:
        MessageFormatException: a NUL, half a surrogate pair, a line too long or too many lines; the text names the
            property or header.
    """
    try:
        head = text.encode()
    except UnicodeEncodeError as error:
        what = _name_at(text, error.start)
        raise MessageFormatException(f"{what} is not Unicode: {text[error.start]!r} is half a character") from error
    if b"\0" in head:
        raise MessageFormatException(f"{_name_at(text, text.index(chr(0)))} has a NUL, which STOMP cannot carry")
    if limits is not None and len(head) > limits.headers:  # one long line or many lines need so much
        _check_lines(head, limits)
    return head


def _check_lines(head: bytes, limits: Limits) -> None:
    if head.count(b"\n") > limits.headers - _ADDED:
        raise MessageFormatException(
            f"the message has too many properties: this broker takes {limits.headers} header lines in a STOMP frame"
        )
    for line in head.split(b"\n"):
        if len(line) > limits.header_line:
            text = line.decode()
            raise MessageFormatException(
                f"{_name_at(text, 0)} is too long: {len(line)} bytes as a header line, this broker takes"
                f" {limits.header_line}"
            )


def check_connect_line(name: str, value: str) -> None:
    """Raise unless a header line of CONNECT can be sent: it has no escapes, for the sake of STOMP 1.0.

    Raises:
        InvalidClientIDException, JMSSecurityException: a line break, a NUL, half a character, or too long; the text
            names the header and does not show the value, which may be a password.
    """
    kind = InvalidClientIDException if name == "client-id" else JMSSecurityException
    if any(character in value for character in "\r\n\0"):
        raise kind(f"the {name} of this connection has a line break or NUL, which STOMP cannot carry")
    try:
        size = len(value.encode()) + len(name) + 1
    except UnicodeEncodeError:
        raise kind(f"the {name} of this connection is not Unicode: it has half a character") from None
    if size > CONNECT_LINE:
        raise kind(
            f"the {name} of this connection is too long: {size:,} bytes as a header line of CONNECT, at most"
            f" {CONNECT_LINE:,} can be sent"
        )


def check_size(payload: bytes, limits: Limits | None) -> bytes:
    """Return a frame that the broker takes.

    Raises:
        MessageFormatException: it is too large.
    """
    if limits is not None and len(payload) > limits.body:
        raise MessageFormatException(
            f"the message is too large: a frame of {len(payload)} bytes, this broker takes {limits.body}; if its own"
            " limit is another one (wireFormat.maxFrameSize), set stomp.maxFrameSize"
        )
    return payload


def _name_at(text: str, position: int) -> str:
    """Return what a line stands for."""
    start = text.rfind("\n", 0, position) + 1
    return f"the property or header {property_name(text[start:].partition(':')[0])!r}"

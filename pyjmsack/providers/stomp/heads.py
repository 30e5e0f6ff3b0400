"""Refuses outgoing header lines that a frame cannot carry, or for which a broker would close the connection.

A broker that closes the connection gives no reason, and a failover connection would send the same frame again and
again.
"""

from __future__ import annotations

from typing import TypeVar

from pyjmsack.errors import InvalidClientIDException, JMSSecurityException, MessageFormatException
from pyjmsack.providers.stomp.frames import Limits
from pyjmsack.spi.envelope import StreamedPayload
from pyjmsack.spi.stomp_names import property_name

P = TypeVar("P", bytes, StreamedPayload)

__all__ = ["CONNECT_LINE", "check_connect_line", "check_copy", "check_size", "encode_head"]

CONNECT_LINE = 10240
"""The largest number of bytes of a header line of CONNECT, the first frame of a connection. This is the limit of
ActiveMQ Classic. The client applies this limit to all brokers, because it sends CONNECT before it knows the broker."""

_SHOWN = 80
"""The largest number of characters of a name in an error text."""
_ADDED = 24
"""The largest number of header lines that the connection and the broker add to the lines of the message. Examples are
destination, receipt and ack."""


def encode_head(text: str, limits: Limits | None) -> bytes:
    """Return the bytes of header lines, each with its line feed.

    Args:
        text: the lines, escaped.
        limits: the limits of the broker. ``None`` if no limit has to be checked.

    Raises:
        MessageFormatException: the lines contain a NUL or half a surrogate pair, a line is too long, or there are too
            many lines. The text names the property or header.
    """
    try:
        head = text.encode()
    except UnicodeEncodeError as error:
        what = _name_at(text, error.start)
        raise MessageFormatException(f"{what} is not Unicode: {text[error.start]!r} is half a character") from error
    if head.find(b"\0") >= 0:  # ``in`` takes twice as long for bytes
        raise MessageFormatException(f"{_name_at(text, text.index(chr(0)))} contains a NUL, which STOMP cannot carry")
    if limits is not None and len(head) > limits.headers:  # only a long line or many lines are so large
        _check_lines(head, limits)
    return head


def _check_lines(head: bytes, limits: Limits) -> None:
    lines = head.count(b"\n")
    if lines > limits.headers - _ADDED:
        raise MessageFormatException(
            f"the message has too many properties: they need {lines} header lines of STOMP. This broker or a receiver"
            f" over STOMP accepts at most {limits.headers} lines (stomp.maxHeaders), and {_ADDED} of these are kept for"
            " lines that the client and the broker add"
        )
    for line in head.split(b"\n"):
        if len(line) > limits.header_line:
            text = line.decode("utf-8", "replace")
            raise MessageFormatException(
                f"{_name_at(text, 0)} is too long: {len(line)} bytes as a header line. This broker or a receiver over"
                f" STOMP accepts at most {limits.header_line} bytes (stomp.maxHeaderLength)"
            )


def check_connect_line(name: str, value: str) -> None:
    """Raise an error if a header line of CONNECT cannot be sent. CONNECT has no escapes, because brokers of STOMP 1.0
    must be able to read it.

    Raises:
        InvalidClientIDException, JMSSecurityException: the value contains a line break, a NUL or half a character, or
            is too long. The text names the header and does not show the value, which may be a password.
    """
    kind = InvalidClientIDException if name == "client-id" else JMSSecurityException
    if any(character in value for character in "\r\n\0"):
        raise kind(f"the {name} of this connection contains a line break or NUL, which STOMP cannot carry")
    try:
        size = len(value.encode()) + len(name) + 1
    except UnicodeEncodeError:
        raise kind(f"the {name} of this connection is not Unicode: it contains half a character") from None
    if size > CONNECT_LINE:
        raise kind(
            f"the {name} of this connection is too long: {size:,} bytes as a header line of CONNECT;"
            f" expected at most {CONNECT_LINE:,}"
        )


def check_size(payload: P, limits: Limits | None) -> P:
    """Return the payload, if the broker and receivers over STOMP accept a frame of this size.

    Raises:
        MessageFormatException: the frame is too large.
    """
    if limits is not None and len(payload) > limits.body:
        raise MessageFormatException(
            f"the message is too large: its frame has {len(payload)} bytes; expected at most {limits.body}, which"
            " brokers and STOMP receivers accept by default. If their limit is higher (wireFormat.maxFrameSize), set"
            " stomp.maxFrameSize to the same value"
        )
    return payload


def check_copy(payload: bytes, limits: Limits | None, longest_head: int | None) -> None:
    """Raise an error if this broker would not accept the copy of a message for its dead-letter queue.

    Args:
        payload: the rest of the SEND frame.
        limits: the limits of the broker for one frame. ``None`` if no limit has to be checked.
        longest_head: the largest number of bytes of header lines that the broker can store. For each line, four bytes
            are added to its length.

    Raises:
        MessageFormatException: the broker would end the connection because of this frame.
    """
    end = payload.find(b"\n\n")
    needed = end + 4 * payload.count(b"\n", 0, end)
    if longest_head is not None and needed > longest_head:
        raise MessageFormatException(f"its header lines need {needed} bytes, which is more than {longest_head}")
    if limits is not None:
        if end > limits.headers:
            _check_lines(payload[:end], limits)
        check_size(payload, limits)


def _name_at(text: str, position: int) -> str:
    """Return the name of the property or header whose line contains this position. A long name is cut."""
    start = text.rfind("\n", 0, position) + 1
    name = property_name(text[start:].partition(":")[0])
    return f"the property or header {name[:_SHOWN]!r}{'...' if len(name) > _SHOWN else ''}"

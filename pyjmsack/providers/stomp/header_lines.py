"""Reads and writes the header lines of STOMP frames, with their escapes (STOMP 1.2, Value Encoding)."""

from __future__ import annotations

import re

from pyjmsack.errors import MessageFormatException

__all__ = [
    "FORGED",
    "NAMING",
    "decode_head",
    "escape",
    "has_colons",
    "has_legal_head",
    "is_forged",
    "lines_that_name",
    "own_line_first",
    "raw_header",
    "unescape",
]

FORGED = b"\n\n"
"""The mark behind header lines that are not to be trusted (:func:`is_forged`). No header lines end like this."""
NAMING = re.compile(
    rb"\n(subscription|message-id|ack|content-length|redelivered|persistent|priority|expires|timestamp|browser"
    rb"|NATIVE_MESSAGE_ID|JMS_AMQP_NATIVE):[^\n]*"
)
"""The header lines that are needed to acknowledge, check and recognise a message."""

_BACKSLASH = "\udc5c"
"""Stands for an escaped backslash while the other escapes are replaced. No decoded text has this half of a
character."""
_ALL_BUT_COLONS = bytes({*range(256)} - {*b"\n:"})


def lines_that_name(head: bytes) -> bytes:
    """Return the header lines that are needed to acknowledge, check and recognise a message. If several lines have the
    same name, only the first is returned. The mark of forged lines is kept."""
    lines: dict[bytes, bytes] = {}
    for line in NAMING.finditer(head):
        lines.setdefault(line[1], line[0])
    return b"".join(lines.values()) + (FORGED if is_forged(head) else b"")


def raw_header(head: bytes, key: bytes) -> bytes | None:
    r"""Return the value of the first header line that begins with ``key`` (``b"\nname:"``). Its escapes are kept."""
    start = head.find(key)
    if start < 0:
        return None
    start += len(key)
    end = head.find(b"\n", start)
    value = head[start:] if end < 0 else head[start:end]
    return value[:-1] if value.endswith(b"\r") else value


def own_line_first(head: bytes, own_line: bytes) -> bytes:
    """Return header lines in which the line that the broker wrote comes before forged lines of the same name, because
    the first of several lines counts. The forged line stays, so that :func:`is_forged` sees it.

    Args:
        head: the header lines of a MESSAGE of ActiveMQ Classic.
        own_line: the beginning of the line ``subscription`` of the broker, which no producer can write.
    """
    start = head.find(own_line)
    if start <= head.find(b"\nsubscription:"):
        return head
    end = head.find(b"\n", start + 1)
    return (head[start:] if end < 0 else head[start:end]) + head


def is_forged(head: bytes) -> bool:
    """Return True if a producer has probably written header lines into a MESSAGE of ActiveMQ Classic, by line feeds in
    the name of a property. Nobody knows which lines are those of the broker. So an ACK with the value of such a line
    could acknowledge a message of another consumer."""
    return (
        head.count(b"\nack:") > 1
        or head.count(b"\nmessage-id:") > 1
        or head.count(b"\nsubscription:") > 1
        or head.endswith(FORGED)
    )


def has_colons(head: bytes) -> bool:
    """Return True if each header line has a colon."""
    return b"\n\n" not in head.translate(None, _ALL_BUT_COLONS) + b"\n"  # quicker than a look at each line


def has_legal_head(head: bytes) -> bool:
    """Return True if each header line has a colon, and each backslash begins an escape of STOMP. :func:`decode_head`
    accepts only such lines."""
    return has_colons(head) and _has_legal_escapes(head)


def _has_legal_escapes(head: bytes) -> bool:
    """Return True if each backslash begins an escape of STOMP."""
    backslashes = head.count(b"\\")
    if backslashes == head.count(b"\\c"):  # most heads have escaped colons only
        return True
    single = head.replace(b"\\\\", b"")
    return single.count(b"\\") == sum(map(single.count, (b"\\c", b"\\n", b"\\r")))


def decode_head(head: bytes) -> dict[str, str]:
    """Return all header lines. If several lines have the same name, the first line counts (STOMP 1.2, Repeated Header
    Entries).

    Raises:
        MessageFormatException: the lines are not UTF-8, a line has no colon, or a backslash begins no escape of STOMP.
    """
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        raise MessageFormatException(f"header lines are not UTF-8 at byte {error.start}") from error
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    lines.reverse()
    lines.pop()  # the empty part before the first line feed
    try:
        pairs = dict([line.split(":", 1) for line in lines])
    except ValueError as error:
        raise MessageFormatException("a header line has no colon") from error
    if "\\" in text:
        if not _has_legal_escapes(head):
            unescape(text)  # it raises, also for a line that does not count because its name came before
        return {unescape(name): unescape(value) for name, value in pairs.items()}
    return pairs


def unescape(text: str) -> str:
    """Return the text of a header line without the escapes of STOMP 1.2.

    Raises:
        MessageFormatException: a backslash begins no escape of STOMP.
    """
    if "\\" not in text:
        return text
    # a call for each escape would take 30 times as long
    text = text.replace("\\\\", _BACKSLASH).replace("\\c", ":").replace("\\n", "\n").replace("\\r", "\r")
    wrong = text.find("\\")
    if wrong >= 0:
        raise MessageFormatException(f"{text[wrong : wrong + 2]!r} in a header line is not an escape of STOMP")
    return text.replace(_BACKSLASH, "\\")


def escape(text: str) -> str:
    """Return ``text`` with the escapes of a header line of STOMP 1.2. STOMP 1.1 has the same escapes, except the escape
    for a carriage return."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if ":" in text:
        text = text.replace(":", "\\c")
    if "\n" in text:
        text = text.replace("\n", "\\n")
    if "\r" in text:
        text = text.replace("\r", "\\r")
    return text

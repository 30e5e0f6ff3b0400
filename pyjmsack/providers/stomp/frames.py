"""STOMP 1.1 and 1.2 frames: out of bytes that arrive in pieces of any size, and the escapes of header lines.

Nothing is decoded here that routing does not need: a frame is its command, its header lines as they came, and its body.
Every byte is looked at a bounded number of times, and what a peer can make us keep is bounded by :class:`Limits`.

stomp.py is not used for this: its parser takes 56 microseconds a frame against 2 here, and copies a growing buffer for
every piece. It is the oracle of the tests instead.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pyjmsack.errors import ConnectionLostException, MessageFormatException

__all__ = ["Frame", "FrameParser", "Limits", "decode_head", "escape", "raw_header"]

Frame = tuple[bytes, bytes, bytes]
"""Command; header lines, each with the line feed before it; body."""

_COMMANDS = frozenset((b"MESSAGE", b"RECEIPT", b"ERROR", b"CONNECTED"))
_HEAD_END = re.compile(rb"\n\r?\n")
_NEAR = 2048
"""Where most heads end; only beyond is the slower search worth its price."""

_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)
_UNESCAPED = {"\\": "\\", "n": "\n", "r": "\r", "c": ":"}
_DIGITS = 12
"""Of a content-length."""


class Limits(NamedTuple):
    """What a peer may make us keep, in bytes but for ``headers``."""

    body: int = 104857600
    headers: int = 1000
    header_line: int = 65536

    @property
    def head(self) -> int:
        """All header lines of a frame together."""
        return 16 * self.header_line


class FrameParser:
    """Bytes in, frames out.

    A frame that is not complete waits in ``_pending``, and is looked at again only when it can have become complete.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pending = bytearray()
        self._wanted = 0
        """Size at which the pending frame is complete, where it is known."""
        self._body = 0
        """Where the pending frame's body starts; 0 = the head is not complete."""
        self._searched = 0
        """Up to where the end was looked for."""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that these bytes complete.

        Raises:
            ConnectionLostException: this is no STOMP, or more than the limits allow; the stream is of no use any more.
        """
        pending = self._pending
        if pending:
            pending += data
            if not self._may_be_complete():
                return []
            data = bytes(pending)
            pending.clear()
        self._wanted = self._body = self._searched = 0
        return self._split(data)

    def _may_be_complete(self) -> bool:
        pending, limits = self._pending, self._limits
        if self._wanted:
            return len(pending) >= self._wanted
        if self._body:
            found = pending.find(b"\0", self._searched) >= 0
            self._searched = len(pending)
            if not found and len(pending) - self._body > limits.body:
                raise _too_large(limits.body)
            return found
        found = _HEAD_END.search(pending, max(0, self._searched - 2)) is not None
        self._searched = len(pending)
        if not found:
            self._check_open_head(pending, 0)
        return found

    def _split(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        position, size = 0, len(data)
        while position < size:
            if data[position] == 10 or data[position] == 13:  # a heart-beat, or the line end that may follow a frame
                position += 1
                continue
            end, body = _head_end(data, position)
            if end < 0:
                self._check_open_head(data, position)
                self._keep(data, position)
                break
            command_end = data.find(b"\n", position)
            command, head = data[position:command_end], data[command_end:end]
            if command not in _COMMANDS:
                command = _command(command)
            if len(head) > self._limits.headers:  # a header line has at least two bytes
                self._check_head(head)
            length = raw_header(head, b"\ncontent-length:")
            if length is None:
                body_end = data.find(b"\0", body)
                if body_end < 0:
                    self._keep(data, position, body=body - position)
                    break
            else:
                body_end = body + self._length(length)
                if body_end >= size:
                    self._keep(data, position, body=body - position, wanted=body_end + 1 - position)
                    break
                if data[body_end]:
                    raise _malformed("the body is longer than its content-length")
            frames.append((command, head, data[body:body_end]))
            position = body_end + 1
        return frames

    def _keep(self, data: bytes, position: int, *, body: int = 0, wanted: int = 0) -> None:
        if body and not wanted and len(data) - position - body > self._limits.body:
            raise _too_large(self._limits.body)
        self._pending += data[position:] if position else data
        self._body, self._wanted = body, wanted
        self._searched = len(self._pending)

    def _length(self, text: bytes) -> int:
        if not text.isdigit() or len(text) > _DIGITS:
            raise _malformed(f"content-length {text[:40]!r}: expected a number")
        length = int(text)
        if length > self._limits.body:
            raise _too_large(self._limits.body)
        return length

    def _check_open_head(self, data: bytes | bytearray, position: int) -> None:
        if len(data) - position > self._limits.head:
            raise _malformed(f"the header lines exceed {self._limits.head} bytes (16 x stomp.maxHeaderLength)")

    def _check_head(self, head: bytes) -> None:
        limits = self._limits
        if head.count(b"\n") > limits.headers:
            raise _malformed(f"more than {limits.headers} header lines (stomp.maxHeaders)")
        if len(head) > limits.header_line:
            if len(head) > limits.head:
                self._check_open_head(head, 0)
            if max(map(len, head.split(b"\n"))) > limits.header_line:
                raise _malformed(f"a header line longer than {limits.header_line} bytes (stomp.maxHeaderLength)")


def _head_end(data: bytes, position: int) -> tuple[int, int]:
    """Return where the header lines end and where the body starts; -1 if the head is not complete."""
    end = data.find(b"\n\n", position, position + _NEAR)
    if end >= 0 and data.find(b"\n\r\n", position, end) < 0:
        return end, end + 2
    match = _HEAD_END.search(data, position)
    return (-1, -1) if match is None else match.span()


def _command(raw: bytes) -> bytes:
    command = raw[:-1] if raw.endswith(b"\r") else raw
    if command not in _COMMANDS:
        raise _malformed(f"{command[:40]!r} is no frame that a broker sends")
    return command


def _malformed(text: str) -> ConnectionLostException:
    return ConnectionLostException(f"the peer sent what is not a STOMP frame: {text}")


def _too_large(limit: int) -> ConnectionLostException:
    return ConnectionLostException(f"the peer sent a frame with a body over stomp.maxFrameSize ({limit} bytes)")


def raw_header(head: bytes, key: bytes) -> bytes | None:
    r"""Return the value of the first such header line, still escaped; ``key`` is ``b"\nname:"``."""
    start = head.find(key)
    if start < 0:
        return None
    start += len(key)
    end = head.find(b"\n", start)
    value = head[start:] if end < 0 else head[start:end]
    return value[:-1] if value.endswith(b"\r") else value


def decode_head(head: bytes) -> dict[str, str]:
    """Return all header lines; of lines with one name the first counts (STOMP 1.2, Repeated Header Entries).

    Raises:
        MessageFormatException: not UTF-8, no colon in a line, or an escape that STOMP does not have.
    """
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        raise MessageFormatException(f"header lines are not UTF-8 at byte {error.start}") from error
    lines = text.split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    lines.reverse()
    lines.pop()  # what was before the first line feed: nothing
    try:
        pairs = dict([line.split(":", 1) for line in lines])
    except ValueError as error:
        raise MessageFormatException("a header line has no colon") from error
    if "\\" in text:
        return {_unescape(name): _unescape(value) for name, value in pairs.items()}
    return pairs


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_replacement, text) if "\\" in text else text


def _replacement(match: re.Match[str]) -> str:
    plain = _UNESCAPED.get(match[1])
    if plain is None:
        raise MessageFormatException(f"{match[0]!r} in a header line is no escape of STOMP")
    return plain


def escape(text: str) -> str:
    """Return ``text`` as a header line of 1.2 holds it; 1.1 has no escape for the carriage return alone."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if ":" in text:
        text = text.replace(":", "\\c")
    if "\n" in text:
        text = text.replace("\n", "\\n")
    if "\r" in text:
        text = text.replace("\r", "\\r")
    return text

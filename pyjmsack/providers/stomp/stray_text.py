"""Recognises the rest of a text that contains a NUL, among the frames of ActiveMQ Classic (S166).

Classic writes a text of an OpenWire client into a MESSAGE frame without a content-length. By the protocol the first NUL
ends this frame (STOMP 1.2, Body). If the text contains a NUL, the rest of the text stands where the next frame should
be. So the producer of a message could write frames for everybody on the connection, or end the connection.

Therefore the name of each receipt and of each subscription begins with a secret, which only the broker knows. What
follows a MESSAGE and is no frame with the secret is stray text. It ends at a NUL before a line with a command. No
decision waits for more bytes than the header lines of one frame.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["StrayText"]

_LINES: Final = (b"MESSAGE\n", b"MESSAGE\r\n", b"RECEIPT\n", b"RECEIPT\r\n", b"ERROR\n", b"ERROR\r\n")
_LONGEST_LINE: Final = len(b"MESSAGE\r\n")
_NEXT: Final = re.compile(rb"\0(?:\r?\n)+(?=(?:MESSAGE|RECEIPT|ERROR)\r?\n)")
"""The NUL before a frame, and the line ends between. Over TCP Classic writes a line end behind each frame."""
_INNER: Final = re.compile(rb"\n(?=(?:MESSAGE|RECEIPT|ERROR)\r?\n)")
"""The byte before a line with a command. Header lines contain no such line, because each header line has a colon."""
_COMMAND: Final = re.compile(rb"(MESSAGE|RECEIPT|ERROR)\r?\n")
_HEAD_END: Final = re.compile(rb"\n\r?\n")


class StrayText:
    """Decides which bytes are stray text. One object belongs to one connection.

    Args:
        secret: the beginning of the names of all receipts and subscriptions of this connection.
    """

    def __init__(self, secret: bytes) -> None:
        subscription, receipt = b"\nsubscription:" + secret, b"\nreceipt-id:" + secret
        self._proofs = {b"MESSAGE": subscription, b"RECEIPT": receipt, b"ERROR": receipt}
        self._secret = b":" + secret
        line = rb"\0(?:\r?\n)+(?:MESSAGE|RECEIPT|ERROR)\r?\n(?:[^\0]*\n)?(?:subscription|receipt-id):"
        self._frame = re.compile(line + re.escape(secret))
        self.expected = False
        """True if nothing but stray text followed the last MESSAGE. Only then stray text may follow."""
        self.inside = False
        """True if the next bytes are stray text."""
        self.doubtful = False
        """True if bytes were skipped that may be no part of the text: header lines that are too long."""

    def follow(self) -> None:
        """Expect stray text, because a MESSAGE was read."""
        self.expected, self.doubtful = True, False

    def is_message(self, data: bytes, position: int, end: int) -> bool:
        """Return True if a MESSAGE of the broker begins at ``position``. This is a quick look, as nearly all frames
        behind a MESSAGE are such frames. ``end`` is the end of the header lines, or -1."""
        head = data[position : max(position, end)]
        return (
            not self.inside
            and head.startswith(b"MESSAGE\n")
            and head.find(self._proofs[b"MESSAGE"]) >= 0
            and head.find(b"\nMESSAGE\n") < 0
            and head.find(b"\nRECEIPT\n") < 0
            and head.find(b"\nERROR\n") < 0
        )

    def holds_frame(self, data: bytes, body: int, end: int) -> bool:
        """Return True if a frame of the broker is in this body, so that the length of the body is wrong. No producer
        knows the secret."""
        return data.find(self._secret, body, end) >= 0 and self._frame.search(data, body, end) is not None

    def frame_at(self, data: bytes, position: int, most: int) -> int:
        """Return the position of the next frame behind a MESSAGE. Stray text stands before it.

        Args:
            data: received bytes.
            position: where a frame or stray text begins. Not the position of a line end.
            most: the largest number of bytes of header lines that wait for more bytes.

        Returns:
            The position of a frame, or of bytes that may be the beginning of a frame; the end of the data if all
            is stray text. ``inside`` is then true if the stray text goes on behind the data.
        """
        size = len(data)
        while True:
            if self.inside:
                position = self._skip(data, position)
            if position >= size:
                return size
            if self._may_begin_frame(data, position):
                head_end = _HEAD_END.search(data, position)
                end = size if head_end is None else head_end.start()
                last = self._last_command(data, position, end)
                if last > position:
                    position = last
                    continue
                if self._is_frame(data, position, end, head_end is not None):
                    return position
                if head_end is None:
                    if size - position <= most:
                        return position
                    self.doubtful = True
            self.inside = True

    def _is_frame(self, data: bytes, position: int, end: int, complete: bool) -> bool:
        """Return True if these header lines come from the broker.

        Classic gives some ERROR frames no mark of this client, so each ERROR counts.
        """
        line = _COMMAND.match(data, position)
        command = b"" if line is None else line[1]
        if data.find(self._proofs.get(command, b"\n\n"), position, end) >= 0:  # no header lines have an empty line
            return True
        return command == b"ERROR" and complete

    def _may_begin_frame(self, data: bytes | bytearray, position: int) -> bool:
        """Return True if the bytes at ``position`` are a line with a command, or may become one."""
        start = bytes(data[position : position + _LONGEST_LINE])
        if position + len(start) == len(data) and any(line.startswith(start) for line in _LINES):
            return True
        return start.startswith(_LINES)

    def _last_command(self, data: bytes, position: int, end: int) -> int:
        """Return the position of the last line with a command in header lines that begin at ``position``.

        Header lines contain no such line, because each of them has a colon. But a stray head may be incomplete, and
        then the head of the next frame completes it.
        """
        for found in _INNER.finditer(data, position, end + 1):
            position = found.end()
        return position

    def _skip(self, data: bytes, position: int) -> int:
        """Skip stray text. Return the position where a frame may begin, or the end of the data."""
        found = _NEXT.search(data, position)
        if found is not None:
            self.inside = False
            return found.end()
        nul = data.rfind(b"\0", position)
        if nul >= 0:
            begin = nul + 1
            while begin < len(data) and data[begin] in b"\r\n":
                begin += 1
            if begin == len(data) or self._may_begin_frame(data, begin):
                self.inside = False
                return begin
        return len(data)

    def is_stray(self, data: bytes | bytearray) -> bool:
        """Return True if these bytes, which wait for the rest of a frame, are stray text."""
        return self.expected and not self._may_begin_frame(data, 0)

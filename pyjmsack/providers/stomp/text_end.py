"""Finds the end of the body of a message, although the body may contain NULs and a wrong length (S166).

ActiveMQ Classic writes a text of an OpenWire client into a MESSAGE frame without a content-length. By the protocol the
first NUL ends this frame (STOMP 1.2, Body). If the text contains a NUL, the rest of the text would be read as frames.
So the producer of a message could write RECEIPT and MESSAGE frames for everybody on the connection, or end the
connection.

Therefore the name of each receipt and of each subscription begins with a secret, which only the broker knows. A NUL
ends the body if a frame with the secret follows. A NUL also ends the body if nothing follows yet and it is the first
NUL. In all other cases the NUL is a part of the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from pyjmsack.providers.stomp.header_lines import raw_header

__all__ = ["TextEnd"]

_MOST_SUSPECTS: Final = 1000
"""The largest number of suspects that are remembered. If there are more, the oldest one is forgotten."""
_LONGEST_HEAD: Final = 1 << 20
"""If more bytes than this follow a NUL and do not decide whether the NUL ends the body, the NUL ends it."""
_LINE_ENDS: Final = re.compile(rb"(?:\r?\n)*")
_COMMANDS: Final = re.compile(rb"(MESSAGE|RECEIPT|ERROR)\r?\n")
_LONGEST_COMMAND: Final = len(b"MESSAGE\r")
_NEXT_MESSAGE: Final = b"\nMESSAGE\n"
_NEAR: Final = 1000
"""Most MESSAGE frames have the name of their subscription within this number of bytes."""
_HEAD_END: Final = re.compile(rb"\n\r?\n")

_suspects: dict[tuple[str, int], None] = {}
"""The messages after which a connection ended because of an ERROR without a receipt, by broker and hash of the id of
the message. All connections of the process share this dictionary, because the message comes again on the next
connection."""


class TextEnd:
    """Decides which NUL ends the body of a message. One object belongs to one connection.

    Args:
        secret: the beginning of the names of all receipts and subscriptions of this connection.
        place: the address of the broker.
    """

    def __init__(self, secret: bytes, place: str) -> None:
        subscription, receipt = b"\nsubscription:" + secret, b"\nreceipt-id:" + secret
        self._proofs = {b"MESSAGE": subscription, b"RECEIPT": receipt, b"ERROR": receipt}
        self._place = place
        self._patterns: dict[bytes, re.Pattern[bytes]] = {}
        self._before_error: tuple[str, int] | None = None
        self._refuted = False
        """True if a NUL of the pending body did not end the body."""
        self.searched = 0
        """If the end of a body was not found yet, the number of bytes of its frame in which no end is."""

    def search(self, data: bytes, frame: int, nul: int, head: bytes) -> int:
        """Return the position of the NUL that ends a body, or -1 if more bytes are needed.

        Args:
            data: received bytes.
            frame: the position where the frame begins.
            nul: the position of the first NUL that may end the body, and is behind the ``searched`` bytes.
            head: the header lines of the message.
        """
        if data.startswith(_NEXT_MESSAGE, nul + 1):  # a quick look, because nearly all texts end so
            begin = nul + len(_NEXT_MESSAGE)
            proof = data.find(self._proofs[b"MESSAGE"], begin, begin + _NEAR)
            ends: bool | None = True if proof >= 0 and data.find(b"\0", begin, proof) < 0 else None
        else:
            ends = None
        found = nul
        while not ends:
            ends = self._ends(data, found + 1, head)
            if ends is None:
                self.searched = found - frame
                return -1
            if not ends:
                self._refuted = True
                hop = self._candidates(head).search(data, found + 1)
                if hop is None:
                    self.searched = len(data) - frame
                    return -1
                found = hop.start()
        self._refuted, self.searched = False, 0
        return found

    def _candidates(self, head: bytes) -> re.Pattern[bytes]:
        """Return a pattern for a NUL that may end the body. It finds the last NUL, and each NUL before a frame with the
        secret. It reads each byte only a few times, so a text of many NULs costs little time."""
        other = b"" if self._key(head) in _suspects else rb"|ERROR\r?\n[^\0]*?\n\r?\n"
        pattern = self._patterns.get(other)
        if pattern is None:
            proofs = [command + rb"\r?(?=\n)[^\0]*?" + re.escape(proof) for command, proof in self._proofs.items()]
            pattern = re.compile(rb"\0(?:[^\0]*\Z|(?:\r?\n)*(?![\r\n])(?:%b%b))" % (b"|".join(proofs), other))
            self._patterns[other] = pattern
        return pattern

    def _key(self, head: bytes) -> tuple[str, int]:
        return self._place, hash(raw_header(head, b"\nmessage-id:"))

    def _ends(self, data: bytes, position: int, head: bytes) -> bool | None:
        """Return True if a NUL before ``position`` ends the body, and ``None`` if more bytes are needed to decide."""
        size = len(data)
        begin = _LINE_ENDS.match(data, position).end()  # type: ignore[union-attr]  # the pattern also matches nothing
        if begin == size:
            return None if self._refuted else True
        command = _COMMANDS.match(data, begin)
        if command is None:
            rest = bytes(data[begin : begin + _LONGEST_COMMAND])
            return None if begin + len(rest) == size and any(map(_begins_with(rest), self._proofs)) else False
        next_nul = data.find(b"\0", begin)
        stop = size if next_nul < 0 else next_nul
        if data.find(self._proofs[command[1]], begin, stop) >= 0:
            return True
        has_head = _HEAD_END.search(data, begin, stop) is not None
        if next_nul < 0 and not has_head:
            return True if size - begin > _LONGEST_HEAD else None
        key = self._key(head)
        if command[1] != b"ERROR" or not has_head or key in _suspects:
            return False
        self._before_error = key
        return True

    def convict(self) -> bool:
        """Remember the message whose body ended before an ERROR without a receipt, because this ERROR has ended the
        connection. If the same message comes again before such an ERROR, the ERROR is a part of its body.

        Returns:
            True if there is such a message. The reason that the ERROR gives may then be an invention of the producer.
        """
        key = self._before_error
        if key is None:
            return False
        _suspects[key] = None
        for oldest in list(_suspects)[:-_MOST_SUSPECTS]:
            _suspects.pop(oldest, None)
        return True


def _begins_with(rest: bytes) -> Callable[[bytes], bool]:
    """Return a function that tells whether the line of a command begins with ``rest``."""
    return lambda command: rest == b"\r" or (command + b"\n").startswith(rest) or (command + b"\r\n").startswith(rest)

"""Remembers the last message of a connection on which the rest of a text may follow a message (S166).

ActiveMQ Classic writes the text of an OpenWire client without its length. If the text contains a NUL, its rest stands
where the next frame should be. ``stray_text.py`` says what becomes of such a message.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pyjmsack.providers.stomp.frames import Frame, Refusal
from pyjmsack.providers.stomp.header_lines import FORGED, raw_header

__all__ = ["LastMessage", "Named"]

_ENDS = 3
"""The number of connections that may end by an error directly behind a message. The client refuses it at the last
one."""
_LATE_ENDS = 10
"""The same if the error comes in a later burst than the message. Such an error usually has another cause."""

_LINES = (b"\ndestination:", b"\nexpires:", b"\nmessage-id:", b"\npriority:", b"\ntimestamp:")
"""The lines that Classic writes into each MESSAGE."""
_FRAME = re.compile(rb"\0[\r\n]*MESSAGE\r?\n")
"""The end of a frame and the beginning of the next one."""


class Named(NamedTuple):
    """A message by the name of its subscription and by its header lines."""

    name: bytes
    head: bytes
    has_length: bool = False
    """Whether the body has the length that is in the header lines. Then the body is no beginning of a text, unless its
    sender set a property ``content-length``."""


class LastMessage:
    """The last message on one connection.

    Args:
        secret: the beginning of the names of all subscriptions and receipts of the connection. No producer knows it. So
            a frame with another name is a part of a text.
    """

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self._last: Named | None = None
        self._earlier: Named | None = None
        """The last message before the present burst."""
        self._cut_off: Named | None = None
        """The message that bytes followed which are no frame."""

    def begin_burst(self) -> None:
        """Handle the beginning of a burst: bytes have arrived."""
        self._earlier = self._last

    def take_cut_off(self, frames: list[Frame], stray: bytes) -> None:
        """Remove the last message and all frames behind it, because bytes that are no frame followed. So the body of
        this message is only the beginning of a text. Do nothing if the broker wrote a RECEIPT behind the message.

        The bytes may also be header lines of a message that the name of a property with a NUL cut in two. The broker
        wrote the name of a subscription into them then. This message is to blame, and no other message is removed.

        Args:
            frames: the frames of the burst.
            stray: the first of the bytes that are no frame.
        """
        torn = self._torn(stray)
        for index in reversed(range(len(frames))):
            command, head, _, refusal = frames[index]
            name = raw_header(head, b"\nsubscription:" if command == b"MESSAGE" else b"\nreceipt-id:") or b""
            if name.startswith(self.secret):
                if torn is not None:
                    del frames[index + 1 :]
                elif command == b"MESSAGE":
                    del frames[index:]
                    self._cut_off = Named(name, head, _has_length(head, refusal))
                break
            if torn is not None:
                torn = torn._replace(head=head + torn.head)
        self._cut_off = torn or self._cut_off

    def _torn(self, stray: bytes) -> Named | None:
        """Return the message whose header lines these bytes are. ``None`` if the broker has written no name of a
        subscription into them, or only into a whole frame."""
        start = stray.find(b"\nsubscription:" + self.secret)
        if start < 0:
            return None
        frame = max((found.end() for found in _FRAME.finditer(stray, 0, start + 1)), default=-1)
        if frame >= 0 and _is_whole(stray[frame - 1 : max(start, stray.find(b"\n\n", start))]):
            return None
        return Named(raw_header(stray[start:], b"\nsubscription:") or b"", b"\n" + stray + FORGED)

    def take_torn(self, frames: list[Frame], head: bytes) -> None:
        """Remember the message whose beginning looked like a frame with these header lines, if the name of a property
        with a NUL tore the message, and its second part looks like a frame, too. Only the broker can have written the
        name of a subscription into the second part, and the part lacks lines that each MESSAGE has.

        Args:
            frames: the frames of the burst.
            head: the header lines of the first part, as they are in ``frames``.
        """
        index = next(index for index, frame in enumerate(frames) if frame[1] is head) + 1
        if index < len(frames):
            second = frames[index][1]
            name = raw_header(second, b"\nsubscription:") or b""
            if name.startswith(self.secret) and not _is_whole(second):
                self._cut_off = Named(name, head + second + FORGED)

    def follow(self, name: bytes, head: bytes, refusal: Refusal | None) -> bool:
        """Remember a message. Return False if it is a part of a text. A frame of which only some lines are kept may
        be a message that has lost its name."""
        if name.startswith(self.secret):
            self._last = Named(name, head, _has_length(head, refusal))
            return True
        return refusal is not None and not refusal.whole

    def answered(self, receipt: bytes) -> bool:
        """Forget the message, because a RECEIPT follows. Return False if the RECEIPT is a part of a text."""
        if receipt.startswith(self.secret):
            self._last = None
            return True
        return False

    def take(self, *, certain: bool) -> tuple[Named, int] | None:
        """Forget the message behind which the connection ends.

        Args:
            certain: whether a part of a text followed the message. If not, an error followed, which may come from the
                broker itself.

        Returns:
            The message, and the number of connections that have to end behind it before it is refused. ``None`` if
            there is no message.
        """
        last, self._last = self._cut_off or self._last, None
        if last is None:
            return None
        if certain:
            return last, _ENDS if last.has_length else 1
        return last, _LATE_ENDS if last is self._earlier else _ENDS


def _has_length(head: bytes, refusal: Refusal | None) -> bool:
    """Return True if the body of a MESSAGE has the length that its content-length says."""
    return refusal is None and raw_header(head, b"\ncontent-length:") is not None


def _is_whole(head: bytes) -> bool:
    return all(head.find(line) >= 0 for line in _LINES)

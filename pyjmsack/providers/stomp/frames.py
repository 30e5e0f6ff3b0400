"""Cuts STOMP 1.1 and 1.2 frames out of bytes that arrive in pieces of any size.

This module does not decode header lines and bodies. It returns each frame as its command, its header lines as they
came, and its body. It reads every byte only a few times, and :class:`Limits` bounds the memory that a broker can use.

A message must not end the connection of its receiver. Therefore the parser reports a MESSAGE over the limits as
refused, and goes on with the next frame (S166). A mistake of the broker ends the connection. Such mistakes are a line
that is not a command, and a frame over the limits that is no MESSAGE.

This module does not use the parser of stomp.py, because the parser of stomp.py takes 56 microseconds for a frame, and
the parser of this module takes 2. The parser of stomp.py also copies a growing buffer for every piece. The tests
compare this parser with the parser of stomp.py.
"""

from __future__ import annotations

import re
from typing import NamedTuple, cast

from pyjmsack.errors import ConnectionLostException
from pyjmsack.providers.stomp.header_lines import FORGED, NAMING, own_line_first, raw_header

__all__ = ["Frame", "FrameParser", "Limits", "Refusal"]


class Refusal(NamedTuple):
    """The reason why a MESSAGE frame is refused, although the bytes after the frame can be read (S166)."""

    reason: str
    whole: bool
    """True if the whole frame is kept. If false, only the header lines of :func:`.header_lines.lines_that_name` are
    kept, and no body."""
    size: int
    """The number of bytes of the frame."""


Frame = tuple[bytes, bytes, bytes, Refusal | None]
"""The command, the header lines with a line feed before each, the body, and the reason why the frame is refused. The
reason is ``None`` for a good frame."""

_MESSAGE = b"MESSAGE"
_COMMANDS = frozenset((_MESSAGE, b"RECEIPT", b"ERROR", b"CONNECTED"))
_LONGEST_COMMAND = 16
_HEAD_END = re.compile(rb"\n\r?\n")
_NEAR = 2048
"""Most header lines end within this number of bytes from the start of a frame. If they do not, a slower search is
used."""
_LITTLE = 262144
"""Up to this number of bytes, the pending bytes are copied, because frames are cut out of ``bytes`` more quickly. More
bytes are left where they are. Otherwise each of many frames with a wrong content-length would copy all bytes behind."""
_TURN = 16384
"""The number of waiting bytes that the parser reads in one turn, if no bytes have just arrived. Behind a frame with a
wrong content-length up to :attr:`Limits.kept` bytes may wait. Other connections have turns between the parts."""
_INCOMPLETE = -1
"""What a method returns instead of a position, if the last frame has to wait for more bytes."""
_LONGEST_NAME = 65536
"""If a message is too large to be kept, only some of its header lines are kept, and only lines of at most this number
of bytes."""
_DIGITS = 12
"""The largest number of digits of a content-length."""
_LATE_LINES = (b"\ntimestamp:", b"\nmessage-id:", b"\npriority:")
"""Classic writes these lines into each MESSAGE. One of them stands behind the line ``ack``, unless the message has more
than ``_MANY_LINES`` header lines."""
_MANY_LINES = 96
_MANY_BYTES = 1 << 20
"""So many bytes without an empty line, among them a line ``ack`` of Classic, count as header lines without a closer
look, because a look at many more would take long."""
_NO_COLON = re.compile(rb"(?:\A|\n)[^:\n]*(?=\n|\Z)")
"""A line without a colon, which is no header line."""
_IDS = (b"ack", b"message-id", b"subscription")
_ACK_LINE = b"\nack:ID\\c"
"""The beginning of the line ``ack`` of Classic."""


class Limits(NamedTuple):
    """The limits of one frame. Each limit is a number of bytes, except ``headers``, which is a number of lines."""

    body: int = 104857600
    headers: int = 1000
    header_line: int = 65536

    @property
    def head(self) -> int:
        """The limit for all header lines of a frame together."""
        return 16 * self.header_line

    @property
    def kept(self) -> int:
        """The largest number of bytes of header lines that are kept if a message is refused because of its header
        lines. The lines are kept, because the message may have to be copied."""
        return max(self.head, self.body)


class FrameParser:
    """Cuts frames out of bytes.

    An incomplete frame waits in ``_pending``. The parser reads it again only when it may be complete. If a frame is too
    large to be kept, the parser drops the bytes of the frame when they arrive (``_skipping``).
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pending = bytearray()
        self._wanted = 0
        """The size that the pending frame will have when it is complete. 0 means that the size is not known."""
        self._body = 0
        """The position where the pending frame's body starts. 0 means that the header lines are not complete."""
        self._searched = 0
        """The position up to which the parser has searched for the end of the frame."""
        self._turn = 0
        """The number of pending bytes that the parser may read now."""
        self.has_more = False
        """True if the pending bytes may contain complete frames. Then the caller calls :meth:`feed` again, also without
        bytes, after other connections had a turn."""
        self._skipping: Skipping | None = None
        self._disproved = False
        """True if the proof has shown that the pending frame is shorter than its content-length says."""
        self.doubtful = False
        """True if a content-length of this connection was too high. Then the next one may be too high as well."""
        self.begun = 0
        """The number of bodies so far that arrived in more than one piece. While :attr:`waits` is true, this number
        also identifies the incomplete body."""
        self.stray = b""
        """The first of the bytes that are not STOMP, after ``broken`` is set."""
        self.own_line: bytes | None = None
        """The beginning of the line ``subscription`` of each MESSAGE, up to the secret, if the broker does not escape
        the names of properties (:attr:`.StompDialect.bare_text`). Otherwise ``None``."""
        self.proof: bytes | None = None
        """Random bytes that this client sent to the broker, and to nobody else, after the pending frame began. If these
        bytes appear inside the body of this frame, the content-length of the frame is wrong."""
        self.broken: ConnectionLostException | None = None
        """The error that ends the stream, because the bytes behind the returned frames are not STOMP. ``None`` while
        the stream is good."""

    @property
    def waits(self) -> bool:
        """True while the body of the pending frame has fewer bytes than its content-length says."""
        return bool(self._wanted) or (self._skipping is not None and self._skipping.measured)

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that these bytes complete. If some of the bytes are not STOMP, set ``broken`` and return
        the frames before these bytes."""
        frames: list[Frame] = []
        if self.broken is None:
            try:
                self._take(data, frames)
            except ConnectionLostException as error:
                self.broken = error
                self._pending.clear()
        return frames

    def _take(self, data: bytes, frames: list[Frame]) -> None:
        pending = self._pending
        # more than arrives, so that what is pending does not grow; but no whole turn for each of many small pieces
        self._turn = 2 * len(data) or _TURN
        if pending:
            pending += data
            if not self.has_more and not self._may_be_complete():
                return
            self.has_more = False
            if len(pending) <= _LITTLE:
                data = bytes(pending)
                pending.clear()
            else:
                data = cast("bytes", pending)  # it has the same methods for reading, but its slices are no bytes
        self._wanted = self._body = self._searched = 0
        position = 0
        while 0 <= position < len(data):
            if self._skipping is None:
                position = self._split(data, position, frames)
            else:
                position = self._skip(self._skipping, data, position, frames)
        # the end of the data is kept: an incomplete frame, or what is left for the next turn
        kept = len(data) - self._searched if position == _INCOMPLETE else len(data)
        if data is pending:
            del pending[:kept]  # which moves nothing
        elif kept < len(data):
            pending += data[kept:] if kept else data

    def _skip(self, skipping: Skipping, data: bytes, position: int, frames: list[Frame]) -> int:
        in_place = data is self._pending
        piece = bytes(data[position : position + self._turn]) if in_place else data[position:]
        end = skipping.feed(piece)
        if end < 0:
            if skipping.holds(self.proof, piece):
                raise _malformed(_length_fault(_MESSAGE, skipping.length))
            position += len(piece)
            return position if position == len(data) else self._pause(data, position)
        frames.append(skipping.frame())
        self._skipping = None
        return position + end

    def _pause(self, data: bytes, position: int) -> int:
        """Leave the bytes from ``position`` on for the next turn."""
        self.has_more = True
        self._searched = len(data) - position
        return _INCOMPLETE

    def _may_be_complete(self) -> bool:
        """Return True if the parser should read the pending frame again, because it may be complete or is too large to
        be kept."""
        pending, limits = self._pending, self._limits
        if self._wanted:
            self._disproved = self._proves_end(pending)
            return self._disproved or len(pending) >= self._wanted
        if self._body:
            found = pending.find(b"\0", self._searched) >= 0
            self._searched = len(pending)
            return found or len(pending) - self._body > limits.body
        found = _HEAD_END.search(pending, max(0, self._searched - 2)) is not None
        self._searched = len(pending)
        if not found:
            self._check_open_head(pending, 0)
        return found or len(pending) > limits.kept + _LONGEST_COMMAND

    def _proves_end(self, pending: bytearray) -> bool:
        """Return True if the body contains the proof. The broker sends the proof only after the end of the body. If the
        proof is inside the body, the content-length is too high, and the body has ended before the proof."""
        if self.proof is None:
            return False
        start = max(self._body, self._searched - len(self.proof))
        self._searched = len(pending)
        return pending.find(self.proof, start, self._wanted) >= 0

    def _may_be_wrong(self, command: bytes, size: int) -> bool:
        """Return True if the content-length of a frame may be wrong. In this case the parser waits for the real end of
        the frame."""
        return command == _MESSAGE and (self._disproved or size <= self._limits.body)

    def _split(self, data: bytes, position: int, frames: list[Frame]) -> int:
        """Cut the complete frames out of ``data`` from ``position`` on, and append them to ``frames``.

        Returns:
            The position of a frame that must be skipped, or the end of ``data``. ``_INCOMPLETE`` if the last frame is
            incomplete and has to be kept until more bytes arrive, or if the other frames have to wait for a turn.
        """
        limits, size, in_place = self._limits, len(data), data is self._pending
        turn_end = position + self._turn if in_place else size
        while position < size:
            if position >= turn_end and size - position > _LITTLE:
                return self._pause(data, position)
            if data[position] == 10 or data[position] == 13:  # a heart-beat, or the line end that may follow a frame
                position += 1
                continue
            end, body = _head_end(data, position)
            seen = (size if end < 0 else end) - position
            if end < 0 or seen > limits.kept:
                self._check_open_head(data, position)
            if seen > limits.kept + _LONGEST_COMMAND:
                return self._start_skipping(self._head_reason(), position)
            if end < 0:
                return self._keep(data, position)
            command_end = data.find(b"\n", position)
            command, head = data[position:command_end], data[command_end:end]
            if in_place:
                command, head = bytes(command), bytes(head)
            if command not in _COMMANDS:
                command = self._command(data, position, command)
            own_line = self.own_line
            if own_line is not None and command == _MESSAGE and _looks_forged(head, own_line):
                cut_at = end
                end, body = _whole_head(data, head, own_line, end, body)
                head = own_line_first(bytes(data[command_end:end]), own_line) + (FORGED if end > cut_at else b"")
            reason = None
            if len(head) > limits.headers:  # a header line has at least two bytes
                reason = self._head_fault(command, head)
            start = body
            length = raw_header(head, b"\ncontent-length:")
            if length is not None:
                declared = _length(length)
                if declared > limits.body and not self._may_be_wrong(command, size - body):
                    return self._too_large(command, position)
                start += max(0, min(declared, limits.body))
                if start >= size and not self._disproved:
                    return self._keep(data, position, body=body - position, wanted=start + 1 - position)
                if declared < 0 or self._disproved or data[start]:  # wrong length: the body ends at the first NUL
                    reason, start = _length_fault(command, length), body
                    self.doubtful |= self._disproved
                    self._disproved = False
            body_end = data.find(b"\0", start)
            if (size if body_end < 0 else body_end) - body > limits.body:
                return self._too_large(command, position)
            if body_end < 0:
                return self._keep(data, position, body=body - position)
            text = data[body:body_end]
            if own_line is not None and text.find(_ACK_LINE) >= 0 and _begins_with_lines(head, bytes(text)):
                head += FORGED
            if reason is not None and len(head) > limits.head and not head.endswith(FORGED):
                # a copy of so many lines would be refused too, and a look at all of them at once would take seconds
                return self._start_skipping(reason, position, to_nul=start == body)
            refusal = None if reason is None else Refusal(reason, True, body_end + 1 - position)
            frames.append((command, head, bytes(text) if in_place else text, refusal))
            position = body_end + 1
        return size

    def _keep(self, data: bytes, position: int, *, body: int = 0, wanted: int = 0) -> int:
        self._body, self._wanted = body, wanted
        if wanted:
            self.begun += 1
        self._searched = len(data) - position
        return _INCOMPLETE

    def _start_skipping(self, reason: str, position: int, *, to_nul: bool = False) -> int:
        self._skipping = Skipping(reason, self._limits.header_line, self.own_line, to_nul=to_nul)
        self.begun += 1
        return position

    def _too_large(self, command: bytes, position: int) -> int:
        what = f"a body over stomp.maxFrameSize ({self._limits.body} bytes)"
        if command != _MESSAGE:
            raise ConnectionLostException(f"the peer sent a frame with {what}")
        return self._start_skipping(what, position)

    def _head_reason(self) -> str:
        return f"header lines of more than {self._limits.kept} bytes (stomp.maxHeaderLength, stomp.maxFrameSize)"

    def _check_open_head(self, data: bytes | bytearray, position: int) -> None:
        """Raise an error if an incomplete frame does not begin with a command. Raise an error also if the header lines
        of the frame are over the limits, unless the frame is a MESSAGE."""
        end = data.find(b"\n", position, position + _LONGEST_COMMAND)
        if end < 0:
            if len(data) - position >= _LONGEST_COMMAND:
                self._command(data, position, bytes(data[position : position + _LONGEST_COMMAND]))
        elif (
            self._command(data, position, bytes(data[position:end])) != _MESSAGE
            and len(data) - position > self._limits.kept
        ):
            raise _malformed(self._head_reason())

    def _command(self, data: bytes | bytearray, position: int, raw: bytes) -> bytes:
        """Return the command of a frame that begins at ``position``. If ``raw`` is no command, keep the first of these
        bytes, and raise an error."""
        try:
            return _command(raw)
        except ConnectionLostException:
            self.stray = bytes(data[position : position + self._limits.header_line])
            raise

    def _head_fault(self, command: bytes, head: bytes) -> str | None:
        """Return a text that names the limit that the header lines of a frame exceed, or ``None`` if they exceed no
        limit.

        An ERROR has no limit here, because an ERROR of Artemis contains all properties of the message that it refuses.
        """
        limits, fault = self._limits, None
        lines = head.count(b"\n")
        if lines > limits.headers:
            fault = f"{lines} header lines, more than {limits.headers} (stomp.maxHeaders)"
        elif len(head) > limits.header_line:
            longest = max(map(len, head.split(b"\n")))
            if longest > limits.header_line:
                fault = f"a header line of {longest} bytes, more than {limits.header_line} (stomp.maxHeaderLength)"
        if fault is not None and command not in (_MESSAGE, b"ERROR"):
            raise _malformed(fault)
        return fault if command == _MESSAGE else None


class Skipping:
    """A MESSAGE frame that is too large to be kept. This object reads the frame to its end, and keeps only the header
    lines that :func:`.header_lines.lines_that_name` would return.

    Args:
        reason: the reason why the frame is refused.
        longest: the largest number of bytes of a header line that is kept.
        own_line: :attr:`FrameParser.own_line`.
        to_nul: whether the first NUL ends the body, whatever the content-length says.
    """

    def __init__(self, reason: str, longest: int, own_line: bytes | None = None, *, to_nul: bool = False) -> None:
        self._to_nul = to_nul
        self._reason = reason
        self._own_line = own_line
        self._longest = min(longest, _LONGEST_NAME)
        self._lines: dict[bytes, bytes] = {}
        self._tail = b""
        """While the header lines arrive, the beginning of a line whose end has not arrived yet. While the body arrives,
        the last bytes of the body."""
        self._size = 0
        self._forged = False
        """Whether a line that has an id came twice (:func:`.header_lines.is_forged`)."""
        self._rest: int | None = None
        """The number of bytes of the body that are still missing. ``None`` if the length of the body is not known."""
        self._in_body = False

    @property
    def measured(self) -> bool:
        """True while the body has fewer bytes than its content-length says."""
        return self._rest is not None

    @property
    def length(self) -> bytes:
        """The content-length as it came. Empty if the frame has none."""
        return raw_header(self._lines.get(b"content-length", b""), b"\ncontent-length:") or b""

    def holds(self, proof: bytes | None, data: bytes) -> bool:
        """Return True if the body contains ``proof``. The content-length of the frame is then wrong, as
        :attr:`FrameParser.proof` explains. The parser calls this for each piece of the body, in order."""
        if proof is None or not self.measured:
            return False
        text = self._tail + data
        self._tail = text[-len(proof) :]
        return proof in text

    def feed(self, data: bytes) -> int:
        """Read more bytes. Return the position where the frame ended, or -1 if the frame is still incomplete."""
        position = 0 if self._in_body else self._read_head(data)
        end = -1 if position < 0 else self._read_body(data, position)
        self._size += len(data) if end < 0 else end
        return end

    def _read_head(self, data: bytes) -> int:
        """Return the position where the body starts, or -1 if the header lines are still incomplete."""
        kept = len(self._tail)
        text = self._tail + data
        match = _HEAD_END.search(text)
        last = text.rfind(b"\n") if match is None else match.start()
        for line in NAMING.finditer(text, 0, max(0, last)):
            if len(line[0]) <= self._longest and self._lines.setdefault(line[1], line[0]) != line[0]:
                self._forged = self._forged or line[1] in _IDS
                if self._own_line is not None and line[0].startswith(self._own_line):
                    self._lines[line[1]] = line[0]
        if match is None:
            tail = text[last:] if last >= 0 else b""
            self._tail = tail if len(tail) <= self._longest else b""
            return -1
        self._in_body, self._tail = True, b""
        declared = _length(self.length)
        self._rest = None if declared < 0 or self._to_nul else declared
        return match.end() - kept

    def _read_body(self, data: bytes, position: int) -> int:
        if self._rest is None:
            return data.find(b"\0", position) + 1 or -1
        here = len(data) - position
        if here <= self._rest:
            self._rest -= here
            return -1
        end = data.find(b"\0", position + self._rest)
        self._rest = None
        return end + 1 or -1

    def frame(self) -> Frame:
        """Return the kept header lines as a frame with a :class:`Refusal` and without a body. Call this only when the
        frame has ended."""
        head = b"".join(self._lines.values())
        return _MESSAGE, head + FORGED if self._forged else head, b"", Refusal(self._reason, False, self._size)


def _length(text: bytes) -> int:
    """Return the value of a content-length. Return -1 if the text is not a number of bytes."""
    return int(text) if text.isdigit() and len(text) <= _DIGITS else -1


def _length_fault(command: bytes, length: bytes) -> str:
    """Return the error text for a MESSAGE with a wrong content-length. For any other frame, raise an error that ends
    the connection. A wrong content-length comes from ActiveMQ Classic, which copies a producer's property
    ``content-length`` into the frame of a text. The body of this frame ends at the first NUL.
    """
    fault = f"a content-length {length[:40]!r} that is not the length of its body"
    if command != _MESSAGE:
        raise _malformed(fault)
    return fault


def _looks_forged(head: bytes, own_line: bytes) -> bool:
    """Return True if the first line ``subscription`` is not that of the broker, or one of ``_LATE_LINES`` is missing.
    This runs for each MESSAGE of Classic, so it has no loop."""
    first = head.find(b"\nsubscription:")
    return (
        not head.startswith(own_line, first)
        or head.find(b"\ntimestamp:") < 0
        or head.find(b"\nmessage-id:") < 0
        or head.find(b"\npriority:") < 0
    )


def _whole_head(data: bytes, head: bytes, own_line: bytes, end: int, body: int) -> tuple[int, int]:
    """Return the positions where the header lines of a MESSAGE end and where its body starts, if the name of a property
    contains an empty line. Otherwise return ``end`` and ``body``.

    ActiveMQ Classic writes the names of properties as they are. An empty line in such a name seems to end the header
    lines, but the lines that the broker writes itself are still to come. A producer does not know the secret in the
    line ``subscription``, so this line belongs to the header lines wherever it stands.
    """
    stop = data.find(b"\0", body)
    stop = len(data) if stop < 0 else stop
    start = -1
    for key in (own_line, *_LATE_LINES):
        if head.find(key) < 0:
            found = data.find(key, body - 1, stop)
            if found < 0 and key is own_line:
                return end, body
            start = max(start, found)
    match = _HEAD_END.search(data, start, stop) if start >= 0 else None
    return (end, body) if match is None else match.span()


def _begins_with_lines(head: bytes, body: bytes) -> bool:
    """Return True if the body of a MESSAGE of Classic begins with so many header lines that the line ``ack`` of the
    broker is one of them, because the name of a property contained an empty line."""
    lines = body[: max(0, body.find(b"\n\n"))]
    if lines.find(_ACK_LINE) < 0 or head.count(b"\n") + lines.count(b"\n") < _MANY_LINES:
        return False
    return len(lines) > _MANY_BYTES or _NO_COLON.search(lines) is None


def _head_end(data: bytes, position: int) -> tuple[int, int]:
    """Return two positions: where the header lines end, and where the body starts. The first one is -1 if the header
    lines are not complete."""
    end = data.find(b"\n\n", position, position + _NEAR)
    if end >= 0 and data.find(b"\n\r\n", position, end) < 0:
        return end, end + 2
    match = _HEAD_END.search(data, position)
    return (-1, -1) if match is None else match.span()


def _command(raw: bytes) -> bytes:
    command = raw[:-1] if raw.endswith(b"\r") else raw
    if command not in _COMMANDS:
        raise _malformed(f"{command[:40]!r} is not the command of a frame that a broker sends")
    return command


def _malformed(text: str) -> ConnectionLostException:
    return ConnectionLostException(f"the peer sent bytes that are not a STOMP frame: {text}")

"""A STOMP connection without a socket and without a clock. The engine turns bytes into frames for the provider and
frames into bytes. It handles the heart-beats, and the RECEIPT frames with which the broker confirms requests."""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, cast

from pyjmsack.errors import ConnectionLostException, JMSException, MessageFormatException
from pyjmsack.loggers import get_logger
from pyjmsack.message import BodySource
from pyjmsack.providers.stomp.bursts import Bursts
from pyjmsack.providers.stomp.errors import ConsumerEnded, ended_consumer, error_of
from pyjmsack.providers.stomp.frames import FrameParser, Limits, Refusal
from pyjmsack.providers.stomp.header_lines import decode_head, raw_header
from pyjmsack.providers.stomp.last_message import LastMessage
from pyjmsack.providers.stomp.upload import Upload, Uploads
from pyjmsack.spi.engine import Reading, Stream, loss
from pyjmsack.spi.envelope import Payload, StreamedPayload
from pyjmsack.uri import StompOptions

__all__ = ["Answer", "EngineListener", "StompEngine"]

log = get_logger("pyjmsack.stomp")

Answer = Callable[[BaseException | None], None]
"""A function that is called once. Its argument is ``None`` when the RECEIPT has come, or the error if no RECEIPT will
come."""

_EARLY = 0.4
"""After this part of the heart-beat interval the engine checks whether anything was sent, because no heart-beat may be
late."""
_PATIENCE = 2.5
"""If no byte comes for this number of heart-beat intervals of the broker, the connection counts as lost."""
_SHORTEST = 0.05
"""The shortest time in seconds between two of our heart-beats, unless our own URL sets a shorter interval. The client
sends no more heart-beats than this, even if the broker asks for more.
"""
_PROBE = 1.0
"""A body that is still incomplete after this number of seconds may have a wrong content-length. The engine then sends a
request, whose answer shows whether the body has ended."""
_PROBE_AGAIN = 0.05
"""The same number of seconds on a connection that already had a content-length that was too high. A producer may send
many such messages, and the other consumers of the connection wait meanwhile."""
_LAST = 0.5
"""The number of seconds of work on frames that arrived before the end of the stream. There is a limit, because a
hostile broker may have sent millions of frames. Frames of usual sizes take less time."""
_GROUP = 64
"""The largest number of requests that share one RECEIPT."""
_GROUP_BYTES = 1 << 16
"""The number of bytes after which a group of requests gets its RECEIPT, even if the group has fewer than ``_GROUP``
requests."""
_SECRET_BYTES = 9
"""The number of random bytes in the names of receipts and subscriptions."""
_MILLISECONDS = re.compile(r"[0-9]{1,10}")
_PASSCODE = re.compile(rb"(\npasscode:)[^\n]*")


class EngineListener(Protocol):
    """The methods that the engine calls at its events. The provider implements them."""

    def on_stream(self) -> None:
        """Write the CONNECT frame, because the stream is open."""
        ...

    def on_connected(self, headers: dict[str, str]) -> None:
        """Handle the CONNECTED frame, with which the broker opens the connection."""
        ...

    def on_message(self, name: bytes, head: bytes, body: bytes, refusal: Refusal | None) -> None:
        """Handle a MESSAGE frame for the subscription of this name. ``refusal`` says why the message cannot be read, or
        is ``None``."""
        ...

    def on_end_behind(self, name: bytes, head: bytes, most_ends: int) -> None:
        """Handle the coming end of the connection behind a message for the subscription of this name. After
        ``most_ends`` such ends the message is to blame."""
        ...

    def on_failure(self, error: JMSException) -> None:
        """Handle the end of the connection. The engine calls this method once, as its last event."""
        ...

    def on_burst_end(self) -> None:
        """Handle the end of a burst: all frames in the bytes that arrived together were handled."""
        ...


class StompEngine:
    """One STOMP connection.

    The broker answers a request by RECEIPT, or refuses it by ERROR. ``errors_end`` says whether an ERROR that names a
    request also ends the connection, as on Artemis. An ERROR that names no request always ends the connection.
    """

    def __init__(
        self,
        listener: EngineListener,
        options: StompOptions,
        *,
        later: Callable[[float, Callable[[], None]], object],
        trace_bytes: bool = False,
        read: Callable[[BodySource], Reading] | None = None,
    ) -> None:
        self._listener = listener
        self._options = options
        self._later = later
        """``later(seconds, callback)`` calls ``callback`` on the loop after this time."""
        self._trace_bytes = trace_bytes
        self._parser = FrameParser(Limits(options.max_frame_size, options.max_headers, options.max_header_length))
        self._output: list[bytes | Upload] = []
        self._bursts = Bursts()
        """The frames that were taken from ``_output`` to be sent next, and the callbacks of frames without a receipt.
        Later frames wait in ``_output``."""
        self._uploads = Uploads(_no_reading if read is None else read, self._on_piece)
        self._receipts: dict[bytes, Answer] = {}
        self._unnamed: dict[bytes, None] = {}
        """The receipt ids of the requests that Artemis may refuse by an ERROR without a ``receipt-id``."""
        self._group = _Together([])
        """Callbacks that wait for the receipt of the last frame of a burst."""
        self._number = 0
        self._last_message: LastMessage | None = None
        """The last message, if the broker may send a text with a NUL without its length
        (:attr:`.StompDialect.bare_text`)."""
        self._connected = False
        self._beats = _Beats()
        self._awaited = (0, 0.0)
        """The number of the body that is incomplete (``FrameParser.begun``), and the time when the engine began to wait
        for the rest of this body. The time is infinite after the engine has asked the broker about this body."""
        self._over = False
        """True after the stream has ended."""
        self.errors_end = True
        self.failed: JMSException | None = None
        self.stream: Stream | None = None

    @property
    def secret(self) -> bytes:
        """The beginning of the names of all receipts and subscriptions, if the broker may send a text with a NUL
        without its length. The rest of such a text is read as frames. A producer does not know the secret, so these
        frames confirm no send and reach no consumer. Empty for other brokers."""
        return b"" if self._last_message is None else self._last_message.secret

    # -- bytes --------------------------------------------------------------------------------------------------

    def opening(self, stream: Stream) -> None:
        """Remember the stream, so that :meth:`abort` ends it although it is not open yet."""
        if self.failed is not None:  # the caller gave up while the stream was being opened
            stream.abort()
        else:
            self.stream = stream

    def connection_made(self, stream: Stream) -> None:
        """Begin the protocol, because the stream is open."""
        self.opening(stream)
        if self.failed is not None:
            return
        self._listener.on_stream()
        self.flush()

    def receive_data(self, data: bytes) -> None:
        """Take bytes from the broker."""
        self._beats.received = True
        if self._trace_bytes:
            log.debug("<- %s", data.hex())
        self._read(data)
        parser = self._parser
        again = parser.has_more or (parser.waits and parser.begun != self._awaited[0])
        if again and self.failed is None and self.stream is not None:
            self.stream.retick()

    def _read(self, data: bytes) -> None:
        """Handle the frames that these bytes complete, or some of the frames that waited for a turn."""
        last = self._last_message
        if last is not None:
            last.begin_burst()
        ended: ConsumerEnded | None = None  # the ERROR that names the queue may come behind another one
        try:
            frames = self._parser.feed(data)
            if self._parser.broken is not None and last is not None:
                last.take_cut_off(frames, self._parser.stray)
            for command, head, body, refusal in frames:
                if self.failed is not None:
                    return
                if self._options.trace_frames:
                    log.debug("<- %s%s (%d bytes)", command.decode(), head.decode("utf-8", "replace"), len(body))
                if command == b"MESSAGE":
                    name = raw_header(head, b"\nsubscription:") or b""
                    if last is not None and not last.follow(name, head, refusal):
                        last.take_torn(frames, head)
                        self._end_behind_text()
                        break
                    self._listener.on_message(name, head, body, refusal)
                elif command == b"RECEIPT":
                    self._on_receipt(head)
                elif command == b"ERROR":
                    error = ended_consumer(head, body) if self.errors_end else None
                    if error is None:
                        self._on_error(head, body)
                    elif ended is None or error.names:
                        ended = error
                else:
                    self._on_connected(head)
            if ended is not None:
                self.fail(ended)
            elif self._parser.broken is not None:
                self._blame(certain=True)
                self.fail(self._parser.broken)
        except JMSException as error:
            self._blame(certain=False)
            self.fail(error)
        self._listener.on_burst_end()
        self.flush()

    def _blame(self, *, certain: bool) -> None:
        """Tell the listener which message the connection ends behind, if a text with a NUL may be the cause."""
        taken = None if self._last_message is None else self._last_message.take(certain=certain)
        if taken is not None and self.failed is None:
            message, most_ends = taken
            self._listener.on_end_behind(message.name, message.head, most_ends)

    def _end_behind_text(self) -> None:
        """End the connection, because a frame is a part of the text of a producer."""
        self._blame(certain=True)
        self.fail(
            ConnectionLostException("a text with a NUL contained a frame, because the broker wrote no length (S166)")
        )

    def data_to_send(self) -> bytes:
        """Return bytes of the frames that wait to be sent. The caller calls this method until it returns ``b""``."""
        bursts = self._bursts
        if bursts:
            return self._sends(bursts.next())
        uploads = self._uploads
        if uploads.current is not None:
            return self._next_piece(uploads.current)
        output = self._output
        if not output:
            return b""
        if self._group.answers:
            self._end_group()
        if uploads.waiting:
            end = output.index(uploads.waiting[0])
            if end == 0:
                del output[0]
                uploads.begin(uploads.waiting[0])
                return self.data_to_send()
            output, self._output = output[:end], output[end:]
        else:
            self._output = []
            bursts.take_callbacks()
        return self._sends(bursts.begin(cast(list[bytes], output)))  # above, the uploads were taken out of the list

    def _sends(self, data: bytes) -> bytes:
        """Note and return bytes that are sent now."""
        self._beats.sent = True
        if self._options.trace_frames:
            log.debug("-> %s", _PASSCODE.sub(rb"\1***", data).decode("utf-8", "replace"))
        if self._trace_bytes:
            log.debug("-> %s", _PASSCODE.sub(rb"\1***", data).hex())
        self._bursts.call_back()
        return data

    def _all_have_left(self) -> None:
        """Call the callbacks of all frames without a receipt, if no frame waits."""
        if not self._output:
            self._bursts.take_callbacks()
            self._bursts.call_back()

    def _next_piece(self, upload: Upload) -> bytes:
        """Return the bytes that are ready of a frame that is sent in pieces."""
        data = self._uploads.take(upload)
        if data:
            self._beats.sent = True
            if self._options.trace_frames:
                log.debug("-> (%d bytes of a SEND)", len(data))
            if self._trace_bytes:
                log.debug("-> %s", data.hex())
        if self._uploads.current is None:
            if upload.receipt is None:
                upload.answered(None)
            self._all_have_left()
        return data

    def _on_piece(self, upload: Upload) -> None:
        """Handle the next piece of a body, or the error of reading it. After an error the frame cannot be completed.
        Therefore this method ends the connection, and the broker drops the frame. The send gets the error before the
        connection ends, because otherwise failover would send the message again and again."""
        error = upload.failed
        if error is not None:
            if upload.receipt is not None:
                self._receipts.pop(upload.receipt, None)
                self._unnamed.pop(upload.receipt, None)
            upload.answered(error)
            if upload.begun:
                # the end of the connection writes what waits, and the broker would take that for the rest of the body
                self._output.clear()
                self.fail(_lost(error, "this client ended the connection in the middle of a frame"))
                return
            self._all_have_left()  # because without a write nobody calls them
        self.flush()

    def connection_lost(self, error: Exception | None) -> None:
        """End the connection, because the stream ended. The frames that had arrived before count: one may be the
        RECEIPT of a send, or an ERROR with a reason."""
        if not self._over:
            self._over = True
            self._read_rest(loss(error), _LAST)

    def _read_rest(self, lost: JMSException, left: float) -> None:
        """Read a part of the frames that arrived before the end of the stream, and the next part later, because many
        connections may end together. After the last part, or after ``left`` seconds of work, end the connection. The
        time of others does not count."""
        began, more = time.thread_time(), False
        try:
            if self._parser.has_more and self.failed is None:
                self._read(b"")
                left -= time.thread_time() - began
                more = self._parser.has_more and left > 0
        finally:
            if more and self.failed is None:
                self._later(0, partial(self._read_rest, lost, left))
            else:
                self.fail(lost)

    def tick(self, now: float) -> float | None:
        """Send a heart-beat if nothing else was sent lately. End the connection if the broker was silent for too long
        (STOMP 1.2)."""
        self._beat(now)  # first, because the frames that wait may take many turns
        if self._parser.has_more and self.failed is None:
            self._read(b"")
            if self._parser.has_more and self.failed is None:
                return now
        if not self._connected or self.failed is not None:
            return None
        beats = self._beats
        if beats.received or beats.heard_at is None:
            beats.received, beats.heard_at = False, now
        elif beats.peer_interval and now - beats.heard_at > _PATIENCE * beats.peer_interval:
            self.fail(ConnectionLostException(f"the broker was silent for {now - beats.heard_at:.1f} s"))
            return None
        deadlines = [beats.look_at] if beats.interval else []
        if beats.peer_interval:
            deadlines.append(now + beats.peer_interval * _EARLY)
        if self._parser.waits:
            self._doubt(now)
            deadlines.append(now + self._body_wait)
        return min(deadlines, default=None)

    def _beat(self, now: float) -> None:
        """Send a heart-beat if one is due. While other bytes wait, no heart-beat is needed, and those of a broker that
        does not read would fill the memory."""
        beats = self._beats
        if not beats.interval or now < beats.look_at or self.failed is not None:
            return
        if not beats.sent and self._uploads.current is None:
            if not self._output and not self._bursts:
                self._output.append(b"\n")
            self.flush()
        beats.sent, beats.look_at = False, now + beats.interval * _EARLY

    @property
    def _body_wait(self) -> float:
        """The number of seconds that the rest of a body may take before the engine asks the broker about this body."""
        return _PROBE_AGAIN if self._parser.doubtful else _PROBE

    def _doubt(self, now: float) -> None:
        """Ask the broker whether the pending body has ended, if the rest of the body does not come.

        The content-length of the frame may be too high, because ActiveMQ Classic copies a property ``content-length``
        of a producer into the frame of a text. The parser would then take the next frames for a part of the body. The
        answer to the request contains a random name, the proof. If the parser finds the proof inside the body, the body
        has ended before the proof.
        """
        parser = self._parser
        number, since = self._awaited
        if parser.begun != number:
            self._awaited = parser.begun, now
        elif now - since >= self._body_wait:  # also while an answer is missing, because it may be inside this body
            self._awaited = number, math.inf
            parser.proof = b"%bprobe-%b" % (self.secret, secrets.token_hex(16).encode())
            self._receipts[parser.proof] = _ignored
            self._output.append(b"BEGIN\ntransaction:%b\n\n\0" % parser.proof)
            self._output.append(b"ABORT\ntransaction:%b\nreceipt:%b\n\n\0" % (parser.proof, parser.proof))
            self.flush()

    # -- for the provider ---------------------------------------------------------------------------------------

    def use_secret(self) -> None:
        """Let the names of all further receipts and subscriptions begin with a secret."""
        self._last_message = LastMessage(secrets.token_urlsafe(_SECRET_BYTES).encode() + b"-")
        self._parser.own_line = b"\nsubscription:" + self._last_message.secret

    def write(self, *pieces: bytes) -> None:
        """Write a frame that asks for no RECEIPT."""
        self._output += pieces

    def ask(self, command: bytes, rest: Payload, answered: Answer, *, unnamed: bool = False) -> None:
        """Write a frame that asks for a RECEIPT, the confirmation of the broker.

        Args:
            command: the first line, and possibly header lines, without the last line feed.
            rest: the other header lines, each with its line feed; an empty line; the body; NUL.
            answered: called with ``None`` when the RECEIPT has come, or with the error.
            unnamed: True if an ERROR without ``receipt-id`` may answer this request. Only brokers that end the
                connection with each ERROR send such an answer.
        """
        if self.failed is not None:
            answered(self.failed)
            return
        self._number += 1
        receipt = b"%b%d" % (self.secret, self._number)
        self._receipts[receipt] = answered
        if unnamed:
            self._unnamed[receipt] = None
        if isinstance(rest, StreamedPayload):
            self._upload(command + b"\nreceipt:" + receipt + b"\n", rest, receipt, answered)
        else:
            self._output += (command, b"\nreceipt:", receipt, b"\n", rest)

    def _upload(self, start: bytes, rest: StreamedPayload, receipt: bytes | None, answered: Answer) -> None:
        upload = Upload(start, rest, receipt, answered)
        self._output.append(upload)
        self._uploads.waiting.append(upload)

    def ask_together(self, command: bytes, rest: bytes, answered: Answer) -> None:
        """Write a frame that shares its RECEIPT with a later frame. The last frame of a burst asks for the RECEIPT.

        An ERROR that names this RECEIPT refuses the last frame. The outcome of the other frames is then unknown.
        """
        if self.failed is not None:
            answered(self.failed)
            return
        group = self._group
        group.answers.append(answered)
        group.end = len(self._output)
        group.size += len(rest)
        self._output += (command, b"\n", rest)
        if len(group.answers) >= _GROUP or group.size >= _GROUP_BYTES:
            self._end_group()

    def _end_group(self) -> None:
        self._number += 1
        receipt = b"%b%d" % (self.secret, self._number)
        group, self._group = self._group, _Together([])
        self._receipts[receipt] = group if len(group.answers) > 1 else group.answers[0]
        self._output[group.end + 1] = b"\nreceipt:%s\n" % receipt

    def write_and_forget(self, command: bytes, rest: Payload, left: Answer) -> None:
        """Write a frame that gets no RECEIPT. ``left`` is called when the bytes of the frame were written to the
        socket."""
        if self.failed is not None:
            left(self.failed)
            return
        if isinstance(rest, StreamedPayload):
            self._upload(command + b"\n", rest, None, left)
            return
        self._output += (command, b"\n", rest)
        self._bursts.expect(left)

    def flush(self) -> None:
        """Write the pending frames."""
        if self.stream is not None and (self._output or self._bursts or self._uploads.current is not None):
            self.stream.flush()

    def fail(self, error: JMSException) -> None:
        """End the connection with this error. Later errors are ignored."""
        if self.failed is not None:
            return
        self.failed = error
        if self.stream is not None:
            self.stream.close()
        self._listener.on_failure(error)  # first, because failover repeats lost requests on another connection
        self._fail_requests(error)

    def abort(self, error: BaseException) -> None:
        """End the connection without a call to the listener and without a frame to the broker."""
        if self.failed is None:
            self.failed = error if isinstance(error, JMSException) else ConnectionLostException(str(error))
        if self.stream is not None:
            self.stream.abort()
        self._fail_requests(self.failed)

    def _fail_requests(self, error: JMSException) -> None:
        waiting = [*self._receipts.values(), *self._group.answers, *self._bursts.give_up()]
        waiting += self._uploads.give_up()
        self._receipts.clear()
        self._group = _Together([])
        self._unnamed.clear()
        self._output.clear()
        for answered in waiting:
            answered(error)

    # -- frames -------------------------------------------------------------------------------------------------

    def _on_receipt(self, head: bytes) -> None:
        receipt = raw_header(head, b"\nreceipt-id:") or b""
        self._unnamed.pop(receipt, None)
        answered = self._receipts.pop(receipt, None)
        if self._last_message is not None and not self._last_message.answered(receipt):
            self._end_behind_text()
        elif answered is not None:
            answered(None)

    def _on_error(self, head: bytes, body: bytes) -> None:
        receipt = raw_header(head, b"\nreceipt-id:")
        # if errors_end is false, an ERROR always names the refused request
        unnamed = receipt not in self._receipts and self.errors_end
        if unnamed and self._unnamed and not self._shares_receipts():
            receipt = next(iter(self._unnamed))
        answered = self._receipts.pop(receipt, None) if receipt is not None else None
        if receipt is not None and isinstance(answered, _Together):
            # the broker refused the last request, and the outcome of the others is unknown
            *others, answered = answered.answers
            self._receipts[receipt] = _Together(others)  # the end of the connection will answer them
        if receipt is not None:
            self._unnamed.pop(receipt, None)
        error = error_of(
            head, body, "the broker refused the request" if answered else "the broker ended the connection"
        )
        if answered is None:
            self._blame(certain=False)
            self.fail(error if not self._connected or isinstance(error, ConnectionLostException) else _lost(error))
            return
        answered(error)
        if self.errors_end:
            self.fail(_lost(error))

    def _shares_receipts(self) -> bool:
        """Return True if some open requests share one RECEIPT. Only the last of their frames has a receipt id. An ERROR
        without a receipt id may then answer any of the other frames."""
        return any(isinstance(answered, _Together) for answered in self._receipts.values())

    def _on_connected(self, head: bytes) -> None:
        if self._connected:
            raise ConnectionLostException("the broker sent CONNECTED twice")
        try:
            headers = decode_head(head)
        except MessageFormatException as error:
            raise ConnectionLostException(
                f"the peer sent bytes that are not a STOMP frame: CONNECTED: {error}"
            ) from error
        ours = self._options.heart_beat
        offered, wanted = _heart_beat(headers.get("heart-beat", "0,0"))
        self._beats.interval = max(min(ours, _SHORTEST / _EARLY), min(ours, wanted)) if wanted else 0.0
        self._beats.peer_interval = max(ours, offered) if offered else 0.0
        self._connected = True
        if self.stream is not None:
            self.stream.retick()
        self._listener.on_connected(headers)


def _ignored(error: BaseException | None) -> None:
    """Do nothing, because no caller waits for this answer. The arrival of the answer was enough."""


class _Beats:
    """The heart-beats of one connection."""

    __slots__ = ("heard_at", "interval", "look_at", "peer_interval", "received", "sent")

    def __init__(self) -> None:
        self.interval = self.peer_interval = 0.0
        """The seconds between two heart-beats of this client and of the broker. 0 means that there are none."""
        self.sent = self.received = False
        """Whether any bytes were sent, and received, since the last look of the engine."""
        self.look_at = 0.0
        """When the engine next looks whether any bytes were sent. 0 before its first look."""
        self.heard_at: float | None = None
        """When the engine last saw that bytes had come. ``None`` before its first look."""


class _Together:
    """The callbacks of requests that share one RECEIPT."""

    __slots__ = ("answers", "end", "size")

    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.end = self.size = 0
        """``end`` is the position of the last frame in the output, and ``size`` is the number of bytes of all
        frames."""

    def __call__(self, error: BaseException | None) -> None:
        for answered in self.answers:
            answered(error)


def _heart_beat(text: str) -> tuple[float, float]:
    """Return the two numbers of a heart-beat header in seconds. The number 0 means that there are no heart-beats."""
    offered, comma, wanted = map(str.strip, text.partition(","))  # int() does not strip all that strip() does
    if not comma or not _MILLISECONDS.fullmatch(offered) or not _MILLISECONDS.fullmatch(wanted):
        raise ConnectionLostException(f"the broker sent heart-beat {text[:40]!r}; expected two numbers of milliseconds")
    return int(offered) / 1000, int(wanted) / 1000


def _no_reading(source: BodySource) -> Reading:
    raise AssertionError("the body of a frame must be read from a source, but this engine was made without a reader")


def _lost(cause: JMSException, what: str = "the broker ended the connection") -> ConnectionLostException:
    error = ConnectionLostException(f"{what}: {cause}", error_code=cause.error_code)
    error.__cause__ = cause
    return error

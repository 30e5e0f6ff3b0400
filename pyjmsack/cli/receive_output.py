"""The output of ``pyjmsack receive``.

A message counts as written only when it has left this process, because the command then acknowledges it.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import io
import itertools
import json
import os
import re
import secrets
import select
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from pyjmsack import BytesMessage, Char, MapMessage, Message, MessageFormatException, TextMessage, portable
from pyjmsack.cli.resending import check_whole
from pyjmsack.cli.send_input import FILE_NAME, KINDS, STRUCTURED, InputError, check_exported
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.terminal import visible, visible_json
from pyjmsack.cli.values import json_value, readable_properties, wire_types

__all__ = [
    "RENDERERS",
    "Directory",
    "Output",
    "as_document",
    "body_text",
    "exact_line",
    "open_output",
    "sync_directory",
]

_PAGE = 4096
_STOP_GRACE_MS = 200
_LONGEST_NAME = 200
"""The largest number of bytes of a sender's file name that is used. Most file systems allow 255, and the number of the
message takes some of them."""
_BAD_NAME = (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ)


class Output(Protocol):
    """Takes messages. After ``flush`` the messages are safe with the reader of the output."""

    batch: int
    """The largest number of messages that are written before they are flushed and acknowledged together."""

    def write(self, message: Message) -> None:
        """Take a message, which is written at the next flush at the latest.

        Raises:
            MessageFormatException: this output must keep every part of a message, and cannot keep a part of this one.
        """
        ...

    def flush(self) -> None:
        """Give the messages to the reader of the output.

        Raises:
            BrokenPipeError: the reader of the output has ended.
            OSError: the output could not be written.
        """
        ...


def body_text(message: Message) -> str | bytes:
    """Return a text or bytes body as it is, and a map, stream or object as JSON with Java types."""
    document = _typed_json(message)
    if document is not None:
        return document
    body = message.body
    return body if isinstance(body, (str, bytes)) else "" if body is None else str(body)


def _typed_json(message: Message, *, exact: bool = False) -> str | None:
    """Return the body of a map, stream or object message in its portable form, or ``None`` if the body has no such
    form.

    Raises:
        MessageFormatException: the body has no portable form, and ``exact`` is set.
    """
    if isinstance(message, tuple(STRUCTURED.values())):
        if exact and isinstance(message, MapMessage):
            _check_names(message)
        try:
            return portable.encode(message)[1]
        except MessageFormatException:  # the body holds a type that AMQP has and JMS does not have
            if exact:
                raise
    return None


def _check_names(message: MapMessage) -> None:
    odd = next((name for name in message._body if type(name) is Char), None)  # only other AMQP clients send such a name
    if odd is not None:
        raise MessageFormatException(f"the name {str(odd)!r} in a map is a char, and JSON has only texts as names")


def _text_of(message: Message) -> bytes:
    text = body_text(message)
    return text if isinstance(text, bytes) else text.encode(errors="surrogatepass")


_DEAD_LETTER_NOTES = ("_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_QUEUE", "_AMQ_ORIG_MESSAGE_ID", "_AMQ_ACTUAL_EXPIRY")
"""The properties that Artemis adds to a dead letter. The output does not list them among the properties, because they
belong to one delivery."""


def as_document(message: Message, *, exact: bool = False) -> dict[str, Any]:
    """Return a message as fields for JSON, in the form that ``send --format jsonl`` reads.

    Args:
        message: the message.
        exact: whether a value that JSON cannot keep is an error. Otherwise it is shown as text. If no property can be
            read, the field ``properties_unreadable`` has the reason.

    Raises:
        MessageFormatException: ``exact`` is set, and the fields could not become the same message again.
    """
    document: dict[str, Any] = {"message_id": message.message_id, "kind": _kind(message)}
    document |= _body(message, exact=exact) | _headers(message)
    properties, unreadable = (dict(message.properties), None) if exact else readable_properties(message)
    document["properties"] = {name: _shown(value, exact=exact) for name, value in properties.items()}
    types = wire_types(properties)
    if types:
        document["property_types"] = types
    if unreadable is not None:
        document["properties_unreadable"] = unreadable
        return document
    values = ((name, message.properties.get(name)) for name in _DEAD_LETTER_NOTES)
    noted = {name: value for name, value in values if isinstance(value, str)}  # a sender may choose another type
    return document | ({"dead_letter": noted} if noted else {})


def _shown(value: object, *, exact: bool) -> object:
    try:
        return json_value(value)
    except MessageFormatException:
        if exact:
            raise
        return str(value)


def _kind(message: Message) -> str:
    """Return the class of the message in one word. The body does not show the class, because a text message may have
    no text.
    """
    return next(name for name, kind in KINDS.items() if isinstance(message, kind))


def _body(message: Message, *, exact: bool) -> dict[str, Any]:
    if isinstance(message, BytesMessage):
        return {"body_base64": base64.b64encode(message.data).decode()}
    typed = _typed_json(message, exact=exact)
    if typed is not None:
        (name,) = (name for name, kind in STRUCTURED.items() if isinstance(message, kind))
        return {name: json.loads(typed)}
    body: object = message.body
    if exact and body is not None and not isinstance(message, TextMessage):
        raise MessageFormatException(f"a message without a kind has a body of type {type(body).__name__}")
    return {} if body is None else {"body": body if isinstance(body, str) else str(body)}


def _headers(message: Message) -> dict[str, Any]:
    times = {"timestamp": message.timestamp, "expiration": message.expiration}
    headers: dict[str, Any] = {
        "destination": message.destination and message.destination.name,
        "reply_to": message.reply_to and message.reply_to.name,
        "correlation_id": message.correlation_id,
        "type": message.type,
        **{name: value.isoformat() if value else None for name, value in times.items()},
    }
    for name in ("destination", "reply_to"):
        if (place := getattr(message, name)) is not None and place.is_topic:
            headers[f"{name}_kind"] = "topic"
    shown = {name: value for name, value in headers.items() if value is not None}
    return shown | {
        "priority": message.priority,
        "persistent": message.delivery_mode == 2,
        "redelivered": message.redelivered,
        "delivery_count": message.delivery_count,
    }


def _json_of(message: Message) -> bytes:
    return _line(json.dumps(as_document(message), ensure_ascii=False))


def _line(document: str) -> bytes:
    return visible_json(document).encode(errors="surrogatepass")


_HALF = re.compile(r'(?<!"char": ")[\ud800-\udfff]')
"""Half a surrogate pair, except in the portable form of a char, which may be one."""
_AS_WRITTEN = ("body", "body_base64")
"""The fields that an import reads as they were written, whatever they contain."""


def exact_line(message: Message) -> bytes:
    """Return a message as a JSON line that keeps all types.

    Raises:
        MessageFormatException: the message has a value that the line cannot keep, its content may be missing, or an
            import could not read or send the line.
    """
    check_whole(message)
    document = as_document(message, exact=True)
    text = json.dumps(document, ensure_ascii=False)
    if not text.isascii() and _HALF.search(text):
        raise MessageFormatException("a text has half a surrogate pair, which an import could not send")
    # the message may be destroyed after an export, so the line is read as an import would read it
    try:
        check_exported({name: value for name, value in document.items() if name not in _AS_WRITTEN})
    except InputError as error:
        raise MessageFormatException(f"an import could not read its line: {error}") from error
    return _line(text)


def _for_terminals(render: Callable[[Message], bytes]) -> Callable[[Message], bytes]:
    """Return a renderer whose lines have no control characters, because a stranger may have chosen the text."""
    return lambda message: visible(render(message).decode("utf-8", "backslashreplace")).encode()


RENDERERS: Mapping[str, Callable[[Message], bytes]] = {"text": _text_of, "jsonl": _json_of}
_ALL_RENDERERS = {**RENDERERS, "export": exact_line}


def open_output(format_name: str, stop: Stop) -> Output:
    """Return the output that writes to standard output: a :class:`Pipe` for a pipe, otherwise a :class:`Stream`."""
    render = _ALL_RENDERERS[format_name]
    try:
        descriptor = sys.stdout.fileno()
    except io.UnsupportedOperation:  # standard output of a test has no file descriptor
        return Stream(render, _write_to_buffer)
    if os.isatty(descriptor):
        render = _for_terminals(render)
    if _make_small_pipe(descriptor):
        return Pipe(render, descriptor, stop)
    return Stream(render, lambda data: _write_all(descriptor, data))


def _write_to_buffer(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Note the name of the output in an error that names no file, such as the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = name
        raise


class Stream:
    """Writes lines to a file or a terminal, in batches."""

    batch = 100

    def __init__(
        self, render: Callable[[Message], bytes], write: Callable[[bytes], None], name: str = "standard output"
    ) -> None:
        self._render = render
        self._write = write
        self._name = name
        self._buffer = bytearray()

    def write(self, message: Message) -> None:
        """Take a message."""
        self._buffer += self._render(message) + b"\n"

    def flush(self) -> None:
        """Write the messages that :meth:`write` took."""
        data = bytes(self._buffer)
        self._buffer.clear()
        with _naming(self._name):
            self._write(data)


class Pipe(Stream):
    """Writes lines to a pipe, one by one. A line counts as written when the reader has taken it.

    A usual pipe holds 64 KiB, which are lost if the reader ends: with ``| head -n 3`` hundreds of messages would be
    acknowledged and never seen. So the pipe is shrunk to one page. A pipe of one page is writable only when it is
    empty, and then its reader took everything. This costs one system call and one switch to the reader per message.
    """

    batch = 1

    def __init__(self, render: Callable[[Message], bytes], descriptor: int, stop: Stop) -> None:
        super().__init__(render, lambda data: _write_all(descriptor, data))
        self._stop = stop
        self._reader = select.poll()
        self._reader.register(descriptor, select.POLLOUT)
        self._reader_or_stop = select.poll()
        self._reader_or_stop.register(descriptor, select.POLLOUT)
        self._reader_or_stop.register(stop.fileno(), select.POLLIN)
        self._descriptor = descriptor

    def flush(self) -> None:
        """Write, and wait until the reader has taken the bytes. After a stop, bytes in the pipe count as taken."""
        super().flush()
        while not self._stop.requested:
            if self._taken(self._reader_or_stop.poll()):
                return
        self._taken(self._reader.poll(_STOP_GRACE_MS))

    def _taken(self, events: list[tuple[int, int]]) -> bool:
        state = dict(events).get(self._descriptor, 0)
        if state & (select.POLLERR | select.POLLHUP) and not state & select.POLLOUT:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        return bool(state & select.POLLOUT)


def _make_small_pipe(descriptor: int) -> bool:
    """Shrink a pipe to one page. Return ``False`` for a file, for a pipe with data, or if the system cannot do it."""
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode) or not hasattr(fcntl, "F_SETPIPE_SZ"):
        return False
    with contextlib.suppress(OSError):
        return fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PAGE) == _PAGE
    return False


class Directory:
    """Writes one file for each message, such as ``000001-name``. A file appears when it is complete, and no file is
    ever overwritten.

    After ``flush`` the files are on the disk.
    """

    batch = 1

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._numbers = itertools.count(1)

    def write(self, message: Message) -> None:
        """Write a file, first under a name that nobody can foresee, because others may write into the directory too."""
        partial = self._directory / f".{secrets.token_hex(16)}.partial"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            with _naming(str(self._directory)), os.fdopen(descriptor, "wb") as file:
                file.write(_text_of(message))
                file.flush()
                os.fsync(file.fileno())
            self._publish(partial, message)
        finally:
            partial.unlink()

    def _publish(self, partial: Path, message: Message) -> None:
        """Put the finished file under its number and the sender's name. If the file system refuses that name, use the
        number and an extension.
        """
        label, plain = _file_label(message), _extension(message)
        for number in self._numbers:
            try:
                os.link(partial, self._directory / f"{number:06d}{label}")
            except FileExistsError:
                continue
            except OSError as error:
                if label == plain or error.errno not in _BAD_NAME:
                    raise
                label = plain
                continue
            return

    def flush(self) -> None:
        """Wait until the names of the files are on the disk, because a crash of the machine could take them."""
        sync_directory(self._directory)


def sync_directory(path: Path) -> None:
    """Wait until the names of all files in a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_label(message: Message) -> str:
    """Return the text that follows the number in the name of a file.

    The text is the file name that the sender gave, without its directory. If there is no such name, the text is an
    extension.
    """
    name = os.path.basename(str(readable_properties(message)[0].get(FILE_NAME) or ""))
    safe = "".join(c if c.isprintable() else "_" for c in name).lstrip(".")
    short = safe.encode()[:_LONGEST_NAME].decode(errors="ignore")  # the cut never leaves a part of a character
    return f"-{short}" if short else _extension(message)


def _extension(message: Message) -> str:
    structured = isinstance(message, tuple(STRUCTURED.values()))
    return ".json" if structured else ".bin" if isinstance(message, BytesMessage) else ".txt"

"""A bytes message whose body is read while the message is sent. The whole body is never in memory (S168)."""

from __future__ import annotations

from pyjmsack.errors import MessageNotReadableException
from pyjmsack.message.bytes import BytesMessage
from pyjmsack.message.source import BodySource

__all__ = ["StreamedBytesMessage"]


class StreamedBytesMessage(BytesMessage):
    """A bytes message to send. Its body comes from a source, which is a file or an iterable. ``clear_body()`` removes
    the source, and the message is then like any other bytes message.

    Args:
        source: the source of the body.

    Raises:
        MessageNotReadableException: a method reads the body, which is not in memory.
        MessageNotWriteableException: a method writes to the body, which comes from the source.
    """

    __slots__ = ()

    def __init__(self, source: BodySource) -> None:
        super().__init__()
        self._body: bytes | BodySource = source
        self._body_readonly = True

    @property
    def body_length(self) -> int:
        """The number of bytes in the body."""
        body = self._body
        return body.length if isinstance(body, BodySource) else super().body_length

    def reset(self) -> None:
        """Make the body read-only. A body from a source is always read-only."""
        if not isinstance(self._body, BodySource):
            super().reset()

    def _flush(self) -> None:
        self._check_in_memory()
        super()._flush()

    def _check_readable(self) -> None:
        self._check_in_memory()
        super()._check_readable()

    def _check_in_memory(self) -> None:
        if isinstance(self._body, BodySource):
            raise MessageNotReadableException(
                f"the body is read from {self._body!r} when the message is sent, and is not in memory before"
            )

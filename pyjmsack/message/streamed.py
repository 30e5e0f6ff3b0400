"""A bytes message with a body that is read while it is sent, and is never in memory as a whole (S168)."""

from __future__ import annotations

from pyjmsack.errors import MessageNotReadableException
from pyjmsack.message.bytes import BytesMessage
from pyjmsack.message.source import BodySource

__all__ = ["StreamedBytesMessage"]


class StreamedBytesMessage(BytesMessage):
    """A bytes message to send, with a body from a file or an iterable. ``clear_body()`` makes it an ordinary one.

    Raises:
        MessageNotReadableException: (reading) the body is not in memory.
        MessageNotWriteableException: (writing) the body comes from its source.
    """

    __slots__ = ()

    def __init__(self, source: BodySource) -> None:
        super().__init__()
        self._body: bytes | BodySource = source
        self._body_readonly = True

    @property
    def body_length(self) -> int:
        """Number of bytes in the body."""
        body = self._body
        return body.length if isinstance(body, BodySource) else super().body_length

    def reset(self) -> None:
        """Do nothing, because a body from a source is always read-only."""
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
                f"the body comes from {self._body!r} when the message is sent, and is not in memory"
            )

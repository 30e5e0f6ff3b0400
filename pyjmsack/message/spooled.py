"""A received bytes message whose body is in a temporary file (S168)."""

from __future__ import annotations

import io
from typing import Any

from pyjmsack.message.bytes import BytesMessage
from pyjmsack.message.source import BodySource

__all__ = ["SpooledBytesMessage"]


class SpooledBytesMessage(BytesMessage):
    """A large message as it was received. ``save_to`` and ``chunks`` read its body piece by piece. ``data``, ``body``
    and the ``read_`` methods load all of it into memory first, and keep it there.

    The providers make it; it has no constructor of its own.
    """

    __slots__ = ()

    _body: bytes | BodySource

    @property
    def body_length(self) -> int:
        """Number of bytes in the body."""
        body = self._body
        return body.length if isinstance(body, BodySource) else super().body_length

    def is_body_assignable_to(self, type: type[Any]) -> bool:
        """Return whether ``get_body(type)`` would succeed, without reading the body.

        Args:
            type: as for :meth:`get_body`.
        """
        return isinstance(b"", type)

    def _flush(self) -> None:
        self._load()
        super()._flush()

    def _check_readable(self) -> None:
        super()._check_readable()
        self._load()

    def _load(self) -> None:
        if isinstance(self._body, BodySource):
            whole = io.BytesIO()  # gives its bytes away without a copy
            for piece in self._body.pieces():
                whole.write(piece)
            self._body = whole.getvalue()

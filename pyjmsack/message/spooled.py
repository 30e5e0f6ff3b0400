"""A received bytes message whose body is in a temporary file (S168)."""

from __future__ import annotations

import io
from typing import Any

from pyjmsack.message.bytes import BytesMessage
from pyjmsack.message.source import BodySource

__all__ = ["SpooledBytesMessage"]


class SpooledBytesMessage(BytesMessage):
    """A received bytes message whose body is in a temporary file.

    ``save_to`` and ``chunks`` read the body piece by piece. ``data``, ``body`` and the ``read_`` methods first load the
    whole body into memory, and the body stays there. The providers make such messages. This class has no constructor of
    its own.
    """

    __slots__ = ()

    _body: bytes | BodySource

    @property
    def body_length(self) -> int:
        """The number of bytes in the body."""
        body = self._body
        return body.length if isinstance(body, BodySource) else super().body_length

    def is_body_assignable_to(self, type: type[Any]) -> bool:
        """Return whether ``get_body(type)`` would succeed, without reading the body.

        Args:
            type: the type that the body must have, as for :meth:`get_body`.
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
            whole = io.BytesIO()  # getvalue() below makes no copy
            for piece in self._body.pieces():
                whole.write(piece)
            self._body = whole.getvalue()

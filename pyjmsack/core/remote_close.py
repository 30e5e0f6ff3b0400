"""What the broker closes without being asked, and who hears of it (S109)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyjmsack.core.connection import Connection

__all__ = ["RemoteClose"]


class RemoteClose:
    """Tells the connection listeners, once, that the broker closed a session, producer or consumer.

    The loop learns of it, perhaps before the caller has the object that the listeners are to be told: whoever comes
    second tells them. An object that no caller gets, such as the consumer of a browser, is not told.

    Args:
        event: the listeners' method, ``on_session_closed``.
    """

    __slots__ = ("__weakref__", "_connection", "_object", "_untold", "error")

    def __init__(self, connection: Connection, event: str) -> None:
        self._connection = connection
        self._untold = [event]
        self._object: object = None
        self.error: BaseException | None = None
        """Why the broker closed it; ``None`` if it did not."""

    def given(self, to_caller: object) -> None:
        """The caller has the object of its face. Any thread."""
        self._object = to_caller
        self._tell()

    def forget(self) -> None:
        """The caller closed the object: nobody is told, and it is not kept alive from here."""
        self._object = None

    def happened(self, error: BaseException) -> None:
        """The broker closed it. On the loop."""
        self.error = error
        self._tell()

    def _tell(self) -> None:
        told = self._object
        if self.error is not None and told is not None:
            with suppress(IndexError):  # the other thread was faster
                self._connection.tell(self._untold.pop(), told, self.error)

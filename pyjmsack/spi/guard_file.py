"""The interface between the core and the file that remembers processed messages after a restart of the process (S105).

The implementation is ``io/guard_file.py``. ``core/guard.py`` has ``Store``, the interface of every store, and chooses
the store of a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pyjmsack.errors import JMSException

__all__ = ["Answer", "GuardFile", "Keys", "Report"]

Keys = Callable[[], Sequence[bytes]]
"""A function that returns the keys to look up. The thread of the file calls it, because making the keys may take
time."""
Answer = Callable[[set[bytes]], None]
Report = Callable[[JMSException], None]


class GuardFile(Protocol):
    """A set of keys in a file, which several sessions may share. Each key stands for a processed message.

    No method waits for the disk. A thread does all work on the file and calls the callbacks.
    """

    @property
    def full(self) -> bool:
        """True if too many keys wait to be written."""
        ...

    def opened(self, answer: Callable[[JMSException | None], None], /) -> None:
        """Call ``answer(None)`` when the file can be used, or ``answer(error)`` if it cannot be used."""
        ...

    def ask(self, keys: Keys, answer: Answer, /) -> None:
        """Call ``keys()``, select the keys that are in the file, and call ``answer`` with these keys. Another session
        or process may have written them."""
        ...

    def write(self, keys: Sequence[bytes], then: Callable[[], None], /) -> None:
        """Write keys, and call ``then`` when these and all earlier keys are in the file.

        If the disk fails, ``then`` is called when the disk works again. The core sends the acknowledgement of a message
        only after its key is written, so that a killed process does not forget an acknowledged message.
        """
        ...

    def __contains__(self, key: bytes, /) -> bool:
        """Return True if this process wrote the key or is about to write it."""
        ...

    def close(self, report: Report, /) -> None:
        """Leave the file, because a session does not need it any more. ``report`` is the function that the session gave
        when it opened the file.
        """
        ...

"""The interface between the core and the file that remembers processed messages over a restart (S105). The
implementation is ``io/guard_file.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pyjmsack.errors import JMSException

__all__ = ["Answer", "GuardFile", "Keys", "Report"]

Keys = Callable[[], Sequence[bytes]]
"""Returns the keys to look up. The thread of the file calls it, because making the keys may take time."""
Answer = Callable[[set[bytes]], None]
Report = Callable[[JMSException], None]


class GuardFile(Protocol):
    """A set of keys in a file, which several sessions may share. No method waits for the disk. The thread of the file
    calls the callbacks."""

    @property
    def full(self) -> bool:
        """True if too many keys wait to be written."""
        ...

    def opened(self, answer: Callable[[JMSException | None], None], /) -> None:
        """Call ``answer`` when the file can be used, or with the reason why it cannot."""
        ...

    def ask(self, keys: Keys, answer: Answer, /) -> None:
        """Call ``answer`` with those keys that are in the file, also if another session or process wrote them."""
        ...

    def write(self, keys: Sequence[bytes], then: Callable[[], None], /) -> None:
        """Write keys, and call ``then`` when they and all earlier keys are in the file. If the disk fails, ``then``
        waits until it works again. The acknowledgement of a message is sent after its key is written, so that a killed
        process does not forget an acknowledged message."""
        ...

    def __contains__(self, key: bytes, /) -> bool:
        """Return True if this process wrote the key or is about to write it."""
        ...

    def close(self, report: Report, /) -> None:
        """Leave the file: the session that opened it with ``report`` needs it no more."""
        ...

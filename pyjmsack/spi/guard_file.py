"""What the core asks of the file in which processed messages are remembered over a restart (S105)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pyjmsack.errors import JMSException

__all__ = ["Answer", "GuardFile", "Keys", "Report"]

Keys = Callable[[], Sequence[bytes]]
"""Returns the keys that are asked about; called where nobody waits, as making them may take time."""
Answer = Callable[[set[bytes]], None]
Report = Callable[[JMSException], None]


class GuardFile(Protocol):
    """Keys in a file, shared by the sessions that name it. Its methods never wait for the disk; what they are given to
    call is called by a thread of the file's own."""

    @property
    def full(self) -> bool:
        """Whether too many keys wait to be written."""
        ...

    def opened(self, answer: Callable[[JMSException | None], None], /) -> None:
        """Call ``answer`` when the file can be used, or with the reason why it cannot."""
        ...

    def ask(self, keys: Keys, answer: Answer, /) -> None:
        """Call ``answer`` with those keys that the file holds, whoever wrote them."""
        ...

    def write(self, keys: Sequence[bytes], then: Callable[[], None], /) -> None:
        """Remember keys, and call ``then`` when they are in the file, and all that came earlier. If the disk fails that
        is later: a key is written before its acknowledgement is sent, so that a killed process does not undo it."""
        ...

    def __contains__(self, key: bytes, /) -> bool:
        """Whether this process wrote it, or is about to."""
        ...

    def close(self, report: Report, /) -> None:
        """Who opened it with ``report`` leaves."""
        ...

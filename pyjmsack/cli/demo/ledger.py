"""The receiving end's record of lines, and a consumer that fails now and then on purpose."""

from __future__ import annotations

import time

from pyjmsack import Message
from pyjmsack.cli.demo.source import Source, body_bytes

__all__ = ["FAIL_EVERY", "Ledger", "ProcessingError"]

FAIL_EVERY = 97
"""The first delivery of every 97th line fails."""

Key = tuple[int, int]


class ProcessingError(Exception):
    """Raised on purpose, in the place of an error in an application."""


class Ledger:
    """The record of the lines that arrived. One thread delivers, other threads may read the counts.

    Args:
        fails_after: whether a line that fails on purpose fails after it was stored, and not before. For modes in which
            the broker forgets a message before it is processed: then the broker must not deliver the line again.
        broker_dies: for rows in which the broker is killed. Then a message that is delivered again need not be marked
            as redelivered, and a stored line must not be delivered again (S105).
    """

    def __init__(self, source: Source, *, fails_after: bool = False, broker_dies: bool = False) -> None:
        self._source = source
        self._fails_after = fails_after
        self._broker_dies = broker_dies
        self._lines: dict[Key, bytes] = {}
        self._failed: set[Key] = set()
        self._owed: set[Key] = set()
        self.redelivered = 0
        self.rolled_back_sends = 0
        self.duplicates = 0
        self.last_arrival = time.monotonic()

    def deliver(self, message: Message) -> Key:
        """Take one delivery and return its kind.

        Raises:
            ProcessingError: on purpose, at every 97th line.
        """
        properties = message.properties
        key = (message.get_int_property("file"), message.get_int_property("line"))
        self.last_arrival = time.monotonic()
        if "rolled_back" in properties:
            self.rolled_back_sends += 1
            return key
        if message.redelivered:
            self.redelivered += 1
        if message.redelivered or self._broker_dies:
            self._owed.discard(key)
        fails = message.get_int_property("sequence") % FAIL_EVERY == FAIL_EVERY - 1 and key not in self._failed
        if not fails or self._fails_after:
            self._store(key, message)
        if fails:
            self._fail(key)
        return key

    def _store(self, key: Key, message: Message) -> None:
        if key in self._lines and (self._broker_dies or not message.redelivered):
            self.duplicates += 1
        self._lines[key] = body_bytes(message)

    def _fail(self, key: Key) -> None:
        self._failed.add(key)
        if not self._fails_after:
            self._owed.add(key)
        raise ProcessingError(f"line {key[1]} of file {key[0]}: a failure on purpose")

    def expect_again(self, keys: list[Key]) -> None:
        """Note unacknowledged messages. Each must be delivered again, flagged as redelivered."""
        self._owed.update(keys)

    @property
    def received(self) -> int:
        """The number of different lines so far."""
        return len(self._lines)

    @property
    def owed(self) -> int:
        """The number of lines that must be delivered again and were not delivered again yet."""
        return len(self._owed)

    @property
    def complete(self) -> bool:
        """Whether every line has arrived, and every line that had to come again came again."""
        return len(self._lines) >= len(self._source.lines) and not self._owed

    def differing(self) -> list[str]:
        """Return the files that differ from the sent files."""
        return self._source.differing((file, line, data) for (file, line), data in self._lines.items())

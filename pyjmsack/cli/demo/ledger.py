"""Records the lines that arrive at the receiving end, and makes some deliveries fail on purpose."""

from __future__ import annotations

import time

from pyjmsack import Message
from pyjmsack.cli.demo.source import Source, body_bytes

__all__ = ["FAIL_EVERY", "Ledger", "ProcessingError"]

FAIL_EVERY = 97
"""The first delivery of every 97th line fails."""

Key = tuple[int, int]


class ProcessingError(Exception):
    """An error that the demo raises on purpose, as an application may raise errors."""


class Ledger:
    """The record of the lines that arrived. One thread calls :meth:`deliver`; other threads may read the counts.

    Args:
        fails_after: whether a line that fails on purpose is stored before it fails. True for the modes in which the
            broker forgets a message as soon as it has sent the message. In these modes a failed line does not arrive
            again.
        broker_dies: whether the broker is killed during the row. If the broker is killed, a line that arrives again
            need not be marked as redelivered, and a line that was stored must not arrive again (S105).
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
        """Record one delivery. Return the file and the line that the message carries.

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
        """Remember that each of these lines must arrive again in a message that is marked as redelivered."""
        self._owed.update(keys)

    @property
    def received(self) -> int:
        """The number of different lines that have arrived so far."""
        return len(self._lines)

    @property
    def owed(self) -> int:
        """The number of lines that must be delivered again and were not delivered again yet."""
        return len(self._owed)

    @property
    def complete(self) -> bool:
        """Whether every line has arrived, and every line that must arrive again has arrived again."""
        return len(self._lines) >= len(self._source.lines) and not self._owed

    def differing(self) -> list[str]:
        """Return the names of the files whose received lines differ from the sent lines."""
        return self._source.differing((file, line, data) for (file, line), data in self._lines.items())

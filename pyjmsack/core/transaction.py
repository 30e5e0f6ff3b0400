"""What the client knows of a session's open transaction: its sends, its deliveries, and whether it can commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count

from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion

__all__ = ["Transaction"]

_numbers: Iterator[int] = count(1)


class Transaction:
    """Work since the last commit or rollback.

    The loop counts what it hands to the provider and what the broker answered; ``settled`` meets ``submitted`` when no
    outcome is missing. The session's thread does not count, because Ctrl-C may come between any two of its steps: it
    asks behind what it submitted (``when_decided``).
    """

    __slots__ = (
        "_idle",
        "_outcome",
        "_records",
        "acknowledged",
        "failure",
        "number",
        "sent",
        "settled",
        "submitted",
    )

    def __init__(self) -> None:
        self.submitted = 0
        self.settled = 0
        self.failure: BaseException | None = None
        """The first send that the broker did not take: the transaction can only be rolled back (S86)."""
        self.sent: list[str] = []
        self.acknowledged: list[Message] = []
        self._idle: Completion[None] | None = None
        self.number = next(_numbers)
        self._outcome: str | None = None
        self._records: deque[Callable[[str], None]] = deque()

    def on_sent(self, error: BaseException | None) -> None:
        """The broker answered one send, on the loop."""
        if error is not None and self.failure is None:
            self.failure = error  # before it counts: the other side may look in between
        self.settled += 1
        if self._idle is not None and self.decided:
            self._idle.succeed()

    @property
    def decided(self) -> bool:
        """Whether nothing that is still open can change how the transaction must end."""
        return self.failure is not None or self.settled >= self.submitted

    def when_decided(self, done: Completion[None]) -> None:
        """Complete ``done`` once every send is answered, or one was refused; runs on the loop after all of them."""
        if self.decided:
            done.succeed()
        else:
            self._idle = done  # of the last caller: one before it has given up

    def record(self, write: Callable[[str], None]) -> None:
        """Call ``write(outcome)`` once the outcome is known; either side."""
        self._records.append(write)
        if self._outcome is not None:
            self._write(self._outcome)

    def ended(self, outcome: str) -> None:
        """It is ``committed``, ``rolled_back`` or ``unknown``; the first call counts."""
        self._outcome = self._outcome or outcome
        self._write(self._outcome)

    def _write(self, outcome: str) -> None:
        """Each record once: the side that takes it out writes it."""
        while self._records:
            try:
                write = self._records.popleft()
            except IndexError:  # the other side took it
                return
            write(outcome)

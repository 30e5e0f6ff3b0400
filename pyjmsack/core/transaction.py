"""What the client knows of a session's open transaction: its sends, its deliveries, and whether it can commit."""

from __future__ import annotations

from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion

__all__ = ["Transaction"]


class Transaction:
    """Work since the last commit or rollback.

    Two sides write, each its own fields: the session's thread counts what it submits, the loop counts what the broker
    answered. ``settled`` meets ``submitted`` when no outcome is missing.
    """

    __slots__ = ("_idle", "acknowledged", "failure", "sent", "settled", "submitted")

    def __init__(self) -> None:
        self.submitted = 0
        self.settled = 0
        self.failure: BaseException | None = None
        """The first send that the broker did not take: the transaction can only be rolled back (S86)."""
        self.sent: list[str] = []
        self.acknowledged: list[Message] = []
        self._idle: Completion[None] | None = None

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
            self._idle = done

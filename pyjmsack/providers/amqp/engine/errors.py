"""What goes wrong in the engine: the peer breaks the specification, or the caller does."""

from __future__ import annotations

__all__ = ["StateError", "ViolationError"]


class ViolationError(Exception):
    """The peer broke the specification. The engine ends the connection with the condition and the description.

    Never seen by the caller, who gets a ``FAILED`` event.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(condition, description)
        self.condition = condition
        self.description = description


class StateError(Exception):
    """The caller asked for something that the specification does not allow now; nothing was sent."""

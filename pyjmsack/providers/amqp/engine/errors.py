"""The errors of the engine: either the peer or the caller broke the specification."""

from __future__ import annotations

__all__ = ["StateError", "ViolationError"]


class ViolationError(Exception):
    """The peer broke the specification. The engine ends the connection with the condition and the description.

    The caller of the engine never sees this error, but gets a ``FAILED`` event.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(condition, description)
        self.condition = condition
        self.description = description


class StateError(Exception):
    """The caller asked for something that the specification does not allow now. Nothing was sent."""

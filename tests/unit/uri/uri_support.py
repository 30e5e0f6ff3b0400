"""What the tests of broker URLs share."""

from __future__ import annotations

from typing import Any

__all__ = ["MARKER", "value_at"]

MARKER = "Xq7Marker"
"""Part of every password here; the tests look for it where it must not be."""


def value_at(parsed: Any, path: str) -> Any:
    """Return the field at a dotted path."""
    for name in path.split("."):
        parsed = getattr(parsed, name)
    return parsed

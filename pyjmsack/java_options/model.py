"""One option of a Java client, and the option of this library that replaces a value of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Fate", "JavaOption", "Translation", "as_boolean", "by_hand", "decided", "ignored", "refused", "renamed"]


class Fate(Enum):
    """The treatment of an option of a Java client."""

    HONOURED = "honoured"
    """One or more options of ours do the same."""
    IGNORED = "ignored"
    """Nothing is lost without it."""
    REFUSED = "refused"
    """There is nothing like it; the reason names the alternative."""
    BY_HAND = "by hand"
    """Python code, or a decision of yours, replaces it."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The replacement for one value of an option."""

    fate: Fate
    why: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of a pyjmsack URL with their texts."""


@dataclass(frozen=True, slots=True)
class JavaOption:
    """An option of a Java client."""

    name: str
    fate: Fate
    """Of its usual values; :meth:`translate` knows the fate of each value."""
    ours: str
    """The option that replaces it, or empty."""
    why: str
    decide: Callable[[str], Translation] | None = None

    def translate(self, value: str) -> Translation:
        """Return the replacement for this value."""
        if self.decide is not None:
            return self.decide(value)
        return Translation(self.fate, self.why, {self.ours: value} if self.ours else {})

    def hint(self) -> str:
        """Return one clause for an error that names the option."""
        return f"use {self.ours}" + (f": {self.why}" if self.why else "") if self.ours else self.why


def as_boolean(text: str) -> bool:
    """Return the result of ``Boolean.parseBoolean`` for a text."""
    return text.strip().lower() == "true"


def renamed(pairs: Mapping[str, str], why: str = "") -> Iterable[JavaOption]:
    """Options that pyjmsack has under another name, with the same values."""
    return [JavaOption(name, Fate.HONOURED, ours, why) for name, ours in pairs.items()]


def ignored(names: str, why: str) -> Iterable[JavaOption]:
    """Options that need no replacement."""
    return [JavaOption(name, Fate.IGNORED, "", why) for name in names.split()]


def refused(names: str, why: str) -> Iterable[JavaOption]:
    """Options without a replacement; ``why`` names the alternative."""
    return [JavaOption(name, Fate.REFUSED, "", why) for name in names.split()]


def by_hand(names: str, why: str) -> Iterable[JavaOption]:
    """Options that code or a decision replaces."""
    return [JavaOption(name, Fate.BY_HAND, "", why) for name in names.split()]


def decided(name: str, ours: str, why: str, decide: Callable[[str], Translation]) -> Iterable[JavaOption]:
    """Return an option whose value decides how it is replaced."""
    return [JavaOption(name, Fate.HONOURED, ours, why, decide)]

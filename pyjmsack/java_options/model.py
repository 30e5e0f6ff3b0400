"""An option of a Java client, and its replacement in this library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Fate", "JavaOption", "Translation", "as_boolean", "by_hand", "decided", "ignored", "refused", "renamed"]


class Fate(Enum):
    """The treatment of an option of a Java client."""

    HONOURED = "honoured"
    """One or more options of this library have the same effect."""
    IGNORED = "ignored"
    """This library does not need the option."""
    REFUSED = "refused"
    """This library has no option with this effect. The reason names an alternative."""
    BY_HAND = "by hand"
    """Python code, or a decision of the user, replaces the option."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The replacement for one value of an option."""

    fate: Fate
    why: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    """The options of a pyjmsack URL that replace the option, with their texts."""


@dataclass(frozen=True, slots=True)
class JavaOption:
    """An option of a Java client."""

    name: str
    fate: Fate
    """The fate of the option for its usual values. :meth:`translate` returns the fate for one value."""
    ours: str
    """The option of this library that replaces the Java option. Empty if there is no such option."""
    why: str
    decide: Callable[[str], Translation] | None = None

    def translate(self, value: str) -> Translation:
        """Return the replacement for a value of the option."""
        if self.decide is not None:
            return self.decide(value)
        return Translation(self.fate, self.why, {self.ours: value} if self.ours else {})

    def hint(self) -> str:
        """Return the text in parentheses that an error about this option shows."""
        return f"use {self.ours}" + (f": {self.why}" if self.why else "") if self.ours else self.why


def as_boolean(text: str) -> bool:
    """Return the value that Java's ``Boolean.parseBoolean`` returns for a text."""
    return text.strip().lower() == "true"


def renamed(pairs: Mapping[str, str], why: str = "") -> Iterable[JavaOption]:
    """Return options that pyjmsack has under another name, with the same values."""
    return [JavaOption(name, Fate.HONOURED, ours, why) for name, ours in pairs.items()]


def ignored(names: str, why: str) -> Iterable[JavaOption]:
    """Return options that need no replacement. ``why`` is the reason."""
    return [JavaOption(name, Fate.IGNORED, "", why) for name in names.split()]


def refused(names: str, why: str) -> Iterable[JavaOption]:
    """Return options without a replacement. ``why`` is the reason, and names an alternative."""
    return [JavaOption(name, Fate.REFUSED, "", why) for name in names.split()]


def by_hand(names: str, why: str) -> Iterable[JavaOption]:
    """Return options that Python code or a decision of the user replaces. ``why`` names the code or the decision."""
    return [JavaOption(name, Fate.BY_HAND, "", why) for name in names.split()]


def decided(name: str, ours: str, why: str, decide: Callable[[str], Translation]) -> Iterable[JavaOption]:
    """Return an option whose replacement depends on its value."""
    return [JavaOption(name, Fate.HONOURED, ours, why, decide)]

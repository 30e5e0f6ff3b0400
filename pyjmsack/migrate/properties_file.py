"""Reads Java's ``.properties`` files, with the line number of each key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["Entry", "read_properties"]

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SEPARATOR: Final = re.compile(r"(?<!\\)(?:\\\\)*([ \t\f]*[=:][ \t\f]*|[ \t\f]+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value. ``profile`` is the profile of Spring. ``profile`` is empty for an entry outside of
    profiles.
    """

    line: int
    key: str
    value: str
    profile: str = ""


def read_properties(text: str) -> list[Entry]:
    """Return the entries of a file, in order. There are no syntax errors, because Java accepts every line."""
    return [_entry(number, line) for number, line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line. Continuation lines are joined to the line. Comments and empty lines
    are left out.
    """
    lines = enumerate(re.split(r"\r\n|\r|\n", text), start=1)
    for number, first in lines:
        line = first.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        parts = [line]
        while _continues(parts[-1]):
            parts[-1] = parts[-1][:-1]
            parts.append(next(lines, (0, ""))[1].lstrip(" \t\f"))
        yield number, "".join(parts)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _entry(number: int, line: str) -> Entry:
    found = _SEPARATOR.search(line)
    key, value = (line[: found.start(1)], line[found.end() :]) if found else (line, "")
    return Entry(number, _unescaped(key), _unescaped(value).strip())


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        found = match[1]
        return chr(int(found[1:], 16)) if len(found) == 5 else _ESCAPES.get(found, found)

    return _ESCAPED.sub(one, text)

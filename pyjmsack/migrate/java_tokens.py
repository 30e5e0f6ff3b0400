"""Splits Java sources into words, texts, numbers and marks, and finds the bracket that closes each bracket."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Head", "Token", "Tokens", "head_of", "simple_name", "split", "tokens_of"]

_MOST: Final = 500_000
_TOKEN: Final = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*(?:.*?\*/|.*))"
    r'|(?P<block>"""(?:\\.|[^\\])*?(?:"""|\Z))'
    r"""|(?P<text>"(?:\\.|[^"\\\n])*"?)"""
    r"|(?P<letter>'(?:\\.|[^'\\\n])*'?)"
    r"|(?P<number>\d[\w.]*)"
    r"|(?P<word>[^\W\d][\w$]*)"
    r"|(?P<mark>.)",
    re.DOTALL,
)
_LONGEST_HEAD: Final = 300
_OPENING: Final = {"(": ")", "{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token. ``kind`` is ``text``, ``block``, ``letter``, ``number``, ``word`` or ``mark``."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a file, without comments."""

    all: Sequence[Token]
    closing: Mapping[int, int]
    """For each opening bracket, the index of its closing bracket. A bracket that is never closed has nothing inside."""

    def inside(self, opening: int) -> range:
        """Return the indexes between an opening bracket and its closing bracket."""
        return range(opening + 1, self.closing[opening])

    def after(self, opening: int) -> int:
        """Return the index after the bracket that closes ``opening``."""
        return self.closing[opening] + 1

    def is_at(self, index: int, *texts: str) -> bool:
        """Return whether these words or marks are the tokens from ``index`` on."""
        if index + len(texts) > len(self.all):
            return False
        for text in texts:
            if self.all[index].text != text:
                return False
            index += 1
        return True

    def source(self, part: Sequence[int]) -> str:
        """Return tokens as one text for a row or an error."""
        return " ".join(self.all[index].text for index in part[:40])


def tokens_of(text: str) -> Tokens:
    """Return the tokens of a source. The time grows only in proportion to the length of the source."""
    found: list[Token] = []
    closing: dict[int, int] = {}
    opened: list[int] = []
    line = 1
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind != "skip":
            if len(found) == _MOST:
                break
            if kind == "mark" and match[0] in _OPENING:
                opened.append(len(found))
            elif kind == "mark" and opened and match[0] == _OPENING[found[opened[-1]].text]:
                closing[opened.pop()] = len(found)
            found.append(Token(kind, match[0], line))
        line += match[0].count("\n")
    closing.update({index: index for index in opened})
    return Tokens(found, closing)


def split(tokens: Tokens, part: range, mark: str = ",") -> list[range]:
    """Split a range at each ``mark``, and return the parts. A mark inside of brackets does not split."""
    parts, start, index = [], part.start, part.start
    while index < part.stop:
        if index in tokens.closing:
            index = min(tokens.after(index), part.stop)
            continue
        if tokens.all[index].kind == "mark" and tokens.all[index].text == mark:
            parts.append(range(start, index))
            start = index + 1
        index += 1
    last = range(start, part.stop)
    return [*parts, last] if parts or last else []


def simple_name(tokens: Tokens, start: int) -> tuple[str, int]:
    """Return the last word of a dotted name that begins at ``start``, and the index after the name."""
    name, index = "", start
    while index < len(tokens.all) and tokens.all[index].kind == "word":
        name, index = tokens.all[index].text, index + 1
        if not tokens.is_at(index, "."):
            break
        index += 1
    return name, index


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a method: its name, the parenthesis of its parameters, and its annotations."""

    name: str
    line: int
    opening: int
    annotations: Mapping[str, range]
    """The indexes inside the parentheses of each annotation, by its simple name."""


def head_of(tokens: Tokens, index: int) -> Head | None:
    """Return the head of the method that begins at ``index`` with annotations or a type, or ``None`` if no method
    begins there.
    """
    annotations: dict[str, range] = {}
    end = min(len(tokens.all), index + _LONGEST_HEAD)
    while index < end:
        text = tokens.all[index].text
        if text == "@":
            name, index = simple_name(tokens, index + 1)
            opened = tokens.is_at(index, "(")
            annotations.setdefault(name, tokens.inside(index) if opened else range(index, index))
            index = tokens.after(index) if opened else index
        elif text == "(":
            method = tokens.all[index - 1]
            return Head(method.text, method.line, index, annotations) if method.kind == "word" else None
        elif text in ("{", "}", ";"):
            return None
        else:
            index += 1
    return None

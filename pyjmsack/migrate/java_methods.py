"""Finds the methods with a body in a Java source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyjmsack.migrate.java_tokens import Head, Tokens, head_of, simple_name

__all__ = ["Method", "declared_in", "methods_of"]

_NO_METHODS: Final = {"if", "for", "while", "switch", "catch", "synchronized", "try", "class", "record", "enum"}
_EXPRESSIONS: Final = {"=", "new", "return", "throw", "else", "record", "class", "interface", "enum"}
_LONGEST_HEAD: Final = 300
_LONGEST_TYPE: Final = 40
_ENDS: Final = {"=", ";", ",", ")", "(", ":"}


@dataclass(frozen=True, slots=True)
class Method:
    """A method with a body."""

    start: int
    """The index of the first token of the method."""
    head: Head
    body: range
    """The indexes between the braces of the method."""
    first: int
    last: int
    """The last line of the method. ``first`` is the first line, which includes the annotations."""


def methods_of(tokens: Tokens) -> Iterator[Method]:
    """Yield the methods of all classes of a source. A method inside another method belongs to the outer method."""
    index, boundary = 0, True
    while index < len(tokens.all):
        method = _method(tokens, index) if boundary else None
        if method is not None:
            yield method
            index = method.body.stop + 1
            continue
        text = tokens.all[index].text
        boundary = tokens.all[index].kind == "mark" and text in ("{", "}", ";")
        index += 1


def _method(tokens: Tokens, start: int) -> Method | None:
    head = head_of(tokens, start)
    if head is None or head.name in _NO_METHODS or head.opening not in tokens.closing:
        return None
    if any(tokens.all[index].text in _EXPRESSIONS for index in _outside(tokens, start, head.opening)):
        return None
    body = tokens.after(head.opening)
    end = min(len(tokens.all), body + _LONGEST_HEAD)
    while body < end and (tokens.all[body].kind == "word" or tokens.all[body].text in (",", ".")):  # skip `throws ...`
        body += 1
    if not tokens.is_at(body, "{") or tokens.closing[body] == body:
        return None
    inside = tokens.inside(body)
    return Method(start, head, inside, tokens.all[start].line, tokens.all[inside.stop].line)


def _outside(tokens: Tokens, start: int, stop: int) -> Iterator[int]:
    """Yield the indexes of a range that are outside of all parentheses."""
    index = start
    while index < stop:
        if tokens.is_at(index, "(") and tokens.after(index) > index:
            index = max(tokens.after(index), index + 1)
            continue
        yield index
        index += 1


def declared_in(tokens: Tokens) -> dict[str, list[str]]:
    """Return, for each variable, parameter or method in a source, the types of its declarations."""
    found: dict[str, dict[str, None]] = {}
    for index in range(len(tokens.all) - 2):
        kind, name, after = tokens.all[index : index + 3]
        if kind.kind == name.kind == "word" and after.text in _ENDS:
            found.setdefault(name.text, {})[kind.text] = None
        elif kind.text == ">" and name.kind == "word" and after.text in _ENDS:
            found.setdefault(name.text, {})[_generic(tokens, index)] = None
        elif kind.kind == "word" and name.text == "=" and after.text == "new":
            found.setdefault(kind.text, {})[simple_name(tokens, index + 3)[0]] = None
    return {name: [*kinds] for name, kinds in found.items()}


def _generic(tokens: Tokens, closing: int) -> str:
    """Return the word before the ``<`` that belongs to the ``>`` at an index. Return an empty text if there is no such
    word.
    """
    depth = 0
    for index in range(closing, max(0, closing - _LONGEST_TYPE), -1):
        depth += (tokens.all[index].text == ">") - (tokens.all[index].text == "<")
        if depth == 0:
            return tokens.all[index - 1].text
    return ""

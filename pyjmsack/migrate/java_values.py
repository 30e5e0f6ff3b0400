"""Finds the values of Java expressions: literals, constants of the sources, and fields with ``@Value``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from textwrap import dedent
from typing import Final

from pyjmsack.migrate.java_tokens import Tokens, split
from pyjmsack.migrate.values import Missing, resolve

__all__ = ["Known", "accessed", "constants_of", "fields_of", "value_of"]

_NUMBER: Final = re.compile(r"(\d[\d_]{0,30})[lL]?")
_ESCAPE: Final = re.compile(r"\\(u+[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "s": " ", "0": "\0"}
_GETTER: Final = re.compile(r"^(?:get|is)(?=[A-Z])")
_LONGEST: Final = 10_000
_MOST_TOKENS: Final = 200
_KINDS: Final = ("class", "interface", "record", "enum", "object")
_LONGEST_FIELD: Final = 30
_NAMED: Final = re.compile(
    r"AUTO_ACKNOWLEDGE|CLIENT_ACKNOWLEDGE|DUPS_OK_ACKNOWLEDGE|SESSION_TRANSACTED|INDIVIDUAL_ACKNOWLEDGE|PERSISTENT"
    r"|NON_PERSISTENT|PRE_ACKNOWLEDGE"
)
"""The names of constants of JMS whose value is the name itself."""
_CASTS: Final = {"long", "int", "short", "byte", "Long", "Integer", "String"}


class Known:
    """The known values of names in one file.

    Args:
        properties: values for ``${NAME}``; ``None`` leaves the placeholders in a text.
        constants: values of constants by name: ``NAME`` in this file, and ``Class.NAME`` in all files. A value may have
            placeholders.
    """

    def __init__(self, properties: Mapping[str, str] | None, constants: Mapping[str, str]) -> None:
        self.properties = properties
        self.names = dict(constants)

    def also(self, names: Mapping[str, str]) -> Known:
        """Return these values together with more values, for a part of the file that has more names."""
        return Known(self.properties, {**self.names, **names})


def value_of(tokens: Tokens, part: range, known: Known) -> str | None:
    """Return the value of an expression as text. Return ``None`` if the value is not known.

    The expression may join texts with ``+`` and multiply numbers. Placeholders in a text are replaced.
    """
    if not part or len(part) > _MOST_TOKENS:
        return None
    if tokens.is_at(part.start, "(") and part.start in tokens.closing:
        inside = tokens.inside(part.start)
        if tokens.after(part.start) == part.stop:
            return value_of(tokens, inside, known)
        if len(inside) == 1 and tokens.all[inside.start].text in _CASTS:
            return value_of(tokens, range(tokens.after(part.start), part.stop), known)
    if len(sums := split(tokens, part, "+")) > 1:
        written = any(tokens.all[index].kind == "text" for index in part)
        return _joined([value_of(tokens, one, known) for one in sums], written)
    if len(factors := split(tokens, part, "*")) > 1:
        return _product([value_of(tokens, one, known) for one in factors])
    return _one(tokens, part, known)


def _joined(values: Sequence[str | None], written: bool) -> str | None:
    """Return the values joined, because ``+`` joins texts. Return ``None`` if a value is not known, if the text is too
    long, or if all values are numbers and none is in quotes (``written``), because then ``+`` adds.
    """
    found = [value for value in values if value is not None]
    if len(found) != len(values) or sum(map(len, found)) > _LONGEST:
        return None
    if not written and all(value.lstrip("-").isdecimal() for value in found):
        return None  # the expression is a sum of numbers, which no setting needs
    return "".join(found)


def _product(values: Iterable[str | None]) -> str | None:
    result = 1
    for value in values:
        if value is None or not value.isdecimal() or len(value) > 30:
            return None
        result *= int(value)
    return str(result) if result < 1 << 63 else None


def _one(tokens: Tokens, part: range, known: Known) -> str | None:
    first = tokens.all[part.start]
    if len(part) == 1:
        if first.kind == "text":
            return _resolved(_unescaped(first.text), known)
        if first.kind == "block":
            return _resolved(_unescaped_block(first.text), known)
        if found := _NUMBER.fullmatch(first.text):
            return found[1].replace("_", "")
        if first.text in ("true", "false"):
            return first.text
    if first.text == "-" and len(part) == 2 and (found := _NUMBER.fullmatch(tokens.all[part.start + 1].text)):
        return "-" + found[1].replace("_", "")
    words = [tokens.all[index].text for index in part]
    if words[-2:] == ["(", ")"] and (name := _read_from(words)) in known.names:
        return _resolved(known.names[name], known)
    if not all(word == "." or tokens.all[index].kind == "word" for index, word in zip(part, words, strict=True)):
        return None
    if words[-2:] in ([".", "TRUE"], [".", "FALSE"]):
        return words[-1].lower()
    name = ".".join([word for word in words if word not in (".", "this")][-2:])
    if name in known.names:
        return _resolved(known.names[name], known)
    return words[-1] if _NAMED.fullmatch(words[-1]) else None


def accessed(name: str, path: Iterable[str]) -> str:
    """Return the name that :class:`Known` has for a value of an object, such as ``settings.getQueueName()``.

    Args:
        name: the name of the object.
        path: the methods without their parentheses. A ``get`` and letter case do not matter.
    """
    steps = (_GETTER.sub("", step) for step in path)
    return f"{name}().{''.join(steps).lower()}"


def _read_from(words: Sequence[str]) -> str:
    """Return the name of a value that is read as ``name.a().getB()``. Return an empty text for another expression."""
    words = words[2:] if words[:2] == ["this", "."] else words
    steps, calls = words[2::4], [words[at : at + 4] for at in range(1, len(words), 4)]
    if not all(len(call) == 4 and (call[0], *call[2:]) == (".", "(", ")") for call in calls):
        return ""
    return accessed(words[0], steps)


def _resolved(text: str, known: Known) -> str | None:
    try:
        return text if known.properties is None else resolve(text, known.properties)
    except Missing:
        return None


def _unescaped(text: str) -> str:
    inner = text[1:-1] if len(text) > 1 and text.endswith('"') else text[1:]
    return _ESCAPE.sub(
        lambda found: chr(int(found[1].lstrip("u"), 16)) if found[1][0] == "u" and len(found[1]) > 1
        else _ESCAPES.get(found[1], found[1]),
        inner,
    )  # fmt: skip


def _unescaped_block(text: str) -> str:
    """Return the text of a text block without the indentation that all lines have in common."""
    inner = text[3:-3] if len(text) > 5 and text.endswith('"""') else text[3:]
    lines = dedent(inner.partition("\n")[2]).split("\n")
    return _unescaped(f'"{chr(10).join(line.rstrip() for line in lines)}"')


def constants_of(file: str, tokens: Tokens) -> dict[str, str]:
    """Return the constants of a file whose values are literals, as ``NAME`` and as ``Class.NAME``.

    A name that has two different values in the file is left out.
    """
    nothing = Known(None, {})
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    double: set[str] = set()
    owner = ""
    for index, token in enumerate(tokens.all):
        if token.kind != "word":
            continue
        if token.text in _KINDS and index + 1 < len(tokens.all):
            owner = tokens.all[index + 1].text
        in_interface = token.text == "String" and tokens.is_at(index + 2, "=") and tokens.all[index + 1].text.isupper()
        if token.text not in ("final", "val") and not in_interface:
            continue
        equals = next((at for at in range(index, min(index + 12, len(tokens.all))) if tokens.is_at(at, "=")), None)
        if equals is None or tokens.all[equals - 1].kind != "word":
            continue
        end = next((at for at in range(equals, min(equals + 60, len(tokens.all))) if tokens.is_at(at, ";")), equals)
        value = value_of(tokens, range(equals + 1, end), nothing.also(found))
        name = tokens.all[equals - 1].text
        if name in found and found[name] != value:
            double.add(name)
        elif value is not None:
            found[name] = value
            owners[name] = owner
    kept = {name: value for name, value in found.items() if name not in double}
    of_file = {f"{PurePath(file).stem}.{name}": value for name, value in kept.items()}
    return {**kept, **of_file, **{f"{owners[name]}.{name}": value for name, value in kept.items() if owners[name]}}


def fields_of(tokens: Tokens, known: Known) -> dict[str, str]:
    """Return the values of fields and parameters with ``@Value("…")``."""
    found = {}
    for index in range(len(tokens.all)):
        if not tokens.is_at(index, "@", "Value", "("):
            continue
        value = value_of(tokens, tokens.inside(index + 2), known)
        end = tokens.after(index + 2)
        last = min(len(tokens.all), end + _LONGEST_FIELD)
        while end < last and tokens.all[end].text not in (";", ",", ")", "="):
            end += 1
        name = tokens.all[end - 1]
        if value is not None and name.kind == "word":
            found[name.text] = value
    return found

"""Writes simple Java expressions as Python: literals, names, the reading of fields, and new records."""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from pyjmsack.migrate.java_parameters import snake
from pyjmsack.migrate.java_tokens import Tokens, split
from pyjmsack.migrate.java_values import Known, value_of

__all__ = ["UNKNOWN", "Expressions"]

UNKNOWN: Final = "..."
"""The Python text for an expression that the user has to translate."""
_WORDS: Final = {"true": "True", "false": "False", "null": "None"}
_DEEPEST: Final = 8


@dataclass(frozen=True, slots=True)
class Expressions:
    """The expressions of one file.

    Args:
        kinds: for each variable, the simple names of its declared types.
        fields: the names of the fields of each class, in their order.
        records: the classes whose constructor takes the fields in the order of ``fields``.
    """

    tokens: Tokens
    known: Known
    kinds: Mapping[str, Sequence[str]]
    fields: Mapping[str, Sequence[str]]
    records: Set[str]

    def python(self, part: range, depth: int = 0) -> str:
        """Return an expression in Python. Return :data:`UNKNOWN` for an expression that is not simple."""
        tokens = self.tokens
        if not part or depth > _DEEPEST:
            return UNKNOWN
        if (text := self._literal(part)) != UNKNOWN:
            return text
        words = [tokens.all[index].text for index in part]
        if words[:2] == ["this", "."]:
            part, words = part[2:], words[2:]
        if len(part) == 1 and tokens.all[part.start].kind == "word" and not words[0].isupper():
            return snake(words[0])
        if len(words) == 5 and words[1] == "." and words[3:] == ["(", ")"]:
            return self._read(words[0], words[2])
        if words[0] == "new":
            return self._made(part, depth)
        return UNKNOWN

    def _literal(self, part: range) -> str:
        tokens = self.tokens
        first = tokens.all[part.start]
        if len(part) == 1 and first.text in _WORDS:
            return _WORDS[first.text]
        value = value_of(tokens, part, self.known)
        if value is None:
            return UNKNOWN
        if any(tokens.all[index].kind == "text" for index in part):
            return repr(value)
        number = value.lstrip("-").isdecimal()
        if first.kind == "number" or first.text == "-":
            return value if number else UNKNOWN
        return UNKNOWN if number or value in _WORDS else repr(value)  # the type of a constant is not known

    def _read(self, name: str, method: str) -> str:
        """Return ``order.id`` for ``order.id()`` and for ``order.getId()``."""
        kind = next(iter(self.kinds.get(name, ())), "")
        fields = self.fields.get(kind, ())
        for start in ("", "get", "is"):
            plain = method.removeprefix(start)
            field = plain if not start else plain[:1].lower() + plain[1:]
            if method.startswith(start) and field in fields and not keyword.iskeyword(field):
                return f"{snake(name)}.{field}"
        return UNKNOWN

    def _made(self, part: range, depth: int) -> str:
        """Return ``Order(id, "x")`` for ``new Order(id, "x")``."""
        tokens, opening = self.tokens, part.start + 1
        while opening < part.stop and not tokens.is_at(opening, "("):
            opening += 1
        if opening >= part.stop or tokens.after(opening) != part.stop:
            return UNKNOWN
        kind = tokens.all[opening - 1].text
        given = [self.python(one, depth + 1) for one in split(tokens, tokens.inside(opening))]
        if kind not in self.records or len(given) != len(self.fields[kind]):
            return UNKNOWN
        return f"{kind}({', '.join(given)})"

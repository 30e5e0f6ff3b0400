"""Finds the values that a service reads through a class with ``@ConfigurationProperties``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyjmsack.migrate.boot_keys import squashed
from pyjmsack.migrate.java_methods import declared_in
from pyjmsack.migrate.java_tokens import Tokens, split
from pyjmsack.migrate.java_values import Known, accessed, value_of

__all__ = ["configured_names", "prefixes_of", "without_expressions"]

_MODIFIERS: Final = {"public", "protected", "private", "final", "static", "abstract", "sealed"}
_KINDS: Final = ("class", "record")
_LONGEST_HEAD: Final = 200
_EXPRESSION: Final = re.compile(r"#\{\s*(?:'([^'{}]*)'|@?(\w+)((?:\.\w+(?:\(\))?){1,9}))\s*\}", re.ASCII)


def prefixes_of(tokens: Tokens) -> Iterator[tuple[str, str]]:
    """Yield the simple name and the prefix of each class with ``@ConfigurationProperties`` in a source."""
    for index in range(len(tokens.all)):
        if not tokens.is_at(index, "@", "ConfigurationProperties", "("):
            continue
        prefix = ""
        for part in split(tokens, tokens.inside(index + 2)):
            sides = split(tokens, part, "=")
            if len(sides) == 1 or tokens.is_at(sides[0].start, "prefix") or tokens.is_at(sides[0].start, "value"):
                prefix = value_of(tokens, sides[-1], Known(None, {})) or ""
        at = tokens.after(index + 2)
        end = min(len(tokens.all) - 1, at + _LONGEST_HEAD)
        while at < end and tokens.all[at].text not in _KINDS and tokens.all[at].text not in (";", "{"):
            at = max(tokens.after(at), at + 1) if tokens.is_at(at, "(") else at + 1
        if prefix and at < end and tokens.all[at].text in _KINDS:
            yield tokens.all[at + 1].text, prefix


def configured_names(tokens: Tokens, prefixes: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """Return the placeholder for each property that the source reads from an object of a class with
    ``@ConfigurationProperties``.

    Args:
        prefixes: the prefix of each class, by its simple name.
        keys: the keys of all properties.
    """
    if not prefixes:
        return {}
    objects = {name: prefix for name, kinds in declared_in(tokens).items() for kind in kinds[:1]
               if (prefix := prefixes.get(kind))}  # fmt: skip
    objects |= {f"@{kind[0].lower()}{kind[1:]}": prefix for kind, prefix in prefixes.items()}
    found = {}
    for key in keys:
        plain = squashed(key)
        for name, prefix in objects.items():
            start = squashed(prefix)
            if plain.startswith(start) and len(plain) > len(start):
                found[accessed(name, [plain[len(start) :]])] = f"${{{key}}}"
    return found


def without_expressions(text: str, known: Known) -> str:
    """Return a text in which each ``#{'text'}`` is replaced by its text, and each ``#{@bean.property}`` by the value of
    the property, if this value is known.

    Other expressions stay.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        path = [step.removesuffix("()") for step in found[3].split(".")[1:]]
        return known.names.get(accessed(f"@{found[2]}", path), found[0])

    return _EXPRESSION.sub(value, text)

"""The rules S1 to S192 of docs/semantics.md, as data of the package: ``pyjmsack explain S15`` prints them offline.

``docs/generate_rules.py`` writes ``rules.json`` from the page.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

__all__ = ["Rule", "nearest", "rules"]

PAGE = "https://github.com/pyjmsack/pyjmsack/blob/main/docs/semantics.md"


@dataclass(frozen=True)
class Rule:
    """One rule of docs/semantics.md."""

    number: int
    state: str
    """Whether the code keeps the rule: ``kept``, ``partly`` (a part of it) or ``later`` (not yet)."""
    section: str
    """The heading above the rule."""
    text: str
    """The rule, in Markdown without links."""
    why: str
    """The reason for the rule."""
    example: str
    """An example of the rule."""

    @property
    def link(self) -> str:
        """The address of the rule on the page of the rules."""
        return f"{PAGE}#s{self.number}"


@functools.cache
def rules() -> Mapping[int, Rule]:
    """Return all rules by number."""
    entries = json.loads(files("pyjmsack").joinpath("rules.json").read_text(encoding="utf-8"))
    return {entry["number"]: Rule(**entry) for entry in entries}


def nearest(number: int) -> list[Rule]:
    """Return the last rule before a number and the first rule after the number. A rule that does not exist is left
    out."""
    before = [rule for rule in rules().values() if rule.number < number][-1:]
    after = [rule for rule in rules().values() if rule.number > number][:1]
    return before + after

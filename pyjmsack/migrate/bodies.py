"""Finds the classes of message bodies that the generated code needs, and lists the names that the code may import."""

from __future__ import annotations

import re
from typing import Final

from pyjmsack.migrate.model import Findings

__all__ = ["KNOWN", "OURS", "STANDARD", "classes_in", "used_classes"]

STANDARD: Final = (
    ("dataclasses", ("dataclass",)),
    ("datetime", ("date", "datetime")),
    ("decimal", ("Decimal",)),
    ("enum", ("Enum",)),
    ("typing", ("Annotated", "Any")),
    ("uuid", ("UUID",)),
)
"""For each module of the standard library, the names that the generated code may import."""
OURS: Final = (
    "Answer",
    "App",
    "BytesMessage",
    "DeliveryMode",
    "Header",
    "JsonConverter",
    "MapMessage",
    "Message",
    "ObjectMessage",
    "Retry",
    "Session",
    "StreamMessage",
    "TextMessage",
    "Topic",
)
"""The names of pyjmsack that the generated code may import."""
KNOWN: Final = {*OURS, *(name for _, names in STANDARD for name in names), "str", "int", "float", "bool", "bytes"}
_KNOWN_TOO: Final = {"list", "dict", "set", "tuple", "None", "False"}
_WORD: Final = re.compile(r"\b[A-Za-z_]\w*\b")


def used_classes(findings: Findings) -> dict[str, list[tuple[str, str]] | None]:
    """Return the fields of each class that a listener, a method with a send or the converter uses, and of the classes
    of these fields. ``None`` stands for unknown fields.

    In the result, a class comes after the classes of its fields.
    """
    wanted = [*findings.types.values()]
    for listener in (*findings.listeners, *findings.nameless):
        wanted += [*(annotation for _, annotation in listener.parameters), listener.answers]
    wanted += findings.sent
    for function in findings.functions:
        wanted += [*(annotation for _, annotation in function.parameters), function.answers] if function.sends else []
    found: dict[str, list[tuple[str, str]] | None] = {}
    seen: set[str] = set()
    waiting = [name for text in reversed(wanted) for name in reversed(classes_in(text))]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            fields = findings.classes.get(name) or []
            inner = [each for _, text in fields for each in classes_in(text) if each not in seen]
            waiting += [name, *reversed(inner)]
        elif name not in found:
            found[name] = findings.classes.get(name)
    return found


def classes_in(annotation: str) -> list[str]:
    """Return the names of all classes that occur in an annotation."""
    words = _WORD.findall(re.sub(r"Header\(.*\)", "", annotation).partition("=")[0])
    return [word for word in words if word not in KNOWN and word not in _KNOWN_TOO]

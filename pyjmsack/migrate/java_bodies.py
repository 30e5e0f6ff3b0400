"""Completes the classes of message bodies after all sources are read: their names in JSON, their defaults, and their
rows.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Final

from pyjmsack.migrate.bodies import classes_in, used_classes
from pyjmsack.migrate.java_classes import ENUM, Shape
from pyjmsack.migrate.java_methods import declared_in
from pyjmsack.migrate.java_tokens import Tokens, simple_name, split
from pyjmsack.migrate.model import Findings, Place, Verdict
from pyjmsack.migrate.values import shown

__all__ = ["complete_bodies", "sent_in"]

_SENDS: Final = {"convertAndSend", "convertSendAndReceive"}
_NO_TYPE: Final = {"Duration", "Period", "LocalTime", "OffsetTime", "Year", "YearMonth", "MonthDay"}
"""Types of ``java.time`` that no Python type replaces in the body of a message."""
_CAMEL: Final = re.compile(r"_*[A-Za-z0-9]+", re.ASCII)
"""The pattern of names that ``camel_case=True`` does not change."""
_WORD: Final = re.compile(r"\w+")
_DEFAULT: Final = re.compile(r"([A-Za-z_]\w*)(?:\.(\w+)|\()", re.ASCII)


def sent_in(tokens: Tokens) -> Iterator[str]:
    """Yield the names of the classes whose objects a source sends with a ``JmsTemplate``."""
    sends = [index for index in range(len(tokens.all)) if tokens.all[index].text in _SENDS]
    declared = declared_in(tokens) if sends else {}
    for index in sends:
        for part in split(tokens, tokens.inside(index + 1)) if tokens.is_at(index + 1, "(") else ():
            if tokens.is_at(part.start, "new"):
                yield simple_name(tokens, part.start + 1)[0]
            elif len(part) == 1 or (part and tokens.is_at(part.start + 1, "(")):
                yield from declared.get(tokens.all[part.start].text, ())


def complete_bodies(findings: Findings, shapes: Mapping[str, Shape]) -> None:
    """Rename fields whose name is a keyword of Python, check the defaults, and add the rows of the classes."""
    used = used_classes(findings)
    fields = [name for each in used.values() for name, text in each or () if not text.startswith(ENUM)]
    words = [name for name in fields if keyword.iskeyword(name)]
    others = [name for name in fields if not keyword.iskeyword(name)]
    findings.camel_case = bool(words) and all(map(_CAMEL.fullmatch, others))
    checked = any(row.key.startswith("@Valid") for row in findings.rows)
    for name in used:
        shape = shapes.get(name)
        if shape is not None and shape.checks and checked:
            why = "only the types of the values are checked: check more in __post_init__, or write a pydantic model"
            checks = shown("code", ", ".join(dict.fromkeys(shape.checks)))
            findings.add(Place(shape.file, shape.line), name, checks, Verdict.BY_HAND, "", why)
        if shape is not None:
            _say_class(findings, name, shape)
            findings.classes[name] = [*_checked(findings, name, shape)]
    _replace(findings, shapes)
    _say_unknown(findings)


def _say_unknown(findings: Findings) -> None:
    """Add a row for each class whose fields no source has, because the dataclass of such a class would be empty, and
    all values of a body would be lost.
    """
    unknown = [name for name, fields in used_classes(findings).items() if fields is None]
    places = _places(findings) if unknown else {}
    for name in unknown:
        place = places.get(name, Place("sources"))
        why = (
            "the sources do not have the fields of this class: write the fields into the dataclass, because an"
            " empty dataclass loses all values"
        )
        findings.add(place, name, "", Verdict.BY_HAND, "", why)


def _places(findings: Findings) -> dict[str, Place]:
    """Return the first place of each name that a listener or, if there is none, a row mentions."""
    texts = [(one.place, str((one.parameters, one.answers))) for one in findings.listeners]
    texts += [(one.place, one.python) for one in findings.rows]
    places: dict[str, Place] = {}
    for place, text in texts:
        for name in _WORD.findall(text):
            places.setdefault(name, place)
    return places


def _say_class(findings: Findings, name: str, shape: Shape) -> None:
    """Add a row for each part of a Java class that the generated class leaves out or changes."""
    for note in shape.notes:
        key = f"{name}.{note.name}" if note.name else name
        findings.add(Place(shape.file, note.line), key, note.value, Verdict.BY_HAND, "", note.why)
    for field, text in findings.classes.get(name, []):
        if not keyword.iskeyword(field) or text.startswith(ENUM):
            continue
        place, key = Place(shape.file, shape.line), f"{name}.{field}"
        if findings.camel_case:
            python, why = (
                f"{field}_, and JsonConverter(..., camel_case=True)",
                "the name is a keyword of Python; the JSON still has the name of Java",
            )
            findings.add(place, key, field, Verdict.CHANGED, python, why)
        else:
            why = (
                "the name is a keyword of Python, and camel_case=True would change the underscores of other fields:"
                " the field is left out, and its value is lost; write a pydantic model with an alias"
            )
            findings.add(place, key, field, Verdict.BY_HAND, f'Field(alias="{field}")', why)


def _checked(findings: Findings, name: str, shape: Shape) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class. If the default of a field cannot be Python code, the default becomes ``None``, and a
    row says so.
    """
    fields = findings.classes.get(name, [])
    names = {field for field, _ in fields}
    for field, text in fields:
        annotation, equals, default = text.partition(" = ")
        found = _DEFAULT.match(default) if annotation != ENUM.strip() else None
        constants = [each for each, _ in findings.classes.get(found[1], [])] if found is not None else []
        known = found is None or found[1] in ("field",) or (found[2] is not None and found[2] in constants)
        if found is not None and (not known or found[1] in names):
            why = "the default is left out: write the default after the field"
            place = Place(shape.file, shape.line)
            findings.add(place, f"{name}.{field}", shown("code", default), Verdict.BY_HAND, "", why)
            default = "None"
        yield field, f"{annotation}{equals}{default}"


def _replace(findings: Findings, shapes: Mapping[str, Shape]) -> None:
    """Replace types of ``java.time`` without a counterpart by ``Any``, and add a row for each."""
    used = used_classes(findings)
    missing = {name for name in used if name in _NO_TYPE and name not in findings.classes}
    if not missing:
        return
    word = re.compile(rf"\b(?:{'|'.join(sorted(missing))})\b")
    why = "Python has no type for this value: Jackson writes a number, a list or a text; convert the value yourself"
    for name in used.keys() & findings.classes.keys():
        for field, text in findings.classes[name]:
            for kind in sorted(missing.intersection(classes_in(text))):
                place = Place(shapes[name].file, shapes[name].line)
                findings.add(place, f"{name}.{field}", kind, Verdict.BY_HAND, f"{field}: Any", why)
        findings.classes[name] = [(field, _plain(word.sub("Any", text))) for field, text in findings.classes[name]]
    for listener in findings.listeners:
        for name, annotation in listener.parameters:
            for kind in sorted(missing.intersection(classes_in(annotation))):
                findings.add(listener.place, name, kind, Verdict.BY_HAND, f"{name}: Any", why)
        listener.parameters = [(name, word.sub("Any", text)) for name, text in listener.parameters]
        listener.answers = word.sub("Any", listener.answers)


def _plain(text: str) -> str:
    """Return the text of a field with ``Any`` in the place of ``Any | None``, because ``Any`` includes ``None``."""
    return text.replace("Any | None", "Any")

"""Reads the classes, records and enumerations of Java sources that are the types of message bodies."""

from __future__ import annotations

import keyword
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pyjmsack.migrate.java_parameters import annotation_of, is_class, parameters_in
from pyjmsack.migrate.java_tokens import Tokens, simple_name, split
from pyjmsack.migrate.java_values import Known, value_of
from pyjmsack.migrate.values import shown

__all__ = ["ENUM", "Note", "Shape", "classes_of", "with_bases"]

_NAME: Final = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_KINDS: Final = ("class", "record", "enum", "interface")
_MODIFIERS: Final = {"public", "protected", "private", "final", "volatile"}
_NOT_IN_JSON: Final = {"static", "transient", "abstract", "native"}
_ZEROS: Final = {
    **dict.fromkeys(("int", "long", "short", "byte"), "int = 0"),
    **dict.fromkeys(("double", "float"), "float = 0.0"),
    "boolean": "bool = False",
}
"""For each Java type that cannot be null: the annotation and the default of a field of this type."""
_MOST: Final = 500
"""The largest number of classes that are read from one source, and of fields that are read from one class."""
_MAY_MISS: Final = {"Nullable", "JsonInclude"}
_CHECKS: Final = {
    "NotNull", "NotBlank", "NotEmpty", "Null", "Size", "Min", "Max", "DecimalMin", "DecimalMax", "Positive",
    "PositiveOrZero", "Negative", "NegativeOrZero", "Digits", "Pattern", "Email", "Past", "PastOrPresent", "Future",
    "FutureOrPresent", "AssertTrue", "AssertFalse", "Valid",
}  # fmt: skip
_CHANGE_JSON: Final = {
    "JsonTypeInfo", "JsonSubTypes", "JsonFormat", "JsonSerialize", "JsonDeserialize", "JsonAlias", "JsonUnwrapped",
    "JsonAnySetter", "JsonAnyGetter", "JsonRootName", "JsonGetter", "JsonSetter", "JsonIgnoreProperties",
}  # fmt: skip
"""Annotations of Jackson that change the JSON of a class, and that this module does not read."""
_MOST_CHECKS: Final = 20
_LONGEST_HEAD: Final = 200
_LONGEST: Final = 5_000
"""The largest number of tokens in the components of a record, or in the names of an enumeration."""
_MOST_BASES: Final = 8
ENUM: Final = "= "
"""In the fields of an enumeration, each annotation begins with this text, and the value in JSON follows."""
_FLOAT: Final = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,19})?)[fFdD]?")
_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
_EMPTY: Final = re.compile(
    r"new (?:java \. util \. )?(?:ArrayList|LinkedList|HashSet|LinkedHashSet|TreeSet|HashMap|LinkedHashMap|TreeMap)"
    r" (?:< .{0,60}> )?\( \)|(?:List|Set|Map) \. of \( \)|Collections \. empty(?:List|Set|Map) \( \)"
)
"""The pattern of Java code that makes an empty collection."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note about a part of a Java class that the generated code does not have."""

    line: int
    name: str
    """The name of the field. Empty if the note is about the whole class."""
    value: str
    why: str


@dataclass(slots=True)
class Shape:
    """A class, a record or an enumeration."""

    full_name: str
    """The name as ``Class.getName()`` returns it: ``shop.Service$Order``."""
    fields: list[tuple[str, str]] = field(default_factory=list)
    """The fields, with their names in JSON. The second text of a field is its annotation, with its default if there is
    one. For the names of an enumeration, the second text begins with ``=``.
    """
    base: str = ""
    """The simple name of the class that this class extends. Empty if there is no such class."""
    file: str = ""
    line: int = 0
    last: int = 0
    """The line of the last brace of the class."""
    record: bool = False
    checks: list[str] = field(default_factory=list)
    """The annotations of Jakarta's validation in the class. These annotations have an effect only for a parameter with
    ``@Valid``.
    """
    notes: list[Note] = field(default_factory=list)


def classes_of(tokens: Tokens) -> dict[str, Shape]:
    """Return the classes, records and enumerations of a source by their simple names."""
    found: dict[str, Shape] = {}
    checks = [at for at in range(len(tokens.all) - 1) if tokens.is_at(at, "@") and tokens.all[at + 1].text in _CHECKS]
    changes = [
        at for at in range(len(tokens.all) - 1) if tokens.is_at(at, "@") and tokens.all[at + 1].text in _CHANGE_JSON
    ]
    package, inclusive = _package(tokens), _with_inclusion(tokens)
    around: list[tuple[str, int]] = []
    read = 0
    for index in range(len(tokens.all) - 2):
        word, name = tokens.all[index], tokens.all[index + 1].text
        if word.kind != "word" or word.text not in _KINDS or tokens.is_at(index - 1, ".") or read >= _MOST:
            continue
        body = _body(tokens, index) if is_class(name) else None
        if body is None:
            continue
        read += 1
        while around and around[-1][1] <= index:
            around.pop()
        full = f"{around[-1][0]}${name}" if around else f"{package}{name}"
        around.append((full, tokens.after(body)))
        if word.text != "interface":
            shape = _shape(tokens, index, body, full, name in inclusive)
            shape.line, shape.last = word.line, tokens.all[tokens.closing[body]].line
            shape.record = word.text == "record"
            inside = checks[bisect(checks, index) : bisect(checks, tokens.closing[body])][:_MOST_CHECKS]
            shape.notes += _changed(
                tokens, changes[bisect(changes, _start(tokens, index)) :][:_MOST_CHECKS], tokens.closing[body]
            )
            shape.checks = [f"@{tokens.all[at + 1].text}" for at in inside]
            found.setdefault(name, shape)
    for index in range(len(tokens.all)):
        if tokens.is_at(index, "@", "JsonNaming"):
            _say_naming(tokens, index, found)
    return found


def _start(tokens: Tokens, index: int) -> int:
    """Return the index before the annotations of the class at ``index``."""
    least = max(-1, index - _LONGEST_HEAD)
    while index > least and not (tokens.all[index].kind == "mark" and tokens.all[index].text in ("{", "}", ";")):
        index -= 1
    return index


def _changed(tokens: Tokens, places: Iterable[int], stop: int) -> Iterator[Note]:
    """Yield a note for each annotation of Jackson in ``places`` that comes before ``stop``."""
    for at in islice(places, _MOST_CHECKS):
        if at >= stop:
            return
        code = shown("code", f"@{tokens.source(range(at + 1, min(len(tokens.all), at + 12)))}")
        yield Note(
            tokens.all[at].line,
            "",
            code,
            "this annotation changes the JSON, and is not read: compare the JSON of a real message",
        )


def _with_inclusion(tokens: Tokens) -> set[str]:
    """Return the names of the classes with ``@JsonInclude``, whose JSON leaves out some fields."""
    found = set()
    for index in range(len(tokens.all)):
        if tokens.is_at(index, "@", "JsonInclude"):
            at, _ = _annotations(tokens, index)
            while at < len(tokens.all) and tokens.all[at].text in _MODIFIERS | _NOT_IN_JSON:
                at += 1
            if at + 1 < len(tokens.all) and tokens.all[at].text in _KINDS:
                found.add(tokens.all[at + 1].text)
    return found


def _say_constructor(tokens: Tokens, name: str, inside: range, notes: list[Note]) -> None:
    """Add a note about the compact constructor of a record, which checks or changes the values."""
    for index in inside:
        if tokens.is_at(index, name, "{"):
            why = "the constructor is code: write its checks and changes into __post_init__"
            notes.append(Note(tokens.all[index].line, "", f"{name} {{ … }}", why))


def _say_naming(tokens: Tokens, index: int, found: Mapping[str, Shape]) -> None:
    """Add a note to the class that has the annotation ``@JsonNaming``."""
    at, _ = _annotations(tokens, index)
    while at < len(tokens.all) and tokens.all[at].text in _MODIFIERS | _NOT_IN_JSON:
        at += 1
    shape = found.get(tokens.all[at + 1].text) if at + 1 < len(tokens.all) else None
    if shape is not None and tokens.all[at].text in _KINDS:
        code = shown("code", tokens.source(range(index + 1, min(at, index + 12))))
        why = "the fields have other names in JSON: rename the fields as @JsonNaming says"
        shape.notes.append(Note(tokens.all[index].line, "", code, why))


def with_bases(shapes: Mapping[str, Shape]) -> dict[str, list[tuple[str, str]]]:
    """Return the fields of each class, with inherited fields. Fields of the base classes come first."""
    made = {}
    for name, shape in shapes.items():
        chain = [shape]
        while len(chain) < _MOST_BASES and (base := shapes.get(chain[-1].base)) is not None and base not in chain:
            chain.append(base)
        made[name] = [*dict(one for each in reversed(chain) for one in each.fields).items()]
    return made


def _package(tokens: Tokens) -> str:
    """Return the package of a source with a dot at its end, or an empty text if the source names no package."""
    for index in range(min(len(tokens.all), _LONGEST_HEAD)):
        if tokens.is_at(index, "package"):
            words = []
            while tokens.is_at(index + 2, "."):
                words.append(tokens.all[index + 1].text)
                index += 2
            return ".".join([*words, tokens.all[index + 1].text, ""]) if index + 1 < len(tokens.all) else ""
    return ""


def _body(tokens: Tokens, index: int) -> int | None:
    """Return the index of the brace that opens the body of a class, or ``None`` if the class has no body."""
    record = tokens.is_at(index, "record")
    at, end = index + 2, min(len(tokens.all), index + _LONGEST_HEAD)
    while at < end:
        text = tokens.all[at].text
        if text == "{":
            return at
        if text == "(" and not record:  # a class of Kotlin, or not a declaration
            return None
        if text in (";", ")", "}", "=", *_KINDS):
            return None
        at = tokens.after(at) if text in ("(", "[") else at + 1
    return None


def _shape(tokens: Tokens, index: int, body: int, full: str, optional: bool) -> Shape:
    kind = tokens.all[index].text
    if kind == "enum":
        return _enumeration(tokens, tokens.inside(body), full)
    head = range(index + 2, body)
    unknown = _type_parameters(tokens, head)
    if kind == "record":
        opening = next((at for at in head if tokens.is_at(at, "(")), body)
        parts = parameters_in(tokens, tokens.inside(opening)[:_LONGEST]) if opening != body else []
        shape = Shape(full)
        _say_constructor(tokens, tokens.all[index + 1].text, tokens.inside(body)[:_LONGEST], shape.notes)
        for part in parts:
            optional = optional or any(tokens.is_at(at, "@") and tokens.all[at + 1].text in _MAY_MISS for at in part)
            name, annotation = _component(tokens, part, optional)
            _add(shape, name, _known(annotation, unknown), tokens.all[part.start].line)
        return shape
    extends = next((at for at in head if tokens.is_at(at, "extends") and not _inside_angles(tokens, head, at)), None)
    base = simple_name(tokens, extends + 1)[0] if extends is not None else ""
    shape = Shape(full, base=base)
    for name, annotation, line in islice(_fields(tokens, tokens.inside(body), shape.notes), _MOST):
        _add(shape, name, _known(annotation, unknown), line)
    return shape


def _add(shape: Shape, name: str, annotation: str, line: int) -> None:
    """Add a field, or a note if its name in JSON cannot be a name of Python."""
    if _NAME.fullmatch(name):
        shape.fields.append((name, annotation))
    else:
        why = (
            "the name cannot be a name in Python: the field is left out, and its value is lost; write a pydantic model"
            " with an alias"
        )
        shape.notes.append(Note(line, shown("name", name), shown("name", name), why))


def _inside_angles(tokens: Tokens, head: range, at: int) -> bool:
    """Return whether an index is between ``<`` and ``>``. An example is ``extends`` in
    ``class Page<T extends Item>``.
    """
    before = [tokens.all[index].text for index in range(head.start, at)]
    return before.count("<") > before.count(">")


def _type_parameters(tokens: Tokens, head: range) -> set[str]:
    """Return the type parameters of a generic class, such as ``T``."""
    if not tokens.is_at(head.start, "<"):
        return set()
    found = set()
    for index in head[1:_LONGEST_HEAD]:
        if tokens.is_at(index, ">"):
            break
        if tokens.is_at(index - 1, "<") or tokens.is_at(index - 1, ","):
            found.add(tokens.all[index].text)
    return found


def _known(annotation: str, unknown: Iterable[str]) -> str:
    """Return an annotation with ``Any`` in the place of the type parameters of a generic class."""
    for name in unknown:
        if re.fullmatch(r"\w+", name, re.ASCII):
            annotation = re.sub(rf"\b{name}\b", "Any", annotation)
    return annotation


def _component(tokens: Tokens, part: range, optional: bool) -> tuple[str, str]:
    """Return the name in JSON and the annotation of a component of a record. An optional component has a default."""
    start, name = _annotations(tokens, part.start)
    if optional:
        return name or tokens.all[part.stop - 1].text, _with_default(tokens, range(start, part.stop - 1))
    kind = annotation_of(tokens, range(start, part.stop - 1)) or "Any"
    return name or tokens.all[part.stop - 1].text, _in_json(kind)


def _in_json(annotation: str) -> str:
    """Return the annotation of a field. An array of bytes becomes ``str``, because Jackson writes the array in
    Base64.
    """
    return "str" if annotation == "bytes" else annotation


def _annotations(tokens: Tokens, index: int) -> tuple[int, str | None]:
    """Return the index after the annotations, and the name in ``@JsonProperty``. The name is empty for ``@JsonIgnore``.
    The name is ``None`` if there is neither annotation.
    """
    named: str | None = None
    while tokens.is_at(index, "@") and not tokens.is_at(index + 1, "interface"):
        annotation, index = simple_name(tokens, index + 1)
        inside = tokens.inside(index) if tokens.is_at(index, "(") else range(0)
        index = tokens.after(index) if tokens.is_at(index, "(") else index
        if annotation == "JsonIgnore":
            named = ""
        elif annotation == "JsonProperty" and named is None:
            for part in split(tokens, inside):
                sides = split(tokens, part, "=")
                if len(sides) == 1 or tokens.is_at(sides[0].start, "value"):
                    named = value_of(tokens, sides[-1], Known(None, {})) or None
    return index, named


def _fields(tokens: Tokens, inside: range, notes: list[Note]) -> Iterator[tuple[str, str, int]]:
    """Yield the fields of a class that are in JSON, with their lines. Each field has a default, because in Java a field
    that is missing in the JSON keeps its initial value. A default that is not a literal becomes a note.
    """
    index = inside.start
    while index < inside.stop:
        index, named = _annotations(tokens, index)
        start, hidden = index, named == ""
        while index < inside.stop and tokens.all[index].text in _MODIFIERS | _NOT_IN_JSON:
            hidden = hidden or tokens.all[index].text in _NOT_IN_JSON
            index, start = index + 1, index + 1
        while index < inside.stop and tokens.all[index].text not in (";", "=", "{", "("):
            index = tokens.after(index) if tokens.is_at(index, "[") else index + 1
        if index >= inside.stop:
            return
        mark = tokens.all[index].text
        if mark in (";", "=") and index - start > 1 and not hidden:
            name, line = named or tokens.all[index - 1].text, tokens.all[index - 1].line
            annotation, end = _with_default(tokens, range(start, index - 1)), _end_of_member(tokens, index, inside.stop)
            value = range(index + 1, end - 1)
            default = _value(tokens, annotation.partition(" ")[0], value) if mark == "=" else ""
            if default:
                annotation = f"{annotation.partition(' = ')[0]} = {default}"
            elif mark == "=":
                why = "the default is not a literal: write the default after the field"
                notes.append(Note(line, shown("name", name), shown("code", tokens.source(value)), why))
            yield name, annotation, line
        index = _end_of_member(tokens, index, inside.stop)


def _value(tokens: Tokens, kind: str, part: range) -> str:
    """Return the initial value of a field as Python code. Return an empty text if the value is not a literal, a
    constant or an empty collection.
    """
    source = tokens.source(part)
    collection = kind.partition("[")[0]
    if source == "null":
        return "None"
    if collection in ("list", "set", "dict") and _EMPTY.fullmatch(source):
        return f"field(default_factory={collection})"
    if len(part) == 3 and tokens.is_at(part.start, kind, ".") and _NAME.fullmatch(tokens.all[part.stop - 1].text):
        # a name of an enumeration, if the sources have its class
        return "".join(tokens.all[index].text for index in part)
    if kind == "float":
        found = _FLOAT.fullmatch(source)
        return repr(float(found[1])) if found else ""
    text = value_of(tokens, part, Known(None, {}))
    if text is None:
        return ""
    if kind == "str" and any(tokens.all[index].kind == "text" for index in part):
        return repr(text)
    if kind == "int" and _WHOLE.fullmatch(text):
        return str(int(text))
    return text.capitalize() if kind == "bool" and text in ("true", "false") else ""


def _end_of_member(tokens: Tokens, index: int, stop: int) -> int:
    """Return the index after a field, a method or an inner class.

    ``index`` is the index of the first sign after the name of this member: ``;``, ``=``, ``{`` or ``(``.
    """
    value = tokens.is_at(index, "=")
    while index < stop:
        text = tokens.all[index].text if tokens.all[index].kind == "mark" else ""
        if text == "{" and not value:
            return tokens.after(index)
        if text == ";":
            return index + 1
        index = tokens.after(index) if text in ("(", "[", "{") else index + 1
    return stop


def _with_default(tokens: Tokens, kind: range) -> str:
    if len(kind) == 1 and (zero := _ZEROS.get(tokens.all[kind.start].text)):
        return zero
    annotation = _in_json(annotation_of(tokens, kind) or "Any")
    may_be_null = annotation == "Any" or annotation.endswith("| None")
    return f"{annotation} = None" if may_be_null else f"{annotation} | None = None"


def _enumeration(tokens: Tokens, inside: range, full: str) -> Shape:
    """Return an enumeration as a class whose fields are the names. The value of a name in JSON is the text of
    ``@JsonProperty``, otherwise the name itself.
    """
    shape = Shape(full)
    whole, inside = inside, inside[:_LONGEST]
    end = next((index for index in inside if tokens.is_at(index, ";")), inside.stop)
    for part in split(tokens, range(inside.start, end)):
        at, named = _annotations(tokens, part.start)
        if at < part.stop and tokens.all[at].kind == "word":
            name = tokens.all[at].text
            if _NAME.fullmatch(name) and not keyword.iskeyword(name):
                shape.fields.append((name, f"{ENUM}{named or name!r}"))
    for index in whole:
        if tokens.is_at(index, "@", "JsonValue"):
            why = "the JSON has the value that @JsonValue returns, and not the name: write these values after the names"
            shape.notes.append(Note(tokens.all[index].line, "", "@JsonValue", why))
    return shape

"""Reads the methods with ``@Bean`` of Java sources: the object that each method makes, and the calls of its setters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyjmsack.migrate.bean_keys import CLASSES
from pyjmsack.migrate.java_tokens import Tokens, head_of, simple_name, split
from pyjmsack.migrate.java_values import Known, fields_of, value_of

__all__ = ["Argument", "Bean", "Made", "Property", "beans_of", "by_name"]

_NO_BEANS: Final = ("", "embedded", "component", "jndi", "redeliveryPolicy", "prefetchPolicy", "presettlePolicy")
"""The kinds of objects for which a method with ``@Bean`` gets no row of its own in the report, because the rows for the
single lines of Java code are enough.
"""
_CONDITIONS: Final = {"if", "else", "for", "while", "do", "try", "catch", "finally", "switch", "case", "default"}
_LONGEST_ANNOTATION: Final = 50
_LONGEST_PARAMETERS: Final = 1_000
_DEEPEST: Final = 10


@dataclass(slots=True)
class Argument:
    """An argument of a call. ``value`` is set if the argument is a literal, and ``made`` is set if the argument makes
    an object.
    """

    source: str
    value: str | None = None
    made: Made | None = None


@dataclass(slots=True)
class Property:
    """One call of a setter. ``name`` is the name of the setter without ``set``."""

    name: str
    line: int
    arguments: list[Argument]
    conditional: bool = False
    """Whether the call is inside an ``if``, a loop or another block."""

    @property
    def only(self) -> Argument:
        """The only argument of the call. If the call has no argument or several, the result is an argument without a
        value.
        """
        return self.arguments[0] if len(self.arguments) == 1 else Argument("")


@dataclass(slots=True)
class Made:
    """An object: ``new Class(…)``, and the calls of its setters."""

    class_name: str
    line: int
    arguments: list[Argument] = field(default_factory=list)
    properties: list[Property] = field(default_factory=list)
    entries: dict[str, str] = field(default_factory=dict)
    """If the object is a map from texts to classes: the simple name of the class for each text. Otherwise empty."""
    by_boot: bool = False
    """Whether Spring Boot configures the object first, by ``configurer.configure(…)``."""

    @property
    def kind(self) -> str:
        """The kind of the object in ``CLASSES``. Empty if the object is not for messaging."""
        return CLASSES.get(self.class_name, "")

    def text(self, name: str) -> str | None:
        """Return the value of a property. Return ``None`` if the property is not set, or the value is not certain."""
        found = [one for one in self.properties if one.name == name]
        return None if any(one.conditional for one in found) or not found else found[-1].only.value

    def unsure(self, name: str) -> bool:
        """Return whether a property is set, but its value is not certain."""
        return self.text(name) is None and any(one.name == name for one in self.properties)

    def one(self, name: str) -> Property | None:
        """Return the last call of a setter, or ``None`` if the setter is not called."""
        return next((one for one in reversed(self.properties) if one.name == name), None)


@dataclass(slots=True)
class Bean:
    """A method with ``@Bean`` that makes an object for messaging."""

    names: list[str]
    file: str
    line: int
    made: Made
    head: range = range(0)
    """The lines from ``@Bean`` to the body of the method."""
    primary: bool = False
    references: dict[str, str] = field(default_factory=dict)
    """For each parameter of the method, the name of the bean that the parameter gets."""


def beans_of(file: str, tokens: Tokens, known: Known) -> list[Bean]:
    """Return the beans for messaging of one file.

    Args:
        known: the values of constants and properties.
    """
    known = known.also(fields_of(tokens, known))
    found: list[Bean] = []
    index = 0
    while index < len(tokens.all):
        if tokens.is_at(index, "@", "Bean"):
            bean, index = _bean(file, tokens, index, known)
            if bean is not None:
                found.append(bean)
        else:
            index += 1
    return found


def _bean(file: str, tokens: Tokens, start: int, known: Known) -> tuple[Bean | None, int]:
    """Return the bean whose annotation is at ``start``, and the index after its method."""
    names: list[str] = []
    index = start + 2
    if tokens.is_at(index, "("):
        for part in split(tokens, tokens.inside(index)[:_LONGEST_ANNOTATION]):
            sides = split(tokens, part, "=")
            if len(sides) == 1 or tokens.all[part.start].text in ("name", "value"):
                texts = [range(at, at + 1) for at in sides[-1] if tokens.all[at].kind == "text"]
                names += [name for one in texts if (name := value_of(tokens, one, known))]
        index = tokens.after(index)
    head = head_of(tokens, index)
    if head is None:
        return None, index
    body = tokens.after(head.opening)
    while body < len(tokens.all) and tokens.all[body].kind == "word":  # skip `throws ...`
        body += 1
        body += tokens.is_at(body, ",") or tokens.is_at(body, ".")
    if not tokens.is_at(body, "{"):
        return None, body
    end = tokens.after(body)
    made = _Body(tokens, known).read(tokens.inside(body))
    if made is None or made.kind in _NO_BEANS:
        return None, end
    references = _references(tokens, tokens.inside(head.opening)[:_LONGEST_PARAMETERS])
    lines = range(tokens.all[start].line, tokens.all[body].line + 1)
    primary = "Primary" in head.annotations
    return Bean(names or [head.name], file, head.line, made, lines, primary, references), end


def _references(tokens: Tokens, inside: range) -> dict[str, str]:
    """Return the name of the bean that each parameter gets: the name in ``@Qualifier``, otherwise the name of the
    parameter.
    """
    found = {}
    for part in split(tokens, inside):
        if not part or tokens.all[part.stop - 1].kind != "word":
            continue
        name = tokens.all[part.stop - 1].text
        found[name] = name
        for index in part:
            if tokens.is_at(index, "Qualifier", "(") and tokens.all[index + 2].kind == "text":
                found[name] = tokens.all[index + 2].text.strip('"')
    return found


class _Body:
    """The statements of one method."""

    def __init__(self, tokens: Tokens, known: Known) -> None:
        self._tokens = tokens
        self._known = known
        self._locals: dict[str, Made] = {}
        self._result: Made | None = None

    def read(self, inside: range) -> Made | None:
        """Return the object that the method returns, or ``None`` if the method does not make the object itself."""
        for part, conditional in self._statements(inside):
            self._statement(part, conditional)
        return self._result

    def _statements(self, inside: range) -> Iterator[tuple[range, bool]]:
        """Yield each statement, and whether the statement is inside a block."""
        tokens = self._tokens
        start, index, blocks = inside.start, inside.start, 0
        while index < inside.stop:
            text = tokens.all[index].text if tokens.all[index].kind == "mark" else ""
            if text in ("(", "["):
                index = tokens.after(index)
                continue
            if text in ("{", "}", ";"):
                yield range(start, index), blocks > 0
                blocks += (text == "{") - (text == "}")
                start = index + 1
            index += 1
        yield range(start, inside.stop), blocks > 0

    def _statement(self, part: range, conditional: bool) -> None:
        tokens = self._tokens
        while part and tokens.all[part.start].text in _CONDITIONS:
            conditional = True
            start = part.start + 1
            part = range(tokens.after(start) if tokens.is_at(start, "(") else start, part.stop)
        if not part:
            return
        sides = split(tokens, part, "=")
        if len(sides) == 2 and sides[0]:
            self._assign(tokens.all[sides[0].stop - 1].text, sides[1], conditional)
        elif tokens.is_at(part.start, "return"):
            returned = range(part.start + 1, part.stop)
            self._result = self._object(returned) or self._locals.get(tokens.source(returned))
        else:
            self._call(part, conditional)

    def _assign(self, name: str, value: range, conditional: bool) -> None:
        made = self._object(value)
        if made is not None and not conditional:
            self._locals[name] = made
        elif made is not None:
            self._locals.pop(name, None)  # the variable may now be one of several objects
        else:
            text = None if conditional else value_of(self._tokens, value, self._known)
            kept = {key: known for key, known in self._known.names.items() if key != name}
            self._known = Known(self._known.properties, kept if text is None else {**kept, name: text})

    def _call(self, part: range, conditional: bool) -> None:
        """Read ``name.setX(…)``, ``name.put(text, X.class)`` and ``configurer.configure(name, …)``."""
        tokens, start = self._tokens, part.start
        if not (tokens.is_at(start + 1, ".") and tokens.is_at(start + 3, "(")):
            return
        name, method, line = tokens.all[start].text, tokens.all[start + 2].text, tokens.all[start].line
        parts = split(tokens, tokens.inside(start + 3))
        made = self._locals.get(name)
        if method == "configure" and parts and tokens.source(parts[0]) in self._locals:
            self._locals[tokens.source(parts[0])].by_boot = True
        elif made is not None and method == "put" and len(parts) == 2:
            self._entry(made.entries, parts[0], parts[1])
        elif made is not None and method.startswith("set") and len(method) > 3:
            arguments = [self._argument(one) for one in parts]
            made.properties.append(Property(_decapitalised(method[3:]), line, arguments, conditional))

    def _argument(self, part: range, depth: int = 0) -> Argument:
        source = self._tokens.source(part)
        made = self._object(part, depth) or self._locals.get(source)
        return Argument(source, value_of(self._tokens, part, self._known) if made is None else None, made)

    def _object(self, part: range, depth: int = 0) -> Made | None:
        """Return the object of ``new Class(…)`` or ``Map.of(…)``."""
        tokens, start = self._tokens, part.start
        if tokens.is_at(start, "Map", ".", "of", "("):
            made = Made("Map", tokens.all[start].line)
            parts = split(tokens, tokens.inside(start + 3))
            for key, value in zip(parts[::2], parts[1::2], strict=False):
                self._entry(made.entries, key, value)
            return made
        if not part or depth > _DEEPEST or not tokens.is_at(start, "new"):
            return None
        name, index = simple_name(tokens, start + 1)
        while index < part.stop and not tokens.is_at(index, "("):
            index += 1
        if index >= part.stop:
            return None
        made = Made(name, tokens.all[start].line)
        made.arguments = [self._argument(one, depth + 1) for one in split(tokens, tokens.inside(index))]
        return made

    def _entry(self, entries: dict[str, str], key: range, value: range) -> None:
        name = value_of(self._tokens, key, self._known)
        words = self._tokens.source(value).split()
        if name is not None and words[-1:] == ["class"] and len(words) > 2:
            entries[name] = words[-3]


def _decapitalised(name: str) -> str:
    """Return the property name for a setter name without ``set``: ``brokerURL`` for ``BrokerURL``. A name that begins
    with two capital letters stays as it is.
    """
    return name if name[:2].isupper() else name[0].lower() + name[1:]


def by_name(beans: list[Bean]) -> Mapping[str, Bean]:
    """Return the beans by name. A bean with several names has an entry for each name."""
    return {name: bean for bean in beans for name in bean.names}

"""Reads the methods that become functions of the generated code: listeners, schedules, and methods that send."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from pyjmsack.migrate.bodies import classes_in
from pyjmsack.migrate.java_bean_rows import BeanRows
from pyjmsack.migrate.java_classes import Shape
from pyjmsack.migrate.java_expressions import UNKNOWN, Expressions
from pyjmsack.migrate.java_methods import Method, declared_in, methods_of
from pyjmsack.migrate.java_parameters import annotation_of, parameters_of, returned, snake
from pyjmsack.migrate.java_sends import SendReader
from pyjmsack.migrate.java_templates import Template
from pyjmsack.migrate.java_tokens import Tokens
from pyjmsack.migrate.java_values import Known, fields_of
from pyjmsack.migrate.model import Findings, Function, Place, Send, Settings, Verdict

__all__ = ["read_functions"]

_CALLED: Final = {"JmsListener", "JmsListeners", "Scheduled", "Schedules"}
_NAMES: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\b([A-Za-z_]\w*)\b(?!\s*=(?!=))")
_OF_PYTHON: Final = {
    "Any", "DeliveryMode", "False", "MapMessage", "None", "True", "bool", "bytes", "dict", "float", "int", "json",
    "list", "str",
}  # fmt: skip


def read_functions(
    findings: Findings,
    settings: Settings,
    file: str,
    tokens: Tokens,
    known: Known,
    beans: BeanRows,
    template: Template | None,
    shapes: Mapping[str, Shape],
) -> set[int]:
    """Add the functions of one file, and a row for each send. Return the numbers of the lines with a send.

    Args:
        known: the values of constants and properties.
        beans: the beans of all sources.
        template: the settings of the ``JmsTemplate`` in the properties of Spring Boot.
        shapes: the classes of all sources.
    """
    if not file.endswith(".java"):
        return set()
    fields = {name: [field for field, _ in each] for name, each in findings.classes.items()}
    records = {name for name, shape in shapes.items() if shape.record}
    known = known.also(fields_of(tokens, known))
    at = Expressions(tokens, known, declared_in(tokens), fields, records)
    reader = SendReader(findings, settings, file, beans, template, at)
    lines: set[int] = set()
    for method in methods_of(tokens):
        found = [*reader.of(method)] if reader.used and "Bean" not in method.head.annotations else []
        if not found and not _CALLED & method.head.annotations.keys():
            continue
        function = _function(findings, file, tokens, known, method)
        function.sends = [send for send, _ in found]
        function.whole = _only(tokens, method, [part for _, part in found]) and all(
            _is_live(send, function, findings.classes) for send in function.sends
        )
        function.returns = function.whole and tokens.is_at(method.body.start, "return")
        findings.functions.append(function)
        for send, part in found:
            lines.update(range(tokens.all[part.start].line, tokens.all[part.stop - 1].line + 1))
            _say(findings, send)
    return lines


def _say(findings: Findings, send: Send) -> None:
    key = send.source.partition("(")[0]
    if send.why:
        findings.add(send.place, key, send.source, Verdict.BY_HAND, send.python("app"), send.why)
    else:
        why = "each setting of the template is an argument of the send"
        findings.add(send.place, key, send.source, Verdict.CHANGED, send.python("app"), why)


def _function(findings: Findings, file: str, tokens: Tokens, known: Known, method: Method) -> Function:
    def plain(annotation: str) -> str:
        unknown = [word for word in classes_in(annotation) if word not in findings.classes]
        return "Any" if unknown else annotation

    head = method.head
    parameters = [
        (one.name, plain(one.annotation)) for one in parameters_of(tokens, tokens.inside(head.opening), known)
    ]
    kind = returned(tokens, head.opening)
    answers = plain(annotation_of(tokens, kind)) if kind else ""
    annotations = tuple(name for name in head.annotations if name != "Override")
    place = Place(file, method.first)
    return Function(head.name, place, method.last, parameters, answers, annotations=annotations)


def _only(tokens: Tokens, method: Method, sends: Iterable[range]) -> bool:
    """Return whether the body of a method consists of these sends. A single send may be in a ``return``."""
    at, found = method.body.start, [*sends]
    if len(found) == 1 and tokens.is_at(at, "return"):
        at += 1
    for part in found:
        if at != part.start or not tokens.is_at(part.stop, ";"):
            return False
        at = part.stop + 1
    return bool(found) and at == method.body.stop


def _is_live(send: Send, function: Function, classes: Iterable[str]) -> bool:
    """Return True if a send is fully translated, and each name in the send is a parameter of its function, a class, or
    a name of Python or pyjmsack.
    """
    if send.why or not send.arguments or UNKNOWN in send.python(""):
        return False
    known = {snake(name) for name, _ in function.parameters} | {*classes} | _OF_PYTHON
    text = re.sub(r"(?<=\w)\.\w+", "", ", ".join(send.arguments))
    return all(found[1] is None or found[1] in known for found in _NAMES.finditer(text))

"""Reads the methods with ``@JmsListener``: the destination, settings and parameters of each, and its container
factory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyjmsack.migrate.destinations import translate_destination
from pyjmsack.migrate.java_bean_keys import at_most
from pyjmsack.migrate.java_bean_rows import BeanRows, Container
from pyjmsack.migrate.java_configured import without_expressions
from pyjmsack.migrate.java_methods import methods_of
from pyjmsack.migrate.java_parameters import Parameter, annotation_of, parameters_of, returned
from pyjmsack.migrate.java_tokens import Head, Tokens, head_of, simple_name, split
from pyjmsack.migrate.java_values import Known, value_of
from pyjmsack.migrate.model import Findings, Listener, Place, Settings, Verdict
from pyjmsack.migrate.modes import NewMode, mode_of
from pyjmsack.migrate.values import Missing, resolve, shown

__all__ = ["read_listeners"]

_HAND: Final = Verdict.BY_HAND
_NO_NAME: Final = "the name is a constant or an expression: write the name into create_queue or create_topic"
_NO_ANSWER: Final = (
    "the name is not a literal: write the name; without a name, answers go only to the reply_to of a message"
)
_CONCURRENCY: Final = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?")
_DEFAULT: Final = "jmsListenerContainerFactory"
_NO_BODY: Final = {
    "Message", "TextMessage", "BytesMessage", "MapMessage", "StreamMessage", "ObjectMessage", "Session",
}  # fmt: skip
_BOOT: Final = Container(transacted="true")


class _Reader:
    def __init__(
        self, findings: Findings, settings: Settings, file: str, tokens: Tokens, known: Known, beans: BeanRows,
        boot: Container,
    ) -> None:  # fmt: skip
        self._findings = findings
        self._settings = settings
        self._file = file
        self._tokens = tokens
        self._known = known
        self._beans = beans
        self._boot = boot
        self._methods = [*methods_of(tokens)]
        self.headers: set[int] = set()
        """The numbers of the lines with a parameter for a header, or with ``@SendTo``."""

    def read(self) -> None:
        tokens = self._tokens
        index = 0
        while index < len(tokens.all):
            start, index = index, index + 1
            if not tokens.is_at(start, "@"):
                continue
            name, opening = simple_name(tokens, index)
            if name == "JmsListener" and tokens.is_at(opening, "("):
                self._listener(Place(self._file, tokens.all[start].line), start, opening)
                index = tokens.after(opening)

    def _arguments(self, opening: int) -> dict[str, range]:
        """Return the arguments of an annotation by name. An argument without a name is the destination."""
        tokens, found = self._tokens, {}
        for part in split(tokens, tokens.inside(opening)):
            sides = split(tokens, part, "=")
            if len(sides) == 2 and len(sides[0]) == 1:
                found[tokens.all[sides[0].start].text] = sides[1]
            elif part:
                found.setdefault("destination", part)
        return found

    def _listener(self, place: Place, start: int, opening: int) -> None:
        arguments = self._arguments(opening)
        raw = Known(None, self._known.names)
        part = arguments.get("destination", range(0))
        given = value_of(self._tokens, part, raw)
        why, name = _NO_NAME, ""
        try:
            name = (
                "" if given is None else resolve(without_expressions(given, self._known), self._known.properties or {})
            )
        except Missing as missing:
            why = str(missing)
        if not name:
            code = self._tokens.source(part or self._tokens.inside(opening)) if given is None else given
            self._findings.add(place, "@JmsListener", shown("code", code), _HAND, "", why)
            self._nameless(place, start, opening, shown("code", code), arguments)
            return
        texts = {key: self._text(place, key, part) for key, part in arguments.items() if key != "destination"}
        start_of_rows = len(self._findings.rows)
        container = self._container(place, texts)
        says_topic = container.topic if container.topic is not None else str(bool(texts.get("subscription"))).lower()
        destination = translate_destination(
            self._findings,
            place,
            "@JmsListener",
            name,
            topic=says_topic == "true",
            broker=self._settings.broker,
        )
        # the row of the destination must be the first row of the listener
        self._findings.rows.insert(start_of_rows, self._findings.rows.pop())
        if texts.get("id"):
            why = 'app.listeners["..."] has the listener under this name'
            python = f"app.listener(..., name={texts['id']!r})"
            self._findings.add(place, "@JmsListener.id", texts["id"] or "", Verdict.CHANGED, python, why)
        if destination.name:
            listener = Listener(name, place, destination.name, destination.topic)
            self._fill(listener, texts, container)
            self._say_arguments(listener, texts)
            self._method(listener, start, opening)
            self._findings.listen(listener)

    def _nameless(self, place: Place, start: int, opening: int, code: str, arguments: Mapping[str, range]) -> None:
        """Remember a listener without a known destination. The user has to write the destination."""
        texts = {key: self._text(place, key, part) for key, part in arguments.items() if key != "destination"}
        container = self._container(place, texts)
        topic = container.topic == "true" or bool(texts.get("subscription"))
        listener = Listener(code, place, code, topic)
        self._fill(listener, texts, container)
        self._method(listener, start, opening)
        self._findings.nameless.append(listener)

    def _text(self, place: Place, key: str, part: range) -> str | None:
        """Return the value of an argument. If the value is unknown, add a row that asks for the value."""
        raw = value_of(self._tokens, part, Known(None, self._known.names))
        try:
            value = (
                None if raw is None else resolve(without_expressions(raw, self._known), self._known.properties or {})
            )
            why = "the value is neither a literal nor a constant of these sources: write the value"
        except Missing as missing:
            value, why = None, str(missing)
        if value is not None and key == "concurrency" and not _CONCURRENCY.fullmatch(value):
            value, why = None, "expected one number such as 3, or two numbers such as 3-10"
        if value is None:
            code = shown("code", self._tokens.source(part))
            self._findings.add(place, f"@JmsListener.{key}", code, _HAND, "", why)
        return value

    def _container(self, place: Place, texts: Mapping[str, str | None]) -> Container:
        """Return the container factory that the listener names, and add its row."""
        named = texts.get("containerFactory")
        found = self._beans.container(named or _DEFAULT)
        if found is None and named is not None:
            why = (
                "the sources do not have the bean: look at the mode and concurrency of the bean, and whether the bean"
                " is for topics"
            )
            self._findings.add(place, "@JmsListener.containerFactory", shown("code", named), _HAND, "", why)
            return _BOOT
        if found is None:
            return self._boot
        if found.by_boot:
            for setting in ("concurrency", "transacted", "acknowledge", "topic", "durable", "shared", "autostart"):
                if getattr(found, setting) is None:
                    setattr(found, setting, getattr(self._boot, setting))
        if named is not None:
            key = "@JmsListener.containerFactory"
            if found.unknown:
                why = f"the values are not literals: {', '.join(found.unknown)}; write the values into app.listener"
                self._findings.add(place, key, shown("code", named), _HAND, "", why)
            else:
                why = "the settings of the bean are in the generated code"
                self._findings.add(place, key, shown("code", named), Verdict.CHANGED, "", why)
        return found

    def _fill(self, listener: Listener, texts: Mapping[str, str | None], container: Container) -> None:
        mode: NewMode | None = mode_of(container.acknowledge or "", transacted=container.transacted == "true")
        listener.mode = mode.mode if mode is not None else listener.mode
        listener.selector = (texts.get("selector") or "").strip()
        workers = texts.get("concurrency") or ""
        listener.concurrency = (workers if container.simple else at_most(workers)) or container.concurrency or "1"
        listener.label = texts.get("id") or ""
        listener.client_id = container.client_id or ""
        listener.autostart = container.autostart != "false"
        listener.factory = container.factory
        listener.on_error = container.on_error
        listener.answer = container.answer
        listener.reply_topic = listener.topic
        if container.answers_to_topic is not None:
            listener.reply_topic = container.answers_to_topic == "true"
        if listener.topic:
            subscription = texts.get("subscription") or ""
            listener.shared = container.shared == "true"
            # if the sources have no bean, a listener with the name of a subscription counts as durable
            guessed = container.durable is None and container.by_boot and bool(subscription)
            listener.durable = container.durable == "true" or guessed
            listener.subscription = subscription if listener.shared or listener.durable else ""

    def _say_arguments(self, listener: Listener, texts: Mapping[str, str | None]) -> None:
        """Add the rows for the selector and the subscription of a listener."""
        if listener.selector:
            python, text = "app.listener(..., selector=...)", shown("code", listener.selector)
            self._findings.add(listener.place, "@JmsListener.selector", text, Verdict.SAME, python, "the same text")
        if subscription := texts.get("subscription"):
            key, text = "@JmsListener.subscription", shown("name", subscription)
            if listener.subscription:
                python, why = f"app.listener(..., topic=True, subscription={text!r})", "the same name"
                self._findings.add(listener.place, key, text, Verdict.SAME, python, why)
            else:
                why = "Spring reads this name only for a topic, if the container is durable or shared"
                self._findings.add(listener.place, key, text, Verdict.IGNORED, "", why)

    def _method(self, listener: Listener, start: int, opening: int) -> None:
        tokens = self._tokens
        head = head_of(tokens, tokens.after(opening)) or next(
            (each.head for each in self._methods if each.start <= start < each.body.start), None
        )
        if head is None:
            return
        listener.function = head.name
        if not self._file.endswith(".java"):
            why = "only the methods of Java files are read: write the parameters, the answer, and the class of the body"
            self._findings.add(listener.place, "(parameters)", shown("name", head.name), _HAND, "", why)
            self._reply(listener, head, start)
            return
        parameters = self._with_one_body(parameters_of(tokens, tokens.inside(head.opening), self._known))
        listener.parameters = [(one.name, one.annotation) for one in parameters]
        for one in parameters:
            if "Header(" in one.annotation:
                place, verdict = Place(self._file, one.line), _HAND if one.open else Verdict.CHANGED
                why = one.open or "the header is a parameter of the listener"
                self._findings.add(place, "@Header", "", verdict, f"{one.name}: {one.annotation}", why)
                self.headers.add(one.line)
        self._say_generic(tokens.inside(head.opening))
        self._reply(listener, head, start)
        listener.answers = self._answers(head)
        if listener.answers == "str" and self._findings.type_property:
            property_ = self._findings.type_property
            why = (
                "an answer of the type str is sent as it is, but Jackson in Java expects JSON with a type: if a Java"
                " service reads the answer, return this Answer"
            )
            python = f"Answer(json.dumps(text), properties={{{property_!r}: 'java.lang.String'}})"
            self._findings.add(Place(self._file, head.line), "(answer)", "String", _HAND, python, why)

    def _say_generic(self, inside: range) -> None:
        """Add a row for each generic class, such as ``Page<Order>``, because the generated dataclass cannot have the
        types between ``<`` and ``>``.
        """
        tokens = self._tokens
        for index in inside:
            if tokens.is_at(index + 1, "<") and (name := tokens.all[index].text) in self._findings.classes:
                code = tokens.source(range(index, min(index + 6, inside.stop)))
                why = "a field whose type stands between < and > has the type Any, and an object in the field is a dict"
                place = Place(self._file, tokens.all[index].line)
                self._findings.add(place, name, shown("code", code), _HAND, "", why)

    def _with_one_body(self, parameters: list[Parameter]) -> list[Parameter]:
        """Return the parameters with at most one parameter for the body. Each further parameter for the body is left
        out and gets a row.
        """
        bodies = [one for one in parameters if one.annotation not in _NO_BODY and "Header(" not in one.annotation]
        body = next((one for one in bodies if one.payload), next(iter(bodies), None))
        others = [one for one in bodies if one is not body]
        for one in others:
            why = (
                "only one parameter gets the body, and this parameter is left out: look which value Spring gives to"
                " the parameter"
            )
            self._findings.add(Place(self._file, one.line), one.name, one.annotation, _HAND, "", why)
        return [one for one in parameters if one not in others]

    def _reply(self, listener: Listener, head: Head, start: int) -> None:
        """Set the destination of the answers. If the listener takes messages of a topic, the answers go to a topic
        too.
        """
        inside, key = self._send_to(head, start), "@SendTo"
        if inside is None:
            return
        line = self._tokens.all[inside.start].line if inside else head.line
        place = Place(self._file, line)
        self.headers.add(line)
        name = value_of(self._tokens, inside, self._known)
        name = None if name is None else without_expressions(name, self._known)
        if not name or "#{" in name:
            code = shown("code", self._tokens.source(inside))
            self._findings.add(place, key, code, _HAND, "app.listener(..., reply_to=...)", _NO_ANSWER)
            return
        broker = self._settings.broker
        made = translate_destination(self._findings, place, key, name, topic=listener.reply_topic, broker=broker)
        listener.reply_to, listener.reply_topic = made.name, made.topic

    def _send_to(self, head: Head, start: int) -> range | None:
        """Return the indexes inside the parentheses of ``@SendTo``, or ``None`` if the method has no ``@SendTo``."""
        tokens = self._tokens
        inside = head.annotations.get("SendTo")
        if inside is None and start >= 5 and tokens.is_at(start - 5, "@", "SendTo", "("):
            inside = tokens.inside(start - 3)
        return inside

    def _answers(self, head: Head) -> str:
        """Return the annotation for the type that the method returns."""
        tokens, kind = self._tokens, returned(self._tokens, head.opening)
        if kind and (tokens.is_at(kind.start, "Message", "<") or tokens.is_at(kind.start, "JmsResponse")):
            words = (tokens.all[index].text for index in kind)
            self._findings.sent += [word for word in words if word in self._findings.classes]
            return "Answer"
        return annotation_of(tokens, kind) if kind else ""


def read_listeners(
    findings: Findings,
    settings: Settings,
    file: str,
    tokens: Tokens,
    known: Known,
    beans: BeanRows,
    boot: Container | None = None,
) -> set[int]:
    """Add the listeners and rows of each ``@JmsListener`` in one file. Return the numbers of the lines whose rows are
    about headers and answers.

    Args:
        known: the values of constants and properties.
        beans: the beans of all sources.
        boot: the settings of listeners in the properties of Spring Boot.
    """
    reader = _Reader(findings, settings, file, tokens, known, beans, boot or _BOOT)
    reader.read()
    return reader.headers

"""Reads the methods with ``@JmsListener``: destination, settings, parameters, and the container factory it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pyjmsack.migrate.destinations import translate_destination
from pyjmsack.migrate.java_bean_rows import BeanRows, Container
from pyjmsack.migrate.java_parameters import annotation_of, parameters_of
from pyjmsack.migrate.java_tokens import Head, Tokens, head_of, simple_name, split
from pyjmsack.migrate.java_values import Known, value_of
from pyjmsack.migrate.model import Findings, Listener, Place, Settings, Verdict
from pyjmsack.migrate.modes import NewMode, mode_of
from pyjmsack.migrate.values import Missing, resolve, shown

__all__ = ["read_listeners"]

_HAND: Final = Verdict.BY_HAND
_NO_NAME: Final = "its name is a constant or an expression: write the name into create_queue or create_topic"
_CONCURRENCY: Final = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?")
_DEFAULT: Final = "jmsListenerContainerFactory"
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
        self.headers: set[int] = set()
        """The numbers of the lines that have a parameter for a header."""

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
        given = value_of(self._tokens, arguments.get("destination", range(0)), raw)
        if given is None:
            code = shown("code", self._tokens.source(self._tokens.inside(opening)))
            self._findings.add(place, "@JmsListener", code, _HAND, "", _NO_NAME)
            return
        try:
            name = resolve(given, self._known.properties or {})
        except Missing as missing:
            self._findings.add(place, "@JmsListener", shown("name", given), _HAND, "", str(missing))
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
        self._findings.rows.insert(start_of_rows, self._findings.rows.pop())  # the destination is the first row
        if texts.get("id"):
            why = 'the listener is app.listeners["..."] by this name'
            python = f"app.listener(..., name={texts['id']!r})"
            self._findings.add(place, "@JmsListener.id", texts["id"] or "", Verdict.CHANGED, python, why)
        if destination.name:
            listener = Listener(name, place, destination.name, destination.topic)
            self._fill(listener, texts, container)
            self._say_arguments(listener, texts)
            self._method(listener, start, opening)
            self._findings.listeners.append(listener)

    def _text(self, place: Place, key: str, part: range) -> str | None:
        """Return the value of an argument. If the value is unknown, add a row that says so."""
        raw = value_of(self._tokens, part, Known(None, self._known.names))
        try:
            value = None if raw is None else resolve(raw, self._known.properties or {})
            why = "no literal, and no constant of these sources: write the value"
        except Missing as missing:
            value, why = None, str(missing)
        if value is not None and key == "concurrency" and not _CONCURRENCY.fullmatch(value):
            value, why = None, "expected a number such as 3, or two such as 3-10"
        if value is None:
            code = shown("code", self._tokens.source(part))
            self._findings.add(place, f"@JmsListener.{key}", code, _HAND, "", why)
        return value

    def _container(self, place: Place, texts: Mapping[str, str | None]) -> Container:
        """Return the container factory that the listener names, and add its row."""
        named = texts.get("containerFactory")
        found = self._beans.container(named or _DEFAULT)
        if found is None and named is not None:
            why = "the bean is not among these sources: look at its mode, concurrency, and whether it is for topics"
            self._findings.add(place, "@JmsListener.containerFactory", shown("code", named), _HAND, "", why)
            return _BOOT
        if found is None:
            return self._boot
        if found.by_boot:
            for setting in ("concurrency", "transacted", "acknowledge", "topic", "durable", "shared"):
                if getattr(found, setting) is None:
                    setattr(found, setting, getattr(self._boot, setting))
        if named is not None:
            key = "@JmsListener.containerFactory"
            if found.unknown:
                why = f"no literals: {', '.join(found.unknown)}; write them into app.listener"
                self._findings.add(place, key, shown("code", named), _HAND, "", why)
            else:
                why = "the settings of the bean are in the generated code"
                self._findings.add(place, key, shown("code", named), Verdict.CHANGED, "", why)
        return found

    def _fill(self, listener: Listener, texts: Mapping[str, str | None], container: Container) -> None:
        mode: NewMode | None = mode_of(container.acknowledge or "", transacted=container.transacted == "true")
        listener.mode = mode.mode if mode is not None else listener.mode
        listener.selector = texts.get("selector") or ""
        listener.concurrency = texts.get("concurrency") or container.concurrency or "1"
        listener.label = texts.get("id") or ""
        listener.client_id = container.client_id or ""
        listener.autostart = container.autostart != "false"
        listener.factory = container.factory
        listener.on_error = container.on_error
        if listener.topic:
            subscription = texts.get("subscription") or ""
            listener.shared = container.shared == "true"
            # without a bean of these sources a listener with a subscription is taken for a durable one
            guessed = container.durable is None and container.by_boot and bool(subscription)
            listener.durable = container.durable == "true" or guessed
            listener.subscription = subscription if listener.shared or listener.durable else ""

    def _say_arguments(self, listener: Listener, texts: Mapping[str, str | None]) -> None:
        """Add the rows of the selector and the subscription."""
        if listener.selector:
            python, text = "app.listener(..., selector=...)", shown("code", listener.selector)
            self._findings.add(listener.place, "@JmsListener.selector", text, Verdict.SAME, python, "the same text")
        if subscription := texts.get("subscription"):
            key, text = "@JmsListener.subscription", shown("name", subscription)
            if listener.subscription:
                python, why = f"app.listener(..., topic=True, subscription={text!r})", "the same name"
                self._findings.add(listener.place, key, text, Verdict.SAME, python, why)
            else:
                why = "Spring reads it only for a topic, and if the container is durable or shared"
                self._findings.add(listener.place, key, text, Verdict.IGNORED, "", why)

    def _method(self, listener: Listener, start: int, opening: int) -> None:
        tokens = self._tokens
        head = head_of(tokens, tokens.after(opening))
        if head is None:
            return
        listener.function = head.name
        parameters = parameters_of(tokens, tokens.inside(head.opening), self._known)
        listener.parameters = [(one.name, one.annotation) for one in parameters]
        for one in parameters:
            if "Header(" in one.annotation:
                place, verdict = Place(self._file, one.line), _HAND if one.open else Verdict.CHANGED
                why = one.open or "a parameter of the listener"
                self._findings.add(place, "@Header", "", verdict, f"{one.name}: {one.annotation}", why)
                self.headers.add(one.line)
        listener.reply_to = self._reply_to(head, start) or ""
        listener.answers = self._answers(head)

    def _reply_to(self, head: Head, start: int) -> str | None:
        tokens = self._tokens
        inside = head.annotations.get("SendTo")
        if inside is None and start >= 5 and tokens.is_at(start - 5, "@", "SendTo", "("):
            inside = tokens.inside(start - 3)
        return value_of(tokens, inside, self._known) if inside else None

    def _answers(self, head: Head) -> str:
        """Return the annotation for the type before the name of the method."""
        tokens, stop = self._tokens, head.opening - 1
        start = stop
        while start > 0 and (tokens.all[start - 1].kind == "word" or tokens.all[start - 1].text in "<>,?[]."):
            start -= 1
            if stop - start > 20:
                return ""
        kind = [index for index in range(start, stop) if tokens.all[index].text not in _MODIFIERS]
        if kind and (tokens.is_at(kind[0], "Message", "<") or tokens.is_at(kind[0], "JmsResponse")):
            words = (tokens.all[index].text for index in kind)
            self._findings.sent += [word for word in words if word in self._findings.classes]
            return "Answer"
        return annotation_of(tokens, range(kind[0], stop)) if kind else ""


_MODIFIERS: Final = {"public", "protected", "private", "static", "final", "synchronized", "default"}


def read_listeners(
    findings: Findings,
    settings: Settings,
    file: str,
    tokens: Tokens,
    known: Known,
    beans: BeanRows,
    boot: Container | None = None,
) -> set[int]:
    """Add the rows and the listeners of ``@JmsListener`` in one file. Return the lines with parameters for headers.

    Args:
        known: the values of constants and properties.
        beans: the beans of all sources.
        boot: what Spring Boot's properties say of listeners.
    """
    reader = _Reader(findings, settings, file, tokens, known, beans, boot or _BOOT)
    reader.read()
    return reader.headers

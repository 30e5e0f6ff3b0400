"""Reads the calls of ``JmsTemplate`` and ``JmsMessagingTemplate``: the body, the destination and the settings of each
send.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pyjmsack.migrate.destinations import NewDestination, translate_destination
from pyjmsack.migrate.java_bean_rows import BeanRows
from pyjmsack.migrate.java_beans import Argument, Made, Property
from pyjmsack.migrate.java_expressions import UNKNOWN, Expressions
from pyjmsack.migrate.java_messages import SetInMessage, set_in
from pyjmsack.migrate.java_methods import Method, declared_in
from pyjmsack.migrate.java_parameters import parameters_in, type_of
from pyjmsack.migrate.java_templates import Template
from pyjmsack.migrate.java_tokens import Tokens, simple_name, split
from pyjmsack.migrate.java_values import value_of
from pyjmsack.migrate.model import Findings, Place, Send, Settings
from pyjmsack.migrate.values import HIDDEN, is_secret, shown

__all__ = ["TEMPLATES", "SendReader"]

TEMPLATES: Final = {
    "JmsTemplate", "JmsOperations", "JmsMessagingTemplate", "JmsMessageOperations", "JmsMessageSendingOperations",
    "JmsClient",
}  # fmt: skip
"""The classes and interfaces whose objects send messages."""
_SENDS: Final = {
    "convertAndSend": "send",
    "send": "send",
    "convertSendAndReceive": "request",
    "sendAndReceive": "request",
}
_OTHERS: Final = {
    "receive": "consumer.receive(timeout=seconds)",
    "receiveSelected": "consumer.receive(timeout=seconds)",
    "receiveAndConvert": "consumer.receive_body(type, timeout=seconds)",
    "receiveSelectedAndConvert": "consumer.receive_body(type, timeout=seconds)",
    "browse": "for message in session.create_browser(queue)",
    "browseSelected": "for message in session.create_browser(queue, selector)",
    "execute": "",
    "destination": "app.sender.send(destination, body, ...)",
}
_WHY_OTHERS: Final = {
    "execute": "this code has its own session or producer: write the code with app.sender",
    "destination": "write the settings of this JmsClient as arguments of the send",
}
_KEEP: Final = "an App has no such call: make a consumer or browser with a connection of your own"
_LONGEST: Final = 2_000
"""The largest number of tokens in the arguments of a call."""
_NOT_OF_REQUESTS: Final = ("delivery_mode", "delivery_delay", "correlation_id", "reply_to")
_ORDER: Final = ("topic", "properties", "correlation_id", "reply_to", "delivery_mode", "priority", "time_to_live",
                 "delivery_delay")  # fmt: skip


@dataclass(slots=True)
class _Call:
    """The facts that :class:`SendReader` has found so far about the call that it reads."""

    destination: NewDestination | None = None
    body: str = UNKNOWN
    given: dict[str, str] = field(default_factory=dict)
    wanted: str = ""
    why: list[str] = field(default_factory=list)


class SendReader:
    """Reads the sends of one file.

    Args:
        beans: the beans of all sources.
        boot: the settings of the ``JmsTemplate`` in the properties of Spring Boot. ``None`` = no settings.
        expressions: the expressions of the file.
    """

    def __init__(
        self, findings: Findings, settings: Settings, file: str, beans: BeanRows, boot: Template | None,
        expressions: Expressions,
    ) -> None:  # fmt: skip
        self._findings = findings
        self._settings = settings
        self._file = file
        self._beans = beans
        self._boot = boot or Template()
        self._at = expressions
        self._tokens = expressions.tokens
        self._names = {name: kinds for name, kinds in declared_in(self._tokens).items() if TEMPLATES & {*kinds}}
        self._templates: dict[str, Template] = {}

    @property
    def used(self) -> bool:
        """Whether the file declares an object that sends."""
        return bool(self._names)

    def of(self, method: Method) -> Iterator[tuple[Send, range]]:
        """Yield the sends of a method, with the indexes of each call."""
        tokens, index = self._tokens, method.body.start
        while index < method.body.stop:
            name = tokens.all[index].text
            if name in self._names and tokens.is_at(index + 1, ".") and tokens.is_at(index + 3, "("):
                called, end = tokens.all[index + 2].text, self._end(index)
                if called in _SENDS or called in _OTHERS:
                    start = index - 2 if tokens.is_at(index - 2, "this", ".") else index
                    yield self._send(name, called, index), range(start, end)
                    index = end
                    continue
            index += 1

    def _end(self, index: int) -> int:
        """Return the index after a call. The calls of a ``JmsClient`` form a chain, and the index is after the whole
        chain.
        """
        tokens = self._tokens
        end = max(tokens.after(index + 3), index + 4)
        while tokens.is_at(index + 2, "destination") and tokens.is_at(end, ".") and tokens.is_at(end + 2, "("):
            end = max(tokens.after(end + 2), end + 3)
        return end

    def _send(self, name: str, called: str, index: int) -> Send:
        tokens = self._tokens
        place = Place(self._file, tokens.all[index].line)
        end = self._end(index)
        written = "".join(_spaced(tokens, range(index, end)))
        source = f"{name}.{called}({HIDDEN})" if is_secret(written) else shown("code", written, 100)
        if called in _OTHERS:
            return Send(place, source, _OTHERS[called], why=_WHY_OTHERS.get(called, _KEEP))
        template = self._template(name)
        parts = parameters_in(tokens, tokens.inside(index + 3)[:_LONGEST])
        call = self._read(called, parts, template)
        kind = _SENDS[called]
        arguments = self._arguments(kind, call, template)
        return Send(place, source, kind, arguments, template.factory, "; ".join(dict.fromkeys(call.why)))

    # the template

    def _template(self, name: str) -> Template:
        """Return the settings of the template with this name, from its bean or from Spring Boot, and from the setters
        in this file.
        """
        if name not in self._templates:
            own, fresh = self._own(name)
            found = Template() if fresh else self._beans.template(self._beans_of_names.get(name, name)) or self._boot
            self._templates[name] = found.changed(own) if own.properties else found
        return self._templates[name]

    @cached_property
    def _beans_of_names(self) -> dict[str, str]:
        """The bean that each field or parameter with a ``@Qualifier`` gets."""
        tokens, found = self._tokens, dict[str, str]()
        for index in range(len(tokens.all) - 6):
            if tokens.is_at(index, "Qualifier", "(") and tokens.all[index + 2].kind == "text":
                after = tokens.after(index + 1)
                words = [tokens.all[at].text for at in range(after, min(after + 5, len(tokens.all)))]
                first = next((number for number, word in enumerate(words) if word in TEMPLATES), len(words))
                for name in words[first + 1 :]:
                    found.setdefault(name, tokens.all[index + 2].text.strip('"'))
        return found

    @cached_property
    def _uses(self) -> dict[str, list[int]]:
        """The indexes at which the file uses each object that sends, without the lines that define beans."""
        covered = self._beans.covered.get(self._file, ())
        uses: dict[str, list[int]] = {}
        for index in range(len(self._tokens.all) - 4):
            token = self._tokens.all[index]
            if token.text in self._names and token.line not in covered:
                uses.setdefault(token.text, []).append(index)
        return uses

    def _own(self, name: str) -> tuple[Made, bool]:
        """Return the setters that the file calls on the template, and whether the file makes the template itself."""
        tokens, made, fresh = self._tokens, Made("JmsTemplate", 0), False
        for index in self._uses.get(name, ()):
            fresh = fresh or tokens.is_at(index + 1, "=", "new")
            setter = tokens.all[index + 2].text
            if tokens.is_at(index + 1, ".") and setter.startswith("set") and tokens.is_at(index + 3, "("):
                inside = tokens.inside(index + 3)
                argument = Argument(tokens.source(inside), value_of(tokens, inside, self._at.known))
                key = setter[3:4].lower() + setter[4:]
                made.properties.append(Property(key, tokens.all[index].line, [argument]))
        return made, fresh

    # the arguments

    def _read(self, called: str, parts: list[range], template: Template) -> _Call:
        call, tokens = _Call(), self._tokens
        call.why += template.open
        if parts and self._is_code(parts[-1]) and called.startswith("convert"):
            self._message(call, parts.pop())
        if called == "convertSendAndReceive":
            classes = [part for part in parts if len(part) > 2 and tokens.is_at(part.stop - 2, ".", "class")]
            parts = [part for part in parts if part not in classes]
            for part in classes:
                call.wanted = type_of(tokens.all[part.stop - 3].text)
        takes_body = 1 if called in ("send", "sendAndReceive") or len(parts) < 2 else 2
        if takes_body == 1 and len(parts) < 2:
            call.destination = self._default(call, template)
        else:
            call.destination = self._destination(call, parts[0], template)
            parts = parts[1:]
        if not called.startswith("convert"):
            self._message(call, parts[-1] if parts else range(0), makes=True)
        elif parts:
            call.body = self._body(call, parts[0], template)
            if len(parts) > 1:
                self._headers(call, parts[1])
        return call

    def _body(self, call: _Call, part: range, template: Template) -> str:
        """Return the Python code of a body. A text gets ``json.dumps``, because Jackson writes a text as JSON, and
        ``app.sender`` does not.
        """
        tokens, body = self._tokens, self._at.python(part)
        name = tokens.all[part.start].text if len(part) == 1 else ""
        kind = next(iter(self._at.kinds.get(name, ())), "")
        text = body[:1] in ("'", '"') or kind == "String"
        if not template.json or not self._beans.converts:
            return self._simple(call, body, kind or tokens.all[min(part.start + 1, part.stop - 1)].text)
        if not text or not self._findings.type_property or UNKNOWN in body:
            return body
        return f"json.dumps({body})"

    def _simple(self, call: _Call, body: str, kind: str) -> str:
        """Return the Python code of a body that Spring's ``SimpleMessageConverter`` would convert."""
        if kind.endswith("Map") and body != UNKNOWN:
            return f"MapMessage({body})"
        if kind in self._findings.classes:
            call.why.append("without a JSON converter Java sends an ObjectMessage: agree with the receivers on JSON")
        return body

    def _is_code(self, part: range) -> bool:
        """Return whether an argument is code for the message: a lambda, a method reference or a
        ``MessagePostProcessor``.
        """
        tokens = self._tokens
        marks = "".join(tokens.all[index].text for index in part if tokens.all[index].kind == "mark")
        if "->" in marks or "::" in marks or tokens.is_at(part.start, "new", "MessagePostProcessor"):
            return True
        name = tokens.all[part.start].text if len(part) == 1 else ""
        return "MessagePostProcessor" in self._at.kinds.get(name, ())

    def _message(self, call: _Call, part: range, *, makes: bool = False) -> None:
        """Read the code that makes a message, or that sets its headers."""
        found: SetInMessage = set_in(self._at, part)
        if makes:
            call.body = found.body
        if found.properties:
            listed = ", ".join(f"{key!r}: {value}" for key, value in found.properties.items())
            call.given["properties"] = f"{{{listed}}}"
        call.given.update(found.arguments)
        call.why += found.why

    def _headers(self, call: _Call, part: range) -> None:
        tokens = self._tokens
        properties = {}
        if tokens.is_at(part.start, "Map", ".", "of", "("):
            given = split(tokens, tokens.inside(part.start + 3))
            for key, value in zip(given[::2], given[1::2], strict=False):
                name = value_of(tokens, key, self._at.known)
                properties[UNKNOWN if name is None else name] = self._at.python(value)
        else:
            call.given["properties"] = self._at.python(part)
            return
        if UNKNOWN in properties:
            call.why.append("the name of a property is not a literal")
            properties.pop(UNKNOWN)
        call.given["properties"] = f"{{{', '.join(f'{key!r}: {value}' for key, value in properties.items())}}}"

    def _default(self, call: _Call, template: Template) -> NewDestination | None:
        if not template.destination:
            call.why.append("the default destination of the template is not known")
            return None
        return self._named(call, template.destination, topic=template.topic)

    def _destination(self, call: _Call, part: range, template: Template) -> NewDestination | None:
        tokens = self._tokens
        name = value_of(tokens, part, self._at.known)
        if name is not None:
            return self._named(call, name, topic=template.topic)
        kind, opening = simple_name(tokens, part.start + 1)
        made = kind.endswith(("Queue", "Topic")) and tokens.is_at(part.start, "new") and tokens.is_at(opening, "(")
        name = value_of(tokens, tokens.inside(opening), self._at.known) if made else None
        if name is not None:
            return self._named(call, name, topic=kind.endswith("Topic"))
        bean = self._beans.destination(tokens.all[part.start].text) if len(part) == 1 else None
        if bean is not None:
            return self._named(call, bean[0], topic=bean[1])
        call.why.append("the name of the destination is not a literal")
        return None

    def _named(self, call: _Call, name: str, *, topic: bool) -> NewDestination | None:
        scratch = Findings()
        made = translate_destination(scratch, Place(""), "", name, topic=topic, broker=self._settings.broker)
        if not made.name:
            call.why += [row.why for row in scratch.rows]
            return None
        return made

    def _arguments(self, kind: str, call: _Call, template: Template) -> tuple[str, ...]:
        destination = repr(call.destination.name) if call.destination is not None else UNKNOWN
        topic = call.destination.topic if call.destination is not None else template.topic
        given = {**({"topic": "True"} if topic else {}), **template.arguments, **call.given}
        if call.body.startswith("json.dumps("):
            of_type = f"{self._findings.type_property!r}: 'java.lang.String'"
            rest = given.get("properties", "{}")
            given["properties"] = f"{{{', '.join(filter(None, (of_type, rest[1:-1])))}}}" if rest[:1] == "{" else rest
        if kind == "request":
            for name in _NOT_OF_REQUESTS:
                if given.pop(name, None) is not None:
                    call.why.append(f"app.sender.request has no argument {name}")
        arguments = [destination, call.body]
        if kind == "request":
            arguments += [f"timeout={template.timeout}", *([f"wanted={call.wanted}"] if call.wanted else [])]
        arguments += [f"{name}={given[name]}" for name in _ORDER if name in given]
        if UNKNOWN in (call.body, *call.given.values()) or f": {UNKNOWN}" in given.get("properties", ""):
            call.why.append(f"write the expression of Java in the place of {UNKNOWN}")
        return tuple(arguments)


def _spaced(tokens: Tokens, part: range) -> Iterator[str]:
    """Yield the texts of the tokens of a call, with a space between two words."""
    before = ""
    for index in part[:80]:
        token = tokens.all[index]
        if before == "word" and token.kind in ("word", "text", "number"):
            yield " "
        yield token.text
        yield " " if token.text == "," else ""
        before = token.kind

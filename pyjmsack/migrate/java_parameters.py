"""Writes the types and parameters of Java methods as annotations of Python."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import Final

from pyjmsack.migrate.java_tokens import Tokens, simple_name, split
from pyjmsack.migrate.java_values import Known, value_of
from pyjmsack.migrate.values import shown

__all__ = [
    "Parameter",
    "annotation_of",
    "header_name",
    "is_class",
    "parameters_in",
    "parameters_of",
    "returned",
    "snake",
    "type_of",
]

_TYPES: Final = {
    **dict.fromkeys(("String", "CharSequence", "char", "Character"), "str"),
    **dict.fromkeys(("int", "long", "short", "byte", "Integer", "Long", "Short", "Byte", "BigInteger"), "int"),
    **dict.fromkeys(("double", "float", "Double", "Float"), "float"),
    **dict.fromkeys(("boolean", "Boolean"), "bool"),
    **dict.fromkeys(("Instant", "OffsetDateTime", "ZonedDateTime", "LocalDateTime"), "datetime"),
    **dict.fromkeys(("Message", "TextMessage", "BytesMessage", "MapMessage", "StreamMessage", "ObjectMessage"), ""),
    "BigDecimal": "Decimal",
    "LocalDate": "date",
    "UUID": "UUID",
    **dict.fromkeys(("Date", "Calendar", "Timestamp"), "datetime"),
    **dict.fromkeys(("AtomicInteger", "AtomicLong", "OptionalInt", "OptionalLong"), "int"),
    **dict.fromkeys(("URI", "URL", "Locale", "Currency", "ZoneId", "ZoneOffset", "TimeZone", "Path", "File"), "str"),
    **dict.fromkeys(("JsonNode", "ObjectNode", "ArrayNode", "Number"), "Any"),
    "Object": "Any",
    "void": "",
    "Void": "",
    "Session": "Session",
}
_MESSAGES: Final = ("Message", "TextMessage", "BytesMessage", "MapMessage", "StreamMessage", "ObjectMessage")
_LISTS: Final = {
    **dict.fromkeys(("List", "Collection", "Iterable", "ArrayList", "LinkedList", "Queue", "Deque"), "list"),
    **dict.fromkeys(("Set", "HashSet", "LinkedHashSet", "SortedSet", "TreeSet", "EnumSet"), "set"),
}
_MAPS: Final = ("Map", "HashMap", "LinkedHashMap", "SortedMap", "TreeMap", "EnumMap", "ConcurrentMap", "MultiValueMap")
_HEADERS: Final = {
    "CORRELATION_ID": "JMSCorrelationID",
    "DELIVERY_MODE": "JMSDeliveryMode",
    "DESTINATION": "JMSDestination",
    "EXPIRATION": "JMSExpiration",
    "MESSAGE_ID": "JMSMessageID",
    "PRIORITY": "JMSPriority",
    "REDELIVERED": "JMSRedelivered",
    "REPLY_TO": "JMSReplyTo",
    "TIMESTAMP": "JMSTimestamp",
    "TYPE": "JMSType",
}
"""For each name of a header in Spring's class ``JmsHeaders``, the header of JMS. In a message, Spring's name begins
with ``jms_``.
"""
_KINDS: Final = {"JMSTimestamp": "datetime", "JMSExpiration": "datetime", "JMSReplyTo": "Any", "JMSDestination": "Any"}
_ALL_HEADERS: Final = {"MessageHeaders", "MessageHeaderAccessor", "JmsMessageHeaderAccessor"}
"""Spring's classes that give a listener all headers of a message."""
_SNAKE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OURS: Final = {"App", "Answer", "Header", "JsonConverter", "Annotated", "Decimal", "Enum", "Retry"}
"""Names that the generated code imports."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,19}(?:\.[0-9]{1,19})?")
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "on", "yes", "1"), "True"),
    **dict.fromkeys(("false", "off", "no", "0"), "False"),
}
"""The texts that Spring reads as a boolean."""
_NAME: Final = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_DEEPEST: Final = 8
_MODIFIERS: Final = {"public", "protected", "private", "static", "final", "synchronized", "default"}


def snake(name: str) -> str:
    """Return a Java name in the spelling of Python: ``order_id`` for ``orderId``."""
    made = re.sub(r"\W", "_", _SNAKE.sub("_", name), flags=re.ASCII).lower().strip("_") or "value"
    made = f"v_{made}" if made[0].isdigit() else made
    return f"{made}_" if keyword.iskeyword(made) else made


def annotation_of(tokens: Tokens, part: range, depth: int = 0) -> str:
    """Return the annotation for a Java type. For an unknown class, the annotation is the name of the class. For
    ``void``, the annotation is empty.
    """
    if not part or depth > _DEEPEST:
        return "Any"
    name, index = simple_name(tokens, part.start)
    inner = range(index + 1, part.stop - 1) if index < part.stop and tokens.is_at(index, "<") else range(0)
    if tokens.is_at(index, "[") and index < part.stop:
        return "bytes" if name == "byte" else f"list[{_TYPES.get(name) or (name if is_class(name) else 'Any')}]"
    if name in _MESSAGES:
        return "Message" if name == "Message" else name
    if name in _LISTS:
        return f"{_LISTS[name]}[{annotation_of(tokens, inner, depth + 1)}]" if inner else _LISTS[name]
    if name in _MAPS:
        return "dict[str, Any]"
    if name == "Optional" and inner:
        return f"{annotation_of(tokens, inner, depth + 1)} | None"
    if name in _TYPES:
        return _TYPES[name]
    return name if is_class(name) else "Any"


def type_of(name: str) -> str:
    """Return the annotation for the simple name of a class. Return an empty text for a class of messages."""
    return "" if name in _MESSAGES else _TYPES.get(name) or (name if is_class(name) else "Any")


def is_class(name: str) -> bool:
    """Return whether the generated code can have a class with this name."""
    return bool(_NAME.fullmatch(name)) and not keyword.iskeyword(name) and name not in _OURS | set(_TYPES)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a listener, with its Python name and annotation."""

    name: str
    annotation: str
    line: int
    open: str = ""
    """The step that is left to the user. Empty if there is none."""
    payload: bool = False
    """Whether the parameter has ``@Payload``."""


def parameters_of(tokens: Tokens, inside: range, known: Known) -> list[Parameter]:
    """Return the parameters of a listener."""
    found: list[Parameter] = []
    for part in parameters_in(tokens, inside):
        name = tokens.all[part.stop - 1]
        if name.kind != "word":
            continue
        index, header, every, payload = part.start, range(0), False, False
        while tokens.is_at(index, "@"):
            annotation, index = simple_name(tokens, index + 1)
            if tokens.is_at(index, "("):
                header = tokens.inside(index) if annotation == "Header" else header
                index = tokens.after(index)
            elif annotation == "Header":
                header = range(part.stop - 1, part.stop)
            every, payload = every or annotation == "Headers", payload or annotation == "Payload"
        index += tokens.is_at(index, "final")
        every = every or tokens.all[index].text in _ALL_HEADERS
        kind, left = annotation_of(tokens, range(index, part.stop - 1)), ""
        if tokens.is_at(index, "Message", "<") and not header:  # Message<T> of Spring is a body with headers
            inner = annotation_of(tokens, range(index + 2, part.stop - 2)) or "Any"
            if inner != "Any" and not any(one.annotation == "Message" for one in found):
                found.append(Parameter(snake(name.text), inner, name.line, payload=True))
                found.append(Parameter("message", "Message", name.line))
                continue
        if header:
            kind, left = _header(tokens, header, kind, name.text, known)
        kind = "Message" if every else kind or "Any"
        found.append(Parameter("message" if every else snake(name.text), kind, name.line, left, payload))
    return found


def parameters_in(tokens: Tokens, inside: range) -> list[range]:
    """Return the range of each parameter. A comma between ``<`` and ``>`` is a part of a type and does not end a
    parameter.
    """
    parts: list[range] = []
    start, depth = -1, 0
    for part in split(tokens, inside):
        start = start if depth > 0 else part.start
        # only the new part is counted: a deeply nested type, read again at each comma, would take its length squared
        marks = [tokens.all[index].text for index in part if tokens.all[index].kind == "mark"]
        depth = max(0, depth) + marks.count("<") - marks.count(">")
        if depth <= 0 and part.stop > start:
            parts.append(range(start, part.stop))
    return parts


def returned(tokens: Tokens, opening: int) -> range:
    """Return the indexes of the type that a method returns. The parameters of the method begin at ``opening``."""
    stop = opening - 1
    start = stop
    while start > 0 and (tokens.all[start - 1].kind == "word" or tokens.all[start - 1].text in "<>,?[]."):
        start -= 1
        if stop - start > 20:
            return range(0)
    while start < stop and tokens.all[start].text in _MODIFIERS:
        start += 1
    return range(start, stop)


def _header(tokens: Tokens, inside: range, kind: str, parameter: str, known: Known) -> tuple[str, str]:
    """Return two texts for a parameter that gets a header: its annotation, and the step that is left to the user. The
    second text is empty if no step is left.
    """
    name, given, optional = parameter, range(0), False
    if inside and tokens.all[inside.start].text != parameter:
        for part in split(tokens, inside):
            sides = split(tokens, part, "=")
            key = tokens.all[sides[0].start].text if len(sides) == 2 and sides[0] else "name"
            value = sides[-1] if sides else part
            if key in ("name", "value"):
                name = header_name(tokens, value, known) or parameter
            elif key == "defaultValue":
                given = value
            elif key == "required":
                optional = value_of(tokens, value, known) == "false"
    kind = _KINDS.get(name, kind) or "Any"
    if given:
        text = value_of(tokens, given, known)
        default = None if text is None else _default(kind, text)
        if default is not None:
            return f"Annotated[{kind}, Header({name!r}, default={default})]", ""
        why = (
            f"the default {shown(name, text or tokens.source(given))} is not a literal of the type {kind}: write"
            " default= yourself"
        )
        return f"Annotated[{kind}, Header({name!r})]", why
    return f"Annotated[{kind}{' | None' if optional else ''}, Header({name!r})]", ""


def _default(kind: str, text: str) -> str | None:
    """Return the default text of Spring as a literal of a Python type. Return ``None`` if the type has no such
    literal.
    """
    if kind in ("str", "Any"):
        return repr(text)
    if kind == "bool":
        return _BOOLEANS.get(text.strip().lower())
    if kind == "int" and _WHOLE.fullmatch(text.strip()):
        return str(int(text))
    if kind == "float" and _DECIMAL.fullmatch(text.strip()):
        return repr(float(text))
    return None


def header_name(tokens: Tokens, part: range, known: Known) -> str | None:
    """Return the name of a header from a literal or a constant of Spring. Return ``None`` for another expression."""
    last = tokens.all[part.stop - 1].text if part else ""
    if len(part) > 2 and tokens.is_at(part.start, "JmsHeaders") and last in _HEADERS:
        return _HEADERS[last]
    text = value_of(tokens, part, known)
    if text is not None and text.startswith("jms_"):
        return next((jms for jms in _HEADERS.values() if jms.lower() == f"jms{text[4:]}".lower()), text)
    return text

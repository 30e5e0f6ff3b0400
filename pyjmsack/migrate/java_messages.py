"""Reads the properties, the correlation id and the reply address that Java code sets in a message before the send."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyjmsack.migrate.java_expressions import UNKNOWN, Expressions
from pyjmsack.migrate.java_parameters import header_name
from pyjmsack.migrate.java_tokens import Tokens, split
from pyjmsack.migrate.java_values import value_of
from pyjmsack.migrate.values import is_secret

__all__ = ["SetInMessage", "set_in"]

_PROPERTIES: Final = {
    f"set{kind}Property" for kind in ("String", "Int", "Long", "Short", "Byte", "Boolean", "Double", "Float", "Object")
}
_CREATES: Final = {"createTextMessage", "createObjectMessage", "withPayload"}
_ARGUMENTS: Final = {"setJMSCorrelationID": "correlation_id", "setJMSReplyTo": "reply_to",
                     "JMSCorrelationID": "correlation_id", "JMSReplyTo": "reply_to",
                     "setCorrelationId": "correlation_id"}  # fmt: skip
_NO_EFFECT: Final = {"setJMSPriority", "setJMSExpiration", "setJMSDeliveryMode", "setJMSMessageID", "setJMSTimestamp"}
"""Setters without an effect in Java, because the send overwrites them."""
_HARMLESS: Final = {"build", "copyHeaders", "setHeaderIfAbsent"}


@dataclass(slots=True)
class SetInMessage:
    """The settings that Java code makes in a message before the send. ``why`` lists the steps that are left to the
    user.
    """

    body: str = UNKNOWN
    properties: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)


def set_in(at: Expressions, part: range) -> SetInMessage:
    """Return the settings that a lambda, an anonymous class or a chain of ``MessageBuilder`` makes in a message.

    Args:
        at: the expressions of the file.
        part: the indexes of the code.
    """
    tokens, found = at.tokens, SetInMessage()
    words = {tokens.all[index].text for index in part}
    calls = 0
    for index in part:
        called = tokens.all[index].text
        if tokens.all[index].kind != "word" or not tokens.is_at(index - 1, ".") or not tokens.is_at(index + 1, "("):
            continue
        given = split(tokens, tokens.inside(index + 1))
        calls += _one(at, found, called, given)
    if words & {"if", "for", "while", "switch", "?"}:
        found.why.append("the code sets headers under a condition")
    if not calls and len(part) > 1 and not _gives_back(tokens, part):
        found.why.append("this code is not read: look what the code sets in the message")
    elif len(part) == 1:
        found.why.append("code elsewhere sets headers or makes the message")
    return found


def _one(at: Expressions, found: SetInMessage, called: str, given: list[range]) -> bool:
    """Read one call. Return whether the call is known."""
    name = header_name(at.tokens, given[0], at.known) if len(given) == 2 else None
    if called in _PROPERTIES or called == "setHeader":
        if name is None:
            found.why.append("the name of a property is not a literal")
        elif called == "setHeader" and name in _ARGUMENTS:
            found.arguments[_ARGUMENTS[name]] = at.python(given[1])
        elif name.startswith("JMS") and not name.startswith("JMSX"):
            found.why.append(f"{name}: send a message object, and set the header in this object")
        elif is_secret(name):
            found.properties[name] = UNKNOWN
            found.why.append(f"{name}: a secret stays out of files; read it from the environment")
        else:
            found.properties[name] = _typed(at, called, given[1])
    elif called in _ARGUMENTS and len(given) == 1:
        found.arguments[_ARGUMENTS[called]] = at.python(given[0])
    elif called == "setJMSType" and len(given) == 1:
        found.why.append(
            f"JMSType: send message = converter.to_message(body), with message.type = {at.python(given[0])}"
        )
    elif called in _NO_EFFECT:
        found.why.append(f"{called} has no effect in Java, because the send overwrites it")
    elif called in _CREATES and len(given) == 1:
        found.body = at.python(given[0])
    elif called.startswith("set") and called not in _HARMLESS:
        found.why.append(f"the setter {called} is not read")
    else:
        return False
    return True


def _typed(at: Expressions, called: str, part: range) -> str:
    """Return a value as Python code, with the type that the setter requires."""
    text = at.python(part)
    value = value_of(at.tokens, part, at.known) if text == UNKNOWN else None
    if value is None:
        return text
    if called == "setStringProperty":
        return repr(value)
    if called in ("setIntProperty", "setLongProperty", "setShortProperty", "setByteProperty"):
        return value if value.lstrip("-").isdecimal() else UNKNOWN
    return {"true": "True", "false": "False"}.get(value, UNKNOWN)


def _gives_back(tokens: Tokens, part: range) -> bool:
    """Return whether a lambda only returns its message."""
    return len(part) == 4 and tokens.all[part.start].text == tokens.all[part.stop - 1].text

"""Finds the Python name for a name of the Java interface, for the errors about such names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

__all__ = ["JavaNames", "StrictNames", "no_such_name"]

_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PROPERTY: Final = re.compile(r"(get|set)(Boolean|Byte|Short|Int|Long|Float|Double|String|Object)Property")
_OTHERS: Final = {
    "clearProperties": "properties.clear()",
    "createDurableSubscriber": "create_durable_consumer",
    "createPublisher": "create_producer",
    "createReceiver": "create_consumer",
    "createSender": "create_producer",
    "createSubscriber": "create_consumer",
    "getMetaData": "metadata",
    "getPropertyNames": "properties",
    "getQueueName": "name",
    "getTopicName": "name",
    "metaData": "metadata",
    "nack": "message.reject(), release() or modify()",
    "propertyExists": "name in message.properties",
    "publish": "send",
    "queueName": "name",
    "receiveNoWait": "receive_nowait",
    "receive_no_wait": "receive_nowait",
    "topicName": "name",
}
"""For names of Java and of other clients: the Python names that no rule can derive."""


def no_such_name(kind: type, name: str) -> str:
    """Return the text of the error for a name that a class does not have. If the name is a Java name, the text has the
    Python name.
    """
    plain = f"{kind.__name__!r} object has no attribute {name!r}"
    found = _ours(kind, name)
    return plain if found is None else f"{plain}; in Python it is {found}"


def _ours(kind: type, name: str) -> str | None:
    if name.startswith("_"):
        return None
    if _PROPERTY.fullmatch(name):
        return "message.properties['name']"
    if name in _OTHERS and (not _OTHERS[name].isidentifier() or hasattr(kind, _OTHERS[name])):
        return _OTHERS[name]
    for prefix in ("", "get", "set", "is", "JMS", "getJMS", "setJMS"):
        rest = name.removeprefix(prefix)
        candidate = _WORDS.sub("_", rest).lower()
        if name.startswith(prefix) and candidate != name and candidate.isidentifier() and hasattr(kind, candidate):
            return candidate
    return None


class JavaNames:
    """Raises an error with the Python name when a Java name is read."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker must not see this method, because it would then accept misspelt attributes

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # the getter of a property raised AttributeError: raise that error again
                return object.__getattribute__(self, name)
            raise AttributeError(no_such_name(type(self), name), name=name, obj=self)


class StrictNames(JavaNames):
    """Refuses to read or to write a public attribute that the class does not have.

    Otherwise ``producer.timeToLive = 1000`` would make a new attribute that nobody reads.
    """

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            if not name.startswith("_") and not hasattr(type(self), name):
                raise AttributeError(no_such_name(type(self), name), name=name, obj=self)
            super().__setattr__(name, value)

"""For each setter of Spring's beans in Java code: the argument of ``App``, of a listener or of a send that replaces the
setter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyjmsack.migrate.bean_keys import Said
from pyjmsack.migrate.model import Verdict
from pyjmsack.migrate.values import seconds

__all__ = ["ANSWER", "BOOLEANS", "CODE", "LITERALS", "at_most", "delivery_mode"]

_CHANGED: Final = Verdict.CHANGED
_HAND: Final = Verdict.BY_HAND


def delivery_mode(value: str) -> str:
    """Return the Python code for a delivery mode of Java. ``value`` is a name or a number."""
    names = {"1": "NON_PERSISTENT", "2": "PERSISTENT"}
    return f"DeliveryMode.{names.get(value, value)}"


def at_most(value: str) -> str:
    """Return the concurrency as a range such as ``1-5``. A single number becomes the upper limit, as in the default
    container of Spring, and the lower limit is 1.
    """
    return f"1-{value}" if value.isdecimal() and int(value) > 1 else value


_SEND: Final = "an argument of each send"
LITERALS: Final[Mapping[str, Mapping[str, tuple[str, Callable[[str], str], str]]]] = {
    "container": {
        "concurrency": (
            "app.listener(..., concurrency={})",
            lambda value: repr(at_most(value)),
            "a single number is the upper limit, and the lower limit is 1",
        ),
        "concurrentConsumers": (
            "app.listener(..., concurrency={})",
            str,
            "the number of workers, which does not change",
        ),
        "clientId": ("app.listener(..., client_id={})", repr, "the connection of the listener has this client id"),
    },
    "template": {
        "timeToLive": ("app.sender.send(..., time_to_live={})", seconds, f"{_SEND}; seconds in Python"),
        "deliveryDelay": ("app.sender.send(..., delivery_delay={})", seconds, f"{_SEND}; seconds in Python"),
        "priority": ("app.sender.send(..., priority={})", str, _SEND),
        "deliveryMode": ("app.sender.send(..., delivery_mode={})", delivery_mode, _SEND),
        "receiveTimeout": (
            "app.sender.request(..., timeout={})",
            seconds,
            "an argument of each request; seconds in Python",
        ),
    },
}
"""For each kind of bean and each setter: the Python text, a function that turns the Java value into Python code, and
the reason.
"""

_TOPIC: Final = "an argument of each listener that names this factory"
BOOLEANS: Final[Mapping[str, Mapping[str, tuple[Said, Said]]]] = {
    "container": {
        "sessionTransacted": (
            (_CHANGED, 'app.listener(..., mode="transacted")', "the default of an App"),
            (_CHANGED, 'app.listener(..., mode="individual")', "the message comes again when the listener raised"),
        ),
        "pubSubDomain": (
            (_CHANGED, "app.listener(..., topic=True)", _TOPIC),
            (Verdict.SAME, "app.listener(...)", "a name is the name of a queue, unless topic=True"),
        ),
        "subscriptionDurable": (
            (_CHANGED, 'app.listener(..., topic=True, subscription="name")', "durable by default"),
            (_CHANGED, "app.listener(..., durable=False)", "the broker keeps no messages while there is no consumer"),
        ),
        "subscriptionShared": (
            (_CHANGED, "app.listener(..., shared=True)", "several consumers divide the messages"),
            (Verdict.SAME, "app.listener(...)", "not shared by default"),
        ),
        "replyPubSubDomain": (
            (_CHANGED, "app.listener(..., reply_to=Topic(name))", "answers go to a topic"),
            (_CHANGED, "app.listener(..., reply_to=name)", "answers go to a queue"),
        ),
        "autoStartup": (
            (Verdict.SAME, "app.listener(...)", "a listener starts with its app"),
            (_CHANGED, "app.listener(..., autostart=False)", 'app.listeners["name"].start() starts it'),
        ),
    },
    "template": {
        "pubSubDomain": (
            (_CHANGED, "app.sender.send(..., topic=True)", _SEND),
            (Verdict.SAME, "app.sender.send(...)", "a name is the name of a queue, unless topic=True"),
        ),
        "explicitQosEnabled": (
            (Verdict.IGNORED, "", "arguments of app.sender.send always count"),
            (Verdict.IGNORED, "", "with false Java ignores priority, time to live and mode: leave these arguments out"),
        ),
        "deliveryPersistent": (
            (Verdict.SAME, "app.sender.send(...)", "messages are persistent"),
            (_CHANGED, "app.sender.send(..., delivery_mode=DeliveryMode.NON_PERSISTENT)", _SEND),
        ),
        "sessionTransacted": (
            (Verdict.IGNORED, "", "a send within a listener joins the transaction of the listener"),
            (Verdict.SAME, "app.sender.send(...)", "outside of a listener a send takes effect at once"),
        ),
    },
}
"""For each kind of bean and each setter of a boolean: the verdict for true, and the verdict for false."""

_CONNECTS: Final = "an App waits 1 to 30 s between its tries to connect"
CODE: Final[Mapping[str, Mapping[str, Said]]] = {
    "container": {
        "errorHandler": (
            _HAND,
            "app.listener(..., on_error=f)",
            "write the code of f(error, message); --emit app writes its head",
        ),
        "exceptionListener": (Verdict.IGNORED, "", "an App logs a lost connection, and connects again"),
        "recoveryInterval": (Verdict.IGNORED, "", _CONNECTS),
        "backOff": (Verdict.IGNORED, "", _CONNECTS),
        "messageConverter": (_HAND, "App(url, converter=...)", "see the row of the converter"),
        "destinationResolver": (_HAND, "app.listener(name)", "this is code: write the name that the resolver returns"),
        "transactionManager": (
            _HAND,
            'app.listener(..., mode="transacted")',
            "a transaction covers only messages; docs/howto/exactly-once.md shows how to add a database",
        ),
        "validator": (_HAND, "", "code: a pydantic model, or __post_init__ of a dataclass, checks a body"),
    },
    "template": {
        "messageConverter": (_HAND, "App(url, converter=...)", "see the row of the converter"),
        "destinationResolver": (
            _HAND,
            "app.sender.send(name, ...)",
            "this is code: write the name that the resolver returns",
        ),
        "defaultDestination": (_HAND, "app.sender.send(name, ...)", "each send names its destination"),
    },
    "converter": {
        "targetType": (Verdict.IGNORED, "", "JsonConverter sends text messages, and reads text and bytes messages"),
        "objectMapper": (
            _HAND,
            "JsonConverter(...)",
            "this is code: look how the converter writes dates and names; docs/howto/from-spring.md has a table of"
            " JSON",
        ),
        "encoding": (Verdict.IGNORED, "", "JSON is UTF-8"),
        "encodingPropertyName": (Verdict.IGNORED, "", "JSON is UTF-8"),
        "beanClassLoader": (Verdict.IGNORED, "", "Python has no Java classes"),
    },
}
"""For each kind of bean, the verdict for each setter whose value needs no translation, because the value is code or has
no effect.
"""

ANSWER: Final[Said] = (
    _HAND,
    "return Answer(body, delivery_mode=..., priority=..., time_to_live=...)",
    "write these settings into each Answer",
)

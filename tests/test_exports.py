"""The public names. A change here is a change of the interface: on purpose, and in the change log."""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Iterator

import pytest

ERRORS = [
    "BodyConsumedException",
    "ConnectionLostException",
    "IllegalStateException",
    "InvalidClientIDException",
    "InvalidDestinationException",
    "InvalidSelectorException",
    "InvalidURLException",
    "JMSException",
    "JMSSecurityException",
    "MessageEOFException",
    "MessageFormatException",
    "MessageNotReadableException",
    "MessageNotWriteableException",
    "RequestTimedOutException",
    "ResourceAllocationException",
    "SendTimedOutException",
    "TransactionInProgressException",
    "TransactionRolledBackException",
    "UnsupportedFeatureException",
]
VALUES = ["Byte", "Char", "Double", "Float", "Int", "Long", "Short"]
ENUMERATIONS = ["AckMode", "AckType", "DeliveryMode", "Outcome"]
DESTINATIONS = ["Destination", "Queue", "TemporaryQueue", "TemporaryTopic", "Topic"]
MESSAGES = ["BytesMessage", "MapMessage", "Message", "ObjectMessage", "StreamMessage", "TextMessage"]
OBJECTS = ["JsonCodec", "ObjectCodec", "SerializedObject", "portable", "register_object_codec"]
FACE = [
    "Connection",
    "ConnectionFactory",
    "JMSContext",
    "MessageConsumer",
    "MessageProducer",
    "QueueBrowser",
    "Requestor",
    "Session",
]

APP = ["Answer", "App", "ConnectionState", "Header", "JsonConverter", "Retry"]
HELPERS = ["PossiblyMillisecondsWarning", "prefetch_for"]
MANAGEMENT = [
    "BrokerStatus",
    "ConnectionStatus",
    "ConsumerStatus",
    "ManagementDeniedError",
    "Manager",
    "QueueStatus",
    "UnknownQueueError",
]

PUBLIC = {
    "pyjmsack": [*ERRORS, *VALUES, *ENUMERATIONS, *DESTINATIONS, *MESSAGES, *OBJECTS, *FACE, *APP, *HELPERS],
    "pyjmsack.aio": ["App", *FACE],
    "pyjmsack.errors": ERRORS,
    "pyjmsack.explain": ["Explanation", "Fact", "explain"],
    "pyjmsack.broker": ["BrokerError", "EmbeddedActiveMQ", "EmbeddedArtemis", "KeyStore"],
    "pyjmsack.management": MANAGEMENT,
    "pyjmsack.management.aio": ["Manager"],
    "pyjmsack.testing": ["Broker", "ContainerBroker", "Wire"],
}
BOTH = pytest.mark.parametrize("module", PUBLIC)


@BOTH
def test_the_public_names_are_exactly_these(module: str) -> None:
    """Pinned."""
    assert sorted(importlib.import_module(module).__all__) == sorted(PUBLIC[module])


@BOTH
def test_every_public_name_is_there(module: str) -> None:
    """And listed once."""
    loaded = importlib.import_module(module)
    assert all(hasattr(loaded, name) for name in loaded.__all__)
    assert len(set(loaded.__all__)) == len(loaded.__all__)


@pytest.mark.parametrize("module", ["pyjmsack", "pyjmsack.aio", "pyjmsack.broker", "pyjmsack.testing"])
def test_nothing_public_is_unlisted(module: str) -> None:
    """What is neither listed nor a module starts with an underscore."""
    loaded = importlib.import_module(module)
    names = {name for name, value in vars(loaded).items() if not isinstance(value, types.ModuleType)}
    assert not {name for name in names - set(loaded.__all__) if not name.startswith("_")} - {"annotations"}


@pytest.mark.parametrize("name", FACE)
def test_the_package_itself_is_the_blocking_face(name: str) -> None:
    """``pyjmsack.Connection`` blocks; ``pyjmsack.aio.Connection`` does not."""
    top, blocking, asyncio_face = (importlib.import_module(m) for m in ("pyjmsack", "pyjmsack.sync", "pyjmsack.aio"))
    assert getattr(top, name) is getattr(blocking, name)
    assert getattr(top, name) is not getattr(asyncio_face, name)


@pytest.mark.parametrize(
    ("name", "parents"),
    [
        ("ConnectionLostException", ("JMSException", ConnectionError)),
        ("InvalidURLException", ("JMSException", ValueError)),
        ("JMSSecurityException", ("JMSException", PermissionError)),
        ("MessageEOFException", ("JMSException", EOFError)),
        ("MessageFormatException", ("JMSException", ValueError)),
        ("RequestTimedOutException", ("JMSException", TimeoutError)),
        ("SendTimedOutException", ("RequestTimedOutException", TimeoutError)),
        *[(name, ("JMSException", Exception)) for name in ERRORS],
    ],
)
def test_each_error_sits_where_a_caller_would_catch_it(name: str, parents: tuple[str, type[BaseException]]) -> None:
    """S129."""
    errors = importlib.import_module("pyjmsack.errors")
    assert issubclass(getattr(errors, name), (getattr(errors, parents[0])))
    assert issubclass(getattr(errors, name), parents[1])


@BOTH
def test_every_public_name_and_each_of_its_members_has_a_docstring(module: str) -> None:
    """The reference of the documentation site shows a member without one as a bare name, or not at all."""
    assert [*undocumented(importlib.import_module(module))] == []


def undocumented(module: types.ModuleType) -> Iterator[str]:
    """Yield the public classes and functions without a docstring, and the methods and properties of the classes."""
    for public in module.__all__:
        value = getattr(module, public)
        if isinstance(value, type):
            for owner in value.__mro__:
                yield from (f"{public}.{member}" for member in _bare_members(owner))
        if callable(value) and not (value.__doc__ or "").strip():
            yield public


def _bare_members(owner: type) -> Iterator[str]:
    """Yield the names of the methods and properties that a class of this project defines without a docstring."""
    if owner.__module__.partition(".")[0] != "pyjmsack":
        return
    for name, value in vars(owner).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        is_public = not name.startswith("_") and isinstance(function, types.FunctionType)
        if is_public and not (function.__doc__ or "").strip():
            yield name


def test_a_public_member_without_a_docstring_is_found() -> None:
    """The check can fail."""

    class Bare:
        """A class with one method that says nothing."""

        def said(self) -> None:
            """Say so."""

        def unsaid(self) -> None: ...

    Bare.__module__ = "pyjmsack.bare"
    module = types.ModuleType("bare")
    module.Bare, module.__all__ = Bare, ["Bare"]  # type: ignore[attr-defined]
    assert [*undocumented(module)] == ["Bare.unsaid"]


@BOTH
def test_every_parameter_of_a_public_call_is_explained(module: str) -> None:
    """Under ``Args`` in the docstring, where the reference of the documentation site shows it."""
    assert [*unexplained(importlib.import_module(module))] == []


def unexplained(module: types.ModuleType) -> Iterator[str]:
    """Yield the parameters of public functions and methods that the section ``Args`` of the docstring does not name."""
    for public in module.__all__:
        value = getattr(module, public)
        owners = value.__mro__ if isinstance(value, type) else ()
        calls = {public: value} if isinstance(value, types.FunctionType) else {}
        for owner in owners:
            if owner.__module__.partition(".")[0] == "pyjmsack":
                calls |= {f"{public}.{name}": getattr(call, "__func__", call) for name, call in vars(owner).items()}
        for name, call in calls.items():
            if isinstance(call, types.FunctionType) and not name.rpartition(".")[2].startswith("_"):
                explained = _explained(inspect.getdoc(call) or "")
                yield from (f"{name}({each})" for each in inspect.signature(call).parameters if each not in explained)


def _explained(text: str) -> set[str]:
    """Return the names in the section ``Args``, and those that need no explanation."""
    section = text.partition("Args:\n")[2].partition("\n\n")[0]
    entries = re.findall(r"^    ([\w, ]+):", section, re.MULTILINE)
    return {"self", "cls", *re.findall(r"\w+", " ".join(entries))}


def test_a_parameter_that_is_not_explained_is_found() -> None:
    """The check can fail."""

    class Half:
        """A class with a method that explains one of its two parameters."""

        def move(self, source: str, limit: int) -> None:
            """Move messages.

            Args:
                source: the queue.
            """

    Half.__module__ = "pyjmsack.half"
    module = types.ModuleType("half")
    module.Half, module.__all__ = Half, ["Half"]  # type: ignore[attr-defined]
    assert [*unexplained(module)] == ["Half.move(limit)"]

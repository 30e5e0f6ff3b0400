"""JMS semantics for Python over AMQP 1.0 and STOMP: the blocking face. The asyncio face is ``pyjmsack.aio``."""

import importlib
import typing

from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.errors import (
    BodyConsumedException,
    ConnectionLostException,
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    InvalidURLException,
    JMSException,
    JMSSecurityException,
    MessageEOFException,
    MessageFormatException,
    MessageNotReadableException,
    MessageNotWriteableException,
    RequestTimedOutException,
    ResourceAllocationException,
    SendTimedOutException,
    TransactionInProgressException,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)
from pyjmsack.message import (
    BytesMessage,
    JsonCodec,
    MapMessage,
    Message,
    ObjectCodec,
    ObjectMessage,
    SerializedObject,
    StreamMessage,
    TextMessage,
    portable,
    register_object_codec,
)
from pyjmsack.sync import (
    Connection,
    ConnectionFactory,
    JMSContext,
    MessageConsumer,
    MessageProducer,
    QueueBrowser,
    Requestor,
    Session,
)
from pyjmsack.types import (
    AckMode,
    AckType,
    Byte,
    Char,
    ConnectionState,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    Outcome,
    PossiblyMillisecondsWarning,
    Short,
)
from pyjmsack.uri import prefetch_for

if typing.TYPE_CHECKING:
    from pyjmsack.app.answer import Answer
    from pyjmsack.app.arguments import Header
    from pyjmsack.app.blocking import App
    from pyjmsack.app.converters import JsonConverter
    from pyjmsack.app.retry import Retry

__all__ = [
    "AckMode",
    "AckType",
    "Answer",
    "App",
    "BodyConsumedException",
    "Byte",
    "BytesMessage",
    "Char",
    "Connection",
    "ConnectionFactory",
    "ConnectionLostException",
    "ConnectionState",
    "DeliveryMode",
    "Destination",
    "Double",
    "Float",
    "Header",
    "IllegalStateException",
    "Int",
    "InvalidClientIDException",
    "InvalidDestinationException",
    "InvalidSelectorException",
    "InvalidURLException",
    "JMSContext",
    "JMSException",
    "JMSSecurityException",
    "JsonCodec",
    "JsonConverter",
    "Long",
    "MapMessage",
    "Message",
    "MessageConsumer",
    "MessageEOFException",
    "MessageFormatException",
    "MessageNotReadableException",
    "MessageNotWriteableException",
    "MessageProducer",
    "ObjectCodec",
    "ObjectMessage",
    "Outcome",
    "PossiblyMillisecondsWarning",
    "Queue",
    "QueueBrowser",
    "RequestTimedOutException",
    "Requestor",
    "ResourceAllocationException",
    "Retry",
    "SendTimedOutException",
    "SerializedObject",
    "Session",
    "Short",
    "StreamMessage",
    "TemporaryQueue",
    "TemporaryTopic",
    "TextMessage",
    "Topic",
    "TransactionInProgressException",
    "TransactionRolledBackException",
    "UnsupportedFeatureException",
    "portable",
    "prefetch_for",
    "register_object_codec",
]

_OF_SERVICES = {
    "Answer": "pyjmsack.app.answer",
    "App": "pyjmsack.app.blocking",
    "Header": "pyjmsack.app.arguments",
    "JsonConverter": "pyjmsack.app.converters",
    "Retry": "pyjmsack.app.retry",
}


def __getattr__(name: str) -> typing.Any:
    """Import ``App`` and the names that belong to it when a program first uses such a name. Most programs use none of
    these names, and start faster without these modules.
    """
    module = _OF_SERVICES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

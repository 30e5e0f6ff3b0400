"""JMS semantics for Python over AMQP 1.0: the blocking face. The asyncio face is ``pyjmsack.aio``."""

from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.errors import *  # noqa: F403 - the whole public error tree
from pyjmsack.errors import __all__ as _errors
from pyjmsack.message import BytesMessage, Message, TextMessage
from pyjmsack.sync import (
    Connection,
    ConnectionFactory,
    JMSContext,
    MessageConsumer,
    MessageProducer,
    QueueBrowser,
    Session,
)
from pyjmsack.types import (
    AckMode,
    AckType,
    Byte,
    Char,
    DeliveryMode,
    Double,
    Float,
    Int,
    Long,
    Outcome,
    Short,
)

__all__ = [  # noqa: PLE0604 - the errors are listed once, in their module
    *_errors,
    "AckMode",
    "AckType",
    "Byte",
    "BytesMessage",
    "Char",
    "Connection",
    "ConnectionFactory",
    "DeliveryMode",
    "Destination",
    "Double",
    "Float",
    "Int",
    "JMSContext",
    "Long",
    "Message",
    "MessageConsumer",
    "MessageProducer",
    "Outcome",
    "Queue",
    "QueueBrowser",
    "Session",
    "Short",
    "TemporaryQueue",
    "TemporaryTopic",
    "TextMessage",
    "Topic",
]

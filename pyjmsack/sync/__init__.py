"""The blocking face. ``pyjmsack`` re-exports it."""

from pyjmsack.sync.connection import Connection, ConnectionFactory
from pyjmsack.sync.consumer import MessageConsumer, QueueBrowser
from pyjmsack.sync.context import JMSContext
from pyjmsack.sync.producer import MessageProducer
from pyjmsack.sync.requestor import Requestor
from pyjmsack.sync.session import Session

__all__ = [
    "Connection",
    "ConnectionFactory",
    "JMSContext",
    "MessageConsumer",
    "MessageProducer",
    "QueueBrowser",
    "Requestor",
    "Session",
]

"""The asyncio face: the same names as ``pyjmsack``. A call that blocks there is a coroutine here."""

from pyjmsack.aio.connection import Connection, ConnectionFactory
from pyjmsack.aio.consumer import MessageConsumer, QueueBrowser
from pyjmsack.aio.context import JMSContext
from pyjmsack.aio.producer import MessageProducer
from pyjmsack.aio.requestor import Requestor
from pyjmsack.aio.session import Session
from pyjmsack.app.tasks import App

__all__ = [
    "App",
    "Connection",
    "ConnectionFactory",
    "JMSContext",
    "MessageConsumer",
    "MessageProducer",
    "QueueBrowser",
    "Requestor",
    "Session",
]

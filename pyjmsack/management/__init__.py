"""Ask a broker about its queues, consumers and connections, and change its queues. The commands use this client.

>>> from pyjmsack import ConnectionFactory
>>> from pyjmsack.management import Manager
>>> with Manager(ConnectionFactory("amqp://localhost:5672")) as manager:  # doctest: +SKIP
...     for queue in manager.queues("orders.*"):
...         print(queue.name, queue.messages, queue.consumers)

:mod:`pyjmsack.management.aio` has the same class for asyncio.
"""

from __future__ import annotations

from pyjmsack.management.client import Manager
from pyjmsack.management.model import (
    BrokerStatus,
    ConnectionStatus,
    ConsumerStatus,
    ManagementDeniedError,
    QueueStatus,
    UnknownQueueError,
)

__all__ = [
    "BrokerStatus",
    "ConnectionStatus",
    "ConsumerStatus",
    "ManagementDeniedError",
    "Manager",
    "QueueStatus",
    "UnknownQueueError",
]

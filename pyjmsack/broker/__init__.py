"""Real brokers for development and tests, without Docker: ActiveMQ Artemis and ActiveMQ Classic.

>>> from pyjmsack.broker import EmbeddedArtemis
>>> with EmbeddedArtemis() as broker:  # doctest: +SKIP
...     print(broker.amqp_url)
"""

from __future__ import annotations

from pyjmsack.broker.activemq import EmbeddedActiveMQ
from pyjmsack.broker.artemis import EmbeddedArtemis
from pyjmsack.broker.errors import BrokerError
from pyjmsack.broker.tls import KeyStore

__all__ = ["BrokerError", "EmbeddedActiveMQ", "EmbeddedArtemis", "KeyStore"]

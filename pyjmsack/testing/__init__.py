"""For tests of services that use a broker: brokers that can be killed, and a wire that can be cut.

The pytest plugin has fixtures for these brokers and the wire; see ``docs/testing.md``.
"""

from __future__ import annotations

from pyjmsack.testing.container import ContainerBroker
from pyjmsack.testing.protocol import Broker
from pyjmsack.testing.wire import Wire

__all__ = ["Broker", "ContainerBroker", "Wire"]

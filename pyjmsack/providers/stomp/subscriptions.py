"""The subscriptions of a consumer, and the common state of the receivers of one connection."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from pyjmsack.providers.stomp.dialect import StompDialect
from pyjmsack.providers.stomp.engine import StompEngine
from pyjmsack.providers.stomp.memory import DeliveryCounts
from pyjmsack.spi.engine import Connector

if TYPE_CHECKING:
    from pyjmsack.providers.stomp.receiver import StompReceiver

__all__ = ["Shared", "StompSubscription"]


class StompSubscription:
    """One subscription of a consumer, made by one SUBSCRIBE frame."""

    __slots__ = ("held", "id", "open", "receiver", "returned", "used")

    def __init__(self, name: bytes, receiver: StompReceiver) -> None:
        self.id = name
        self.receiver = receiver
        self.held = 0
        """The number of messages for which the broker waits for an ACK."""
        self.returned = 0
        """The number of these that go back to the broker when the subscription ends."""
        self.used = 0
        """The part of the window that these messages use."""
        self.open = True


class Shared:
    """The common state of the receivers of one connection."""

    def __init__(self, engine: StompEngine, connector: Connector, dialect: StompDialect, generation: int) -> None:
        self.engine = engine
        self.connector = connector
        self.dialect = dialect
        self.generation = generation
        self.subscriptions: dict[bytes, StompSubscription] = {}
        self.dirty: list[StompReceiver] = []
        """Receivers that got a message in this burst."""
        self.giving_back: list[StompReceiver] = []
        """Receivers with messages to redeliver at the end of this burst."""
        self.counts = DeliveryCounts()
        self.ack_by_id = True
        """STOMP 1.2 names a message in ACK by its ``ack`` header, 1.1 by message-id and subscription."""
        self.dead_letters = dialect.dead_letters
        self.drain_timeout: float | None = None
        self.client_id = ""
        self.ids: Iterator[int] = count(1)

"""The subscriptions of a consumer, and what the receivers of one connection have in common."""

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

__all__ = ["Lane", "Shared"]


class Lane:
    """One SUBSCRIBE of a consumer."""

    __slots__ = ("held", "id", "open", "receiver", "returned", "used")

    def __init__(self, lane_id: bytes, receiver: StompReceiver) -> None:
        self.id = lane_id
        self.receiver = receiver
        self.held = 0
        """Messages that the broker waits for an ACK of."""
        self.returned = 0
        """Those of them that go back to the broker when the lane ends."""
        self.used = 0
        """What they take of the window."""
        self.open = True


class Shared:
    """What the receivers of one connection have in common."""

    def __init__(self, engine: StompEngine, connector: Connector, dialect: StompDialect, generation: int) -> None:
        self.engine = engine
        self.connector = connector
        self.dialect = dialect
        self.generation = generation
        self.lanes: dict[bytes, Lane] = {}
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

"""Messages on their way between the core and a provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pyjmsack.destination import Destination
from pyjmsack.message import Message

__all__ = ["Inbound", "InboundSink", "Outbound"]


class Outbound:
    """One encoded message for one producer.

    The payload is a snapshot: the caller may change and send the message again at once (S72).
    """

    __slots__ = ("done", "message_id", "payload", "presettled", "producer_id", "transacted")

    def __init__(
        self,
        producer_id: int,
        payload: bytes,
        done: Callable[[BaseException | None], None],
        message_id: str | None,
        presettled: bool = False,
        transacted: bool = False,
    ) -> None:
        self.producer_id = producer_id
        self.payload = payload
        self.done = done
        """Called once, on the loop: ``None`` when the broker confirmed (or the bytes left, if presettled)."""
        self.message_id = message_id
        self.presettled = presettled
        self.transacted = transacted


class Inbound(Protocol):
    """One delivered message, not decoded yet. Its methods run on the caller's thread."""

    consumer_id: int
    generation: int
    """Number of the connection that delivered it: an outcome for an older one is never sent (S95, S96)."""
    redeliveries: int
    """Local redeliveries by ``recover()``, on top of those the broker counted (S32)."""
    settled: bool
    """True once an outcome was chosen, and from the start where the broker settled before dispatch."""

    @property
    def redelivery_count(self) -> int:
        """How often the message was delivered before, as far as broker and client know (S110)."""
        ...

    def expired(self, now_ms: int) -> bool:
        """Whether its time to live is over at ``now_ms`` (milliseconds since the epoch, S156)."""
        ...

    def to_message(self, destination: Destination) -> Message:
        """Return a message of its own (S169).

        Raises:
            MessageFormatException: it cannot be decoded (S166).
        """
        ...


class InboundSink(Protocol):
    """Where a provider puts what it received for one consumer. All run on the loop."""

    def deliver(self, inbound: Inbound) -> None:
        """Buffer one message; nobody is woken yet."""
        ...

    def arrived(self) -> None:
        """The burst is over: wake whoever waits, once."""
        ...

    def buffered(self) -> int:
        """How many messages wait here for the caller (S53)."""
        ...

    def detached(self, error: BaseException) -> None:
        """The broker closed this consumer (S126)."""
        ...

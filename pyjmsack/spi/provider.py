"""The operations a protocol offers to the core, and the events it sends back (the verbs of a JMS provider)."""

from __future__ import annotations

from typing import Protocol

from pyjmsack.destination import Destination
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Encoder, Inbound, InboundSink, Outbound
from pyjmsack.spi.resources import (
    ConnectionInfo,
    ConnectionMetadata,
    ConsumerInfo,
    ProducerInfo,
    SessionInfo,
    TemporaryInfo,
)
from pyjmsack.types import Outcome

__all__ = ["Encoder", "Provider", "ProviderListener"]


class ProviderListener(Protocol):
    """Events that concern the whole connection. They run on the loop and must not block."""

    def on_failure(self, error: BaseException) -> None:
        """The connection is lost and will not come back.

        Called before the requests and sends that are lost with it fail, while ``withdraw`` still tells which of the
        sends never left.
        """
        ...

    def on_interrupted(self, error: BaseException, generation: int) -> None:
        """The connection is lost and is being rebuilt: what was delivered up to ``generation`` is the broker's again,
        and acknowledging it has no effect (S95, S101)."""
        ...

    def on_restored(self, metadata: ConnectionMetadata) -> None:
        """The connection is there again, perhaps at another broker, with all that was open (S103)."""
        ...

    def on_temporary_renamed(self, temporary_id: int, name: str) -> None:
        """A temporary destination was made anew, under the name that this broker gave it (S133)."""
        ...

    def on_resource_closed(self, number: int, error: BaseException) -> None:
        """The broker closed a session or producer that was in use, and not the connection (S109).

        Called before what belongs to it fails. Of a consumer its sink is told.
        """
        ...


class Provider(Protocol):
    """One connection to a broker. All methods run on the loop, but for ``encoder``.

    Requests that the broker answers take a :class:`Completion`; a lost connection fails every pending one.
    """

    generation: int
    """Number of the present connection, as on the messages that it delivers (S96)."""

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Open the stream, log in, open the connection; may be called again after ``close``."""
        ...

    def close(self, done: Completion[None]) -> None:
        """Close in order; ``done`` when the peer answered or is gone."""
        ...

    def abort(self, error: BaseException) -> None:
        """Give up: fail what is pending with ``error`` and drop the stream."""
        ...

    def flush(self) -> None:
        """Send what the calls since the last flush produced."""
        ...

    def create_session(self, info: SessionInfo, done: Completion[None]) -> None:
        """Open a session."""
        ...

    def close_session(self, session_id: int, done: Completion[None]) -> None:
        """End a session; an open transaction is rolled back by the broker (S84)."""
        ...

    def create_producer(self, info: ProducerInfo, done: Completion[None]) -> None:
        """Attach a sender."""
        ...

    def close_producer(self, producer_id: int, done: Completion[None]) -> None:
        """Detach a sender."""
        ...

    def create_consumer(self, info: ConsumerInfo, sink: InboundSink, done: Completion[None]) -> None:
        """Attach a receiver, whose messages go to ``sink``; it gets no message before ``start_consumer``."""
        ...

    def start_consumer(self, consumer_id: int) -> None:
        """Let messages flow up to the prefetch; also after a drain. Nothing to do with prefetch 0."""
        ...

    def stop_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """No message is delivered to the sink from now on: what still arrives goes back uncounted (S31)."""
        ...

    def close_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Detach a receiver; a durable subscription stays (S141). Outcomes for it are no longer possible."""
        ...

    def create_temporary(self, info: TemporaryInfo, done: Completion[str]) -> None:
        """Create a temporary destination; ``done`` with its name, which is the broker's choice (S132)."""
        ...

    def delete_temporary(self, temporary_id: int, done: Completion[None]) -> None:
        """Delete a temporary destination (S131)."""
        ...

    def unsubscribe(self, name: str, done: Completion[None]) -> None:
        """Delete a durable subscription and its backlog; it fails with ``InvalidDestinationException`` if there is none
        of that name (S141)."""
        ...

    def replenish(self, consumer_id: int) -> None:
        """The caller took messages from the sink: grant credit again if the rule says so (S53)."""
        ...

    def pull(self, consumer_id: int) -> None:
        """Ask for one message, for a consumer with prefetch 0 (S50)."""
        ...

    def drain(self, consumer_id: int, done: Completion[None]) -> None:
        """Ask the broker to send what it has for the open credit; ``done`` when it said that is all."""
        ...

    def send(self, outbound: Outbound) -> None:
        """Transfer a message as soon as there is credit, in order; ``outbound.done`` gets the outcome (S63)."""
        ...

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        """Take back a send that timed out: True if it had not left and never will (S66). It counts as done then."""
        ...

    def settle(self, inbound: Inbound, outcome: Outcome) -> None:
        """Send an outcome; in a transacted session ACCEPTED joins the transaction. Silent for a stale one (S95)."""
        ...

    def begin(self, session_id: int, done: Completion[None]) -> None:
        """Declare a transaction (S76)."""
        ...

    def commit(self, session_id: int, done: Completion[None]) -> None:
        """Discharge the transaction."""
        ...

    def rollback(self, session_id: int, done: Completion[None]) -> None:
        """Discharge the transaction as failed."""
        ...

    def encoder(self, destination: Destination) -> Encoder:
        """Return the function that encodes messages for this destination; any thread, once connected."""
        ...

    def decode(self, payload: bytes, destination: Destination) -> tuple[Message, int]:
        """Return the message, and its time to live in milliseconds, that an encoder of this protocol was given: to
        encode it for another broker (S91)."""
        ...

"""The requests that the core sends to a provider, and the events that the provider reports to the core.

``spi/registry.py`` finds the provider of a URL. docs/architecture.md lists the steps to add another protocol.
"""

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
        """Handle the final loss of the connection.

        Called before the pending requests and sends fail. So ``withdraw`` can still tell which sends never reached the
        network.
        """
        ...

    def on_leaving(self, done: Completion[None]) -> None:
        """Prepare for the move to another broker, because the provider is about to leave a broker that still works.

        Give the acknowledgements that wait to the provider, because otherwise the broker would deliver their messages
        again (S43). Then let ``done`` succeed.
        """
        ...

    def on_interrupted(self, error: BaseException, generation: int) -> None:
        """Handle the loss of the connection before the provider connects again.

        ``generation`` is the number of the lost connection. The broker has taken back the messages that came over this
        connection or an older one, so an acknowledgement of one of these messages has no effect (S95, S101).
        """
        ...

    def on_restored(self, metadata: ConnectionMetadata) -> None:
        """Handle the end of a failover: all sessions, producers and consumers are restored, maybe at another broker
        (S103)."""
        ...

    def on_temporary_renamed(self, temporary_id: int, name: str) -> None:
        """Use the new name of a temporary destination. The new broker created the destination again and chose the name
        (S133).
        """
        ...

    def on_resource_closed(self, number: int, error: BaseException) -> None:
        """Handle the close of a session or producer by the broker. The connection stays open (S109).

        Called before the pending work of the session or producer fails. For a consumer, ``detached`` of its sink is
        called instead.
        """
        ...


class Provider(Protocol):
    """One connection to a broker. All methods except ``encoder`` run on the loop.

    A request that the broker answers takes a :class:`Completion`. If the connection is lost, all pending completions
    fail.
    """

    generation: int
    """The number of the present connection. Its messages have the same number (S96)."""

    def connect(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Open the stream, log in and open the connection. May be called again after ``close``."""
        ...

    def close(self, done: Completion[None]) -> None:
        """Close the connection in an orderly way. ``done`` succeeds when the broker has answered. If the connection is
        lost before the answer, ``done`` fails with the loss."""
        ...

    def abort(self, error: BaseException) -> None:
        """Fail all pending requests and sends with ``error``, and close the stream at once."""
        ...

    def flush(self) -> None:
        """Write the bytes that the calls since the last flush produced."""
        ...

    def create_session(self, info: SessionInfo, done: Completion[None]) -> None:
        """Open a session."""
        ...

    def close_session(self, session_id: int, done: Completion[None]) -> None:
        """End a session. The broker rolls back its open transaction (S84)."""
        ...

    def create_producer(self, info: ProducerInfo, done: Completion[None]) -> None:
        """Open a producer at the broker."""
        ...

    def close_producer(self, producer_id: int, done: Completion[None]) -> None:
        """Close a producer at the broker."""
        ...

    def create_consumer(self, info: ConsumerInfo, sink: InboundSink, done: Completion[None]) -> None:
        """Open a consumer at the broker. Its messages go to ``sink``. The broker sends no message before
        ``start_consumer``."""
        ...

    def start_consumer(self, consumer_id: int) -> None:
        """Let the broker send messages up to the prefetch. Called at the start of the consumer and after a drain.

        Does nothing for a consumer with prefetch 0, because such a consumer pulls each message.
        """
        ...

    def stop_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Stop deliveries to the sink. Messages that still arrive go back to the queue, without counting a delivery
        (S31)."""
        ...

    def close_consumer(self, consumer_id: int, done: Completion[None]) -> None:
        """Close a consumer at the broker. After that, no outcome can be sent for its messages. A durable subscription
        stays (S141)."""
        ...

    def create_temporary(self, info: TemporaryInfo, done: Completion[str]) -> None:
        """Create a temporary destination; ``done`` gets its name, which the broker chooses (S132)."""
        ...

    def delete_temporary(self, temporary_id: int, done: Completion[None]) -> None:
        """Delete a temporary destination (S131)."""
        ...

    def unsubscribe(self, name: str, done: Completion[None]) -> None:
        """Delete a durable subscription and its messages (S141).

        ``done`` fails with ``InvalidDestinationException`` if there is no subscription of that name.
        """
        ...

    def replenish(self, consumer_id: int) -> None:
        """Let the broker send more messages if enough messages were taken from the inbox (S53)."""
        ...

    def make_room(self, consumer_id: int) -> None:
        """Let the broker send another message, because the caller put one aside that has no outcome yet (S116)."""
        ...

    def pull(self, consumer_id: int) -> None:
        """Ask for one message, for a consumer with prefetch 0 (S50)."""
        ...

    def drain(self, consumer_id: int, done: Completion[None]) -> None:
        """Ask the broker to send the messages that it has, up to the open credit.

        ``done`` succeeds when the broker has said that no more messages come for this credit.
        After ``stop_consumer``, bring the settled messages that the broker still owes (S36).
        """
        ...

    def send(self, outbound: Outbound) -> None:
        """Send a message as soon as there is credit, in the order of the calls. ``outbound.done`` gets the outcome
        (S63)."""
        ...

    def withdraw(self, outbound: Outbound, withdrawn: Completion[bool]) -> None:
        """Take back a send that timed out.

        ``withdrawn`` gets True if the message was not sent and never will be (S66). In this case ``outbound.done`` is
        called, too.
        """
        ...

    def settle(self, inbound: Inbound, outcome: Outcome, joins: bool = True) -> None:
        """Send the outcome of a message. Do nothing if the message came over an earlier connection (S95).

        Args:
            inbound: the message.
            outcome: the outcome.
            joins: whether ACCEPTED becomes part of the transaction, if the session is transacted.
        """
        ...

    def lose(self, error: BaseException) -> None:
        """End the connection as if it had been lost, because ``error`` kept an outcome from being sent. The broker then
        delivers the message again, and nobody takes the outcome for sent."""
        ...

    def begin(self, session_id: int, done: Completion[None]) -> None:
        """Begin a transaction (S76)."""
        ...

    def commit(self, session_id: int, done: Completion[None]) -> None:
        """Commit the transaction."""
        ...

    def rollback(self, session_id: int, done: Completion[None]) -> None:
        """Roll back the transaction."""
        ...

    def encoder(self, destination: Destination) -> Encoder:
        """Return the function that encodes messages for this destination.

        Any thread may call this method after the connection is open.
        """
        ...

    def decode(self, payload: bytes, destination: Destination) -> tuple[Message, int]:
        """Decode a payload that this provider encoded, so that the message can be encoded for another broker (S91).

        Returns the message and its time to live in milliseconds.
        """
        ...

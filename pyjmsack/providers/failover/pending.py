"""Requests and sends without an answer. They are kept, because they may have to be repeated at the next broker
(S90)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from pyjmsack.providers.failover.blame import MOST_LOSSES, says_why
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import Outbound, StreamedPayload
from pyjmsack.spi.provider import Provider

__all__ = ["WITHOUT_BROKER", "Losses", "PendingSend", "Request", "Without"]


class Without(Enum):
    """The treatment of a request that was made while there was no broker, or that was not answered before the
    connection was lost."""

    HELD = "sent to the next broker, in the order of the calls"
    SUCCEEDS = "succeeds, because the loss of the connection has the same effect"
    ROLLED_BACK = "fails, because the transaction is rolled back or counts as rolled back"


WITHOUT_BROKER = {
    "create_session": Without.HELD,
    "create_producer": Without.HELD,
    "create_consumer": Without.HELD,
    "create_temporary": Without.HELD,
    "unsubscribe": Without.HELD,
    "browse": Without.HELD,
    "drain": Without.SUCCEEDS,
    "stop_consumer": Without.SUCCEEDS,
    "close_session": Without.SUCCEEDS,
    "close_producer": Without.SUCCEEDS,
    "close_consumer": Without.SUCCEEDS,
    "delete_temporary": Without.SUCCEEDS,
    "begin": Without.SUCCEEDS,
    "rollback": Without.SUCCEEDS,
    "commit": Without.ROLLED_BACK,
}
"""The treatment of each kind of request while there is no broker (S90). ``browse`` is the drain of a browser. Sends and
acknowledgements are no requests: sends are kept (S91), and acknowledgements are dropped (S95)."""


class Losses:
    """The connections that were lost while one request or send had no answer."""

    __slots__ = ("count", "reasons")

    def __init__(self) -> None:
        self.count = 0
        """The number of connections that were lost."""
        self.reasons = 0
        """The number of connections that the broker ended for a stated reason."""

    def add(self, error: BaseException) -> None:
        """Count a connection that was lost before the broker answered."""
        self.count += 1
        self.reasons += says_why(error)

    @property
    def suspect(self) -> bool:
        """True if the request or send may be the reason why connections are lost. It is then sent alone."""
        return self.count >= MOST_LOSSES - 1


class Request:
    """One request that a broker answers.

    Args:
        verb: the name of the request in :data:`WITHOUT_BROKER`.
        owner: ids of the resources for which the request is made. The request is given up when one of them is closed.
        ask: makes the request at a provider.
        done: the completion that gets the answer.
        then: called before ``done`` with the answer of a request that succeeded.
        ends: the id of the session whose transaction the request commits or rolls back. ``None`` for other requests.
    """

    __slots__ = ("abandoned", "ask", "asked", "done", "ends", "losses", "owner", "then", "verb")

    def __init__(
        self,
        verb: str,
        owner: tuple[int, ...],
        ask: Callable[[Provider, Completion[Any]], None],
        done: Completion[Any],
        then: Callable[[Any], None] | None = None,
        ends: int | None = None,
    ) -> None:
        self.ends = ends
        self.verb = verb
        self.owner = owner
        self.ask = ask
        self.done = done
        self.then = then
        self.asked = False
        """True if the request may have reached a broker."""
        self.abandoned: BaseException | None = None
        """The error with which the request ends if its owner was closed before the broker answered, and otherwise
        ``None``. With an error here, the request is not repeated at another broker, and a late answer opens nothing."""
        self.losses = Losses()

    @property
    def name(self) -> str:
        """The name of the request in an error."""
        return f"the request {self.verb}"

    def lost(self, error: BaseException) -> None:
        """Count a connection that was lost before the broker answered."""
        self.losses.add(error)

    def give_up(self, error: BaseException) -> None:
        """Fail the request, because nobody will repeat it."""
        self.done.fail(error)


class PendingSend(Outbound):
    """A send on its way through one connection. When the outcome is known, the send of the core gets the outcome. If
    the connection is lost earlier, this object ignores the outcome.

    Args:
        table: holds the send until its outcome is known. The code that takes the send out of the table decides whether
            the send is finished or repeated.
        session_id: the session of the send. The send is given up when the session is closed.
    """

    __slots__ = ("encoding", "losses", "origin", "session_id", "table", "then", "timer", "undone", "withdrawn")

    def __init__(self, origin: Outbound, table: dict[Any, Any], session_id: int) -> None:
        self.producer_id = origin.producer_id
        self.payload = origin.payload
        self.encoder = origin.encoder
        self.encoding: object = origin.encoder.encoding  # type: ignore[attr-defined]  # made by FailoverProvider
        self.notifies = origin.notifies
        self.message_id = origin.message_id
        self.presettled = origin.presettled
        self.transacted = origin.transacted
        self.origin = origin
        self.table = table
        self.session_id = session_id
        self.left = False
        self.withdrawn = False
        """True if the caller already got an error because the send timed out. Such a send is not repeated (S91)."""
        self.undone = False
        """True if the transaction of this send was rolled back. Such a send is not repeated, because it would become
        part of the next transaction (S99)."""
        self.timer: Timer | None = None
        self.losses: Losses | None = None
        """``None`` if no connection was lost while the send had no answer. So a send makes no object for this."""
        self.then: Callable[[], None] | None = None
        """Called after the answer of a send that was sent alone."""

    @property
    def name(self) -> str:
        """The name of the send in an error."""
        return f"the send of message {self.message_id}"

    def lost(self, error: BaseException) -> None:
        """Count a connection that was lost before the broker answered."""
        if self.losses is None:
            self.losses = Losses()
        self.losses.add(error)

    def done(self, error: BaseException | None) -> None:
        """Give the answer of the broker to the send of the core. Do nothing if the connection was lost before the
        answer, because :meth:`again` has made another object for the next connection."""
        if self.table.pop(self, None) is not None:
            self.origin.done(error)
            if self.then is not None:
                self.then()

    def again(self) -> PendingSend:
        """Return a new object with the same send for the next connection. A broker that the connection leaves may still
        answer the old object, and such an answer is ignored."""
        made = PendingSend(self.origin, self.table, self.session_id)
        made.payload, made.encoder, made.encoding = self.payload, self.encoder, self.encoding
        made.left, made.withdrawn, made.undone, made.losses = self.left, self.withdrawn, self.undone, self.losses
        return made

    def give_up(self, error: BaseException) -> None:
        """Fail the send, because it will not be sent."""
        self.disarm()
        self.origin.done(error)

    def disarm(self) -> None:
        """Stop the timer that limits how long the send waits for a broker."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    @property
    def repeatable(self) -> bool:
        """Whether the body of the message can be sent again."""
        return not isinstance(self.payload, StreamedPayload) or self.payload.repeatable

    @property
    def owner(self) -> tuple[int, ...]:
        """The ids of the session and the producer of this send. The send is given up when one of them is closed."""
        return self.session_id, self.producer_id

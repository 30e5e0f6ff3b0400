"""Requests and sends without an answer, which are kept so that they can be repeated at the next broker (S90)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from pyjmsack.providers.failover.blame import MOST_LOSSES, says_why
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import Outbound, StreamedPayload
from pyjmsack.spi.provider import Provider

__all__ = ["WITHOUT_BROKER", "PendingSend", "Request", "Without"]


class Without(Enum):
    """What happens to a request that was made while there was no broker, or that had no answer when the connection was
    lost."""

    HELD = "asked again, in order, when there is one"
    SUCCEEDS = "done: the broker has done it by losing the connection"
    ROLLED_BACK = "fails: the transaction is, or counts as, rolled back"


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
"""The table of S90. ``browse`` is the drain of a browser. Sends are kept, and acknowledgements are dropped (S95)."""


class Request:
    """One request that a broker answers.

    Args:
        verb: the name of its row in the table.
        owner: ids of the resources for which the request is made. The request is given up when one of them is closed.
        ask: makes the request at a provider.
        done: the completion that gets the answer.
        then: called before ``done`` with the answer of a request that succeeded.
    """

    __slots__ = ("abandoned", "ask", "asked", "done", "losses", "owner", "reasons", "then", "verb")

    def __init__(
        self,
        verb: str,
        owner: tuple[int, ...],
        ask: Callable[[Provider, Completion[Any]], None],
        done: Completion[Any],
        then: Callable[[Any], None] | None = None,
    ) -> None:
        self.verb = verb
        self.owner = owner
        self.ask = ask
        self.done = done
        self.then = then
        self.asked = False
        """True if the request may have reached a broker."""
        self.abandoned: BaseException | None = None
        """Why the result of the request is not wanted any more. A broker that grants the request must undo it, and the
        request is not repeated."""
        self.losses = 0
        """The number of connections that were lost before the broker answered."""
        self.reasons = 0
        """The number of these losses for which the broker gave a reason."""

    def lost(self, error: BaseException) -> None:
        """Count a connection that was lost before the broker answered."""
        self.losses += 1
        self.reasons += says_why(error)

    @property
    def suspect(self) -> bool:
        """True if this request may be the reason why connections are lost. Then it is sent alone."""
        return self.losses >= MOST_LOSSES - 1

    def give_up(self, error: BaseException) -> None:
        """Fail the request, because it will not be repeated."""
        self.done.fail(error)


class PendingSend(Outbound):
    """A send on its way through one connection. It passes its outcome on to the send of the core, unless that
    connection was lost first.

    Args:
        table: holds the send until its outcome is known. The code that takes the send out of the table decides what
            happens to it.
        session_id: its session. The send is given up when the session is closed.
    """

    __slots__ = ("encoding", "origin", "session_id", "table", "timer", "undone", "withdrawn")

    def __init__(self, origin: Outbound, table: dict[Any, Any], session_id: int) -> None:
        self.producer_id = origin.producer_id
        self.payload = origin.payload
        self.encoder = origin.encoder
        self.encoding: object = origin.encoder.encoding  # type: ignore[attr-defined]  # the core has its encoders from us
        self.notifies = origin.notifies
        self.message_id = origin.message_id
        self.presettled = origin.presettled
        self.transacted = origin.transacted
        self.origin = origin
        self.table = table
        self.session_id = session_id
        self.left = False
        self.withdrawn = False
        """True if the caller already got an error because the send timed out. Then it is not sent again (S91)."""
        self.undone = False
        """True if its transaction was rolled back. Then it is not sent again, because it would become part of the next
        transaction (S99)."""
        self.timer: Timer | None = None

    def done(self, error: BaseException | None) -> None:
        """Pass the answer of the broker on, unless the connection was lost before and this send is kept for the next
        one."""
        if self.table.pop(self, None) is not None:
            self.origin.done(error)

    def again(self) -> PendingSend:
        """Return the same send for the next connection. Answers over this connection do not count any more. Such
        answers still come from a broker that the connection leaves."""
        made = PendingSend(self.origin, self.table, self.session_id)
        made.payload, made.encoder, made.encoding = self.payload, self.encoder, self.encoding
        made.left, made.withdrawn, made.undone = self.left, self.withdrawn, self.undone
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

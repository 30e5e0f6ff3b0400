"""Requests without an answer. They are kept, so that the next broker can be asked (S90)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from pyjmsack.providers.failover.blame import MOST_LOSSES, says_why
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import Outbound
from pyjmsack.spi.provider import Provider

__all__ = ["WITHOUT_BROKER", "PendingSend", "Request", "Without"]


class Without(Enum):
    """What becomes of a request that is made while there is no broker, or that was under way when the broker was
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
"""The table of S90; ``browse`` is the drain of a browser. Sends are held, acknowledgements dropped (S95)."""


class Request:
    """One request with an answer.

    Args:
        verb: its row in the table.
        owner: ids of the resources that it concerns; it is given up when one of them is closed.
        ask: makes it.
        done: completed with the answer.
        then: called with the answer before ``done`` when it succeeded.
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
        """Whether it may have reached a broker."""
        self.abandoned: BaseException | None = None
        """Why what it asks for is closed already: a broker that does it is told to undo it, and no other is asked."""
        self.losses = 0
        """Connections that were lost before they answered it."""
        self.reasons = 0
        """Those of them for which the broker gave a reason."""

    def lost(self, error: BaseException) -> None:
        """Count a connection that was lost before it answered."""
        self.losses += 1
        self.reasons += says_why(error)

    @property
    def suspect(self) -> bool:
        """Whether it may be the reason why connections are lost: then nothing else is asked beside it."""
        return self.losses >= MOST_LOSSES - 1

    def give_up(self, error: BaseException) -> None:
        """It will not be asked again."""
        self.done.fail(error)


class PendingSend(Outbound):
    """A send on its way through one connection. The core's own hears of the outcome unless that connection was lost.

    Args:
        table: where it stands while the outcome is open; whoever takes it out decides what becomes of it.
        session_id: its session, so that it goes with it.
    """

    __slots__ = ("encoding", "origin", "session_id", "table", "timer", "undone", "withdrawn")

    def __init__(self, origin: Outbound, table: dict[Any, bool], session_id: int) -> None:
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
        """Whether the send timed out and its caller got the error. Such a send is not sent again (S91)."""
        self.undone = False
        """Whether its transaction was rolled back: then it is not sent again either, the next one is another (S99)."""
        self.timer: Timer | None = None

    def done(self, error: BaseException | None) -> None:
        """The broker answered, unless this send was taken over when the connection was lost."""
        if self.table.pop(self, None):
            self.origin.done(error)

    def give_up(self, error: BaseException) -> None:
        """It will not be sent."""
        self.disarm()
        self.origin.done(error)

    def disarm(self) -> None:
        """Its time without a broker is over."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    @property
    def owner(self) -> tuple[int, ...]:
        """The resources that it goes with."""
        return self.session_id, self.producer_id

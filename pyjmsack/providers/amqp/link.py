"""What sender, receiver and coordinator links share: the attach and detach handshakes (AMQP 1.0 2.6)."""

from __future__ import annotations

from typing import Any

from pyjmsack.destination import Destination
from pyjmsack.errors import IllegalStateException, JMSException, ResourceAllocationException
from pyjmsack.providers.amqp.engine import StateError
from pyjmsack.providers.amqp.engine.performatives import Attach, Composite
from pyjmsack.providers.amqp.engines import AmqpEngine, SessionEnd
from pyjmsack.providers.amqp.errors import link_error
from pyjmsack.providers.amqp.sizes import shortened
from pyjmsack.spi.completion import Completion

__all__ = ["AmqpLink", "words"]


def words(destination: Destination | None) -> tuple[str, ...]:
    """Return the capabilities of a terminus: always the routing one, as Artemis drops messages without (S165)."""
    return () if destination is None else (destination.capability,)


class AmqpLink:
    """One end of a link. Subclasses say what happens to deliveries and credit.

    Args:
        session: what it is attached on.
        attach: what the Attach says; handle and role are the engine's affair.
        what: what it is called in errors.
    """

    selector: str | None = None

    def __init__(self, engine: AmqpEngine, session: SessionEnd, attach: Attach, what: str) -> None:
        self._engine = engine
        self._session = session
        self._description = attach
        self._what = shortened(what)
        self._link: Any = None
        """The engine's end (``SenderEnd`` or ``ReceiverEnd``), once it is attached."""
        self._opening: Completion[None] | None = None
        self._closing: Completion[None] | None = None
        self._attach_answered = False
        """Whether the peer answered our attach."""
        self.closed: JMSException | None = None
        """Set once the link can no longer be used, with the reason."""

    def open(self, done: Completion[None]) -> None:
        """Attach; ``done`` when the peer attached its end to a node, not merely answered."""
        self._opening = done
        try:
            self._attach()
        except StateError as error:
            self.closed = ResourceAllocationException(f"{self._what} cannot be attached: {error}")
            self._opening = None
            done.fail(self.closed)

    def _attach(self) -> None:
        """Attach, to send; a link to receive on does so itself."""
        self._link = self._session.attach_sender(self._description, self)

    def close(self, done: Completion[None]) -> None:
        """Close the link; one whose attach is not answered when that answer comes: a detach frees our handle for the
        next link, and what the peer says until then must not meet that one."""
        if self.closed is not None:
            done.succeed()
            return
        self.closed = IllegalStateException(f"{self._what} is closed")
        self._closing = done
        if self._attach_answered:
            self._part()

    def _part(self) -> None:
        """Say that this end is over."""
        self._link.detach(closed=True)

    def fail(self, error: BaseException) -> None:
        """The session or connection is over."""
        self.closed = error if isinstance(error, JMSException) else JMSException(str(error))
        for completion in (self._opening, self._closing):
            if completion is not None:
                completion.fail(error)
        self._opening = self._closing = None
        self._ended(self.closed)
        self._lost(self.closed)

    def on_remote_open(self) -> None:
        """A refused attach is answered by an attach without the node, and then a detach that says why (2.6.3)."""
        self._attach_answered = True
        if self._closing is not None:  # who wanted it has gone
            self._part()
        elif self._attached() and self._opening is not None:
            opening, self._opening = self._opening, None
            opening.succeed()

    def on_remote_close(self) -> None:
        """The answer to our close, the refusal of our attach, or the broker closing a link in use (S126)."""
        if self._closing is not None:
            closing, self._closing = self._closing, None
            error = self.closed or JMSException(f"{self._what} is closed")
            self._ended(error)
            self._fail_opening(error)
            closing.succeed()
        elif self.closed is None:
            error = link_error(self._link.remote_error, f"the broker closed {self._what}", selector=self.selector)
            self.closed = error
            self._part()
            if not self._fail_opening(error):
                self._ended(error)
                self._lost(error)
                self._closed_by_broker(error)

    def _fail_opening(self, error: JMSException) -> bool:
        """Complete the attach that somebody waits for. Return False if nobody waits."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.fail(error)
        return opening is not None

    def on_message(self, delivery: Any, payload: bytes, settled: bool) -> None:
        """See the subclass."""
        raise AssertionError("a link without deliveries got one")

    def on_oversize(self, delivery: Any, start: bytes, size: int, settled: bool) -> None:
        """See the subclass."""
        raise AssertionError("a link without deliveries got one")

    def on_outcome(self, context: Any, state: Composite | None) -> None:
        """See the subclass."""
        raise AssertionError("a link without deliveries got an outcome")

    def on_flow(self) -> None:
        """Credit changed."""

    def rolled_back(self) -> None:
        """The session's transaction is being rolled back."""

    def _attached(self) -> bool:
        return True

    def _ended(self, error: JMSException) -> None:
        """The link is over: fail the requests that wait for the peer."""

    def _lost(self, error: JMSException) -> None:
        """A link that was in use is over, alone or with its session or connection."""

    def _closed_by_broker(self, error: JMSException) -> None:
        """The broker closed a link that was in use, alone."""

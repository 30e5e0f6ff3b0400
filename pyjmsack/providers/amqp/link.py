"""What sender, receiver and coordinator links share: the attach and detach handshakes (AMQP 1.0 2.6)."""

from __future__ import annotations

from typing import Any

from proton import Link, Terminus, symbol

from pyjmsack.errors import IllegalStateException, JMSException
from pyjmsack.providers.amqp.errors import link_error
from pyjmsack.providers.amqp.proton_engine import AmqpEngine
from pyjmsack.providers.amqp.sizes import shortened
from pyjmsack.spi.completion import Completion

__all__ = ["AmqpLink", "set_terminus"]


def set_terminus(terminus: Terminus, address: str | None, capability: str | None) -> None:
    """Point a terminus at a node, always with its routing capability: Artemis drops messages without (S165)."""
    if address is not None:
        terminus.address = address
    if capability is not None:
        terminus.capabilities.put_object(symbol(capability))


class AmqpLink:
    """One end of a link. Subclasses say what happens to deliveries and credit.

    The proton object is kept for as long as the engine may name its address.
    """

    selector: str | None = None

    def __init__(self, engine: AmqpEngine, link: Link, what: str) -> None:
        self._engine = engine
        self._link = link
        self._what = shortened(what)
        self.native: Any = link._impl
        self._opening: Completion[None] | None = None
        self._closing: Completion[None] | None = None
        self._attach_answered = False
        """Whether the peer answered our attach."""
        self.closed: JMSException | None = None
        """Set once the link can no longer be used, with the reason."""
        engine.links[self.native] = self

    def open(self, done: Completion[None]) -> None:
        """Attach; ``done`` when the peer attached its end to a node, not merely answered."""
        self._opening = done
        self._attach()

    def _attach(self) -> None:
        self._link.open()

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
        self._link.close()

    def fail(self, error: BaseException) -> None:
        """The session or connection is over."""
        self.closed = error if isinstance(error, JMSException) else JMSException(str(error))
        self._engine.links.pop(self.native, None)
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
            error = link_error(self._link.remote_condition, f"the broker closed {self._what}", selector=self.selector)
            self.closed = error
            self._part()
            if not self._fail_opening(error):
                self._ended(error)
                self._lost(error)
                self._closed_by_broker(error)
        self._free()

    def _fail_opening(self, error: JMSException) -> bool:
        """Tell who waits for the attach; False if nobody does."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.fail(error)
        return opening is not None

    def on_delivery(self, delivery: Any) -> None:
        """See the subclass."""
        raise AssertionError("a link without deliveries got one")

    def on_flow(self) -> None:
        """Credit changed."""

    def rolled_back(self) -> None:
        """The session's transaction is being rolled back."""

    def _attached(self) -> bool:
        return True

    def _ended(self, error: JMSException) -> None:
        """The link is over: fail what waits for the peer."""

    def _lost(self, error: JMSException) -> None:
        """A link that was in use is over, alone or with its session or connection."""

    def _closed_by_broker(self, error: JMSException) -> None:
        """The broker closed a link that was in use, alone."""

    def _free(self) -> None:
        self._engine.links.pop(self.native, None)
        self._link.free()

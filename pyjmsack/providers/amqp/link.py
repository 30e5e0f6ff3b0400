"""The base class of the links of senders, receivers and coordinators. It attaches (opens) and detaches (closes) a link
(AMQP 1.0 2.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjmsack.destination import Destination
from pyjmsack.errors import IllegalStateException, JMSException, ResourceAllocationException
from pyjmsack.providers.amqp.engine import StateError
from pyjmsack.providers.amqp.engine.performatives import Attach, Composite
from pyjmsack.providers.amqp.engines import AmqpEngine, SessionEnd
from pyjmsack.providers.amqp.errors import link_error
from pyjmsack.providers.amqp.name_sizes import shortened
from pyjmsack.spi.completion import Completion

__all__ = ["AmqpLink", "words"]


def words(destination: Destination | None) -> tuple[str, ...]:
    """Return the capabilities for a link, which tell the broker whether the destination is a queue or a topic.

    Artemis drops messages if these capabilities are missing (S165).
    """
    return () if destination is None else (destination.capability,)


class AmqpLink:
    """This client's end of a link. Subclasses handle deliveries and credit.

    Args:
        session: the session on which the link is attached.
        attach: the fields of the Attach frame, without the fields handle and role, which the engine sets.
        what: the name of the link in errors.
    """

    selector: str | None = None

    def __init__(self, engine: AmqpEngine, session: SessionEnd, attach: Attach, what: str) -> None:
        self._engine = engine
        self._session = session
        self._description = attach
        self._what = shortened(what)
        self._link: Any = None
        """The object of the engine for this link (``SenderEnd`` or ``ReceiverEnd``), after the attach."""
        self._opening: Completion[None] | None = None
        self._closing: Completion[None] | None = None
        self._attach_answered = False
        """Whether the broker has answered our Attach frame."""
        self._then: Callable[[], None] | None = None
        """Called once when the broker has answered our Attach frame."""
        self.closed: JMSException | None = None
        """The reason why the link can no longer be used. ``None`` while the link can be used."""

    def open(self, done: Completion[None]) -> None:
        """Attach (open) the link. ``done`` succeeds when the broker has attached its end of the link to a queue or
        topic.

        If the answer of the broker names no queue or topic, the broker has refused the link.
        """
        self._opening = done
        try:
            self._attach()
        except StateError as error:
            self.closed = ResourceAllocationException(f"{self._what} cannot be opened: {error}")
            self._opening = None
            done.fail(self.closed)

    def _attach(self) -> None:
        """Attach (open) a link on which this client sends. The class of receiving links overrides this method."""
        self._link = self._session.attach_sender(self._description, self)

    def close(self, done: Completion[None]) -> None:
        """Close the link.

        If the broker has not answered the attach yet, wait for its answer. Otherwise the Detach frame would free the
        number of this link (its handle) for the next link, and a late frame for this link would reach the next link.
        """
        if self.closed is not None:
            done.succeed()
            return
        self.closed = IllegalStateException(f"{self._what} is closed")
        self._closing = done
        if self._attach_answered:
            self._part()

    def waits_for_attach(self, then: Callable[[], None]) -> bool:
        """Return whether the broker has not answered our Attach frame yet. In this case, ``then`` is called after the
        answer.
        """
        waits = self._link is not None and not self._attach_answered
        if waits:
            self._then = then
        return waits

    def _part(self) -> None:
        """Send the Detach frame that closes this link."""
        self._link.detach(closed=True)

    def fail(self, error: BaseException) -> None:
        """End the link, because the session or connection ended."""
        self.closed = error if isinstance(error, JMSException) else JMSException(str(error))
        for completion in (self._opening, self._closing):
            if completion is not None:
                completion.fail(error)
        self._opening = self._closing = None
        self._ended(self.closed)
        self._lost(self.closed)

    def on_remote_open(self) -> None:
        """Handle the broker's Attach frame.

        A broker refuses a link by an Attach frame without a queue or topic, followed by a Detach frame with the reason
        (2.6.3).
        """
        self._attach_answered = True
        if self._closing is not None:  # the caller that asked for the link has given up
            self._part()
        elif self._attached() and self._opening is not None:
            opening, self._opening = self._opening, None
            opening.succeed()
        then, self._then = self._then, None
        if then is not None:
            then()

    def on_remote_close(self) -> None:
        """Handle a Detach frame of the broker. The frame answers our close, refuses the link, or closes a link in use
        (S126)."""
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
        """Fail the request that attaches the link, if the request is pending. Return False if no such request is
        pending."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.fail(error)
        return opening is not None

    def on_message(self, delivery: Any, payload: bytes, settled: bool) -> None:
        """Raise an error, because this link expects no deliveries. The receiver overrides this method."""
        raise AssertionError("a delivery came on a link that takes none")

    def on_oversize(self, delivery: Any, start: bytes, size: int, settled: bool) -> None:
        """Raise an error, because this link expects no deliveries. The receiver overrides this method."""
        raise AssertionError("a delivery came on a link that takes none")

    def on_beginning(self, delivery: Any, start: bytes) -> None:
        """Raise an error, because this link expects no deliveries. The receiver overrides this method."""
        raise AssertionError("a delivery came on a link that takes none")

    def on_piece(self, payload: bytes, more: bool, settled: bool, aborted: bool) -> None:
        """Raise an error, because this link expects no deliveries. The receiver overrides this method."""
        raise AssertionError("a delivery came on a link that takes none")

    def on_outcome(self, context: Any, state: Composite | None) -> None:
        """Raise an error, because this link sends no messages. Subclasses that send override this method."""
        raise AssertionError("an outcome came on a link that sends no messages")

    def on_flow(self) -> None:
        """Do nothing when the credit changes. Subclasses override this method."""

    def rolled_back(self) -> None:
        """Do nothing when the transaction of the session is rolled back. The sender overrides this method."""

    def _attached(self) -> bool:
        return True

    def _ended(self, error: JMSException) -> None:
        """Fail the requests that wait for the broker, because the link ended."""

    def _lost(self, error: JMSException) -> None:
        """Handle the end of a link that was in use. The link may end alone, or with its session or connection."""

    def _closed_by_broker(self, error: JMSException) -> None:
        """Handle a close by the broker while the link was in use. The session and the connection stay open."""

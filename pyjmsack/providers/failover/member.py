"""One connection to one broker of a failover URL. Before the connection is used, this module opens it and restores
everything that was open on the last connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyjmsack.errors import ConnectionLostException, JMSException, RequestTimedOutException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector, Timer
from pyjmsack.spi.provider import Provider
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl

__all__ = ["Member", "Restore"]

_CLOSING = 5.0
"""The longest wait in seconds for the answer of a broker that the connection leaves."""

Restore = Callable[[Provider, ConnectionMetadata], Iterator[Completion[Any]]]
"""A function that restores everything that was open. It returns an iterator over the steps of this work. The member
takes a step, waits for the completion of this step, and then takes the next step. An exception ends the steps.
"""


class Member:
    """Opens one provider and listens to its events.

    Args:
        lost: called with the error when the connection is lost after it was ready.
        discard: called when this member is given up before it was ready. After that, the events of its provider are
            ignored.
        closed: called with the id and the error when the broker closes a session or producer.
        timeout: seconds allowed for opening the connection, and the same time again for each step of restoring.
            ``None`` means no limit.
    """

    def __init__(
        self,
        url: BrokerUrl,
        provider: Provider,
        connector: Connector,
        timeout: float | None,
        lost: Callable[[BaseException], None],
        discard: Callable[[], None] = lambda: None,
        closed: Callable[[int, BaseException], None] = lambda number, error: None,
    ) -> None:
        self.url = url
        self.provider = provider
        self.metadata: ConnectionMetadata | None = None
        self.lost_in_rebuild = False
        """True if the broker accepted the connection and then ended it while everything was being restored."""
        self.ended_in_rebuild: Callable[[int, BaseException], None] = closed
        """Called in the place of ``closed`` while everything is being restored."""
        self._connector = connector
        self._timeout = timeout
        self._lost = lost
        self._discard = discard
        self._closed = closed
        self._ready: Callable[[BaseException | None], None] | None = None
        """The function to call when this member is ready or has failed. ``None`` before :meth:`open` and after the
        call."""
        self._dead = False
        self._restore: Restore | None = None
        self._steps: Iterator[Completion[Any]] = iter(())
        self._timer: Timer | None = None

    def open(self, info: ConnectionInfo, restore: Restore, ready: Callable[[BaseException | None], None]) -> None:
        """Connect, and then take the steps of ``restore``. At the end call ``ready`` with ``None``, or with the
        error."""
        self._ready, self._restore = ready, restore
        connected: Completion[ConnectionMetadata] = Completion()
        connected.add_callback(self._on_connected)
        self._limit("opening a connection to")
        if self._ready is not None:
            self.provider.connect(info, self, connected)
            self.provider.flush()

    def _on_connected(self, connected: Completion[ConnectionMetadata]) -> None:
        if self._ready is None:
            return
        if connected.error is not None:
            self._finish(connected.error)
            return
        self.metadata = connected.result()
        assert self._restore is not None  # set by open
        self._steps = self._restore(self.provider, self.metadata)
        self._advance()

    def _advance(self, _: object = None) -> None:
        while self._ready is not None:
            try:
                step = next(self._steps)
            except StopIteration:
                self._finish(None)
                return
            except JMSException as error:
                self._finish(error)
                return
            if not step.done:
                self._limit("restoring the open objects at")  # for each step, because there may be many
                self.provider.flush()
                step.add_callback(self._advance)
                return

    def _limit(self, what: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._timeout is not None:
            text = f"{what} {self.url}: no answer within jms.connectTimeout ({self._timeout:g} s)"
            self._timer = self._connector.call_later(
                self._timeout, lambda: self._finish(RequestTimedOutException(text))
            )

    def _finish(self, error: BaseException | None) -> None:
        ready, self._ready = self._ready, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if ready is None:
            return
        if error is not None:
            self._dead = True
            self._discard()
            self.provider.abort(error)
        ready(error)

    def burst_end(self) -> Completion[None]:
        """Return a completion that succeeds when everything is handled that arrived together with the last answer."""
        over: Completion[None] = Completion()
        self._connector.call_later(0, over.succeed)
        return over

    def refuse(self, error: BaseException) -> None:
        """Give up this broker, because the broker ended something that was just restored (S104). If the connection is
        in use or was given up before, do nothing."""
        self._finish(error)

    def abandon(self, error: BaseException) -> None:
        """Drop the connection, and call none of the functions that this member was given."""
        self._ready = None
        self._dead = True
        if self._timer is not None:
            self._timer.cancel()
        self.provider.abort(error)

    def leave(self, left: Callable[[], None]) -> None:
        """Tell the broker that the connection ends, and close the connection. The last acknowledgements arrive before
        the close. Call ``left`` when the broker has answered, or after five seconds."""
        self._dead = True
        error = ConnectionLostException("the connection moved to another broker")

        def over(_: object = None) -> None:
            self.abandon(error)
            left()

        self._timer = self._connector.call_later(_CLOSING, over)
        closed: Completion[None] = Completion()
        closed.add_callback(over)
        self.provider.close(closed)
        self.provider.flush()

    # -- events of the provider ---------------------------------------------------------------------------------

    def on_failure(self, error: BaseException) -> None:
        """Handle the loss of the connection, either before it was ready or while it was in use."""
        if self._ready is not None:
            self.lost_in_rebuild = self.metadata is not None
            self._finish(error)
        elif not self._dead:
            self._dead = True
            self._lost(error)

    def on_resource_closed(self, number: int, error: BaseException) -> None:
        """Report that the broker closed a session or producer. If the connection was given up before, do nothing."""
        if self._ready is not None:
            self.ended_in_rebuild(number, error)
        elif not self._dead:
            self._closed(number, error)

    def on_leaving(self, done: Completion[None]) -> None:
        """Fail: the provider of a single broker never calls this method."""
        raise AssertionError(
            "the provider of a single broker reported a failover, but only the failover provider can do this"
        )

    def on_interrupted(self, error: BaseException, generation: int) -> None:
        """Fail, because the provider of a single broker never calls this method."""
        raise AssertionError(
            "the provider of a single broker reported a failover, but only the failover provider can do this"
        )

    def on_restored(self, metadata: ConnectionMetadata) -> None:
        """Fail, because the provider of a single broker never calls this method."""
        raise AssertionError(
            "the provider of a single broker reported a failover, but only the failover provider can do this"
        )

    def on_temporary_renamed(self, temporary_id: int, name: str) -> None:
        """Fail, because the provider of a single broker never calls this method."""
        raise AssertionError(
            "the provider of a single broker reported a failover, but only the failover provider can do this"
        )

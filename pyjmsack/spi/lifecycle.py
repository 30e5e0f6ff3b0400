"""The beginning and the end of a provider's connection, which are the same for all protocols.

When the connection ends, this module calls the listener of the connection and ends the requests that still wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from pyjmsack.destination import Destination
from pyjmsack.errors import ConnectionLostException, IllegalStateException, JMSException, UnsupportedFeatureException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import generations
from pyjmsack.spi.features import Level, Support
from pyjmsack.spi.provider import ProviderListener
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl, parse_destination_options

__all__ = ["Lifecycle"]


class _Engine(Protocol):
    def fail(self, error: JMSException) -> None:
        """End the connection with this error."""
        ...


E = TypeVar("E", bound=_Engine)


class Lifecycle(ABC, Generic[E]):
    """One connection of one engine to one broker. All methods run on the loop."""

    def __init__(self, url: BrokerUrl, connector: Connector) -> None:
        self._url = url
        self._connector = connector
        self.generation = 0
        self._engine: E | None = None
        self._info: ConnectionInfo | None = None
        self._listener: ProviderListener | None = None
        self._opening: Completion[ConnectionMetadata] | None = None
        self._closing: Completion[None] | None = None
        self._parted = False
        """True if the broker has answered the request that closes the connection."""
        self._duplicate_detection: Support | None = None

    def _begin(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Begin to connect: ``done`` gets the result, and ``listener`` gets all later events."""
        self._info, self._listener, self._opening = info, listener, done
        self._parted = False
        self.generation = next(generations)

    def _fail_opening(self, error: BaseException) -> None:
        """Fail the request that opens the connection, if it is still pending."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.fail(error)

    @property
    def _the_info(self) -> ConnectionInfo:
        assert self._info is not None  # connect() came first
        return self._info

    @property
    def _the_listener(self) -> ProviderListener:
        assert self._listener is not None  # connect() came first
        return self._listener

    @property
    def _the_engine(self) -> E:
        if self._engine is None:
            raise IllegalStateException("the connection is not open")
        return self._engine

    def lose(self, error: BaseException) -> None:
        """End the connection as if it had been lost, because ``error`` kept an outcome from being sent."""
        if self._engine is not None:
            text = f"an outcome of a message could not be sent: {type(error).__name__}: {error}"
            self._engine.fail(ConnectionLostException(text))

    def on_failure(self, error: JMSException) -> None:
        """Handle the end of the connection, which was closed or lost."""
        if self._closing is None and self._opening is None and self._listener is not None:
            self._listener.on_failure(error)
        self._fail_everything(error)
        self._end_closing(error)

    def _end_closing(self, error: BaseException) -> None:
        """Complete the request that closes the connection, if there is one. Then ``connect`` may be called again. The
        request fails with ``error`` if the connection ended before the broker answered the request."""
        closing, self._closing = self._closing, None
        if closing is not None:
            closing.settle(None if self._parted else error)

    @abstractmethod
    def _fail_everything(self, error: BaseException) -> None:
        """Fail all open sessions and links, and then the request that opens the connection, if this request is still
        pending."""

    # -- duplicate marks (S106) ---------------------------------------------------------------------------------

    def _marks(self, destination: Destination) -> bool:
        """Return True if sends to a destination get a duplicate mark. Sends get the mark if the client may repeat sends
        and the broker recognises the mark, unless an option of the destination says otherwise.

        Raises:
            UnsupportedFeatureException: the option asks for the mark, but this broker does not recognise the mark.
        """
        wanted = parse_destination_options(destination).duplicate_detection
        support = self._duplicate_detection
        recognised = support is not None and support.level is not Level.REFUSED
        if wanted and support is not None and not recognised:
            raise UnsupportedFeatureException(
                f"{destination.name}: producer.duplicateDetection=true has no effect here; {support.note}"
            )
        return recognised and self._the_info.resends if wanted is None else wanted

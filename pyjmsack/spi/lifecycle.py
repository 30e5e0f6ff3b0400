"""The begin and the end of a provider's connection, the same for all protocols: it completes the requests that wait for
the connection, and calls its listener."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, TypeVar

from pyjmsack.destination import Destination
from pyjmsack.errors import IllegalStateException, JMSException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.engine import Connector
from pyjmsack.spi.envelope import generations
from pyjmsack.spi.features import Level, Support
from pyjmsack.spi.provider import ProviderListener
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata
from pyjmsack.uri import BrokerUrl, parse_destination_options

__all__ = ["Lifecycle"]

E = TypeVar("E")


class Lifecycle(ABC, Generic[E]):
    """One connection of one engine to one broker. Everything runs on the loop."""

    def __init__(self, url: BrokerUrl, connector: Connector) -> None:
        self._url = url
        self._connector = connector
        self.generation = 0
        self._engine: E | None = None
        self._info: ConnectionInfo | None = None
        self._listener: ProviderListener | None = None
        self._opening: Completion[ConnectionMetadata] | None = None
        self._closing: Completion[None] | None = None
        self._marks_repetitions = False

    def _begin(self, info: ConnectionInfo, listener: ProviderListener, done: Completion[ConnectionMetadata]) -> None:
        """Begin to connect: ``done`` gets the result, and ``listener`` gets all later events."""
        self._info, self._listener, self._opening = info, listener, done
        self.generation = next(generations)

    def _fail_opening(self, error: BaseException) -> None:
        """Tell who still waits for the connection, if anybody does."""
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

    def on_failure(self, error: JMSException) -> None:
        """End the connection, after a close or after a loss."""
        if self._closing is None and self._opening is None and self._listener is not None:
            self._listener.on_failure(error)
        self._fail_everything(error)
        self._end_closing()

    def _end_closing(self) -> None:
        """Complete the close of the connection, if somebody waits for it. What is opened next is another connection."""
        closing, self._closing = self._closing, None
        if closing is not None:
            closing.succeed()

    @abstractmethod
    def _fail_everything(self, error: BaseException) -> None:
        """Fail whatever is open, and last who still waits for the connection."""

    # -- marks of repetitions (S106) ----------------------------------------------------------------------------

    def _decide_marks(self, table: Mapping[str, Support]) -> None:
        """Mark sends that may be repeated, if there may be such and the broker recognises them."""
        self._marks_repetitions = self._the_info.resends and table["duplicate-detection"].level is not Level.REFUSED

    def _marks(self, destination: Destination) -> bool:
        """Whether sends to a destination are marked; its own options come first."""
        wanted = parse_destination_options(destination).duplicate_detection
        return self._marks_repetitions if wanted is None else wanted

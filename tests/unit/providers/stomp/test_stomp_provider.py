"""A connection over STOMP as the core sees it, with a stream that only takes notes."""

from __future__ import annotations

from typing import Any

from pyjmsack.errors import ConnectionLostException
from pyjmsack.providers.stomp.provider import StompProvider
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConnectionInfo, ConnectionMetadata, SessionInfo
from pyjmsack.types import AckMode
from pyjmsack.uri import parse_url


class Wire:
    """A connector, a stream and a core that only take notes."""

    encrypted = False
    read = call_later = None

    def __init__(self) -> None:
        self.engine: Any = None
        self.lost: list[BaseException] = []
        self.opened: Completion[ConnectionMetadata] = Completion()
        self.provider = StompProvider(parse_url("stomp://127.0.0.1:1"), self)
        self.provider.connect(ConnectionInfo("client"), self, self.opened)

    def connect(self, endpoint: object, engine: Any, failed: object) -> None:
        self.engine = engine
        engine.connection_made(self)

    def on_failure(self, error: BaseException) -> None:
        self.lost.append(error)

    def flush(self) -> None:
        """Write nothing."""

    retick = close = abort = flush


def test_a_call_behind_the_end_of_the_connection_gets_its_reason_s125_s128() -> None:
    """The core may make the call on another thread before it hears of the end."""
    wire = Wire()
    wire.engine.receive_data(b"CONNECTED\nversion:1.2\n\n\0")
    wire.engine.receive_data(b"ERROR\nmessage:going down\n\n\0")
    done: Completion[None] = Completion()
    wire.provider.create_session(SessionInfo(1, AckMode.AUTO_ACKNOWLEDGE), done)
    assert isinstance(done.error, ConnectionLostException)
    assert "going down" in str(done.error)
    assert wire.lost == [done.error]


def test_a_message_before_the_connection_is_open_is_an_error_of_the_broker_s128() -> None:
    wire = Wire()
    wire.engine.receive_data(b"MESSAGE\nsubscription:1\nmessage-id:1\ndestination:q\n\n\0")
    assert isinstance(wire.opened.error, ConnectionLostException)
    assert "MESSAGE before CONNECTED" in str(wire.opened.error)

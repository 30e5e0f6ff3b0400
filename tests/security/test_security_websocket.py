"""AMQP and STOMP over WebSocket to a real Artemis, whose acceptors answer it on the port of the protocol."""

from __future__ import annotations

import logging

import pytest
from security_exchange import Exchange
from security_support import USERS, Tls

import pyjmsack
from pyjmsack import ConnectionLostException, JMSSecurityException, Queue
from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis

USER, PASSWORD = next(iter(USERS.items()))


SCHEMES = {"amqp": "amqpws", "amqps": "amqpwss", "stomp": "stomp+ws", "stomp+ssl": "stomp+wss"}


def over_websocket(url: str) -> str:
    """Return the URL of the same port with the scheme for WebSocket."""
    scheme, _, rest = url.partition(":")
    return f"{SCHEMES[scheme]}:{rest}"


@pytest.fixture(params=["amqp", "stomp"])
def url(request: pytest.FixtureRequest, secured_artemis: EmbeddedArtemis) -> str:
    """Where Artemis answers WebSocket, for each protocol in turn."""
    return over_websocket(getattr(secured_artemis, f"{request.param}_url"))


def test_a_message_there_and_back(exchange: Exchange, url: str, queue_name: str, no_leaks: None) -> None:
    assert exchange(url, queue_name, username=USER, password=PASSWORD) == "hello"


@pytest.mark.parametrize("size", [256, 32768, 65536, 3_000_000])
def test_bodies_of_any_size(url: str, size: int, queue_name: str) -> None:
    """Artemis takes frames of 65536 bytes at most."""
    factory = pyjmsack.ConnectionFactory(url, username=USER, password=PASSWORD)
    body = bytes(range(256)) * (size // 256)
    with factory.create_connection() as connection, connection.create_session() as session:
        connection.start()
        session.create_producer(Queue(queue_name)).send(session.create_bytes_message(body))
        message = session.create_consumer(Queue(queue_name)).receive(timeout=60)
        assert message is not None
        assert message.body == body


@pytest.mark.parametrize("password", ["Wr0ngMarker", None])
def test_a_wrong_login_is_a_security_error(
    exchange: Exchange,
    url: str,
    password: str | None,
    caplog: pytest.LogCaptureFixture,
    no_leaks: None,
) -> None:
    """S129."""
    caplog.set_level(logging.DEBUG, "pyjmsack")
    with pytest.raises(JMSSecurityException) as caught:
        exchange(url, "q", username=USER, password=password)
    assert "Wr0ngMarker" not in caplog.text + str(caught.value)


@pytest.mark.parametrize(
    ("port", "client"),
    [("amqps", None), ("amqps-mutual", "client"), ("stomp+ssl", None), ("stomp+ssl-mutual", "client")],
)
def test_websocket_over_tls(
    exchange: Exchange, tls_artemis: Tls, port: str, client: str | None, queue_name: str, no_leaks: None
) -> None:
    url = over_websocket(tls_artemis.url(port))
    assert exchange(url, queue_name, tls_artemis.certificates.options(client)) == "hello"


@pytest.mark.parametrize("port", ["amqps", "stomp+ssl"])
@pytest.mark.parametrize("way", ["{}", "failover:({})"])
def test_the_metadata_say_whether_the_connection_is_encrypted(
    tls_artemis: Tls, secured_artemis: EmbeddedArtemis, port: str, way: str
) -> None:
    options = "&".join(f"{name}={value}" for name, value in tls_artemis.certificates.options().items())
    for url in (tls_artemis.url(port), over_websocket(tls_artemis.url(port))):
        with pyjmsack.ConnectionFactory(way.format(f"{url}?{options}")).create_connection() as connection:
            assert connection.metadata.encrypted
    plain = over_websocket(secured_artemis.amqp_url)
    with pyjmsack.ConnectionFactory(plain, username=USER, password=PASSWORD).create_connection() as connection:
        assert not connection.metadata.encrypted


def test_websocket_over_tls_refuses_an_unknown_authority(exchange: Exchange, tls_artemis: Tls) -> None:
    with pytest.raises(JMSSecurityException, match="certificate verify failed"):
        exchange(over_websocket(tls_artemis.url("amqps")), "q")


def test_a_port_that_speaks_no_websocket_is_an_error_at_once(
    exchange: Exchange, secured_classic: EmbeddedActiveMQ, no_leaks: None
) -> None:
    """ActiveMQ Classic has connectors of their own for WebSocket."""
    url = over_websocket(secured_classic.amqp_url)
    with pytest.raises(ConnectionLostException):
        exchange(url, "q", {"jms.connectTimeout": 10_000}, username=USER, password=PASSWORD)

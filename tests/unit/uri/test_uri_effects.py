"""Options that say how the URL is read, or that stand for others: what comes of them."""

from __future__ import annotations

import ssl
from itertools import islice
from typing import Any

import pytest

from pyjmsack.io.tls import client_context
from pyjmsack.providers.failover.search import waits
from pyjmsack.uri import parse_url


@pytest.mark.option("transport.defaultTcpPort", "core")
@pytest.mark.option("transport.defaultSslPort", "core")
@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
@pytest.mark.parametrize(("secure", "option"), [("", "defaultTcpPort"), ("s", "defaultSslPort")])
def test_a_broker_without_a_port_has_that_of_the_option(scheme: str, secure: str, option: str) -> None:
    tls = {"amqp": "amqps", "stomp": "stomp+ssl"}
    url = parse_url(f"{tls[scheme] if secure else scheme}://host?transport.{option}=7777")
    assert [endpoint.port for endpoint in url.endpoints] == [7777]


@pytest.mark.option("jms.allowUserInfo", "core")
@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
def test_a_login_before_the_host_is_taken_if_that_is_allowed(scheme: str) -> None:
    url = parse_url(f"{scheme}://me:secret@host?jms.allowUserInfo=true")
    assert url.connection.username == "me"


@pytest.mark.option("socketBufferSize", "core")
@pytest.mark.option("wireFormat.maxInactivityDuration", "core")
@pytest.mark.option("trace", "core")
@pytest.mark.option("profile", "core")
@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
def test_an_option_of_activemq_sets_those_for_which_it_stands(scheme: str) -> None:
    url = parse_url(
        f"{scheme}://host?socketBufferSize=4096&wireFormat.maxInactivityDuration=7000&trace=true&profile=activemq"
    )
    assert (url.transport.send_buffer_size, url.transport.receive_buffer_size) == (4096, 4096)
    assert (url.amqp.idle_timeout, url.stomp.heart_beat) == (7, 7)
    assert (url.amqp.trace_frames, url.stomp.trace_frames) == (True, True)
    assert url.connection != parse_url(f"{scheme}://host").connection


@pytest.mark.option("failover.updateURIsSupported", "core")
def test_update_uris_supported_decides_what_becomes_of_the_list_of_a_broker() -> None:
    action = [
        parse_url(f"failover:(amqp://host)?updateURIsSupported={text}").failover.amqp_open_server_list_action
        for text in ("true", "false")
    ]
    assert action == ["REPLACE", "IGNORE"]


@pytest.mark.option("failover.useReconnectBackOff", "core")
@pytest.mark.option("failover.reconnectBackOffMultiplier", "core")
@pytest.mark.option("failover.reconnectDelay", "core")
@pytest.mark.parametrize(
    ("option", "expected"),
    [("reconnectBackOffMultiplier=3.0", [1, 3, 9]), ("useReconnectBackOff=false", [1, 1, 1])],
)
def test_waits_between_rounds_grow_as_the_url_says(option: str, expected: list[float]) -> None:
    url = parse_url(f"failover:(amqp://host,stomp://host)?failover.reconnectDelay=1000&failover.{option}")
    assert [*islice(waits(url.failover, first=False), 1, 4)] == pytest.approx(expected)


SUITE = "ECDHE-RSA-AES256-GCM-SHA384"


def _suites(context: ssl.SSLContext) -> set[str]:
    return {suite["name"] for suite in context.get_ciphers() if suite["protocol"] != "TLSv1.3"}


@pytest.mark.option("transport.contextProtocol", "core")
@pytest.mark.option("transport.enabledProtocols", "core")
@pytest.mark.option("transport.disabledProtocols", "core")
@pytest.mark.option("transport.enabledCipherSuites", "core")
@pytest.mark.option("transport.disabledCipherSuites", "core")
@pytest.mark.parametrize("scheme", ["amqps", "stomp+ssl"])
@pytest.mark.parametrize(
    ("option", "what", "expected"),
    [
        ("contextProtocol=TLSv1.2", lambda made: made.maximum_version, ssl.TLSVersion.TLSv1_2),
        ("enabledProtocols=TLSv1.2", lambda made: made.maximum_version, ssl.TLSVersion.TLSv1_2),
        ("disabledProtocols=TLSv1.2", lambda made: made.minimum_version, ssl.TLSVersion.TLSv1_3),
        (f"enabledCipherSuites={SUITE}", _suites, {SUITE}),
        (f"disabledCipherSuites={SUITE}", lambda made: SUITE in _suites(made), False),
    ],
)
def test_versions_and_suites_of_tls_are_those_of_the_url(scheme: str, option: str, what: Any, expected: Any) -> None:
    """That a handshake uses them tests/unit/io/test_tls.py shows."""
    assert what(client_context(parse_url(f"{scheme}://host?transport.{option}").transport, None)) == expected

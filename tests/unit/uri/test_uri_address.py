"""Schemes, hosts and ports, and user-info."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from uri_support import MARKER

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.java_options.schemes import JAVA_SCHEMES
from pyjmsack.uri import (
    SCHEMES,
    Endpoint,
    Secret,
    parse_url,
    redact,
)


@pytest.mark.parametrize(
    ("url", "endpoint", "text"),
    [
        ("amqp://host", Endpoint("amqp", "host", 5672, False), "amqp://host:5672"),
        ("amqps://host", Endpoint("amqps", "host", 5671, True), "amqps://host:5671"),
        ("AMQP://Host:1", Endpoint("amqp", "Host", 1, False), "amqp://Host:1"),
        ("amqp://host:65535/", Endpoint("amqp", "host", 65535, False), "amqp://host:65535"),
        ("amqp://10.0.0.1:5673?", Endpoint("amqp", "10.0.0.1", 5673, False), "amqp://10.0.0.1:5673"),
        (
            "amqp://my_service.ns.svc",
            Endpoint("amqp", "my_service.ns.svc", 5672, False),
            "amqp://my_service.ns.svc:5672",
        ),
        ("amqp://[::1]", Endpoint("amqp", "::1", 5672, False), "amqp://[::1]:5672"),
        ("amqps://[2001:db8::7]:9", Endpoint("amqps", "2001:db8::7", 9, True), "amqps://[2001:db8::7]:9"),
        ("amqp://[fe80::1%25eth0]:9", Endpoint("amqp", "fe80::1%eth0", 9, False), "amqp://[fe80::1%25eth0]:9"),
        ("stomp://host", Endpoint("stomp", "host", 61613, False), "stomp://host:61613"),
        ("stomp+ssl://host", Endpoint("stomp+ssl", "host", 61614, True), "stomp+ssl://host:61614"),
        ("amqpws://host", Endpoint("amqpws", "host", 80, False), "amqpws://host:80"),
        ("amqpwss://host", Endpoint("amqpwss", "host", 443, True), "amqpwss://host:443"),
        ("stomp+wss://host:1", Endpoint("stomp+wss", "host", 1, True), "stomp+wss://host:1"),
        ("stomp://host?transport.defaultTcpPort=7", Endpoint("stomp", "host", 7, False), "stomp://host:7"),
        ("amqp://host?transport.defaultTcpPort=7", Endpoint("amqp", "host", 7, False), "amqp://host:7"),
        ("amqps://host?transport.defaultSslPort=8", Endpoint("amqps", "host", 8, True), "amqps://host:8"),
    ],
)
def test_address_gives_endpoint_with_default_port(url: str, endpoint: Endpoint, text: str) -> None:
    parsed = parse_url(url)
    assert (parsed.scheme, parsed.endpoints) == (endpoint.scheme, (endpoint,))
    assert str(parsed) == text
    assert parse_url(text).endpoints == (endpoint,)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "expected a scheme"),
        ("host:5672", "amqp://host:5672"),
        ("localhost", "expected a scheme"),
        ("amqp:host", "expected a scheme"),
        ("amqp://", "host is missing"),
        ("amqp://:5672", "host is missing"),
        ("amqp://?jms.clientID=c", "host is missing"),
        ("amqp://host:x", "port must be a number from 1 to 65535"),
        ("amqp://host:0", "port must be"),
        ("amqp://host:65536", "port must be"),
        ("amqp://host:99999999999999999999", "port must be"),
        ("amqp://host:-1", "port must be"),
        ("amqp://host:٣", "port must be"),
        ("amqp://::1:5672", "goes in brackets"),
        ("amqp://[::1", "goes in brackets"),
        ("amqp://[::1]5672", "goes in brackets"),
        ("amqp://[host]:5672", "neither a name nor an address"),
        ("amqp://ho st", "neither a name nor an address"),
        ("amqp://a..b", "neither a name nor an address"),
        ("amqp://" + "a" * 64, "neither a name nor an address"),
        ("amqp://host\n", "neither a name nor an address"),
        ("amqp://host/vhost", "amqp.vhost"),
        ("amqp://host#there", "'#' is not allowed"),
        ("ampq://host", "did you mean amqp?"),
        ("zzz://host", "use amqp://host:5672"),
    ],
)
def test_malformed_url_is_refused_with_what_was_expected(url: str, message: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape(message)):
        parse_url(url)


def test_url_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidURLException, match="got bytes"):
        parse_url(b"amqp://host")


@pytest.mark.parametrize(
    "url",
    [
        "discovery://h",
        "failover:(amqp://a,discovery://b)",
        "discovery:(multicast://default)",
    ],
)
def test_scheme_of_later_is_known_and_said_to_be_unsupported(url: str) -> None:
    with pytest.raises(UnsupportedFeatureException, match="supported are amqp, amqps, stomp"):
        parse_url(url)


@pytest.mark.parametrize(
    ("scheme", "instead"),
    [
        *((scheme, "amqp://host:5672") for scheme in ["tcp", "nio", "auto", "vm", "udp", "http", "mqtt"]),
        ("ws", "amqpws://host:5672"),
        ("wss", "amqpwss://host:5671"),
        *(
            (scheme, "amqps://host:5671")
            for scheme in ["ssl", "nio+ssl", "auto+ssl", "https", "mqtts", "mqtt+ssl", "tls"]
        ),
    ],
)
def test_foreign_scheme_names_the_one_to_use_instead(scheme: str, instead: str) -> None:
    with pytest.raises(InvalidURLException, match=f"^{re.escape(scheme)}:// .*use {instead} "):
        parse_url(f"{scheme}://broker:61616?jms.useAsyncSend=true")


@pytest.mark.parametrize("password", [MARKER, f"a/{MARKER}", f"a?{MARKER}", f"a#{MARKER}", f"a@{MARKER}", f":{MARKER}"])
def test_user_info_is_refused_and_not_printed(password: str) -> None:
    url = f"amqp://scott:{password}@host:5672"
    with pytest.raises(InvalidURLException, match=re.escape("amqp://***@host:5672: user and password")) as caught:
        parse_url(url)
    assert "scott" not in str(caught.value)
    assert MARKER not in str(caught.value)
    assert redact(url) == "amqp://***@host:5672"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (f"amqp://sco%74t:{MARKER}%40+@h?jms.allowUserInfo=true", None),
        (f"amqp://scott:{MARKER}@+@h", {"jms.allowUserInfo": True}),
    ],
)
def test_user_info_is_taken_when_allowed_and_never_printed(url: str, options: Mapping[str, object] | None) -> None:
    parsed = parse_url(url, options)
    assert parsed.connection.username == "scott"
    assert parsed.connection.password == Secret(f"{MARKER}@+")
    assert "scott" not in repr(parsed) + str(parsed)
    assert MARKER not in repr(parsed) + str(parsed)


def test_user_info_without_password_gives_the_username_alone() -> None:
    connection = parse_url("amqp://scott@h?jms.allowUserInfo=true").connection
    assert (connection.username, connection.password) == ("scott", None)


def test_options_win_over_user_info() -> None:
    connection = parse_url("amqp://a:b@h", {"jms.allowUserInfo": True, "jms.username": "c"}).connection
    assert (connection.username, connection.password) == ("c", Secret("b"))


@pytest.mark.parametrize(
    "url", ["amqp://a:b@h?jms.username=c&jms.allowUserInfo=true", "amqp://:b@h?jms.allowUserInfo=true"]
)
def test_user_name_given_twice_or_not_at_all_is_refused(url: str) -> None:
    with pytest.raises(InvalidURLException, match="expected the user name once"):
        parse_url(url)


def test_at_sign_in_an_option_value_is_no_user_info() -> None:
    assert parse_url("amqp://h?jms.username=me@corp").connection.username == "me@corp"


def test_every_scheme_of_a_java_client_is_known() -> None:
    """The table that `pyjmsack migrate` reads serves the parser as well."""
    for scheme in JAVA_SCHEMES.keys() - SCHEMES.keys():
        with pytest.raises((InvalidURLException, UnsupportedFeatureException)) as caught:
            parse_url(f"{scheme}://h:1")
        assert "amqp" in str(caught.value)
        assert "unknown scheme" not in str(caught.value)


def test_a_list_of_brokers_as_artemis_writes_it_is_answered_with_failover() -> None:
    """And no part of the list is shown, because it may hold a password."""
    with pytest.raises(InvalidURLException, match=r"needs failover: before it.*failover:\(amqp://a") as caught:
        parse_url("(tcp://x:1,tcp://y:2)?ha=true&password=secret")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("consumerWindowSize=0", "consumerWindowSize (known in Java; use jms.prefetchPolicy.all: Java counts bytes"),
        ("reconnectAttempts=-1", "reconnectAttempts (known in Java; use failover.maxReconnectAttempts)"),
        ("ha=true", "ha (known in Java; a failover:(...) URL lists live and backup brokers)"),
        ("jms.userName=u", "jms.userName (known in Java; use jms.username"),
        ("sslEnabled=true&retryInterval=1", "sslEnabled (known in Java; the scheme amqps://), retryInterval (known"),
    ],
)
def test_an_option_of_another_java_client_is_answered_with_what_replaces_it(option: str, hint: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape(hint)):
        parse_url(f"amqp://h?{option}")

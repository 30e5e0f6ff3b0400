"""Broker URLs, their options, and destination options."""

from __future__ import annotations

import contextlib
import copy
import logging
import pickle
import re
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyjmsack.destination import Queue, TemporaryQueue, Topic
from pyjmsack.errors import InvalidDestinationException, InvalidURLException, UnsupportedFeatureException
from pyjmsack.types import Outcome
from pyjmsack.uri import (
    DESTINATION_OPTIONS,
    DESTINATION_OPTIONS_LATER,
    OPTIONS,
    OPTIONS_LATER,
    BrokerUrl,
    DestinationOptions,
    Endpoint,
    PrefetchPolicy,
    PresettlePolicy,
    RedeliveryPolicy,
    Secret,
    parse_destination_options,
    parse_url,
    policy,
    redact,
    table,
)

MARKER = "Xq7Marker"
"""Part of every password here; the tests look for it where it must not be."""


def value_at(parsed: Any, path: str) -> Any:
    for name in path.split("."):
        parsed = getattr(parsed, name)
    return parsed


# --- addresses -------------------------------------------------------------------------------------------------------


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
        parse_url(b"amqp://host")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "url",
    [
        *(f"{scheme}://h" for scheme in ["amqpws", "amqpwss", "stomp+ws", "stomp+wss"]),
        "failover:(amqp://a,amqp://b)?failover.maxReconnectAttempts=1",
        "failover://(amqp://a)",
        "failover:amqp://a",
        "discovery:(multicast://default)",
    ],
)
def test_scheme_of_later_is_known_and_said_to_be_unsupported(url: str) -> None:
    with pytest.raises(UnsupportedFeatureException, match="supported are amqp, amqps, stomp"):
        parse_url(url)


@pytest.mark.parametrize(
    ("scheme", "instead"),
    [
        *((scheme, "amqp://host:5672") for scheme in ["tcp", "nio", "auto", "vm", "udp", "http", "ws", "mqtt"]),
        *(
            (scheme, "amqps://host:5671")
            for scheme in ["ssl", "nio+ssl", "auto+ssl", "https", "wss", "mqtts", "mqtt+ssl", "tls"]
        ),
    ],
)
def test_foreign_scheme_names_the_one_to_use_instead(scheme: str, instead: str) -> None:
    with pytest.raises(InvalidURLException, match=f"^{re.escape(scheme)}:// .*use {instead} "):
        parse_url(f"{scheme}://broker:61616?jms.useAsyncSend=true")


# --- user-info -------------------------------------------------------------------------------------------------------


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


# --- options: values -------------------------------------------------------------------------------------------------

VALUES = [
    ("jms.username", "u", "connection.username", "u"),
    ("jms.password", "p%26q", "connection.password", Secret("p&q")),
    ("jms.password", "", "connection.password", Secret("")),
    ("jms.clientID", "my+client%2B", "connection.client_id", "my client+"),
    ("jms.clientIDPrefix", "", "connection.client_id_prefix", ""),
    ("jms.connectionIDPrefix", "C:", "connection.connection_id_prefix", "C:"),
    ("jms.forceAsyncSend", "TRUE", "connection.force_async_send", True),
    ("jms.forceSyncSend", "true", "connection.force_sync_send", True),
    ("jms.forceAsyncAcks", "True", "connection.force_async_acks", True),
    ("jms.localMessageExpiry", "False", "connection.local_message_expiry", False),
    ("jms.validatePropertyNames", "false", "connection.validate_property_names", False),
    ("jms.receiveLocalOnly", "true", "connection.receive_local_only", True),
    ("jms.receiveNoWaitLocalOnly", "true", "connection.receive_no_wait_local_only", True),
    ("jms.queuePrefix", "q.", "connection.queue_prefix", "q."),
    ("jms.topicPrefix", "t.", "connection.topic_prefix", "t."),
    ("jms.awaitClientID", "false", "connection.await_client_id", False),
    ("jms.populateJMSXUserID", "true", "connection.populate_jmsx_user_id", True),
    ("jms.listenerErrorOutcome", "released", "connection.listener_error_outcome", Outcome.RELEASED),
    ("jms.listenerErrorOutcome", "modified-failed", "connection.listener_error_outcome", Outcome.MODIFIED_FAILED),
    ("jms.listenerErrorOutcome", "4", "connection.listener_error_outcome", Outcome.MODIFIED_FAILED),
    # durations: milliseconds become seconds; -1, and 0 where a limit of 0 is of no use, become None
    ("jms.closeTimeout", "1500", "connection.close_timeout", 1.5),
    ("jms.closeTimeout", "0", "connection.close_timeout", 0.0),
    ("jms.closeTimeout", "-1", "connection.close_timeout", None),
    *(
        (name, text, path, value)
        for name, path in [
            ("jms.connectTimeout", "connection.connect_timeout"),
            ("jms.sendTimeout", "connection.send_timeout"),
            ("jms.requestTimeout", "connection.request_timeout"),
            ("jms.warnAboutUnstartedConnectionTimeout", "connection.warn_about_unstarted_connection_timeout"),
            ("transport.connectTimeout", "transport.connect_timeout"),
            ("amqp.idleTimeout", "amqp.idle_timeout"),
            ("amqp.drainTimeout", "amqp.drain_timeout"),
        ]
        for text, value in [("5000", 5.0), ("1", 0.001), ("0", None), ("-1", None)]
    ),
    ("jms.prefetchPolicy.queuePrefetch", "0", "connection.prefetch_policy.queue_prefetch", 0),
    ("jms.prefetchPolicy.topicPrefetch", "1", "connection.prefetch_policy.topic_prefetch", 1),
    ("jms.prefetchPolicy.queueBrowserPrefetch", "2", "connection.prefetch_policy.queue_browser_prefetch", 2),
    ("jms.prefetchPolicy.durableTopicPrefetch", "3", "connection.prefetch_policy.durable_topic_prefetch", 3),
    ("jms.prefetchPolicy.maxPrefetchSize", "9", "connection.prefetch_policy.max_prefetch_size", 9),
    ("jms.prefetchPolicy.all", "7", "connection.prefetch_policy", PrefetchPolicy(7, 7, 7, 7)),
    ("jms.redeliveryPolicy.maxRedeliveries", "0", "connection.redelivery_policy.max_redeliveries", 0),
    ("jms.redeliveryPolicy.maxRedeliveries", "-1", "connection.redelivery_policy.max_redeliveries", None),
    *(
        ("jms.redeliveryPolicy.outcome", text, "connection.redelivery_policy.outcome", outcome)
        for outcome in Outcome
        for text in (outcome.name, str(outcome.value), outcome.name.lower().replace("_", "-"))
    ),
    ("transport.tcpNoDelay", "false", "transport.tcp_no_delay", False),
    ("transport.tcpKeepAlive", "true", "transport.tcp_keep_alive", True),
    ("transport.sendBufferSize", "1024", "transport.send_buffer_size", 1024),
    ("transport.receiveBufferSize", "-1", "transport.receive_buffer_size", None),
    ("transport.localAddress", "10.0.0.2", "transport.local_address", "10.0.0.2"),
    ("transport.localPort", "0", "transport.local_port", 0),
    ("transport.trustStoreLocation", "/a%20b/ca.pem", "transport.trust_store_location", "/a b/ca.pem"),
    ("transport.trustStoreType", "pem", "transport.trust_store_type", "PEM"),
    ("transport.keyStoreLocation", "client.pem", "transport.key_store_location", "client.pem"),
    ("transport.keyStorePassword", "p", "transport.key_store_password", Secret("p")),
    ("transport.contextProtocol", "tlsv1.2", "transport.context_protocol", "TLSv1.2"),
    ("transport.verifyHost", "false", "transport.verify_host", False),
    ("transport.trustAll", "true", "transport.trust_all", True),
    ("amqp.vhost", "v", "amqp.vhost", "v"),
    ("amqp.vhost", "", "amqp.vhost", ""),
    ("amqp.saslMechanisms", "plain, SCRAM-SHA-256", "amqp.sasl_mechanisms", ("PLAIN", "SCRAM-SHA-256")),
    ("amqp.saslMechanisms", "", "amqp.sasl_mechanisms", ()),
    ("amqp.maxFrameSize", "512", "amqp.max_frame_size", 512),
    ("amqp.traceFrames", "true", "amqp.trace_frames", True),
    ("amqp.channelMax", "65535", "amqp.channel_max", 65535),
]


STOMP_VALUES = [
    ("stomp.heartBeat", "5000", "stomp.heart_beat", 5.0),
    ("stomp.vhost", "", "stomp.vhost", ""),
    ("stomp.version", "1.1", "stomp.version", "1.1"),
    ("stomp.maxFrameSize", "2048", "stomp.max_frame_size", 2048),
    ("stomp.maxHeaders", "16", "stomp.max_headers", 16),
    ("stomp.maxHeaderLength", "256", "stomp.max_header_length", 256),
    ("stomp.deadLetterQueue", "DLQ", "stomp.dead_letter_queue", "DLQ"),
    ("stomp.traceFrames", "true", "stomp.trace_frames", True),
    ("strict", "true", "strict", True),
    *(
        ("broker", text, "broker", key)
        for text, key in [
            ("artemis", "artemis"),
            ("ActiveMQ", "classic-6"),
            ("activemq5", "classic-5"),
            ("activemq6", "classic-6"),
            ("classic", "classic-6"),
            ("unknown", "unknown"),
        ]
    ),
]


@pytest.mark.parametrize(("name", "text", "path", "value"), VALUES)
def test_option_in_the_url_gives_its_typed_value(name: str, text: str, path: str, value: object) -> None:
    assert value_at(parse_url(f"amqps://h?{name}={text}"), path) == value


@pytest.mark.parametrize(("name", "text", "path", "value"), STOMP_VALUES)
def test_option_of_a_stomp_url_gives_its_typed_value(name: str, text: str, path: str, value: object) -> None:
    assert value_at(parse_url(f"stomp://h?{name}={text}"), path) == value


@pytest.mark.parametrize("text", ["0", "-1"])
def test_stomp_heart_beats_cannot_be_switched_off_as_artemis_drops_silent_clients(text: str) -> None:
    with pytest.raises(InvalidURLException, match=r"stomp\.heartBeat=.*milliseconds from 1"):
        parse_url(f"stomp://h?stomp.heartBeat={text}")


@pytest.mark.parametrize(
    ("scheme", "name", "message"),
    [
        ("stomp", "amqp.idleTimeout", "amqp.idleTimeout (use stomp.heartBeat)"),
        ("stomp+ssl", "amqp.channelMax", "no options of stomp URLs: amqp.channelMax"),
        ("stomp", "amqp.traceBytes", "no options of stomp URLs: amqp.traceBytes"),
        ("amqp", "stomp.heartBeat", "no options of amqp URLs: stomp.heartBeat (use amqp.idleTimeout)"),
        ("amqps", "stomp.deadLetterQueue", "no options of amqp URLs: stomp.deadLetterQueue"),
        ("stomp", "vhost", "did you mean stomp.vhost?"),
        ("amqp", "vhost", "did you mean amqp.vhost?"),
        ("stomp", "stomp.hearthBeat", "did you mean stomp.heartBeat?"),
    ],
)
def test_option_of_the_other_protocol_is_refused_with_its_counterpart(scheme: str, name: str, message: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape(message)):
        parse_url(f"{scheme}://h?{name}=1")


def test_broker_url_says_its_protocol() -> None:
    assert [parse_url(f"{scheme}://h").protocol for scheme in ("amqps", "stomp+ssl")] == ["amqp", "stomp"]


@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("jms.sendTimeout", 5000, "connection.send_timeout", 5.0),
        ("jms.sendTimeout", 5000.0, "connection.send_timeout", 5.0),
        ("jms.sendTimeout", "5000", "connection.send_timeout", 5.0),
        ("jms.forceSyncSend", True, "connection.force_sync_send", True),
        ("jms.password", "a%26+b", "connection.password", Secret("a%26+b")),
        ("jms.password", Secret("p"), "connection.password", Secret("p")),
        ("jms.redeliveryPolicy.outcome", Outcome.REJECTED, "connection.redelivery_policy.outcome", Outcome.REJECTED),
        ("amqp.saslMechanisms", ["PLAIN", "EXTERNAL"], "amqp.sasl_mechanisms", ("PLAIN", "EXTERNAL")),
        ("transport.keyStoreLocation", Path("/a/b.pem"), "transport.key_store_location", "/a/b.pem"),
    ],
)
def test_options_argument_takes_python_values_undecoded(name: str, value: object, path: str, expected: object) -> None:
    assert value_at(parse_url("amqps://h", {name: value}), path) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("jms.sendTimeout", "5s", "jms.sendTimeout='5s': expected a whole number of milliseconds"),
        ("jms.sendTimeout", "-2", "expected a whole number of milliseconds"),
        ("jms.sendTimeout", "1_000", "expected a whole number"),
        ("jms.sendTimeout", "٣", "expected a whole number"),
        ("jms.sendTimeout", "1.5", "expected a whole number"),
        ("jms.sendTimeout", str(2**31), "2147483647"),
        ("jms.sendTimeout", "9" * 500, "..."),
        ("jms.closeTimeout", "", "expected a whole number"),
        ("jms.forceSyncSend", "yes", "jms.forceSyncSend='yes': expected true or false"),
        ("jms.forceSyncSend", "", "expected true or false"),
        ("jms.clientID", "+", "a text that is not empty"),
        ("jms.username", "", "a text that is not empty"),
        ("jms.listenerErrorOutcome", "accepted", "MODIFIED_FAILED (4), RELEASED (3)"),
        ("jms.redeliveryPolicy.outcome", "6", "ACCEPTED (1), REJECTED (2)"),
        ("jms.redeliveryPolicy.maxRedeliveries", "-2", "-1 for no limit"),
        ("jms.prefetchPolicy.queuePrefetch", "-1", "messages from 0 to 2147483647"),
        ("jms.prefetchPolicy.all", "-1", "messages from 0"),
        ("transport.sendBufferSize", "x", "bytes from 1"),
        ("transport.localPort", "65536", "from 0 to 65535"),
        ("transport.defaultTcpPort", "0", "from 1 to 65535"),
        ("transport.keyStoreType", "BKS", "expected PEM"),
        ("transport.contextProtocol", "TLSv1.1", "TLSv1.2, TLSv1.3"),
        ("amqp.maxFrameSize", "511", "bytes from 512 to 4294967295"),
        ("amqp.channelMax", "-1", "from 0 to 65535"),
        ("amqp.saslMechanisms", "PLAIN,GSSAPI", "EXTERNAL, SCRAM-SHA-512"),
    ],
)
@pytest.mark.parametrize("where", ["url", "options"])
def test_bad_value_names_option_value_and_what_was_expected(name: str, text: str, expected: str, where: str) -> None:
    in_url = f"amqp://h?{name}={text}" if where == "url" else "amqp://h"
    options = {name: text.replace("+", " ")} if where == "options" else None
    with pytest.raises(InvalidURLException, match=re.escape(expected)) as caught:
        parse_url(in_url, options)
    assert f"option {name}=" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", [None, b"x", object(), 1.5, {"a": 1}, [b"x"]])
def test_options_value_of_a_foreign_type_is_refused_by_type_alone(value: object) -> None:
    with pytest.raises(InvalidURLException, match=r"jms\.sendTimeout: expected a whole number of .*, got "):
        parse_url("amqp://h", {"jms.sendTimeout": value})


def test_options_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidURLException, match="option names are texts, got int"):
        parse_url("amqp://h", {1: "x"})  # type: ignore[dict-item]


@pytest.mark.parametrize("text", ["%", "%4", "%zz", "a%", "%ff"])
def test_broken_percent_code_is_refused_without_showing_the_value(text: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape("write a percent sign as %25")) as caught:
        parse_url(f"amqp://h?jms.password={MARKER}{text}")
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize("store_type", ["JKS", "jceks", "PKCS12"])
def test_java_store_type_is_refused_with_the_conversion_command(store_type: str) -> None:
    with pytest.raises(UnsupportedFeatureException, match="openssl pkcs12 -in store") as caught:
        parse_url("amqps://h", {"transport.keyStoreType": store_type})
    assert ("keytool -importkeystore" in str(caught.value)) is (store_type != "PKCS12")


# --- options: names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jms.prefetchPolicy.queuePrefetc", "did you mean jms.prefetchPolicy.queuePrefetch?"),
        ("jms.clientId", "jms.clientId (did you mean jms.clientID?)"),
        ("JMS.SENDTIMEOUT", "did you mean jms.sendTimeout?"),
        ("sendTimeout", "did you mean jms.sendTimeout?"),
        ("prefetchPolicy.all", "did you mean jms.prefetchPolicy.all?"),
        ("jms.tcpKeepAlive", "did you mean transport.tcpKeepAlive?"),
        ("jms.optimiseAcknowledge", "did you mean jms.optimizeAcknowledge?"),
        ("zzzzzzzz", "unknown option zzzzzzzz"),
        ("", "unknown option ***"),
        (" jms.sendTimeout", "did you mean jms.sendTimeout?"),
    ],
)
def test_unknown_option_names_the_nearest_known_one(name: str, message: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape(message)):
        parse_url("amqp://h", {name: "1"})
    with pytest.raises(InvalidURLException, match=re.escape(message)):
        parse_url(f"amqp://h?{name.replace(' ', '%20')}=1")


def test_all_unknown_options_are_listed_before_any_other_complaint() -> None:
    with pytest.raises(InvalidURLException, match=r"jms\.qwx.*jms\.zyx.*amqp\.vhots \(did you mean amqp\.vhost\?\)"):
        parse_url("amqp://h?jms.qwx=1&jms.zyx=2&jms.useAsyncSend=true&jms.sendTimeout=x", {"amqp.vhots": "v"})


@pytest.mark.parametrize("name", sorted(OPTIONS_LATER))
def test_option_of_later_is_known_and_said_to_be_unsupported(name: str) -> None:
    with pytest.raises(UnsupportedFeatureException, match=f"not supported here yet: {re.escape(name)}"):
        parse_url(f"amqp://h?{name}=1")


def test_websocket_header_option_is_known_and_said_to_be_unsupported() -> None:
    with pytest.raises(UnsupportedFeatureException, match=r"transport\.ws\.httpHeader\.X"):
        parse_url("amqp://h?transport.ws.httpHeader.X=1")


@pytest.mark.parametrize(
    "name", ["transport.useEpoll", "transport.useOpenSSL", "wireFormat.cacheEnabled", "jms.trustAllPackages"]
)
def test_option_without_meaning_in_python_is_accepted_with_one_warning(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table, "_warned", set())
    for _ in range(3):
        parse_url(f"amqp://h?{name}=true")
    assert [(record.name, record.levelno) for record in caplog.records] == [("pyjmsack", logging.WARNING)]
    assert name in caplog.text


@pytest.mark.parametrize("name", ["failover.maxReconnectAttempts", "nested.amqp.vhost", "discovery.x"])
def test_failover_option_on_a_single_host_says_where_it_belongs(name: str) -> None:
    with pytest.raises(InvalidURLException, match=f"{re.escape(name)}.* belongs to a failover"):
        parse_url(f"amqp://h?{name}=1")


def test_option_given_twice_in_the_url_is_refused() -> None:
    with pytest.raises(InvalidURLException, match=r"jms\.clientID is given twice"):
        parse_url("amqp://h?jms.clientID=a&jms.clientID=a")


def test_option_without_equals_sign_is_refused_by_number() -> None:
    with pytest.raises(InvalidURLException, match=r"option number 2 .* has no '='"):
        parse_url("amqp://h?jms.clientID=a&jms.forceSyncSend")


def test_options_argument_wins_over_the_url() -> None:
    assert parse_url("amqp://h?jms.sendTimeout=1", {"jms.sendTimeout": 2000}).connection.send_timeout == 2.0


@pytest.mark.parametrize(
    ("query", "options", "queue", "topic"),
    [
        ("jms.prefetchPolicy.all=5&jms.prefetchPolicy.queuePrefetch=1", {}, 1, 5),
        ("jms.prefetchPolicy.queuePrefetch=1&jms.prefetchPolicy.all=5", {}, 1, 5),
        ("jms.prefetchPolicy.queuePrefetch=1", {"jms.prefetchPolicy.all": 5}, 5, 5),
        ("jms.prefetchPolicy.all=5", {"jms.prefetchPolicy.queuePrefetch": 1}, 1, 5),
    ],
)
def test_single_prefetch_wins_over_all_and_options_over_the_url(
    query: str, options: Mapping[str, object], queue: int, topic: int
) -> None:
    policy = parse_url(f"amqp://h?{query}", options).connection.prefetch_policy
    assert (policy.queue_prefetch, policy.topic_prefetch) == (queue, topic)


def test_tls_option_on_a_plain_url_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    parse_url("amqp://h?transport.trustStoreLocation=ca.pem&transport.tcpNoDelay=false")
    assert "transport.trustStoreLocation: no effect without TLS" in caplog.text
    caplog.clear()
    parse_url("amqps://h?transport.trustStoreLocation=ca.pem")
    parse_url("amqp://h")
    assert caplog.text == ""


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [*OPTIONS.values(), *DESTINATION_OPTIONS.values()], ids=lambda row: row.name)
def test_every_row_is_documented_and_its_default_is_that_of_the_dataclass(row: Any) -> None:
    assert row.help
    assert row.source
    assert row.kind.expected
    blank = parse_url("amqp://h") if row.name in OPTIONS else parse_destination_options(Queue("q"))
    if row.default is not None:
        assert [value_at(blank, target) for target in row.targets] == [row.kind.parse(row.default)]


@pytest.mark.parametrize("row", [*OPTIONS.values(), *DESTINATION_OPTIONS.values()], ids=lambda row: row.name)
def test_field_has_the_java_name_in_snake_case(row: Any) -> None:
    own = row.name.rpartition(".")[2].replace("JMSXUserID", "JmsxUserID")
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", own).lower()
    if row.name != "jms.prefetchPolicy.all":
        expected = "prefetch" if row.name == "consumer.prefetchSize" else snake
        assert row.targets[0].rpartition(".")[2] == expected


def test_no_field_lacks_a_row_and_no_name_is_in_two_tables() -> None:
    def leaves(section: Any, path: str = "") -> list[str]:
        nested = [(field.name, getattr(section, field.name)) for field in fields(section)]
        return [
            leaf
            for name, value in nested
            for leaf in (leaves(value, f"{path}{name}.") if is_dataclass(value) else [path + name])
        ]

    targets = {target for row in OPTIONS.values() for target in row.targets}
    assert targets == set(leaves(parse_url("amqp://h"))) - {"scheme", "endpoints"}
    assert not OPTIONS.keys() & OPTIONS_LATER.keys()
    assert not DESTINATION_OPTIONS.keys() & DESTINATION_OPTIONS_LATER.keys()
    assert not [name for name in (*OPTIONS, *OPTIONS_LATER) if table.is_meaningless(name)]


def test_broker_url_is_a_value_that_can_be_pickled_and_hashed() -> None:
    parsed = parse_url(f"amqp://h?jms.password={MARKER}&jms.prefetchPolicy.all=5")
    assert pickle.loads(pickle.dumps(parsed)) == parsed == copy.deepcopy(parsed)
    assert hash(parsed) == hash(copy.copy(parsed))
    assert parsed != parse_url("amqp://h")


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_secret_shows_itself_only_when_asked() -> None:
    secret = Secret(MARKER)
    assert MARKER not in f"{secret} {secret!r} {[secret]}"
    assert secret.reveal() == MARKER
    assert secret != MARKER
    assert {secret, Secret(MARKER)} == {secret}


def test_broker_url_never_shows_a_password() -> None:
    url = f"amqps://h?jms.password={MARKER}1&transport.keyStorePassword={MARKER}2&jms.username=u"
    parsed = parse_url(url)
    assert MARKER not in repr(parsed) + str(parsed) + repr(asdict(parsed))
    assert redact(url) == "amqps://h?jms.password=***&transport.keyStorePassword=***&jms.username=***"


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("amqp://h:1?jms.clientID=c&jms.password=p", "amqp://h:1?jms.clientID=c&jms.password=***"),
        ("amqp://h?jms.Password=p&jms%2epassword=p", "amqp://h?jms.Password=***&***"),
        ("amqp://h?jms.password=p&q&r=s", "amqp://h?jms.password=***&***&***"),
        ("amqp://h?jms.password:p", "amqp://h?***"),
        ("amqp://h?jms.password=p#q", "amqp://h?jms.password=***#***"),
        ("amqp://u:p?x@h?jms.username=a@b", "amqp://***@h?jms.username=***"),
        ("amqp://u:p=x?y@h", "amqp://***?***"),
        ("amqp://h&jms.password=p@q", "amqp://***@***"),
        ("amqp://h/p", "amqp://h/***"),
        ("amqp://[::1]:5672", "amqp://[::1]:5672"),
        ("u:p@h", "***"),
        ("h:5672", "h:5672"),
        ("failover:(amqp://a:1?amqp.vhost=v,amqps://b)?jms.password=p", "failover:(amqp://a:1,amqps://b)?***"),
        ("failover:(amqp://u:p@a,amqp://b)", "failover:(***)"),
    ],
)
def test_redact_shows_only_what_is_known_to_be_harmless(url: str, redacted: str) -> None:
    assert redact(url) == redacted


@pytest.mark.parametrize("url", [f"amqp://h?jms.password=a&{MARKER}=b", f"amqp://u:1?{MARKER}=a@h"])
def test_rest_of_a_password_with_a_raw_delimiter_is_not_shown(url: str) -> None:
    with pytest.raises(InvalidURLException, match="written %26") as caught:
        parse_url(url)
    assert MARKER not in str(caught.value)


GARBAGE = st.text(alphabet=st.sampled_from(list("ab1:/?#[]@&=%+.,() \n\u00e9\ud800")), max_size=12)
SCHEMES = st.sampled_from(["amqp://", "amqps://", "stomp://", "failover:(amqp://", "tcp://", "amqp:", "", "x+y://"])


def assert_refused_or_parsed_without_leak(url: str, options: Mapping[str, object] | None = None) -> None:
    try:
        parsed = parse_url(url, options)
    except (InvalidURLException, UnsupportedFeatureException) as error:
        shown = f"{error}{error!r}{error.__cause__}"
    else:
        shown = repr(parsed) + str(parsed)
    assert MARKER not in shown
    assert MARKER not in redact(url)


@given(SCHEMES, GARBAGE, GARBAGE, GARBAGE)
@example("amqp://", "h?", "x", "&jms.sendTimeout=x")
def test_password_option_in_any_garbage_never_leaks(scheme: str, before: str, inside: str, after: str) -> None:
    assert_refused_or_parsed_without_leak(f"{scheme}h{before}&jms.password={inside}{MARKER}{after}")
    assert_refused_or_parsed_without_leak(f"{scheme}h?jms.password={inside}{MARKER}{after}")
    assert_refused_or_parsed_without_leak(f"{scheme}h?jms.password={MARKER}{inside}={after}")


@given(SCHEMES, GARBAGE, GARBAGE, GARBAGE)
def test_user_info_in_any_garbage_never_leaks(scheme: str, user: str, inside: str, after: str) -> None:
    assert_refused_or_parsed_without_leak(f"{scheme}u{user}:{inside}{MARKER}@h{after}")
    assert_refused_or_parsed_without_leak(f"{scheme}u{user}:{MARKER}{inside}@h{after}", {"jms.allowUserInfo": "true"})


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(url: str) -> None:
    assert_refused_or_parsed_without_leak(url)
    assert_refused_or_parsed_without_leak(f"amqp://{url}")
    assert_refused_or_parsed_without_leak(f"amqp://h?{url}")


VALUE = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.binary(max_size=5))


@given(st.dictionaries(st.one_of(st.sampled_from([*OPTIONS, *OPTIONS_LATER]), st.text(max_size=20)), VALUE, max_size=4))
def test_any_options_are_parsed_or_refused(options: dict[str, object]) -> None:
    assert_refused_or_parsed_without_leak("amqps://h", {**options, "jms.password": MARKER})


@given(st.text(max_size=30), st.sampled_from([*DESTINATION_OPTIONS, *DESTINATION_OPTIONS_LATER, ""]))
def test_any_destination_options_are_parsed_or_refused(text: str, name: str) -> None:
    with contextlib.suppress(InvalidDestinationException, UnsupportedFeatureException):
        assert isinstance(parse_destination_options(Queue(f"q?{name}={text}")), DestinationOptions)


# --- destination options ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", DestinationOptions()),
        ("?consumer.prefetchSize=10", DestinationOptions(prefetch=10)),
        ("?consumer.prefetchSize=0&consumer.allowPullListener=true", DestinationOptions(0, allow_pull_listener=True)),
        ("?consumer.selector=a%20%3D%20'b'", DestinationOptions(selector="a = 'b'")),
        ("?consumer.noLocal=true", DestinationOptions(no_local=True)),
        ("?consumer.noLocal=false", DestinationOptions(no_local=False)),
        ("?consumer.expectedMessageSize=1", DestinationOptions(expected_message_size=1)),
    ],
)
def test_destination_options_are_typed_and_unset_ones_are_left_to_the_factory_s49(
    query: str, expected: DestinationOptions
) -> None:
    assert parse_destination_options(Queue(f"orders{query}")) == expected


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("customer.prefetchSize=10", "customer.prefetchSize (did you mean consumer.prefetchSize?)"),  # F14
        ("prefetchSize=10", "did you mean consumer.prefetchSize?"),
        ("consumer.prefetchsize=10", "did you mean consumer.prefetchSize?"),
        ("consumer.qqq=1", "consumer.qqq"),
        ("jms.sendTimeout=10", "unknown option jms.sendTimeout"),
        ("consumer.browser=true", "unknown option consumer.browser"),
        ("consumer.noRangeAcks=true", "unknown option"),
        ("consumer.prefetchSize=-1", "option consumer.prefetchSize='-1': expected a whole number of messages from 0"),
        ("consumer.prefetchSize=", "expected a whole number"),
        ("consumer.noLocal=1", "expected true or false"),
    ],
)
def test_wrong_destination_option_is_refused_with_the_nearest_s11(option: str, message: str) -> None:
    with pytest.raises(InvalidDestinationException, match=re.escape(message)):
        parse_destination_options(Topic(f"t?{option}"))


@pytest.mark.parametrize("name", sorted(DESTINATION_OPTIONS_LATER))
def test_destination_option_of_later_is_known_and_said_to_be_unsupported(name: str) -> None:
    with pytest.raises(UnsupportedFeatureException, match=re.escape(name)):
        parse_destination_options(Queue(f"q?{name}=1"))


# --- policies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("destination", "arguments", "prefetch"),
    [
        (Queue("q"), {}, 1),
        (TemporaryQueue("q"), {}, 1),
        (Queue("q"), {"browser": True}, 3),
        (Topic("t"), {}, 2),
        (Topic("t"), {"durable": True}, 4),
    ],
)
def test_prefetch_is_chosen_by_kind_of_consumer_s49(destination: Any, arguments: Any, prefetch: int) -> None:
    assert PrefetchPolicy(1, 2, 3, 4).for_destination(destination, **arguments) == prefetch


def test_prefetch_over_the_maximum_is_cut_with_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    policy._log_clipped.cache_clear()
    prefetch = PrefetchPolicy(queue_prefetch=50, max_prefetch_size=40)
    assert [prefetch.for_destination(Queue("q")) for _ in range(3)] == [40, 40, 40]
    assert prefetch.clip(40) == 40
    assert [record.message for record in caplog.records] == [
        "prefetch 50 is cut to 40 (jms.prefetchPolicy.maxPrefetchSize)"
    ]


@pytest.mark.parametrize(
    ("maximum", "redeliveries", "exceeded"),
    [(None, 10**6, False), (0, 0, False), (0, 1, True), (3, 3, False), (3, 4, True)],
)
def test_redelivery_limit_counts_redeliveries(maximum: int | None, redeliveries: int, exceeded: bool) -> None:
    assert RedeliveryPolicy(max_redeliveries=maximum).exceeded(redeliveries) is exceeded


@pytest.mark.parametrize(
    ("switch", "queue", "topic", "anonymous", "transacted"),
    [
        (None, False, False, False, False),
        ("presettle_all", True, True, True, True),
        ("presettle_producers", True, True, True, True),
        ("presettle_queue_producers", True, False, False, True),
        ("presettle_topic_producers", False, True, False, False),
        ("presettle_transacted_producers", False, False, False, True),
        ("presettle_consumers", False, False, False, False),
    ],
)
def test_presettled_producers_follow_the_switches(
    switch: str | None, queue: bool, topic: bool, anonymous: bool, transacted: bool
) -> None:
    presettle = PresettlePolicy(**({switch: True} if switch else {}))
    assert presettle.producer(Queue("q"), False) is queue
    assert presettle.producer(Topic("t"), False) is topic
    assert presettle.producer(None, False) is anonymous
    assert presettle.producer(Queue("q"), True) is transacted


@pytest.mark.parametrize(
    ("switch", "queue", "topic"),
    [
        (None, False, False),
        ("presettle_all", True, True),
        ("presettle_consumers", True, True),
        ("presettle_queue_consumers", True, False),
        ("presettle_topic_consumers", False, True),
        ("presettle_producers", False, False),
    ],
)
def test_presettled_consumers_follow_the_switches_but_never_in_a_transaction_s37(
    switch: str | None, queue: bool, topic: bool
) -> None:
    presettle = PresettlePolicy(**({switch: True} if switch else {}))
    assert (presettle.consumer(Queue("q"), False), presettle.consumer(Topic("t"), False)) == (queue, topic)
    assert not presettle.consumer(Queue("q"), True)
    assert not presettle.consumer(Topic("t"), True)


def test_defaults_are_those_of_the_java_client() -> None:
    parsed = parse_url("amqp://h")
    assert isinstance(parsed, BrokerUrl)
    assert parsed.connection.send_timeout is None
    assert parsed.connection.close_timeout == 60.0
    assert parsed.connection.connect_timeout == 15.0
    assert parsed.connection.listener_error_outcome is Outcome.MODIFIED_FAILED  # S18
    assert parsed.connection.prefetch_policy == PrefetchPolicy(1000, 1000, 1000, 1000, 32767)
    assert parsed.connection.redelivery_policy == RedeliveryPolicy(None, Outcome.MODIFIED_FAILED_UNDELIVERABLE)
    assert parsed.connection.presettle_policy == PresettlePolicy()
    assert parsed.amqp.idle_timeout == 60.0
    assert parsed.transport.verify_host

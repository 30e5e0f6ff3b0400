"""Options of broker URLs: values and names."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from uri_support import MARKER, value_at

from pyjmsack.errors import InvalidURLException, UnsupportedFeatureException
from pyjmsack.types import Outcome
from pyjmsack.uri import (
    IGNORED,
    IGNORED_PREFIXES,
    REFUSED,
    PrefetchPolicy,
    Secret,
    parse_url,
    table,
)
from pyjmsack.uri.table import FAILOVER_PREFIX

VALUES = [
    ("jms.username", "u", "connection.username", "u"),
    ("jms.password", "p%26q", "connection.password", Secret("p&q")),
    ("jms.password", "", "connection.password", Secret("")),
    ("jms.clientID", "my+client%2B", "connection.client_id", "my client+"),
    ("jms.clientIDPrefix", "", "connection.client_id_prefix", ""),
    ("jms.connectionIDPrefix", "C:", "connection.connection_id_prefix", "C:"),
    ("jms.messageIDPolicy.messageIDType", "default", "connection.message_id_type", ""),
    ("jms.messageIDPolicy.messageIDType", "UUID", "connection.message_id_type", "ID:AMQP_UUID:"),
    ("jms.messageIDPolicy.messageIDType", "UUID_STRING", "connection.message_id_type", "ID:AMQP_NO_PREFIX:"),
    ("jms.messageIDPolicy.messageIDType", "PREFIXED_UUID_STRING", "connection.message_id_type", "ID:"),
    ("jms.forceAsyncSend", "TRUE", "connection.force_async_send", True),
    ("jms.forceSyncSend", "true", "connection.force_sync_send", True),
    ("jms.forceAsyncAcks", "True", "connection.force_async_acks", True),
    ("jms.localMessagePriority", "true", "connection.local_message_priority", True),
    ("jms.messagePrioritySupported", "true", "connection.local_message_priority", True),
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
    ("jms.useAsyncSend", "true", "connection.force_async_send", True),
    ("jms.alwaysSyncSend", "true", "connection.force_sync_send", True),
    ("jms.sendAcksAsync", "true", "connection.force_async_acks", True),
    ("jms.consumerExpiryCheckEnabled", "false", "connection.local_message_expiry", False),
    ("jms.connectResponseTimeout", "0", "connection.connect_timeout", None),
    ("jms.disableTimeStampsByDefault", "true", "connection.disable_time_stamps_by_default", True),
    ("jms.sendTimeoutForcesSync", "false", "connection.send_timeout_forces_sync", False),
    ("jms.redeliveryPolicy.maximumRedeliveries", "6", "connection.redelivery_policy.max_redeliveries", 6),
    (
        "jms.redeliveryPolicy.useExponentialBackOff",
        "true",
        "connection.redelivery_policy.use_exponential_back_off",
        True,
    ),
    (
        "jms.redeliveryPolicy.useCollisionAvoidance",
        "true",
        "connection.redelivery_policy.use_collision_avoidance",
        True,
    ),
    ("jms.redeliveryPolicy.preDispatchCheck", "false", "connection.redelivery_policy.pre_dispatch_check", False),
    ("jms.exclusiveConsumer", "true", "connection.exclusive_consumer", True),
    ("jms.useRetroactiveConsumer", "true", "connection.use_retroactive_consumer", True),
    ("jms.checkForDuplicates", "false", "connection.check_for_duplicates", False),
    ("jms.auditDepth", "100", "connection.audit_depth", 100),
    ("jms.auditMaximumProducerNumber", "3", "connection.audit_maximum_producer_number", 3),
    ("jms.useDaemonThread", "false", "connection.use_daemon_thread", False),
    ("jms.tracing", "OpenTelemetry", "connection.tracing", "opentelemetry"),
    ("wireFormat.maxFrameSize", "1024", "transport.max_frame_size", 1024),
    ("wireFormat.maxFrameSizeEnabled", "false", "transport.max_frame_size_enabled", False),
    ("amqp.saslLayer", "false", "amqp.sasl_layer", False),
    ("amqp.traceFramesPayloadLimit", "10", "amqp.trace_frames_payload_limit", 10),
    ("amqp.allowNonSecureRedirects", "true", "amqp.allow_non_secure_redirects", True),
    ("transport.traceBytes", "true", "transport.trace_bytes", True),
    ("amqp.traceBytes", "true", "transport.trace_bytes", True),
    ("transport.ws.httpHeader.X-Key", "a+b", "transport.ws_http_headers", (("X-Key", "a b"),)),
    ("connectionTimeout", "30000", "transport.connect_timeout", 30.0),
    ("keepAlive", "true", "transport.tcp_keep_alive", True),
    ("tcpNoDelay", "false", "transport.tcp_no_delay", False),
    ("soLinger", "5", "transport.so_linger", 5),
    ("trafficClass", "16", "transport.traffic_class", 16),
    ("socketBufferSize", "1024", "transport.send_buffer_size", 1024),
    ("socketBufferSize", "1024", "transport.receive_buffer_size", 1024),
    ("trace", "true", "amqp.trace_frames", True),
    ("wireFormat.maxInactivityDuration", "30000", "amqp.idle_timeout", 30.0),
    ("profile", "ActiveMQ", "profile", "activemq"),
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
    ("jms.prefetchPolicy.all", "7", "connection.prefetch_policy", PrefetchPolicy(7, 7, 7, 7, 7)),
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
    ("amqp.engine", "python", "amqp.engine", "python"),
]


STOMP_VALUES = [
    ("stomp.heartBeat", "5000", "stomp.heart_beat", 5.0),
    ("stomp.vhost", "", "stomp.vhost", ""),
    ("stomp.version", "1.1", "stomp.version", "1.1"),
    ("stomp.maxFrameSize", "2048", "stomp.max_frame_size", 2048),
    ("stomp.maxHeaders", "64", "stomp.max_headers", 64),
    ("stomp.maxHeaderLength", "256", "stomp.max_header_length", 256),
    ("stomp.deadLetterQueue", "DLQ", "stomp.dead_letter_queue", "DLQ"),
    ("stomp.traceFrames", "true", "stomp.trace_frames", True),
    ("strict", "true", "strict", True),
    ("wireFormat.maxInactivityDuration", "30000", "stomp.heart_beat", 30.0),
    ("trace", "true", "stomp.trace_frames", True),
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
        ("stomp+ssl", "amqp.channelMax", "not allowed in stomp URLs: option amqp.channelMax"),
        ("stomp", "amqp.traceBytes", "not allowed in stomp URLs: option amqp.traceBytes"),
        ("amqp", "stomp.heartBeat", "not allowed in amqp URLs: option stomp.heartBeat (use amqp.idleTimeout)"),
        ("amqps", "stomp.deadLetterQueue", "not allowed in amqp URLs: option stomp.deadLetterQueue"),
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
        ("transport.keyStoreType", "BKS", "expected one of PEM, PKCS12"),
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


@pytest.mark.parametrize("value", [None, b"x", object(), {"a": 1}, [b"x"]])
def test_options_value_of_a_foreign_type_is_refused_by_type_alone(value: object) -> None:
    with pytest.raises(InvalidURLException, match=r"jms\.sendTimeout: expected a whole number of .*, got "):
        parse_url("amqp://h", {"jms.sendTimeout": value})


def test_options_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidURLException, match="option names: expected str, got int"):
        parse_url("amqp://h", {1: "x"})


@pytest.mark.parametrize("text", ["%", "%4", "%zz", "a%", "%ff"])
def test_broken_percent_code_is_refused_without_showing_the_value(text: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape("'%' as %25")) as caught:
        parse_url(f"amqp://h?jms.password={MARKER}{text}")
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize("store_type", ["JKS", "jceks"])
def test_java_store_type_is_refused_with_the_conversion_command(store_type: str) -> None:
    with pytest.raises(UnsupportedFeatureException, match=r"keytool .* -srckeystore store.*openssl pkcs12"):
        parse_url("amqps://h", {"transport.keyStoreType": store_type})


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


def test_one_error_lists_all_that_is_wrong_with_the_options_of_a_url() -> None:
    """Unknown names first, then misplaced ones, those of the other protocol, and wrong values."""
    with pytest.raises(InvalidURLException) as caught:
        parse_url(
            "amqp://h?jms.qwx=1&jms.zyx=2&randomize=true&jms.tracing=opentracing&jms.sendTimeout=x&stomp.vhost=v",
            {"amqp.vhots": "v", "jms.closeTimeout": "y"},
        )
    complaints = (
        r"unknown option jms\.qwx, jms\.zyx, amqp\.vhots \(did you mean amqp\.vhost\?\)",
        r"option randomize belongs to",
        r"stomp\.vhost \(use amqp\.vhost\)",
        r"jms\.sendTimeout='x': expected a whole number",
        r"use jms\.tracing=opentelemetry",
        r"jms\.closeTimeout='y': expected a whole number",
    )
    assert re.search(".*".join(complaints), str(caught.value)), str(caught.value)


def test_one_error_lists_the_problems_of_all_brokers_of_a_failover_url() -> None:
    with pytest.raises(InvalidURLException, match=r"unknown option foo; unknown option bar; .*timeout='q'"):
        parse_url("failover:(amqp://a,stomp://b?foo=2)?bar=1&timeout=q")


@pytest.mark.parametrize(
    ("url", "besides"),
    [
        ("tcp://h:61616?foo=1&jms.closeTimeout=y", "unknown option foo; option jms.closeTimeout='y'"),
        ("failover:(tcp://a:61616,ssl://b:61617)?foo=1", "unknown option foo"),
        (
            "tcp://h:61616?jms.prefetchPolicy.al=1",
            "unknown option jms.prefetchPolicy.al (did you mean jms.prefetchPolicy.all?)",
        ),
    ],
)
def test_the_error_of_a_java_scheme_tells_what_else_is_wrong(url: str, besides: str) -> None:
    with pytest.raises(InvalidURLException) as caught:
        parse_url(url)
    assert str(caught.value).startswith("tcp:// is OpenWire")
    assert f". Besides, {besides}" in str(caught.value)


def test_the_error_of_a_java_scheme_shows_no_password() -> None:
    for url in ("tcp://h?jms.password=MARK&foo=1", "tcp://u:MARK@h?foo=1", "tcp://h?jms.pasword=a&MARK=1"):
        with pytest.raises(InvalidURLException) as caught:
            parse_url(url)
        assert "MARK" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_option_of_later_is_known_and_said_to_be_unsupported(name: str) -> None:
    url = f"amqp://h?{name}=1"
    if FAILOVER_PREFIX + name.removeprefix(FAILOVER_PREFIX) in REFUSED:
        url = f"failover:(amqp://h)?{name}=1"
    with pytest.raises(UnsupportedFeatureException, match=f"not supported here: {re.escape(name)}"):
        parse_url(url)


def test_headers_of_the_websocket_handshake_are_kept_out_of_what_is_printed() -> None:
    """A.1 ``transport.ws.httpHeader``; they may hold a token."""
    url = f"amqpws://h?transport.ws.httpHeader.Authorization={MARKER}&transport.ws.httpHeader.X=1"
    parsed = parse_url(url, {"transport.ws.httpHeader.X": "2"})
    assert parsed.transport.ws_http_headers == (("Authorization", MARKER), ("X", "2"))
    assert MARKER not in repr(parsed) + str(parsed)
    for wrong in (f"{MARKER}%0d%0aY:1", f"{MARKER}%20", f"%20{MARKER}", f"{MARKER}%09", "%20"):
        with pytest.raises(InvalidURLException, match="printable ASCII") as caught:
            parse_url(f"amqpws://h?transport.ws.httpHeader.X={wrong}")
        assert MARKER not in str(caught.value)
    for right in ("", "x", "Bearer%20x%09y"):
        parse_url(f"amqpws://h?transport.ws.httpHeader.X={right}")
    with pytest.raises(InvalidURLException, match="unknown option"):
        parse_url("amqpws://h?transport.ws.httpHeader.=1")


def test_tracing_by_opentracing_is_refused_with_what_to_do_instead() -> None:
    """A.1 ``jms.tracing``."""
    with pytest.raises(UnsupportedFeatureException, match=r"use jms\.tracing=opentelemetry"):
        parse_url("amqp://h?jms.tracing=opentracing")


@pytest.mark.parametrize("name", sorted({*IGNORED, *(f"{prefix}defaultUploadUrl" for prefix in IGNORED_PREFIXES)}))
def test_option_without_meaning_in_python_is_accepted_with_one_warning_that_says_why(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table, "_warned", set())
    url = "failover:(amqp://h)" if FAILOVER_PREFIX + name.removeprefix(FAILOVER_PREFIX) in IGNORED else "amqp://h"
    for _ in range(3):
        parse_url(f"{url}?{name}=true")
    assert [(record.name, record.levelno) for record in caplog.records] == [("pyjmsack", logging.WARNING)]
    assert name in caplog.text
    reasons = {*IGNORED.values(), *IGNORED_PREFIXES.values()}
    assert any(reason in caplog.text for reason in reasons)


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


@pytest.mark.parametrize(
    ("first", "second"),
    [("jms.useAsyncSend", "jms.forceAsyncSend"), ("keepAlive", "transport.tcpKeepAlive")],
)
def test_two_names_of_one_option_are_refused_together_but_options_win_over_the_url(first: str, second: str) -> None:
    with pytest.raises(InvalidURLException, match="two names of the same option; give only one of them"):
        parse_url(f"amqp://h?{first}=true&{second}=false")
    parsed = parse_url(f"amqp://h?{first}=true", {second: False})
    assert parsed == parse_url("amqp://h")


def test_option_that_sets_a_field_alone_wins_over_one_that_sets_several() -> None:
    transport = parse_url("amqp://h?transport.sendBufferSize=5&socketBufferSize=9").transport
    assert (transport.send_buffer_size, transport.receive_buffer_size) == (5, 9)

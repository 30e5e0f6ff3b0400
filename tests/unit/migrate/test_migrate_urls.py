"""Broker URLs of Java clients become URLs of ours, with a row for each part, and without a secret."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from migrate_support import of_url, row

from pyjmsack.migrate import Settings, Unreadable, Verdict, migrate
from pyjmsack.migrate.java_url import parse_java_url
from pyjmsack.uri import parse_url

TRANSLATED = [
    ("tcp://h:61616", "amqp://h:5672?profile=activemq"),
    ("ssl://h:61617", "amqps://h:5671?profile=activemq"),
    ("nio+ssl://h:61617", "amqps://h:5671?profile=activemq"),
    ("amqp+ssl://h:5671", "amqps://h:5671?profile=qpid"),
    ("amqp://h", "amqp://h?profile=qpid"),
    ("amqp://[::1]:5672", "amqp://[::1]:5672?profile=qpid"),
    ("failover:(tcp://a:61616,tcp://b:61616)", "failover:(amqp://a:5672,amqp://b:5672)?profile=activemq"),
    ("failover:tcp://a:61616,tcp://b:61616", "failover:(amqp://a:5672,amqp://b:5672)?profile=activemq"),
    ("failover://(tcp://a:61616)?randomize=false", "failover:(amqp://a:5672)?randomize=false&profile=activemq"),
    ("static:(tcp://a:61616,ssl://b:61617)", "failover:(amqp://a:5672,amqps://b:5671)?profile=activemq"),
    ("(tcp://a:61616,tcp://b:61616)?ha=true", "failover:(amqp://a:5672,amqp://b:5672)?profile=artemis"),
    ("tcp://h:61616?sslEnabled=true", "amqps://h:5671?profile=artemis"),
    (
        "tcp://h:61616?reconnectAttempts=-1",
        "failover:(amqp://h:5672)?failover.maxReconnectAttempts=-1&profile=artemis",
    ),
    (
        "failover:(tcp://a:61616?soTimeout=1&tcpNoDelay=false,tcp://b:61616)",
        "failover:(amqp://a:5672?tcpNoDelay=false,amqp://b:5672)?profile=activemq",
    ),
]


@pytest.mark.parametrize(("java", "ours"), TRANSLATED)
def test_a_url_of_java_becomes_a_url_that_our_parser_takes(java: str, ours: str) -> None:
    findings = of_url(java)
    assert [factory.url for factory in findings.factories] == [ours]
    parse_url(ours)
    assert not any(one.verdict.open for one in findings.rows)


def test_stomp_has_its_own_schemes_ports_and_heart_beats() -> None:
    findings = of_url("tcp://h:61616?connectionTTL=60000", protocol="stomp")
    assert findings.factories[0].url == "stomp://h:61613?profile=artemis&stomp.heartBeat=60000"
    off = of_url("tcp://h:61616?wireFormat.maxInactivityDuration=0", protocol="stomp")
    assert row(off, "url?wireFormat.maxInactivityDuration").verdict is Verdict.IGNORED


def test_the_check_for_silent_brokers_is_switched_off_by_its_zero() -> None:
    findings = of_url("tcp://h:61616?wireFormat.maxInactivityDuration=0")
    assert row(findings, "url?wireFormat.maxInactivityDuration").python == "amqp.idleTimeout=0"


@pytest.mark.parametrize(
    "url", ["vm://localhost", "discovery:(multicast://default)", "udp://231.7.7.7:9876", "http://h:80"]
)
def test_a_scheme_that_nothing_replaces_is_refused_with_the_alternative(url: str) -> None:
    findings = of_url(url)
    assert findings.factories == []
    assert [one.verdict for one in findings.rows] == [Verdict.REFUSED]
    assert "amqp" in findings.rows[0].why or "broker" in findings.rows[0].why


def test_a_port_of_which_nobody_says_what_it_speaks_is_asked_for() -> None:
    assert row(of_url("tcp://h:7000"), "url").verdict is Verdict.BY_HAND
    assert "--port 7000=PORT" in row(of_url("tcp://h:7000"), "url").why
    findings = of_url("tcp://h:7000", ports={7000: 5673})
    assert row(findings, "url").python == "amqp://h:5673"
    assert row(findings, "url").verdict is Verdict.CHANGED


def test_a_misspelt_option_gets_the_name_that_was_meant() -> None:
    found = row(of_url("tcp://h:61616?jms.prefetchPolicy.quePrefetch=1"), "url?jms.prefetchPolicy.quePrefetch")
    assert found.verdict is Verdict.BY_HAND
    assert "did you mean jms.prefetchPolicy.queuePrefetch?" in found.why


def test_a_value_that_our_option_does_not_take_is_left_to_a_hand_with_the_parsers_reason() -> None:
    found = row(of_url("tcp://h:61616?jms.closeTimeout=soon"), "url?jms.closeTimeout")
    assert found.verdict is Verdict.BY_HAND
    assert "jms.closeTimeout" in found.why


def test_the_defaults_of_the_java_client_that_differ_are_rows() -> None:
    findings = of_url("failover:(tcp://h:61616)?randomize=false")
    assert row(findings, "(default) jms.redeliveryPolicy.maxRedeliveries").value == "6"
    assert "(default) failover.randomize" not in [one.key for one in findings.rows]


SECRET = "s3cr@t/x?y#z"
WITH_SECRETS = [
    f"tcp://user:{SECRET}@h:61616",
    f"tcp://h:61616?jms.password={SECRET}",
    f"tcp://h:61616?user=u&password={SECRET}&x",
    "(tcp://a:61616?trustStorePassword=s3cr&t/x,tcp://b:61616)?keyStorePassword=s3cr",
    f"failover:(tcp://user:{SECRET}@a:61616,tcp://b:61616)?jms.password={SECRET}",
    f"nonsense://u:{SECRET}@",
    f"tcp://h:99999?password={SECRET}",
]


@pytest.mark.parametrize("url", WITH_SECRETS)
def test_no_secret_of_a_url_is_in_anything_that_is_found(url: str) -> None:
    everything = repr(of_url(url))
    assert "s3cr" not in everything


def test_a_password_becomes_a_variable_and_a_user_an_argument() -> None:
    findings = of_url("tcp://user:hush@h:61616?trustStorePassword=more")
    factory = findings.factories[0]
    assert factory.username == "user"
    assert factory.secrets == {
        "jms.password": "PYJMSACK_PASSWORD",
        "transport.trustStorePassword": "PYJMSACK_TRUST_STORE_PASSWORD",
    }


def test_a_text_that_is_no_url_is_unreadable_and_not_shown() -> None:
    findings = migrate(["tcp://h:99999"], Settings())
    assert findings.unreadable == ["argument: expected a broker URL with a port from 1 to 65535"]


@given(st.text(max_size=200))
def test_any_text_is_a_url_or_is_refused(text: str) -> None:
    with suppress(Unreadable):
        assert parse_java_url(text).members


@given(st.text("failover:(tcp/,)?&=@#. x", max_size=80))
def test_what_looks_like_a_url_never_breaks_the_tool(text: str) -> None:
    of_url(f"tcp://{text}")

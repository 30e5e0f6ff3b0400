"""``profile=...`` starts from the defaults of another client (S18, S62, S93, S114)."""

from __future__ import annotations

import pytest

from pyjmsack.errors import InvalidURLException
from pyjmsack.types import Outcome
from pyjmsack.uri import PrefetchPolicy, parse_url
from pyjmsack.uri.profiles import PROFILES
from pyjmsack.uri.table import OPTIONS


@pytest.mark.parametrize("profile", PROFILES)
def test_every_option_of_a_profile_is_honoured_and_differs_from_our_default(profile: str) -> None:
    for name, text in PROFILES[profile].items():
        row = OPTIONS[name]
        assert not row.alias_of
        assert row.default is None or row.kind.parse(text) != row.kind.parse(row.default)


def test_activemq_profile_has_the_limits_of_that_client_s114() -> None:
    parsed = parse_url("amqp://h?profile=activemq")
    assert parsed.connection.redelivery_policy.max_redeliveries == 6
    assert parsed.connection.redelivery_policy.outcome is Outcome.REJECTED, "the seventh time makes a dead letter"
    assert parsed.connection.prefetch_policy == PrefetchPolicy(1000, 32767, 500, 100, 1000)
    assert parsed.connection.connect_timeout is None
    assert (parsed.amqp.idle_timeout, parsed.transport.connect_timeout) == (30.0, 30.0)
    assert not parsed.failover.randomize


def test_qpid_profile_releases_what_a_listener_refused_s18() -> None:
    parsed = parse_url("amqp://h?profile=qpid")
    assert parsed.connection.listener_error_outcome is Outcome.RELEASED
    assert not parsed.connection.send_timeout_forces_sync


def test_options_win_over_the_profile_wherever_they_stand() -> None:
    url = "amqp://h?jms.redeliveryPolicy.maximumRedeliveries=2&jms.prefetchPolicy.all=7&profile=activemq"
    parsed = parse_url(url)
    assert parsed.connection.redelivery_policy.max_redeliveries == 2
    assert parsed.connection.prefetch_policy == PrefetchPolicy(7, 7, 7, 7, 7)
    assert parse_url(url, {"profile": "qpid"}).connection.close_timeout == 60.0


def test_profile_of_a_failover_url_is_that_of_its_members_too() -> None:
    parsed = parse_url("failover:(amqp://a,stomp://b,amqp://c?amqp.idleTimeout=1000)?profile=activemq&randomize=false")
    assert (parsed.failover.randomize, parsed.failover.initial_reconnect_delay) == (False, 0.01)
    assert [member.amqp.idle_timeout for member in parsed.members] == [30.0, 60.0, 1.0]
    assert [member.profile for member in parsed.members] == ["activemq"] * 3
    assert parsed.members[1].transport.connect_timeout == 30.0


@pytest.mark.parametrize("url", ["amqp://h?profile=activemp", "failover:(amqp://h)?profile=activemp"])
def test_unknown_profile_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(InvalidURLException, match="expected one of activemq, qpid, artemis"):
        parse_url(url)

"""The brokers that a broker names in its Open (A.1 amqpOpenServerListAction, scenario 77)."""

from __future__ import annotations

from typing import Any

import pytest
from failover_fakes import Bench

from pyjmsack.errors import ConnectionLostException
from pyjmsack.providers.failover.brokers import MOST, learn
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.uri import BrokerUrl, parse_url


def members(*urls: str) -> list[BrokerUrl]:
    return [*parse_url(f"failover:({','.join(urls)})").members]


def learned(known: list[BrokerUrl], action: str, *entries: Any) -> list[str]:
    metadata = ConnectionMetadata("AMQP 1.0", "x", "1", "1", properties={"failover-server-list": [*entries]})
    return [str(member) for member in learn(known, known, known[0], metadata, action)]


C = {"hostname": "c.local", "network-host": "c", "port": 5, "scheme": "amqp"}


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("REPLACE", ["amqp://a:5672", "amqp://c:5"]),
        ("ADD", ["amqp://a:5672", "amqp://b:5672", "amqp://c:5"]),
        ("IGNORE", ["amqp://a:5672", "amqp://b:5672"]),
    ],
)
def test_the_list_replaces_or_adds_or_is_ignored(action: str, expected: list[str]) -> None:
    """The broker in use stays in it."""
    assert learned(members("amqp://a", "amqp://b"), action, C) == expected


@pytest.mark.parametrize("header", ["amqp://c:5", b"c", 5])
def test_a_value_that_is_no_list_of_brokers_changes_nothing(header: Any) -> None:
    """Over STOMP each header is a text."""
    known = members("amqp://a", "amqp://b")
    metadata = ConnectionMetadata("STOMP 1.2", "x", "1", "1", properties={"failover-server-list": header})
    assert learn(known, known, known[0], metadata, "REPLACE") == known


@pytest.mark.option("failover.amqpOpenServerListAction", "amqp")
def test_the_url_says_what_is_done_with_the_list() -> None:
    """A.1 ``failover.amqpOpenServerListAction``: without it the broker at hand and those of the list are known."""
    tried = []
    for options in ("", "failover.amqpOpenServerListAction=IGNORE"):
        bench = Bench("amqp://a,amqp://b", options, connect=False)
        bench.properties = {"failover-server-list": [{"network-host": "c", "port": 5}]}
        bench.connect()
        bench.down["a"] = ConnectionLostException("down")
        bench.member.fail()
        bench.clock.pass_by(0)
        tried.append(bench.member.name)
    assert tried == ["c", "b"]


@pytest.mark.parametrize("known", ["amqp://a", "amqps://a"])
@pytest.mark.parametrize(
    ("entry", "secure"),
    [
        ({"hostname": "c", "port": 5, "scheme": "amqp"}, False),
        ({"hostname": "c", "port": 5, "scheme": "amqps"}, True),
    ],
)
def test_a_broker_without_tls_is_not_taken_from_one_with_tls(known: str, entry: Any, secure: bool) -> None:
    """Scenario 77: an insecure one is refused."""
    taken = len(learned(members(known), "ADD", entry)) == 2
    assert taken == (secure or known == "amqp://a")


@pytest.mark.option("amqp.allowNonSecureRedirects", "amqp")
def test_a_broker_without_tls_is_taken_if_the_url_says_so() -> None:
    """A.1 ``amqp.allowNonSecureRedirects``."""
    known = members("amqps://a?amqp.allowNonSecureRedirects=true")
    assert learned(known, "ADD", C) == ["amqps://a:5671", "amqp://c:5"]


@pytest.mark.parametrize(
    "entry", [{}, {"hostname": "c"}, {"port": 5}, {"hostname": "c", "port": 5, "scheme": "stomp"}, "c:5", 7]
)
def test_what_cannot_be_understood_changes_nothing(entry: Any) -> None:
    """Nor do entries that speak another protocol."""
    assert learned(members("amqp://a", "amqp://b"), "ADD", entry) == ["amqp://a:5672", "amqp://b:5672"]


def test_a_learned_broker_has_the_options_of_the_one_that_named_it() -> None:
    """Such as its transport options."""
    known = [*parse_url("failover:(amqp://a?transport.tcpKeepAlive=true,amqp://b)").members]
    metadata = ConnectionMetadata("AMQP 1.0", "x", "1", "1", properties={"failover-server-list": [C]})
    assert learn(known, known, known[0], metadata, "REPLACE")[1].transport.tcp_keep_alive


def test_a_long_list_costs_what_a_hundred_entries_cost() -> None:
    """A hostile broker names 6,000 others: 100 are looked at, and no more are remembered however often it does so."""
    known = members("amqp://a")
    for start in range(0, 18_000, 6_000):
        entries = [{"hostname": f"h{start + i}", "port": 1, "scheme": "amqp"} for i in range(6_000)]
        properties = {"failover-server-list": entries}
        metadata = ConnectionMetadata("AMQP 1.0", "x", "1", "1", properties=properties)
        known = learn(known, members("amqp://a"), known[0], metadata, "ADD")
    assert len(known) == MOST + 1
    assert str(known[MOST]) == "amqp://h99:1"


@pytest.mark.parametrize(
    "entry", [{"hostname": "h" * 254, "port": 1}, {"hostname": "h", "port": 65536}, {"hostname": 5}]
)
def test_a_host_or_port_that_cannot_be_is_left_out(entry: Any) -> None:
    assert learned(members("amqp://a"), "ADD", entry) == ["amqp://a:5672"]

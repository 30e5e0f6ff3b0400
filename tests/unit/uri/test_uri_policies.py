"""Prefetch, redelivery limit, presettlement."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyjmsack.destination import Queue, TemporaryQueue, Topic
from pyjmsack.errors import InvalidURLException
from pyjmsack.types import Outcome
from pyjmsack.uri import (
    BrokerUrl,
    PrefetchPolicy,
    PresettlePolicy,
    RedeliveryPolicy,
    parse_destination_options,
    parse_url,
    policy,
)


@pytest.mark.parametrize(
    ("destination", "arguments", "prefetch"),
    [
        (Queue("q"), {}, 1),
        (TemporaryQueue("q"), {}, 1),
        (Queue("q"), {"browser": True}, 3),
        (Topic("t"), {}, 2),
        (Topic("t"), {"durable": True}, 4),
        (Topic("t"), {"durable": True, "auto": True}, 5),
        (Topic("t"), {"auto": True}, 2),
    ],
)
def test_prefetch_is_chosen_by_kind_of_consumer_s49(destination: Any, arguments: Any, prefetch: int) -> None:
    assert PrefetchPolicy(1, 2, 3, 4, 5).for_destination(destination, **arguments) == prefetch


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
    assert parsed.connection.prefetch_policy == PrefetchPolicy(1000, 1000, 1000, 1000, None, max_prefetch_size=32767)
    assert parsed.connection.redelivery_policy == RedeliveryPolicy(None, Outcome.MODIFIED_FAILED_UNDELIVERABLE)
    assert parsed.connection.presettle_policy == PresettlePolicy()
    assert parsed.amqp.idle_timeout == 60.0
    assert parsed.transport.verify_host


@pytest.mark.parametrize(
    ("pattern", "destination", "fits"),
    [
        ("orders", Queue("orders"), True),
        ("orders", Topic("orders"), True),
        ("orders", Queue("orders.eu"), False),
        ("queue://orders", Queue("orders"), True),
        ("queue://orders", Topic("orders"), False),
        ("topic://orders", Topic("orders"), True),
        ("orders.*", Queue("orders.eu"), True),
        ("orders.*", Queue("orders"), False),
        ("orders.*", Queue("orders.eu.west"), False),
        ("orders.*.new", Queue("orders.eu.new"), True),
        ("orders.>", Queue("orders.eu.west"), True),
        ("orders.>", Queue("orders"), True),
        ("orders.>", Queue("ordersx"), False),
        (">", Queue("a.b"), True),
        ("*.>", Topic("a"), True),
    ],
)
def test_pattern_of_destinations_is_as_in_activemq(pattern: str, destination: Any, fits: bool) -> None:
    assert policy.matches(pattern, destination) is fits


@pytest.mark.parametrize(
    ("name", "limit"),
    [("orders.eu", 1), ("orders.us", 2), ("orders.us.new", 3), ("bills", 4), ("x", 5)],
)
@pytest.mark.parametrize("scheme", ["amqp://h", "failover:(amqp://h,stomp://h)"])
def test_policy_of_a_destination_is_the_most_specific_that_fits(scheme: str, name: str, limit: int) -> None:
    url = (
        f"{scheme}?jms.redeliveryPolicy[orders.>].maximumRedeliveries=3&jms.redeliveryPolicy.maxRedeliveries=5"
        "&jms.redeliveryPolicy[orders.*].maxRedeliveries=2&jms.redeliveryPolicy%5Borders.eu%5D.maxRedeliveries=9"
        "&jms.redeliveryPolicy.outcome=REJECTED&jms.redeliveryPolicy[bills].outcome=ACCEPTED"
    )
    options = {
        "jms.redeliveryPolicy[orders.eu].maxRedeliveries": 1,
        "jms.redeliveryPolicy[queue://bills].maxRedeliveries": 4,
    }
    parsed = parse_url(url, options)
    redelivery = parsed.connection.redelivery_policy_for(Queue(name))
    assert redelivery == RedeliveryPolicy(max_redeliveries=limit, outcome=Outcome.REJECTED)
    assert all(member.connection == parsed.connection for member in parsed.members)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jms.redeliveryPolicy[].maxRedeliveries", "expected the name of a destination in the brackets"),
        ("jms.redeliveryPolicy[a..b].maxRedeliveries", "expected the name of a destination"),
        ("jms.redeliveryPolicy[a.>.b].maxRedeliveries", "> at the end"),
        ("jms.redeliveryPolicy[a].maxRedelivery", "did you mean jms.redeliveryPolicy.maxRedeliveries?"),
        ("jms.redeliveryPolicy[a.maxRedeliveries", "unknown option"),
    ],
)
def test_wrong_policy_of_a_destination_is_refused(name: str, message: str) -> None:
    with pytest.raises(InvalidURLException, match=re.escape(message)):
        parse_url("amqp://h", {name: 1})


@pytest.mark.parametrize(
    ("queue", "options", "prefetch", "optimize"),
    [
        ("orders?consumer.prefetchSize=1", "", 1, False),
        ("orders", "?jms.optimizeAcknowledge=false&jms.prefetchPolicy.all=1", 1, False),
        ("orders", "?jms.prefetchPolicy.all=10", 10, False),
    ],
    ids=["slow consumers", "each message matters", "fast consumer"],
)
def test_the_options_of_the_three_cases_mean_what_the_rule_says_s59(
    queue: str, options: str, prefetch: int, optimize: bool
) -> None:
    connection = parse_url(f"amqp://broker{options}").connection
    given = parse_destination_options(Queue(queue)).prefetch
    assert (given or connection.prefetch_policy.for_destination(Queue(queue))) == prefetch
    assert connection.optimize_acknowledge is optimize

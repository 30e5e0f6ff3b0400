"""Prefetch, redelivery limit, presettlement."""

from __future__ import annotations

from typing import Any

import pytest

from pyjmsack.destination import Queue, TemporaryQueue, Topic
from pyjmsack.types import Outcome
from pyjmsack.uri import (
    BrokerUrl,
    PrefetchPolicy,
    PresettlePolicy,
    RedeliveryPolicy,
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

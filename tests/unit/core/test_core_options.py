"""Options of the URL whose effect is in the core, seen there."""

from __future__ import annotations

from typing import Any

import pytest
from core_fakes import Bench

from pyjmsack.destination import Queue, Topic
from pyjmsack.spi.resources import Subscription
from pyjmsack.types import AckMode

TRANSACTED = AckMode.SESSION_TRANSACTED


@pytest.mark.option("jms.connectionIDPrefix", "core")
def test_the_connection_id_in_message_ids_begins_with_the_prefix_of_the_url() -> None:
    producer = Bench("jms.connectionIDPrefix=shop-").producer()
    message, _ = producer.prepare(lambda error: None, "x", None, None, None, None, None)
    assert message.message_id is not None
    assert message.message_id.startswith("shop-")


@pytest.mark.option("jms.warnAboutUnstartedConnectionTimeout", "core")
@pytest.mark.parametrize(("option", "delays"), [("", [0.5]), ("700", [0.7]), ("-1", [])])
def test_a_connection_that_is_not_started_is_warned_about_after_the_time_of_the_url(
    option: str, delays: list[float]
) -> None:
    bench = Bench(*[f"jms.warnAboutUnstartedConnectionTimeout={option}"] * bool(option))
    bench.connection.channel.started = False
    bench.consumer()
    assert [delay for delay, _ in bench.runtime.timers] == delays


@pytest.mark.option("jms.prefetchPolicy.all", "core")
@pytest.mark.option("jms.prefetchPolicy.queuePrefetch", "core")
@pytest.mark.option("jms.prefetchPolicy.topicPrefetch", "core")
@pytest.mark.option("jms.prefetchPolicy.queueBrowserPrefetch", "core")
@pytest.mark.option("jms.prefetchPolicy.maxPrefetchSize", "core")
@pytest.mark.parametrize(
    ("options", "prefetch"),
    [
        ("jms.prefetchPolicy.all=2000", (2000, 2000, 2000)),
        ("jms.prefetchPolicy.all=7&jms.prefetchPolicy.queuePrefetch=3", (3, 7, 1000)),
        ("jms.prefetchPolicy.all=7&jms.prefetchPolicy.topicPrefetch=3", (7, 3, 1000)),
        ("jms.prefetchPolicy.all=7&jms.prefetchPolicy.queueBrowserPrefetch=3000", (7, 7, 3000)),
        ("jms.prefetchPolicy.maxPrefetchSize=5", (5, 5, 1000)),
    ],
)
def test_each_kind_of_consumer_has_the_prefetch_of_its_option(options: str, prefetch: tuple[int, int, int]) -> None:
    """S49; a browser has no less than 1000 (S134)."""
    bench = Bench(options)
    session = bench.session()
    kinds: list[tuple[Any, bool]] = [(Queue("q"), False), (Topic("t"), False), (Queue("q"), True)]
    consumers = [
        bench.run(session.create_consumer(destination, None, False, browser=browser)) for destination, browser in kinds
    ]
    assert tuple(consumer.info.prefetch for consumer in consumers) == prefetch


@pytest.mark.option("jms.prefetchPolicy.durableTopicPrefetch", "core")
@pytest.mark.option("jms.prefetchPolicy.optimizeDurableTopicPrefetch", "core")
@pytest.mark.parametrize(
    ("options", "prefetch"),
    [
        ("jms.prefetchPolicy.durableTopicPrefetch=7", (7, 7)),
        ("jms.prefetchPolicy.durableTopicPrefetch=7&jms.prefetchPolicy.optimizeDurableTopicPrefetch=3", (3, 7)),
    ],
)
def test_a_durable_subscriber_has_the_prefetch_of_its_options(options: str, prefetch: tuple[int, int]) -> None:
    """S49: another one in AUTO sessions."""
    bench = Bench(options)
    subscription = Subscription("s", durable=True, shared=True)
    found = []
    for mode in (AckMode.AUTO_ACKNOWLEDGE, AckMode.CLIENT_ACKNOWLEDGE):
        steps = bench.session(mode).create_consumer(Topic("t"), None, subscription=subscription)
        found.append(bench.run(steps).info.prefetch)
    assert tuple(found) == prefetch


@pytest.mark.option("producer.windowSize", "core")
def test_a_producer_has_the_window_of_its_destination() -> None:
    """S65: a second send waits, and none waits if the destination says 0."""
    bench = Bench("jms.producerWindowSize=1000000")
    full = []
    for size in (1, 0):
        producer = bench.run(bench.session().create_producer(Queue(f"q?producer.windowSize={size}")))
        producer.submit(producer.prepare(lambda error: None, "x", None, None, None, None, None)[1])
        full.append(producer.window.full)
    assert full == [True, False]


@pytest.mark.option("jms.presettlePolicy.presettleAll", "core")
@pytest.mark.option("jms.presettlePolicy.presettleProducers", "core")
@pytest.mark.option("jms.presettlePolicy.presettleTopicProducers", "core")
@pytest.mark.option("jms.presettlePolicy.presettleQueueProducers", "core")
@pytest.mark.option("jms.presettlePolicy.presettleTransactedProducers", "core")
@pytest.mark.parametrize(
    ("option", "settled"),
    [
        ("presettleAll", {"queue", "topic", "transacted"}),
        ("presettleProducers", {"queue", "topic", "transacted"}),
        ("presettleTopicProducers", {"topic"}),
        ("presettleQueueProducers", {"queue", "transacted"}),
        ("presettleTransactedProducers", {"transacted"}),
    ],
)
def test_sends_of_a_producer_are_presettled_as_the_policy_says(option: str, settled: set[str]) -> None:
    """S37."""
    bench = Bench(f"jms.presettlePolicy.{option}=true")
    session, transacted = bench.session(), bench.session(TRANSACTED)
    producers = {
        "queue": bench.run(session.create_producer(Queue("q"))),
        "topic": bench.run(session.create_producer(Topic("t"))),
        "transacted": bench.run(transacted.create_producer(Queue("q"))),
    }
    assert {name for name, producer in producers.items() if producer.info.presettled} == settled


@pytest.mark.option("jms.presettlePolicy.presettleConsumers", "core")
@pytest.mark.option("jms.presettlePolicy.presettleTopicConsumers", "core")
@pytest.mark.option("jms.presettlePolicy.presettleQueueConsumers", "core")
@pytest.mark.parametrize(
    ("option", "settled"),
    [
        ("presettleConsumers", {"queue", "topic"}),
        ("presettleTopicConsumers", {"topic"}),
        ("presettleQueueConsumers", {"queue"}),
    ],
)
def test_a_consumer_is_presettled_as_the_policy_says(option: str, settled: set[str]) -> None:
    """S36."""
    bench = Bench(f"jms.presettlePolicy.{option}=true")
    session = bench.session()
    consumers = {
        "queue": bench.run(session.create_consumer(Queue("q"), None, False)),
        "topic": bench.run(session.create_consumer(Topic("t"), None, False)),
    }
    assert {name for name, consumer in consumers.items() if consumer.info.presettled} == settled

"""What ``explain`` says is what the rules say; the crash table is proved on brokers by tests/contract/test_crash.py."""

from __future__ import annotations

import pytest

from pyjmsack import Destination, IllegalStateException, Queue, Topic
from pyjmsack.explain import Explanation, explain

URL = "amqp://localhost"
OPTIMIZED = f"{URL}?jms.optimizeAcknowledge=true"
QUEUE = Queue("q?consumer.prefetchSize=10")


def said(explanation: Explanation, about: str) -> str:
    return next(fact.text for fact in explanation.facts if fact.about == about)


@pytest.mark.parametrize(
    ("url", "mode", "destination", "acknowledged", "again"),
    [
        (URL, 1, QUEUE, (), [4, 5]),
        (URL, 3, QUEUE, (), [4, 5]),
        (OPTIMIZED, 1, Queue("q?consumer.prefetchSize=3"), (), [4, 5]),  # 0.65 of 3 make batches of 2
        (OPTIMIZED, 1, Queue("q?consumer.prefetchSize=4"), (), [3, 4, 5]),  # batches of 3
        (OPTIMIZED, 1, QUEUE, (), [0, 1, 2, 3, 4, 5]),
        (URL, 3, Topic("t?consumer.prefetchSize=6"), (), [3, 4, 5]),
        (URL, 2, QUEUE, (), [0, 1, 2, 3, 4, 5]),
        (URL, 2, QUEUE, (2,), [3, 4, 5]),
        (URL, 0, QUEUE, (0, 1), [2, 3, 4, 5]),
        (URL, 101, QUEUE, (0, 2), [1, 3, 4, 5]),
        (URL, 4, QUEUE, (0, 2), [1, 3, 4, 5]),
        (URL, 257, QUEUE, (), []),
        (URL, 100, Queue("q?consumer.prefetchSize=4"), (), [4, 5]),
    ],
)
def test_what_comes_again_of_six_when_four_were_received(
    url: str, mode: int, destination: Destination, acknowledged: tuple[int, ...], again: list[int]
) -> None:
    assert explain(url, mode, destination).comes_again(6, 4, acknowledged) == again


def test_options_change_what_is_said() -> None:
    assert "comes again" in said(explain(URL, 1, QUEUE), "a listener raises")
    assert "the next commit() covers it" in said(explain(URL, 0, QUEUE), "a listener raises")
    assert "rolled back" in said(explain(f"{URL}?jms.rollbackOnListenerError=true", 0, QUEUE), "a listener raises")
    assert "after 7 messages were consumed, or 0.3 s" in said(explain(OPTIMIZED, 1, QUEUE), "batches")
    assert said(explain(URL, 1, Queue("q?consumer.prefetchSize=0")), "prefetch").startswith("none")


def test_a_pair_without_atomic_transactions_says_so_s88() -> None:
    stomp = "stomp://localhost"
    assert "confirmed the commit" in said(explain(stomp, 0, QUEUE, "artemis"), "not atomic")
    for url, broker in ((stomp, "classic-6"), (URL, "artemis")):
        assert all(fact.about != "not atomic" for fact in explain(url, 0, QUEUE, broker).facts)


def test_a_failover_url_is_as_weak_as_the_weakest_of_its_members_s88() -> None:
    mixed = explain("failover:(amqp://a,stomp://b)", 0, QUEUE, "artemis")
    assert mixed.protocol == "amqp or stomp"
    assert "confirmed the commit" in said(mixed, "not atomic")
    assert all(fact.about != "not atomic" for fact in explain("failover:(amqp://a)", 0, QUEUE, "artemis").facts)


def test_contradictions_are_refused_s10() -> None:
    with pytest.raises(IllegalStateException, match="prefetch 0"):
        explain(OPTIMIZED, 1, Queue("q?consumer.prefetchSize=0"))


def test_a_consumer_at_artemis_is_told_of_mix_ups_where_they_can_happen() -> None:
    """Several messages ahead, over AMQP, at Artemis or a broker that is not known yet; the option prevents them."""
    assert "amqp.singleCredit=always" in said(explain(URL, 2, QUEUE, "artemis"), "mix-ups at Artemis")
    assert "no danger" in said(explain(f"{URL}?amqp.singleCredit=always", 2, QUEUE, "artemis"), "mix-ups at Artemis")
    for url, queue, broker in [
        (URL, QUEUE, "classic-6"),
        ("stomp://localhost:61613", QUEUE, "artemis"),
        (URL, Queue("q?consumer.prefetchSize=1"), "artemis"),
    ]:
        assert all(fact.about != "mix-ups at Artemis" for fact in explain(url, 2, queue, broker).facts)

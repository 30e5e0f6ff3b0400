"""Names of kombu as names of JMS; the keys that a binding covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("kombu", reason="the extra celery is not installed")

from pyjmsack import InvalidDestinationException
from pyjmsack.kombu.names import (
    ExchangeKind,
    Pattern,
    escaped,
    key_of,
    queue_name,
    subscription_name,
    topic_name,
    topic_pattern,
    unescaped,
)


@given(st.text(max_size=40))
def test_an_escaped_name_has_no_special_character_and_can_be_read_back(name: str) -> None:
    assert not {*escaped(name)} & {*",>*#?| \n\t"}
    assert "::" not in escaped(name)
    assert "." not in escaped(name, one_word=True)
    if not {"\ud800"} & {*name}:
        assert unescaped(escaped(name)) == name


def test_a_name_of_celery_stays_as_it_is() -> None:
    assert queue_name("celery@host.celery.pidbox") == "celery@host.celery.pidbox"
    assert queue_name("a::b?c") == "a~3a:b~3fc"


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidDestinationException, match="1001 characters; at most 1000 are allowed"):
        queue_name("x" * 1001)


def test_two_exchanges_never_share_a_topic() -> None:
    names = {topic_name(kind, exchange, key) for kind in ExchangeKind for exchange, key in (("a.b", "c"), ("a", "b.c"))}
    assert len(names) == 6
    assert subscription_name("q", "kombu.topic.a.#") == "q.kombu.topic.a.~23"


def test_a_wildcard_of_kombu_is_one_of_the_broker() -> None:
    assert topic_pattern("ev", "task.#.x", any_sequence="#") == "kombu.topic.ev.task.#.x"
    assert topic_pattern("ev", "task.#.x", any_sequence=">") == "kombu.topic.ev.task.>"
    assert topic_pattern("ev", "*.x", any_sequence=">") == "kombu.topic.ev.*.x"


def test_the_routing_key_is_read_from_the_topic() -> None:
    topic = topic_name(ExchangeKind.TOPIC, "a.b", "task.x")
    assert key_of(ExchangeKind.TOPIC, "a.b", topic) == "task.x"
    assert key_of(ExchangeKind.DIRECT, "d", f"VirtualTopic.{topic_name(ExchangeKind.DIRECT, 'd', 'k.1')}") == "k.1"
    assert key_of(ExchangeKind.FANOUT, "f", topic_name(ExchangeKind.FANOUT, "f", "")) == ""


@pytest.mark.parametrize(
    ("pattern", "covered", "others"),
    [
        ("task.*", ["task.a"], ["task", "task.a.b", "x.a"]),
        ("task.#", ["task", "task.a", "task.a.b"], ["x"]),
        ("#", ["", "a", "a.b"], []),
        ("#.z", ["z", "a.z", "a.b.z"], ["z.a"]),
        ("a.#.b.*", ["a.b.c", "a.x.y.b.c"], ["a.b", "a.c.d"]),
    ],
)
def test_a_binding_covers_the_keys_that_amqp_says(pattern: str, covered: list[str], others: list[str]) -> None:
    assert [key for key in (*covered, *others) if Pattern(pattern).matches(key)] == covered


def test_many_wildcards_take_no_more_than_the_product_of_the_words() -> None:
    assert not Pattern(".".join(["#", "x"] * 100)).matches(".".join(["a"] * 200))

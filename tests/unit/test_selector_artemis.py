"""Selectors as filters of Artemis (S147, S149, S187). What the filters select is tested in ``tests/contract``."""

from __future__ import annotations

import pytest

from pyjmsack.errors import UnsupportedFeatureException
from pyjmsack.selector.artemis import amqp_topic_filter, stomp_filter

NAMED = {
    "JMSPriority > 3 AND JMSTimestamp > 0": "AMQPriority > 3 AND AMQTimestamp > 0",
    "JMSDeliveryMode IN ('PERSISTENT', 'NON_PERSISTENT')": "AMQDurable IN ('DURABLE', 'NON_DURABLE')",
    "JMSMessageID = 'ID:1' OR JMSXGroupID LIKE 'g%'": "AMQUserID = 'ID:1' OR AMQGroupID LIKE 'g%'",
    "a = 'JMSPriority' AND \"JMSPriority\" = 1": "a = 'JMSPriority' AND \"JMSPriority\" = 1",
    "/* it's */ JMSPriority > 3 -- it's\n": "/* it's */ AMQPriority > 3 -- it's\n",
    "a = 1 /* JMSPriority": "a = 1 /* JMSPriority",
    "5 --JMSPriority > 10 OR JMSPriority = 4": "5 --AMQPriority > 10 OR AMQPriority = 4",
    "kind = 'PERSISTENT'": "kind = 'PERSISTENT'",
    "MyJMSPriority = 1 AND JMSType = 'T' AND JMSCorrelationID = 'c' AND JMSXGroupSeq = 1": None,
}


@pytest.mark.parametrize("selector", NAMED)
def test_headers_get_the_names_of_artemis_and_nothing_else_changes(selector: str) -> None:
    """S187: an unknown name selects nothing, and no error says so."""
    named = NAMED[selector] or selector
    assert amqp_topic_filter(selector, no_local=False) == named
    assert stomp_filter(selector, no_local=False) == f"convert_string_expressions:{named}"
    assert amqp_topic_filter(named, no_local=False) == named


@pytest.mark.parametrize(
    ("selector", "sent"),
    [
        ("a = 1 or b = 2", "(a = 1 or b = 2)"),
        ("a = 1 /* it's */ OR b = 'x'", "(a = 1 /* it's */ OR b = 'x')"),
        ("convert_string_expressions:a = 1 OR b = 2", "convert_string_expressions:(a = 1 OR b = 2)"),
        ("a = ' OR ' AND b BETWEEN 1 AND 2", "a = ' OR ' AND b BETWEEN 1 AND 2"),
        ("a = ')' AND (b = 1 OR b IN ('x', 'y'))", "a = ')' AND (b = 1 OR b IN ('x', 'y'))"),
        ("(a = 1) OR (b = 2)", "((a = 1) OR (b = 2))"),
        ("a = 3 --0 OR b = 2", "(a = 3 --0 OR b = 2)"),
        ("a = 3 -- 0 OR\n", "a = 3 -- 0 OR\n"),
    ],
)
def test_with_no_local_only_an_or_gets_parentheses_over_amqp(selector: str, sent: str) -> None:
    """S147: the broker appends ``AND`` and its own condition. S142: another text would empty a subscription."""
    assert amqp_topic_filter(selector, no_local=True) == sent
    assert amqp_topic_filter(selector, no_local=False) == selector


TEXTS = "a = 'x > 1' OR NOT (b IN ('1', 'TRUE')) AND JMSMessageID LIKE 'ID:%' ESCAPE '!' AND c IS NULL AND d <> e"
NO_TEXTS = ["a > 1", "a = 1", "a < b", "a = TRUE", "a = false", "a BETWEEN 1 AND 2", "a + b = c", "a = -b", "a / b = c"]


def test_with_no_local_texts_are_compared_without_a_prefix_over_stomp() -> None:
    """S147: the broker refused the prefix, and ended the connection of everybody."""
    assert stomp_filter(TEXTS, no_local=True) == f"({TEXTS.replace('JMSMessageID', 'AMQUserID')})"


@pytest.mark.parametrize("selector", [*NO_TEXTS, "convert_string_expressions:a = 'x'"])
def test_with_no_local_nothing_but_texts_is_compared_over_stomp(selector: str) -> None:
    """S147: without the prefix it would select nothing."""
    with pytest.raises(UnsupportedFeatureException, match="S147"):
        stomp_filter(selector, no_local=True)

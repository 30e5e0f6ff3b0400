"""Selectors as the client checks them (S187, S188)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyjmsack import InvalidSelectorException
from pyjmsack.selector import MAX_LENGTH, check_selector
from pyjmsack.selector.grammar import MAX_DEPTH

GOOD = [
    "urgent",
    "a AND b OR NOT c",
    "a and B oR nOt c",
    "not (a = 1 or b = 2)",
    "NOT (a > 1) AND NOT NOT b OR NOT TRUE",
    "(a > 1) = TRUE",
    "ANDy = 1 AND orchid = 2 AND nothing = 3",
    "$b_1 <> 0x1FL AND größe = 1",
    "a >= -1 AND a <= +1 AND a < 1 AND a > 1 AND a <> 1",
    "a - 1 = 2 AND b / 2 = 1 AND -a * 2 + 3 >= .5e3",
    "a = 5. AND a = 1.5E-3 AND a = 1e5 AND a = 010 AND a = 0 AND a = 7l",
    "a = 9223372036854775807 AND a <> -9223372036854775808",
    "a NOT BETWEEN 1 AND b + 2 AND a BETWEEN 1 AND 2",
    "a IN ('x') AND b NOT IN ('x', 'y''z', '')",
    "a LIKE 'x!_%' ESCAPE '!' AND b NOT LIKE '' AND c LIKE '_' ESCAPE ''''",
    "a IS NULL OR b IS NOT NULL",
    "a = 'it''s' AND b = '' AND c = 'AND'",
    "a = 'text' OR a = 1",
    "'text' = 1",
    '"m.x-opt-priority" > 4 AND "properties.a b" = 1',
    "JMSPriority > 4 AND JMSType = 'x' AND JMSDeliveryMode = 'PERSISTENT' AND JMSTimestamp > 0",
    "JMSMessageID IS NULL AND JMSCorrelationID LIKE 'x' AND JMSXGroupID = 'g' AND JMS_AMQP_TTL = 1",
    "a = 1 -- one\n AND /* and * two */ b = 2",
    "convert_string_expressions:a > '4'",
    "hyphenated_props:a-b = 1",
    "(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH,
    " OR ".join(["a = 1"] * 5000),
]


@pytest.mark.parametrize("text", GOOD, ids=lambda text: text[:30])
def test_what_jms_and_artemis_allow_passes(text: str) -> None:
    """S187, S188."""
    check_selector(text)


BAD = [
    ("a BETWEN 1 AND 2", 3, "did you mean BETWEEN for BETWEN"),
    ("a LIK 'x'", 3, "did you mean LIKE for LIK"),
    ("NTO a = 1", 5, "did you mean NOT for NTO"),
    ("a = 'x", 5, "closing '"),
    ('"m.x = 1', 1, 'closing "'),
    ("a != 1", 3, "'!' is no part"),
    ("a =", 4, "found the end"),
    ("(a = 1", 7, r"expected .*'\)'"),
    ("a = 1)", 6, "expected the end"),
    ("a = 1 b", 7, "found 'b'"),
    ("AND = 1", 1, "found 'AND'"),
    ("a IN ()", 7, "expected a 'string'"),
    ("a IN (1)", 7, "expected a 'string'"),
    ("a LIKE 1", 8, "expected a 'string'"),
    ("a LIKE 'x' ESCAPE 'ab'", 19, "one character"),
    ("5 LIKE 'x'", 1, "LIKE needs a name, not a number"),
    ("(a + 1) IN ('x')", 1, "IN needs a name, not a number"),
    ("'a' IS NULL", 1, "IS NULL needs a name, not a string"),
    ("a > 'x'", 5, "> needs a number, not a string"),
    ("TRUE <= a", 1, "<= needs a number, not a boolean"),
    ("a BETWEEN 1 AND 'x'", 17, "BETWEEN needs a number, not a string"),
    ("a + 'x' = 1", 5, r"\+ needs a number"),
    ("-'x' = a", 2, "- needs a number"),
    ("5", 1, "a selector needs a boolean, not a number"),
    ("a = 1 AND 'x'", 11, "AND needs a boolean, not a string"),
    ("a = 1 or 2", 10, "OR needs a boolean, not a number"),
    ("NOT 5", 5, "NOT needs a boolean"),
    ("NOT a = 1", 5, r"write NOT \(\.\.\.\)"),
    ("b AND NOT NOT a + 1 > 1 OR c", 15, "part of the first operand"),
    ("not a BETWEEN 1 AND 2", 5, "part of the first operand"),
    ("NOT a LIKE 'x'", 5, "part of the first operand"),
    ("NOT a NOT IN ('x')", 5, "part of the first operand"),
    ("NOT a IS NULL", 5, "part of the first operand"),
    ("JMSDestination = 'q'", 1, "JMSDestination: of the headers"),
    ("a = 1 AND JMSPrioriti = 1", 11, "did you mean JMSPriority"),
    ("a = 09", 6, "found '9'"),
    ("a = 9223372036854775809", 5, "64 bits"),
    ("a = " + "9" * 5000, 5, "64 bits"),
    ("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), 1, "nested more than"),
    ("(" * 10_000 + "a" + ")" * 10_000, 10_000 - MAX_DEPTH, "nested more than"),
    ("NOT " * 10_000 + "a", 4 * (10_000 - MAX_DEPTH - 1) + 1, "nested more than"),
    ("(" * 30_000, 30_001, "found the end"),
]


@pytest.mark.parametrize(("text", "column", "says"), BAD, ids=[text[:30] for text, _, _ in BAD])
def test_what_is_wrong_is_refused_with_its_place(text: str, column: int, says: str) -> None:
    """S187: the caret stands under the place; hostile texts end the same way."""
    with pytest.raises(InvalidSelectorException, match=says) as caught:
        check_selector(text)
    first, line, caret = str(caught.value).split("\n")
    assert first.startswith(f"selector, column {column}: ")
    assert line[len(caret) - 1 :][:1] == text[column - 1 :][:1]


def test_a_selector_of_a_megabyte_is_refused_unread() -> None:
    with pytest.raises(InvalidSelectorException, match=f"1000000 characters; expected at most {MAX_LENGTH}"):
        check_selector("a" * 1_000_000)


WORDS = ["a", "'x'", "1", "(", ")", "AND", "NOT", "=", "<", "LIKE", "IN", "BETWEEN", "IS", "NULL", ",", "-", '"', "/*"]


@given(st.lists(st.sampled_from(WORDS)).map(" ".join) | st.text())
def test_any_text_passes_or_is_an_invalid_selector(text: str) -> None:
    """No other exception comes out."""
    with suppress(InvalidSelectorException):
        check_selector(text)

"""Selectors as the client checks them (S187, S188)."""

from __future__ import annotations

import time
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
    "$b_1 <> 0x1FL AND \"größe\" = 'größe'",
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
    ("a != 1", 3, "'!' is not a part"),
    ("a =", 4, "found the end"),
    # over STOMP the broker ends the connection with its refusal
    ("größe = 1", 3, "'ö' is not a part"),
    ("a \u0131s NULL", 3, "is not a part"),
    ("a = 1 AND b\u0661 = 1", 12, "is not a part"),
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
    ("b AND NOT NOT a + 1 > 1 OR c", 15, "NOT to the first operand alone"),
    ("not a BETWEEN 1 AND 2", 5, "NOT to the first operand alone"),
    ("NOT a LIKE 'x'", 5, "NOT to the first operand alone"),
    ("NOT a NOT IN ('x')", 5, "NOT to the first operand alone"),
    ("NOT a IS NULL", 5, "NOT to the first operand alone"),
    ("JMSDestination = 'q'", 1, "JMSDestination: expected one of the headers"),
    ("a = 1 AND JMSPrioriti = 1", 11, "did you mean JMSPriority"),
    ("a = 09", 6, "found '9'"),
    ("a = 9223372036854775809", 5, "64 bits"),
    ("a = " + "9" * 5000, 5, "64 bits"),
    ("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), 1, "levels of nesting"),
    ("(" * 10_000 + "a" + ")" * 10_000, 10_000 - MAX_DEPTH, "levels of nesting"),
    ("NOT " * 10_000 + "a", 4 * (10_000 - MAX_DEPTH - 1) + 1, "levels of nesting"),
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
    with pytest.raises(InvalidSelectorException, match=f"expected at most {MAX_LENGTH} characters, not 1000000"):
        check_selector("a" * 1_000_000)


WORDS = ["a", "'x'", "1", "(", ")", "AND", "NOT", "=", "<", "LIKE", "IN", "BETWEEN", "IS", "NULL", ",", "-", '"', "/*"]


@given(st.lists(st.sampled_from(WORDS)).map(" ".join) | st.text())
def test_any_text_passes_or_is_an_invalid_selector(text: str) -> None:
    """No other exception comes out."""
    with suppress(InvalidSelectorException):
        check_selector(text)


QUADRATIC = {
    "signs": ("a=1", "-", ""),
    "signs after a line": ("a=1\n", "-", ""),
    "plus and minus": ("a=1", "-+", "1"),
    "subtractions": ("a=1", "--1", ""),
    "spaced signs": ("a=1", "- -", ""),
    "ended comments": ("a=1", "--\n", ""),
    "open comments": ("a=1", "/*", ""),
    "starry comment": ("a=1 /*", "*", ""),
    "stars and slashes": ("a=1 ", "/**", ""),
    "quotes": ("a='", "'", ""),
    "doubled quotes": ("a='", "''", ""),
    "quoted names": ("", '"', ""),
    "quotes in turn": ("a=", "'\"", ""),
    "opening": ("", "(", "a=1"),
    "closing": ("a=1", ")", ""),
    "both": ("", "(", "a=1" + ")" * 100),
    "NOT": ("", "NOT ", "a"),
    "not in lines": ("", "not\n", "a"),
    "zeros": ("a=", "0", ""),
    "digits": ("a=", "9", ""),
    "octal and not": ("a=", "08", ""),
    "hexadecimal": ("a=0x", "0x", ""),
    "points": ("a=", "1.", ""),
    "exponents": ("a=", "1e", ""),
    "signed exponents": ("a=", "1e-", ""),
    "a name": ("JMS", "a", "=1"),
    "dollars": ("", "$", "=1"),
    "spaces": ("a=1", " ", "x"),
    "line ends": ("a=1", "\n", "x"),
    "returns": ("a=1", "\r--", ""),
    "conditions": ("a=1", " AND a=1", ""),
    "list": ("a IN ('x'", ",'x'", ")"),
    "open list": ("a IN ('x'", ",'x'", ""),
    "likes": ("a=1", " OR a LIKE 'x' ESCAPE 'y'", ""),
    "nothing known": ("a=1", "?", ""),
}


def cost(text: str) -> float:
    """Return the lesser of two times, in seconds of this thread alone."""
    times = []
    for _ in range(2):
        start = time.thread_time()
        with suppress(InvalidSelectorException):
            check_selector(text)
        times.append(time.thread_time() - start)
    return min(times)


@pytest.mark.parametrize("name", QUADRATIC)
def test_no_selector_takes_more_than_its_length_is_worth(name: str) -> None:
    """S187: what is four times as long may take some four times as long; if it were quadratic it would take 16."""
    start, repeated, end = QUADRATIC[name]
    short, long = (start + repeated * (size // len(repeated)) + end for size in (4_000, 16_000))
    assert cost(long) < 9 * cost(short) + 0.005


@pytest.mark.parametrize("minus", ["a = 1--1", "a = b - -1", "a = '--' OR a = 1e-5 - 1.5e-5", "a LIKE '-' ESCAPE '-'"])
def test_a_minus_that_begins_no_comment_is_a_sign(minus: str) -> None:
    """As the brokers read it: a comment ends with its line."""
    check_selector(minus)
    check_selector(f"b = 1 AND -- {minus}\n {minus}")


def test_the_sign_that_stands_for_a_minus_inside_is_no_sign_outside() -> None:
    check_selector("a = '\ue000 - \ue001'")
    with pytest.raises(InvalidSelectorException, match=r"is not a part of a selector"):
        check_selector("a = 1 \ue000 1")
    with pytest.raises(InvalidSelectorException, match=r"- needs a number"):
        check_selector("a = 1 - 'x'")
    with pytest.raises(InvalidSelectorException, match=r"found '-'"):
        check_selector("a IS -1")


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\v"])
def test_only_the_blanks_of_the_brokers_are_blanks(blank: str) -> None:
    """S187: over STOMP a broker ends the connection with its refusal."""
    with pytest.raises(InvalidSelectorException, match="column 2"):
        check_selector(f"a{blank}= 1")

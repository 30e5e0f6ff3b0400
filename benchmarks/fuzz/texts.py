"""Selectors and broker URLs."""

from __future__ import annotations

import random

from benchmarks.fuzz.bench import Input
from pyjmsack.errors import InvalidSelectorException, InvalidURLException, UnsupportedFeatureException
from pyjmsack.selector import check_selector
from pyjmsack.uri import parse_url

__all__ = ["run_selector", "run_url", "selector_input", "url_input"]

_WORDS = [
    "a",
    "JMSPriority",
    "'x'",
    "5",
    "1.5e3",
    "0x1F",
    "TRUE",
    "NULL",
    "NOT",
    "AND",
    "OR",
    "IN",
    "(",
    ")",
    ",",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "'\\'",
    "IS",
    "=",
    "<>",
    "<",
    ">",
    "<=",
    ">=",
    "+",
    "-",
    "*",
    "/",
    '"m.x"',
    "$a",
    "_b",
    "ä",
    "'",
    '"',
    "\\",
    "convert_string_expressions:",
    "99999999999999999999",
    "1e999",
    ".5",
    "5.",
    "0777L",
    "@",
    "#",
]


def selector_input(dice: random.Random) -> Input:
    words = dice.choices(_WORDS, k=dice.choice([1, 5, 20, 100]))
    if dice.random() < 0.1:
        words = [dice.choice(["(", "NOT", "-", "a = 1 OR", "a + (", "a IN ('x',", "((", "a LIKE '%%%"])] * dice.choice(
            [50, 300, 3000]
        )
    return ["".join(word + dice.choice([" ", " ", ""]) for word in words).encode("utf-8", "surrogatepass")]


def run_selector(chunks: Input) -> None:
    try:
        check_selector.__wrapped__(chunks[0].decode("utf-8", "surrogatepass"))
    except InvalidSelectorException:
        return


_PARTS = [
    "amqp://",
    "amqps://",
    "stomp://",
    "failover:",
    "failover:(",
    "(",
    ")",
    ",",
    "localhost",
    "[::1]",
    "[",
    "]",
    ":",
    "5672",
    "99999",
    "-1",
    "?",
    "&",
    "=",
    "%",
    "%zz",
    "%00",
    "#",
    "/",
    "\\",
    "@",
    "u:p@",
    "jms.username=x",
    "jms.prefetchPolicy.all=5",
    "amqp.idleTimeout=²",
    "failover.nested.",
    "nested.",
    "transport.",
    "jms.",
    "amqp",
    "jms.redeliveryPolicy.maxRedeliveries=1",
    "stomp.heartBeat=1",
    "profile=activemq",
    "fan",
    "discovery:",
    "static:(",
    "vm://",
    "ä",
    "�",
]


def url_input(dice: random.Random) -> Input:
    parts = dice.choices(_PARTS, k=dice.choice([2, 5, 12, 40]))
    if dice.random() < 0.05:
        parts = [dice.choice(["(", "failover:(", "a,", "&a=1", "%25"])] * 3000
    return ["".join([dice.choice(["amqp://h", "failover:(amqp://h)", ""]), *parts]).encode("utf-8", "surrogatepass")]


def run_url(chunks: Input) -> None:
    try:
        repr(parse_url(chunks[0].decode("utf-8", "surrogatepass")))
    except (InvalidURLException, UnsupportedFeatureException):
        return

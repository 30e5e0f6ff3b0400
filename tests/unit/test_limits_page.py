"""The table of limits in docs/security.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pyjmsack.core import requestor
from pyjmsack.core import send_window as producer
from pyjmsack.message import codecs
from pyjmsack.message import object as object_message
from pyjmsack.providers.amqp import mechanisms, receiver, sasl, sizes, wire
from pyjmsack.providers.amqp.engine import idle
from pyjmsack.providers.failover import blame, brokers
from pyjmsack.providers.stomp import engine, heads
from pyjmsack.selector import MAX_LENGTH, grammar
from pyjmsack.uri import OPTIONS

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
ROWS = re.findall(r"^\| (.+?) \| (.+?) \| ?(.*?) ?\|$", PAGE.read_text(), re.MULTILINE)

CONSTANTS = {
    "messages that come without credit": receiver._OVERDRAFT,
    "seconds until the broker is asked whether": f"{engine._PROBE:g}",
    "nested values in a message": wire.MAX_DEPTH,
    "nested values of an object message": object_message.MAX_DEPTH,
    "elements without bytes": wire.MAX_EMPTY_ELEMENTS,
    "bytes that a codec": codecs.MAX_BYTES,
    "entries of a `failover-server-list`": brokers.MOST,
    "characters of the file": brokers.MOST_CHARACTERS,
    "correlation ids of callers who gave up": requestor.GIVEN_UP,
    "a SASL frame that arrives": sasl._MAX_FRAME,
    "a SASL frame that is sent": sizes.SASL_LIMIT,
    "rounds of hashing": f"{mechanisms.LEAST_ITERATIONS:,} to {mechanisms.MOST_ITERATIONS:,}",
    "client id and host name": sizes.OPEN_LIMIT,
    "a header line of CONNECT": heads.CONNECT_LINE,
    "a selector, in characters": MAX_LENGTH,
    "nested parentheses": grammar.MAX_DEPTH,
    "sends of a producer": producer.WINDOW,
    "checks of the idle time-outs": round(1 / idle.LEAST_INTERVAL),
    "connections in a row over": blame.MOST_LOSSES,
    "connections in a row that": blame.MOST_SILENT_LOSSES,
}


@pytest.mark.parametrize("what", CONSTANTS)
def test_a_fixed_limit_is_that_of_the_code(what: str) -> None:
    found = [limit for name, limit, _ in ROWS if name.startswith(what)]
    value = CONSTANTS[what]
    assert found == [value if isinstance(value, str) else f"{value:,}"]


@pytest.mark.parametrize(
    ("limit", "option"),
    [
        (limit, option)
        for _, limit, cell in ROWS
        for option in re.findall(r"`([a-z]+\.\w+(?:\.\w+)?)`", cell)
        if option != "jms.producerWindowSize"  # it counts bytes, beside a limit of messages that is fixed
    ],
)
def test_an_option_has_the_default_that_the_page_says(limit: str, option: str) -> None:
    assert re.search(r"[\d,]+(?= ms)|^[\d,]+", limit)[0].replace(",", "") == OPTIONS[option].default


def test_the_size_of_an_attach_is_on_the_page() -> None:
    assert f"{sizes.ATTACH_BESIDES} bytes more" in PAGE.read_text()

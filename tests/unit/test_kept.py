"""Caches are bounded in bytes, whoever chooses their keys."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pyjmsack.destination import Queue
from pyjmsack.errors import InvalidSelectorException
from pyjmsack.kept import LONGEST, kept
from pyjmsack.message import Message, TextMessage
from pyjmsack.message.portable import is_portable
from pyjmsack.providers.amqp.encode import encode
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.selector import check_selector
from pyjmsack.selector.artemis import own_names
from pyjmsack.spi.stomp_names import header_name, properties_of, types_line


def test_a_short_text_is_kept_and_a_long_one_is_not() -> None:
    asked: list[str] = []
    upper = kept(2)(lambda text: asked.append(text) or text.upper())
    long = "x" * (LONGEST + 1)
    assert [upper(text) for text in ("a", "a", long, long)] == ["A", "A", long.upper(), long.upper()]
    assert asked == ["a", long, long]


def forwarded(text: str) -> None:
    message: Message = TextMessage("m")
    message.reply_to = Queue(text)
    message._message_id = "ID:1"
    received = AmqpInbound(encode(message, text)).to_message()
    assert received.reply_to == received.destination == Queue(text)


def selected(text: str) -> None:
    with suppress(InvalidSelectorException):
        check_selector(f"a = '{text}'")


USES: dict[str, Callable[[str], Any]] = {
    "addresses": forwarded,
    "selectors": selected,
    "filters of Artemis": own_names,
    "content types": is_portable,
    "names of headers": header_name,
    "types of properties": lambda text: types_line({text: 1}),
    "types of received properties": lambda text: properties_of({"a": "1", "JMS_pyjmsack_types": f'{{"{text}":"int"}}'}),
}


@pytest.mark.parametrize("what", USES)
def test_what_is_remembered_of_long_texts_takes_no_memory(what: str) -> None:
    """A sender chooses a ``reply_to``, a content type or a name of any length, with each message another one."""
    use = USES[what]
    use("warm" * 1000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(60):
            use(f"{number:05}" * 8_000)
        kept_bytes = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept_bytes < 10 * 40_000

"""What ``pyjmsack tail`` remembers of the messages that it has shown."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace
from typing import Any, cast

from pyjmsack import TextMessage
from pyjmsack.cli.tail import _is_new, _key, render


def shown(text: str, identity: bytes | None) -> Any:
    message = TextMessage(text)
    message._delivery = cast(Any, SimpleNamespace(identity=lambda: identity))
    return message


def test_a_shown_message_costs_few_bytes_whatever_its_length() -> None:
    """A sender chooses the id, and of a message without one the whole body was remembered."""
    keys = [_key(shown("x" * 1_000_000, None)), _key(shown("x", b"i" * 1_000_000))]
    assert [len(key) for key in keys] == [16, 16]


def test_two_messages_with_one_id_are_both_shown() -> None:
    seen: OrderedDict[bytes, None] = OrderedDict()
    found = [_is_new(seen, _key(shown("x", identity))) for identity in (b"id 1, a", b"id 1, b", b"id 1, a")]
    assert found == [True, True, False]


def test_a_property_with_keys_that_json_cannot_hold_costs_no_other_message() -> None:
    """One such message, which any AMQP client can send, ended the command with a ``TypeError``."""
    message = TextMessage("evil")
    message._properties = {"k": {b"b": [{(): b"x"}], None: 1, 5: 2.5}}
    assert render("%b %p", message) == """evil {"k": {"b'b'": [{"()": "b'x'"}], "null": 1, "5": 2.5}}"""

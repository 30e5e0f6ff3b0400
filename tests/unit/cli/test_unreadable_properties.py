"""A message whose properties nobody can decode ends no command, and is no obstacle for the other messages (S160)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from pyjmsack import Message, MessageFormatException
from pyjmsack.cli import browse
from pyjmsack.cli.dlq.letters import Choice, cause_of, origin_of, place_of
from pyjmsack.cli.receive_output import RENDERERS, Directory, exact_line
from pyjmsack.cli.tail import render
from pyjmsack.cli.values import text_of
from pyjmsack.providers.amqp.inbound import AmqpInbound

_PROPERTIES = b"\x00\x53\x74\xc1\x04\x02\xa1\x01\x61"
"""A map with a key and no value."""
_BODY = b"\x00\x53\x77\xa1\x04text"


@pytest.fixture
def message() -> Message:
    inbound = AmqpInbound(_PROPERTIES + _BODY)
    made = inbound.to_message()
    made._delivery = inbound
    with pytest.raises(MessageFormatException):
        made.properties.get("a")
    return made


def test_the_message_is_shown_with_the_reason_in_place_of_its_properties(message: Message) -> None:
    document = json.loads(RENDERERS["jsonl"](message))
    assert (document["body"], document["properties"]) == ("text", {})
    assert "application-properties" in document["properties_unreadable"]
    assert "application-properties" in render("%p", message)
    assert render("%p{a} %b", message) == " text"
    assert "application-properties" in str(browse._cells(message)[4])
    assert text_of(message, "a") is None


def test_an_export_keeps_the_message_in_the_queue(message: Message) -> None:
    with pytest.raises(MessageFormatException):
        exact_line(message)


def test_a_file_gets_its_number_alone(message: Message, tmp_path: Path) -> None:
    Directory(tmp_path).write(message)
    assert [path.name for path in tmp_path.iterdir()] == ["000001.txt"]


def test_a_dead_letter_of_this_kind_has_no_origin_and_no_cause(message: Message) -> None:
    assert (origin_of(message, "DLQ"), place_of(message, "DLQ"), cause_of(message)) == (None, None, "")
    assert not Choice(origin="orders").fits(message, "DLQ")


def test_a_property_is_shown_without_a_look_at_all_others() -> None:
    """A sender chooses how many properties a message has, so reading all of them for each one takes quadratic time."""

    class Properties(dict[str, object]):
        def keys(self) -> NoReturn:  # a copy of the properties would call this
            raise AssertionError("all properties were read for one")

        __iter__ = keys

    def refuse(name: str) -> NoReturn:
        raise MessageFormatException(f"{name} is not a text")

    message: Any = SimpleNamespace(properties=Properties(a=[1], b=[2]), get_string_property=refuse)
    assert (text_of(message, "a"), text_of(message, "c")) == ("[1]", None)

"""Messages of kombu in JMS messages: as one JSON text, and as properties that Java reads."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")

from pyjmsack import (
    BytesMessage,
    InvalidDestinationException,
    Message,
    MessageFormatException,
    Queue,
    TemporaryQueue,
    TextMessage,
)
from pyjmsack.kombu.envelope import Outgoing, from_jms, reply_destination, to_envelope, to_jms

HEADERS: dict[str, Any] = {"task": "shop.add", "retries": 0, "a-b": [1, 2], "eta": None, "big": 1 << 70, "Null": "x"}


def sent(**changed: Any) -> dict[str, Any]:
    return {
        "body": "[[1, 2], {}]",
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": HEADERS,
        "properties": {"correlation_id": "c-1", "reply_to": "answers", "delivery_info": {}, **changed},
    }


def arrived(outgoing: Outgoing) -> Message:
    message: Message = TextMessage() if isinstance(outgoing.body, str) else BytesMessage()
    if isinstance(message, TextMessage):
        message.text = str(outgoing.body)
    else:
        message.data = outgoing.body  # type: ignore[attr-defined]
    for name, value in outgoing.properties.items():
        message.properties[name] = value
    message.correlation_id = outgoing.correlation_id
    message.reply_to = outgoing.reply_to
    return message


def test_an_envelope_comes_back_as_it_was() -> None:
    assert from_jms(arrived(to_envelope(sent()))) == sent()


def test_a_message_for_java_has_its_headers_as_properties_and_comes_back() -> None:
    outgoing = to_jms(sent(), sent()["body"])
    assert outgoing.properties["task"] == "shop.add"
    assert outgoing.properties["retries"] == 0
    assert not {"a-b", "eta", "big", "Null"} & outgoing.properties.keys()
    found = from_jms(arrived(outgoing))
    assert found["headers"] == HEADERS
    assert (found["body"], found["content-type"]) == (sent()["body"], "application/json")
    assert (found["properties"]["correlation_id"], found["properties"]["reply_to"]) == ("c-1", "answers")


def test_a_text_of_a_java_sender_with_a_task_is_json() -> None:
    message = TextMessage()
    message.text = "[[1], {}, {}]"
    message.properties["task"] = "shop.add"
    found = from_jms(message)
    assert (found["content-type"], found["content-encoding"]) == ("application/json", "utf-8")


@pytest.mark.parametrize("destination", [TemporaryQueue("t-1"), Queue("plain"), Queue("a,b")], ids=str)
def test_a_reply_finds_the_destination_that_the_sender_named(destination: Queue) -> None:
    message = TextMessage()
    message.text = ""
    message.reply_to = destination
    assert reply_destination(from_jms(message)["properties"]["reply_to"]) == destination


@pytest.mark.parametrize("kind", [Queue, TemporaryQueue])
def test_options_in_a_reply_to_are_part_of_its_name(kind: type[Queue]) -> None:
    """The result went to the queue of the name before the question mark, or the worker failed at an unknown option."""
    message = TextMessage("")
    message.reply_to = kind._literal("answers?consumer.nonsense=1")
    found = reply_destination(from_jms(message)["properties"]["reply_to"])
    assert (type(found), found.name, found.options) == (kind, "answers?consumer.nonsense=1", {})


@pytest.mark.parametrize("prefix", ["", "queue://", "temp-queue://"])
def test_a_name_of_a_queue_for_replies_that_is_too_long_is_refused(prefix: str) -> None:
    assert reply_destination(prefix + "x" * 1000).name == "x" * 1000
    with pytest.raises(InvalidDestinationException, match="1001 characters"):
        reply_destination(prefix + "x" * 1001)


@pytest.mark.parametrize(
    "encoding", [None, "", "utf-8", "UTF_8", "utf8", "us-ascii", "Binary", "ascii-8bit", "latin-1"]
)
def test_the_content_encodings_of_kombu_and_java_are_taken(encoding: str | None) -> None:
    message = {**sent(), "content-type": None, "content-encoding": encoding}
    assert from_jms(arrived(to_envelope(message)))["content-encoding"] == encoding


@pytest.mark.parametrize("content_type", [None, "", "application/data", "application/text", "text/plain"])
@pytest.mark.parametrize(
    "encoding", ["bz2", "ZIP", "punycode", "hex", "idna", "unicode_escape", pytest.param("e" * 1_000_000, id="long")]
)
def test_a_content_encoding_that_is_no_character_set_is_refused(content_type: str | None, encoding: str) -> None:
    """Python unpacked a body of 356 bytes to 400 MB, and kept the names of unknown encodings."""
    message = {**sent(), "content-type": content_type, "content-encoding": encoding}
    with pytest.raises(MessageFormatException, match=r"the content encoding .{,60} is not allowed"):
        from_jms(arrived(to_envelope(message)))
    java = BytesMessage(b"x")
    java.properties.update({"kombu_content_type": content_type, "kombu_content_encoding": encoding})
    with pytest.raises(MessageFormatException, match=r"the content encoding .{,60} is not allowed"):
        from_jms(java)


def test_a_content_type_with_a_decoder_may_have_any_content_encoding() -> None:
    """kombu does not look it up."""
    message = {**sent(), "content-encoding": "own"}
    assert from_jms(arrived(to_envelope(message))) == message


@pytest.mark.parametrize(
    ("property_name", "text"), [("kombu_envelope", '{{"properties": {}}}'), ("kombu_headers", '{{"a": {}}}')]
)
def test_json_with_too_many_values_is_refused_before_it_is_read(property_name: str, text: str) -> None:
    """No other thread runs while Python reads it."""
    many = text.format("[" + "[]," * 1_000_000 + "[]]")
    message = TextMessage(many)
    message.properties[property_name] = many
    with pytest.raises(MessageFormatException, match="values, more than the limit of 2,000,000"):
        from_jms(message)


@pytest.mark.parametrize(
    ("text", "why"),
    [("[]", "no JSON object"), ("{}", "no JSON object"), ('{"properties": 1}', "no JSON object"), ("{", "Expecting")],
)
def test_an_envelope_that_is_none_is_refused(text: str, why: str) -> None:
    message = TextMessage()
    message.text = text
    message.properties["kombu_envelope"] = 1
    with pytest.raises(ValueError, match=why):
        from_jms(message)

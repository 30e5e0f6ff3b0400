"""Headers, acknowledgement, body access and read-only states of messages."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pyjmsack.destination import Queue, TemporaryTopic, Topic
from pyjmsack.errors import (
    IllegalStateException,
    MessageFormatException,
    MessageNotWriteableException,
    UnsupportedFeatureException,
)
from pyjmsack.message import BytesMessage, MapMessage, Message, ObjectMessage, StreamMessage, TextMessage, to_message
from pyjmsack.types import DeliveryMode, Outcome

NOON = datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=timezone.utc)


class Lazy:
    """Content of a received message that counts what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.broken = False

    def load_header(self, slot: str) -> Any:
        self.asked.append(slot)
        return f"wire {slot}"

    def load_headers(self, message: Any) -> None:
        self.asked.append("headers")
        message._correlation_id = "wire _correlation_id"
        if self.broken:
            raise MessageFormatException("not a type")
        message._type = "wire _type"

    def load_properties(self) -> dict[str, Any]:
        self.asked.append("properties")
        return {"a": 1, "not valid": 2}


class Ack:
    def __init__(self, allows_outcome: bool = True) -> None:
        self.allows_outcome = allows_outcome

    def acknowledge(self, message: Message) -> str:
        return "acknowledged"

    def settle(self, message: Message, outcome: Outcome) -> Outcome:
        return outcome


def received(kind: type[Message] = TextMessage, body: Any = "text") -> tuple[Any, Lazy]:
    message = kind.__new__(kind)
    message._lazy = lazy = Lazy()
    message._body = body
    message._redelivery_count = 0
    return message, lazy


def test_a_new_message_has_the_defaults_of_jms_s152() -> None:
    message = Message()
    assert message.priority == 4
    assert message.delivery_mode is DeliveryMode.PERSISTENT
    assert (message.timestamp, message.expiration, message.delivery_time) == (None, None, None)
    assert (message.message_id, message.correlation_id, message.type) == (None, None, None)
    assert (message.destination, message.reply_to) == (None, None)
    assert message.redelivered is False
    assert message.delivery_count == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message_id", "ID:1"),
        ("correlation_id", "c"),
        ("type", "t"),
        ("destination", Queue("q")),
        ("reply_to", Topic("t")),
        ("timestamp", NOON),
        ("expiration", NOON),
        ("delivery_time", NOON),
        ("delivery_mode", DeliveryMode.NON_PERSISTENT),
        ("priority", 9),
        ("redelivered", True),
    ],
)
def test_headers_may_be_set_also_on_received_messages_s163_but_not_while_locked_s73(name: str, value: Any) -> None:
    for message in (Message(), received()[0]):
        setattr(message, name, value)
        assert getattr(message, name) == value
        message._locked = True
        with pytest.raises(MessageNotWriteableException, match="completion listener"):
            setattr(message, name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message_id", 1),
        ("correlation_id", b"x"),
        ("type", 1),
        ("destination", "q"),
        ("reply_to", "q"),
        ("timestamp", 1700000000),
        ("expiration", datetime(2024, 1, 1)),
        ("delivery_mode", 3),
        ("priority", 10),
        ("priority", -1),
        ("priority", "4"),
    ],
)
def test_wrong_header_values_are_format_errors_that_name_the_header(name: str, value: Any) -> None:
    with pytest.raises(MessageFormatException, match=f"^{name}: expected"):
        setattr(Message(), name, value)


def test_listing_the_properties_loads_all_headers_at_once_s169() -> None:
    message, lazy = received()
    assert message.properties.copy()["a"] == 1
    assert (message.correlation_id, message.type) == ("wire _correlation_id", "wire _type")
    message.properties.copy()
    assert lazy.asked.count("headers") == 1
    assert "_type" not in lazy.asked


def test_loading_all_headers_undoes_nothing_that_was_written_s163() -> None:
    message, lazy = received()
    message.type = "mine"
    message.properties.copy()
    assert message.type == "mine"
    assert "headers" not in lazy.asked


def test_a_header_that_cannot_be_decoded_fails_where_it_is_read_and_not_the_others_s166() -> None:
    message, lazy = received()
    lazy.broken = True
    assert message.properties.copy()["a"] == 1
    assert message.correlation_id == "wire _correlation_id"
    assert message.type == "wire _type"  # asked for alone
    assert lazy.asked[-1] == "_type"


def test_times_are_kept_in_milliseconds_whatever_the_time_zone() -> None:
    message = Message()
    message.timestamp = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert message._timestamp == 1709208000123
    assert message.timestamp == NOON
    message.timestamp = None
    assert message._timestamp == 0


def test_times_beyond_what_a_datetime_holds_are_its_last_moment() -> None:
    message = Message()
    message._expiration = 2**63 - 1
    assert message.expiration is not None
    assert message.expiration.year == 9999


def test_redelivered_follows_the_delivery_count_s110() -> None:
    message = Message()
    message._redelivery_count = 3
    assert message.redelivered
    assert message.delivery_count == 4
    message.redelivered = True
    assert message.delivery_count == 4
    message.redelivered = False
    assert message.delivery_count == 1


def test_a_received_message_loads_each_header_once_and_only_when_asked() -> None:
    message, lazy = received()
    assert lazy.asked == []
    assert message.message_id == message.message_id == "wire _message_id"
    assert lazy.asked == ["_message_id"]


def test_a_header_set_before_it_was_loaded_is_not_overwritten_by_the_load_s163() -> None:
    message, lazy = received()
    message.correlation_id = "mine"
    message._message_id = "ID:mine"  # as the core stamps
    assert message.type == "wire _type"
    assert (message.correlation_id, message.message_id) == ("mine", "ID:mine")
    assert lazy.asked == ["_type"]


def test_properties_of_a_received_message_load_once_and_illegal_names_are_readable_s160() -> None:
    message, lazy = received()
    message.clear_body()
    assert lazy.asked == []
    assert message.properties["not valid"] == 2
    assert message.get_int_property("a") == 1
    assert lazy.asked == ["properties"]
    with pytest.raises(MessageNotWriteableException):
        message.properties["a"] = 2


def test_cleared_properties_are_not_loaded_again_s163() -> None:
    message, lazy = received()
    message.clear_properties()
    message.properties["b"] = 1
    assert dict(message.properties) == {"b": 1}
    assert lazy.asked == []


def test_a_misspelt_attribute_is_an_attribute_error() -> None:
    for message in (Message(), received()[0]):
        with pytest.raises(AttributeError, match="no attribute 'prority'"):
            message.prority  # noqa: B018 - reading it is the test
        with pytest.raises(AttributeError):
            message.prority = 1


def test_a_message_can_be_copied() -> None:
    message = TextMessage("x")
    message.properties["a"] = 1
    twin = copy.copy(message)
    assert (twin.text, twin.properties) == ("x", {"a": 1})


def test_acknowledge_is_a_silent_no_op_where_the_mode_has_none_s12() -> None:
    assert Message().acknowledge() is None


def test_acknowledge_returns_what_the_session_returns() -> None:
    message = Message()
    message._ack = Ack()
    assert message.acknowledge() == "acknowledged"


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (lambda m: m.accept(), Outcome.ACCEPTED),
        (lambda m: m.reject(), Outcome.REJECTED),
        (lambda m: m.release(), Outcome.RELEASED),
        (lambda m: m.modify(), Outcome.MODIFIED_FAILED),
        (lambda m: m.modify(undeliverable_here=True), Outcome.MODIFIED_FAILED_UNDELIVERABLE),
        (lambda m: m.modify(delivery_failed=False), Outcome.RELEASED),
    ],
)
def test_one_message_can_be_given_its_own_outcome_s38(call: Any, outcome: Outcome) -> None:
    message = Message()
    for ack in (None, Ack(allows_outcome=False)):
        message._ack = ack
        with pytest.raises(IllegalStateException, match=outcome.name):
            call(message)
    message._ack = Ack()
    assert call(message) is outcome


def test_undeliverable_here_without_failed_is_unsupported_and_says_what_to_use() -> None:
    message = Message()
    message._ack = Ack()
    with pytest.raises(UnsupportedFeatureException, match=r"modify\(undeliverable_here=True\)"):
        message.modify(delivery_failed=False, undeliverable_here=True)


def test_get_body_checks_the_type_s176() -> None:
    assert TextMessage("x").get_body(str) == "x"
    assert TextMessage("x").get_body(object) == "x"
    assert BytesMessage(b"x").get_body(bytes) == b"x"
    for message, wrong in ((TextMessage("x"), bytes), (BytesMessage(b"x"), str)):
        assert not message.is_body_assignable_to(wrong)
        with pytest.raises(MessageFormatException, match=f"not {wrong.__name__}"):
            message.get_body(wrong)


@pytest.mark.parametrize("message", [Message(), TextMessage()])
def test_without_a_body_any_type_gives_none_s176(message: Message) -> None:
    assert message.is_body_assignable_to(dict)
    assert message.get_body(dict) is None


def test_a_plain_message_shows_a_foreign_body_until_cleared_s166() -> None:
    message, _ = received(Message, {"a": 1})
    assert message.body == {"a": 1}
    assert message.get_body(dict) == {"a": 1}
    with pytest.raises(AttributeError):
        message.body = 1
    message.clear_body()
    assert message.body is None


def test_text_none_is_distinct_from_empty_s170() -> None:
    assert TextMessage().text is None
    assert TextMessage("").text == ""
    message = TextMessage("x")
    message.text = None
    assert message.body is None


@pytest.mark.parametrize("wrong", [b"x", 1, ["x"]])
def test_text_takes_only_str_or_none_s170(wrong: Any) -> None:
    with pytest.raises(MessageFormatException, match="expected str or None"):
        TextMessage(wrong)
    with pytest.raises(MessageFormatException):
        TextMessage().text = wrong


def test_received_text_is_read_only_until_cleared_s163() -> None:
    message, _ = received()
    with pytest.raises(MessageNotWriteableException, match=r"clear_body\(\)"):
        message.text = "y"
    message.clear_body()
    assert message.text is None
    message.text = "y"
    assert message.text == "y"


@pytest.mark.parametrize(
    "write",
    [
        lambda m: setattr(m, "text", "y"),
        lambda m: m.clear_body(),
        lambda m: m.clear_properties(),
        lambda m: m.set_int_property("a", 1),
        lambda m: m.properties.__delitem__("a"),
    ],
)
def test_a_message_with_a_completion_listener_is_read_only_s73(write: Any) -> None:
    message = TextMessage("x")
    message.properties["a"] = 0
    message._locked = True
    with pytest.raises(MessageNotWriteableException):
        write(message)
    message._locked = False
    write(message)


def test_repr_shows_id_and_destination_but_no_body() -> None:
    message = TextMessage("secret")
    message.message_id, message.destination = "ID:7", TemporaryTopic("t")
    assert repr(message) == "<TextMessage ID:7 to TemporaryTopic('t')>"


def test_send_takes_text_bytes_and_messages_s69() -> None:
    text = to_message("x")
    assert isinstance(text, TextMessage)
    assert text.text == "x"
    for raw in (b"x", bytearray(b"x"), memoryview(b"x")):
        message = to_message(raw)
        assert isinstance(message, BytesMessage)
        assert message.data == b"x"
    assert to_message(text) is text


def test_send_takes_mappings_and_lists_s151() -> None:
    fields = to_message({"a": 1})
    assert isinstance(fields, MapMessage)
    assert fields.body == {"a": 1}
    assert to_message(fields) is fields
    for values in ([1, "x"], (1, "x")):
        stream = to_message(values)
        assert isinstance(stream, StreamMessage)
        assert stream.body == [1, "x"]


def test_send_refuses_the_rest_s69() -> None:
    for wrong in (None, 5, object(), {1: 2}, [{}]):
        with pytest.raises(MessageFormatException, match=r"expected|name 1"):
            to_message(wrong)


@pytest.mark.parametrize(
    ("message", "name", "body"),
    [
        (MapMessage({"a": 1}), "text", "a map; read `body`, or one value with `message['name']`"),
        (BytesMessage(b"a"), "text", "bytes; read `data`"),
        (TextMessage("a"), "data", "a text; read `text`"),
        (StreamMessage(), "getText", "a stream of values; read `body`"),
        (ObjectMessage(), "text", "an object; read `object`"),
        (Message(), "text", "what the sender chose, or nothing; read `body`"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_body_that_the_message_does_not_have_is_an_error_that_names_the_body_that_it_has(
    message: Message, name: str, body: str
) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(message, name)
    assert str(caught.value) == (
        f"'{type(message).__name__}' object has no attribute {name!r}: the body of this message is {body}"
    )


def test_a_message_id_of_a_sender_forges_no_log_line_and_is_cut_in_repr() -> None:
    message = TextMessage("x")
    message._message_id = "ID:1"
    assert repr(message).startswith("<TextMessage ID:1 to ")
    message._message_id = "\x1b]0;owned\x07\nCRITICAL forged \u202e"
    assert repr(message).startswith(r"<TextMessage '\x1b]0;owned\x07\nCRITICAL forged \u202e' to ")
    message._message_id = "x" * 1_000_000
    assert len(repr(message)) < 300

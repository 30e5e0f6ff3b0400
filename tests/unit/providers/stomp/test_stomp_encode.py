"""What STOMP cannot carry is refused, and not changed into a text."""

from __future__ import annotations

import pytest

from pyjmsack.destination import Queue, Topic
from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.stomp.deadletter import _copy
from pyjmsack.providers.stomp.dialect import dialect_of
from pyjmsack.providers.stomp.encode import _properties
from pyjmsack.providers.stomp.inbound import StompInbound


@pytest.mark.parametrize("value", [[1], {"a": 1}, b"x", 1 << 64])
def test_a_property_that_stomp_cannot_carry_is_refused(value: object) -> None:
    """A sender over AMQP may choose it, and `pyjmsack move` and `import` send properties as they came. The Python form
    was sent as a text."""
    with pytest.raises(MessageFormatException):
        _properties({"name": value}, str)


def test_a_property_without_a_name_is_refused() -> None:
    with pytest.raises(MessageFormatException, match="without a name"):
        _properties({"": "x"}, str)


def test_properties_of_jms_are_sent() -> None:
    assert _properties({"a": None, "b": True, "c": 1, "d": 1.5, "e": "x"}, str).count("\n") == 6


@pytest.mark.parametrize("name", ["x ", " x", "x\x0b", "\x1fx"])
def test_a_reply_to_that_classic_would_change_is_refused_s160(name: str) -> None:
    """Replies went to another queue."""
    classic, artemis = dialect_of("classic-6"), dialect_of("artemis")
    for destination in (Queue(name), Topic(name)):
        with pytest.raises(MessageFormatException, match=r"reply_to .* expected a name without"):
            classic.reply_to(destination)
        assert artemis.reply_to(destination).endswith(name)
    assert classic.reply_to(Queue("a b")) == "/queue/a b"


@pytest.mark.parametrize(
    "line",
    [
        b"priority:x", b"priority:10", b"priority:-1", b"priority:", b"timestamp:x", b"timestamp:-1",
        b"timestamp:" + b"9" * 19, b"AMQ_SCHEDULED_PERIOD:5", b"AMQ_SCHEDULED_REPEAT:null",
        b"AMQ_SCHEDULED_CRON:* * * * *", b"_AMQ_BRIDGE_DUP:x", b"_AMQ_ROUTING_TYPE:x",
        b"_AMQ_ROUTE_TO:x", b"_AMQ_SCALEDOWN_TO:x",
    ],
)  # fmt: skip
def test_a_copy_leaves_out_a_header_that_ends_the_connection_or_delays_the_copy_s118(line: bytes) -> None:
    """A property of an AMQP sender takes the place of the header of the same name."""
    dialect = dialect_of("classic-6")
    head = b"\nmessage-id:ID:a-1-2-3:1:1:1:1\n%s\npriorityx:y\na:b" % line
    copy = _copy(StompInbound(head, b"body", dialect, None), "ActiveMQ.DLQ", Queue("q"), "q", "")
    assert line not in copy
    assert b"\npriorityx:y\na:b\n" in copy


@pytest.mark.parametrize(
    "line",
    [
        b"_AMQ_GROUP_SEQUENCE:x", b"_AMQ_GROUP_SEQUENCE:", b"_AMQ_GROUP_SEQUENCE:2147483648",
        b"_AMQ_INGRESS_TIMESTAMP:x", b"_AMQ_INGRESS_TIMESTAMP:" + b"9" * 19, b"JMS_AMQP_ENCODED_DA_a:x",
        b"JMS_AMQP_ENCODED_MA_x-opt-a:[B@1", b"JMS_AMQP_ENCODED_FT_a\\cb:x",
    ],
)  # fmt: skip
def test_a_copy_leaves_out_a_header_that_artemis_cannot_convert_to_amqp_s118(line: bytes) -> None:
    """One such copy took the credit of a receiver of the dead-letter queue for ever."""
    head = b"\nmessage-id:7\n%s\nJMS_AMQP_ENCODED:y\na:b" % line
    copy = _copy(StompInbound(head, b"body", dialect_of("artemis"), None), "DLQ", Queue("q"), "q", "")
    assert line not in copy
    assert b"\nJMS_AMQP_ENCODED:y\na:b\n" in copy


@pytest.mark.parametrize(
    "line",
    [
        b"priority:0", b"priority:9", b"timestamp:1764403200000", b"_AMQ_GROUP_SEQUENCE:7",
        b"_AMQ_GROUP_SEQUENCE:-1", b"_AMQ_INGRESS_TIMESTAMP:1764403200000",
    ],
)  # fmt: skip
def test_a_copy_keeps_the_headers_that_the_broker_reads_s118(line: bytes) -> None:
    head = b"\nmessage-id:ID:a-1-2-3:1:1:1:1\na:b\n" + line
    inbound = StompInbound(head, b"body", dialect_of("classic-6"), None)
    assert b"\n%s\n" % line in _copy(inbound, "ActiveMQ.DLQ", Queue("q"), "q", "")

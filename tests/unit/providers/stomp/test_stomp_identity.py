"""By what a STOMP message is known when it comes again (S105): by all of it, and by nothing that a broker changes."""

from __future__ import annotations

import pytest

from pyjmsack import MessageFormatException, Queue, Topic
from pyjmsack.providers.stomp.dialect import dialect_of
from pyjmsack.providers.stomp.frames import Refusal
from pyjmsack.providers.stomp.inbound import StompInbound
from pyjmsack.spi.envelope import LARGE

ARTEMIS = """
subscription:s1
message-id:1503,275
destination:q
correlation-id:correlation
redelivered:false
priority:4
persistent:true
timestamp:1000
type:type
NATIVE_MESSAGE_ID:ID\\c1
state:NEW
timestamp:900
receipt:1
ack:1503,275
content-length:70000"""
CLASSIC = """
state:NEW
correlation-id:correlation
destination:/queue/q
ack:ID\\cbroker\\c41
subscription:s1
type:type
message-id:ID\\cbroker\\c1
persistent:true
timestamp:900
NATIVE_MESSAGE_ID:ID\\c1
priority:4"""
HEADS = {"artemis": ARTEMIS, "classic-6": CLASSIC}
BODY = b"x" * 70_000
BROKER = pytest.mark.parametrize("broker", HEADS)


def identity(broker: str, *changes: tuple[str, str], body: bytes = BODY) -> bytes | None:
    head = HEADS[broker]
    for old, new in changes:
        assert old in head
        head = head.replace(old, new)
    return StompInbound(head.encode(), body, dialect_of(broker)).identity()


@BROKER
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("state:NEW", "state:PAID"),
        ("state:NEW", "state:NEW\nmore:"),
        ("\ntype:type", "\ntype:other"),
        ("\ntype:type", ""),
        ("correlation-id:correlation", "correlation-id:other"),
        ("priority:4", "priority:5"),
        ("persistent:true", "persistent:false"),
        ("timestamp:900", "timestamp:901"),
        ("NATIVE_MESSAGE_ID:ID\\c1", "NATIVE_MESSAGE_ID:ID\\c2"),
    ],
)
def test_messages_with_one_id_that_differ_in_a_header_are_two_messages_s105(broker: str, old: str, new: str) -> None:
    """One that is taken for a copy of the other is lost."""
    assert identity(broker, (old, new)) not in (identity(broker), None)


@BROKER
def test_messages_with_one_id_that_differ_in_the_end_of_a_long_body_are_two_messages_s105(broker: str) -> None:
    """All of it counts."""
    assert identity(broker, body=BODY[:-1] + b"y") not in (identity(broker), None)


def test_text_and_bytes_are_two_messages_s105() -> None:
    """Artemis says it by where ``content-length`` stands, Classic by whether it is there."""
    as_bytes = [("\ncontent-length:70000", ""), ("\nmessage-id", "\ncontent-length:70000\nmessage-id")]
    assert identity("artemis", *as_bytes) != identity("artemis")
    assert identity("classic-6", ("\nstate", "\ncontent-length:70000\nstate")) != identity("classic-6")


def test_what_a_broker_says_of_a_delivery_is_no_part_of_the_message_s105() -> None:
    """Nor is the order of the lines, nor what only the copy of a repeated send has."""
    again = [("redelivered:false", "redelivered:true"), ("1503,275", "9,275"), ("subscription:s1", "subscription:s2")]
    copied = [("1503,275", "9,276"), ("timestamp:1000", "timestamp:1001"), ("receipt:1", "receipt:7\ntransaction:t")]
    assert identity("artemis", *again) == identity("artemis", *copied) == identity("artemis")
    again = [("\\c41", "\\c42\nredelivered:true"), ("subscription:s1", "subscription:s2")]
    copied = [("message-id:ID\\cbroker\\c1", "message-id:ID\\cbroker\\c2")]
    moved = [("\nstate:NEW", ""), ("\npriority:4", "\npriority:4\nstate:NEW")]
    assert {identity("classic-6", *changes) for changes in (again, copied, moved)} == {identity("classic-6")}


@BROKER
def test_without_the_senders_id_the_brokers_number_and_time_name_a_message_s105(broker: str) -> None:
    """Clients of STOMP give none."""
    nameless = ("\nNATIVE_MESSAGE_ID:ID\\c1", "")
    number = ("1503,275", "1503,276") if broker == "artemis" else ("ID\\cbroker\\c1", "ID\\cbroker\\c2")
    known = identity(broker, nameless)
    assert known is not None
    assert identity(broker, nameless, number) not in (known, None)
    if broker == "artemis":
        assert identity(broker, nameless, ("1503,275", "9,275")) == known


def test_lines_that_end_with_a_carriage_return_have_an_identity() -> None:
    """STOMP 1.2 allows it; what raised here would end the thread that asks the guard's file."""
    later = ("timestamp:1000", "timestamp:1001")
    crlf = ("\n", "\r\n")
    assert identity("artemis", crlf) == identity("artemis", later, crlf)


def test_the_origin_of_a_dead_letter_is_read_from_the_header_of_classic() -> None:
    for named, found in (("/queue/a\\cb", Queue("a:b")), ("/topic/t", Topic("t"))):
        head = f"\ndestination:/queue/ActiveMQ.DLQ\noriginal-destination:{named}"
        assert StompInbound(head.encode(), BODY, dialect_of("classic-6")).original_destination() == found
    assert StompInbound(b"\ndestination:/queue/a", BODY, dialect_of("classic-6")).original_destination() is None


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_each_delivery_has_the_quick_id_of_its_message(head: str) -> None:
    """On Artemis another consumer gets another ``message-id``, whose end is the same."""
    again = head.replace("message-id:1503,", "message-id:1504,").replace("subscription:s1", "subscription:s2")
    first, second = (StompInbound(each.encode(), b"", dialect_of("classic-6")).quick_id() for each in (head, again))
    assert first == second is not None
    assert StompInbound(b"\ndestination:q", b"", dialect_of("classic-6")).quick_id() is None


def stored_id(head: str) -> bytes | None:
    return StompInbound(head.encode(), BODY, dialect_of("artemis")).stored_id()


def test_two_deliveries_of_a_stored_message_have_one_id_and_its_twin_has_another() -> None:
    """A transfer makes the duplicate id of it, and the broker would drop the twin."""
    again = ARTEMIS.replace("1503,275", "2210,275").replace("redelivered:false", "redelivered:true")
    assert stored_id(ARTEMIS) == stored_id(again) is not None
    assert stored_id(ARTEMIS.replace(",275", ",276")) not in (stored_id(ARTEMIS), None)


def test_a_message_with_the_same_number_at_another_broker_is_another_one() -> None:
    """After a failover the first broker's number may be that of a new message."""
    assert stored_id(ARTEMIS.replace("state:NEW", "state:PAID")) not in (stored_id(ARTEMIS), None)
    assert stored_id(ARTEMIS.replace("1503,275", "")) is None


@BROKER
def test_the_header_lines_of_a_text_are_decoded_when_a_header_is_read_and_not_before(broker: str) -> None:
    inbound = StompInbound(HEADS[broker].encode(), b"hello", dialect_of(broker))
    message = inbound.to_message(Queue("q"))
    assert (message.body, inbound._headers) == ("hello", None)
    assert (message.message_id, inbound._headers) == ("ID:1", None)  # a ledger reads the id of each message
    assert message.priority == 4
    assert inbound._headers is not None


@pytest.mark.parametrize(
    "line",
    [r"ID\c1", r"a\\c", r"\n\c\\", "", "plain", "Grüße"],
    ids=["colon", "backslash", "all", "empty", "plain", "umlaut"],
)
@pytest.mark.parametrize("broker", HEADS)
def test_the_message_id_is_the_same_before_and_after_the_header_lines_are_decoded(broker: str, line: str) -> None:
    head = f"\nmessage-id:7\nNATIVE_MESSAGE_ID:{line}\nNATIVE_MESSAGE_ID:second".encode()
    alone, decoded = (StompInbound(head, b"hello", dialect_of(broker)) for _ in range(2))
    decoded._decode()
    assert alone.load_header("_message_id") == decoded.load_header("_message_id") != "second"


@pytest.mark.parametrize("broker", HEADS)
def test_the_line_ends_and_escapes_of_a_foreign_sender_change_no_reading(broker: str) -> None:
    head = b"\nmessage-id:7\r\nredelivered:true\r\nexpires:5\r\nredelivered:false\r"
    inbound = StompInbound(head, b"", dialect_of(broker))
    assert (inbound.redelivery_count, inbound.expired(5), inbound.expired(4)) == (1, True, False)
    inbound = StompInbound(b"\nredelivered:trueish\nexpires:0", b"", dialect_of(broker))
    assert (inbound.redelivery_count, inbound.expired(5)) == (0, False)


def test_the_lines_of_a_refused_frame_are_not_decoded_for_its_correlation_id_s166() -> None:
    """A requestor asks on the I/O loop, and a refused frame may have any number of lines."""
    refused = StompInbound(b"\ncorrelation-id:7", b"", dialect_of("artemis"), Refusal("too many lines", True, 20))
    with pytest.raises(MessageFormatException, match="too many lines"):
        assert refused.correlation_id
    assert StompInbound(b"\ncorrelation-id:7", b"", dialect_of("artemis")).correlation_id == "7"


@pytest.mark.parametrize("head", [b"\nx:\\x", b"\nx:\xff", b"\nno colon", b"\na:b"])
def test_no_other_line_is_decoded_for_a_correlation_id(head: bytes) -> None:
    """A requestor asks on the I/O loop, where 9 MB of escapes in other lines held up other connections for 4 s."""
    inbound = StompInbound(head + b"\ncorrelation-id:a\\c\xe2\x82\xac\r" + head, b"", dialect_of("artemis"))
    assert inbound.correlation_id == "a:\u20ac"
    assert StompInbound(head, b"", dialect_of("artemis")).correlation_id is None
    with pytest.raises(MessageFormatException):
        assert StompInbound(b"\ncorrelation-id:\\x", b"", dialect_of("artemis")).correlation_id


@pytest.mark.parametrize(
    ("lines", "time"), [("", 0), ("1000 soon", 1000), ("1000 900", 900), ("soon 900", 900), ("soon", 0)]
)
def test_a_property_that_is_called_timestamp_and_is_no_time_hides_no_time(lines: str, time: int) -> None:
    """S71: Artemis writes its own time before the sender's, and a property of an AMQP sender stands there, too."""
    head = "\nmessage-id:1" + "".join(f"\ntimestamp:{line}" for line in lines.split())
    message = StompInbound(head.encode(), b"", dialect_of("artemis")).to_message(Queue("q"))
    assert message._timestamp == time


@pytest.mark.parametrize(
    ("line", "quick"),
    [
        ("content-type:text/plain", True),
        ("content-length:4", True),
        ("content-type:Application/VND.pyjmsack.map+json", False),
        ("JMS_AMQP_NATIVE:true", False),
        ("note:" + "x" * LARGE, False),
    ],
    ids=["text", "bytes", "portable", "native", "long head"],
)
def test_only_text_and_bytes_are_decoded_on_a_loop_however_large(line: str, quick: bool) -> None:
    assert StompInbound(f"\ndestination:/queue/a\n{line}".encode(), BODY, dialect_of("classic-6")).quick is quick

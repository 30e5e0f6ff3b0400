"""By what an AMQP message is known when it comes again (S105): by all of it, and by nothing that a broker changes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.wire_encode import encode_value
from pyjmsack.providers.amqp.wire_types import Symbol, Timestamp, UByte, UInt, ULong
from pyjmsack.types import Byte, Long

HEADER, ANNOTATIONS, PROPERTIES, APPLICATION, DATA, SEQUENCE, VALUE, FOOTER = (
    0x70,
    0x72,
    0x73,
    0x74,
    0x75,
    0x76,
    0x77,
    0x78,
)
NAMES = ["ID:1", b"user", "to", "subject", "reply", "correlation", Symbol("text/plain"), Symbol("gzip")]
FIELDS = [*NAMES, Timestamp(5), Timestamp(4), "group", UInt(3), "reply group"]
BODY = "x" * 70_000
SENT = {
    HEADER: [True, UByte(4)],
    ANNOTATIONS: {Symbol("x-opt-jms-msg-type"): Byte(5), Symbol("x-opt-mine"): "a"},
    PROPERTIES: FIELDS,
    APPLICATION: {"state": "NEW", "number": 1},
    VALUE: BODY,
    FOOTER: {Symbol("x-opt-sum"): 1},
}
KEPT_WHOLE = pytest.mark.parametrize("kept_whole", [True, False], ids=["artemis", "any"])


def message(sections: dict[int, Any]) -> bytes:
    return b"".join(b"\0\x53" + bytes([code]) + encode_value(value) for code, value in sections.items())


def identity(payload: bytes, *, kept_whole: bool = False) -> bytes | None:
    inbound = AmqpInbound(payload)
    inbound.kept_whole = kept_whole
    return inbound.identity()


OTHERS: dict[str, dict[int, Any]] = {
    "persistence": {HEADER: [False, UByte(4)]},
    "priority": {HEADER: [True, UByte(5)]},
    "kind": {ANNOTATIONS: {Symbol("x-opt-jms-msg-type"): Byte(1), Symbol("x-opt-mine"): "a"}},
    "annotation": {ANNOTATIONS: {Symbol("x-opt-jms-msg-type"): Byte(5), Symbol("x-opt-mine"): "b"}},
    **{f"field {n}": {PROPERTIES: [*FIELDS[:n], None, *FIELDS[n + 1 :]]} for n in range(1, 13)},
    "text id": {PROPERTIES: ["ID:2", *FIELDS[1:]]},
    "uuid id": {PROPERTIES: [UUID(int=1), *FIELDS[1:]]},
    "number id": {PROPERTIES: [ULong(1), *FIELDS[1:]]},
    "binary id": {PROPERTIES: [b"ID:1", *FIELDS[1:]]},
    "property": {APPLICATION: {"state": "PAID", "number": 1}},
    "one property more": {APPLICATION: {"state": "NEW", "number": 1, "more": None}},
    "type of a property": {APPLICATION: {"state": "NEW", "number": Long(1)}},
    "end of a long body": {VALUE: BODY[:-1] + "y"},
    "length of a long body": {VALUE: BODY + "x"},
    "binary instead of text": {VALUE: BODY.encode()},
    "a list as body": {VALUE: [BODY]},
    "footer": {FOOTER: {Symbol("x-opt-sum"): 2}},
}


@KEPT_WHOLE
@pytest.mark.parametrize("what", OTHERS)
def test_messages_with_one_id_that_differ_in_anything_are_two_messages_s105(what: str, kept_whole: bool) -> None:
    """One that is taken for a copy of the other is lost."""
    one = identity(message(SENT), kept_whole=kept_whole)
    assert one is not None
    assert identity(message(SENT | OTHERS[what]), kept_whole=kept_whole) not in (one, None)


@KEPT_WHOLE
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({VALUE: "1"}, {VALUE: b"1"}),
        ({VALUE: "1"}, {DATA: b"1"}),
        ({VALUE: [1]}, {SEQUENCE: [1]}),
        ({VALUE: {"a": 1, "b": 2}}, {VALUE: {"a": 2, "b": 1}}),
        ({VALUE: {"a": Byte(1)}}, {VALUE: {"a": Long(1)}}),
        ({VALUE: ["a", "b"]}, {VALUE: ["b", "a"]}),
        ({VALUE: ["a", ["b"]]}, {VALUE: ["a", "b"]}),
        ({VALUE: {"1": 0}}, {VALUE: {Symbol("1"): 0}}),
    ],
)
def test_bodies_are_told_apart_by_values_and_types_s105(first: Any, second: Any, kept_whole: bool) -> None:
    """Whatever their sections look like."""
    bodies = [identity(message({PROPERTIES: ["ID:1"], **body}), kept_whole=kept_whole) for body in (first, second)]
    assert bodies[0] != bodies[1]


@KEPT_WHOLE
def test_what_the_broker_says_of_a_delivery_is_no_part_of_the_message_s105(kept_whole: bool) -> None:
    """Counts, the time that is left, delivery annotations, and what is noted on a dead letter."""
    again = {
        HEADER: [True, UByte(4), UInt(100), True, UInt(3)],
        0x71: {Symbol("x-opt-delivery"): 1},
        ANNOTATIONS: SENT[ANNOTATIONS] | {Symbol("x-opt-ORIG-QUEUE"): "q"},
    }
    whole = {HEADER: again.pop(HEADER), 0x71: again.pop(0x71), **(SENT | again)}
    whole = {code: whole[code] for code in sorted(whole)}
    assert identity(message(whole), kept_whole=kept_whole) == identity(message(SENT), kept_whole=kept_whole)


def test_a_message_whose_properties_cannot_be_decoded_is_known_by_their_bytes_s105() -> None:
    """They are read when somebody asks, so the message is handed out, and may come again."""
    broken = [message({PROPERTIES: ["ID:1"]}) + b"\0\x53\x74\xc1\x03\x02\x3f" + end for end in (b"\1", b"\2")]
    found = [identity(payload) for payload in (*broken, broken[0])]
    assert found[0] == found[2] != found[1]
    assert None not in found


def test_a_large_message_is_not_kept_twice_s105() -> None:
    """A digest stands for it."""
    for kept_whole in (True, False):
        assert len(identity(message(SENT), kept_whole=kept_whole) or b"") < 1000

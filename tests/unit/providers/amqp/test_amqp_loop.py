"""The I/O loop reads sections before the body: what their sender chooses cannot make that reading long."""

from __future__ import annotations

import struct

import pytest

from pyjmsack import MessageFormatException
from pyjmsack.providers.amqp.inbound import AmqpInbound
from pyjmsack.providers.amqp.pieces import EMPTY, head_of
from pyjmsack.providers.amqp.sections import read_header

BODY = b"\x00\x53\x77\x40"
NULL = b"\x40"
ANNOTATIONS, PROPERTIES, HEADER, APPLICATION_PROPERTIES = (
    b"\x00\x53\x72",
    b"\x00\x53\x73",
    b"\x00\x53\x70",
    b"\x00\x53\x74",
)


def compound(code: int, count: int, items: bytes) -> bytes:
    return bytes((code,)) + struct.pack(">II", len(items) + 4, count) + items


def a_map(*entries: tuple[str, bytes], code: int = 0xA3) -> bytes:
    items = b"".join(b"%c%c%b%b" % (code, len(name), name.encode(), value) for name, value in entries)
    return compound(0xD1, 2 * len(entries), items)


def a_list(*items: bytes) -> bytes:
    return compound(0xD0, len(items), b"".join(items))


MANY = a_list(*[NULL] * 1000)


def test_an_annotation_that_jms_does_not_need_is_not_decoded() -> None:
    """S166: a list of millions of elements took seconds of the loop, when a requestor looked for a correlation id."""
    broken = compound(0xD0, 3, b"\xff\xff\xff")  # to decode this list is an error
    inbound = AmqpInbound(ANNOTATIONS + a_map(("x", broken), ("x-opt-jms-dest", b"\x51\x01")) + BODY)
    assert inbound.correlation_id is None
    assert inbound._annotations.to_kind == 1


def test_a_name_or_a_descriptor_in_the_long_form_of_a_symbol_is_read() -> None:
    """AMQP 1.0 1.6.21: a sender may write four bytes of size for each symbol."""
    name, section = b"x-opt-jms-msg-type", b"amqp:message-annotations:map"
    long = [b"\xb3" + struct.pack(">I", len(text)) + text for text in (name, section)]
    inbound = AmqpInbound(b"\x00" + long[1] + compound(0xD1, 2, long[0] + b"\x51\x02") + BODY)
    assert inbound.correlation_id is None
    assert inbound._annotations.wire_type == 2


def test_an_annotation_of_jms_that_is_a_list_counts_as_absent() -> None:
    inbound = AmqpInbound(ANNOTATIONS + a_map(("x-opt-jms-dest", MANY), ("x-opt-ORIG-QUEUE", MANY)) + BODY)
    assert inbound.correlation_id is None
    assert (inbound._annotations.to_kind, inbound._annotations.origin) == (None, ())


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (ANNOTATIONS + a_map(("x", b"\xb0" + struct.pack(">I", 20_000) + bytes(20_000))) + BODY, "at most 16384"),
        (ANNOTATIONS + compound(0xD1, 3, b"\xa3\x01x\x40\x40") + BODY, "expected pairs"),
        (ANNOTATIONS + compound(0xD1, 2, b"\xa3\x01x\x40\x40") + BODY, "1 bytes follow the last entry"),
        (ANNOTATIONS + MANY + BODY, "expected a map"),
        (PROPERTIES + a_list(MANY) + BODY, "field 0 is no simple value"),
        (PROPERTIES + a_list(b"\x00\x40" + MANY) + BODY, "field 0 is no simple value"),
        (PROPERTIES + compound(0xF0, 1, b"\x40") + BODY, "expected a list"),
        (HEADER + MANY + BODY, "expected at most 256"),
        (b"\x00" + MANY + BODY, "unknown section"),
        (EMPTY * 65_537, "more than 65536 sections of the body"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_section_that_would_take_long_is_refused(payload: bytes, why: str) -> None:
    """S166."""
    with pytest.raises(MessageFormatException, match=why):
        assert AmqpInbound(payload).correlation_id


def test_the_loop_decodes_no_large_header_for_the_priority() -> None:
    with pytest.raises(MessageFormatException, match="at most 256"):
        read_header(HEADER + MANY + BODY)


def test_a_message_with_many_properties_is_not_decoded_before_its_body_came() -> None:
    """Its content type may be among the properties; the program decodes them later."""
    kind = "application/vnd.pyjmsack.map"
    few = a_map((kind, NULL), code=0xA1)
    many = a_map((kind, NULL), *((f"{number:05}", NULL) for number in range(10_000)), code=0xA1)
    assert head_of(APPLICATION_PROPERTIES + few + EMPTY) is not None
    assert head_of(APPLICATION_PROPERTIES + many + EMPTY) is None


def test_the_identity_knows_all_annotations_but_those_of_a_dead_letter() -> None:
    """S105: a nested value counts too, and bytes that cannot be decoded count as they are."""

    def identity(*entries: tuple[str, bytes]) -> bytes | None:
        return AmqpInbound(ANNOTATIONS + a_map(*entries) + PROPERTIES + a_list(b"\xa1\x02id") + BODY).identity()

    one = identity(("x", a_list(b"\x54\x01")))
    assert one is not None
    assert identity(("x", a_list(b"\x54\x01")), ("x-opt-ORIG-QUEUE", b"\xa1\x01q")) == one
    assert identity(("x", a_list(b"\x54\x02"))) != one
    assert identity(("x", compound(0xD0, 1, b"\xff"))) not in (None, one)

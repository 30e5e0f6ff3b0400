"""Message ids between JMS and AMQP (S159)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyjmsack.errors import MessageFormatException
from pyjmsack.providers.amqp.ids import encode_id, to_correlation_id, to_message_id
from pyjmsack.providers.amqp.wire import decode_value
from pyjmsack.providers.amqp.wire_types import ULong

A_UUID = UUID("12345678-9abc-def0-1234-56789abcdef0")


@pytest.mark.parametrize(
    ("amqp", "jms"),
    [
        (None, None),
        ("ID:x", "ID:x"),
        ("ID:", "ID:"),
        ("x", "ID:AMQP_NO_PREFIX:x"),
        ("", "ID:AMQP_NO_PREFIX:"),
        ("AMQP_UUID:x", "ID:AMQP_NO_PREFIX:AMQP_UUID:x"),
        ("ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x"),
        ("ID:AMQP_STRING:x", "ID:AMQP_STRING:ID:AMQP_STRING:x"),
        (A_UUID, f"ID:AMQP_UUID:{A_UUID}"),
        (ULong(7), "ID:AMQP_ULONG:7"),
        (ULong(2**64 - 1), "ID:AMQP_ULONG:18446744073709551615"),
        (b"\x00\xab", "ID:AMQP_BINARY:00AB"),
        (b"", "ID:AMQP_BINARY:"),
    ],
)
def test_message_ids_of_all_types_round_trip_s159(amqp: Any, jms: str | None) -> None:
    assert to_message_id(amqp) == jms
    if jms is not None:
        back = decode_value(encode_id(jms), 0)[0]
        assert (type(back), back) == (type(amqp), amqp)


@pytest.mark.parametrize(
    ("amqp", "jms"),
    [
        (None, None),
        ("x", "x"),
        ("ID:x", "ID:x"),
        ("ID:AMQP_ULONG:x", "ID:AMQP_STRING:ID:AMQP_ULONG:x"),
        (A_UUID, f"ID:AMQP_UUID:{A_UUID}"),
        (ULong(7), "ID:AMQP_ULONG:7"),
        (b"\xab", "ID:AMQP_BINARY:AB"),
    ],
)
def test_correlation_ids_round_trip_and_plain_text_stays_plain_s159(amqp: Any, jms: str | None) -> None:
    assert to_correlation_id(amqp) == jms
    if jms is not None:
        back = decode_value(encode_id(jms), 0)[0]
        assert (type(back), back) == (type(amqp), amqp)


@pytest.mark.parametrize(
    "jms",
    [
        "ID:AMQP_UUID:",
        "ID:AMQP_UUID:1234",
        "ID:AMQP_UUID:{12345678-9abc-def0-1234-56789abcdef0}",
        "ID:AMQP_UUID:123456789abcdef0123456789abcdef0",
        "ID:AMQP_ULONG:",
        "ID:AMQP_ULONG:-1",
        "ID:AMQP_ULONG:x",
        "ID:AMQP_ULONG:18446744073709551616",
        "ID:AMQP_BINARY:0",
        "ID:AMQP_BINARY:0g",
        "ID:AMQP_BINARY:00 11",
    ],
)
def test_malformed_ids_are_format_errors_that_name_the_id_s159(jms: str) -> None:
    with pytest.raises(MessageFormatException, match=r"expected .* behind ID:AMQP_"):
        encode_id(jms)


def test_lower_case_hexadecimal_digits_are_read_s159() -> None:
    assert decode_value(encode_id("ID:AMQP_BINARY:ab"), 0)[0] == b"\xab"


IDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.sampled_from(["ID:", "ID:AMQP_STRING:", "ID:AMQP_UUID:", "ID:AMQP_NO_PREFIX:", "ID:AMQP_"]).flatmap(
        lambda prefix: st.text(st.characters(exclude_categories=["Cs"]), max_size=9).map(prefix.__add__)
    ),
    st.uuids(),
    st.integers(0, 2**64 - 1).map(ULong),
    st.binary(max_size=20),
)


@settings(deadline=None)
@given(IDS)
def test_any_amqp_id_survives_the_way_through_jms_s159(amqp: Any) -> None:
    for convert in (to_message_id, to_correlation_id):
        jms = convert(amqp)
        assert jms is not None
        back = decode_value(encode_id(jms), 0)[0]
        assert (type(back), back) == (type(amqp), amqp)

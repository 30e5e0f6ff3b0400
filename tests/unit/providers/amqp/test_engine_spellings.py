"""Transfers and dispositions with another legal spelling of their descriptor than most senders use (AMQP 1.0 1.6)."""

from __future__ import annotations

import pytest
from engine_support import Wire

from pyjmsack.providers.amqp.engine.errors import ViolationError
from pyjmsack.providers.amqp.engine.events import DELIVERY, OUTCOME, Event
from pyjmsack.providers.amqp.engine.fastpath import read_transfer
from pyjmsack.providers.amqp.engine.frames import frame
from pyjmsack.providers.amqp.engine.performatives import ACCEPTED, Composite, Disposition, Transfer, encode

SPELLINGS = ["ulong", "sym8", "sym32"]


def spelled(value: Composite, spelling: str) -> bytes:
    """Return the encoded value with its descriptor in this spelling."""
    name = value.name.encode()
    descriptor = {
        "ulong": b"\x80" + value.code.to_bytes(8, "big"),
        "sym8": b"\xa3" + bytes((len(name),)) + name,
        "sym32": b"\xb3" + len(name).to_bytes(4, "big") + name,
    }[spelling]
    return b"\x00" + descriptor + encode(value)[3:]


def transfer(wire: Wire, spelling: str, number: int | None, payload: bytes, *, more: bool = False) -> list[Event]:
    """Let the peer send a transfer with this spelling."""
    tag = None if number is None else b"t%d" % number
    value = Transfer(handle=0, delivery_id=number, delivery_tag=tag, message_format=0, settled=False, more=more)
    return wire.bytes(frame(0, spelled(value, spelling) + payload))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_message_arrives_with_any_spelling_of_its_descriptor(spelling: str) -> None:
    """Our engine ended the connection, because it took the payload for bytes that nobody expects."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=3)
    assert transfer(wire, spelling, 0, b"a") == [(DELIVERY, link, 0, b"a", False)]
    assert transfer(wire, spelling, 1, b"b", more=True) == []
    assert wire.transfer(None, b"c") == [(DELIVERY, link, 1, b"bc", False)]
    assert link.credit == 1


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_tag_of_more_than_32_bytes_is_a_violation_with_any_spelling(spelling: str) -> None:
    body = spelled(Transfer(handle=0, delivery_id=0, delivery_tag=bytes(33)), spelling)
    with pytest.raises(ViolationError, match="33 bytes"):
        read_transfer(body, 0, len(body))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_outcome_arrives_with_any_spelling_of_its_descriptor(spelling: str) -> None:
    """Our engine ended the connection, because it took the disposition for no performative."""
    wire = Wire()
    link = wire.sender(wire.session())
    link.send(b"m", "first")
    outcome = Disposition(role=True, first=0, settled=True, state=ACCEPTED)
    assert wire.bytes(frame(0, spelled(outcome, spelling))) == [(OUTCOME, link, "first", ACCEPTED)]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_bytes_after_a_disposition_are_a_violation_with_any_spelling(spelling: str) -> None:
    wire = Wire()
    wire.session()
    body = spelled(Disposition(role=True, first=0, settled=True), spelling)
    ((_, error),) = wire.bytes(frame(0, body + b"x"))
    assert "1 bytes follow" in str(error)

"""The Flow frames that wait until the peer reads, so that a peer that never reads does not fill the memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from engine_support import LARGE, Wire

from pyjmsack.providers.amqp.engine import ReceiverLink
from pyjmsack.providers.amqp.engine.performatives import ACCEPTED, Composite, Disposition, Flow, Transfer, encode


def flow(count: int, credit: int = 0, **fields: object) -> Flow:
    return Flow(
        next_incoming_id=0,
        incoming_window=LARGE,
        next_outgoing_id=0,
        outgoing_window=LARGE,
        handle=0,
        delivery_count=count,
        link_credit=credit,
        **fields,  # type: ignore[arg-type]
    )


def told(wire: Wire) -> list[tuple[int | None, int | None, bool]]:
    """Return the delivery-count, credit and drain of the flows that were written since."""
    flows = [found for found, _ in wire.said() if isinstance(found, Flow)]
    return [(found.delivery_count, found.link_credit, found.drain) for found in flows]


def takes_credit_back(wire: Wire, number: int) -> None:
    wire.say(flow(number + 1))


def aborts(wire: Wire, number: int) -> None:
    wire.transfer(number, aborted=True)


@pytest.mark.parametrize("act", [takes_credit_back, aborts])
def test_a_peer_that_uses_up_its_credit_and_does_not_read_gets_one_flow(act: Callable[[Wire, int], None]) -> None:
    """2.7.4: a Flow contains the present state. One for each of these frames filled the memory."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=1)
    for number in range(1000):
        act(wire, number)
        link.grant(1)
    assert told(wire) == [(1000, 1, False)]


def test_a_peer_that_drains_again_and_again_and_does_not_read_gets_one_answer() -> None:
    """2.6.7"""
    wire = Wire()
    link = wire.sender(wire.session(), credit=0)
    for number in range(1000):
        wire.say(flow(number, 1, drain=True))
        link.drained()
    assert told(wire) == [(1000, 0, True)]


def test_a_grant_is_told_before_a_drain_in_a_frame_of_its_own() -> None:
    """Artemis delivers messages between the two."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=0)
    link.grant(3)
    link.start_drain(1)
    assert told(wire) == [(0, 3, False), (0, 4, True)]
    link.grant(1)
    assert told(wire) == [(0, 5, False)]


def test_grants_are_told_before_the_next_message_and_after_the_outcomes() -> None:
    """A reply to the message needs the credit."""
    wire = Wire()
    session = wire.session()
    link, sender = wire.receiver(session, credit=2), wire.sender(session)
    for number in range(2):
        wire.transfer(number)
        link.settle(number, encode(ACCEPTED))
        link.grant(1)
    sender.send(b"request", None)
    link.grant(1)
    kinds: list[type[Composite]] = [type(found) for found, _ in wire.said()]
    assert kinds == [Disposition, Flow, Transfer, Flow]


@pytest.mark.parametrize("end", ["link", "session", "connection"])
def test_a_grant_to_a_link_that_ended_before_the_peer_read_is_harmless(end: str) -> None:
    wire = Wire()
    session = wire.session()
    link = wire.receiver(session, credit=1)
    link.grant(1)
    if end == "link":
        link.detach(closed=True)
        assert told(wire) == []
        return
    session.end() if end == "session" else wire.connection.close()
    assert told(wire) == [(0, 2, False)]


def test_credit_that_the_peer_did_not_read_does_not_count() -> None:
    """Otherwise a peer that never reads could send messages without end, and the outcomes would fill the memory."""
    wire = Wire()
    link: ReceiverLink = wire.receiver(wire.session(), credit=2, overdraft=None)
    for number in range(10):
        wire.transfer(number)
        link.grant(1)
    assert (link.credit, link.overdraft) == (2, 8)
    assert told(wire) == [(10, 2, False)]
    assert (link.credit, link.overdraft) == (2, -2)

"""Links of our AMQP engine: credit, drain, handles, messages in several transfers (AMQP 1.0 2.6)."""

from __future__ import annotations

from typing import Any

import pytest
from engine_support import LARGE, Wire, answer_to, condition_of, receiving, sending
from hypothesis import given
from hypothesis import strategies as st

from pyjmsack.providers.amqp.engine import StateError
from pyjmsack.providers.amqp.engine.deliveries import KEPT_OF_OVERSIZE, SERIAL_MASK, serial_distance
from pyjmsack.providers.amqp.engine.events import ATTACHED, CREDIT, DELIVERY, DETACHED, OUTCOME, OVERSIZE
from pyjmsack.providers.amqp.engine.performatives import (
    ACCEPTED,
    RELEASED,
    Accepted,
    Attach,
    Begin,
    Detach,
    Disposition,
    Error,
    Flow,
    Modified,
    Open,
    Rejected,
    Target,
    Transactional,
    Transfer,
    encode,
)


def flow_of(handle: int = 0, **fields: Any) -> Flow:
    return Flow(
        next_incoming_id=0, incoming_window=LARGE, next_outgoing_id=0, outgoing_window=LARGE, handle=handle, **fields
    )


# -- serial numbers ---------------------------------------------------------------------------------------------


@given(st.integers(0, SERIAL_MASK), st.integers(-(2**31), 2**31 - 1))
def test_serial_numbers_go_round(number: int, distance: int) -> None:
    """RFC 1982 3.2, 32 bits."""
    assert serial_distance((number + distance) & SERIAL_MASK, number) == distance


# -- what we send -----------------------------------------------------------------------------------------------


def test_a_message_leaves_with_credit_and_not_without() -> None:
    """2.6.7"""
    wire = Wire()
    link = wire.sender(wire.session(), credit=1)
    link.send(b"one", "context")
    ((transfer, payload),) = wire.said()
    assert transfer == Transfer(handle=0, delivery_id=0, delivery_tag=bytes(4), message_format=0)
    assert (payload, link.credit) == (b"one", 0)
    with pytest.raises(StateError, match="no credit"):
        link.send(b"two", None)
    assert wire.said() == []


@pytest.mark.parametrize("first_id", [0, 5, SERIAL_MASK - 1], ids=["0", "5", "wrapping"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_outcomes_find_their_messages_also_across_the_end_of_the_numbers(first_id: int, count: int) -> None:
    """2.6.12, 2.8.10: delivery-ids are serial numbers."""
    wire = Wire()
    link = _sender(wire, first_id)
    for number in range(count):
        link.send(b"m", number)
    sent = [transfer.delivery_id for transfer, _ in wire.said() if isinstance(transfer, Transfer)]
    assert sent == [(first_id + number) & SERIAL_MASK for number in range(count)]
    events = wire.say(Disposition(role=True, first=sent[0], last=sent[-1], settled=True, state=ACCEPTED))
    assert events == [(OUTCOME, link, number, ACCEPTED) for number in range(count)]
    assert wire.say(Disposition(role=True, first=sent[0], last=sent[-1], settled=True, state=ACCEPTED)) == []


def _sender(wire: Wire, first_id: int) -> Any:
    session = wire.session(first_id=first_id)
    link = session.attach_sender(sending())
    wire.say(Attach(link_name="s", handle=0, role=True, target=Target()))
    wire.credit(link, 100, next_incoming_id=first_id)
    wire.said()
    return link


def test_an_outcome_that_is_not_settled_is_settled_by_us_in_ranges() -> None:
    """2.6.12: the sender settles when it knows the outcome."""
    wire = Wire()
    link = wire.sender(wire.session())
    for number in range(4):
        link.send(b"m", number)
    wire.say(Disposition(role=True, first=1, settled=True, state=ACCEPTED))
    wire.said()
    events = wire.say(Disposition(role=True, first=0, last=3, settled=False, state=RELEASED))
    assert [event[2] for event in events] == [0, 2, 3]
    assert [(d.role, d.first, d.last, d.settled) for d, _ in wire.said() if isinstance(d, Disposition)] == [
        (False, 0, 0, True),
        (False, 2, 3, True),
    ]


@pytest.mark.parametrize(
    "state",
    [
        None,
        Rejected(error=Error(condition="amqp:precondition-failed", description="no")),
        Modified(delivery_failed=True),
        Transactional(txn_id=b"id", outcome=Accepted()),
    ],
    ids=["none", "rejected", "modified", "transactional"],
)
def test_an_outcome_is_told_as_the_peer_said_it(state: Any) -> None:
    wire = Wire()
    link = wire.sender(wire.session())
    for context in ("a", "b"):
        link.send(b"m", context)
    events = wire.say(Disposition(role=True, first=0, settled=True, state=state))
    events += wire.say(Disposition(role=True, first=1, settled=True, state=state))
    assert events == [(OUTCOME, link, "a", state), (OUTCOME, link, "b", state)]


def test_a_message_that_is_sent_settled_has_no_outcome() -> None:
    wire = Wire()
    link = wire.sender(wire.session())
    left: list[None] = []
    link.send(b"m", "context", left=lambda: left.append(None))
    assert wire.one(Transfer).settled
    assert len(left) == 1
    assert link.abandon() == []
    assert wire.say(Disposition(role=True, first=0, settled=True, state=ACCEPTED)) == []


def test_a_state_travels_with_the_first_transfer() -> None:
    """4.5.8: a send in a transaction."""
    wire = Wire()
    link = wire.sender(wire.session())
    state = Transactional(txn_id=b"id")
    link.send(b"x" * 1000, None, state=encode(state))
    transfers = [transfer for transfer, _ in wire.said() if isinstance(transfer, Transfer)]
    assert [transfer.state for transfer in transfers] == [state, None, None]


def test_abandoned_messages_are_returned_once_and_hear_no_outcome() -> None:
    wire = Wire()
    link = wire.sender(wire.session())
    link.send(b"m", "a")
    link.send(b"m", "b")
    assert link.abandon() == ["a", "b"]
    assert link.abandon() == []
    assert wire.say(Disposition(role=True, first=0, last=1, settled=True, state=ACCEPTED)) == []


def test_outcomes_still_come_after_our_detach() -> None:
    """A producer that is closed wants to know what became of its last messages."""
    wire = Wire()
    link = wire.sender(wire.session())
    link.send(b"m", "context")
    link.detach(closed=True)
    event = (OUTCOME, link, "context", ACCEPTED)
    assert wire.say(Disposition(role=True, first=0, settled=True, state=ACCEPTED)) == [event]


def test_a_drain_is_answered_with_the_rest_of_the_credit() -> None:
    """2.6.7: the delivery-count advances over what was not used."""
    wire = Wire()
    link = wire.sender(wire.session(), credit=0)
    assert wire.credit(link, 10, drain=True) == [(CREDIT, link)]
    assert link.drain
    link.send(b"m", None)
    link.drained()
    flow = wire.one(Flow)
    assert (flow.handle, flow.delivery_count, flow.link_credit, flow.drain) == (0, 10, 0, True)
    assert link.credit == 0


def test_a_drain_waits_for_messages_that_the_window_holds_back() -> None:
    """Its answer counts them, so that it must not overtake them."""
    wire = Wire()
    link = wire.sender(wire.session(), credit=0)
    wire.credit(link, 10, drain=True, window=0)
    link.send(b"m", None)
    link.drained()
    assert wire.said() == []
    wire.say(flow_of(delivery_count=0, link_credit=10, drain=True))
    assert [type(performative) for performative, _ in wire.said()] == [Transfer, Flow]


def _numbers(wire: Wire) -> list[int | None]:
    return [transfer.delivery_id for transfer, _ in wire.said() if isinstance(transfer, Transfer)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
def test_a_link_that_ends_leaves_no_gap_in_the_numbers_of_others(settled: bool, stream: bool) -> None:
    """2.6.12: Artemis and ActiveMQ Classic close the connection for a missing delivery-id."""
    wire = Wire()
    session = wire.session()
    ending, going_on = wire.sender(session), wire.sender(session, name="t")
    wire.credit(going_on, 10, window=0)
    if stream:
        ending.stream("dropped", lambda: None, settled=settled).write(b"1", last=True)
    else:
        ending.send(b"1", "dropped", left=(lambda: None) if settled else None)
    going_on.send(b"2", "kept")
    ending.detach(closed=True)
    assert ending.abandon() == ([] if settled and stream else ["dropped"])
    wire.credit(going_on, 10)
    assert _numbers(wire) == [0]
    assert wire.say(Disposition(role=True, first=0, settled=True, state=ACCEPTED)) == [
        (OUTCOME, going_on, "kept", ACCEPTED)
    ]


def test_a_stream_that_is_taken_back_before_its_first_transfer_wants_no_outcome() -> None:
    wire = Wire()
    link = wire.sender(wire.session())
    wire.credit(link, 10, window=0)
    stream = link.stream("withdrawn", lambda: None)
    stream.write(b"1", last=True)
    stream.abort()
    assert link.abandon() == []
    wire.credit(link, 10)
    link.send(b"2", "kept")
    assert _numbers(wire) == [0, None, 1]


@pytest.mark.parametrize("credit", [2**31, 2**32 - 1])
def test_credit_may_be_more_than_half_of_the_serial_numbers(credit: int) -> None:
    """2.6.7: it is a number of messages, and no serial number."""
    wire = Wire()
    link = wire.sender(wire.session(), credit=credit)
    link.send(b"m", None)
    wire.credit(link, credit)
    assert link.credit == credit - 1


def test_a_flow_in_the_middle_of_a_message_changes_no_credit() -> None:
    """2.6.7: a sender may count a message when its last transfer is sent."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=1)
    wire.transfer(0, more=True)
    wire.say(flow_of(delivery_count=0, link_credit=1))
    wire.transfer(None)
    assert link.credit == 0
    link.grant(1)
    flow = wire.one(Flow)
    assert (flow.delivery_count, flow.link_credit) == (1, 1)


def test_credit_is_that_of_the_peer_s_count() -> None:
    """2.6.7: what is on its way is not granted twice, and credit may be taken back."""
    wire = Wire()
    link = wire.sender(wire.session(), credit=5)
    for _ in range(3):
        link.send(b"m", None)
    wire.say(flow_of(delivery_count=1, link_credit=5))
    assert link.credit == 3
    wire.say(flow_of(delivery_count=3, link_credit=0))
    assert link.credit == 0
    wire.say(flow_of(delivery_count=1, link_credit=1))
    assert link.credit == 0


@pytest.mark.parametrize("size", [0, 1, 479, 480, 481, 5000])
def test_a_message_is_cut_into_frames_of_the_peer_s_size(size: int) -> None:
    """2.6.14; 512 is the smallest max-frame-size (2.7.1)."""
    wire = Wire()
    link = wire.sender(wire.session())
    message = bytes(index % 251 for index in range(size))
    link.send(message, None)
    data = wire.connection.data_to_send()
    sizes, position = [], 0
    while position < len(data):
        sizes.append(int.from_bytes(data[position : position + 4], "big"))
        position += sizes[-1]
    assert max(sizes) <= 512
    link.send(message, None)
    said = wire.said()
    assert b"".join(payload for _, payload in said) == message
    assert [t.more for t, _ in said if isinstance(t, Transfer)] == [True] * (len(sizes) - 1) + [False]


# -- what we receive --------------------------------------------------------------------------------------------


def test_a_message_in_several_transfers_comes_as_one() -> None:
    """2.6.14; it takes one credit."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=2)
    assert wire.transfer(0, b"a", more=True) == []
    assert link.credit == 2
    assert wire.transfer(None, b"b", more=True) == []
    assert wire.transfer(0, b"c") == [(DELIVERY, link, 0, b"abc", False)]
    assert link.credit == 1
    assert wire.transfer(1, b"d", settled=True) == [(DELIVERY, link, 1, b"d", True)]


@pytest.mark.parametrize("settled", [0, 1, 2])
def test_a_message_is_settled_if_one_of_its_transfers_says_so(settled: int) -> None:
    """2.7.5"""
    wire = Wire()
    link = wire.receiver(wire.session())
    for index in range(3):
        events = wire.transfer(0, b"x", more=index < 2, settled=index == settled)
    assert events == [(DELIVERY, link, 0, b"xxx", True)]
    link.settle(0, encode(ACCEPTED))
    assert wire.said() == []


def test_an_aborted_message_is_not_delivered_and_takes_its_credit() -> None:
    """2.6.14; who waits for a message hears that credit is gone."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=2)
    wire.transfer(0, b"a", more=True)
    assert wire.transfer(None, b"", aborted=True) == [(CREDIT, link)]
    assert link.credit == 1
    assert wire.transfer(1, b"whole") == [(DELIVERY, link, 1, b"whole", False)]


def test_transfers_of_two_links_may_alternate() -> None:
    """2.6.14: only within a link they may not."""
    wire = Wire()
    session = wire.session()
    one, two = wire.receiver(session, name="r1"), wire.receiver(session, name="r2")
    wire.transfer(0, b"a", more=True)
    wire.transfer(1, b"b", handle=1, more=True)
    assert wire.transfer(None, b"a") == [(DELIVERY, one, 0, b"aa", False)]
    assert wire.transfer(None, b"b", handle=1) == [(DELIVERY, two, 1, b"bb", False)]


def test_equal_outcomes_in_a_row_leave_as_one_disposition() -> None:
    """2.7.6"""
    wire = Wire()
    link = wire.receiver(wire.session())
    for number in range(6):
        wire.transfer(number)
    for number in (0, 1, 2, 4, 5):
        link.settle(number, encode(ACCEPTED))
    link.settle(3, encode(RELEASED))
    said = [(d.first, d.last, d.state) for d, _ in wire.said() if isinstance(d, Disposition)]
    assert said == [(0, 2, ACCEPTED), (4, 5, ACCEPTED), (3, 3, RELEASED)]


def test_an_outcome_leaves_before_the_frame_that_is_asked_for_next() -> None:
    """An acknowledgement must not follow the discharge of its transaction."""
    wire = Wire()
    session = wire.session()
    receiver, sender = wire.receiver(session), wire.sender(session)
    wire.transfer(0)
    receiver.settle(0, encode(ACCEPTED))
    sender.send(b"discharge", None)
    assert [type(performative) for performative, _ in wire.said()] == [Disposition, Transfer]


def test_a_message_is_settled_once_and_not_at_all_if_the_sender_did() -> None:
    wire = Wire()
    link = wire.receiver(wire.session())
    wire.transfer(0)
    wire.transfer(1)
    wire.say(Disposition(role=False, first=0, last=0, settled=True))
    for number in (0, 1, 1, 7):
        link.settle(number, encode(ACCEPTED))
    assert [(d.first, d.last) for d, _ in wire.said() if isinstance(d, Disposition)] == [(1, 1)]


def test_a_drain_that_is_answered_leaves_no_credit() -> None:
    """2.6.7"""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=10)
    link.start_drain()
    assert wire.one(Flow).drain
    assert wire.say(flow_of(delivery_count=10, link_credit=0, drain=True)) == [(CREDIT, link)]
    assert link.credit == 0


def test_an_answer_to_a_drain_counts_a_message_that_took_the_credit_before() -> None:
    """A race: the message and the drain cross; the late answer takes nothing of the credit granted since."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=1)
    link.start_drain()
    wire.transfer(0)
    assert link.credit == 0
    link.grant(1)
    assert wire.say(flow_of(delivery_count=1, link_credit=0, drain=True)) == [(CREDIT, link)]
    assert link.credit == 1


def test_the_rest_of_a_message_uses_up_the_credit_that_was_granted_for_it() -> None:
    """The peer counts the message after its last transfer, and an answer to a drain took all credit before."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=10)
    link.start_drain()
    wire.transfer(0, b"first", more=True)
    assert not link.cut_short
    wire.say(flow_of(delivery_count=10, link_credit=0, drain=True))
    assert link.cut_short
    wire.said()
    link.bring_rest()
    flow = wire.one(Flow)
    assert (flow.delivery_count, flow.link_credit, flow.drain) == (10, 1, True)
    wire.transfer(0, b"second")
    assert link.credit == 0
    link.grant(10)
    flow = wire.one(Flow)
    assert (flow.delivery_count, flow.link_credit, flow.drain) == (11, 10, False)


@pytest.mark.parametrize("end", ["link", "session"])
def test_credit_for_a_link_that_we_have_ended_is_no_error_and_says_nothing(end: str) -> None:
    """A timer that grants credit may run out before the peer has answered our Detach or End."""
    wire = Wire()
    session = wire.session()
    link = wire.receiver(session)
    link.detach(closed=True) if end == "link" else session.end()
    wire.said()
    link.grant(1)
    assert wire.said() == []


@pytest.mark.parametrize("pieces", [[12], [6, 6], [11, 1, 1]])
def test_of_a_message_beyond_the_limit_only_the_start_is_kept(pieces: list[int]) -> None:
    """Bytes are dropped as they arrive; the message can be refused, and the link goes on."""
    wire = Wire()
    link = wire.receiver(wire.session(), max_message_size=11)
    for index, size in enumerate(pieces):
        events = wire.transfer(0 if index == 0 else None, b"x" * size, more=index < len(pieces) - 1)
    total = sum(pieces)
    assert events == [(OVERSIZE, link, 0, b"x" * total, total, False)]
    link.settle(0, encode(RELEASED))
    assert wire.one(Disposition).state == RELEASED
    assert wire.transfer(1, b"y" * 11) == [(DELIVERY, link, 1, b"y" * 11, False)]


def test_a_message_without_end_takes_no_memory() -> None:
    wire = Wire()
    link = wire.receiver(wire.session(), max_message_size=5000)
    wire.transfer(0, b"x" * 4000, more=True)
    for _ in range(100):
        wire.transfer(None, b"y" * 4000, more=True)
    assert link._assembly is not None
    assert link._assembly.kept() == b"x" * KEPT_OF_OVERSIZE
    assert wire.transfer(None, b"", aborted=True) == [(CREDIT, link)]


def test_a_caller_who_minds_the_credit_hears_of_messages_without() -> None:
    """A drain and a message that cross on the wire: no reason to end anything."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=1, overdraft=None)
    assert [wire.transfer(number)[0][0] for number in range(3)] == [DELIVERY] * 3
    assert link.credit == -2


def test_a_sender_that_counts_backwards_gets_no_credit_by_it() -> None:
    """2.6.7: one such Flow gave credit for 2^30 messages, which all came into the memory."""
    wire = Wire()
    link = wire.receiver(wire.session(), credit=3, overdraft=None)
    assert wire.transfer(0)[0][0] == DELIVERY
    assert wire.say(flow_of(delivery_count=SERIAL_MASK - 2**30, link_credit=9)) == [(CREDIT, link)]
    assert link.credit == 2
    link.grant(1)
    flow = wire.one(Flow)
    assert (flow.delivery_count, flow.link_credit) == (1, 3)
    assert [wire.transfer(number)[0][0] for number in range(1, 5)] == [DELIVERY] * 4
    assert link.credit == -1


def test_what_arrives_after_our_detach_is_dropped() -> None:
    wire = Wire()
    session = wire.session()
    link, other = wire.receiver(session, name="r1"), wire.receiver(session, name="r2")
    wire.transfer(0, b"a", more=True)
    link.detach(closed=True)
    assert wire.transfer(None, b"b") == []
    assert wire.transfer(1, b"c") == []
    assert wire.transfer(2, b"d", handle=1) == [(DELIVERY, other, 2, b"d", False)]


def test_the_rest_of_a_message_is_dropped_after_its_link_and_then_its_session_ended() -> None:
    """A session that was closed while a large message arrived ended the connection, with all its other sessions."""
    wire = Wire()
    session = wire.session()
    link = wire.receiver(session)
    wire.transfer(0, b"a", more=True)
    link.detach(closed=True)
    session.end()
    assert wire.transfer(0, b"b", more=True) == []
    assert wire.transfer(0, b"c") == []
    assert wire.transfer(1, b"whole") == []


# -- attach and detach ------------------------------------------------------------------------------------------


def test_a_handle_is_used_again_only_after_the_peer_s_answer() -> None:
    """2.6.4: else its frames would meet the next link."""
    wire = Wire()
    session = wire.session()
    first = wire.receiver(session, name="r1")
    first.detach(closed=True)
    assert session.attach_receiver(receiving("r2")).handle == 1
    assert wire.say(Detach(handle=0, closed=True)) == [(DETACHED, first)]
    assert session.attach_receiver(receiving("r3")).handle == 0


def test_a_link_that_is_detached_before_it_is_attached_frees_its_handle_with_both_answers() -> None:
    wire = Wire()
    session = wire.session()
    link = session.attach_receiver(receiving())
    link.detach(closed=True)
    assert wire.say(answer_to(link)) == [(ATTACHED, link)]
    assert session.attach_receiver(receiving("r2")).handle == 1
    assert wire.say(Detach(handle=0, closed=True)) == [(DETACHED, link)]
    assert session.attach_receiver(receiving("r3")).handle == 0


def test_the_peer_s_handles_are_its_own() -> None:
    """2.6.2: each side numbers its outgoing end."""
    wire = Wire()
    session = wire.session()
    link = session.attach_receiver(receiving())
    attach = Attach(link_name="r", handle=77, role=False, source=link.local.source, initial_delivery_count=SERIAL_MASK)
    wire.say(attach)
    link.grant(2)
    assert wire.one(Flow).delivery_count == SERIAL_MASK
    assert wire.transfer(0, handle=77) == [(DELIVERY, link, 0, b"m", False)]
    assert wire.transfer(1, handle=77) == [(DELIVERY, link, 1, b"m", False)]
    link.grant(1)
    assert wire.one(Flow).delivery_count == 1


def test_a_detach_of_the_peer_is_told_with_its_reason_and_answered_when_the_caller_likes() -> None:
    wire = Wire()
    link = wire.receiver(wire.session())
    error = Error(condition="amqp:resource-deleted", description="gone")
    assert wire.say(Detach(handle=0, closed=True, error=error)) == [(DETACHED, link)]
    assert (link.remote_error, link.remote_closed) == (error, True)
    link.detach(closed=True)
    link.detach(closed=True)
    assert wire.one(Detach).handle == 0


def test_no_more_links_than_the_peer_has_handles() -> None:
    """2.7.2 handle-max"""
    wire = Wire()
    session = wire.session(handle_max=1)
    wire.receiver(session, name="r1")
    wire.receiver(session, name="r2")
    with pytest.raises(StateError, match="handle"):
        session.attach_receiver(receiving("r3"))


def test_an_attach_that_the_peer_cannot_take_is_refused_before_it_is_sent() -> None:
    """2.7.1 max-frame-size"""
    wire = Wire()
    session = wire.session()
    with pytest.raises(StateError, match="512"):
        session.attach_receiver(receiving("x" * 600))
    assert [type(performative) for performative, _ in wire.said()] == [Open, Begin]
    assert session.attach_receiver(receiving("y")).handle == 0


# -- violations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("performative", "condition"),
    [
        (Transfer(handle=9, delivery_id=0), "amqp:session:unattached-handle"),
        (Transfer(handle=1, delivery_id=0), "amqp:not-allowed"),
        (Transfer(handle=0), "amqp:invalid-field"),
        (flow_of(9), "amqp:session:unattached-handle"),
        (flow_of(0, delivery_count=4, link_credit=0), "amqp:link:transfer-limit-exceeded"),
        (flow_of(0, delivery_count=SERIAL_MASK, link_credit=0), "amqp:link:transfer-limit-exceeded"),
        (Detach(handle=9), "amqp:session:unattached-handle"),
        (Attach(link_name="r", handle=0, role=False), "amqp:session:handle-in-use"),
        (Attach(link_name="nobody asked", handle=5, role=False), "amqp:not-allowed"),
        (Disposition(role=True, first=5, last=4, settled=True), "amqp:invalid-field"),
        (Disposition(role=True, first=0, settled=True, state=None), None),
        (Flow(next_incoming_id=9, incoming_window=1, next_outgoing_id=0, outgoing_window=1), "amqp:invalid-field"),
    ],
)
def test_a_frame_that_fits_nothing_ends_the_connection(performative: Any, condition: str | None) -> None:
    wire = Wire()
    session = wire.session()
    wire.receiver(session, credit=3)
    wire.sender(session)
    events = wire.say(performative)
    assert condition_of(events) == condition if condition else events == []


def test_a_message_beyond_the_credit_is_a_violation() -> None:
    """2.8.17 transfer-limit-exceeded"""
    wire = Wire()
    wire.receiver(wire.session(), credit=1)
    assert len(wire.transfer(0)) == 1
    assert condition_of(wire.transfer(1)) == "amqp:link:transfer-limit-exceeded"


def test_delivery_ids_count_up() -> None:
    """2.6.12; the first may be any, and they go round."""
    wire = Wire()
    wire.receiver(wire.session())
    assert [wire.transfer(n)[0][2] for n in (SERIAL_MASK - 1, SERIAL_MASK, 0)] == [SERIAL_MASK - 1, SERIAL_MASK, 0]
    assert condition_of(wire.transfer(2)) == "amqp:invalid-field"


def test_a_message_does_not_begin_within_another_one() -> None:
    wire = Wire()
    wire.receiver(wire.session())
    wire.transfer(0, more=True)
    assert condition_of(wire.transfer(1)) == "amqp:invalid-field"

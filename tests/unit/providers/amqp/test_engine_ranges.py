"""The ranges of deliveries that a disposition names (AMQP 1.0 2.7.6), and the work for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from engine_support import Wire
from hypothesis import given
from hypothesis import strategies as st

from pyjmsack.providers.amqp.engine.deliveries import SERIAL_MASK, Unsettled
from pyjmsack.providers.amqp.engine.events import DELIVERY, OUTCOME
from pyjmsack.providers.amqp.engine.performatives import ACCEPTED, Disposition, encode

HUGE = 2**31 - 1


class Watched(Unsettled):
    """Counts how often it is asked for an id, or gives all of them."""

    __slots__ = ("looks",)

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def __contains__(self, number: object) -> bool:
        self.looks += 1
        return super().__contains__(number)

    def __iter__(self) -> Iterator[int]:
        self.looks += len(self)
        return super().__iter__()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 9), st.just(0)),
        st.tuples(st.just("remove"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("range"), st.integers(-9, 60), st.integers(0, 60) | st.integers(0, HUGE)),
    ),
    max_size=40,
)


@given(st.integers(0, SERIAL_MASK), STEPS)
def test_a_range_finds_what_is_not_settled_in_it_in_order(base: int, steps: list[tuple[str, int, int]]) -> None:
    """RFC 1982: the numbers go round."""
    known, left, end = Unsettled(), set[int](), 0
    for what, number, length in steps:
        if what == "add":
            for each in range(end, end + number):
                known[(base + each) & SERIAL_MASK] = None
            left |= {*range(end, end + number)}
            end += number
        elif what == "remove":
            known.pop((base + number) & SERIAL_MASK, None)
            left.discard(number)
        else:
            ends = [(base + each) & SERIAL_MASK for each in (number, number + length, end)]
            hits = sorted(each for each in left if number <= each <= number + length)
            assert known.within(*ends) == [(base + each) & SERIAL_MASK for each in hits]
            for each in hits:
                del known[(base + each) & SERIAL_MASK]
            left -= {*hits}
    assert {*known} == {(base + each) & SERIAL_MASK for each in left}


def test_a_range_finds_the_only_old_delivery_beside_new_ones_more_than_half_of_all_numbers_later() -> None:
    known = Unsettled()
    for number in (5, 2**31 + 50, 2**31 + 52, 2**32 - 1):
        known[number] = None
    assert known.within(2**31 + 49, 2**31 + 53, 0) == [2**31 + 50, 2**31 + 52]
    assert known.within(2**32 - 9, 7, 0) == [2**32 - 1, 5]


@pytest.mark.parametrize(
    ("first", "last"), [(10**6, 10**6 + HUGE), (4000, 7999), (3999, 3999), (SERIAL_MASK - HUGE, SERIAL_MASK)]
)
def test_ranges_that_contain_nothing_look_at_no_delivery_again_and_again(first: int, last: int) -> None:
    """8,000 such frames have 200 KB. They held up all connections of the loop for several seconds."""
    known = Watched()
    for number in range(12_000):
        known[number] = None
    for number in range(3999, 8000):
        del known[number]
    for _ in range(1000):
        assert known.within(first, last, 12_000) == []
    assert known.looks < 20_000  # each delivery once or twice, and one look for each frame


def test_the_deliveries_that_were_settled_one_by_one_are_forgotten() -> None:
    """Also if there is a search now and then."""
    known = Unsettled()
    for number in range(10_000):
        known[number] = None
        if number >= 10:
            del known[number - 10]
        assert known.within(number + 5, number + HUGE, number + 1) == []
    assert len(known._ascending) <= 2 * len(known)


# -- what the sender of our messages settles ---------------------------------------------------------------------


def settled_by_sender(first: int, last: int) -> Disposition:
    return Disposition(role=False, first=first, last=last, settled=True)


def test_messages_that_the_sender_settled_get_no_outcome_on_any_link() -> None:
    """2.7.6: one range may contain messages of several links."""
    wire = Wire()
    session = wire.session()
    links = [wire.receiver(session, name=name) for name in ("r1", "r2")]
    for number in range(10):
        wire.transfer(number, handle=links[number % 2].handle)
    assert wire.say(settled_by_sender(2, 6)) == []
    assert [sorted(link.unsettled) for link in links] == [[0, 8], [1, 7, 9]]
    for number in range(10):
        links[number % 2].settle(number, encode(ACCEPTED))
    ranges = [(frame.first, frame.last) for frame, _ in wire.said() if isinstance(frame, Disposition)]
    assert ranges == [(0, 1), (7, 9)]
    assert not session.incoming


@pytest.mark.parametrize("aborted", [False, True])
def test_a_message_that_its_sender_settled_before_its_last_transfer_gets_no_outcome(aborted: bool) -> None:
    wire = Wire()
    session = wire.session()
    link = wire.receiver(session)
    wire.transfer(0, more=True)
    wire.say(settled_by_sender(0, 0))
    events = wire.transfer(None, aborted=aborted)
    assert aborted or [(event[0], event[4]) for event in events] == [(DELIVERY, True)]
    assert (link.unsettled, session.incoming) == (set(), {})


@pytest.mark.parametrize("end", ["link", "session"])
def test_a_link_that_ends_leaves_nothing_that_its_sender_could_settle(end: str) -> None:
    wire = Wire()
    session = wire.session()
    link, other = wire.receiver(session, name="r1"), wire.receiver(session, name="r2")
    wire.transfer(0, handle=other.handle)
    wire.transfer(1, handle=link.handle)
    wire.transfer(2, handle=link.handle, more=True)
    link.detach(closed=True) if end == "link" else session.end()
    assert session.incoming == ({0: other} if end == "link" else {})


# -- the outcomes of what we send --------------------------------------------------------------------------------


def test_outcomes_in_any_order_and_in_ranges_with_gaps_find_their_messages_once() -> None:
    wire = Wire()
    link = wire.sender(wire.session())
    for number in range(20):
        link.send(b"m", number)

    def outcomes(first: int, last: int) -> list[Any]:
        events = wire.say(Disposition(role=True, first=first, last=last, settled=True, state=ACCEPTED))
        assert {event[0] for event in events} <= {OUTCOME}
        return [event[2] for event in events]

    assert outcomes(5, 5) == [5]
    assert outcomes(3, 8) == [3, 4, 6, 7, 8]
    assert outcomes(9, 11) == [9, 10, 11]
    assert outcomes(3, 11) == []
    link.send(b"m", 20)
    assert outcomes(SERIAL_MASK - 5, 1) == [0, 1]
    assert outcomes(0, HUGE) == [2, *range(12, 21)]
    assert link.unsettled == {}

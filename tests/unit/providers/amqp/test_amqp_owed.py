"""How many messages the broker may owe after a drain, and with which credit the link asks for them (S36)."""

from __future__ import annotations

import pytest

from pyjmsack.providers.amqp.owed import Owed


def drained(owed: Owed, credit: int, arrived: int) -> int:
    """Let messages arrive, and end the drain. Return the credit of the next drain, and begin that drain."""
    owed.most = max(0, owed.most - arrived)
    following = owed.after(credit, arrived)
    owed.fetching = following > 0
    return following


@pytest.mark.parametrize(("arrived", "most"), [(2, 3), (5, 0)])
def test_a_presettled_link_notes_what_may_be_owed_and_gets_it_only_if_it_is_kept_s36(arrived: int, most: int) -> None:
    owed = Owed(possible=True)
    assert drained(owed, 5, arrived) == 0
    assert (owed.most, owed.wanted()) == (most, 0)
    owed.kept = True
    assert owed.wanted() == most


def test_a_drain_of_one_credit_that_brings_nothing_is_followed_by_others_s36() -> None:
    """Artemis answers such a drain too early, too. A worker of an App has one credit, and lost a message at a stop."""
    owed = Owed(possible=True)
    owed.kept = True
    assert [drained(owed, *drain) for drain in [(1, 0), (1, 1)]] == [1, 0]
    assert [drained(owed, *drain) for drain in [(1, 0), (1, 0), (1, 0), (1, 0)]] == [1, 1, 1, 0]


def test_a_receive_that_brings_nothing_lets_no_later_drain_take_a_message_that_nobody_asked_for_s36() -> None:
    owed = Owed(possible=True, pulls=True)
    assert drained(owed, 1, 0) == 0
    owed.kept = True
    assert owed.wanted() == 0


def test_three_single_credits_that_bring_nothing_end_the_drains() -> None:
    """S36: a single credit that brings a message is followed by credit for all the others."""
    owed = Owed(possible=True)
    owed.kept = True
    drains = [(9, 2), (1, 0), (1, 1), (6, 3), (1, 0), (1, 0), (1, 0)]
    assert [drained(owed, *drain) for drain in drains] == [1, 1, 6, 1, 1, 1, 0]
    assert owed.most == 0


def test_the_number_of_drains_is_bounded_although_each_brings_a_message_s36() -> None:
    """A queue that is filled all the time does not keep the drain from its end."""
    owed = Owed(possible=True)
    owed.kept = True
    credit, total = drained(owed, 4, 0), 0
    while credit:
        total += credit
        credit = drained(owed, credit, credit)
    assert total == 4


def test_a_link_whose_messages_go_back_to_the_queue_asks_for_none() -> None:
    owed = Owed()
    owed.kept = True
    assert [drained(owed, *drain) for drain in [(5, 0), (1, 1)]] == [0, 0]

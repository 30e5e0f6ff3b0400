"""In how many bursts everything is restored, and how the guilty one is found among many (S103, S104)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from failover_fakes import Bench

from pyjmsack.errors import ConnectionLostException
from pyjmsack.providers.failover import restore
from pyjmsack.providers.failover.blame import MOST_LOSSES
from pyjmsack.providers.failover.restore import MOST_GROUPS

SESSIONS = range(1, 51)
CREATE = {"create_session", "create_producer", "create_consumer"}


def links(session: int) -> tuple[int, int]:
    """Return the ids of the producer and the consumer of a session."""
    return 100 + session, 200 + session


def many() -> Bench:
    """Return a connection with many sessions. Each has a producer and a consumer."""
    bench = Bench("amqp://a")
    for number in SESSIONS:
        bench.session(number)
        producer, consumer = links(number)
        bench.producer(producer, number)
        bench.consumer(consumer, number)
    return bench


def lose(bench: Bench, reason: str | None = None) -> None:
    """Lose the connection while everything is asked for, and come to the next one, which answers nothing yet."""
    attempts = len(bench.tried)
    bench.member.fail(ConnectionLostException("gone", error_code=reason))
    while len(bench.tried) == attempts:
        bench.clock.pass_by(0.001)


def bursts(bench: Bench) -> int:
    """Answer until everything is restored, and return the number of bursts that were asked for."""
    count = 0
    while bench.events[-1] == "interrupted":
        pending, bench.member.pending = bench.member.pending, []
        count += 1
        for _, done in pending:
            done.succeed()
        bench.clock.pass_by(0)
    return count


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session may be closed alone at once, and not only after a minute."""
    monkeypatch.setattr(restore, "PATIENCE", 0.0)


def test_losses_without_a_reason_while_everything_is_restored_leave_it_in_one_burst_s103() -> None:
    """After one such loss there was a round trip for each object: 97 s for 50 sessions at a far broker."""
    bench = many()
    bench.silent |= CREATE
    for _ in range(2):  # what was restored in between clears the count
        for _ in range(MOST_LOSSES):
            lose(bench)
        assert bursts(bench) == 1


def test_more_than_a_thousand_objects_are_restored_in_several_bursts_s103(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 sessions with their consumers kept a loop busy for more than a second."""
    monkeypatch.setattr(restore, "MOST_TOGETHER", 40)
    bench = many()
    bench.silent |= CREATE
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bursts(bench) == 4


@pytest.mark.parametrize(
    ("count", "size", "lengths"), [(0, 5, []), (5, 5, [5]), (6, 5, [3, 3]), (7, 3, [2, 2, 3]), (3, 0, [1, 1, 1])]
)
def test_bursts_are_of_about_the_same_size_s104(count: int, size: int, lengths: list[int]) -> None:
    """A rest of one object looked as if it had been asked for alone, and was closed after three losses."""
    infos: list[Any] = [*range(count)]
    assert [len(burst) for burst in restore._cut(infos, size)] == lengths


@pytest.mark.parametrize(("losses", "reason"), [(MOST_LOSSES, None), (1, "amqp:internal-error")])
def test_after_more_losses_a_restore_costs_a_few_round_trips_and_not_one_for_each_object_s104(
    losses: int, reason: str | None
) -> None:
    """A loss in between was enough, and no restore of many objects at a far broker ever came to its end."""
    bench = many()
    bench.silent |= CREATE
    bench.member.fail()
    bench.clock.pass_by(0)
    for _ in range(losses):
        lose(bench, reason)
    for _ in range(5):
        lose(bench)
    assert 1 < bursts(bench) <= MOST_GROUPS + 2
    assert not [event for event in bench.events if event[0] == "closed"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("reason", ["amqp:internal-error", None])
@pytest.mark.parametrize("seed", range(10))
def test_the_guilty_among_many_are_closed_and_nothing_else_s104(reason: str | None, seed: int) -> None:
    bench = many()
    chosen = random.Random(seed).sample(SESSIONS, 3)
    session, of_producer, of_consumer = chosen
    producer, consumer = links(of_producer)[0], links(of_consumer)[1]
    bench.deadly = {session, producer, consumer}
    bench.reason = reason
    bench.member.fail()
    bench.clock.pass_by(600)
    assert bench.events[-1][0] == "restored"
    assert {event[1] for event in bench.events if event[0] == "closed"} == {session, producer}
    resources = bench.provider._resources
    assert {*SESSIONS} - {*resources.sessions} == {session}
    assert {links(n)[0] for n in SESSIONS} - {*resources.producers} == {producer, links(session)[0]}
    assert {links(n)[1] for n in SESSIONS} - {*resources.consumers} == {consumer, links(session)[1]}


@pytest.mark.usefixtures("impatient")
def test_a_network_that_breaks_at_any_burst_closes_nothing_s104() -> None:
    """The suspects change with each loss."""
    bench = many()
    chance = random.Random(1)
    bench.reason = None
    bench.member.fail()
    for _ in range(100):
        attempts = len(bench.tried)
        bench.deadly = {chance.choice(SESSIONS) + chance.choice([0, 100, 200])}
        while len(bench.tried) == attempts:
            bench.clock.pass_by(0.001)
    bench.deadly = set()
    bench.clock.pass_by(60)
    assert bench.events == ["interrupted", ("restored", "a")]


def test_a_network_that_lets_only_single_requests_through_is_restored_over_in_the_end_s103() -> None:
    """All bursts become smaller while connections go on to be lost, not only those of the suspects."""
    bench = many()
    bench.silent |= CREATE
    bench.member.fail()
    bench.clock.pass_by(0)
    for _ in range(13):
        lose(bench)
    assert bursts(bench) == 3 * len(SESSIONS)

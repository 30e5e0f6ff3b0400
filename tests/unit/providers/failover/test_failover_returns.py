"""A preferred broker that only seems to be there again (A.3 ``priorityBackup``): a good connection is not left for it
again and again."""

from __future__ import annotations

import itertools

import pytest
from failover_fakes import Bench, FakeMember

from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    JMSSecurityException,
    ResourceAllocationException,
)
from pyjmsack.providers.failover.returns import _FIRST_PAUSE, _LONGEST_PAUSE, _STAYS
from pyjmsack.spi.completion import Completion

DOWN = ConnectionLostException("down")
FULL = ResourceAllocationException("full")
AWAY_AND_BACK = ["interrupted", ("restored", "b")]


def at_the_backup(options: str = "failover.maxReconnectDelay=1000") -> Bench:
    """Return a connection with a producer that found only its second broker, which refuses nothing."""
    bench = Bench(options=f"priorityBackup=true&{options}", connect=False)
    bench.down = {"a": DOWN}
    bench.lenient = {"b"}
    bench.connect()
    bench.session()
    bench.producer()
    return bench


def probe(bench: Bench) -> FakeMember:
    """Let time pass until the preferred broker, which is up, got a Close that it does not answer."""
    bench.silent.add("close")
    bench.down = {}
    bench.clock.pass_by(1)
    assert bench.member.name == "a"
    assert [verb for verb, _ in bench.member.pending] == ["close"]
    return bench.member


def test_a_broker_that_does_not_answer_the_close_of_the_test_in_time_is_not_there() -> None:
    """S109: the watch does not wait for ever, and tries again."""
    bench = at_the_backup()
    hanging = probe(bench)
    tries = len(bench.tried)
    bench.clock.pass_by(13)
    assert (bench.tried[tries:], hanging.aborted) == ([], False)
    bench.clock.pass_by(3)
    assert (bench.tried[tries:], hanging.aborted, bench.events) == (["a"], True, [])
    bench.silent.discard("close")
    bench.clock.pass_by(20)
    assert bench.events == ["interrupted", ("restored", "a")]


def test_a_broker_that_is_lost_before_it_answers_the_close_of_the_test_is_not_there() -> None:
    """S109: a good connection was left for a broker that was dead."""
    bench = at_the_backup()
    _, closed = probe(bench).pending.pop()
    bench.silent.discard("close")
    bench.down = {"a": DOWN}
    closed.fail(ConnectionLostException("gone"))
    bench.clock.pass_by(60)
    assert bench.events == []


def test_a_broker_that_closes_the_test_with_a_security_error_is_tried_again() -> None:
    """S109: it took the login, so no wrong login can lock the account."""
    bench = at_the_backup()
    _, closed = probe(bench).pending.pop()
    bench.silent.discard("close")
    closed.fail(JMSSecurityException("not now", error_code="amqp:unauthorized-access"))
    bench.clock.pass_by(3)
    assert bench.events == ["interrupted", ("restored", "a")]


def interruptions(bench: Bench, seconds: int) -> list[int]:
    """Let time pass, and return the seconds after which the connection left its broker."""
    left, known = [], len(bench.events)
    for second in range(seconds):
        bench.clock.pass_by(1)
        left += [second] * bench.events[known:].count("interrupted")
        known = len(bench.events)
    return left


def test_a_preferred_broker_that_refuses_what_is_open_is_tried_after_pauses_that_grow(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S109: each return costs an interruption, and the connection was left more than once in a second."""
    bench = at_the_backup()
    bench.refused["create_producer", 2] = FULL
    bench.down = {}
    times = interruptions(bench, 2000)
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    expected, pause = [], _FIRST_PAUSE
    while sum(expected) + pause < 1900:
        expected.append(pause)
        pause = min(_LONGEST_PAUSE, 2 * pause)
    assert pauses == pytest.approx(expected, abs=3)
    assert bench.events == AWAY_AND_BACK * len(times)
    assert "the preferred broker amqp://a:5672 failed, and is tried again after 5 s: full" in caplog.text


def test_a_return_that_succeeds_forgets_the_failures_when_the_connection_has_stayed() -> None:
    """S109."""
    bench = at_the_backup()
    bench.refused["create_producer", 2] = FULL
    bench.down = {}
    assert len(interruptions(bench, 60)) == 4
    del bench.refused["create_producer", 2]
    bench.clock.pass_by(60)
    assert bench.events[-1] == ("restored", "a")
    bench.clock.pass_by(_STAYS)
    bench.refused["create_producer", 2] = FULL
    bench.member.fail()
    assert len(interruptions(bench, 60)) == 3
    assert bench.events[-2:] == AWAY_AND_BACK


def test_a_preferred_broker_that_is_lost_soon_after_the_return_is_tried_after_pauses_that_grow() -> None:
    """S109: a message that waits there may end each connection."""
    bench = at_the_backup()
    bench.down = {}
    for pause in (0, _FIRST_PAUSE, 2 * _FIRST_PAUSE):
        bench.clock.pass_by(max(0, pause - 2))
        assert bench.events[-2:] == (AWAY_AND_BACK if pause else [])
        bench.clock.pass_by(6)
        assert bench.events[-1] == ("restored", "a")
        bench.down = {"a": DOWN}
        bench.member.fail()
        bench.clock.pass_by(2)
        bench.down = {}
    assert bench.events[-2:] == AWAY_AND_BACK


def test_a_preferred_broker_that_takes_the_test_and_not_the_connection_is_tried_after_a_pause() -> None:
    """S109: for example, another program there has the client id."""
    bench = at_the_backup()

    def leaving(done: Completion[None]) -> None:
        bench.down = {"a": DOWN}
        done.succeed()

    bench.leaving = leaving
    bench.down = {}
    bench.clock.pass_by(2)
    assert bench.events == AWAY_AND_BACK
    bench.down = {}
    tries = len(bench.tried)
    bench.clock.pass_by(_FIRST_PAUSE - 2)
    assert len(bench.tried) == tries
    bench.clock.pass_by(5)
    assert bench.events == AWAY_AND_BACK * 2


def test_another_preferred_broker_is_taken_meanwhile() -> None:
    """S109."""
    bench = Bench("amqp://a,amqp://b,amqp://c", "priorityBackup=true&priorityURIs=amqp://a,amqp://b", connect=False)
    bench.down = {"a": DOWN, "b": DOWN}
    bench.lenient = {"b", "c"}
    bench.connect()
    bench.session()
    bench.producer()
    bench.refused["create_producer", 2] = FULL
    del bench.down["a"]
    bench.clock.pass_by(1)
    assert bench.events == ["interrupted", ("restored", "c")]
    bench.down = {}
    bench.clock.pass_by(3)
    assert bench.events[2:] == ["interrupted", ("restored", "b")]


@pytest.mark.parametrize("end", ["close", "abort", "in vain"])
def test_no_pause_outlives_the_connection(end: str) -> None:
    """S109: the timer of a pause would keep the connection in the memory."""
    bench = at_the_backup("maxReconnectAttempts=1")
    bench.refused["create_producer", 2] = FULL
    bench.down = {}
    bench.clock.pass_by(1)
    assert bench.events == AWAY_AND_BACK
    if end == "in vain":
        bench.down = {"a": DOWN, "b": DOWN}
        bench.member.fail()
        bench.clock.pass_by(2)
        assert bench.events[-1][0] == "failure"
    else:
        if end == "close":
            assert bench.ask("close").error is None
        bench.provider.abort(IllegalStateException("closed"))
    assert bench.clock.waits == []

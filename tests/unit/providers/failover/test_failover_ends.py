"""A broker that opens a session or link again and then ends it while the rest is being restored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from failover_fakes import Bench, FakeMember, Sink

from pyjmsack.destination import Queue
from pyjmsack.errors import ConnectionLostException, ResourceAllocationException
from pyjmsack.providers.failover import restore
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo

FULL = ResourceAllocationException("full")
CLOSES_LINKS = "jms.closeLinksThatFailOnReconnect=true"
ENDS = {1: "session", 2: "producer", 3: "consumer"}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session may be closed alone at once, and not only after a minute."""
    monkeypatch.setattr(restore, "PATIENCE", 0.0)


def restoring(options: str = "") -> tuple[Bench, FakeMember, Any]:
    """Return a connection that is being restored at its second broker, which has not answered for the producer,
    and the inbox of its consumer."""
    bench = Bench(options=options)
    bench.session()
    bench.producer()
    sink = bench.consumer()
    bench.silent.add("create_producer")
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bench.member.name == "b"
    return bench, bench.member, sink


def answer(bench: Bench, pending: Iterable[tuple[Any, Any]]) -> None:
    """Let the broker answer the requests that wait, and all later ones at once."""
    bench.silent.clear()
    for _, done in pending:
        done.succeed()


def end(member: FakeMember, number: int) -> None:
    """Let the broker end the session or link with this number."""
    if number == 3:
        member.sinks[3].detached(FULL)
    else:
        member.listener.on_resource_closed(number, FULL)


@pytest.mark.parametrize("number", ENDS, ids=ENDS.get)
def test_an_end_while_everything_is_restored_refuses_the_restore(number: int) -> None:
    """S104: a broker at a limit answers Begin, and then sends End. The session was closed for good."""
    bench, refusing, sink = restoring()
    bench.silent.clear()
    end(refusing, number)
    bench.clock.pass_by(1)
    assert refusing.aborted
    assert bench.events == ["interrupted", ("restored", "a")]
    assert sink.errors == []
    assert bench.send("x").outcome is None


@pytest.mark.parametrize("number", ENDS, ids=ENDS.get)
def test_an_end_that_comes_with_the_last_answer_refuses_the_restore(number: int) -> None:
    """S104: both arrive in one packet."""
    bench, refusing, sink = restoring()
    answer(bench, refusing.pending)
    end(refusing, number)
    bench.clock.pass_by(1)
    assert bench.events == ["interrupted", ("restored", "a")]
    assert sink.errors == []


@pytest.mark.parametrize("number", ENDS, ids=ENDS.get)
def test_an_end_after_the_restore_is_final(number: int) -> None:
    """S109, S126."""
    bench, member, sink = restoring()
    answer(bench, member.pending)
    bench.clock.pass_by(0)
    assert bench.events == ["interrupted", ("restored", "b")]
    end(member, number)
    assert bench.events[2:] == ([] if number == 3 else [("closed", number, "full")])
    assert sink.errors == ([] if number == 2 else [FULL])
    assert not member.aborted


@pytest.mark.parametrize("number", ENDS, ids=ENDS.get)
def test_with_the_option_only_a_link_that_is_ended_ends_alone(number: int) -> None:
    """S104, ``jms.closeLinksThatFailOnReconnect``: a session is no link."""
    bench, member, sink = restoring(CLOSES_LINKS)
    bench.silent.clear()
    pending = [*member.pending]
    end(member, number)
    if not member.aborted:
        for _, done in pending:
            done.succeed()
    bench.clock.pass_by(1)
    expected: dict[int, list[Any]] = {
        1: ["interrupted", ("restored", "a")],
        2: ["interrupted", ("closed", 2, "full"), ("restored", "b")],
        3: ["interrupted", ("restored", "b")],
    }
    assert bench.events == expected[number]
    assert sink.errors == ([FULL] if number == 3 else [])


@pytest.mark.parametrize(("verb", "number"), [("close_session", 1), ("close_producer", 2)])
def test_the_end_of_what_the_caller_has_closed_meanwhile_is_nobody_s_business(verb: str, number: int) -> None:
    """S104."""
    bench, member, _ = restoring()
    bench.silent.clear()
    bench.ask(verb, number)
    end(member, number)
    for _, done in member.pending:
        done.succeed()
    bench.clock.pass_by(0)
    assert bench.events == ["interrupted", ("restored", "b")]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("number", ENDS, ids=ENDS.get)
def test_what_each_broker_ends_twice_is_closed_alone(number: int) -> None:
    """S104: an object that every broker ends must not keep the whole connection waiting."""
    bench, member, sink = restoring()
    for name in ("b", "a", "b"):
        assert bench.member.name == name
        member, pending = bench.member, [*bench.member.pending]
        end(member, number)
        bench.clock.pass_by(1)
    answer(bench, [] if member.aborted else pending)
    bench.clock.pass_by(1)
    assert ("restored", "b") in bench.events
    assert (("closed", number, "full") in bench.events) == (number != 3)
    assert sink.errors == ([] if number == 2 else [FULL])


def test_a_late_end_of_a_broker_that_was_given_up_is_nobody_s_business() -> None:
    """S104."""
    bench, refusing, sink = restoring()
    bench.silent.clear()
    refusing.fail(ConnectionLostException("gone"))
    bench.clock.pass_by(1)
    known = [*bench.events]
    for number in ENDS:
        end(refusing, number)
    assert bench.events == known
    assert sink.errors == []


REFUSING = (10, 12)
"""Sessions that the brokers refuse. Each has a producer with the next number."""


def with_refused(names: str = "amqp://a,amqp://b") -> Bench:
    """Return a connection whose session 1 is restored everywhere, and whose other sessions are refused."""
    bench = Bench(names)
    bench.session()
    bench.producer()
    for number in REFUSING:
        bench.session(number)
        bench.producer(number + 1, number)
        bench.refused["create_session", number] = FULL
        bench.refused["create_producer", number + 1] = FULL
    return bench


@pytest.mark.usefixtures("impatient")
def test_sessions_that_each_broker_refuses_twice_are_closed_alone() -> None:
    """S104: over AMQP a broker refuses a transacted session by ending it, and the connection was restored for ever."""
    bench = with_refused()
    bench.member.fail()
    bench.clock.pass_by(1)
    assert bench.events == ["interrupted", *(("closed", number, "full") for number in REFUSING), ("restored", "b")]
    assert bench.tried == ["a", "b", "a", "b"]
    assert bench.send("good").outcome is None
    assert all(isinstance(bench.send("x", number + 1).outcome, ResourceAllocationException) for number in REFUSING)


@pytest.mark.usefixtures("impatient")
def test_what_waits_for_a_session_that_is_closed_alone_gets_the_reason() -> None:
    """S104, S109: a later broker does not know the session, and could not say why it ended."""
    bench = with_refused("amqp://a")
    bench.outage()
    waiting = bench.ask("create_producer", ProducerInfo(30, REFUSING[0], Queue("q")))
    bench.end_outage()
    bench.clock.pass_by(1)
    assert waiting.error is FULL
    assert bench.ask("create_consumer", ConsumerInfo(31, REFUSING[0], Queue("q"), 10), Sink()).error is FULL
    bench.ask("close_session", REFUSING[0])
    assert bench.provider._resources.ended == {REFUSING[1]: FULL}


def test_sessions_that_one_broker_refuses_are_restored_at_the_next_broker() -> None:
    """S104."""
    bench = with_refused()
    bench.lenient.add("a")
    bench.member.fail()
    bench.clock.pass_by(1)
    assert bench.events == ["interrupted", ("restored", "a")]
    assert bench.send("x", REFUSING[0] + 1).outcome is None


def test_a_refusal_of_a_session_that_the_caller_closed_meanwhile_is_nobody_s_business() -> None:
    """S104."""
    bench = Bench("amqp://a")
    bench.session()
    bench.session(10)
    bench.silent.add("create_session")
    bench.member.fail()
    bench.clock.pass_by(0)
    bench.silent.clear()
    bench.ask("close_session", 10)
    (_, kept), (_, closed) = bench.member.pending
    closed.fail(FULL)
    kept.succeed()
    bench.clock.pass_by(0)
    assert bench.events == ["interrupted", ("restored", "a")]

"""An open transaction is done again at the next broker (S107)."""

from __future__ import annotations

from typing import Any

import pytest
from failover_fakes import Bench, FakeInbound, Sink

from pyjmsack.destination import Queue
from pyjmsack.errors import IllegalStateException, JMSException, TransactionRolledBackException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ProducerInfo
from pyjmsack.types import AckMode, Outcome

REPLAY = "failover.transactionReplay=true"
WAIT = f"{REPLAY}&jms.consumerFailoverRedeliveryWaitPeriod=5000"


def transacted(options: str = REPLAY, *, prefetch: int = 10) -> tuple[Bench, Sink]:
    bench = Bench(options=options)
    bench.session(1, AckMode.SESSION_TRANSACTED)
    bench.producer()
    return bench, bench.consumer(prefetch=prefetch)


def deliver(bench: Bench, *names: str | None) -> list[FakeInbound]:
    """Let the present broker deliver."""
    inbounds = [FakeInbound(3, bench.member.generation, name) for name in names]
    for inbound in inbounds:
        bench.member.sinks[3].deliver(inbound)
    return inbounds


def receive(bench: Bench, *names: str | None) -> None:
    """Let the caller receive, in the transaction."""
    for inbound in deliver(bench, *names):
        bench.provider.settle(inbound, Outcome.ACCEPTED)


def drop(bench: Bench) -> None:
    bench.member.fail()
    bench.clock.pass_by(0)


def accepted(bench: Bench) -> list[str | None]:
    return [inbound.name for inbound, outcome in bench.member.outcomes if outcome is Outcome.ACCEPTED]


def test_confirmed_sends_are_sent_again_before_what_was_held_and_the_commit_succeeds() -> None:
    bench, _ = transacted()
    bench.send("a", transacted=True)
    bench.send("b", transacted=True)
    bench.silent.add("send")
    open_one = bench.send("c", transacted=True)
    asked = len(bench.calls)
    bench.silent.discard("send")
    drop(bench)
    assert [name for verb, name in bench.since(asked) if verb == "send"] == ["a", "b", "c"]
    assert open_one.outcome is None
    assert bench.ask("commit", 1).error is None
    assert bench.calls[-1] == ("commit", 1)


def test_without_the_option_such_a_transaction_fails() -> None:
    """S92."""
    bench, _ = transacted("")
    bench.send("a", transacted=True)
    bench.send("b", transacted=True)
    drop(bench)
    assert isinstance(bench.ask("commit", 1).error, TransactionRolledBackException)


def test_what_was_received_is_acknowledged_when_it_comes_again_and_nobody_sees_it_twice() -> None:
    bench, sink = transacted()
    receive(bench, "x", "y")
    drop(bench)
    deliver(bench, "y", "z", "x")
    assert [inbound.name for inbound in sink.delivered] == ["x", "y", "z"]
    assert sorted(map(str, accepted(bench))) == ["x", "y"]
    assert bench.ask("commit", 1).error is None
    deliver(bench, "x")
    assert sink.delivered[-1].name == "x", "that is a message of the next transaction"


def test_a_message_that_the_broker_stored_twice_is_taken_twice_when_both_were_received() -> None:
    """S91, S107: a repeated send on ActiveMQ Classic. Both copies were the transaction's, so both are again."""
    bench, sink = transacted(WAIT)
    receive(bench, "x", "x")
    for _ in range(2):
        drop(bench)
        deliver(bench, "x")
    deliver(bench, "x", "y")
    assert [inbound.name for inbound in sink.delivered] == ["x", "x", "y"]
    assert bench.ask("commit", 1).error is None


def receive_late(bench: Bench, name: str | None, *, restored: bool = False) -> None:
    """Let the caller take a message from the inbox, and let the loss be noticed before its acknowledgement."""
    (inbound,) = deliver(bench, name)
    bench.member.fail()
    if restored:
        bench.clock.pass_by(0)
    bench.provider.settle(inbound, Outcome.ACCEPTED)
    if not restored:
        bench.clock.pass_by(0)


def test_a_message_that_was_taken_just_before_the_loss_was_noticed_belongs_to_the_replay() -> None:
    """Such a message made the whole transaction fail, once in 14 times at a broker with a short way."""
    bench, sink = transacted(WAIT)
    receive(bench, "x")
    receive_late(bench, "y")
    commit = bench.ask("commit", 1)
    deliver(bench, "x")
    assert not commit.done
    deliver(bench, "y", "z")
    assert [inbound.name for inbound in sink.delivered] == ["x", "y", "z"]
    assert accepted(bench) == ["x", "y"]
    assert commit.error is None
    assert commit.done


@pytest.mark.parametrize("case", ["restored", "pulls", "no id"])
def test_a_late_message_that_could_be_handed_out_twice_makes_the_transaction_fail(case: str) -> None:
    """Behind the next broker the same message may be in the inbox already."""
    bench, _ = transacted(WAIT, prefetch=0 if case == "pulls" else 10)
    receive_late(bench, None if case == "no id" else "x", restored=case == "restored")
    commit = bench.ask("commit", 1)
    assert isinstance(commit.error, TransactionRolledBackException)
    assert ("commit", 1) not in bench.calls


@pytest.mark.option("failover.transactionReplay", "core")
@pytest.mark.option("jms.consumerFailoverRedeliveryWaitPeriod", "core")
@pytest.mark.parametrize("options", [REPLAY, WAIT])
def test_a_commit_fails_if_what_was_received_does_not_come_again(options: str) -> None:
    """At once, or when jms.consumerFailoverRedeliveryWaitPeriod is over."""
    bench, _ = transacted(options)
    receive(bench, "x", "y")
    bench.send("a", transacted=True)
    drop(bench)
    deliver(bench, "x")
    commit, begin = bench.ask("commit", 1), bench.ask("begin", 1)
    assert commit.done == begin.done == (options == REPLAY)
    bench.clock.pass_by(6)
    assert isinstance(commit.error, TransactionRolledBackException)
    assert "not replayed: 1 received message" in str(commit.error)
    assert [call for call in bench.calls if call[0] in ("commit", "rollback", "begin")] == [
        ("rollback", 1),
        ("begin", 1),
    ]
    assert begin.error is None
    assert bench.ask("commit", 1).error is None, "the next transaction is clean"


def test_a_commit_waits_for_what_is_missing_and_the_next_transaction_begins_behind_it() -> None:
    bench, _ = transacted(WAIT)
    receive(bench, "x")
    drop(bench)
    commit, begin = bench.ask("commit", 1), bench.ask("begin", 1)
    bench.clock.pass_by(1)
    assert not commit.done
    deliver(bench, "x")
    assert (commit.error, begin.error, commit.done, begin.done) == (None, None, True, True)
    assert [call for call in bench.calls if call[0] in ("commit", "begin")] == [("commit", 1), ("begin", 1)]
    assert bench.clock.waits == []


@pytest.mark.parametrize("work", ["receive", "send"])
def test_work_behind_a_commit_whose_caller_gave_up_does_not_join_its_transaction(work: str) -> None:
    """S94: else a later rollback would not undo this work."""
    bench, _ = transacted(WAIT)
    receive(bench, "x")
    drop(bench)
    commit, begin = bench.ask("commit", 1), bench.ask("begin", 1)
    if work == "send":
        bench.send("next", transacted=True)
    else:
        receive(bench, "next")
    assert isinstance(commit.error, TransactionRolledBackException)
    assert begin.done
    ends = [call for call in bench.calls if call[0] in ("commit", "rollback", "begin", "send")]
    assert ends == [("rollback", 1), ("begin", 1), *([("send", "next")] if work == "send" else [])]
    deliver(bench, "x")
    assert ("commit", 1) not in bench.calls
    assert bench.ask("commit", 1).error is None


def test_a_commit_waits_for_the_answers_to_repeated_sends() -> None:
    """S86: else it might commit the others without one that is refused."""
    bench, _ = transacted()
    bench.send("a", transacted=True)
    bench.send("b", transacted=True)
    bench.silent.add("send")
    drop(bench)
    commit = bench.ask("commit", 1)
    first, second = bench.member.sent
    first.done(None)
    assert not commit.done
    second.done(JMSException("queue is full"))
    assert isinstance(commit.error, TransactionRolledBackException)
    assert ("commit", 1) not in bench.calls


def test_another_drop_during_the_replay_begins_it_anew() -> None:
    bench, sink = transacted(WAIT)
    bench.send("a", transacted=True)
    receive(bench, "x", "y")
    bench.silent.add("send")
    drop(bench)
    deliver(bench, "x")
    commit = bench.ask("commit", 1)
    bench.silent.discard("send")
    asked = len(bench.calls)
    drop(bench)
    assert [name for verb, name in bench.since(asked) if verb == "send"] == ["a"]
    assert not commit.done
    deliver(bench, "x", "y")
    assert commit.error is None
    assert commit.done
    assert accepted(bench) == ["x", "y"]
    assert len(sink.delivered) == 2


def close_producer(bench: Bench) -> None:
    bench.send("a", transacted=True)
    bench.send("b", transacted=True)
    bench.ask("close_producer", 2)


def close_consumer(bench: Bench) -> None:
    receive(bench, "x")
    bench.ask("stop_consumer", 3)


def nameless(bench: Bench) -> None:
    receive(bench, None)


@pytest.mark.parametrize("work", [close_producer, close_consumer, nameless])
def test_what_cannot_be_done_again_fails_the_transaction(work: Any) -> None:
    """A closed producer or consumer, a message without an id."""
    bench, _ = transacted(WAIT)
    work(bench)
    drop(bench)
    assert isinstance(bench.ask("commit", 1).error, TransactionRolledBackException)
    bench.ask("create_producer", ProducerInfo(9, 1, Queue("q")))
    assert bench.ask("commit", 1).error is None


def test_a_consumer_that_pulls_cannot_wait_for_what_comes_again() -> None:
    bench, _ = transacted(WAIT, prefetch=0)
    receive(bench, "x")
    drop(bench)
    assert isinstance(bench.ask("commit", 1).error, TransactionRolledBackException)


def test_a_consumer_that_is_closed_before_its_messages_came_again_fails_the_transaction_at_the_next_drop() -> None:
    bench, _ = transacted(WAIT)
    receive(bench, "x")
    drop(bench)
    bench.ask("close_consumer", 3)
    drop(bench)
    assert isinstance(bench.ask("commit", 1).error, TransactionRolledBackException)


def test_a_consumer_that_is_stopped_without_a_broker_is_restored_for_the_messages_of_its_transaction() -> None:
    bench, _ = transacted(WAIT)
    receive(bench, "x")
    bench.outage()
    bench.ask("stop_consumer", 3)
    bench.end_outage()
    commit = bench.ask("commit", 1)
    deliver(bench, "x")
    assert commit.done
    assert commit.error is None


def test_a_rollback_forgets_what_was_to_be_done_again() -> None:
    bench, sink = transacted()
    receive(bench, "x")
    drop(bench)
    assert bench.ask("rollback", 1).error is None
    deliver(bench, "x")
    assert [inbound.name for inbound in sink.delivered] == ["x", "x"]
    assert bench.ask("commit", 1).error is None


@pytest.mark.parametrize("end", ["close", "abort", "close_session"])
def test_a_waiting_commit_ends_with_its_session_and_its_connection(end: str) -> None:
    bench, _ = transacted(WAIT)
    receive(bench, "x")
    drop(bench)
    commit: Completion[Any] = bench.ask("commit", 1)
    assert not commit.done
    if end == "abort":
        bench.provider.abort(IllegalStateException("closed"))
    elif end == "close":
        bench.ask("close")
    else:
        bench.ask("close_session", 1)
    assert isinstance(commit.error, TransactionRolledBackException)
    bench.clock.pass_by(10)


def test_a_commit_in_flight_is_in_doubt_whatever_can_be_done_again() -> None:
    """S94."""
    bench, _ = transacted(WAIT)
    bench.send("a", transacted=True)
    bench.silent.add("commit")
    commit = bench.ask("commit", 1)
    bench.silent.discard("commit")
    asked = len(bench.calls)
    drop(bench)
    assert isinstance(commit.error, TransactionRolledBackException)
    assert commit.error.in_doubt
    assert ("send", "a") not in bench.since(asked)


def heavy(bench: Bench, *names: str) -> list[FakeInbound]:
    """Let the present broker deliver large messages."""
    inbounds = [FakeInbound(3, bench.member.generation, name) for name in names]
    for inbound in inbounds:
        inbound.heavy = True
        bench.member.sinks[3].deliver(inbound)
    return inbounds


def test_a_large_message_is_recognised_on_another_thread_and_what_is_behind_it_waits() -> None:
    """S107: its digest held up the loop, 0.3 s for 100 MB."""
    bench, sink = transacted()
    receive(bench, "x", "y")
    drop(bench)
    heavy(bench, "x", "z")
    deliver(bench, "y", "behind")
    assert (accepted(bench), [inbound.name for inbound in sink.delivered]) == ([], ["x", "y"])
    drained = bench.ask("drain", 3)
    assert not drained.done, "what is held may be what the caller asks for"
    bench.clock.work_off()
    assert accepted(bench) == ["x", "y"]
    assert [inbound.name for inbound in sink.delivered] == ["x", "y", "z", "behind"]
    assert drained.done
    assert bench.ask("commit", 1).error is None


def test_a_commit_waits_for_the_identity_of_a_large_message_that_came() -> None:
    """S107: also without jms.consumerFailoverRedeliveryWaitPeriod."""
    bench, _ = transacted()
    receive(bench, "x")
    drop(bench)
    heavy(bench, "x")
    commit = bench.ask("commit", 1)
    assert not commit.done
    bench.clock.work_off()
    assert commit.done
    assert commit.error is None


def test_a_large_message_that_was_held_when_the_next_broker_was_lost_comes_again() -> None:
    """S107."""
    bench, sink = transacted()
    receive(bench, "x")
    drop(bench)
    heavy(bench, "x", "new")
    drop(bench)
    bench.clock.work_off()
    assert accepted(bench) == []
    deliver(bench, "x", "new")
    assert [inbound.name for inbound in sink.delivered] == ["x", "new"]
    assert bench.ask("commit", 1).error is None

"""What ends every connection fails alone, and the others go on (S104, S109)."""

from __future__ import annotations

from typing import Any

import pytest
from failover_fakes import Bench, FakeInbound, Sink

from pyjmsack.destination import Queue
from pyjmsack.errors import (
    ConnectionLostException,
    JMSException,
    ResourceAllocationException,
    TransactionRolledBackException,
)
from pyjmsack.providers.failover import restore
from pyjmsack.providers.failover.blame import MOST_LOSSES, MOST_SILENT_LOSSES, says_why
from pyjmsack.providers.failover.search import LONGEST_PAUSE
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo
from pyjmsack.types import AckMode, Outcome

GUILTY = 7


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session may be closed alone at once, and not only after a minute."""
    monkeypatch.setattr(restore, "PATIENCE", 0.0)


def ask(bench: Bench, number: int) -> Completion[None]:
    return bench.ask("create_producer", ProducerInfo(number, 1, Queue("q")))


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.session()
    bench.producer()
    bench.deadly.add(GUILTY)
    return bench


def test_a_request_that_ends_each_connection_is_given_up_after_the_third(bench: Bench) -> None:
    """An Attach that the broker cannot take was asked for again a hundred times a second."""
    guilty = ask(bench, GUILTY)
    bench.clock.pass_by(60)
    assert isinstance(guilty.error, ResourceAllocationException)
    assert guilty.error.__cause__ is not None
    assert bench.events.count("interrupted") == MOST_LOSSES
    assert bench.events[-1][0] == "restored"
    assert bench.send("good").outcome is None


@pytest.mark.parametrize("order", [(5, GUILTY, 9), (GUILTY, 5, 9), (5, 9, GUILTY)])
def test_others_asked_at_the_same_time_are_not_blamed(bench: Bench, order: tuple[int, ...]) -> None:
    """The third time each is asked alone."""
    bench.outage()
    asked = {number: ask(bench, number) for number in order}
    bench.end_outage()
    bench.clock.pass_by(60)
    assert [number for number, done in asked.items() if not done.done or done.error is not None] == [GUILTY]
    assert bench.events.count("interrupted") == 1 + MOST_LOSSES


def slow_suspect(bench: Bench) -> Any:
    """Return a request that is asked for alone, because connections were lost before it had an answer."""
    bench.silent.add("create_producer")
    slow = ask(bench, 5)
    for _ in range(MOST_LOSSES - 1):
        bench.silent.discard("create_producer")  # the rebuilt ones are answered
        bench.silent.add("connect")
        bench.member.fail()
        bench.clock.pass_by(0.1)
        bench.silent.discard("connect")
        (_, connecting), *_ = bench.member.pending
        bench.member.pending.clear()
        bench.restored = lambda: bench.silent.add("create_producer")
        connecting.succeed(bench.member.metadata)
    return slow


def test_a_suspect_that_is_slow_is_not_blamed_and_holds_others_up_for_a_second_only(bench: Bench) -> None:
    """A broker that is slow, and lost for other reasons, loses nobody a producer."""
    slow = slow_suspect(bench)
    held = bench.send("behind")
    assert held.outcome == "open"
    bench.clock.pass_by(1)
    assert held.outcome is None
    bench.member.fail()
    bench.silent.clear()
    bench.restored = lambda: None
    bench.clock.pass_by(10)
    assert slow.done
    assert slow.error is None


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_what_is_received_behind_an_end_that_was_given_up_joins_no_transaction_that_is_to_end(end: str) -> None:
    """A commit that waited behind a suspect committed what came after the caller gave it up; a rollback lost that."""
    bench = Bench()
    bench.session(1, AckMode.SESSION_TRANSACTED)
    bench.consumer()
    slow_suspect(bench)
    given_up = bench.ask(end, 1)
    bench.ask("begin", 1)
    later: Any = FakeInbound(3, bench.member.generation, "later")
    bench.provider.settle(later, Outcome.ACCEPTED)
    bench.clock.pass_by(1)
    assert ("commit", 1) not in bench.calls
    assert end == "rollback" or isinstance(given_up.error, TransactionRolledBackException)
    assert isinstance(bench.ask("commit", 1).error, TransactionRolledBackException)
    assert bench.calls[-1] == ("rollback", 1)
    bench.ask("begin", 1)
    assert bench.ask("commit", 1).error is None


def test_a_link_that_ends_each_connection_that_rebuilds_it_is_closed_alone() -> None:
    """One broker took it, and the next one dies of it: its neighbours are rebuilt without it."""
    bench = Bench()
    bench.session()
    bench.producer()
    sink = Sink()
    bench.ask("create_consumer", ConsumerInfo(GUILTY, 1, Queue("bad"), 10), sink)
    other = bench.consumer(3)
    bench.deadly.add(GUILTY)
    bench.member.fail()
    bench.clock.pass_by(60)
    assert [type(error) for error in sink.errors] == [ResourceAllocationException]
    assert other.errors == []
    assert bench.events[-1][0] == "restored"
    assert len(bench.tried) == 1 + MOST_LOSSES + 1


def test_a_producer_that_ends_each_connection_that_rebuilds_it_is_closed_alone() -> None:
    bench = Bench()
    bench.session()
    bench.producer(GUILTY)
    bench.producer(2)
    bench.deadly.add(GUILTY)
    bench.member.fail()
    bench.clock.pass_by(60)
    assert [event[:2] for event in bench.events if event[0] == "closed"] == [("closed", GUILTY)]
    assert isinstance(bench.send("bad", GUILTY).outcome, ResourceAllocationException)
    assert bench.send("good", 2).outcome is None


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("reason", ["amqp:internal-error", None])
@pytest.mark.parametrize("guilty", [1, GUILTY])
def test_a_session_that_ends_each_connection_that_rebuilds_it_is_closed_alone(reason: str | None, guilty: int) -> None:
    """S104: Artemis does so at a limit of sessions. The client reconnected for ever."""
    bench = Bench()
    sessions = (1, 5, GUILTY)
    for number in sessions:
        bench.session(number)
        bench.producer(number + 20, number)
    bench.deadly.add(guilty)
    bench.reason = reason
    bench.member.fail()
    bench.clock.pass_by(600)
    assert [event[:2] for event in bench.events if event[0] == "closed"] == [("closed", guilty)]
    assert isinstance(bench.send("bad", guilty + 20).outcome, ResourceAllocationException)
    assert all(bench.send("good", number + 20).outcome is None for number in sessions if number != guilty)
    losses = MOST_LOSSES if reason else MOST_LOSSES + MOST_SILENT_LOSSES
    assert len(bench.tried) == 1 + losses + 1


def test_many_sessions_that_a_far_broker_opens_one_by_one_have_time_enough() -> None:
    """S104: after a loss there is a round trip for each session, so the time limit is for each."""
    bench = Bench("amqp://a")
    for number in range(1, 6):
        bench.session(number)
    bench.deadly.add(3)
    bench.member.fail()
    bench.clock.pass_by(0)
    bench.silent.add("create_session")
    bench.deadly.clear()
    bench.clock.pass_by(1)
    for _ in range(1, 6):
        bench.clock.pass_by(10)
        (_, opened) = bench.member.pending.pop()
        opened.succeed()
        bench.clock.pass_by(0)
    assert bench.tried == ["a", "a", "a"]
    assert bench.events == ["interrupted", ("restored", "a")]


def test_rebuilding_that_fails_for_different_sessions_blames_none() -> None:
    """S104: a network that breaks at any time is nobody's fault."""
    bench = Bench()
    for number in (1, 5):
        bench.session(number)
    bench.deadly = {5}
    bench.member.fail()
    for number in (1, 5, 1, 5, 1):
        attempts = len(bench.tried)
        while len(bench.tried) == attempts:
            bench.clock.pass_by(0.001)
        bench.deadly = {number}
    bench.deadly = set()
    bench.clock.pass_by(60)
    assert bench.events[-1][0] == "restored"
    assert not [event for event in bench.events if event[0] == "closed"]


def test_rebuilding_that_fails_for_different_links_blames_none() -> None:
    """A network that breaks at any time is nobody's fault."""
    bench = Bench()
    bench.session()
    bench.producer()
    bench.producer(4)
    bench.deadly = {2}
    bench.member.fail()
    for number in (4, 2, 4, 2, 4):
        attempts = len(bench.tried)
        while len(bench.tried) == attempts:
            bench.clock.pass_by(0.001)
        bench.deadly = {number}
    bench.deadly = set()
    bench.clock.pass_by(60)
    assert bench.events[-1][0] == "restored"
    assert not [event for event in bench.events if event[0] == "closed"]


@pytest.mark.option("failover.maxReconnectDelay", "core")
def test_connections_that_are_lost_at_once_are_made_at_longer_intervals() -> None:
    """Whatever ends them: the broker is not asked a hundred times a second, nor left alone for half a minute."""
    bench = Bench(options="failover.reconnectDelay=500&failover.maxReconnectDelay=8000")
    waits = []
    for _ in range(7):
        bench.member.fail()
        waits.append(bench.clock.waits[-1])
        bench.clock.pass_by(waits[-1])
    assert waits == [0, 0, 0.5, 1, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    bench.clock.pass_by(1)
    bench.member.fail()
    assert bench.clock.waits[-1] == 0


# -- a send that ends each connection ----------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["amqp:decode-error", None])
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_send_that_ends_each_connection_is_given_up_alone_s109(reason: str | None, place: int) -> None:
    """It was repeated for ever, and nobody else could use the connection."""
    bench = Bench()
    bench.session()
    bench.producer()
    bench.producer(4)
    bench.reason = reason
    bench.outage()
    sends = [bench.send("bad" if number == place else str(number), 2 + 2 * (number % 2)) for number in range(5)]
    bench.poison.add("bad")
    bench.end_outage()
    bench.clock.pass_by(120)
    assert [type(send.outcome) for send in sends] == [
        ResourceAllocationException if number == place else type(None) for number in range(5)
    ]
    assert "the send of message" in str(sends[place].outcome)
    assert bench.events[-1][0] == "restored"
    assert bench.send("good", 4).outcome is None
    arrived = [body for verb, body in bench.calls if verb == "send" and body not in ("bad", "good")]
    assert [*dict.fromkeys(arrived)] == sorted(set(arrived)), "the order of the sends has changed"


def test_a_broker_that_is_slow_or_full_holds_suspected_sends_up_for_a_second_together() -> None:
    """Each of them waited for a second, one after the other, and everybody else behind them."""
    bench = Bench()
    bench.session()
    bench.producer()
    bench.silent.add("send")
    sends = [bench.send(str(number)) for number in range(50)]
    for _ in range(MOST_LOSSES - 1):
        bench.member.fail()
        bench.clock.pass_by(0.1)
    other = bench.ask("create_producer", ProducerInfo(9, 1, Queue("q")))
    assert not other.done
    bench.clock.pass_by(1)
    assert other.error is None
    assert other.done
    assert len(bench.member.sent) == len(sends)


def suspected(count: int, options: str = "") -> tuple[Bench, list[Any]]:
    """Return sends without an answer that two connections did not survive."""
    bench = Bench(options=options)
    bench.session()
    bench.producer()
    bench.silent.add("send")
    sends = [bench.send(str(number)) for number in range(count)]
    for _ in range(MOST_LOSSES - 1):
        bench.member.fail()
        bench.clock.pass_by(0.1)
    return bench, sends


def test_thousands_of_suspected_sends_hold_nobody_up_for_longer_than_a_second_and_do_not_time_out() -> None:
    """Each cost a round trip, and the others failed, because there was no broker within failover.timeout."""
    bench, sends = suspected(1000, "failover.timeout=5000")
    new = bench.send("new")
    for _ in range(50):  # a broker that answers after 40 ms
        bench.clock.pass_by(0.04)
        answered, bench.member.sent = bench.member.sent, []
        for send in answered:
            send.done(None)
    assert [send.outcome for send in (*sends, new)] == [None] * 1001


def test_a_broker_that_answers_suspected_sends_at_once_gets_them_all() -> None:
    """Each answer sent the next one inside, and after some hundred Python's recursion ended."""
    bench, sends = suspected(3000)
    bench.silent.clear()
    answered, bench.member.sent = bench.member.sent, []
    for send in answered:
        send.done(None)
    assert {send.outcome for send in sends} == {None}


def test_a_suspected_send_that_does_not_leave_is_not_guilty_of_the_loss() -> None:
    bench, (send,) = suspected(1)
    for _ in range(MOST_SILENT_LOSSES + 2):
        bench.member.unsent.update(bench.member.sent)
        bench.member.fail()
        bench.clock.pass_by(2.5)
    assert send.outcome == "open"


def test_a_send_for_which_the_broker_gave_no_credit_is_not_suspected() -> None:
    bench = Bench()
    bench.session()
    bench.producer()
    bench.silent.add("send")
    blocked = bench.send("blocked")
    for _ in range(MOST_LOSSES + 1):
        bench.member.unsent.update(bench.member.sent)
        bench.member.fail()
        bench.clock.pass_by(10)
    assert blocked.outcome == "open"
    assert bench.ask("create_producer", ProducerInfo(9, 1, Queue("q"))).done


# -- a bad network ----------------------------------------------------------------------------------------------


def cut_rebuilding(bench: Bench, times: int) -> None:
    """Let so many connections be lost while a link is asked for again."""
    attempts = len(bench.tried)
    while len(bench.tried) < attempts + times:
        bench.clock.pass_by(0.001)
    bench.clock.pass_by(0.001)


def flaky(reason: str | None) -> tuple[Bench, Sink]:
    """Return a connection that is lost whenever its consumer is asked for again, but not its producer."""
    bench = Bench("amqp://a")
    bench.session()
    bench.producer()
    sink = bench.consumer(GUILTY)
    bench.reason = reason
    bench.deadly.add(GUILTY)
    bench.member.fail()
    return bench, sink


def test_a_network_that_is_cut_again_and_again_while_one_link_is_asked_for_closes_no_consumer() -> None:
    """S104: the first three are lost with all that is asked for, nine more while this link alone is."""
    bench, sink = flaky(None)
    cut_rebuilding(bench, MOST_LOSSES + MOST_SILENT_LOSSES - 1)
    bench.deadly.clear()
    bench.clock.pass_by(60)
    assert sink.errors == []
    assert len(bench.tried) == 1 + MOST_LOSSES + MOST_SILENT_LOSSES - 1 + 1
    assert bench.events[-1][0] == "restored"


def test_a_network_that_is_cut_again_and_again_while_one_request_is_asked_fails_no_request(bench: Bench) -> None:
    """S109: so does the tenth connection, while the request alone was asked for the last nine."""
    bench.reason = None
    asked = ask(bench, GUILTY)
    alone = MOST_SILENT_LOSSES - 1
    while bench.events.count("interrupted") < MOST_LOSSES - 1 + alone:
        bench.clock.pass_by(0.001)
    bench.deadly.clear()
    bench.clock.pass_by(60)
    assert asked.done
    assert asked.error is None


def test_a_link_that_is_lost_without_a_word_is_closed_after_the_tenth_time_alone() -> None:
    """S104: each time all others are taken, and the broker is reached: that is no network."""
    bench, sink = flaky(None)
    bench.clock.pass_by(60)
    assert [type(error) for error in sink.errors] == [ResourceAllocationException]
    assert len(bench.tried) == 1 + MOST_LOSSES + MOST_SILENT_LOSSES + 1
    assert bench.events[-1][0] == "restored"
    assert bench.send("good").outcome is None


def test_a_request_that_is_lost_without_a_word_is_given_up_after_the_tenth_time_alone(bench: Bench) -> None:
    """S109."""
    bench.reason = None
    guilty = ask(bench, GUILTY)
    bench.clock.pass_by(60)
    assert isinstance(guilty.error, ResourceAllocationException)
    assert bench.events.count("interrupted") == MOST_LOSSES - 1 + MOST_SILENT_LOSSES
    assert bench.send("good").outcome is None


def test_a_broker_that_cannot_be_reached_in_between_clears_the_link() -> None:
    """S104: that is the network's doing, and so may the other losses be."""
    bench, sink = flaky(None)
    cut_rebuilding(bench, MOST_LOSSES + MOST_SILENT_LOSSES - 1)
    bench.down["a"] = ConnectionLostException("connection refused")
    cut_rebuilding(bench, 1)
    bench.down.clear()
    cut_rebuilding(bench, MOST_SILENT_LOSSES - 1)
    bench.deadly.clear()
    bench.clock.pass_by(600)
    assert sink.errors == []
    assert bench.events[-1][0] == "restored"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionLostException("too large", error_code="amqp:connection:framing-error"), True),
        (JMSException("AMQ339001: no such thing", error_code="AMQ339001"), True),
        (ConnectionLostException("the broker closed the connection"), False),
        (ConnectionLostException("shutting down", error_code="amqp:connection:forced"), False),
        (ConnectionLostException("local-idle-timeout expired", error_code="amqp:resource-limit-exceeded"), False),
        (
            ConnectionLostException(
                "AMQ229014: Did not receive data within the connection TTL", error_code="AMQ229014"
            ),
            False,
        ),
        (OSError("connection reset"), False),
    ],
)
def test_a_loss_is_evidence_if_the_broker_says_why(error: BaseException, reason: bool) -> None:
    """S104: a stop of the broker and its idle time-out say nothing about a link."""
    assert says_why(error) is reason

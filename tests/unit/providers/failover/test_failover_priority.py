"""Going back to a preferred broker (A.3 ``priorityBackup``), and brokers from a file (``updateURIsURL``)."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pytest
from failover_fakes import Bench, FakeInbound, FakeMember, Sink

from pyjmsack.destination import Queue
from pyjmsack.errors import (
    ConnectionLostException,
    IllegalStateException,
    JMSException,
    JMSSecurityException,
    UnsupportedFeatureException,
)
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import AckMode, Outcome

DOWN = ConnectionLostException("down")
PRIORITY = "priorityBackup=true&failover.maxReconnectDelay=1000"


def at_the_backup(options: str = PRIORITY) -> Bench:
    """Return a connection that found only its second broker."""
    bench = Bench(options=options, connect=False)
    bench.down = {"a": DOWN}
    bench.connect()
    assert bench.opened.result().broker_name == "b"
    return bench


def test_the_preferred_broker_is_tried_again_and_again_and_taken_when_it_is_there() -> None:
    bench = at_the_backup()
    backup = bench.member
    bench.clock.pass_by(5)
    tries = bench.tried.count("a")
    assert tries > 3
    assert bench.events == []
    bench.down = {}
    bench.clock.pass_by(1)
    assert bench.events == ["interrupted", ("restored", "a")]
    assert ("close", None) in bench.calls, "the other broker is left in order, so that no acknowledgement is lost"
    assert backup.aborted
    tries = bench.tried.count("a")
    bench.clock.pass_by(60)
    assert bench.tried.count("a") == tries, "it is where it wants to be"


def test_a_preferred_broker_that_refuses_the_login_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """Enough wrong logins lock an account; the others that are preferred are tried on."""
    bench = Bench("amqp://a,amqp://b,amqp://c", f"{PRIORITY}&priorityURIs=amqp://a,amqp://b", connect=False)
    bench.down = {"a": DOWN, "b": DOWN}
    bench.connect()
    bench.down["a"] = JMSSecurityException("wrong password", error_code="sasl:1")
    tries = bench.tried.count("a")
    bench.clock.pass_by(60)
    assert bench.tried.count("a") == tries + 1
    assert "amqp://a:5672 is not tried again: wrong password" in caplog.text
    bench.down = {"b": bench.down["a"]}
    bench.clock.pass_by(60)
    tries = len(bench.tried)
    bench.clock.pass_by(60)
    assert len(bench.tried) == tries
    assert bench.events == []


def test_a_preferred_broker_without_a_provider_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """A library that it needs is not installed. The others that are preferred are tried on."""
    bench = Bench("amqp://a,amqp://b,amqp://c", f"{PRIORITY}&priorityURIs=amqp://a,amqp://b", connect=False)
    bench.down = {"a": DOWN, "b": DOWN}
    bench.connect()
    bench.missing = {"a": UnsupportedFeatureException("amqp URLs need x, which is not installed")}
    bench.clock.pass_by(60)
    assert caplog.text.count("amqp://a:5672 is not tried again: amqp URLs need x, which is not installed") == 1
    bench.down = {}
    bench.clock.pass_by(1)
    assert bench.events == ["interrupted", ("restored", "b")]


def test_without_the_option_nobody_goes_back() -> None:
    bench = at_the_backup("failover.maxReconnectDelay=1000")
    bench.down = {}
    bench.clock.pass_by(60)
    assert bench.events == []


@pytest.mark.option("failover.priorityBackup", "core")
@pytest.mark.option("failover.priorityURIs", "core")
def test_after_a_drop_the_preferred_broker_is_the_first_to_be_tried() -> None:
    bench = Bench("amqp://a,amqp://b,amqp://c", f"{PRIORITY}&priorityURIs=amqp://b")
    assert bench.tried == ["b"]
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bench.tried == ["b", "b"]


def test_it_moves_when_nothing_is_under_way() -> None:
    """A send without an answer would have to be repeated, an open transaction would fail (S92, S97)."""
    bench = at_the_backup()
    bench.session(mode=AckMode.SESSION_TRANSACTED)
    bench.producer()
    bench.consumer()
    bench.silent.add("send")
    bench.send("x")
    backup = bench.member
    bench.down = {}
    bench.clock.pass_by(3)
    assert bench.events == []
    backup.sent.pop().done(None)
    bench.provider.settle(FakeInbound(3, backup.generation), Outcome.ACCEPTED)
    bench.clock.pass_by(3)
    assert bench.events == [], "there is a transaction with work"
    assert bench.ask("commit", 1).error is None
    bench.clock.pass_by(0.1)
    assert bench.events == ["interrupted", ("restored", "a")]


def test_what_was_acknowledged_is_told_to_the_broker_before_it_is_left() -> None:
    """S43: after the move no outcome reaches that broker any more (S96)."""
    bench = at_the_backup()
    bench.session()
    bench.consumer()
    backup = bench.member
    inbound = FakeInbound(3, backup.generation)

    def leaving(done: Completion[None]) -> None:
        assert bench.events == []
        bench.provider.settle(inbound, Outcome.ACCEPTED)
        done.succeed()

    bench.leaving = leaving
    bench.down = {}
    bench.clock.pass_by(3)
    assert bench.events == ["interrupted", ("restored", "a")]
    assert backup.outcomes == [(inbound, Outcome.ACCEPTED)]


def test_a_send_that_comes_with_the_acknowledgements_is_answered_before_it_moves() -> None:
    """S91: otherwise both brokers would store the message."""
    bench = at_the_backup()
    bench.session()
    bench.producer()
    bench.silent.add("send")
    backup = bench.member

    def leaving(done: Completion[None]) -> None:
        if not backup.sent:
            bench.send("x")
        done.succeed()

    bench.leaving = leaving
    bench.down = {}
    bench.clock.pass_by(3)
    assert bench.events == []
    bench.leaving = lambda done: done.succeed()
    backup.sent.pop().done(None)
    bench.clock.pass_by(0.1)
    assert bench.events == ["interrupted", ("restored", "a")]


def test_acknowledgements_that_a_disk_keeps_back_are_waited_for_five_seconds() -> None:
    """The file of the guard may be on a disk that does not answer."""
    bench = at_the_backup()
    asked: list[Completion[None]] = []
    bench.leaving = asked.append
    bench.down = {}
    bench.clock.pass_by(3)
    assert (len(asked), bench.events) == (1, [])
    bench.clock.pass_by(5)
    assert bench.events == ["interrupted", ("restored", "a")]
    asked.pop().succeed()
    assert bench.events == ["interrupted", ("restored", "a")]


def test_a_connection_that_is_closed_while_acknowledgements_wait_does_not_move() -> None:
    bench = at_the_backup()
    asked: list[Completion[None]] = []
    bench.leaving = asked.append
    bench.down = {}
    bench.clock.pass_by(3)
    assert bench.ask("close").error is None
    asked.pop().succeed()
    bench.provider.abort(IllegalStateException("closed"))
    assert (bench.events, bench.clock.waits) == ([], [])


def test_a_connection_that_is_never_idle_moves_after_ten_seconds_and_repeats_what_was_open() -> None:
    """S91."""
    bench = at_the_backup()
    bench.session()
    bench.producer()
    bench.silent.add("send")
    send = bench.send("x")
    bench.down = {}
    bench.clock.pass_by(9)
    assert bench.events == []
    bench.silent.discard("send")
    bench.clock.pass_by(3)
    assert bench.events == ["interrupted", ("restored", "a")]
    assert bench.calls[-1] == ("send", "x")
    assert send.outcome is None


@pytest.mark.parametrize("end", ["close", "abort"])
def test_a_closed_connection_looks_for_nobody(end: str) -> None:
    bench = at_the_backup()
    if end == "close":
        assert bench.ask("close").error is None
    bench.provider.abort(IllegalStateException("closed"))
    bench.down = {}
    tries = len(bench.tried)
    bench.clock.pass_by(60)
    assert len(bench.tried) == tries
    assert bench.clock.waits == []


def test_a_broker_that_is_left_and_does_not_answer_is_dropped() -> None:
    bench = at_the_backup()
    backup = bench.member
    backup.close = lambda done: None
    bench.down = {}
    bench.clock.pass_by(3)
    assert bench.events == ["interrupted", ("restored", "a")]
    assert not backup.aborted
    bench.clock.pass_by(5)
    assert backup.aborted


def left_at_work(bench: Bench) -> FakeMember:
    """Let the connection move, although its broker owes answers, and return that broker: it still answers."""
    backup = bench.member
    backup.close = lambda done: None
    bench.down = {}
    bench.clock.pass_by(12)
    assert bench.events == ["interrupted", ("restored", "a")]
    assert not backup.aborted
    return backup


@pytest.mark.parametrize("late", [None, ConnectionLostException("moved")], ids=["confirmed", "refused"])
def test_a_late_answer_of_the_broker_that_is_left_is_no_answer_to_a_repeated_send(late: JMSException | None) -> None:
    """S91: the preferred broker may refuse what the other one stored, and store what the other one refused."""
    bench = at_the_backup()
    bench.session()
    bench.producer()
    bench.silent.add("send")
    send = bench.send("x")
    backup = left_at_work(bench)
    backup.sent.pop().done(late)
    assert send.outcome == "open"
    bench.member.sent.pop().done(None)
    assert send.outcome is None


@pytest.mark.parametrize("late", [None, JMSException("moved")], ids=["made", "refused"])
def test_a_consumer_is_made_when_the_broker_in_use_says_so_and_not_the_one_that_is_left(
    late: JMSException | None,
) -> None:
    """S90: after a late refusal the window would fill with messages that nobody reads."""
    bench = at_the_backup()
    bench.session()
    bench.silent.add("create_consumer")
    sink, done = Sink(), Completion[None]()
    bench.provider.create_consumer(ConsumerInfo(3, 1, Queue("q"), 10), sink, done)
    backup = left_at_work(bench)
    early = FakeInbound(3, bench.member.generation)
    bench.member.sinks[3].deliver(early)
    (answered,) = [asked for verb, asked in backup.pending if verb == "create_consumer"]
    answered.fail(late) if late else answered.succeed()
    assert not done.done
    assert sink.delivered == []
    (answered,) = [asked for verb, asked in bench.member.pending if verb == "create_consumer"]
    answered.succeed()
    assert done.error is None
    assert sink.delivered == [early]


def test_what_the_broker_that_is_left_still_delivers_does_not_count_unless_it_will_not_come_again() -> None:
    """S95."""
    bench = at_the_backup()
    bench.session()
    bench.producer()
    sink = bench.consumer()
    bench.silent.add("send")
    bench.send("x")
    backup = left_at_work(bench)
    late, settled = (FakeInbound(3, backup.generation) for _ in range(2))
    settled.settled = True
    backup.sinks[3].deliver(late)
    backup.sinks[3].deliver(settled)
    assert sink.delivered == [settled]


def test_brokers_of_a_file_are_tried_behind_those_of_the_url_with_the_options_of_the_first(tmp_path: Path) -> None:
    file = tmp_path / "brokers"
    file.write_text("amqp://c:1,\namqp://a\n")
    bench = Bench("amqp://a?amqp.vhost=v", f"updateURIsURL={file}", connect=False)
    bench.down = {"a": DOWN}
    bench.connect()
    assert bench.tried == ["a", "c"]
    assert bench.opened.result().broker_name == "c"
    assert (str(bench.member.url), bench.member.url.amqp.vhost) == ("amqp://c:1", "v")


@pytest.mark.option("failover.updateURIsURL", "core")
def test_a_file_is_read_before_each_round_and_a_bad_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "brokers"
    bench = Bench("amqp://a", f"updateURIsURL={file}&failover.reconnectDelay=1000", connect=False)
    bench.down = {"a": DOWN}
    with caplog.at_level(logging.WARNING, "pyjmsack.failover"):
        bench.connect()
    assert (bench.tried, bench.opened.done) == (["a"], False)
    assert "updateURIsURL" in caplog.text
    file.write_text("amqp://c")
    bench.clock.pass_by(10)
    assert bench.tried[-1] == "c"
    assert bench.opened.done


def log_of_a_bad_file(file: Path, caplog: pytest.LogCaptureFixture) -> str:
    """Return the warnings about a file of brokers, from which no broker was taken."""
    with caplog.at_level(logging.WARNING, "pyjmsack.failover"):
        bench = Bench("amqp://a", f"updateURIsURL={file}")
    assert bench.tried == ["a"]
    return caplog.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (",".join(f"amqp://h{number}" for number in range(101)), "more than 100 brokers"),
        ("amqp://h?" + "&".join(f"x{number}=1" for number in range(5000)), "without a user, a password or options"),
    ],
)
def test_a_file_of_thousands_of_brokers_or_options_costs_no_seconds_and_no_page_of_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, told: str
) -> None:
    """The loop looked for the nearest name of each wrong option, for 2 s and more in each round."""
    (tmp_path / "brokers").write_text(text)
    log = log_of_a_bad_file(tmp_path / "brokers", caplog)
    assert told in log
    assert len(log) < 3000


def test_a_pipe_in_the_place_of_the_file_does_not_stop_the_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in log_of_a_bad_file(tmp_path / "pipe", caplog)


@pytest.mark.parametrize(
    "text",
    [
        "amqp://u:Secret@1,W0rd@h",
        "amqp://u:1234\nW0rd@h",
        "amqp://u:Secret/x=W0rd@h",
        "amqp://h?jms.password=Secret,W0rd",
        "amqp://h?jms.username=u&jms.password=1234\nW0rd,amqp://k",
    ],
)
def test_no_part_of_a_password_in_the_file_of_brokers_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """A comma or an end of line in a password cuts it into two addresses."""
    (tmp_path / "brokers").write_text(text)
    log = log_of_a_bad_file(tmp_path / "brokers", caplog)
    assert "expected addresses without a user, a password or options" in log
    assert not re.search("Secret|1234|W0rd", log.replace(str(tmp_path), ""))

"""The failover provider alone: the table of S90, the order of S103, where it looks, what it repeats."""

from __future__ import annotations

from typing import Any

import pytest
from failover_fakes import Bench, FakeInbound, FakeMember, Sink

from pyjmsack.destination import Queue, TemporaryQueue
from pyjmsack.errors import (
    ConnectionLostException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidURLException,
    JMSException,
    JMSSecurityException,
    RequestTimedOutException,
    ResourceAllocationException,
    SendTimedOutException,
    TransactionRolledBackException,
    UnsupportedFeatureException,
)
from pyjmsack.providers.failover import resources, search
from pyjmsack.providers.failover.pending import WITHOUT_BROKER, Without
from pyjmsack.providers.failover.resources import Resources
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConsumerInfo, ProducerInfo, SessionInfo, TemporaryInfo
from pyjmsack.types import AckMode, Outcome

TRANSACTED = AckMode.SESSION_TRANSACTED

REQUESTS: dict[str, tuple[Any, ...]] = {
    "create_session": (SessionInfo(11, AckMode.AUTO_ACKNOWLEDGE),),
    "create_producer": (ProducerInfo(12, 1, Queue("q")),),
    "create_consumer": (ConsumerInfo(13, 1, Queue("q"), 1), Sink()),
    "create_temporary": (TemporaryInfo(14, TemporaryQueue),),
    "unsubscribe": ("name",),
    "drain": (3,),
    "stop_consumer": (3,),
    "close_session": (1,),
    "close_producer": (2,),
    "close_consumer": (3,),
    "delete_temporary": (5,),
    "begin": (1,),
    "rollback": (1,),
    "commit": (1,),
}


def furnished(options: str = "", mode: AckMode = TRANSACTED) -> Bench:
    """Return a connection with one of each."""
    bench = Bench(options=options)
    bench.session(1, mode)
    bench.producer()
    bench.sink = bench.consumer()
    bench.consumer(4, browser=True)
    bench.ask("create_temporary", TemporaryInfo(5, TemporaryQueue))
    return bench


# -- the table --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["offline", "in flight"])
@pytest.mark.parametrize("verb", REQUESTS)
def test_the_table_of_requests_without_a_broker(verb: str, moment: str) -> None:
    """S90: the same whether the request is made without a broker, or was under way when it went."""
    bench = furnished()
    if moment == "offline":
        bench.outage()
        done = bench.ask(verb, *REQUESTS[verb])
    else:
        bench.silent.add(verb)
        done = bench.ask(verb, *REQUESTS[verb])
        bench.outage()
        bench.silent.discard(verb)
    expected = WITHOUT_BROKER[verb]
    assert done.done == (expected is not Without.HELD)
    assert isinstance(done.error, TransactionRolledBackException) == (expected is Without.ROLLED_BACK)
    bench.end_outage()
    assert done.done
    asked = [call[0] for call in bench.calls].count(verb)
    if expected is Without.HELD:
        assert done.error is None
        assert bench.calls[-1][0] == verb
    elif expected is Without.ROLLED_BACK:
        assert asked == (moment == "in flight")


def test_every_row_of_the_table_is_tested() -> None:
    """``browse`` is the drain of a browser, which has a test of its own."""
    assert REQUESTS.keys() | {"browse"} == WITHOUT_BROKER.keys()


def test_the_drain_of_a_browser_waits_for_a_broker() -> None:
    """Scenario 73: else it would take the outage for its end."""
    bench = furnished()
    bench.outage()
    done = bench.ask("drain", 4)
    assert not done.done
    bench.end_outage()
    assert done.done
    assert bench.calls[-1] == ("drain", 4)


def test_everything_fails_when_the_search_was_in_vain() -> None:
    """S109: what is held, what is in flight, and what comes later."""
    bench = furnished("failover.maxReconnectAttempts=1")
    bench.silent.add("send")
    sent = bench.send("x")
    bench.down = {"a": ConnectionLostException("a is down"), "b": ConnectionLostException("b is down")}
    bench.member.fail()
    held = bench.ask("create_session", SessionInfo(11, AckMode.AUTO_ACKNOWLEDGE))
    bench.clock.pass_by(1)
    later = bench.ask("create_session", SessionInfo(12, AckMode.AUTO_ACKNOWLEDGE))
    for error in (sent.outcome, held.error, later.error, bench.send("y").outcome):
        assert isinstance(error, ConnectionLostException)
    assert bench.events == ["interrupted", ("failure", "a is down")]


# -- looking for a broker ---------------------------------------------------------------------------------------


def test_brokers_are_tried_as_written_beginning_behind_the_lost_one() -> None:
    """S90, A.1 ``failover.randomize``."""
    bench = Bench("amqp://a,amqp://b,amqp://c")
    bench.down = {"a": ConnectionLostException("down"), "c": ConnectionLostException("down")}
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bench.tried == ["a", "b"]
    bench.down = {"c": ConnectionLostException("down"), "b": ConnectionLostException("down")}
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bench.tried == ["a", "b", "c", "a"]


def test_when_no_broker_of_the_broker_s_own_list_answers_those_of_the_url_are_tried_too() -> None:
    """A.1 ``failover.amqpOpenServerListAction=REPLACE``: the names may lead nowhere from here, as of containers."""
    bench = Bench("amqp://a,amqp://b", connect=False)
    bench.properties = {"failover-server-list": [{"network-host": "inside", "port": 5}]}
    bench.down = {"inside": ConnectionLostException("unknown host")}
    bench.connect()
    bench.down["a"] = ConnectionLostException("down")
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bench.tried == ["a", "inside", "a"]
    bench.clock.pass_by(10)
    assert bench.tried == ["a", "inside", "a", "inside", "b"]


@pytest.mark.option("failover.randomize", "core")
def test_randomize_tries_every_broker_once_a_round() -> None:
    """A.1 ``failover.randomize``."""
    names = [f"h{n}" for n in range(20)]
    bench = Bench(",".join(f"amqp://{name}" for name in names), "failover.randomize=true", connect=False)
    bench.down = {name: ConnectionLostException("down") for name in names}
    bench.connect()
    assert sorted(bench.tried) == sorted(names)
    assert bench.tried != names


@pytest.mark.option("failover.initialReconnectDelay", "core")
def test_rounds_wait_longer_and_longer_and_begin_anew_after_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """A.1 ``failover.reconnectDelay`` and the back-off."""
    monkeypatch.setattr(search, "SPREAD", 1.0)
    bench = Bench(options="failover.reconnectDelay=1000&failover.initialReconnectDelay=500")
    bench.down = {name: ConnectionLostException("down") for name in "ab"}
    for _ in range(2):
        bench.member.fail()
        assert bench.clock.waits == [0.5]
        bench.clock.pass_by(0.5)
        assert bench.clock.waits == [1]
        bench.clock.pass_by(1)
        assert bench.clock.waits == [2]
        down, bench.down = bench.down, {}
        bench.clock.pass_by(2)
        bench.down = down
    assert bench.events.count("interrupted") == 2


@pytest.mark.parametrize(
    ("error", "first", "tries"),
    [
        (JMSSecurityException("wrong password", error_code="sasl:1"), True, 1),
        (JMSSecurityException("wrong password", error_code="sasl:1"), False, 2),
        (JMSSecurityException("no mechanism"), True, 1),
        (JMSSecurityException("not now", error_code="sasl:4"), True, 2),
        (JMSSecurityException("TLS", error_code="tls:handshake"), True, 2),
        (JMSSecurityException("TLS", error_code="tls:certificate"), True, 1),
        (InvalidClientIDException("in use"), True, 1),
        (InvalidClientIDException("in use"), False, 3),
        (InvalidURLException("transport.trustStoreLocation: cannot be read"), True, 1),
        (InvalidURLException("transport.trustStoreLocation: cannot be read"), False, 3),
        (UnsupportedFeatureException("JKS stores cannot be read"), True, 1),
        (ConnectionLostException("down"), True, 2),
    ],
)
def test_what_ends_a_search_at_once(error: JMSException, first: bool, tries: int) -> None:
    """Scenario 64: a refused login; only at the start a client id in use, which the lost connection may still hold, and
    a store that cannot be read, which may just be replaced."""
    bench = Bench(options="failover.maxReconnectAttempts=1", connect=False)
    if not first:
        bench.connect()
    bench.down = dict.fromkeys("ab", error)
    if first:
        bench.connect()
        assert bench.opened.error is error
    else:
        bench.member.fail()
        bench.clock.pass_by(0)
        assert bench.events[-1] == ("failure", str(error))
    assert len(bench.tried) == tries


def test_a_silent_broker_is_left_after_its_time() -> None:
    """``jms.connectTimeout`` is for each broker."""
    bench = Bench(connect=False)
    bench.silent.add("connect")
    bench.connect()
    silent = bench.member
    bench.silent.clear()
    bench.clock.pass_by(15)
    assert silent.aborted
    assert (bench.tried, bench.opened.done) == (["a", "b"], True)


def test_a_broker_that_is_silent_while_things_are_rebuilt_is_left_too() -> None:
    """S103."""
    bench = furnished()
    bench.silent.add("create_consumer")
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bench.tried == ["a", "b"]
    bench.silent.clear()
    bench.clock.pass_by(15)
    assert bench.tried == ["a", "b", "a"]
    assert bench.events[-1] == ("restored", "a")


def test_a_provider_that_cannot_be_made_ends_the_first_search_with_the_reason() -> None:
    """S109: a library is missing. The search hung before, and only the log said why."""
    bench = Bench(connect=False)
    bench.missing = {"a": UnsupportedFeatureException("amqp URLs need x, which is not installed")}
    bench.connect()
    assert bench.opened.error is bench.missing["a"]


def test_a_later_search_goes_on_to_the_next_broker_if_a_provider_cannot_be_made() -> None:
    """S109: somebody may be about to install the library again."""
    bench = furnished()
    bench.missing = {"b": UnsupportedFeatureException("amqp URLs need x, which is not installed")}
    bench.member.fail()
    bench.clock.pass_by(1)
    assert bench.events[-1] == ("restored", "a")


def test_closing_ends_the_search() -> None:
    """S90, S123: at once, and without another try."""
    bench = furnished()
    bench.outage()
    asked = len(bench.members)
    assert bench.ask("close").done
    assert bench.member.aborted
    bench.clock.pass_by(100)
    assert len(bench.members) == asked


def test_what_a_dead_connection_still_says_is_not_heard() -> None:
    """S96: late failures and late answers of a broker that was left."""
    bench = furnished()
    old = bench.member
    old.fail()
    bench.clock.pass_by(0)
    old.fail()
    old.sinks[3].detached(ConnectionLostException("late"))
    assert bench.events == ["interrupted", ("renamed", 5, "temporary-5-of-b"), ("restored", "b")]
    assert bench.sink.errors == []


# -- rebuilding -------------------------------------------------------------------------------------------------


def test_the_order_of_rebuilding() -> None:
    """S103: temporary destinations, sessions, producers, consumers, credit, listeners, what was held."""
    bench = furnished()
    bench.provider.start_consumer(3)
    bench.outage()
    held = bench.send("held")
    bench.ask("create_session", SessionInfo(11, AckMode.AUTO_ACKNOWLEDGE))
    before = len(bench.calls)
    bench.end_outage()
    assert bench.since(before) == [
        ("create_temporary", 5),
        ("create_session", 1),
        ("create_producer", 2),
        ("create_consumer", 3),
        ("create_consumer", 4),
        ("start_consumer", 3),
        ("told", None),
        ("send", "held"),
        ("create_session", 11),
    ]
    assert held.outcome is None


def test_closed_things_are_not_rebuilt() -> None:
    """S103, scenario 72: also what is being closed, and what goes with its session."""
    bench = furnished()
    bench.session(21)
    bench.producer(22, 21)
    bench.consumer(23, 21)
    bench.ask("close_session", 21)
    bench.ask("stop_consumer", 3)
    bench.outage()
    bench.ask("close_producer", 2)
    before = len(bench.calls)
    bench.end_outage()
    numbers = [number for verb, number in bench.since(before) if verb.startswith("create_")]
    assert numbers == [5, 1, 4]


@pytest.mark.parametrize("moment", ["without a broker", "while it is restored"])
def test_a_consumer_that_was_stopped_without_a_broker_is_not_restored(moment: str) -> None:
    """S103: nobody takes what the next broker would deliver to it, and a presettled message would be lost."""
    bench = furnished()
    bench.provider.start_consumer(3)
    if moment == "without a broker":
        bench.outage()
    else:
        bench.silent.add("create_consumer")
        bench.member.fail()
        bench.clock.pass_by(0)
    assert bench.ask("stop_consumer", 3).error is None
    before = len(bench.calls)
    if moment == "without a broker":
        bench.end_outage()
    else:
        for _, done in bench.member.pending:
            done.succeed()
        bench.clock.pass_by(0)
        assert ("close_consumer", 3) in bench.since(before)
    assert ("told", None) in bench.since(before)
    assert ("create_consumer", 3) not in bench.since(before)
    assert ("start_consumer", 3) not in bench.since(before)
    assert bench.ask("close_consumer", 3).error is None


def test_a_request_whose_resource_is_closed_meanwhile_is_given_up() -> None:
    """S90, S103: nothing is opened that nobody wants."""
    bench = furnished()
    bench.outage()
    asked = bench.ask("create_producer", ProducerInfo(12, 1, Queue("q")))
    bench.ask("close_producer", 12)
    assert asked.error is not None
    bench.end_outage()
    assert ("create_producer", 12) not in bench.calls


def test_a_pull_is_repeated_until_it_brought_something() -> None:
    """S108."""
    bench = Bench()
    bench.session()
    bench.consumer(3, prefetch=0)
    bench.consumer(4, prefetch=0)
    bench.consumer(5, prefetch=0)
    for number in (3, 4, 5):
        bench.provider.pull(number)
    bench.member.sinks[3].deliver("a message")
    bench.ask("drain", 5)
    before = len(bench.calls)
    bench.member.fail()
    bench.clock.pass_by(0)
    assert [call for call in bench.since(before) if call[0] == "pull"] == [("pull", 4)]


def test_former_names_of_temporary_destinations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """S133: each new broker chooses new names, and a broker may end connections again and again."""
    monkeypatch.setattr(resources, "MOST_NAMES", 2)
    open_ones = Resources()
    info = TemporaryInfo(5, TemporaryQueue)
    open_ones.temporaries[5] = info, "name 0"
    for number in range(1, 5):
        open_ones.rename(info, f"name {number}")
    names = [f"name {number}" for number in range(5)]
    assert [open_ones.present_name(name) for name in names] == [*names[:2], *["name 4"] * 3]


REFUSAL = InvalidDestinationException("not here", error_code="amqp:not-found")


def test_a_broker_that_refuses_a_link_is_left_for_the_next_one() -> None:
    """S104."""
    bench = furnished()
    bench.refused["create_producer", 2] = REFUSAL
    bench.member.fail()
    bench.clock.pass_by(0.001)
    assert bench.tried == ["a", "b", "a"]
    bench.refused.clear()
    bench.clock.pass_by(1)
    assert bench.events[-1][0] == "restored"
    assert bench.send("x").outcome is None


DENIED = JMSSecurityException("not here", error_code="amqp:unauthorized-access")


@pytest.mark.parametrize("refusal", [REFUSAL, DENIED], ids=["not found", "the user may not create it"])
@pytest.mark.parametrize("name", ["temp-queue://another:1", "temp-queue://own:1"])
def test_a_producer_whose_temporary_queue_is_gone_is_closed_alone(name: str, refusal: JMSException) -> None:
    """S104: a requester has left, or the program deleted its queue. The whole connection searched for ever."""
    bench = furnished()
    bench.ask("create_producer", ProducerInfo(7, 1, TemporaryQueue(name)))
    bench.refused["create_producer", 7] = refusal
    bench.member.fail()
    bench.clock.pass_by(1)
    assert bench.events[-2:] == [("closed", 7, "not here"), ("restored", "b")]
    assert bench.send("x").outcome is None


@pytest.mark.parametrize(
    ("name", "refusal"),
    [("temporary-5-of-a", REFUSAL), ("temp-queue://another:1", ResourceAllocationException("full"))],
)
def test_a_broker_that_refuses_a_producer_for_a_living_temporary_queue_is_left_for_the_next_one(
    name: str, refusal: JMSException
) -> None:
    """S104, S133."""
    bench = Bench("amqp://a")
    bench.session(1, AckMode.AUTO_ACKNOWLEDGE)
    bench.ask("create_temporary", TemporaryInfo(5, TemporaryQueue))
    bench.ask("create_producer", ProducerInfo(7, 1, TemporaryQueue(name)))
    bench.refused["create_producer", 7] = refusal
    bench.member.fail()
    bench.clock.pass_by(1)
    assert bench.tried[:3] == ["a", "a", "a"]
    assert {event for event, *_ in bench.events} & {"restored", "closed"} == set()


def test_a_producer_whose_name_this_client_refuses_at_the_next_broker_is_closed_alone() -> None:
    """S67, S104: a stranger may have chosen the name, in a ``reply_to``. The whole connection searched for ever."""
    bench = furnished()
    bench.ask("create_producer", ProducerInfo(7, 1, Queue("replies.#")))
    bench.refused["create_producer", 7] = InvalidDestinationException("not here")
    bench.member.fail()
    bench.clock.pass_by(1)
    assert bench.events[-2:] == [("closed", 7, "not here"), ("restored", "b")]
    assert bench.send("x").outcome is None


@pytest.mark.parametrize(
    ("broker", "name"), [("artemis", "a,b"), ("classic-6", "a" * 70_000)], ids=["several names", "a long name"]
)
def test_the_next_broker_gets_no_name_that_it_would_misread_or_that_would_damage_it(broker: str, name: str) -> None:
    """S67, S104: the core checked the name for the broker before. A consumer waits for a broker that takes it."""
    bench = Bench("amqp://a,amqp://b")
    bench.brokers = {"b": broker}
    bench.session(1, AckMode.AUTO_ACKNOWLEDGE)
    bench.producer()
    destination = Queue(name)
    destination._several = "," in name
    bench.ask("create_producer", ProducerInfo(7, 1, destination))
    bench.member.fail()
    bench.clock.pass_by(1)
    assert [event[:2] for event in bench.events[-2:]] == [("closed", 7), ("restored", "b")]
    assert ("create_producer", 7) not in bench.since(bench.calls.index(("connect", "b")))
    bench.member.fail()
    bench.ask("create_consumer", ConsumerInfo(8, 1, destination, 10), Sink())
    bench.clock.pass_by(1)
    assert bench.events[-1] == ("restored", "a")
    bench.member.fail()
    bench.clock.pass_by(1)
    assert bench.events[-1] == ("restored", "a"), "not at b, which would take the name for another one"


def test_only_refused_links_end_if_the_user_wants_that() -> None:
    """S104: ``jms.closeLinksThatFailOnReconnect``; what is held for them fails with the reason."""
    bench = furnished("jms.closeLinksThatFailOnReconnect=true")
    bench.outage()
    held = bench.send("held")
    bench.refused = {("create_producer", 2): REFUSAL, ("create_consumer", 3): REFUSAL}
    bench.end_outage()
    assert bench.events[-2:] == [("closed", 2, "not here"), ("restored", "b")]
    assert [str(e) for e in (held.outcome, bench.send("x").outcome, *bench.sink.errors)] == ["not here"] * 3
    bench.member.fail()
    before = len(bench.calls)
    bench.clock.pass_by(1)
    assert [n for verb, n in bench.since(before) if verb in ("create_producer", "create_consumer")] == [4]


def test_links_of_a_broker_that_is_given_up_are_not_refused() -> None:
    """S104: ``jms.closeLinksThatFailOnReconnect`` with a broker that does not answer in ``jms.connectTimeout``."""
    bench = furnished("jms.closeLinksThatFailOnReconnect=true")
    bench.silent |= {"create_producer", "create_consumer"}
    bench.member.fail()
    bench.clock.pass_by(1)
    bench.silent.clear()
    bench.clock.pass_by(15)
    bench.clock.pass_by(1)
    assert [event for event, *_ in bench.events if event in ("closed", "restored")] == ["restored"]
    assert (bench.sink.errors, bench.send("x").outcome) == ([], None)


def test_a_consumer_that_the_broker_closed_is_not_rebuilt() -> None:
    """S103, S126."""
    bench = furnished()
    bench.member.sinks[3].detached(REFUSAL)
    assert bench.sink.errors == [REFUSAL]
    before = len(bench.calls)
    bench.member.fail()
    bench.clock.pass_by(0)
    assert ("create_consumer", 3) not in bench.since(before)


# -- sends ------------------------------------------------------------------------------------------------------


def test_sends_without_outcome_are_repeated_in_order_and_others_are_not() -> None:
    """S91."""
    bench = furnished(mode=AckMode.AUTO_ACKNOWLEDGE)
    answered = bench.send("0")
    bench.silent.add("send")
    sends = [bench.send(str(n)) for n in (1, 2)]
    bench.outage()
    sends += [bench.send(str(n)) for n in (3, 4)]
    bench.silent.discard("send")
    before = len(bench.calls)
    bench.end_outage()
    assert [number for verb, number in bench.since(before) if verb == "send"] == ["1", "2", "3", "4"]
    assert [send.outcome for send in (answered, *sends)] == [None] * 5


def test_a_send_that_is_repeated_twice_is_told_once() -> None:
    """S91: a second drop while it is repeated."""
    bench = furnished(mode=AckMode.AUTO_ACKNOWLEDGE)
    bench.silent.add("send")
    send = bench.send("x")
    for _ in range(3):
        bench.member.fail()
        bench.clock.pass_by(1)
    (kept,) = bench.member.sent
    kept.done(None)
    assert send.outcome is None


def test_completion_listeners_hear_of_what_may_have_left() -> None:
    """S102."""
    bench = furnished(mode=AckMode.AUTO_ACKNOWLEDGE)
    bench.silent.add("send")
    left, waiting = bench.send("left", notifies=True), bench.send("waiting", notifies=True)
    bench.member.unsent = {bench.member.sent[1]}
    bench.outage()
    held = bench.send("held", notifies=True)
    bench.silent.discard("send")
    assert isinstance(left.outcome, ConnectionLostException)
    before = len(bench.calls)
    bench.end_outage()
    assert [number for verb, number in bench.since(before) if verb == "send"] == ["waiting", "held"]
    assert (waiting.outcome, held.outcome) == (None, None)


@pytest.mark.parametrize("options", ["jms.sendTimeout=2000", "failover.timeout=2000&jms.sendTimeout=9000"])
def test_a_held_send_ends_with_its_time(options: str) -> None:
    """S90, A.3: and says whether it may have been stored."""
    bench = furnished(options, AckMode.AUTO_ACKNOWLEDGE)
    bench.silent.add("send")
    left = bench.send("left")
    bench.outage()
    held = bench.send("held")
    bench.clock.pass_by(2)
    assert "may have been stored" in str(left.outcome)
    assert "was not sent" in str(held.outcome)
    assert isinstance(held.outcome, SendTimedOutException)
    bench.silent.clear()
    bench.clock.pass_by(60)
    assert ("send", "held") not in bench.calls


def test_the_time_of_a_held_send_ends_with_the_outage() -> None:
    """``failover.timeout`` counts without a broker only."""
    bench = furnished("failover.timeout=2000", AckMode.AUTO_ACKNOWLEDGE)
    bench.silent.add("send")
    bench.outage()
    send = bench.send("x")
    bench.end_outage()
    bench.clock.pass_by(10)
    assert send.outcome == "open"


def test_a_withdrawn_send_is_not_repeated() -> None:
    """S91: its caller was told that it timed out."""
    bench = furnished(mode=AckMode.AUTO_ACKNOWLEDGE)
    bench.silent.add("send")
    left = bench.send("left")
    withdrawn: Completion[bool] = Completion()
    bench.provider.withdraw(left, withdrawn)
    assert withdrawn.result() is False
    bench.outage()
    assert isinstance(left.outcome, ConnectionLostException)
    held = bench.send("held")
    taken: Completion[bool] = Completion()
    bench.provider.withdraw(held, taken)
    assert taken.result() is True
    before = len(bench.calls)
    bench.end_outage()
    assert "send" not in [verb for verb, _ in bench.since(before)]


def test_a_send_that_times_out_while_its_connection_is_closed_is_answered() -> None:
    """S66: by another thread, whose close the broker does not answer either."""
    bench = furnished(mode=AckMode.AUTO_ACKNOWLEDGE)
    bench.silent |= {"send", "close"}
    left = bench.send("left")
    bench.provider.close(Completion())
    withdrawn: Completion[bool] = Completion()
    bench.provider.withdraw(left, withdrawn)
    assert withdrawn.result() is False
    bench.provider.abort(ConnectionLostException("the connection is closed"))
    assert isinstance(left.outcome, ConnectionLostException)


def test_a_message_is_encoded_anew_for_a_broker_of_another_kind() -> None:
    """S91: protocols and brokers may be mixed in one URL; among brokers of one kind it stays as it is."""
    bench = Bench("amqp://a,amqp://b,amqp://c", connect=False)
    bench.brokers = {"a": "one:", "b": "two:", "c": "two:"}
    bench.connect()
    bench.session()
    bench.producer()
    bench.silent.add("send")
    send = bench.send("x")
    for _ in range(2):
        bench.member.fail()
        bench.clock.pass_by(0)
    assert [n for verb, n in bench.calls if verb == "send"] == ["one:x", "two:x", "two:x"]
    stale = bench.send("y")
    assert stale.payload == b"two:y"
    assert send.outcome == "open"


# -- transactions and acknowledgements --------------------------------------------------------------------------

ACK = object()


@pytest.mark.parametrize(
    ("work", "answered", "survives"),
    [
        ([], 0, True),
        (["x"], 0, True),
        (["x"], 1, False),
        (["x", "y"], 0, False),
        (["x", "y"], 1, False),
        ([ACK], 0, False),
        (["x", ACK], 0, False),
    ],
)
def test_which_transactions_survive_a_drop(work: list[Any], answered: int, survives: bool) -> None:
    """S92, S93, S97, S100: none, or a single send without outcome; else the commit rolls back and says so."""
    bench = furnished()
    bench.silent.add("send")
    sends = []
    for item in work:
        if item is ACK:
            bench.provider.settle(FakeInbound(3, bench.provider.generation), Outcome.ACCEPTED)
        else:
            sends.append(bench.send(item, transacted=True))
    for kept in bench.member.sent[:answered]:
        kept.done(None)
    bench.silent.discard("send")
    bench.member.fail()
    bench.clock.pass_by(0)
    assert [send.outcome for send in sends] == [None] * len(sends)
    assert bench.send("later", transacted=True).outcome is None
    committed = bench.ask("commit", 1)
    assert bench.calls[-1] == (("commit" if survives else "rollback"), 1)
    assert isinstance(committed.error, TransactionRolledBackException) != survives
    assert (("send", "later") in bench.calls) == survives
    bench.send("clean", transacted=True)
    assert bench.ask("commit", 1).error is None


def test_first_send_survives_false() -> None:
    """S93: the rule of Qpid JMS."""
    bench = furnished("failover.firstSendSurvives=false")
    bench.silent.add("send")
    bench.send("x", transacted=True)
    bench.member.fail()
    bench.clock.pass_by(0)
    assert isinstance(bench.ask("commit", 1).error, TransactionRolledBackException)


def test_sends_that_waited_for_credit_are_no_lost_work() -> None:
    """S92: they never left."""
    bench = furnished()
    bench.silent.add("send")
    for body in "xyz":
        bench.send(body, transacted=True)
    bench.member.unsent = {*bench.member.sent}
    bench.silent.discard("send")
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bench.ask("commit", 1).error is None
    assert [n for verb, n in bench.calls if verb == "send"] == ["x", "y", "z"] * 2


def test_a_receipt_of_the_lost_connection_spoils_the_transaction_that_it_joins_later() -> None:
    """S75, S97: it was handed out before the drop and is acknowledged after it."""
    bench = furnished()
    old = bench.provider.generation
    bench.member.fail()
    bench.clock.pass_by(0)
    bench.provider.settle(FakeInbound(3, old), Outcome.ACCEPTED)
    assert isinstance(bench.ask("commit", 1).error, TransactionRolledBackException)
    assert bench.member.outcomes == []


def test_a_commit_in_flight_is_in_doubt_and_one_without_a_broker_is_not() -> None:
    """S90, S94."""
    bench = furnished()
    bench.silent.add("commit")
    in_flight = bench.ask("commit", 1)
    bench.outage()
    offline = bench.ask("commit", 1)
    errors = (in_flight.error, offline.error)
    assert [isinstance(e, TransactionRolledBackException) and e.in_doubt for e in errors] == [True, False]


def test_a_rollback_without_a_broker_takes_held_sends_back() -> None:
    """S90, S99."""
    bench = furnished()
    bench.outage()
    send = bench.send("x", transacted=True)
    assert bench.ask("rollback", 1).error is None
    assert isinstance(send.outcome, TransactionRolledBackException)
    bench.end_outage()
    assert "send" not in [verb for verb, _ in bench.calls]


def test_a_rollback_in_flight_takes_its_sends_with_it() -> None:
    """S75, S92, S99: none of them comes up in the next transaction, which is as if nothing had been."""
    bench = furnished()
    bench.silent |= {"send", "rollback"}
    undone = bench.send("undone", transacted=True)
    rolled_back = bench.ask("rollback", 1)
    first = bench.send("first of the next", transacted=True)
    asked = len(bench.calls)
    bench.silent.clear()
    bench.member.fail()
    bench.clock.pass_by(0)
    assert (rolled_back.done, rolled_back.error) == (True, None)
    assert isinstance(undone.outcome, TransactionRolledBackException)
    assert first.outcome is None
    assert [body for verb, body in bench.since(asked) if verb == "send"] == ["first of the next"]
    assert bench.ask("commit", 1).error is None


def test_outcomes_of_earlier_connections_are_never_sent() -> None:
    """S95, S96."""
    bench = furnished(mode=AckMode.CLIENT_ACKNOWLEDGE)
    old = FakeInbound(3, bench.provider.generation)
    bench.outage()
    bench.provider.settle(old, Outcome.ACCEPTED)
    bench.end_outage()
    bench.provider.settle(old, Outcome.ACCEPTED)
    new = FakeInbound(3, bench.provider.generation)
    bench.provider.settle(new, Outcome.REJECTED)
    assert bench.member.outcomes == [(new, Outcome.REJECTED)]
    assert isinstance(bench.member, FakeMember)


def test_a_broker_that_does_not_answer_in_time_says_so() -> None:
    """The error names the option."""
    bench = Bench("amqp://a", "failover.maxReconnectAttempts=1", connect=False)
    bench.silent.add("connect")
    bench.connect()
    bench.clock.pass_by(15)
    assert isinstance(bench.opened.error, RequestTimedOutException)
    assert "jms.connectTimeout (15 s)" in str(bench.opened.error)

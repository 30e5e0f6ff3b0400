"""Acknowledgements that are sent together, the window of unacknowledged messages, and the end without loss."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound, FakeRuntime

from pyjmsack.aio._runtime import AioRuntime
from pyjmsack.core.batching import ack_threshold
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.session import Session
from pyjmsack.core.unsettled import Unsettled
from pyjmsack.destination import Destination, Queue, Topic
from pyjmsack.errors import IllegalStateException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import Subscription
from pyjmsack.sync._runtime import SyncRuntime
from pyjmsack.types import AckMode, Outcome
from pyjmsack.uri import prefetch_for

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, TRANSACTED = 1, 2, 3, 101, 0
OPTIMIZE = "jms.optimizeAcknowledge=true"


def receive(consumer: Consumer, number: int) -> None:
    for _ in range(number):
        assert consumer.receiving.receive_now() is not None


def accepted(bench: Bench) -> list[str]:
    return [name for name, outcome in bench.outcomes() if outcome is Outcome.ACCEPTED]


@pytest.mark.parametrize(
    ("mode", "destination", "prefetch", "optimize", "size"),
    [
        (AUTO, Queue("q"), 1000, False, 1),
        (AUTO, Queue("q"), 1000, True, 650),  # S40
        (AUTO, Topic("t"), 100, True, 65),
        (AUTO, Queue("q"), 10, True, 7),
        (AUTO, Queue("q"), 1, True, 1),  # S42
        (DUPS_OK, Queue("q"), 100, True, 65),  # S45
        (DUPS_OK, Queue("q"), 100, False, 1),
        (DUPS_OK, Queue("q"), 1, True, 1),
        (DUPS_OK, Topic("t"), 100, False, 50),  # S46: whatever optimize says
        (DUPS_OK, Topic("t"), 100, True, 50),
        (DUPS_OK, Topic("t"), 0, False, 1),
        (CLIENT, Queue("q"), 100, True, 1),  # S39
        (INDIVIDUAL, Queue("q"), 100, True, 1),
        (TRANSACTED, Queue("q"), 100, True, 1),
    ],
)
def test_how_many_messages_make_a_batch(
    mode: int, destination: Destination, prefetch: int, optimize: bool, size: int
) -> None:
    """S39, S40, S42, S45, S46, S48."""
    assert ack_threshold(AckMode(mode), destination, prefetch, optimize) == size


@pytest.mark.parametrize("mode", [*AckMode])
@pytest.mark.parametrize("idle", [AioRuntime.idle_acknowledger, SyncRuntime.idle_acknowledger], ids=["aio", "sync"])
def test_a_message_that_needs_no_acknowledgement_has_the_acknowledger_of_its_face_s12(mode: AckMode, idle: Any) -> None:
    """In asyncio ``await message.acknowledge()`` raised ``TypeError`` in each mode without an acknowledgement."""
    runtime = FakeRuntime()
    runtime.idle_acknowledger = idle
    bench = Bench(runtime=runtime)
    session = bench.session(mode)
    session.face.acknowledger = needed = object()
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a", "b")
    received, listened = consumer.receiving.receive_now(), consumer.take_for_listener()
    assert received is not None
    assert listened is not None
    calls_do_something = mode is AckMode.CLIENT_ACKNOWLEDGE or mode.individual
    assert [received._ack, listened._ack] == [needed if calls_do_something else idle] * 2


@pytest.mark.parametrize(("rate", "interval", "prefetch"), [(650, 1, 1000), (2000, 0.1, 308), (1, 0.001, 1)])
def test_the_right_prefetch_fills_a_batch_in_the_interval_s58(rate: float, interval: float, prefetch: int) -> None:
    assert prefetch_for(rate, interval) == prefetch
    batch = ack_threshold(AckMode.AUTO_ACKNOWLEDGE, Queue("q"), prefetch, optimize=True)
    assert rate * interval <= batch <= rate * interval + 1.65


@pytest.mark.parametrize(("rate", "interval"), [(0, 1), (1, -1), (float("nan"), 1), (1, float("inf"))])
def test_a_rate_or_interval_that_is_none_has_no_prefetch_s58(rate: float, interval: float) -> None:
    with pytest.raises(ValueError, match="expected a finite number above 0"):
        prefetch_for(rate, interval)


def test_optimized_acknowledgement_of_a_pull_consumer_is_refused_when_it_is_created_s10() -> None:
    with pytest.raises(IllegalStateException, match="prefetch 0"):
        Bench(OPTIMIZE).consumer(prefetch=0)


def test_a_batch_is_acknowledged_when_it_is_full_and_not_before_s40() -> None:
    bench = Bench(OPTIMIZE)
    consumer = bench.consumer(prefetch=10)
    bench.arrive(consumer, *"abcdefgh")
    receive(consumer, 6)
    assert accepted(bench) == []
    assert (consumer.stats.unacknowledged, consumer.stats.acknowledged) == (6, 0)
    receive(consumer, 1)
    assert accepted(bench) == [*"abcdefg"]
    receive(consumer, 1)
    assert accepted(bench) == [*"abcdefg"]
    assert (consumer.stats.unacknowledged, consumer.stats.acknowledged) == (1, 7)


def test_a_batch_leaves_in_one_command_so_that_it_makes_one_disposition_s27() -> None:
    bench = Bench(OPTIMIZE)
    consumer = bench.consumer(prefetch=10)
    bench.arrive(consumer, *"abcdefg")
    bench.runtime.turn()
    receive(consumer, 7)
    settling = [c for c, _ in bench.runtime.commands if c.__name__ != "verb"]
    assert [c.__name__ for c in settling].count("send_outcomes") == 1


def test_a_batch_that_does_not_fill_is_acknowledged_by_a_timer_s41_s44() -> None:
    bench = Bench(OPTIMIZE, "jms.optimizeAcknowledgeTimeOut=250")
    consumer = bench.consumer(prefetch=10)
    bench.arrive(consumer, *"ab")
    receive(consumer, 2)
    assert [delay for delay, _ in bench.runtime.timers] == [0.25]  # one for both
    bench.runtime.fire()
    assert accepted(bench) == ["a", "b"]
    bench.arrive(consumer, "c")
    receive(consumer, 1)
    assert len(bench.runtime.timers) == 1  # armed anew


@pytest.mark.option("jms.optimizeAcknowledge", "core")
@pytest.mark.option("jms.optimizedAckScheduledAckInterval", "core")
def test_the_shorter_of_activemq_s_two_intervals_is_the_timer_s44() -> None:
    for option in ("jms.optimizeAcknowledgeTimeOut=0", "jms.optimizeAcknowledgeTimeOut=300"):
        bench = Bench(OPTIMIZE, option, "jms.optimizedAckScheduledAckInterval=100")
        consumer = bench.consumer(prefetch=10)
        bench.arrive(consumer, "a")
        receive(consumer, 1)
        assert [delay for delay, _ in bench.runtime.timers] == [0.1]


@pytest.mark.parametrize("end", ["consumer", "session", "drain"])
def test_closing_or_draining_acknowledges_what_waits_s43_s47(end: str) -> None:
    bench = Bench(OPTIMIZE)
    session = bench.session()
    consumer = bench.consumer(session, prefetch=10)
    bench.arrive(consumer, *"abc")
    receive(consumer, 2)
    bench.run({"consumer": consumer.close, "session": session.close, "drain": lambda: consumer.drain(None)}[end]())
    assert bench.outcomes() == [("a", Outcome.ACCEPTED), ("b", Outcome.ACCEPTED), ("c", Outcome.RELEASED)]


@pytest.mark.parametrize(("mode", "options"), [(AUTO, [OPTIMIZE]), (AUTO, []), (DUPS_OK, [])])
def test_what_was_consumed_is_acknowledged_before_the_connection_leaves_its_broker_s43(
    mode: int, options: list[str]
) -> None:
    """``failover.priorityBackup`` moves an open connection. The messages came again at the broker that was left."""
    bench = Bench(*options)
    topic = Topic("t?consumer.prefetchSize=10")
    consumer = bench.run(bench.session(mode).create_consumer(topic if mode == DUPS_OK else Queue("q"), None, False))
    bench.arrive(consumer, *"abc")
    bench.runtime.turn()
    receive(consumer, 2)
    left: Completion[None] = Completion()
    bench.connection.on_leaving(left)
    assert left.done
    assert bench.provider.outcomes == [("a", Outcome.ACCEPTED), ("b", Outcome.ACCEPTED)]
    assert consumer.stats.stale == 0


def test_a_raising_listener_hands_back_its_own_message_only_s18() -> None:
    bench = Bench(OPTIMIZE)
    consumer = bench.consumer(prefetch=10)
    consumer.set_listener(lambda message: None)
    bench.arrive(consumer, *"ab")
    for error in (None, ValueError("no")):
        call = consumer.listening.begin()
        assert call is not None
        consumer.listening.end(call.message, error)
    assert bench.outcomes() == [("b", Outcome.MODIFIED_FAILED)]
    consumer.unsettled.flush()
    assert accepted(bench) == ["a"]


def test_without_the_option_every_message_is_acknowledged_at_once_s16() -> None:
    bench = Bench()
    consumer = bench.consumer(prefetch=10)
    bench.arrive(consumer, *"ab")
    receive(consumer, 1)
    assert accepted(bench) == ["a"]


def test_recover_hands_out_no_message_again_whose_outcome_was_chosen_before_ctrl_c_s32() -> None:
    """S32, S28: a signal handler ended ``accept()``. The message came again, and could not be accepted any more."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    bench = Bench()
    session = bench.session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a", "b")
    message = consumer.receiving.receive_now()
    assert message is not None
    assert consumer.receiving.receive_now() is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Unsettled, "forget", interrupted)  # a signal
        with pytest.raises(KeyboardInterrupt):
            session.settle_message(message, Outcome.ACCEPTED)
    session.recover()
    again = consumer.receiving.receive_now()
    assert again is not None
    assert isinstance(again._delivery, FakeInbound)
    assert again._delivery.name == "b"
    assert consumer.receiving.receive_now() is None


def test_an_outcome_whose_command_did_not_begin_ends_the_connection_s95(monkeypatch: pytest.MonkeyPatch) -> None:
    """S95: under asyncio a signal handler may raise before the first step of the command, which could not catch it. The
    outcome was lost, and ``accept()`` had succeeded."""

    def interrupted(*_: object) -> None:
        raise TimeoutError("a signal")

    bench = Bench()
    session = bench.session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    consumer = bench.consumer(session)
    lost: list[BaseException] = []
    monkeypatch.setattr(bench.provider, "lose", lost.append, raising=False)
    monkeypatch.setattr(Unsettled, "_send", interrupted)
    bench.arrive(consumer, "a")
    message = consumer.receiving.receive_now()
    assert message is not None
    session.settle_message(message, Outcome.ACCEPTED)
    bench.runtime.turn()
    assert [str(error) for error in lost] == ["a signal"]


# -- the window of unacknowledged messages ----------------------------------------------------------------------


def client(bench: Bench) -> tuple[Session, Consumer]:
    session = bench.session(CLIENT)
    return session, bench.consumer(session, prefetch=4)


@pytest.mark.option("jms.ackWindow", "core")
def test_an_ack_window_stalls_a_consumer_that_does_not_acknowledge_s56() -> None:
    bench = Bench("jms.ackWindow=1.5")
    session, consumer = client(bench)
    bench.arrive(consumer, *"abcdefgh")
    receive(consumer, 6)
    assert consumer.receiving.receive_now() is None
    assert bench.run(consumer.receiving.receive(0)) is None
    session.acknowledge()
    receive(consumer, 2)


def test_a_stalled_listener_goes_on_after_an_acknowledgement_s56() -> None:
    bench = Bench("jms.ackWindow=1")
    session, consumer = client(bench)
    consumer.set_listener(lambda message: None)
    bench.arrive(consumer, *"abcde")
    calls = [consumer.listening.begin() for _ in range(4)]
    assert calls[0] is not None
    assert consumer.listening.begin() is None
    consumer.listening.unscheduled()
    dispatched = len(bench.runtime.dispatchers[f"pyjmsack-session-{session.info.id}-0"].calls)
    session.acknowledge_message(calls[0].message)
    bench.runtime.turn()
    assert len(bench.runtime.dispatchers[f"pyjmsack-session-{session.info.id}-0"].calls) == dispatched + 1
    assert consumer.listening.begin() is not None


def test_the_loop_wakes_who_waits_for_an_acknowledgement_of_another_thread_s56() -> None:
    """In asyncio any thread may acknowledge. That thread completed the future of the receiver itself, which wakes no
    loop, so the receiver waited for ever."""
    bench = Bench("jms.ackWindow=1")
    session, consumer = client(bench)
    bench.arrive(consumer, *"abcde")
    messages = [consumer.receiving.receive_now() for _ in range(4)]
    assert messages[0] is not None
    arrival = consumer.inbox.expect()
    session.acknowledge_message(messages[0])
    assert not arrival.done
    bench.runtime.turn()
    assert arrival.done


def test_without_a_window_a_consumer_goes_on_and_one_warning_asks_for_acknowledgements_s56(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    _, consumer = client(bench)
    bench.arrive(consumer, *"abcdefgh")
    with caplog.at_level(logging.WARNING, "pyjmsack"):
        receive(consumer, 6)
        assert not caplog.records
        receive(consumer, 2)
    assert [record.message for record in caplog.records] == [
        "a consumer of q holds 7 unacknowledged messages, more than 1.5 times its prefetch of 4:"
        " check that the program acknowledges each message (S56)"
    ]


# -- drain ------------------------------------------------------------------------------------------------------


def test_a_drained_consumer_hands_out_nothing_and_what_the_caller_holds_may_be_acknowledged() -> None:
    bench = Bench()
    session, consumer = client(bench)
    bench.arrive(consumer, *"abc")
    receive(consumer, 1)
    assert bench.run(consumer.drain(5))
    assert bench.outcomes() == [("b", Outcome.RELEASED), ("c", Outcome.RELEASED)]
    assert bench.run(consumer.receiving.receive(None)) is None
    session.acknowledge()
    assert bench.outcomes()[-1] == ("a", Outcome.ACCEPTED)


def test_a_drained_consumer_stays_drained_when_the_connection_stops_and_starts() -> None:
    bench = Bench()
    consumer = bench.consumer()
    bench.run(consumer.drain(None))
    bench.provider.calls.clear()
    bench.run(bench.connection.stop())
    bench.connection.start()
    bench.runtime.turn()
    assert "start_consumer" not in bench.provider.names()


@pytest.mark.parametrize(("listens", "verbs"), [(False, ["stop_consumer", "drain"]), (True, ["stop_consumer"])])
def test_a_drain_without_acknowledgements_gets_what_the_broker_has_settled_s36(listens: bool, verbs: list[str]) -> None:
    """A listener gets no more messages, so the broker is not asked for them."""
    bench = Bench()
    consumer = bench.consumer(bench.session(AckMode.NO_ACKNOWLEDGE))
    if listens:
        consumer.set_listener(lambda message: None)
    bench.provider.calls.clear()
    assert bench.run(consumer.drain(5)) is True
    assert [verb for verb in bench.provider.names() if verb in ("stop_consumer", "drain")] == verbs


def test_draining_waits_for_the_listener_at_work_and_says_if_that_takes_too_long() -> None:
    bench = Bench()
    session = bench.session()
    consumer = bench.consumer(session)
    consumer.set_listener(lambda message: None)
    finished: list[str] = []
    session.dispatchers.first.submit(lambda: finished.append("listener"))
    assert bench.run(consumer.drain(5)) is True
    assert finished == ["listener"]
    assert bench.run(bench.consumer(session).drain(0)) is False


# -- names of the acknowledgements --------------------------------------------------------------------------------


def test_acknowledgements_are_logged_by_their_name_in_activemq(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "pyjmsack.ack"):
        bench = Bench()
        session, consumer = client(bench)
        bench.arrive(consumer, *"abc")
        receive(consumer, 2)
        session.acknowledge()
        other = bench.session(INDIVIDUAL)
        individual = bench.consumer(other)
        bench.arrive(individual, "d", "e")
        for outcome in (Outcome.ACCEPTED, Outcome.REJECTED):
            message = individual.receiving.receive_now()
            assert message is not None
            other.settle_message(message, outcome)
        bench.run(session.close())
    assert [record.message for record in caplog.records] == [
        "STANDARD ack of 2 message(s) of q",
        "INDIVIDUAL ack of 1 message(s) of q",
        "POISON ack of 1 message(s) of q",
        "REDELIVERED ack of 1 message(s) of q",
    ]


def test_how_a_message_ended_is_counted_and_logged_by_its_name_s190(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench("jms.redeliveryPolicy.maxRedeliveries=1")
    with caplog.at_level(logging.DEBUG, "pyjmsack.ack"):
        consumer = bench.consumer()
        poisonous = [FakeInbound("often", redeliveries=2), FakeInbound("undecodable", broken=True)]
        bench.arrive(consumer, FakeInbound("old", expired=True), *poisonous, "good")
        receive(consumer, 1)
    stats = consumer.stats
    assert (stats.acknowledged, stats.expired, stats.poisoned) == (1, 1, 2)
    acks = [record.message.split()[0] for record in caplog.records if record.name == "pyjmsack.ack"]
    assert acks == ["EXPIRED", "POISON", "POISON", "STANDARD"]


def test_what_two_threads_settle_is_counted_once_each_s190() -> None:
    """The caller and the loop choose outcomes, of the same messages too: the first choice counts."""
    bench = Bench()
    consumer = bench.consumer(bench.session())
    own = [[FakeInbound(f"{side}-{n}") for n in range(10_000)] for side in range(2)]
    shared = [FakeInbound(f"shared-{n}") for n in range(10_000)]

    def settle(mine: list[FakeInbound]) -> None:
        for one, other in zip(mine, shared, strict=True):
            consumer.unsettled.mark_runs([(Outcome.ACCEPTED, [one]), (Outcome.REJECTED, [other])], [])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=settle, args=(mine,)) for mine in own]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert (consumer.stats.acknowledged, consumer.stats.poisoned) == (20_000, 10_000)


def test_a_refused_consumer_leaves_the_name_of_its_subscription_free_s10() -> None:
    """S143: the next one may ask for another selector."""
    bench = Bench(OPTIMIZE)
    session = bench.session()
    shared = Subscription("name", durable=False, shared=True)
    with pytest.raises(IllegalStateException, match="prefetch of at least 1"):
        bench.run(session.subscribe(Topic("t?consumer.prefetchSize=0"), None, False, shared))
    bench.runtime.turn()
    assert bench.run(session.subscribe(Topic("t"), "a > 1", False, shared)).info.subscription is not None


def interrupted_at(line: int, call: Callable[[], object]) -> bool:
    """Make a call with Ctrl-C before the n-th line of ``unsettled.py`` that it runs. Return whether it came so far."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.endswith("unsettled.py"):
            return None
        if event == "line":
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(("mode", "verb"), [(INDIVIDUAL, "accept"), (INDIVIDUAL, "reject"), (CLIENT, "acknowledge")])
def test_an_outcome_that_ctrl_c_interrupts_leaves_once_when_the_call_is_made_again_s28(mode: int, verb: str) -> None:
    """The second call did nothing, because the outcome was chosen, but no outcome had left."""
    line = 0
    while True:
        line += 1
        bench = Bench()
        session = bench.session(mode)
        consumer = bench.consumer(session)
        bench.arrive(consumer, "a", "b")
        messages = [consumer.receiving.receive_now() for _ in range(2)]
        unsettled = consumer.unsettled

        def call(session: Session = session, unsettled: Unsettled = unsettled, messages: list[Any] = messages) -> None:
            if verb == "acknowledge":
                session.acknowledge()
            else:
                outcome = Outcome.ACCEPTED if verb == "accept" else Outcome.REJECTED
                for message in messages:
                    unsettled.settle_one(message._delivery, outcome)

        went_on = interrupted_at(line, call)
        call()
        wanted = Outcome.REJECTED if verb == "reject" else Outcome.ACCEPTED
        assert bench.outcomes() == [("a", wanted), ("b", wanted)], f"after Ctrl-C before line {line}"
        if not went_on:
            break
    assert line > 10

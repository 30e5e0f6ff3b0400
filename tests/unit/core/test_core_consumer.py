"""Handing out, acknowledging, recovering and dispatching without a broker (S8, S16-S38, S111, S120, S156)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound, FakeRuntime

from pyjmsack.core.channel import RolledBack
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.unsettled import Unsettled
from pyjmsack.errors import ConnectionLostException, IllegalStateException, JMSException, TransactionRolledBackException
from pyjmsack.types import AckMode, Outcome

ACCEPTED, RELEASED, FAILED = Outcome.ACCEPTED, Outcome.RELEASED, Outcome.MODIFIED_FAILED
UNDELIVERABLE = Outcome.MODIFIED_FAILED_UNDELIVERABLE


def texts(consumer: Consumer) -> list[str]:
    """Take everything there is."""
    found = []
    while (message := consumer.receiving.receive_now()) is not None:
        found.append(message.text)
    return found


def test_messages_are_handed_out_in_order_and_accepted_before_s16() -> None:
    bench = Bench()
    consumer = bench.consumer()
    bench.arrive(consumer, "a", "b")
    assert texts(consumer) == ["a", "b"]
    assert bench.outcomes() == [("a", ACCEPTED), ("b", ACCEPTED)]


def test_nothing_is_handed_out_while_the_connection_is_stopped_s120() -> None:
    bench = Bench()
    consumer = bench.consumer()
    bench.run(bench.connection.stop())
    bench.arrive(consumer, "a")
    assert bench.run(consumer.receiving.receive(0)) is None
    bench.connection.start()
    assert texts(consumer) == ["a"]


@pytest.mark.parametrize(
    ("options", "inbound", "outcome"),
    [
        ((), FakeInbound("bad", expired=True), UNDELIVERABLE),
        ((), FakeInbound("bad", broken=True), UNDELIVERABLE),
        (("jms.redeliveryPolicy.maxRedeliveries=2",), FakeInbound("bad", redeliveries=3), UNDELIVERABLE),
        (
            ("jms.redeliveryPolicy.maxRedeliveries=2", "jms.redeliveryPolicy.outcome=REJECTED"),
            FakeInbound("bad", redeliveries=3),
            Outcome.REJECTED,
        ),
        (("jms.redeliveryPolicy[q].maxRedeliveries=2",), FakeInbound("bad", redeliveries=3), UNDELIVERABLE),
    ],
    ids=["expired", "undecodable", "limit", "limit-outcome", "limit-of-this-queue"],
)
def test_what_must_not_be_handed_out_is_settled_and_the_next_one_taken(
    options: tuple[str, ...], inbound: FakeInbound, outcome: Outcome
) -> None:
    """S111, S156, S166."""
    bench = Bench(*options)
    consumer = bench.consumer()
    inbound.settled = inbound.sent = False
    bench.arrive(consumer, inbound, "good")
    assert texts(consumer) == ["good"]
    assert bench.outcomes() == [("bad", outcome), ("good", ACCEPTED)]


@pytest.mark.parametrize(
    ("options", "inbound"),
    [
        (("jms.localMessageExpiry=false",), FakeInbound("m", expired=True)),
        (("jms.redeliveryPolicy.maxRedeliveries=2",), FakeInbound("m", redeliveries=2)),
        ((), FakeInbound("m", redeliveries=99)),
        (("jms.redeliveryPolicy[other].maxRedeliveries=2",), FakeInbound("m", redeliveries=99)),
    ],
    ids=["expiry-off", "at-the-limit", "no-limit", "limit-of-another-queue"],
)
def test_what_may_be_handed_out_is(options: tuple[str, ...], inbound: FakeInbound) -> None:
    bench = Bench(*options)
    consumer = bench.consumer()
    inbound.settled = inbound.sent = False
    bench.arrive(consumer, inbound)
    assert texts(consumer) == ["m"]


def test_a_message_the_broker_settled_gets_no_outcome_s36() -> None:
    bench = Bench()
    consumer = bench.consumer()
    inbound = FakeInbound("m")
    inbound.settled = True
    bench.arrive(consumer, inbound)
    assert texts(consumer) == ["m"]
    assert bench.outcomes() == []


def test_recover_brings_back_the_unacknowledged_oldest_first_before_newer_ones_s32() -> None:
    """S82: to the same consumer; the broker hears of none of them before they are acknowledged."""
    bench = Bench()
    session = bench.session(2)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a", "b", "c", "d")
    for _ in range(3):
        consumer.receiving.receive_now()
    session.recover()
    assert texts(consumer) == ["a", "b", "c", "d"]
    assert consumer.stats.redelivered == 3
    session.acknowledge()
    assert bench.outcomes() == [(name, ACCEPTED) for name in "abcd"]


@pytest.mark.option("jms.redeliveryPolicy.preDispatchCheck", "core")
@pytest.mark.parametrize(("check", "handed_out"), [("true", []), ("false", ["a"])])
def test_without_the_check_before_dispatch_a_transaction_judges_what_it_rolled_back_itself_s113(
    check: str, handed_out: list[str]
) -> None:
    """A.2 ``preDispatchCheck``: a message that others had too often is handed out once."""
    bench = Bench("jms.redeliveryPolicy.maxRedeliveries=1", f"jms.redeliveryPolicy.preDispatchCheck={check}")
    session = bench.session(0)
    consumer = bench.consumer(session)
    bench.arrive(consumer, FakeInbound("a", redeliveries=5))
    assert texts(consumer) == handed_out
    bench.run(session.rollback())
    bench.arrive(consumer, FakeInbound("a", redeliveries=6), "b")
    assert texts(consumer) == ["b"]
    assert ("a", UNDELIVERABLE) in bench.outcomes()


def discarding(limit: int) -> Bench:
    """Return a bench that discards what its own rollbacks brought over the limit."""
    return Bench(
        f"jms.redeliveryPolicy.maxRedeliveries={limit}",
        "jms.redeliveryPolicy.preDispatchCheck=false",
        "jms.redeliveryPolicy.outcome=ACCEPTED",
    )


def test_a_refusal_is_no_part_of_the_transaction_and_holds_for_all_consumers_of_the_connection_s113() -> None:
    """The next rollback undid the refusal, and the message was handed out again."""
    bench = discarding(1)
    session, neighbour = bench.session(0), bench.session(0)
    consumer, other = bench.consumer(session), bench.consumer(neighbour)
    bench.arrive(consumer, FakeInbound("a", redeliveries=1))
    assert texts(consumer) == ["a"]
    bench.run(session.rollback())
    bench.arrive(other, FakeInbound("a", redeliveries=2))
    assert texts(other) == ["a"]
    bench.run(neighbour.rollback())
    bench.arrive(consumer, FakeInbound("a", redeliveries=2), "b")
    assert texts(consumer) == ["b"]
    bench.run(session.rollback())
    bench.outcomes()
    assert bench.provider.alone == ["a"]


@pytest.mark.parametrize("end", ["commit", "discard"])
def test_the_rollbacks_of_a_message_that_is_done_do_not_count_for_a_later_one_s113(end: str) -> None:
    """A sender may send a message that agrees with an earlier one in all parts. It was lost at its first error."""
    bench = discarding(1)
    session = bench.session(0)
    consumer = bench.consumer(session)
    for count in range(1 + (end == "discard")):
        bench.arrive(consumer, FakeInbound("a", redeliveries=count))
        assert texts(consumer) == ["a"]
        bench.run(session.rollback())
    bench.arrive(consumer, FakeInbound("a", redeliveries=2))
    assert texts(consumer) == (["a"] if end == "commit" else [])
    bench.run(session.commit())
    for count in range(2):
        bench.arrive(consumer, FakeInbound("a", redeliveries=count))
        assert texts(consumer) == ["a"]
        bench.run(session.rollback())


def test_only_the_rollbacks_of_this_connection_count_before_a_message_is_discarded_s113() -> None:
    """A lost connection counts for each message sent ahead. Such a message was discarded before its last try."""
    bench = discarding(2)
    session = bench.session(0)
    consumer = bench.consumer(session)
    for count in (4, 7, 9):
        bench.arrive(consumer, FakeInbound("a", redeliveries=count))
        assert texts(consumer) == ["a"]
        bench.run(session.rollback())
    bench.arrive(consumer, FakeInbound("a", redeliveries=10))
    assert texts(consumer) == []


def test_a_commit_that_fails_does_not_count_before_a_message_is_discarded_s113() -> None:
    """The broker refused a send of a function that returned, and the message was discarded."""
    bench = discarding(0)
    session = bench.session(0)
    consumer, producer = bench.consumer(session), bench.producer(session)
    for count in (0, 1):
        bench.arrive(consumer, FakeInbound("a", redeliveries=count))
        assert texts(consumer) == ["a"]
        producer.submit(producer.prepare(lambda error: None, "b", None, None, None, None, None)[1])
        bench.outcomes()
        bench.provider.sent[-1].done(JMSException("the queue is full"))
        with pytest.raises(TransactionRolledBackException):
            bench.run(session.commit())
    bench.arrive(consumer, FakeInbound("a", redeliveries=2))
    assert texts(consumer) == ["a"]
    bench.run(session.rollback())
    bench.arrive(consumer, FakeInbound("a", redeliveries=3))
    assert texts(consumer) == []


def test_a_message_without_an_id_is_not_dropped_because_a_rollback_cannot_remember_it_s113() -> None:
    bench = discarding(1)
    consumer = bench.consumer(bench.session(0))
    bench.arrive(consumer, FakeInbound("", redeliveries=5))
    assert texts(consumer) == [""]


def test_a_connection_counts_the_rollbacks_of_a_limited_number_of_messages_s113() -> None:
    rolled_back = RolledBack(nullcontext())
    for number in range(10_001):
        rolled_back.add(number)
    assert [rolled_back.times(number) for number in (0, 1, 10_000)] == [0, 1, 1]


@pytest.mark.parametrize(("mode", "name"), [(1, "a"), (2, "a"), (0, "")], ids=["auto", "client", "without-an-id"])
def test_the_check_before_dispatch_stays_where_nothing_else_would_judge_s113(mode: int, name: str) -> None:
    """Outside transactions there is no rollback, and a message without an id cannot be found again."""
    bench = Bench("jms.redeliveryPolicy.maxRedeliveries=1", "jms.redeliveryPolicy.preDispatchCheck=false")
    consumer = bench.consumer(bench.session(mode))
    bench.arrive(consumer, FakeInbound(name, redeliveries=2))
    assert texts(consumer) == []
    assert bench.outcomes() == [(name, UNDELIVERABLE)]


def test_a_recovered_message_counts_towards_the_limit_s111() -> None:
    bench = Bench("jms.redeliveryPolicy.maxRedeliveries=1")
    session = bench.session(2)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a", "b")
    seen = []
    for _ in range(3):
        seen.append(texts(consumer))
        session.recover()
    assert seen[0] == seen[1] == ["a", "b"]
    assert texts(consumer) == []
    assert bench.outcomes() == [("a", UNDELIVERABLE), ("b", UNDELIVERABLE)]


def test_receive_is_forbidden_while_any_consumer_of_the_session_has_a_listener_s8() -> None:
    bench = Bench()
    session = bench.session()
    first, second = bench.consumer(session), bench.consumer(session)
    first.set_listener(lambda message: None)
    with pytest.raises(IllegalStateException, match="S8"):
        second.check_receive()
    first.set_listener(None)
    second.check_receive()
    first.set_listener(lambda message: None)
    bench.run(first.close())
    second.check_receive()


def test_a_receive_after_the_loss_raises_even_if_messages_were_buffered_s101_s128() -> None:
    bench = Bench()
    consumer = bench.consumer()
    bench.arrive(consumer, "a")
    bench.provider.listener.on_failure(ConnectionLostException("gone"))
    assert consumer.buffered() == 0
    with pytest.raises(ConnectionLostException):
        bench.run(consumer.receiving.receive(None))


def test_a_waiting_receive_that_is_abandoned_leaves_nothing_behind() -> None:
    """Ctrl-C or a cancelled task: the next message goes to the next receive."""
    bench = Bench()
    consumer = bench.consumer()
    steps = consumer.receiving.receive(None)
    next(steps)
    steps.close()
    bench.arrive(consumer, "a")
    assert texts(consumer) == ["a"]


def test_receive_waits_again_for_the_rest_of_its_time_when_a_message_was_dropped_s22() -> None:
    bench = Bench()
    consumer = bench.consumer()
    bench.runtime.meanwhile.append(lambda: bench.arrive(consumer, FakeInbound("old", expired=True)))
    bench.runtime.meanwhile.append(lambda: bench.arrive(consumer, "new"))
    message: Any = bench.run(consumer.receiving.receive(60))
    assert message.text == "new"
    first, second = bench.runtime.waits[-2:]
    assert first is not None
    assert second is not None
    assert second <= first


@pytest.mark.parametrize("mode", [2, 101])
def test_abandon_hands_back_delivered_counted_and_prefetched_uncounted_s30_s31(mode: int) -> None:
    bench = Bench()
    session = bench.session(mode)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a", "b", "c")
    consumer.receiving.receive_now()
    bench.run(session.close())
    assert bench.provider.outcomes == [("a", FAILED), ("b", RELEASED), ("c", RELEASED)]


# -- the dispatcher ---------------------------------------------------------------------------------------------


def dispatch(bench: Bench) -> None:
    for dispatcher in bench.runtime.dispatchers.values():
        dispatcher.run()


def test_a_listener_gets_messages_in_order_and_each_is_accepted_after_it_returned_s17() -> None:
    bench = Bench()
    session = bench.session()
    consumer = bench.consumer(session)
    log: list[str] = []
    consumer.set_listener(lambda m: log.append(f"{m.text} {len(bench.outcomes())}"))
    bench.arrive(consumer, "a", "b")
    bench.arrive(consumer, "c")
    dispatch(bench)
    assert log == ["a 0", "b 1", "c 2"]
    assert bench.outcomes() == [("a", ACCEPTED), ("b", ACCEPTED), ("c", ACCEPTED)]


def test_a_burst_is_one_call_of_the_dispatcher() -> None:
    bench = Bench()
    session = bench.session()
    consumer = bench.consumer(session)
    consumer.set_listener(lambda m: None)
    dispatch(bench)
    for name in "abc":
        bench.arrive(consumer, name)
    (dispatcher,) = bench.runtime.dispatchers.values()
    assert len(dispatcher.calls) == 1


def test_consumers_of_a_session_share_one_dispatcher_s15() -> None:
    bench = Bench()
    session = bench.session()
    seen: list[str] = []
    for _ in range(2):
        bench.consumer(session).set_listener(lambda m: seen.append(m.text))
    for name, consumer in zip("ab", session.consumers.values(), strict=True):
        bench.arrive(consumer, name)
    dispatch(bench)
    assert len(bench.runtime.dispatchers) == 1
    assert sorted(seen) == ["a", "b"]


@pytest.mark.parametrize(
    ("mode", "outcome"),
    [(1, FAILED), (3, FAILED), (101, FAILED), (2, None)],
    ids=["auto", "dups", "individual", "client"],
)
def test_a_listener_that_raises_fails_its_message_or_tells_the_exception_listener(
    mode: int, outcome: Outcome | None
) -> None:
    """S18, S20, S21."""
    bench = Bench()
    heard: list[JMSException] = []
    bench.connection.events.exception_listener = heard.append
    session = bench.session(mode)
    consumer = bench.consumer(session)

    def listener(message: Any) -> None:
        raise ValueError("poison")

    consumer.set_listener(listener)
    bench.arrive(consumer, "a")
    for _ in range(2):
        for dispatcher in list(bench.runtime.dispatchers.values()):
            dispatcher.run()
    assert bench.outcomes() == ([("a", outcome)] if outcome else [])
    assert [str(error.__cause__) for error in heard] == ([] if outcome else ["poison"])


def test_recover_inside_a_listener_brings_the_message_again_and_accepts_it_once_s33() -> None:
    """Catalogue 2."""
    bench = Bench()
    session = bench.session()
    consumer = bench.consumer(session)
    seen: list[tuple[str, bool]] = []

    def listener(message: Any) -> None:
        seen.append((message.text, message.redelivered))
        if len(seen) == 1:
            session.recover()

    consumer.set_listener(listener)
    bench.arrive(consumer, "a", "b")
    dispatch(bench)
    assert seen == [("a", False), ("a", True), ("b", False)]
    assert bench.outcomes() == [("a", ACCEPTED), ("b", ACCEPTED)]


def test_a_listener_may_close_its_consumer_and_gets_no_more_s31() -> None:
    bench = Bench()
    session = bench.session()
    consumer = bench.consumer(session)
    seen: list[str] = []

    def listener(message: Any) -> None:
        seen.append(message.text)
        bench.run(consumer.close())

    consumer.set_listener(listener)
    bench.arrive(consumer, "a", "b")
    dispatch(bench)
    assert seen == ["a"]
    assert sorted(bench.outcomes()) == [("a", ACCEPTED), ("b", RELEASED)]


@pytest.mark.parametrize("what", ["session", "connection", "stop"])
def test_a_listener_may_not_close_its_session_or_connection_s14(what: str) -> None:
    bench = Bench()
    session = bench.session()
    consumer = bench.consumer(session)
    errors: list[BaseException] = []
    calls = {"session": session.close, "connection": bench.connection.close, "stop": bench.connection.stop}

    def listener(message: Any) -> None:
        try:
            bench.run(calls[what]())
        except IllegalStateException as error:
            errors.append(error)

    consumer.set_listener(listener)
    bench.arrive(consumer, "a")
    dispatch(bench)
    assert len(errors) == 1
    assert not session.closed


class AtTheLimit(FakeRuntime):
    """The interpreter has no frames left when the loop is woken for an outcome."""

    error: type[BaseException] | None = None

    def submit(self, command: Callable[..., Any], *arguments: Any) -> None:
        super().submit(command, *arguments)
        if self.error is not None and Outcome.ACCEPTED in arguments:
            raise self.error

    submit_lazily = submit_from_thread = submit


@pytest.mark.parametrize("mode", [AckMode.AUTO_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED])
@pytest.mark.parametrize("error", [RecursionError, MemoryError])
def test_the_caller_gets_a_message_whose_acknowledgement_is_on_its_way_s16(
    mode: int, error: type[BaseException]
) -> None:
    """The call raised, the broker forgot the message, and nobody had it."""
    runtime = AtTheLimit()
    bench = Bench(runtime=runtime)
    session = bench.session(mode)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a", "b")
    runtime.error = error
    message = consumer.receiving.receive_now()
    runtime.error = None
    assert message is not None
    assert message.text == "a"
    assert bench.outcomes() == [("a", Outcome.ACCEPTED)]
    assert texts(consumer) == ["b"]


def test_a_message_that_is_put_back_stays_in_the_buffer_whatever_comes_meanwhile_s16() -> None:
    """A second Ctrl-C, or the limit of recursion: the message was in no list until the connection closed."""
    bench = Bench()
    consumer = bench.consumer(bench.session(AckMode.CLIENT_ACKNOWLEDGE))
    bench.arrive(consumer, "a")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Unsettled, "hand_over", interrupted)
        patch.setattr(Unsettled, "forget", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.receiving.receive_now()
    assert texts(consumer) == ["a"]

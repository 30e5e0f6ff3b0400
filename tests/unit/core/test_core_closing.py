"""A consumer is closed in one thread while another has a message of it: outcomes leave before the link ends (S29)."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound

from pyjmsack.core.consumer import Consumer
from pyjmsack.core.session import Session
from pyjmsack.core.steps import Steps
from pyjmsack.core.unsettled import Unsettled
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.types import AckMode, Outcome

ACCEPTED, RELEASED = Outcome.ACCEPTED, Outcome.RELEASED


def told(bench: Bench) -> list[Any]:
    """What the broker is told from now on: outcomes, and ``"end"`` of a link."""
    heard: list[Any] = []
    close = bench.provider.close_consumer

    def ends(*arguments: Any) -> None:
        heard.append("end")
        close(*arguments)

    bench.provider.settle = lambda inbound, outcome, joins=True: heard.append((inbound.name, outcome))
    bench.provider.close_consumer = ends
    return heard


class ClosedMeanwhile(FakeInbound):
    """The consumer, or its session, is closed while this message is decoded."""

    def __init__(self, name: str, bench: Bench, closed: Consumer | Session) -> None:
        super().__init__(name)
        self._close = lambda: bench.run(closed.close())

    def to_message(self, destination: Any, /) -> Message:
        self._close()
        return super().to_message(destination)


def taken(consumer: Consumer) -> Message:
    message = consumer.receiving.receive_now()
    assert message is not None
    return message


@pytest.mark.parametrize("options", ["", "jms.optimizeAcknowledge=true"])
def test_what_is_received_during_a_close_is_acknowledged_before_the_link_ends(options: str) -> None:
    """S16, S29: the link had ended, the broker heard of no outcome, and the message came again."""
    bench = Bench(options)
    consumer = bench.consumer(bench.session(AckMode.AUTO_ACKNOWLEDGE))
    heard = told(bench)
    bench.arrive(consumer, ClosedMeanwhile("a", bench, consumer), "b")
    assert taken(consumer).body == "a"
    assert consumer.receiving.receive_now() is None
    bench.runtime.turn()
    assert sorted(map(str, heard[:-1])) == sorted(map(str, [("a", ACCEPTED), ("b", RELEASED)]))
    assert heard[-1] == "end"


def test_what_a_transaction_received_during_a_close_is_in_its_commit() -> None:
    """S75, S84: the commit kept the sends of the transaction, and lost what it had received."""
    bench = Bench()
    session = bench.session(AckMode.SESSION_TRANSACTED)
    consumer = bench.consumer(session)
    heard = told(bench)
    bench.arrive(consumer, ClosedMeanwhile("a", bench, consumer))
    taken(consumer)
    bench.runtime.turn()
    assert heard == [("a", ACCEPTED)]
    bench.run(session.commit())
    bench.runtime.turn()
    assert heard == [("a", ACCEPTED), "end"]


@pytest.mark.parametrize("mode", [AckMode.CLIENT_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE])
def test_an_acknowledgement_during_a_close_leaves_before_the_link_ends(
    mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S29: the message came again although it was acknowledged."""
    bench = Bench()
    session = bench.session(mode)
    consumer = bench.consumer(session)
    heard = told(bench)
    bench.arrive(consumer, "a")
    message = taken(consumer)

    with monkeypatch.context() as patch:
        for verb in ("settle", "_mark"):
            patch.setattr(Unsettled, verb, closing_first(bench, consumer, getattr(Unsettled, verb)))
        session.acknowledge_message(message)
    bench.runtime.turn()
    assert heard == [("a", ACCEPTED), "end"]


def closing_first(bench: Bench, consumer: Consumer, verb: Any) -> Any:
    """Let another thread close the consumer at the moment in which the outcome is chosen."""

    def chosen(*arguments: Any) -> None:
        bench.run(consumer.close())
        verb(*arguments)

    return chosen


def test_the_last_acknowledgement_during_a_close_does_not_end_the_link_before_the_rest_is_handed_back() -> None:
    """S30, S31: what nobody had seen would count as delivered."""
    bench = Bench()
    session = bench.session(AckMode.INDIVIDUAL_ACKNOWLEDGE)
    consumer = bench.consumer(session)
    heard = told(bench)
    bench.arrive(consumer, "a", "b")
    message = taken(consumer)
    bench.provider.hold("stop_consumer")

    def acknowledge() -> None:
        session.acknowledge_message(message)
        bench.runtime.turn()
        bench.provider.held["stop_consumer"][0].succeed()

    bench.runtime.meanwhile.append(acknowledge)
    bench.run(consumer.close())
    assert heard == [("a", ACCEPTED), ("b", RELEASED), "end"]


def test_a_link_ends_once_although_two_threads_find_it_free() -> None:
    bench = Bench()
    consumer = bench.consumer()
    heard = told(bench)
    leave = consumer._leave

    def another_is_first(number: int) -> object:
        consumer._leave = leave
        consumer._submit_detach()
        return leave(number)

    consumer._leave = another_is_first
    bench.run(consumer.close())
    assert heard == ["end"]


def test_a_batch_that_a_listener_filled_leaves_before_the_link_that_it_closed() -> None:
    """S29, S43: the outcome waited for company, and came behind the end of the link."""
    bench = Bench("jms.optimizeAcknowledge=true")
    consumer = bench.consumer(bench.session(AckMode.AUTO_ACKNOWLEDGE))
    heard = told(bench)
    consumer.set_listener(lambda message: bench.run(consumer.close()))
    bench.arrive(consumer, "a")
    consumer.listening._dispatchers.first.run()  # type: ignore[attr-defined]  # of the fake
    bench.runtime.turn()
    assert heard == [("a", ACCEPTED), "end"]


class Slow(FakeInbound):
    """Its decoding takes until somebody says ``go_on``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.reached, self.go_on = threading.Event(), threading.Event()

    def to_message(self, destination: Any, /) -> Message:
        self.reached.set()
        assert self.go_on.wait(60)
        return super().to_message(destination)


def session_told(bench: Bench) -> list[Any]:
    """Outcomes, ``"rollback"`` and ``"end"`` of a session, in the order in which the broker is told."""
    heard = told(bench)
    close, rollback = bench.provider.close_session, bench.provider.rollback
    bench.provider.close_session = lambda *arguments: (heard.append("end of session"), close(*arguments))
    bench.provider.rollback = lambda *arguments: (heard.append("rollback"), rollback(*arguments))
    return heard


@pytest.mark.parametrize("closed", ["session", "connection"])
@pytest.mark.parametrize(
    ("mode", "outcomes"),
    [
        (AckMode.AUTO_ACKNOWLEDGE, [("a", ACCEPTED), ("b", RELEASED), "end", "end of session"]),
        (AckMode.SESSION_TRANSACTED, [("a", ACCEPTED), ("b", RELEASED), "rollback", "end", "end of session"]),
        (AckMode.CLIENT_ACKNOWLEDGE, [("a", Outcome.MODIFIED_FAILED), ("b", RELEASED), "end", "end of session"]),
    ],
)
def test_a_message_on_its_way_to_another_thread_has_its_outcome_before_the_session_ends(
    mode: int, outcomes: list[Any], closed: str
) -> None:
    """S16, S30: the session had ended, the outcome came behind it, and the message was delivered to somebody else,
    although this caller got it too."""
    bench = Bench()
    session = bench.session(mode)
    consumer = bench.consumer(session)
    heard = session_told(bench)
    slow, received = Slow("a"), list[Any]()
    bench.arrive(consumer, slow, "b")
    other = threading.Thread(target=lambda: received.append(consumer.receiving.receive_now()))
    other.start()
    assert slow.reached.wait(60)

    def meanwhile() -> None:
        slow.go_on.set()
        other.join(60)

    bench.runtime.meanwhile.append(meanwhile)
    bench.run(bench.connection.close() if closed == "connection" else session.close())
    meanwhile()
    assert [message.body for message in received] == ["a"]
    assert heard == outcomes
    assert consumer.receiving.receive_now() is None


def test_a_message_that_is_decoded_for_longer_than_a_close_waits_is_not_handed_out() -> None:
    """S30: the session was closed without it, so it comes again, to somebody else."""
    bench = Bench()
    session = bench.session(AckMode.AUTO_ACKNOWLEDGE)
    consumer = bench.consumer(session)
    heard = session_told(bench)
    slow, received = Slow("a"), list[Any]()
    bench.arrive(consumer, slow)
    other = threading.Thread(target=lambda: received.append(consumer.receiving.receive_now()))
    other.start()
    assert slow.reached.wait(60)
    bench.run(session.close())  # nothing happens while it waits: the time is over
    slow.go_on.set()
    other.join(60)
    bench.runtime.turn()
    assert (received, heard) == ([None], ["end", "end of session"])


def test_a_close_by_the_thread_that_is_receiving_does_not_wait_for_itself() -> None:
    """S30: a signal handler runs in the middle of ``receive()``; what was on its way comes again."""
    bench = Bench()
    session = bench.session(AckMode.AUTO_ACKNOWLEDGE)
    consumer = bench.consumer(session)
    heard = session_told(bench)
    bench.arrive(consumer, ClosedMeanwhile("a", bench, session), "b")
    assert consumer.receiving.receive_now() is None
    bench.runtime.turn()
    assert heard == [("b", RELEASED), "end", "end of session"]


@pytest.mark.parametrize("mode", [AckMode.SESSION_TRANSACTED, AckMode.AUTO_ACKNOWLEDGE, AckMode.NO_ACKNOWLEDGE])
def test_a_session_that_gives_its_inbox_back_does_not_ask_for_more_messages(mode: AckMode) -> None:
    """S31, S53: the credit for taken messages was granted after the close had emptied the inbox. The broker sent a
    second prefetch of messages, and on Classic newer messages overtook those that went back."""
    bench = Bench()
    session = bench.session(mode)
    consumer = bench.consumer(session)
    bench.arrive(consumer, *"abcdefgh")
    taken(consumer)
    bench.runtime.turn()
    asked = bench.provider.names().count("replenish")
    assert asked > 0
    taken(consumer)  # asks for more; the loop gets the request together with the close
    bench.run(session.close())
    assert bench.provider.names().count("replenish") == asked


@pytest.mark.parametrize("held", ["listener", "rollback", "close_session"])
def test_a_close_of_a_transacted_session_that_is_given_up_rolls_the_transaction_back(held: str) -> None:
    """S84: the brokers have no sessions of STOMP, so the transaction stayed open as long as the connection. ActiveMQ
    Classic gave its messages to nobody."""
    bench = Bench()
    session = bench.session(AckMode.SESSION_TRANSACTED)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    taken(consumer)
    closing = session.close()
    if held == "listener":
        busy: Completion[None] = Completion()
        consumer.listening._dispatchers.idle = lambda deadline=None: iter([(busy, None)])  # type: ignore[assignment, method-assign, misc]
    else:
        bench.provider.hold(held)
    next(closing)
    closing.close()
    bench.runtime.turn()
    names = bench.provider.names()
    assert names.index("rollback") < names.index("close_session")


def given_up(steps: Steps[None]) -> None:
    """Let a caller give up at the first wait, as after Ctrl-C."""
    next(steps)
    steps.close()


def test_a_close_that_was_given_up_ends_the_dispatchers_of_the_session_s123() -> None:
    """A thread for each of them stayed for ever, also after a second close."""
    bench = Bench()
    session = bench.session()
    used = [session.dispatchers.first, session.completions.dispatcher]
    given_up(session.close())
    assert used == [*bench.runtime.dispatchers.values()]
    assert all(dispatcher.closed for dispatcher in bench.runtime.dispatchers.values())


def test_a_second_close_ends_the_dispatchers_that_the_first_one_left_s123() -> None:
    """Ctrl-C may come at any line of the first one."""
    bench = Bench()
    session = bench.session()
    bench.run(session.close())
    left = session.dispatchers.first  # as if the first close had not come so far
    bench.run(session.close())
    assert left is bench.runtime.dispatchers["pyjmsack-session-1-0"]
    assert left.closed


def test_a_future_that_is_answered_after_the_close_leaves_no_dispatcher_s123() -> None:
    """Its callback made the dispatcher, after the close had ended all others."""
    bench = Bench()
    session = bench.session()
    given_up(session.close())
    assert bench.runtime.dispatchers == {}
    session.completions.dispatcher.submit(bool)
    assert bench.runtime.dispatchers["pyjmsack-session-1-completions"].closed


def test_a_future_that_is_answered_at_the_end_of_the_close_leaves_no_dispatcher_s123(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop made the dispatcher after the close had ended all others, and before the close was over."""
    bench = Bench()
    session = bench.session()
    let_go = session._let_go

    def answered_afterwards() -> None:
        let_go()
        session.completions.dispatcher.submit(bool)

    monkeypatch.setattr(session, "_let_go", answered_afterwards)
    bench.run(session.close())
    assert bench.runtime.dispatchers["pyjmsack-session-1-completions"].closed


def test_a_connection_close_that_was_given_up_ends_the_dispatcher_of_the_events_s123() -> None:
    bench = Bench()
    bench.connection.add_listener(SimpleNamespace(on_connection_established=print))
    given_up(bench.connection.close())
    assert bench.runtime.dispatchers["pyjmsack-events"].closed

"""A service at a real broker: transactions, retries, dead letters, replies, concurrency, the end."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from polling import wait_until
from shared_brokers import Served

from pyjmsack import (
    App,
    ConnectionFactory,
    ConnectionLostException,
    IllegalStateException,
    InvalidDestinationException,
    JsonConverter,
    Message,
    Queue,
    RequestTimedOutException,
    Retry,
    TransactionRolledBackException,
    aio,
)

from .conftest import Collected, Take

pytestmark = pytest.mark.usefixtures("no_leaks")
FAST = Retry(2, delay=0.05, backoff=1)


@dataclass
class Email:
    to: str


@dataclass
class Receipt:
    number: int


MAIL = JsonConverter("_type", {"hello.Email": Email, "hello.Receipt": Receipt})


# -- transactions, retries, dead letters ------------------------------------------------------------------------------


def test_what_a_failed_listener_sent_never_leaves_and_the_last_try_makes_a_dead_letter(
    broker_url: str, queue_name: str, collected: Collected, take: Take
) -> None:
    """S75, S80, S112: the sends belong to the transaction of the message."""
    app = App(broker_url, converter=MAIL)
    errors = Collected()

    @app.listener(
        queue_name, retry=FAST, on_error=lambda error, message: errors.add((str(error), message.delivery_count))
    )
    def receive(email: Email, message: Message) -> None:
        app.sender.send(f"{queue_name}.out", Receipt(message.delivery_count))
        app.sender.send_many(f"{queue_name}.out", [Receipt(100)])
        collected.add(email.to)
        if email.to == "bad" or message.delivery_count == 1:
            raise ValueError("no")

    dead = Collected()

    @app.listener("DLQ", selector=f"own = '{queue_name}'")
    def dead_letter(email: Email) -> None:
        dead.add(email)

    with app:
        app.sender.send(queue_name, Email("good"))
        assert collected.wait_for(2) == ["good", "good"]
        app.sender.send(queue_name, Email("bad"), properties={"own": queue_name})
        dead.wait_for(1)
    assert dead.items == [Email("bad")]
    assert collected.items == ["good", "good", "bad", "bad", "bad"]
    assert errors.items == [("no", 1), ("no", 1), ("no", 2), ("no", 3)]
    assert [message.body for message in take(f"{queue_name}.out", 2)] == ['{"number": 2}', '{"number": 100}']
    assert app.stats()[queue_name] == {"received": 5, "succeeded": 1, "failed": 4, "rolled_back": 0}


@pytest.mark.parametrize("mode", ["transacted", "individual"])
def test_drop_acknowledges_after_the_last_try_and_says_so(
    broker_url: str, queue_name: str, collected: Collected, take: Take, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(broker_url)

    @app.listener(queue_name, mode=mode, retry=Retry(1, delay=0, then="drop"))
    def receive(body: str) -> None:
        collected.add(body)
        if body == "bad":
            raise ValueError("no")

    with app:
        app.sender.send(queue_name, "bad")
        collected.wait_for(2)
        app.sender.send(queue_name, "good")  # may overtake the other one, which is dropped when it comes again
        collected.wait_for(3)
        app.sender.send(queue_name, "last")  # comes behind the one that is dropped
        collected.wait_for(4)
    assert collected.items == ["bad", "bad", "good", "last"]
    assert "gives up ID:" in caplog.text
    assert "drop" in caplog.text
    assert take(queue_name, 0, 0) == []


def test_a_dropped_message_does_not_come_back_whatever_the_next_function_or_another_worker_does(
    broker_url: str, queue_name: str, collected: Collected
) -> None:
    """S113: the next rollback brought a dropped message back, and each worker called the function again."""
    app = App(broker_url)

    @app.listener(queue_name, concurrency=3, retry=Retry(1, delay=0, then="drop"))
    def receive(body: str) -> None:
        collected.add(body)
        if body != "good":
            raise ValueError("no")

    with app:
        app.sender.send_many(queue_name, [f"{number}" for number in range(20)])
        collected.wait_for(40)
        app.sender.send_many(queue_name, ["good"] * 10)  # come behind the last one that is dropped
        collected.wait_for(50)
    assert Counter(collected.items) == Counter([*map(str, range(20))] * 2 + ["good"] * 10)


@pytest.mark.parametrize("mode", ["transacted", "individual"])
def test_a_retry_counts_the_deliveries_of_a_large_message(
    broker_url: str, queue_name: str, collected: Collected, take: Take, mode: str
) -> None:
    """S110, S112: over AMQP Artemis does not count them, so the function got the message until the broker gave up."""
    app = App(broker_url)

    @app.listener(queue_name, mode=mode, retry=Retry(2, delay=0))
    def receive(body: bytes, message: Message) -> None:
        collected.add((len(body), message.delivery_count))
        if len(body) > 1:
            raise ValueError("no")

    with app:
        app.sender.send(queue_name, b"x" * 300_000)
        collected.wait_for(3)
        app.sender.send(queue_name, b"x")  # comes behind the message over the limit
        collected.wait_for(4)
    assert collected.items == [(300_000, 1), (300_000, 2), (300_000, 3), (1, 1)]


@pytest.mark.parametrize("mode", ["transacted", "individual"])
def test_drop_acknowledges_no_message_that_the_function_never_had(
    broker_url: str, queue_name: str, collected: Collected, take: Take, mode: str
) -> None:
    """A lost connection counts for what was sent ahead. Such messages were over the limit, and were dropped unseen."""
    with ConnectionFactory(broker_url).create_connection() as connection, connection.create_session(0) as session:
        connection.start()
        session.create_producer(Queue(queue_name)).send("unlucky")
        session.commit()
        consumer = session.create_consumer(Queue(queue_name))
        for _ in range(3):
            assert consumer.receive(60) is not None
            session.rollback()
    app = App(broker_url)

    @app.listener(queue_name, mode=mode, retry=Retry(0, then="drop"))
    def receive(body: str, message: Message) -> None:
        collected.add((body, message.delivery_count > 1))

    with app:
        assert collected.wait_for(1) == [("unlucky", True)]
    assert take(queue_name, 0, 0) == []


@pytest.mark.parametrize("mode", ["transacted", "individual"])
def test_released_messages_do_not_hold_up_the_messages_behind_them(
    broker_url: str, queue_name: str, collected: Collected, mode: str
) -> None:
    """Two messages over the limit went back and forth thousands of times a second, and nothing behind them came."""
    app = App(broker_url)

    @app.listener(queue_name, mode=mode, retry=Retry(0, delay=0, then="release"))
    def receive(body: str) -> None:
        collected.add(body)
        if body == "bad":
            raise ValueError("no")

    with app:
        for body in ("bad", "bad", "bad", "good", "good", "good"):
            app.sender.send(queue_name, body)
        assert sorted(collected.wait_for(6)) == ["bad"] * 3 + ["good"] * 3


@pytest.mark.parametrize("mode", ["transacted", "individual"])
def test_release_leaves_the_message_to_others_after_the_last_try(
    broker_url: str, queue_name: str, collected: Collected, take: Take, mode: str
) -> None:
    app = App(broker_url)

    @app.listener(queue_name, mode=mode, retry=Retry(0, delay=0, then="release"))
    def receive(body: str) -> None:
        collected.add(body)
        raise ValueError("no")

    with app:
        app.sender.send(queue_name, "x")
        collected.wait_for(1)
        assert [message.body for message in take(queue_name, 1)] == ["x"]
    assert collected.items == ["x"]


def test_a_body_that_does_not_fit_is_an_error_of_the_listener(
    broker_url: str, queue_name: str, collected: Collected
) -> None:
    """Also ``sys.exit()`` in a listener ends no service, and an ``on_error`` that raises is logged."""
    app = App(broker_url, converter=MAIL)

    def on_error(error: BaseException) -> None:
        collected.add(type(error).__name__)
        raise RuntimeError("on_error itself")

    @app.listener(queue_name, retry=Retry(0, then="drop"), on_error=on_error)
    def receive(email: Email) -> None:
        raise SystemExit(3)

    with app:
        app.sender.send(queue_name, "no json")
        app.sender.send(queue_name, Email("ann"))
        assert collected.wait_for(2) == ["MessageFormatException", "SystemExit"]


def test_in_individual_mode_the_listener_may_choose_an_outcome_and_sends_leave_at_once(
    broker_url: str, queue_name: str, collected: Collected, take: Take
) -> None:
    """S34: the first outcome counts."""
    app = App(broker_url)

    @app.listener(queue_name, mode="individual", retry=FAST)
    def receive(body: str, message: Message) -> None:
        app.sender.send(f"{queue_name}.out", body)
        if body == "refused":
            message.reject()
        collected.add(body)
        if message.delivery_count == 1 and body == "flaky":
            raise ValueError("no")

    with app:
        app.sender.send_many(queue_name, ["refused", "flaky"])
        collected.wait_for(3)
    assert collected.items == ["refused", "flaky", "flaky"]
    assert [message.body for message in take(f"{queue_name}.out", 3)] == ["refused", "flaky", "flaky"]


# -- replies ---------------------------------------------------------------------------------------------------------


def test_what_a_listener_returns_answers_a_request_else_goes_to_reply_to(
    broker_url: str, queue_name: str, take: Take
) -> None:
    app = App(broker_url, converter=MAIL)
    app.listener(queue_name, reply_to=f"{queue_name}.answers", concurrency=2)(_receipt)
    with app:
        assert app.sender.request(queue_name, Email("four"), timeout=20) == Receipt(4)
        assert app.sender.request(queue_name, Email("three"), timeout=20, wanted=Receipt) == Receipt(5)
        app.sender.send(queue_name, Email("nobody"), correlation_id="c-1")
        (answer,) = take(f"{queue_name}.answers", 1)
        with pytest.raises(RequestTimedOutException):
            app.sender.request(f"{queue_name}.nowhere", Email("x"), timeout=0.1)
    assert (answer.body, answer.correlation_id) == ('{"number": 6}', "c-1")


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_request_whose_answer_cannot_be_sent_costs_itself_alone(
    protocol: str, brokers: Callable[[str], Served], queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S67: nothing can be sent to a pattern. The request came again and again, and nobody else got an answer."""
    broker_url = getattr(brokers("artemis"), f"{protocol}_url")
    app = App(broker_url)
    app.listener(queue_name)(lambda body: body.upper())
    with app:
        app.sender.send(queue_name, "evil", reply_to="a.#.b")
        assert app.sender.request(queue_name, "here", timeout=20) == "HERE"
        wait_until(lambda: app.stats()[queue_name]["succeeded"] == 2)
        assert app.stats()[queue_name]["failed"] == 0
    assert "nobody gets the answer to" in caplog.text


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_a_requester_that_has_left_costs_itself_alone(
    protocol: str, brokers: Callable[[str], Served], queue_name: str
) -> None:
    """Classic refused its answer for ever, and nobody else got an answer. Artemis drops such answers."""
    broker_url = getattr(brokers("classic-6"), f"{protocol}_url")
    with (
        ConnectionFactory(broker_url).create_context() as context,
        context.create_requestor(context.create_queue(queue_name)) as requestor,
        pytest.raises(RequestTimedOutException),
    ):
        requestor.request("gone", timeout=0.1)
    app = App(broker_url)
    calls = Collected()

    @app.listener(queue_name)
    def answer(body: str) -> str:
        calls.add(body)
        return body.upper()

    with app:
        assert app.sender.request(queue_name, "here", timeout=20) == "HERE"
    assert calls.items.count("here") == 1
    assert 1 <= calls.items.count("gone") <= 2


def _receipt(email: Email) -> Receipt:
    return Receipt(len(email.to))


# -- the sender ------------------------------------------------------------------------------------------------------


def test_the_sender_may_be_used_by_many_threads_and_joins_only_in_the_listeners_own(
    broker_url: str, queue_name: str, collected: Collected, take: Take
) -> None:
    app = App(broker_url)

    @app.listener(queue_name, retry=Retry(0, then="drop"))
    def receive(body: str) -> None:
        thread = threading.Thread(target=app.sender.send, args=(f"{queue_name}.out", "of another thread"))
        thread.start()
        thread.join()
        app.sender.send(f"{queue_name}.out", "of the listener")
        collected.add(body)
        raise ValueError("no")

    with app:
        threads = [threading.Thread(target=app.sender.send, args=(f"{queue_name}.x", n)) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        app.sender.send(queue_name, "x")
        collected.wait_for(1)
    assert [message.body for message in take(f"{queue_name}.out", 1)] == ["of another thread"]
    assert sorted(int(message.body) for message in take(f"{queue_name}.x", 40)) == [*range(40)]


@pytest.mark.parametrize("first_fails", [False, True])
def test_a_batch_of_a_task_is_not_torn_over_two_transactions(
    broker_url: str, queue_name: str, take: Take, first_fails: bool
) -> None:
    """The listener ends while its task waits for the window of the producer."""
    app = aio.App(f"{broker_url}{'&' if '?' in broker_url else '?'}jms.producerWindowSize=20000")
    errors: list[str] = []

    async def main() -> None:
        second, tasks = asyncio.Event(), list[asyncio.Task[None]]()

        @app.listener(queue_name)
        async def receive(body: str) -> None:
            if tasks:  # a second message, or the first message again
                await asyncio.wait(tasks)
                second.set()
                return
            tasks.append(asyncio.create_task(app.sender.send_many(f"{queue_name}.out", ["x" * 1000] * 60)))
            await asyncio.sleep(0)
            if first_fails:
                raise ValueError("no")

        async with app:
            await app.sender.send_many(queue_name, ["1", "2"])
            await asyncio.wait_for(second.wait(), 60)
            with pytest.raises(IllegalStateException) as error:
                await tasks[0]
            errors.append(str(error.value))

    asyncio.run(main())
    found = re.search(r"after (\d+) of 60 bodies", errors[0])
    assert found is not None
    take(f"{queue_name}.out", 0 if first_fails else int(found[1]))


def test_send_many_sends_all_or_none(broker_url: str, queue_name: str, take: Take) -> None:
    def bodies() -> Any:
        yield "first"
        raise KeyError("second")

    app = App(broker_url)
    with app:
        with pytest.raises(KeyError):
            app.sender.send_many(queue_name, bodies())
        app.sender.send_many(queue_name, ["a", "b"])
    assert [message.body for message in take(queue_name, 2)] == ["a", "b"]


def test_a_sender_of_an_app_that_does_not_run_says_so(broker_url: str, queue_name: str) -> None:
    app = App(broker_url)
    with pytest.raises(IllegalStateException, match="start it"):
        app.sender.send(queue_name, "x")
    with app, pytest.raises(IllegalStateException, match="is running"):
        app.start()
    with pytest.raises(IllegalStateException, match="start it"):
        app.sender.send(queue_name, "x")


# -- topics, concurrency ---------------------------------------------------------------------------------------------


def test_a_shared_subscription_divides_the_messages_and_keeps_them_while_the_app_is_away(
    broker_url: str, queue_name: str, collected: Collected
) -> None:
    """S143."""
    app = App(broker_url)
    app.listener(queue_name, topic=True, subscription=f"{queue_name}-s", shared=True, concurrency=3)(
        lambda body: collected.add(int(body))
    )
    with app:
        app.sender.send_many(queue_name, range(10), topic=True)
        collected.wait_for(10)
    other = App(broker_url)
    with other:
        other.sender.send(queue_name, 10, topic=True)
    with app:
        collected.wait_for(11)
    assert sorted(collected.items) == [*range(11)]
    with ConnectionFactory(broker_url).create_connection() as connection, connection.create_session() as session:
        session.unsubscribe(f"{queue_name}-s")


@pytest.mark.parametrize("slow", [True, False], ids=["behind slow messages", "behind quick messages"])
def test_workers_grow_with_the_backlog_and_shrink_again(
    broker_url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    """Three messages are worked on at a time: they wait for each other, or else for a worker's look at the backlog."""
    monkeypatch.setattr("pyjmsack.app.container.IDLE", 1.0)
    monkeypatch.setattr("pyjmsack.app.container.SLOW", 0.05 if slow else 1000.0)
    app = App(broker_url)
    grown, gone = threading.Event(), threading.Event()
    together = threading.Barrier(3, grown.set)

    @app.listener(queue_name, concurrency="1-3")
    def receive(body: str) -> None:
        if slow and not grown.is_set():
            together.wait(90)
        elif workers() == 3:
            grown.set()

    def workers() -> int:
        return int(app.health()["listeners"][queue_name]["workers"])

    with app:
        assert workers() == 1
        while not grown.is_set():  # the test's timeout is the limit
            app.sender.send_many(queue_name, ["message"] * 10)
            grown.wait(0.2)
        while workers() > 1:
            gone.wait(0.05)
        assert app.health()["status"] == "UP"


# -- the end ---------------------------------------------------------------------------------------------------------


def test_a_stop_lets_the_listener_at_work_finish_and_gives_the_others_back(
    broker_url: str, queue_name: str, take: Take
) -> None:
    app = App(broker_url)
    at_work, go = threading.Event(), threading.Event()

    @app.listener(queue_name)
    def receive(body: str) -> None:
        at_work.set()
        assert go.wait(60)
        app.sender.send(f"{queue_name}.out", body)

    app.start()
    app.sender.send_many(queue_name, ["first", "second", "third"])
    assert at_work.wait(60)
    ended: list[bool] = []
    stopper = threading.Thread(target=lambda: ended.append(app.stop()))
    stopper.start()
    go.set()
    stopper.join(60)
    assert ended == [True]
    assert app.stop()
    done = int(app.stats()[queue_name]["succeeded"])
    rest = take(queue_name, 3 - done)
    assert [message.body for message in rest] == ["first", "second", "third"][done:]
    assert not any(message.redelivered for message in rest)
    assert len(take(f"{queue_name}.out", done)) == done >= 1


def test_a_stop_waits_no_longer_than_it_may_and_the_message_goes_back(
    broker_url: str, queue_name: str, take: Take, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(broker_url, stop_timeout=0.2)
    at_work, go = threading.Event(), threading.Event()

    @app.listener(queue_name)
    def receive(body: str) -> None:
        app.sender.send(f"{queue_name}.out", body)
        at_work.set()
        go.wait(60)

    app.start()
    app.sender.send(queue_name, "x")
    assert at_work.wait(60)
    assert not app.stop()
    assert "1 workers did not finish in 0.2 s" in caplog.text
    assert [message.body for message in take(queue_name, 1)] == ["x"]
    go.set()
    assert take(f"{queue_name}.out", 0, 0) == []


@pytest.mark.parametrize("where", ["listener", "on_error"])
def test_a_listener_that_stops_its_app_does_not_wait_for_itself(
    broker_url: str, queue_name: str, take: Take, where: str
) -> None:
    """The message of the listener is done, and ``run()`` returns."""
    app = App(broker_url)
    stopped: list[bool] = []

    def on_error(error: BaseException) -> None:
        stopped.append(app.stop())

    @app.listener(queue_name, retry=Retry(0, then="drop"), on_error=on_error)
    def receive(body: str) -> None:
        if where == "on_error":
            raise ValueError("no")
        stopped.append(app.stop())
        app.sender.send(f"{queue_name}.out", body)

    with App(broker_url) as other:
        other.sender.send(queue_name, "x")
    assert app.run()
    assert stopped == [False]
    assert len(take(f"{queue_name}.out", 1 if where == "listener" else 0)) == (where == "listener")
    assert app.health()["status"] == "DOWN"


def test_a_name_of_several_queues_is_refused_where_the_broker_would_take_it_as_one(
    broker_url: str, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S67: ActiveMQ's client has composite destinations; on Artemis the listener would get nothing in silence."""
    app = App(broker_url)
    app.listener(f"{queue_name},{queue_name}.b")(lambda body: None)
    app.listener(queue_name, reply_to=f"topic://{queue_name}.a,{queue_name}.b")(lambda body: body)
    with app:
        assert app.health()["status"] == "DOWN"
    assert caplog.text.count("ActiveMQ Artemis has no composite destinations") >= 2


def test_a_text_of_several_queues_is_refused_wherever_an_app_sends(broker_url: str, queue_name: str) -> None:
    """S67: Artemis would take the text as one name and confirm the message, which neither queue gets."""
    several = f"{queue_name},{queue_name}.b"
    sends: list[Callable[[Any], object]] = [
        lambda sender: sender.send(several, 1),
        lambda sender: sender.send_many(several, [1, 2]),
        lambda sender: sender.request(several, 1, timeout=60),
        lambda sender: sender.send(f"topic://{several}", 1),
        lambda sender: sender.send(queue_name, 1, reply_to=several),
    ]
    with App(broker_url) as app:
        for send in sends:
            with pytest.raises(InvalidDestinationException, match="has no composite destinations"):
                send(app.sender)
        app.sender.send(Queue(several), 1)
    with ConnectionFactory(broker_url).create_context() as context:
        consumer = context.create_consumer(Queue(several))  # who means such a name writes the destination
        assert consumer.receive_body(str, timeout=60) == "1"


def test_in_asyncio_a_listener_that_stops_its_app_does_not_wait_for_itself(
    broker_url: str, queue_name: str, take: Take
) -> None:
    """Nor does a task that the listener awaits."""

    async def main() -> None:
        app = aio.App(broker_url)
        stopped: list[bool] = []

        @app.listener(queue_name)
        async def receive(body: str) -> None:
            stopped.extend(await asyncio.gather(app.stop(), app.stop()))
            await app.sender.send(f"{queue_name}.out", body)

        running = asyncio.create_task(app.run())
        async with aio.App(broker_url) as other:
            await other.sender.send(queue_name, "x")
        assert await running
        assert stopped == [False, False]

    asyncio.run(main())
    assert [message.body for message in take(f"{queue_name}.out", 1)] == ["x"]


def test_two_stops_at_the_same_time_both_wait_for_the_end(broker_url: str, queue_name: str) -> None:
    app = App(broker_url)
    at_work, go = threading.Event(), threading.Event()

    @app.listener(queue_name)
    def receive(body: str) -> None:
        at_work.set()
        assert go.wait(60)

    app.start()
    app.sender.send(queue_name, "x")
    assert at_work.wait(60)
    ended: list[bool] = []
    stoppers = [threading.Thread(target=lambda: ended.append(app.stop())) for _ in range(4)]
    for stopper in stoppers:
        stopper.start()
    assert not ended
    go.set()
    for stopper in stoppers:
        stopper.join(60)
    assert ended == [True] * 4


# -- a broker that is away -------------------------------------------------------------------------------------------


def test_a_broker_that_is_away_at_the_start_is_awaited_and_meanwhile_the_app_is_down(
    queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = App("amqp://127.0.0.1:1", send_timeout=0.1)
    app.listener(queue_name)(lambda body: None)
    with app:
        health = app.health()
        assert (health["status"], health["sender"]) == ("DOWN", "connecting")
        with pytest.raises(ConnectionLostException, match=r"no broker within 0\.1 s"):
            app.sender.send(queue_name, "x")
    assert any(record.levelno == logging.WARNING for record in caplog.records)


def test_a_commit_that_the_broker_refuses_brings_the_message_again(
    broker_url: str, queue_name: str, collected: Collected, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S79: neither an error of the listener, nor lost."""
    from pyjmsack import Session

    commit, refused = Session.commit, []

    def refusing(session: Session) -> None:
        if threading.current_thread().name == f"pyjmsack-app-{queue_name}" and not refused:
            refused.append(1)
            session.rollback()
            raise TransactionRolledBackException("refused")
        commit(session)

    monkeypatch.setattr(Session, "commit", refusing)
    app = App(broker_url)

    @app.listener(queue_name, retry=FAST)
    def receive(body: str) -> None:
        app.sender.send(f"{queue_name}.out", body)
        collected.add(body)

    with app:
        app.sender.send(queue_name, "x")
        collected.wait_for(2)
    assert app.stats()[queue_name] == {"received": 2, "succeeded": 1, "failed": 0, "rolled_back": 1}
    assert [message.body for message in take(f"{queue_name}.out", 1)] == ["x"]


# -- asyncio ---------------------------------------------------------------------------------------------------------


def test_asyncio_does_the_same(broker_url: str, queue_name: str, take: Take) -> None:
    """Sends of the listener's own tasks join; what goes on after it does not."""

    async def main() -> None:
        app = aio.App(broker_url, converter=MAIL)
        late, done = asyncio.Event(), asyncio.Event()
        tasks: list[asyncio.Task[None]] = []

        async def later() -> None:
            await late.wait()
            await app.sender.send(f"{queue_name}.late", "late")

        @app.listener(queue_name, concurrency="1-2", retry=FAST)
        async def receive(email: Email, message: Message, session: aio.Session) -> Receipt:
            await asyncio.gather(*(app.sender.send(f"{queue_name}.out", Receipt(n)) for n in range(3)))
            tasks.append(asyncio.create_task(later()))
            if message.delivery_count == 1:
                raise ValueError("no")
            done.set()
            return Receipt(message.delivery_count)

        async with app:
            assert app.health()["status"] == "UP"
            assert await app.sender.request(queue_name, Email("ann"), timeout=20) == Receipt(2)
            await done.wait()
            await asyncio.gather(*(app.sender.send(f"{queue_name}.many", n) for n in range(100)))
            await app.sender.send_many(f"{queue_name}.many", [100])
            late.set()
            await asyncio.gather(*tasks)
        assert app.stats()[queue_name]["failed"] == 1
        assert app.health()["status"] == "DOWN"

    asyncio.run(main())
    assert len(take(f"{queue_name}.out", 3)) == 3
    assert len(take(f"{queue_name}.late", 2)) == 2
    assert sorted(int(message.body) for message in take(f"{queue_name}.many", 101)) == [*range(101)]


def test_asyncio_cancels_a_listener_that_does_not_finish_and_its_message_goes_back(
    broker_url: str, queue_name: str, take: Take
) -> None:
    async def main() -> str:
        app = aio.App(broker_url, stop_timeout=0.2)
        at_work, outcome = asyncio.Event(), "finished"

        @app.listener(queue_name)
        async def receive(body: str) -> None:
            nonlocal outcome
            await app.sender.send(f"{queue_name}.out", body)
            at_work.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                outcome = "cancelled"
                raise

        await app.start()
        await app.sender.send(queue_name, "x")
        await at_work.wait()
        assert not await app.stop()
        return outcome

    assert asyncio.run(main()) == "cancelled"
    assert [message.body for message in take(queue_name, 1)] == ["x"]
    assert take(f"{queue_name}.out", 0, 0) == []

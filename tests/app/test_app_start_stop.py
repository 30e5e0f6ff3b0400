"""One listener is started and stopped while its app runs, answers have properties, and a client id is a listener's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from polling import wait_until

from pyjmsack import (
    Answer,
    App,
    ConnectionFactory,
    DeliveryMode,
    IllegalStateException,
    Message,
    Queue,
    aio,
)
from pyjmsack.app.link import Link
from pyjmsack.app.steps import Steps
from pyjmsack.testing import Broker

from .conftest import Collected, Take

pytestmark = pytest.mark.usefixtures("no_leaks")


def test_a_stopped_listener_leaves_its_messages_until_it_starts_again(
    broker_url: str, queue_name: str, collected: Collected
) -> None:
    app = App(broker_url)
    app.listener(queue_name, concurrency="1-2", autostart=False)(collected.add)
    others = Collected()
    app.listener(f"{queue_name}.other")(others.add)
    late = app.listeners[queue_name]
    with app:
        assert (late.running, app.health()["status"]) == (False, "UP")
        assert app.health()["listeners"][queue_name]["state"] == "stopped"
        app.sender.send(queue_name, "first")
        app.sender.send(f"{queue_name}.other", "passes")
        assert others.wait_for(1) == ["passes"]
        assert collected.items == []
        late.start()
        late.start()  # runs already
        assert collected.wait_for(1) == ["first"]
        assert late.running
        assert late.stop()
        assert late.stop(), "a second stop has no effect"
        app.sender.send(queue_name, "second")
        app.sender.send(f"{queue_name}.other", "passes")
        assert others.wait_for(2) == ["passes", "passes"]
        assert (collected.items, late.running, app.health()["status"]) == (["first"], False, "UP")
        late.start()
        assert collected.wait_for(2) == ["first", "second"]
        assert app.stats()[queue_name]["received"] == 2, "the counts go on"
    with pytest.raises(IllegalStateException, match="the app is not running"):
        late.start()


def test_a_listener_may_stop_itself_and_finishes_its_message(
    broker_url: str, queue_name: str, collected: Collected, take: Take
) -> None:
    app = App(broker_url)

    @app.listener(queue_name)
    def once(body: str) -> None:
        app.listeners[queue_name].start()  # runs already
        assert app.listeners[queue_name].stop() is False
        with pytest.raises(IllegalStateException, match="it stopped itself, and is still at work"):
            app.listeners[queue_name].start()
        collected.add(body)

    with app:
        app.sender.send_many(queue_name, ["first", "second"])
        assert collected.wait_for(1) == ["first"]
        assert app.listeners[queue_name].stop()
        assert app.stats()[queue_name]["succeeded"] == 1
    assert [message.body for message in take(queue_name, 1)] == ["second"]


def test_a_stop_waits_for_the_message_at_work(broker_url: str, queue_name: str, collected: Collected) -> None:
    app, begun, go = App(broker_url), threading.Event(), threading.Event()

    @app.listener(queue_name)
    def slow(body: str) -> None:
        begun.set()
        assert go.wait(60)
        collected.add(body)

    with app:
        app.sender.send(queue_name, "slow")
        assert begun.wait(60)
        with ThreadPoolExecutor(1) as other:
            stopped = other.submit(app.listeners[queue_name].stop)
            wait_until(lambda: not app.listeners[queue_name].running)
            assert not stopped.done()
            go.set()
            assert stopped.result(60)
        assert collected.items == ["slow"]


def test_a_listener_that_is_still_at_work_is_not_started_beside_itself(
    broker_url: str, queue_name: str, collected: Collected
) -> None:
    """Its message is at the broker again, and two workers would have it at the same time."""
    app, begun, go = App(broker_url, stop_timeout=0.2), threading.Event(), threading.Event()

    @app.listener(queue_name)
    def slow(body: str) -> None:
        begun.set()
        assert go.wait(60)
        collected.add(body)

    def started() -> bool:
        try:
            listener.start()
        except IllegalStateException:
            return False
        return True

    with app:
        listener = app.listeners[queue_name]
        app.sender.send(queue_name, "slow")
        assert begun.wait(60)
        assert not listener.stop()
        for _ in range(2):
            with pytest.raises(IllegalStateException, match="still at work"):
                listener.start()
        go.set()
        wait_until(started)
        wait_until(lambda: "slow" in collected.items)


def test_in_asyncio_start_and_stop_are_awaited(broker_url: str, queue_name: str) -> None:
    app = aio.App(broker_url)
    found: asyncio.Queue[str] = asyncio.Queue()

    @app.listener(queue_name, autostart=False)
    async def receive(body: str) -> None:
        await found.put(body)

    async def main() -> None:
        async with app:
            await app.sender.send(queue_name, "one")
            await app.listeners[queue_name].start()
            assert await asyncio.wait_for(found.get(), 60) == "one"
            assert await app.listeners[queue_name].stop()
            assert not app.listeners[queue_name].running

    asyncio.run(main())


@dataclass
class Confirmation:
    number: int


def test_an_answer_has_properties_a_destination_and_times_of_its_own(
    broker_url: str, queue_name: str, take: Take
) -> None:
    """Spring's ``MessageBuilder.setHeader``, ``JmsResponse`` and ``setReplyQosSettings``."""
    app = App(broker_url)

    @app.listener(queue_name, reply_to=f"{queue_name}.usual")
    def confirm(body: dict[str, int]) -> Answer:
        to = f"{queue_name}.own" if body["number"] == 2 else None
        how = {"warehouse": "EU-1"}
        mode = DeliveryMode.NON_PERSISTENT
        return Answer(
            Confirmation(body["number"]), to, properties=how, priority=6, time_to_live=600, delivery_mode=mode
        )

    with app:
        app.sender.send(queue_name, {"number": 1}, correlation_id="c")
        app.sender.send(queue_name, {"number": 2}, reply_to=f"{queue_name}.ignored")
        app.sender.send(queue_name, {"number": 3}, reply_to=f"{queue_name}.asked")
        answers = [take(f"{queue_name}.{where}", 1)[0] for where in ("usual", "own", "asked")]
    assert [message.body for message in answers] == [f'{{"number": {number}}}' for number in (1, 2, 3)]
    assert answers[0].correlation_id == "c"
    for message in answers:
        assert (message.properties["warehouse"], message.priority) == ("EU-1", 6)
        assert message.delivery_mode is DeliveryMode.NON_PERSISTENT
        assert message.expiration is not None


def test_a_listener_with_a_client_id_takes_over_a_shared_subscription_of_a_java_service(
    artemis: Broker, queue_name: str, collected: Collected
) -> None:
    """S143: with another client id, or none, the messages stay in the old subscription."""
    topic, client_id = f"{queue_name}.prices", f"desk-{queue_name}"
    with ConnectionFactory(artemis.amqp_url, client_id=client_id).create_context() as context:
        context.create_shared_durable_consumer(context.create_topic(topic), "desk").close()
        context.create_producer().send("kept", context.create_topic(topic))
    app = App(artemis.amqp_url)
    app.listener(
        topic, name="prices", topic=True, subscription="desk", shared=True, concurrency=2, client_id=client_id
    )(collected.add)
    with app:
        assert collected.wait_for(1) == ["kept"]


def test_several_unshared_durable_subscriptions_have_a_client_id_each(
    artemis: Broker, queue_name: str, collected: Collected
) -> None:
    """S141."""
    app = App(artemis.amqp_url)
    for number in (1, 2):
        topic = f"{queue_name}.t{number}"
        app.listener(topic, topic=True, subscription="s", client_id=f"{queue_name}-{number}")(collected.add)
    with app:
        for number in (1, 2):
            app.sender.send(f"{queue_name}.t{number}", str(number), topic=True)
        assert sorted(collected.wait_for(2)) == ["1", "2"]


def test_a_call_without_a_broker_returns_the_answer() -> None:
    app = App("amqp://localhost:1")

    @app.listener("orders")
    def order(message: Message) -> Answer:
        return Answer("done", Queue("elsewhere"))

    assert app.listeners["orders"].call("x") == Answer("done", Queue("elsewhere"))


FORKS = """
import os, sys, threading
from pyjmsack import App, IllegalStateException
app, got = App(sys.argv[1]), threading.Event()
app.listener(sys.argv[2])(lambda body: got.set())
listener = app.listeners[sys.argv[2]]
app.start()
assert app.health()["status"] == "UP" and "reason" not in app.health()
reading, writing = os.pipe()
if (child := os.fork()) == 0:
    health = app.health()
    assert (health["status"], health["sender"]) == ("DOWN", "closed") and "parent process" in health["reason"], health
    assert health["listeners"][sys.argv[2]]["state"] == "stopped" and not listener.running
    try:
        listener.start()
    except IllegalStateException as error:
        assert "parent process" in str(error)
    else:
        raise AssertionError
    assert app.stop() and listener.stop()
    os.read(reading, 1)  # the parent has stopped
    app.start()
    assert app.health()["status"] == "UP" and listener.running, app.health()
    app.sender.send(sys.argv[2], "of the child")
    assert got.wait(60)
    assert app.stop()
    os._exit(7)
assert app.health()["status"] == "UP" and listener.running
app.sender.send(sys.argv[2], "of the parent")
assert got.wait(60) and app.stop()
os.write(writing, b".")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_made_by_fork_knows_that_its_app_runs_in_the_parent_and_may_start_it(
    broker_url: str, queue_name: str
) -> None:
    """gunicorn --preload: ``health()`` said ``"UP"`` in each child, where no thread of the app exists, and ``start()``
    said that the app was running already."""
    call = [sys.executable, "-c", FORKS, broker_url, queue_name]
    run = subprocess.run(call, capture_output=True, text=True, timeout=100, check=False)
    assert (run.stdout.strip(), run.stderr, run.returncode) == ("7", "", 0)


NOWHERE = "amqp://127.0.0.1:1"


@pytest.fixture
def no_attempt_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each attempt to connect go on until the app stops, and a start wait for longer than this test may take."""

    def run(self: Link) -> Steps[None]:
        while not self.stopping:
            yield self.wake.wait

    monkeypatch.setattr(Link, "run", run)
    monkeypatch.setattr("pyjmsack.app.service.TRIED", 90)
    monkeypatch.setattr("pyjmsack.app.running.TRIED", 90)


@pytest.mark.usefixtures("no_attempt_ends")
@pytest.mark.parametrize("alone", [False, True], ids=["app", "listener"])
def test_a_start_ends_when_the_app_is_stopped_meanwhile(queue_name: str, collected: Collected, alone: bool) -> None:
    app = App(NOWHERE)
    app.listener(queue_name, autostart=not alone)(collected.add)
    listener = app.listeners[queue_name]
    with ThreadPoolExecutor(2) as other:
        started = other.submit(app.start)
        if alone:
            wait_until(lambda: app.health()["listeners"] != {})
            app.sender.link.tried.set()
            started.result(60)
            started = other.submit(listener.start)
        wait_until(lambda: listener.running)
        assert app.stop()
        assert started.result(60) is None
    assert app.health()["status"] == "DOWN"


@pytest.mark.usefixtures("no_attempt_ends")
def test_in_asyncio_a_start_ends_when_the_app_is_stopped_meanwhile(queue_name: str, collected: Collected) -> None:
    app = aio.App(NOWHERE)
    app.listener(queue_name)(collected.add)

    async def main() -> None:
        started = asyncio.ensure_future(app.start())
        await asyncio.sleep(0)
        assert app.listeners[queue_name].running
        assert await app.stop()
        await asyncio.wait_for(started, 60)
        assert app.health()["status"] == "DOWN"

    asyncio.run(main())

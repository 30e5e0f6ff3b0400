"""A stop of an app after an earlier call that failed, and the end of an interrupted start."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import pytest

from pyjmsack import App, IllegalStateException, aio
from pyjmsack.app.link import Link
from pyjmsack.app.tasks import Flag

NOWHERE = "amqp://127.0.0.1:1"
PATIENCE = 30


class NoThreadError(Exception):
    """Stands for the error of Python when the system has no thread left."""


@pytest.mark.parametrize("error", [NoThreadError, KeyboardInterrupt])
@pytest.mark.parametrize("started", [False, True])
def test_a_stop_that_could_not_begin_does_not_keep_the_next_one_from_it(
    error: type[BaseException], started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system refuses a thread, or Ctrl-C comes before or behind its start."""
    app = App(NOWHERE)
    app.start()
    spawn, spawned = app._face.spawn, list[Any]()

    def once(*how: Any) -> Any:
        monkeypatch.undo()
        if started:
            spawned.append(spawn(*how))
        raise error

    monkeypatch.setattr(type(app._face), "spawn", lambda _, *how: once(*how))
    with pytest.raises(error):
        app.stop()
    again = threading.Thread(target=app.stop, daemon=True)
    again.start()
    again.join(30)
    assert not again.is_alive()
    assert not app._running


def test_a_thread_that_comes_too_late_to_stop_an_app_leaves_the_next_run_alone() -> None:
    app = App(NOWHERE)
    app.start()
    late = app._end(app._may_stop, app.sender.link)
    app.stop()
    app.start()
    app._face.run(late)
    assert app._running
    app.stop()
    assert not app._running


def all_links(app: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Link], Any]:
    """Return a list that gets each link of the app, and a flag for two of them. The links never become ready, as with a
    broker that does not answer."""
    links, begun = list[Link](), app._face.event()

    def run(link: Link) -> Any:
        links.append(link)
        if len(links) == 2:
            begun.set()
        yield link.wake.wait

    monkeypatch.setattr(Link, "run", run)
    app.listener("orders")(nothing)
    return links, begun


def nothing(body: str) -> None: ...


async def enter(app: aio.App, test: bool) -> None:
    async with app.test(NOWHERE) if test else app:
        raise AssertionError("the block began")


@pytest.mark.parametrize("test", [False, True])
def test_a_start_that_is_cancelled_leaves_no_listener_behind(test: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the ``async with`` block would stop the app, but the block did not begin."""
    app = aio.App(NOWHERE)
    links, begun = all_links(app, monkeypatch)

    async def main() -> None:
        entering = asyncio.create_task(enter(app, test))
        await begun.wait()
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        assert await cast("Flag", app._ended).wait(30)
        assert len(links) == 2
        assert all(link.stopping for link in links)

    asyncio.run(main())
    assert not app._running


@pytest.mark.parametrize("test", [False, True])
@pytest.mark.parametrize("place", ["sender", "orders", "wait"])
def test_a_start_that_ctrl_c_interrupts_leaves_no_listener_behind(
    place: str, test: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C comes behind the start of a thread, or while the app waits for the first attempts."""
    app = App(NOWHERE)
    links, begun = all_links(app, monkeypatch)
    spawn, threads = app._face.spawn, list[Any]()

    def spawning(_: Any, steps: Any, name: str) -> Any:
        threads.append(spawn(steps, name))
        if name == f"pyjmsack-app-{place}":
            raise KeyboardInterrupt
        return threads[-1]

    def interrupted(*_: Any) -> None:
        begun.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(app._face), "spawn", spawning)
    if place == "wait":

        def step(call: Any, *how: Any) -> Any:
            return interrupted if call in [link.tried.wait for link in links] else partial(call, *how)

        monkeypatch.setattr("pyjmsack.app.service.partial", step)
    with pytest.raises(KeyboardInterrupt), app.test(NOWHERE) if test else app:
        raise AssertionError("the block began")
    monkeypatch.undo()
    assert app._ended.wait(30)
    assert all(thread.join(30) for thread in threads)
    assert links
    assert not app._running


def test_a_second_start_of_an_app_does_not_stop_the_app() -> None:
    app = App(NOWHERE)
    app.start()
    with pytest.raises(IllegalStateException, match="running already"), app:
        raise AssertionError("the block began")
    assert app._may_stop
    app.stop()


class Ticked:
    """An app of the blocking face with a schedule that is at work until the test lets it go."""

    def __init__(self, stop_timeout: float) -> None:
        self.app = App(NOWHERE, stop_timeout=stop_timeout)
        self.at_work, self.free = threading.Event(), threading.Event()
        self.ended: list[bool] = []
        self.app.every(60)(self.tick)
        self.runner = threading.Thread(target=lambda: self.ended.append(self.app.run()), daemon=True)
        self.runner.start()
        assert self.at_work.wait(PATIENCE)

    def tick(self) -> None:
        self.at_work.set()
        self.free.wait(PATIENCE)


@pytest.fixture
def alarm() -> Iterator[Any]:
    """Yields a function that sets the handler of SIGUSR1. The handler of before comes back at the end."""
    before = signal.getsignal(signal.SIGUSR1)

    def on(handler: Any) -> None:
        signal.signal(signal.SIGUSR1, handler)

    yield on
    signal.signal(signal.SIGUSR1, before)


def test_a_stop_that_ctrl_c_ends_ends_the_run_of_the_app(alarm: Any) -> None:
    """The run of another thread waited for ever, although the app had ended."""
    ticked, struck, over = Ticked(stop_timeout=PATIENCE), list[int](), threading.Event()

    def interrupted(number: int, _: object) -> None:
        struck.append(number)
        if len(struck) == 1:
            raise KeyboardInterrupt

    alarm(interrupted)
    main = threading.get_ident()

    def strike() -> None:
        while ticked.app._may_stop:  # the stop has begun
            pass
        while not over.wait(0.01):  # a signal just before a wait does not end the wait, but the next one does
            signal.pthread_kill(main, signal.SIGUSR1)

    striker = threading.Thread(target=strike, daemon=True)
    striker.start()
    with pytest.raises(KeyboardInterrupt):
        ticked.app.stop()
    over.set()
    striker.join(PATIENCE)
    ticked.free.set()
    ticked.runner.join(PATIENCE)
    assert ticked.ended == [True]


def test_a_run_says_that_a_function_did_not_finish_also_if_another_thread_stopped_the_app() -> None:
    ticked = Ticked(stop_timeout=0)
    assert ticked.app.stop() is False
    ticked.runner.join(PATIENCE)
    assert ticked.ended == [False]
    assert ticked.app.stop() is False
    ticked.free.set()


@pytest.mark.parametrize("place", ["sender", "orders", "every-nothing"])
def test_a_signal_handler_that_stops_an_app_while_it_starts_does_not_wait_for_the_start(
    place: str, alarm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start held a lock for which the stop waited, and the handler waited for the stop."""
    app = App(NOWHERE)
    app.listener("orders")(nothing)
    app.every(60, name="nothing")(lambda: None)
    spawn, answers, threads = app._face.spawn, list[bool](), list[Any]()
    alarm(lambda *_: answers.append(app.stop()))

    def spawning(_: Any, steps: Any, name: str) -> Any:
        if name == f"pyjmsack-app-{place}":
            signal.raise_signal(signal.SIGUSR1)
        threads.append(spawn(steps, name))
        return threads[-1]

    monkeypatch.setattr(type(app._face), "spawn", spawning)
    app.start()
    assert app._ended.wait(PATIENCE)
    assert answers == [False]
    assert len(threads) == 4
    assert all(thread.join(PATIENCE) for thread in threads)


def test_a_signal_handler_that_stops_an_app_at_the_end_of_its_launch_does_not_wait_for_it(
    alarm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler waited for what came behind it, until the stop gave up."""
    app = App(NOWHERE)
    answers, launched = list[bool](), app._face.event
    alarm(lambda *_: answers.append(app.stop()))

    def event() -> Any:
        flag = launched()

        def struck() -> None:
            if flag is app._launched and not answers:
                signal.raise_signal(signal.SIGUSR1)
            type(flag).set(flag)

        flag.set = struck  # type: ignore[method-assign]
        return flag

    monkeypatch.setattr(type(app._face), "event", lambda _: event())
    app.start()
    assert app._ended.wait(PATIENCE)
    assert answers == [False]


class Restarted(App):
    """An app that another thread starts again in the moment of its end."""

    again = False

    @property  # type: ignore[override]
    def _started_in(self) -> int | None:
        found: int | None = vars(self).get("process")
        return found

    @_started_in.setter
    def _started_in(self, process: int | None) -> None:
        vars(self)["process"] = process
        if process is None and self.again:
            self.again = False
            self.start()


def test_the_end_of_a_run_is_not_taken_for_the_end_of_the_next_one() -> None:
    """The first stop waited for ever, and the second one returned at once."""
    app = Restarted(NOWHERE)
    app.start()
    first, app.again = app._ended, True
    stopping = threading.Thread(target=app.stop, daemon=True)
    stopping.start()
    stopping.join(PATIENCE)
    assert not stopping.is_alive()
    assert app._ended is not first
    assert app._running
    app.stop()
    assert not app._running


@pytest.mark.parametrize("place", ["sender", "orders", "every-nothing"])
def test_a_stop_in_another_thread_while_an_app_starts_ends_all_that_starts(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came behind the stop went on: listeners took messages of an app that had ended."""
    app = App(NOWHERE)
    app.listener("orders")(nothing)
    app.every(60, name="nothing")(lambda: None)
    spawn, threads = app._face.spawn, list[Any]()
    stopping = threading.Thread(target=app.stop, daemon=True)

    def spawning(_: Any, steps: Any, name: str) -> Any:
        if name == f"pyjmsack-app-{place}":
            stopping.start()
            while app._may_stop:  # the stop has begun
                pass
        threads.append(spawn(steps, name))
        return threads[-1]

    monkeypatch.setattr(type(app._face), "spawn", spawning)
    app.start()
    stopping.join(PATIENCE)
    assert not app._running
    assert len(threads) == 4
    assert all(thread.join(PATIENCE) for thread in threads)


def test_a_second_run_that_is_refused_leaves_the_first_one_alone() -> None:
    """In asyncio the first run did not learn of the stop any more."""

    async def main() -> None:
        app = aio.App(NOWHERE)
        first = asyncio.create_task(app.run())
        await asyncio.sleep(0)
        with pytest.raises(IllegalStateException, match="running already"):
            await app.run()
        assert await app.stop()
        assert await asyncio.wait_for(first, PATIENCE)

    asyncio.run(main())

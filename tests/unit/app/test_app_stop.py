"""A stop of an app after an earlier call that failed, and the end of an interrupted start."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any, cast

import pytest

from pyjmsack import App, IllegalStateException, aio
from pyjmsack.app.link import Link
from pyjmsack.app.tasks import Flag

NOWHERE = "amqp://127.0.0.1:1"


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
            return interrupted if call.__name__ == "wait" else partial(call, *how)

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

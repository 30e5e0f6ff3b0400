"""Threads for work that may wait long: how many there are, in which order, and what becomes of errors."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

import pytest
from polling import eventually

from pyjmsack.io.helpers import Helpers

pytestmark = pytest.mark.usefixtures("no_leaks")


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 60))


class Gate:
    """Work that waits for the test, and notes that it has begun."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.open = threading.Event()

    def work(self, number: int) -> int:
        self.begun.append(number)
        assert self.open.wait(60)
        return number


def test_work_beyond_the_most_threads_waits_in_line() -> None:
    async def main() -> None:
        gate = Gate()
        helpers = Helpers(asyncio.get_running_loop(), "pyjmsack-test", 2)
        assert helpers.free
        results = [helpers.run(lambda number=number: gate.work(number)) for number in range(5)]  # type: ignore[misc]
        await eventually(lambda: len(gate.begun) == 2)
        assert not helpers.free
        assert [thread.name for thread in threading.enumerate()].count("pyjmsack-test") == 2
        gate.open.set()
        assert await asyncio.gather(*results) == [0, 1, 2, 3, 4]
        assert sorted(gate.begun) == [0, 1, 2, 3, 4]
        assert helpers.free

    run(main())


def test_work_that_nobody_wants_any_more_is_dropped_before_it_begins() -> None:
    async def main() -> None:
        gate = Gate()
        helpers = Helpers(asyncio.get_running_loop(), "pyjmsack-test", 1)
        first, unwanted, third = [helpers.run(lambda number=number: gate.work(number)) for number in range(3)]  # type: ignore[misc]
        unwanted.cancel()
        first.cancel()  # this one has begun, so its thread stays busy
        gate.open.set()
        assert await third == 2
        assert gate.begun == [0, 2]

    run(main())


def test_an_error_of_the_work_reaches_the_one_who_waits_and_frees_the_thread() -> None:
    async def main() -> None:
        helpers = Helpers(asyncio.get_running_loop(), "pyjmsack-test", 1)
        with pytest.raises(ZeroDivisionError):
            await helpers.run(lambda: 1 // 0)
        assert await helpers.run(lambda: 2) == 2

    run(main())


def test_what_follows_the_work_runs_on_the_loop_also_after_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        seen: list[int] = []
        done = asyncio.Event()

        def then() -> None:
            seen.append(threading.get_ident())
            done.set()

        def work() -> None:
            seen.append(threading.get_ident())
            raise OSError("the disk is full")

        Helpers(asyncio.get_running_loop(), "pyjmsack-test", 1).elsewhere(work, then)
        await done.wait()
        assert seen[1] == threading.get_ident() != seen[0]
        assert "work on a thread pyjmsack-test failed" in caplog.text
        assert "the disk is full" in caplog.text

    run(main())


def test_work_waits_while_the_system_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files would lack bytes if such work were dropped."""
    refused: list[object] = []
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if len(refused) < 3:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    async def main() -> None:
        helpers = Helpers(asyncio.get_running_loop(), "pyjmsack-test", 1)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert await asyncio.gather(helpers.run(lambda: 1), helpers.run(lambda: 2)) == [1, 2]

    run(main())
    assert len(refused) == 3


def test_work_that_raises_stop_iteration_ends_with_an_error() -> None:
    """A future of asyncio refuses this error. A listener whose file raised it in ``save_to`` waited for ever."""

    async def main() -> None:
        helpers = Helpers(asyncio.get_running_loop(), "pyjmsack-test", 1)
        with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
            await helpers.run(lambda: next(iter(())))
        assert isinstance(caught.value.__cause__, StopIteration)

    run(main())


def test_a_loop_that_was_closed_meanwhile_is_left_alone() -> None:
    gate = Gate()

    async def main() -> None:
        Helpers(asyncio.get_running_loop(), "pyjmsack-test", 1).run(lambda: gate.work(1))

    run(main())
    gate.open.set()

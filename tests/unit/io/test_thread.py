"""The thread of the loop of the blocking face: what ends it, and what becomes of its users (S127)."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pyjmsack.core.steps import Steps
from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.io.thread import LoopThread, acquire
from pyjmsack.spi.completion import Completion
from pyjmsack.sync._runtime import SyncRuntime, wait

PATIENCE = 60.0


def nothing() -> None:
    """Stand for the flush of a provider."""


@pytest.fixture
def thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopThread]:
    monkeypatch.setattr("pyjmsack.io.thread._threads", {})  # another test may have left a connection with its thread
    thread = acquire()
    yield thread
    thread.release()
    assert not thread._thread.is_alive()


def fail_with(error: BaseException) -> Any:
    def fail(*arguments: object) -> None:
        raise error

    return fail


def break_down(thread: LoopThread) -> None:
    """Let the loop end, as if the program had closed the file descriptors of the loop, and wait for the end."""
    selector = thread.loop._selector  # type: ignore[attr-defined]

    def broken(*arguments: object) -> None:
        del selector.select  # it breaks once, so that sockets can be closed
        raise OSError(errno.EBADF, "bad file descriptor")

    selector.select = broken
    thread.loop.call_soon_threadsafe(nothing)
    thread._thread.join(PATIENCE)
    assert not thread._thread.is_alive()


def answer(runtime: SyncRuntime) -> Steps[str | None]:
    """Ask the loop for something, and wait for it."""
    done: Completion[str] = Completion()
    runtime.submit(lambda completion: completion.succeed("yes"), done)
    yield done, PATIENCE
    return done.result()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_code_of_the_program_that_ends_python_does_not_end_the_loop_s127(
    thread: LoopThread, kind: type[BaseException]
) -> None:
    """Each later call on any connection of the process raised ``RuntimeError: Event loop is closed``, and no connection
    could be made."""
    runtime, other = SyncRuntime(acquire(), nothing), SyncRuntime(acquire(), nothing)
    done: Completion[None] = Completion()
    gate = threading.Event()
    runtime.submit(gate.wait, PATIENCE)
    runtime.submit(fail_with(kind("end")), done)
    later = [Completion[None]() for _ in range(3)]
    for completion in later:
        runtime.submit(Completion.succeed, completion)
    thread.loop.call_soon_threadsafe(fail_with(kind("a callback")))
    gate.set()
    assert wait(done, PATIENCE)
    with pytest.raises(JMSException, match=f"{kind.__name__}: end"):
        done.result()
    assert all(wait(completion, PATIENCE) for completion in later)
    assert other.run(answer(other)) == runtime.run(answer(runtime)) == "yes"
    runtime.close()
    other.close()


def test_a_loop_that_ends_by_itself_is_followed_by_another_one(thread: LoopThread) -> None:
    runtime = SyncRuntime(acquire(), nothing)
    told: list[ConnectionLostException] = []
    runtime.tell_lost = told.append
    break_down(thread)
    assert len(told) == 1
    assert isinstance(told[0].__cause__, OSError)
    another = acquire()
    assert another is not thread
    fresh = SyncRuntime(another, nothing)
    assert fresh.run(answer(fresh)) == "yes"
    fresh.close()
    with pytest.raises(ConnectionLostException, match="new connection"):
        SyncRuntime(thread, nothing)
    runtime.close()


def test_each_call_on_a_loop_that_has_ended_is_an_error_and_none_waits(thread: LoopThread) -> None:
    runtime = SyncRuntime(acquire(), nothing)
    break_down(thread)
    for _ in range(2):
        with pytest.raises(ConnectionLostException, match="the I/O thread has ended"):
            runtime.run(answer(runtime))
    for _ in range(300):
        runtime.submit_lazily(nothing)
    runtime.flush_out(None)
    runtime.close()


def test_a_caller_that_tells_a_loop_in_its_last_moment_does_not_wait(thread: LoopThread) -> None:
    """The loss came between the look at the loop and the call of the loop."""
    runtime = SyncRuntime(acquire(), nothing)
    usable = runtime._usable

    def look() -> bool:
        result = usable()
        if runtime._lost is None:
            break_down(thread)
        return result

    runtime._usable = look  # type: ignore[method-assign]  # the place where the loss comes
    with pytest.raises(ConnectionLostException):
        runtime.run(answer(runtime))
    runtime.close()


def test_the_number_of_the_ended_thread_may_belong_to_a_caller(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``IllegalStateException: a blocking call is not allowed on the I/O thread`` came on a thread of the program."""
    runtime = SyncRuntime(acquire(), nothing)
    break_down(thread)
    monkeypatch.setattr(thread._thread, "_ident", threading.get_ident())
    assert not thread.runs_here()
    with pytest.raises(ConnectionLostException):
        runtime.run(answer(runtime))
    runtime.close()


def test_an_error_of_a_callback_is_logged_by_the_library(thread: LoopThread, caplog: pytest.LogCaptureFixture) -> None:
    """The logger of asyncio raises the errors of the program's logging, and they ended the loop."""
    runtime = SyncRuntime(acquire(), nothing)
    thread.loop.call_soon_threadsafe(fail_with(ValueError("mistake")))
    runtime.run(answer(runtime))
    assert [record.name for record in caplog.records] == ["pyjmsack.io"]
    runtime.close()


def test_a_user_that_is_gone_is_not_kept_for_the_loss(thread: LoopThread) -> None:
    kept: list[object] = []

    class User:
        def tell(self, error: ConnectionLostException) -> None:
            kept.append(error)

    user, another = User(), User()
    for each in (user, another):
        thread.when_lost(each.tell)
    del another, each
    break_down(thread)
    assert len(kept) == 1

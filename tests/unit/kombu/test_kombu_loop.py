"""The thread with the loop of one Celery connection, without any broker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")
from interrupting import Interrupt

from pyjmsack import RequestTimedOutException, UnsupportedFeatureException
from pyjmsack.kombu.loop import LoopThread

PATIENCE = 20


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    """A running loop."""
    thread = LoopThread()
    yield thread
    thread.stop()


def test_a_loop_for_whose_thread_the_system_has_no_room_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file descriptors stayed open until the next garbage collection."""
    loops: list[asyncio.AbstractEventLoop] = []
    make = asyncio.new_event_loop

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def remember() -> asyncio.AbstractEventLoop:
        loops.append(make())
        return loops[-1]

    monkeypatch.setattr(asyncio, "new_event_loop", remember)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        LoopThread()
    assert [loop.is_closed() for loop in loops] == [True]


def test_a_call_that_takes_too_long_is_cancelled_with_a_timeout_error(loop: LoopThread) -> None:
    """The built-in error on each Python; that of a future is another class on 3.10."""
    ended = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    with pytest.raises(TimeoutError, match=r"took more than 0\.01 s"):
        loop.call(endless(), 0.01)
    loop.call(asyncio.wait_for(ended.wait(), 10))


def test_a_call_raises_the_time_out_of_the_broker_so_that_kombu_tries_again(loop: LoopThread) -> None:
    """From Python 3.11 it was taken for the limit of the call. A Celery worker ended when the broker stood still."""

    async def unanswered() -> None:
        raise RequestTimedOutException("no answer within jms.requestTimeout (1 s)")

    with pytest.raises(RequestTimedOutException, match="no answer within"):
        loop.call(unanswered())


@pytest.mark.parametrize("part", ["thread", "socket"])
def test_a_process_whose_threads_eventlet_has_replaced_gets_an_error(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the worker says that it is ready, and runs no task."""
    monkeypatch.setitem(sys.modules, "eventlet.patcher", SimpleNamespace(is_monkey_patched=lambda name: name == part))
    with pytest.raises(UnsupportedFeatureException, match="-P gevent or -P threads"):
        LoopThread()


GREENLETS = """
from gevent import monkey
monkey.patch_all()
import asyncio, threading, time
import gevent
from pyjmsack import ConnectionLostException
from pyjmsack.io.names import Names
from pyjmsack.kombu.loop import LoopThread

ticks = 0
def tick():
    global ticks
    while True:
        ticks += 1
        gevent.sleep(0.001)
gevent.spawn(tick)
main = threading.get_ident()

async def work(number):
    await asyncio.sleep(0.05)
    return number

async def bad():
    raise KeyError("x")

loop = LoopThread()
before = ticks
greenlets = [gevent.spawn(loop.call, work(number)) for number in range(20)]
gevent.joinall(greenlets)
assert [one.value for one in greenlets] == [*range(20)]
assert ticks > before, "other greenlets run while one waits"
try:
    loop.call(bad())
except KeyError:
    print("the error came")
try:
    loop.call(asyncio.sleep(3600), 0.01)
except TimeoutError as error:
    print(error)

async def resolved():
    return await Names(asyncio.get_running_loop()).look_up("localhost", 1)
assert loop.call(resolved())

def forever():
    try:
        loop.call(asyncio.sleep(3600))
    except ConnectionLostException as error:
        print(error)
waiting = gevent.spawn(forever)
gevent.sleep(0.01)
killed = gevent.spawn(loop.call, asyncio.sleep(3600))
gevent.sleep(0.01)
killed.kill()
loop.stop()
waiting.join()
try:
    loop.call(work(1))
except ConnectionLostException as error:
    print(error)
left = LoopThread()  # not stopped: the process ends all the same
left.call(resolved())
"""


def test_greenlets_of_gevent_wait_for_the_loop_and_let_others_run() -> None:
    """In a process of its own, because gevent replaces threads and sockets for good."""
    pytest.importorskip("gevent", reason="gevent is not installed")
    done = subprocess.run([sys.executable, "-c", GREENLETS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "the error came",
        "the call to the broker took more than 0.01 s",
        "the connection to the broker was closed during the call",
        "the connection to the broker is closed",
    ]


def test_the_loop_serves_other_callers_after_an_interrupt_at_any_step_of_a_call(loop: LoopThread) -> None:
    """The interrupted caller left a condition locked, and the loop of the connection waited for it for ever."""

    async def one() -> int:
        await asyncio.sleep(0)
        return 1

    step, left = 0, 0
    while left <= 0:
        step += 1
        interrupt, cut = Interrupt(step), one()
        interrupt.run(lambda cut=cut: loop.call(cut))  # type: ignore[misc]
        left = interrupt.left
        assert loop.call(one(), PATIENCE) == 1, f"after an interrupt at step {step}"
        cut.close()  # the first steps have not begun it
    assert step > 5


def test_the_loop_runs_posted_calls_after_an_interrupt_at_any_step_of_a_post(loop: LoopThread) -> None:
    """Later calls did not wake the loop, because the interrupted one was about to."""
    step, left = 0, 0
    while left <= 0:
        step += 1
        interrupt = Interrupt(step)
        interrupt.run(lambda: loop.post(int))
        left = interrupt.left
        ran = threading.Event()
        loop.post(ran.set)
        assert ran.wait(PATIENCE), f"after an interrupt at step {step}"
    assert step > 5

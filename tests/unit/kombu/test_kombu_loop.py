"""The thread with the loop of one Celery connection, without any broker."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

pytest.importorskip("kombu", reason="the extra celery is not installed")
from pyjmsack import UnsupportedFeatureException
from pyjmsack.kombu.loop import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    """A running loop."""
    thread = LoopThread()
    yield thread
    thread.stop()


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


def test_a_process_whose_threads_gevent_has_replaced_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the worker says that it is ready, and runs no task."""
    monkeypatch.setitem(sys.modules, "gevent.monkey", SimpleNamespace(is_module_patched=lambda name: True))
    with pytest.raises(UnsupportedFeatureException, match="-P threads"):
        LoopThread()

"""Ctrl-C at one step of a call, also at a step inside of the standard library."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from types import FrameType

__all__ = ["Interrupt"]

PATIENCE = 60


class Interrupt:
    """Raises at one event of the trace: a call, a line or a return."""

    def __init__(self, event: int) -> None:
        self.left = event
        """How many events are left. More than 0 after :meth:`run` means that the call has fewer events."""

    def __call__(self, frame: FrameType, event: str, _: object) -> Interrupt:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self

    def run(self, call: Callable[[], object]) -> None:
        """Make the call on a thread of its own, because an error of a trace in an ``except`` block stays the current
        error of its thread."""

        def traced() -> None:
            sys.settrace(self)
            try:
                call()
            except (KeyboardInterrupt, futures.TimeoutError, RuntimeError):
                pass  # a condition of the standard library makes a RuntimeError of some interrupts
            finally:
                sys.settrace(None)  # not at the end of the thread, which takes a lock of ``threading``

        thread = threading.Thread(target=traced, daemon=True)
        gc.disable()  # no signal handler runs in a finalizer of another test's objects; the trace would
        try:
            thread.start()
            thread.join(PATIENCE)
        finally:
            gc.enable()
        assert not thread.is_alive()

"""Ctrl-C at one step of a call, also at a step inside of the standard library."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from concurrent import futures
from dis import opmap
from types import FrameType

__all__ = ["Interrupt", "Strike"]

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


class Strike:
    """Raises at one step of some files at which a signal handler may run: at the first step of a function, or after a
    call of C code."""

    def __init__(self, step: int, error: type[BaseException], *files: str) -> None:
        self.left = step
        self.error = error
        self.files = files

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and _resumed_in_peace(frame):
            return
        if event in ("call", "c_return") and frame.f_code.co_filename in self.files:
            self.left -= 1
            if self.left == 0:
                raise self.error

    def hits(self, call: Callable[[], object]) -> bool:
        """Make the call. Return whether it has so many steps. No error but that of this object is hidden."""
        sys.setprofile(self)
        try:
            call()
        except self.error:
            pass
        finally:
            sys.setprofile(None)
        return self.left <= 0


def _resumed_in_peace(frame: FrameType) -> bool:
    """Whether a generator is resumed at which no handler runs: any generator of Python 3.10, and later one that is
    resumed by ``throw`` or at a ``yield from``. An error of a profiler would skip its ``finally``."""
    if sys.version_info < (3, 11):
        return frame.f_lasti >= 0
    instruction, argument = frame.f_code.co_code[frame.f_lasti :][:2]
    return instruction != opmap["RESUME"] or argument & 3 >= 2

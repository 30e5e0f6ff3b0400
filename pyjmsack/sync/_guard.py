"""Whose turn a session is (S15)."""

from __future__ import annotations

import sys
import threading
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from types import FrameType
from typing import Any

from pyjmsack.errors import IllegalStateException

__all__ = ["SessionGuard"]

_LOOK = 0.05
"""Seconds between two looks of a thread that waits for a session: does the thread that has it still run?"""
_replacing = threading.Lock()


class SessionGuard:
    """A session belongs to one thread at a time (S15): a second one gets an error instead of a mixed-up session.

    With a message listener there are two threads by design, the dispatcher and the caller's own: they take turns, call
    by call. The thread that has the session may enter again in a nested call.

    Ctrl-C may end a call between any two steps, also after the session was taken and before the ``try`` that gives it
    back. So the session belongs to the *frame* of the call: once that frame is over, the session is free. Only a thread
    that finds the session taken looks at the frame, so a free session costs nothing more.
    """

    __slots__ = ("_gates", "_has_listener", "_held")

    def __init__(self, has_listener: Callable[[], bool]) -> None:
        self._held: dict[None, tuple[int, FrameType]] = {}
        """Thread and frame that have the session, as the only entry; empty if nobody has it. ``setdefault`` takes the
        session, and returns who has it."""
        self._gates: deque[Any] = deque()
        """Locks of those who wait."""
        self._has_listener = has_listener

    def acquire(self) -> None:
        """Take the session for one call, until the calling function gives it back or is over.

        Raises:
            IllegalStateException: another thread is inside a call, and there is no listener to explain it.
        """
        mine = (get_ident(), sys._getframe(1))
        held = self._held.setdefault(None, mine)
        if held is not mine:
            self._enter(held, mine)

    __enter__ = acquire

    def _enter(self, held: tuple[int, FrameType], mine: tuple[int, FrameType]) -> None:
        if self._replace(held, mine) or held[0] == mine[0]:  # else it is free, or I am called by its holder
            return
        if not self._has_listener():
            raise IllegalStateException(
                "this session is in use by another thread right now; a session and what it made belong to one thread "
                "at a time, so give each thread a session of its own (S15)"
            )
        self._await_turn(mine)

    def wait(self) -> None:
        """Take the session as its dispatcher, which may have to wait for a call to end."""
        mine = (get_ident(), sys._getframe(1))
        held = self._held.setdefault(None, mine)
        if held is not mine and held[0] != mine[0]:
            self._await_turn(mine)

    def _await_turn(self, mine: tuple[int, FrameType]) -> None:
        gate = allocate_lock()
        gate.acquire()
        while True:
            self._gates.append(gate)  # before we look: the holder leaves before it looks for gates
            held = self._held.setdefault(None, mine)
            if held is mine or self._replace(held, mine):
                return
            if not gate.acquire(True, _LOOK):
                with suppress(ValueError):  # the holder opens it at this moment
                    self._gates.remove(gate)

    def _replace(self, held: tuple[int, FrameType], mine: tuple[int, FrameType]) -> bool:
        """Take the session from a holder whose frame is over."""
        if not _is_over(held[1]):
            return False
        with _replacing:
            if self._held.get(None) is held:
                self._held[None] = mine
        return self._held.get(None) is mine or self._held.setdefault(None, mine) is mine

    def release(self) -> None:
        """Give the session back, if it was the calling function that took it."""
        self._leave(sys._getframe(1))

    def __exit__(self, *exc: object) -> None:
        self._leave(sys._getframe(1))

    def _leave(self, frame: FrameType) -> None:
        held = self._held.get(None)
        if held is not None and held[1] is frame:
            self._held.pop(None, None)
            while self._gates:
                with suppress(IndexError, RuntimeError):  # another one opens it, or its owner has gone on
                    self._gates.popleft().release()


def _is_over(frame: FrameType) -> bool:
    """Whether a function has ended: only then may its frame be cleared."""
    try:
        frame.clear()
    except RuntimeError:
        return False
    return True

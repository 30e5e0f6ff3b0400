"""Decides which thread has a session (S15)."""

from __future__ import annotations

import sys
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from types import FrameType
from typing import Any

from pyjmsack.errors import IllegalStateException
from pyjmsack.io.forks import shared_lock

__all__ = ["SessionGuard"]

_LOOK = 0.05
"""Seconds between two checks by a thread that waits for a session. A check finds out whether the call that has the
session has ended."""
_replacing = shared_lock()


class SessionGuard:
    """A session belongs to one thread at a time (S15). A second thread gets an error instead of a mixed-up session.

    A session with a message listener has two threads by design: the dispatcher and the thread of the caller. They take
    turns, call by call. The thread that has the session may enter again in a nested call.

    Ctrl-C may end a call between any two steps, also after the session was taken and before the ``try`` that gives it
    back. So the session belongs to the *frame* of the call (Python's object for a running function): when the function
    has ended, the session is free. Only a thread that finds the session taken looks at the frame, so a free session
    costs nothing more.
    """

    __slots__ = ("_gates", "_has_listener", "_held")

    def __init__(self, has_listener: Callable[[], bool]) -> None:
        self._held: dict[None, tuple[int, FrameType]] = {}
        """The thread and the frame that have the session, as the only entry. The dict is empty if nobody has the
        session. ``setdefault`` takes the session, and returns the entry of its holder."""
        self._gates: deque[Any] = deque()
        """The locks of the waiting threads."""
        self._has_listener = has_listener

    def acquire(self) -> None:
        """Take the session for one call, until the calling function gives the session back or has ended.

        Raises:
            IllegalStateException: another thread is inside a call, and the session has no listener. With a listener,
                the threads take turns instead.
        """
        mine = (get_ident(), sys._getframe(1))
        held = self._held.setdefault(None, mine)
        if held is not mine:
            self._enter(held, mine)

    __enter__ = acquire

    def _enter(self, held: tuple[int, FrameType], mine: tuple[int, FrameType]) -> None:
        if self._replace(held, mine) or held[0] == mine[0]:  # the session was free, or its holder calls again
            return
        if not self._has_listener():
            raise IllegalStateException(
                "this session is in use by another thread right now; a session, its producers and its consumers belong "
                "to one thread at a time, so give each thread a session of its own (S15)"
            )
        self._await_turn(mine)

    def wait(self) -> None:
        """Take the session for its dispatcher. If another thread is inside a call, wait for the end of this call."""
        mine = (get_ident(), sys._getframe(1))
        held = self._held.setdefault(None, mine)
        if held is not mine and held[0] != mine[0]:
            self._await_turn(mine)

    def _await_turn(self, mine: tuple[int, FrameType]) -> None:
        gate = allocate_lock()
        gate.acquire()
        while True:
            self._gates.append(gate)  # before the look, because the holder first leaves and then looks for gates
            held = self._held.setdefault(None, mine)
            if held is mine or self._replace(held, mine):
                return
            if not gate.acquire(True, _LOOK):
                with suppress(ValueError):  # the holder is opening the gate at this moment
                    self._gates.remove(gate)

    def _replace(self, held: tuple[int, FrameType], mine: tuple[int, FrameType]) -> bool:
        """Take the session if the call of its holder is over. Return whether this thread has the session now."""
        if not _is_over(held[1]):
            return False
        with _replacing:
            if self._held.get(None) is held:
                self._held[None] = mine
        return self._held.get(None) is mine or self._held.setdefault(None, mine) is mine

    def release(self) -> None:
        """Give the session back, if the calling function took it."""
        self._leave(sys._getframe(1))

    def __exit__(self, *exc: object) -> None:
        self._leave(sys._getframe(1))

    def _leave(self, frame: FrameType) -> None:
        held = self._held.get(None)
        if held is not None and held[1] is frame:
            self._held.pop(None, None)
            while self._gates:
                with suppress(IndexError, RuntimeError):  # another thread opens the gate, or its owner has gone on
                    self._gates.popleft().release()


def _is_over(frame: FrameType) -> bool:
    """Return whether a function has ended. To find out, this function clears the frame: Python raises an error if the
    frame belongs to a running function.
    """
    try:
        frame.clear()
    except RuntimeError:
        return False
    return True

"""Serves one session in the blocking face: one call at a time, and a thread that feeds listeners."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from pyjmsack.core.facade import refuse_pickle
from pyjmsack.core.listening import BATCH, Call, Listening
from pyjmsack.core.session import Session
from pyjmsack.core.tracing import Processed
from pyjmsack.message import Message
from pyjmsack.sync._guard import SessionGuard
from pyjmsack.types import Outcome

if TYPE_CHECKING:
    from pyjmsack.sync._runtime import SyncRuntime

__all__ = ["SessionFace"]


class Acknowledger:
    """Carries out ``message.acknowledge()`` and the outcomes of one message in this face."""

    allows_outcome = True
    __reduce__ = refuse_pickle

    def __init__(self, core: Session, guard: SessionGuard) -> None:
        self._core = core
        self._guard = guard

    def acknowledge(self, message: Message) -> None:
        """Acknowledge the message by the rules of the session's acknowledge mode."""
        with self._guard:
            self._core.acknowledge_message(message)

    def settle(self, message: Message, outcome: Outcome) -> None:
        """Give one message its outcome."""
        with self._guard:
            self._core.settle_message(message, outcome)


class SessionFace:
    """Lets the users of a session act one after the other, and calls the listeners of the session.

    Args:
        runtime: how this face waits.
        core: the session.
    """

    def __init__(self, runtime: SyncRuntime, core: Session) -> None:
        self.run = runtime.run
        self.hurry = runtime.hurry
        self._core = core
        self.guard = SessionGuard(lambda: bool(core.state.listeners))
        self.acknowledger = Acknowledger(core, self.guard)

    def dispatch_completion(self, call: Callable[[], object]) -> None:
        """Run a call on the session's completion thread."""
        self._core.completions.dispatcher.submit(call)

    def feed(self, listening: Listening) -> None:
        """Give messages to the listener of a consumer. Runs on the dispatcher's thread.

        While the listener runs, other threads may use the session. Afterwards, this thread takes the session, settles
        the message, and takes the next one.
        """
        guard = self.guard
        try:
            guard.wait()
            try:
                for _ in range(BATCH):
                    call = listening.begin()
                    if call is None:
                        listening.unscheduled()  # before the session is free, so that no worker finishes in between
                        return
                    if call.worker is not None:
                        call.worker.submit(partial(self._work, listening, call))
                        continue
                    guard.release()
                    processing, error = self._call(listening, call)
                    guard.wait()
                    self._end(listening, call, processing, error)
            finally:
                guard.release()
        except BaseException:
            listening.broke_off()
            raise
        listening.dispatch()

    def _work(self, listening: Listening, call: Call) -> None:
        """Run a listener on the thread of a worker."""
        processing, error = self._call(listening, call)
        self.guard.wait()
        try:
            self._end(listening, call, processing, error)
        finally:
            self.guard.release()

    def _call(self, listening: Listening, call: Call) -> tuple[Processed | None, BaseException | None]:
        """Run a listener. Return its span and its error."""
        processing: Processed | None = None
        error: BaseException | None = None
        try:
            processing = listening.process(call.message)
            call.listener(call.message)
        except BaseException as raised:  # a listener's SystemExit must not end the dispatcher
            error = raised
        if processing is not None:
            processing.end(error)
        return processing, error

    def _end(self, listening: Listening, call: Call, processing: Processed | None, error: BaseException | None) -> None:
        """Settle the message of a listener that has ended. The calling thread has taken the session."""
        try:
            if listening.end(call.message, error):
                self.run(self._core.undo())
        finally:
            try:
                listening.leave(call)
            finally:
                if processing is not None:
                    processing.leave()

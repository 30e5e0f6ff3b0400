"""Serves one session in the asyncio face: its users act one after the other, and a task feeds its listeners."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from time import monotonic

from pyjmsack.aio._ending import destroyed
from pyjmsack.aio._runtime import DONE, AioRuntime, Done, SessionLock, ends_task, is_cancelled
from pyjmsack.core.facade import refuse_pickle
from pyjmsack.core.listening import BATCH, Call, Listening
from pyjmsack.core.session import Session
from pyjmsack.core.steps import TURN
from pyjmsack.core.tracing import Processed
from pyjmsack.message import Message
from pyjmsack.types import Outcome

__all__ = ["SessionFace"]


class Acknowledger:
    """Carries out ``message.acknowledge()`` and the outcomes of one message in this face. Each call acts at once, and
    its result may be awaited.
    """

    allows_outcome = True
    __reduce__ = refuse_pickle

    def __init__(self, core: Session) -> None:
        self._core = core

    def acknowledge(self, message: Message) -> Done:
        """Acknowledge the message by the rules of the session's acknowledge mode."""
        self._core.acknowledge_message(message)
        return DONE

    def settle(self, message: Message, outcome: Outcome) -> Done:
        """Give one message its outcome."""
        self._core.settle_message(message, outcome)
        return DONE


class SessionFace:
    """Lets the users of a session act one after the other, and calls the listeners of the session.

    Args:
        runtime: how this face waits.
        core: the session.
    """

    def __init__(self, runtime: AioRuntime, core: Session) -> None:
        self.run = runtime.run
        self.work = runtime.work
        self.loop = runtime.loop
        self._core = core
        self.lock = SessionLock()
        self.acknowledger = Acknowledger(core)

    async def feed(self, listening: Listening) -> None:
        """Give messages to the listener of a consumer. Runs in the dispatcher's task."""
        try:
            until = monotonic() + TURN
            step = partial(self._step, listening)
            for _ in range(BATCH):
                if not await self.lock.in_turn(step):
                    return
                if monotonic() >= until or is_cancelled():  # then the dispatcher continues in a new task
                    break
            await asyncio.sleep(0)  # let other tasks have the loop
        except BaseException as error:
            if not destroyed(error, self.loop):
                listening.broke_off()
            raise
        listening.dispatch()

    async def _step(self, listening: Listening) -> bool:
        """Give one message to the listener. Return False if there are no more."""
        call = listening.begin()
        if call is not None and call.worker is not None:
            call.worker.submit(partial(self._call, listening, call))
            return True
        if call is not None:
            await self._call(listening, call)
            if not listening.out_of_messages:  # look now, so that a message that came alone takes the lock once
                return True
        listening.unscheduled()
        return False

    async def _call(self, listening: Listening, call: Call) -> None:
        error: BaseException | None = None
        processing: Processed | None = None
        try:
            processing = listening.process(call.message)
            result = call.listener(call.message)
            if inspect.isawaitable(result):
                await result
        # a CancelledError of something that the listener awaited is a failure like any other
        except BaseException as raised:
            if destroyed(raised, self.loop):  # the broker delivers the message again
                raise
            error = raised
        try:
            if processing is not None:
                processing.end(error)
        finally:  # Ctrl-C may come in the code that ends the span, and must not keep the message from its outcome
            await self._end(listening, call, processing, error)
        if ends_task(error):
            raise error

    async def _end(
        self, listening: Listening, call: Call, processing: Processed | None, error: BaseException | None
    ) -> None:
        """Settle the message of a listener that has ended."""
        try:
            if listening.end(call.message, error):
                await self.run(self._core.undo())
        finally:
            listening.leave(call)
            if processing is not None:
                processing.leave()

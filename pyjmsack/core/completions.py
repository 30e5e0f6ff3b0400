"""Completion listeners. They are called in the order of the sends of a session, one at a time, never on the loop (S73,
S74).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from pyjmsack.core.runtime import Dispatcher, all_called
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.errors import JMSException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion

__all__ = ["CompletionListener", "Completions"]

Done = Callable[["BaseException | None"], None]


class CompletionListener(Protocol):
    """An object of the caller that gets the outcome of one send. Only one of its methods is called, once (JMS 2.0
    7.3). The method may use the session only while no other thread is inside a call of the session (S15).
    """

    def on_completion(self, message: Message) -> Any:
        """Called when the broker has the message.

        Args:
            message: the message that was sent. It may be changed again.
        """
        ...

    def on_exception(self, message: Message, error: JMSException) -> Any:
        """Called when the broker did not take the message, or when nobody knows whether it did.

        Args:
            message: the message that was sent. It may be changed again.
            error: the reason.
        """
        ...


class _Pending:
    """One send that has a completion listener. :meth:`answered` is called when the broker has answered the send."""

    __slots__ = ("_owner", "_then", "error", "listener", "message", "over")

    def __init__(self, owner: Completions, listener: CompletionListener, then: Done | None) -> None:
        self._owner = owner
        self._then = then
        self.listener = listener
        self.message: Message | None = None
        self.over = False
        self.error: BaseException | None = None

    def answered(self, error: BaseException | None) -> None:
        """Take the broker's answer, on the loop."""
        if not self.over:
            self.over = True
            self.error = error
            self._owner.advance()
            if self._then is not None:
                self._then(error)


class Completions:
    """The sends of one session whose completion listeners were not called yet.

    The session's thread adds sends. Only the loop marks sends as answered and takes them out. If two threads took sends
    out, one of them could take out a send that has no answer yet, and tell its listener that the broker has the
    message.

    Args:
        dispatcher: calls the listeners.
        submit: runs a command on the loop.
    """

    def __init__(self, dispatcher: Dispatcher, submit: Callable[..., None]) -> None:
        self.dispatcher = dispatcher
        self._submit = submit
        self._pending: deque[_Pending] = deque()
        self._empty: Completion[None] | None = None

    def entry(self, listener: CompletionListener, then: Done | None = None) -> _Pending:
        """Return a new entry, for a send that has this listener. The code that gets the broker's answer must call
        ``entry.answered(error)``, which also calls ``then(error)``.
        """
        return _Pending(self, listener, then)

    def add(self, pending: _Pending, message: Message) -> None:
        """Remember a message that the session is about to send. The message is read-only until its listener is called
        (S73).
        """
        self._pending.append(pending)
        pending.message = message
        message._locked = True

    def advance(self) -> None:
        """Call the listeners of answered sends, in the order of the sends. Stop at the first send without an answer
        (S74). Runs on the loop.
        """
        while self._pending and self._pending[0].over:
            self.dispatcher.submit(partial(self._report, self._pending.popleft()))
        if not self._pending and self._empty is not None:
            self._empty.succeed()

    @staticmethod
    def _report(pending: _Pending) -> Any:
        message, error = pending.message, pending.error
        assert message is not None  # set by add
        message._locked = False
        if error is None:
            return pending.listener.on_completion(message)
        if not isinstance(error, JMSException):
            wrapped = JMSException(str(error))
            wrapped.__cause__ = error
            error = wrapped
        return pending.listener.on_exception(message, error.fresh())

    def _give_up(self, done: Completion[None]) -> None:
        """Fail the sends without an answer. Runs on the loop."""
        for pending in list(self._pending):
            pending.answered(JMSException("the session was closed before the broker confirmed this send"))
        done.succeed()

    def finish(self, deadline: Deadline) -> Steps[None]:
        """Wait until all sends are answered and all listeners were called. A send that has no answer at the deadline
        fails (S74).
        """
        if self._pending:
            empty: Completion[None] = Completion()
            self._empty = empty
            if self._pending and not (yield empty, deadline.remaining()):
                given_up: Completion[None] = Completion()
                self._submit(self._give_up, given_up)
                yield given_up, None
        yield from all_called(self.dispatcher, deadline)

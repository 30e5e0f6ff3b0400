"""Lets a caller wait for a message of one consumer (S22, S50, S176)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import time_ns
from typing import Any, Final, Protocol, TypeVar

from pyjmsack.core.inbox import Inbox
from pyjmsack.core.state import SessionState
from pyjmsack.core.stats import Counts
from pyjmsack.core.steps import Deadline, Steps, turn
from pyjmsack.core.taking import Taking
from pyjmsack.errors import RequestTimedOutException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConsumerInfo

__all__ = ["Receiving"]

T = TypeVar("T")
_NO_LIMIT: Final = Deadline(None)
_PATIENCE: Final = 60.0
"""Seconds for which ``receive`` goes on after its timeout, if the broker sends only messages that are refused, or if
the file of the duplicate guard does not answer. There is a limit, because a sender may send such messages without
end."""
_LOOK: Final = 1.0
"""Seconds that the file of the duplicate guard has at least for its answer, also if the time is over."""


class Source(Protocol):
    """The state of a consumer, as far as a waiting caller needs it."""

    @property
    def closed(self) -> bool:
        """True if the caller cannot use the consumer any more."""
        ...

    @property
    def over(self) -> bool:
        """True if a caller that waits for a message will get neither a message nor an error."""
        ...

    @property
    def wants_more(self) -> bool:
        """Whether the broker may send more messages to this consumer."""
        ...

    @property
    def error(self) -> BaseException | None:
        """The reason why the broker closed this consumer, or why the connection is lost. ``None`` if neither
        happened."""
        ...

    def check_alive(self) -> None:
        """Raise ``error``, if ``error`` is not ``None``."""
        ...


class Receiving:
    """Lets a caller wait for a message.

    Args:
        session: the facts about the session that its members may read.
        info: the destination and the settings of the consumer.
        source: the state of the consumer.
        inbox: has the messages that nobody has yet.
        taking: takes the next message from the inbox.
        counts: the counters of the consumer.
    """

    __slots__ = ("_channel", "_counts", "_inbox", "_info", "_session", "_source", "_taking", "receive_now")

    def __init__(
        self, session: SessionState, info: ConsumerInfo, source: Source, inbox: Inbox, taking: Taking, counts: Counts
    ) -> None:
        self._session = session
        self._channel = session.channel
        self._info = info
        self._source = source
        self._inbox = inbox
        self._taking = taking
        self._counts = counts
        self.receive_now = taking.receive_now
        """Takes a message that is in the inbox already, without waiting."""

    def receive(self, timeout: float | None, body_type: type[Any] | None = None) -> Steps[Message | None]:
        """Take a message within ``timeout`` seconds, or return ``None``. Before ``None`` is returned, the broker is
        asked for messages (S22, S50), unless the consumer is closed, the connection is stopped, or an option such as
        ``jms.receiveLocalOnly`` forbids the question.
        """
        trace = self._taking.trace
        if trace is None:
            return self._receive(timeout, body_type, None)
        return trace.receiving(self._receive(timeout, body_type, time_ns()))

    def _receive(self, timeout: float | None, body_type: type[Any] | None, since: int | None) -> Steps[Message | None]:
        deadline = Deadline(timeout)
        patience = Deadline(None if timeout is None else timeout + _PATIENCE)
        options, prefetch = self._channel.options, self._info.prefetch
        local_only = options.receive_no_wait_local_only if timeout == 0 else options.receive_local_only
        while True:
            message = yield from self._receive_answered(body_type, since, patience)
            if message is not None or self._source.over:
                return message
            self._source.check_alive()
            cut = self._taking.cut
            if cut:
                yield from turn()
            if deadline.expired:
                if cut and not patience.expired:
                    continue
                break
            if prefetch == 0 and self._session.started and not self._inbox.messages:
                self._channel.submit(self._channel.provider.pull, self._info.id)
            yield from self._wait_for_arrival(deadline)
        if not self._session.started or (local_only and prefetch > 0):
            return None
        while True:  # if a message came and was refused, more messages may be behind it
            gone = self._counts.gone
            message = yield from self._receive_drained(body_type, since, patience)
            if message is not None or (self._counts.gone == gone and not self._taking.cut):
                return message
            if patience.expired:
                break
        if timeout == 0:  # an error, because None would say that the queue is empty
            raise RequestTimedOutException(
                f"receiving from {self._info.destination.name}: all messages that came were refused, for"
                f" {_PATIENCE:g} s; the log names the reasons"
            )
        return None

    def _receive_drained(
        self, body_type: type[Any] | None, since: int | None, patience: Deadline
    ) -> Steps[Message | None]:
        """Let the broker send the messages that it has, then look into the inbox again. Only ``amqp.drainTimeout``
        limits the wait.
        """
        done: Completion[None] = Completion()
        self._channel.submit(self._channel.provider.drain, self._info.id, done)
        try:
            yield done, None
        finally:  # also if the caller gives up, because the drain used the credit up
            # not if another task rolls back, because the rollback asks for credit, after the older messages (S83)
            if self._info.prefetch > 0 and self._source.wants_more and not self._session.transactions.ending:
                self._channel.submit(self._channel.provider.start_consumer, self._info.id)
        message = yield from self._receive_answered(body_type, since, patience)
        if message is None and not self._source.closed:
            self._source.check_alive()
            done.result()
        return message

    def _receive_answered(
        self, body_type: type[Any] | None, since: int | None, patience: Deadline
    ) -> Steps[Message | None]:
        message = self.receive_now(body_type, since)
        if message is None and self._inbox.untold:
            return (yield from self.answered(partial(self.receive_now, body_type, since), patience))
        return message

    def answered(self, take: Callable[[], Message | None], patience: Deadline = _NO_LIMIT) -> Steps[Message | None]:
        """Take a message. If the guard's file has not answered for the next message yet, wait for the answer, because
        the message may be a duplicate. If a thread works on the next message, because it is large, wait for the end.

        Args:
            take: takes a message that may be handed out now, or returns ``None``.
            patience: ends the wait, like ``jms.requestTimeout``.

        Raises:
            RequestTimedOutException: the wait takes too long. The message is not lost.
        """
        limit = self._channel.options.request_timeout
        left = patience.remaining()
        end = patience if left is None or left > _LOOK else Deadline(_LOOK)
        inbox, source = self._inbox, self._source
        while (message := take()) is None and inbox.untold and not source.closed:
            arrival = inbox.expect()
            timeout = min((wait for wait in (limit, end.remaining()) if wait is not None), default=None)
            if inbox.untold and not (yield arrival, timeout) and inbox.untold:
                raise RequestTimedOutException(
                    f"receiving from {self._info.destination.name}: the file of failover.duplicateGuard does not answer"
                    f" within {timeout:g} s, or the next message, which is large, takes longer to read"
                )
            source.check_alive()
        return message

    def receive_body(self, body_type: type[T], timeout: float | None) -> Steps[T | None]:
        """Receive a message and return its body only (S176)."""
        message = yield from self.receive(timeout, body_type)
        return None if message is None else message.get_body(body_type)

    def _wait_for_arrival(self, deadline: Deadline) -> Steps[None]:
        arrival = self._inbox.expect()
        # The loop first appends a message to the inbox, and then completes all arrivals. This method first adds its
        # arrival, and then looks into the inbox. So either the loop completes this arrival, or this method sees the
        # message. On a stopped connection the caller waits although the inbox has messages, and start() wakes it.
        try:
            ready = self._inbox.messages and self._session.started and not self._taking.stalled
            if not ready and not self._source.over and self._source.error is None:
                yield arrival, deadline.remaining()
        finally:
            self._inbox.forget(arrival)

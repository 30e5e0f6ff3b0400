"""Hands messages to a listener, in both faces (S9, S14, S17-S21, S124). The public signature,
``set_message_listener(listener, *, concurrency=1)``, is in ``core/facade.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from pyjmsack.core.runtime import Dispatcher, Runtime
from pyjmsack.core.state import SessionState
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.core.tracing import Processed, TracedConsumer
from pyjmsack.core.unsettled import Unsettled
from pyjmsack.errors import IllegalStateException, JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.message import Message
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import AckMode, Outcome

__all__ = ["BATCH", "Call", "Dispatchers", "Listener", "Listening", "Workers"]

log = get_logger("pyjmsack")
Listener = Callable[[Message], Any]
BATCH = 64
"""How many messages a listener gets before the other consumers of the session, and in asyncio other tasks, have a
turn."""
PAUSE = 1.0
"""Seconds until the dispatcher tries again after an error that did not come from the listener."""


class Workers:
    """The dispatchers that share the messages of one consumer (``concurrency=N``). Only the thread or task that has the
    session uses this object.

    A message of a group (``JMSXGroupID``) goes to the worker that still has an earlier message of the group, and waits
    there. Any other message goes to the worker with the least to do. The listener never has more messages at a time
    than there are workers.
    """

    def __init__(self, dispatchers: Sequence[Dispatcher]) -> None:
        self._dispatchers = dispatchers
        self._load = [0] * len(dispatchers)
        self._groups: dict[str, tuple[int, int]] = {}
        """For each group of which the listener still has messages: the worker of the group, and the number of these
        messages."""
        self._worker_of: dict[int, int] = {}
        self._inside: dict[int, Inbound] = {}

    @property
    def full(self) -> bool:
        """True if another message has to wait for a free worker."""
        return len(self._worker_of) >= len(self._dispatchers)

    def enter(self, message: Message) -> Dispatcher:
        """Return the dispatcher that runs the listener for this message."""
        group = message._group_id
        worker, members = self._groups.get(group, (None, 0)) if group is not None else (None, 0)
        if worker is None:
            worker = self._load.index(min(self._load))
        if group is not None:
            self._groups[group] = (worker, members + 1)
        self._load[worker] += 1
        self._worker_of[id(message)] = worker
        self._inside[id(message)] = message._delivery
        return self._dispatchers[worker]

    def work_on(self, inbound: Inbound) -> bool:
        """Return whether the listener still processes an earlier delivery of this message, from a lost connection
        (S105).

        The new delivery has to wait until the listener has finished. If the listener succeeds, the message is
        processed, and no other worker may get it.
        """
        inside = [one for one in [*self._inside.values()] if one.generation != inbound.generation]
        identity = inbound.identity() if inside else None
        return identity is not None and any(one.identity() == identity for one in inside)

    def leave(self, message: Message) -> None:
        """Remember that the listener has finished with this message."""
        worker = self._worker_of.pop(id(message))
        del self._inside[id(message)]
        self._load[worker] -= 1
        group = message._group_id
        if group is not None:
            _, members = self._groups.pop(group)
            if members > 1:
                self._groups[group] = (worker, members - 1)


class Call(NamedTuple):
    """One message for a listener, and the worker that runs the listener."""

    listener: Listener
    message: Message
    workers: Workers | None = None
    worker: Dispatcher | None = None
    """The dispatcher that runs the listener. ``None`` means that the session's own dispatcher runs the listener at
    once."""


class Dispatchers:
    """The dispatchers that run the listeners of one session. The first dispatcher hands messages out, and runs the
    listeners that have no workers.

    Args:
        runtime: makes dispatchers.
        name: the name of the session, from which the names of threads and tasks are made.
    """

    def __init__(self, runtime: Runtime, name: str) -> None:
        self._runtime = runtime
        self._name = name
        self._all: list[Dispatcher] = []

    @property
    def first(self) -> Dispatcher:
        """The dispatcher that hands messages out."""
        return (self._all or self._more(1))[0]

    def workers(self, count: int) -> Workers:
        """Return dispatchers for a listener that works on ``count`` messages at a time."""
        if not self._all:  # the first dispatcher hands messages out
            self._more(1)
        return Workers(self._more(count))

    def _more(self, count: int) -> list[Dispatcher]:
        number = len(self._all)
        more = [self._runtime.dispatcher(f"{self._name}-{number + n}") for n in range(count)]
        self._all += more
        return more

    def running_here(self) -> bool:
        """Whether the caller is inside a message listener of the session (S14)."""
        return any(dispatcher.running_here() for dispatcher in self._all)

    def started_here(self) -> bool:
        """Whether the caller is inside a message listener of the session, or in a task that such a listener started.
        The listener may wait for the caller."""
        return any(dispatcher.started_here() for dispatcher in self._all)

    def idle(self, deadline: Deadline) -> Steps[None]:
        """Wait for the running message listeners, unless the caller is one of them (S124).

        The caller of this method has already stopped its consumers. So the first dispatcher hands out none of their
        messages after its present call, and it is enough to wait for this call. For each worker, wait for all its
        calls, because a message of a group may wait behind another message of the group.
        """
        if self.running_here():
            return
        for number, dispatcher in enumerate([*self._all]):
            for idle, _ in dispatcher.idle() if number == 0 else dispatcher.through():
                yield idle, deadline.remaining()

    def let_end(self) -> None:
        """Let the dispatchers run the queued calls, and then end. Do not wait for the end."""
        for dispatcher in [*self._all]:
            dispatcher.let_end()

    def close(self, deadline: Deadline) -> None:
        """Run the queued calls, then end the dispatchers. Wait for the end."""
        for dispatcher in self._all:
            dispatcher.close(deadline)


class Source(Protocol):
    """The part of a consumer that :class:`Listening` uses."""

    @property
    def closed(self) -> bool:
        """Whether the consumer has stopped giving messages to the listener."""
        ...

    @property
    def stalled(self) -> bool:
        """True if the listener gets no message now, even if the consumer has messages."""
        ...

    def take_for_listener(self) -> Message | None:
        """Take the next message that the listener may have. In a transacted session the message joins the
        transaction."""
        ...

    @property
    def has_messages(self) -> bool:
        """Whether the inbox holds messages that may be handed out now."""
        ...


class Listening:
    """Holds the listener of one consumer, and decides when it is called.

    Args:
        session: the facts about the session that its producers and consumers may read.
        info: the consumer.
        source: gives the messages.
        unsettled: the messages that the listener has not acknowledged.
        dispatchers: the dispatchers of the session.
        feed: gives messages to the listener in the way of this face. A dispatcher calls this function.
        trace: makes spans. ``None`` means that there are no spans.
        allow_pull: whether a listener may be set with prefetch 0. The client then asks the broker for each message
            (S9).
    """

    __slots__ = (
        "_allow_pull",
        "_channel",
        "_dispatchers",
        "_feed",
        "_info",
        "_scheduled",
        "_session",
        "_source",
        "_trace",
        "_unsettled",
        "listener",
        "workers",
    )

    def __init__(
        self,
        session: SessionState,
        info: ConsumerInfo,
        source: Source,
        unsettled: Unsettled,
        dispatchers: Dispatchers,
        feed: Callable[[Listening], Any],
        trace: TracedConsumer | None,
        *,
        allow_pull: bool,
    ) -> None:
        self._session = session
        self._channel = session.channel
        self._info = info
        self._source = source
        self._unsettled = unsettled
        self._dispatchers = dispatchers
        self._feed = feed
        self._trace = trace
        self._allow_pull = allow_pull
        self._scheduled = False
        self.listener: Listener | None = None
        self.workers: Workers | None = None

    def check(self, listener: Listener | None, concurrency: int) -> None:
        """Raise an error if this listener cannot be set (S9).

        Raises:
            IllegalStateException: the acknowledge mode or prefetch 0 does not allow a listener.
            TypeError: the listener is not callable.
            ValueError: ``concurrency`` is not a whole number of at least 1.
        """
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise ValueError(f"concurrency {concurrency!r}: expected a whole number of at least 1")
        mode = self._session.info.ack_mode
        if concurrency > 1 and mode in (AckMode.CLIENT_ACKNOWLEDGE, AckMode.SESSION_TRANSACTED):
            raise IllegalStateException(
                f"{mode.name} acknowledges messages together, so a listener with concurrency {concurrency} would "
                "acknowledge messages that other workers still work on; use INDIVIDUAL_ACKNOWLEDGE or AUTO_ACKNOWLEDGE"
            )
        if listener is not None and not callable(listener):
            raise TypeError(f"message_listener: expected a callable, not {type(listener).__name__}")
        if self._info.prefetch == 0 and not self._allow_pull:
            raise IllegalStateException(
                "a listener needs a prefetch of at least 1, because with prefetch 0 only receive() fetches messages; "
                "the destination option consumer.allowPullListener=true allows a listener with prefetch 0 (S9)"
            )

    def set(self, listener: Listener | None, concurrency: int) -> None:
        """Install or remove a listener. The listener gets up to ``concurrency`` messages at a time."""
        self.listener = listener
        self.workers = None if concurrency == 1 else self._dispatchers.workers(concurrency)
        if listener is None:
            self._session.listeners.discard(self._info.id)
        else:
            self._session.listeners.add(self._info.id)
            self.schedule()

    def close(self) -> None:
        """Remove the listener, because the consumer is closed. ``receive`` is allowed in the session again, if no other
        consumer has a listener (S8).
        """
        self._session.listeners.discard(self._info.id)

    def idle(self, deadline: Deadline) -> Steps[None]:
        """Wait for the running listeners of the session, unless one of them may wait for the caller (S14, S124)."""
        if not self._dispatchers.started_here():
            yield from self._dispatchers.idle(deadline)

    def schedule(self) -> None:
        """Ask the session's dispatcher to look for messages, unless it was asked already."""
        if not self._scheduled and self.listener is not None and self._session.started and not self._source.closed:
            self._scheduled = True
            self.dispatch()

    def dispatch(self) -> None:
        """Ask the session's dispatcher to look for messages."""
        self._dispatchers.first.submit(partial(self._feed, self))

    def unscheduled(self) -> None:
        """Remember that the dispatcher stops, because it found no message. Look once more, because a message may have
        come meanwhile.

        The first look was a call of :meth:`begin` or :attr:`out_of_messages`. No worker finishes between the two looks,
        because the dispatcher has the session (in asyncio, because there is no ``await`` in between). A worker that
        finishes after the second look finds that the dispatcher has stopped, and starts the dispatcher again.
        """
        self._scheduled = False
        source = self._source
        if source.closed:
            return
        waits = source.stalled or (self.workers is not None and self.workers.full)
        if source.has_messages and not waits:
            self.schedule()
        elif (
            self._info.prefetch == 0 and not source.has_messages and self.listener is not None and self._session.started
        ):
            self._channel.submit(self._channel.provider.pull, self._info.id)

    @property
    def out_of_messages(self) -> bool:
        """Whether :meth:`begin` would find no message."""
        return not self._source.has_messages

    def broke_off(self) -> None:
        """Let the dispatcher try again after a pause, because it met an error that did not come from the listener, such
        as a rollback without an answer. Without the pause an error that repeats would keep the processor busy.
        """
        self._channel.runtime.call_later(PAUSE, self.unscheduled)

    def begin(self) -> Call | None:
        """Take a message for the listener. From now on nobody else gets the message.

        In a transacted session the message joins the transaction now, so that a commit inside the listener covers the
        message.
        """
        listener, workers = self.listener, self.workers
        if listener is None or self._source.closed or (workers is not None and workers.full):
            return None
        message = self._source.take_for_listener()
        if message is None:
            return None
        if workers is None:
            return Call(listener, message)
        return Call(listener, message, workers, workers.enter(message))

    def leave(self, call: Call) -> None:
        """Free the worker of a message, because the listener has finished and the message has its outcome."""
        if call.workers is not None:
            call.workers.leave(call.message)
            self.schedule()

    def process(self, message: Message) -> Processed | None:
        """Begin the span of a listener that gets this message. Return the object that ends the span, or ``None`` if
        there are no spans."""
        return None if self._trace is None else self._trace.process(message)

    def end(self, message: Message, error: BaseException | None) -> bool:
        """Settle a message, because its listener returned or raised (S17-S21). A message that the listener itself
        settled or recovered stays as it is (S33).

        Returns:
            True if the session's work must be undone now, because of ``jms.rollbackOnListenerError``.
        """
        options, name = self._channel.options, self._info.destination.name
        if error is not None:
            log.warning("the listener of %s raised", name, exc_info=error)
        if self._unsettled.auto:
            self._settle(message, Outcome.ACCEPTED if error is None else options.listener_error_outcome)
        elif error is not None and self._session.info.ack_mode.individual:
            self._settle(message, Outcome.MODIFIED_FAILED)
        elif error is not None:
            failure = JMSException(f"the listener of {name} raised {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._channel.events.report(failure)
            return options.rollback_on_listener_error
        return False

    def _settle(self, message: Message, outcome: Outcome) -> None:
        inbound: Inbound = message._delivery
        waits = outcome is Outcome.ACCEPTED and self._unsettled.batches
        try:
            if self._trace is not None and not inbound.settled and not waits:
                self._trace.settle(outcome, message)
        finally:  # Ctrl-C may come in the code that makes the span
            self._unsettled.settle_one(inbound, outcome)

    def works_on(self, inbound: Inbound) -> bool:
        """Whether a listener still processes an earlier delivery of this message, from a lost connection (S105)."""
        return self.workers is not None and bool(self._unsettled.stale) and self.workers.work_on(inbound)

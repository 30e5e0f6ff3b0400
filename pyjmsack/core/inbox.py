"""Messages that were prefetched and not handed out: their order, their delays, and the callers that wait for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import partial

from pyjmsack.core.admission import Admission
from pyjmsack.core.channel import Channel
from pyjmsack.core.guard import DuplicateGuard
from pyjmsack.core.redelivery import FailedDeliveries, redelivery_delay
from pyjmsack.core.runtime import Later, Runtime, taken
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import LARGE, Inbound, identify
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import Outcome
from pyjmsack.uri import RedeliveryPolicy

__all__ = ["Delays", "Inbox", "PriorityInbox", "make_inbox"]


class PriorityInbox:
    """An inbox with the methods of the plain ``deque`` that it replaces. Messages of a higher priority come first, and
    messages of one priority keep their order.

    This class needs no lock, like the plain deque: the loop may append while another thread takes messages. Each
    priority has a deque, whose methods are atomic, and no method needs two deques to agree.
    """

    __slots__ = ("_levels",)

    def __init__(self) -> None:
        self._levels: tuple[deque[Inbound], ...] = tuple(deque() for _ in range(10))
        """The messages of each priority, the highest priority first."""

    def append(self, inbound: Inbound) -> None:
        """Put a message behind the messages of its priority."""
        self._levels[9 - inbound.priority].append(inbound)

    def extend(self, inbounds: Iterable[Inbound]) -> None:
        """Append each message."""
        for inbound in inbounds:
            self.append(inbound)

    def appendleft(self, inbound: Inbound) -> None:
        """Put a message before the messages of its priority."""
        self._levels[9 - inbound.priority].appendleft(inbound)

    def extendleft(self, inbounds: Iterable[Inbound]) -> None:
        """Put each message before the messages of its priority, in one step, so that no caller sees a wrong order."""
        given = [*inbounds]
        for place, level in enumerate(self._levels):
            level.extendleft([inbound for inbound in given if 9 - inbound.priority == place])

    def popleft(self) -> Inbound:
        """Take the first message of the highest priority.

        Raises:
            IndexError: there is no message.
        """
        for level in self._levels:
            if level:
                try:
                    return level.popleft()
                except IndexError:  # another thread took the last message of this priority meanwhile
                    continue
        raise IndexError("pop from an empty PriorityInbox")

    def move(self, unseen: list[Inbound]) -> None:
        """Append all messages to ``unseen``, in their order."""
        for level in self._levels:
            _move(level, unseen)

    def clear(self) -> None:
        """Drop all messages."""
        for level in self._levels:
            level.clear()

    def __contains__(self, inbound: Inbound) -> bool:
        return any(inbound in level for level in self._levels)

    def __len__(self) -> int:
        return sum(map(len, self._levels))


def _move(messages: deque[Inbound], unseen: list[Inbound]) -> None:
    """Append all messages to ``unseen``. No Python code runs between two steps of this call, so Ctrl-C cannot end it
    while a message is in neither place."""
    with suppress(IndexError):  # the end of the deque
        unseen.extend(iter(messages.popleft, None))


CallLater = Callable[[float, Callable[[], None]], Later]

_GIVES_BACK = (Outcome.RELEASED, Outcome.MODIFIED_FAILED)
"""The outcomes for a message over the limit after which it is delivered again, perhaps to the same consumer."""
_GOES_BACK = 1.0
"""The shortest wait in seconds of a message that was delivered too often and goes back uncounted."""
_MOST_ASIDE = 1000
"""The number of delayed messages outside the inbox that do not use up the prefetch."""


class _Wait:
    """The wait of one message. The timer holds this object, which lets go of the message when the wait is over."""

    __slots__ = ("count", "inbound", "timer")

    def __init__(self, inbound: Inbound, count: int) -> None:
        self.inbound: Inbound | None = inbound
        self.count = count
        """The number of redeliveries."""
        self.timer: Later | None = None


class Delays:
    """Delays the messages of one consumer that this connection gave back as failed, each for the time that the
    redelivery policy sets.

    The client delays the messages, because the broker delivers messages again at once. The wait of a message begins
    when the message could be handed out. The consumer's thread starts the wait, and the loop's timer ends the wait.
    Each field is written by one side at a time.

    Args:
        policy: the lengths of the waits (S115). A message that goes back uncounted because it was delivered too often
            waits at least one second, because the broker would send it again at once, without end.
        exceeded: returns whether a message was delivered too often.
        blocking: whether later messages wait behind a delayed message, so that the order is kept. If this is
            false, later messages overtake the delayed message (S116). They always overtake a message that goes back.
        failures: the failures that this connection saw. Only they let a message wait, because a sender may write any
            count into a message.
        source: the queue or the subscription of the consumer.
        inbox: the inbox of the consumer. After its wait, a message is at the head of the inbox.
        call_later: ``call_later(seconds, callback)`` calls ``callback`` on the loop after this time.
        submit: ``submit(command, argument)`` runs a command on the loop. It cancels the timers there.
        due: called on the loop when a wait is over.
    """

    def __init__(
        self,
        policy: RedeliveryPolicy,
        exceeded: Callable[[Inbound], bool],
        blocking: bool,
        failures: FailedDeliveries,
        source: Hashable,
        inbox: deque[Inbound] | PriorityInbox,
        call_later: CallLater,
        submit: Callable[..., None],
        due: Callable[[], None],
    ) -> None:
        self._policy = policy
        self._exceeded = exceeded
        self._blocking = blocking
        self._failures = failures
        self._source = source
        self._inbox = inbox
        self._call_later = call_later
        self._submit = submit
        self._due = due
        self._waiting: dict[Inbound, _Wait] = {}
        """Messages that wait at the head of the inbox. They block the messages behind them."""
        self._aside: dict[Inbound, _Wait] = {}
        """Messages that wait outside the inbox."""
        self._ready: dict[Inbound, int] = {}
        self._passed: tuple[Inbound, int] | None = None
        self.failing: set[Inbound] = set()
        """The messages over the limit that wait to go back as failed, which they also do if the consumer ends."""

    @property
    def blocks(self) -> bool:
        """Whether no message may be handed out now."""
        return bool(self._waiting)

    def __len__(self) -> int:
        """The number of messages that wait outside the inbox."""
        return len(self._aside)

    def must_wait(self, inbound: Inbound) -> bool:
        """Return whether a message that was just taken out of the inbox must wait. A message that must wait is kept
        here, or put back into the inbox.
        """
        count = inbound.redelivery_count + inbound.redeliveries
        if count == 0 and self._failures:
            count = inbound.likely_failures
        goes_back = count > 0 and self._exceeded(inbound)
        if count == 0 or (goes_back and self._policy.outcome not in _GIVES_BACK):
            return False
        if self._ready.pop(inbound, None) == count:
            # a message that was put back after a look (S176) need not wait again
            self.failing.discard(inbound)
            self._passed = None if goes_back else (inbound, count)
            self._failures.waited(self._source, inbound)
            return False
        if self._passed == (inbound, count):
            return False
        seen = min(count, self._failures.of(self._source, inbound, waited=goes_back))
        delay = redelivery_delay(self._policy, seen) if seen else 0
        if goes_back:
            delay = max(delay, _GOES_BACK)
        if delay <= 0:
            return False
        stays = self._blocking and not goes_back
        waiting, wait = self._waiting if stays else self._aside, _Wait(inbound, count)
        if goes_back and self._policy.outcome is Outcome.MODIFIED_FAILED:
            self.failing.add(inbound)
        try:
            waiting[inbound] = wait
            if stays:
                self._inbox.appendleft(inbound)
            wait.timer = self._call_later(delay, partial(self._over, wait))
        except BaseException:  # at Ctrl-C the wait is undone, because without its timer it would never end
            waiting.pop(inbound, None)
            wait.inbound = None
            raise
        if waiting is not (self._waiting if stays else self._aside):
            # another thread ended all waits meanwhile, perhaps before this wait had its timer
            self._end([wait])
        return True

    def failed(self, inbound: Inbound) -> None:
        """Remember that a message goes back as failed, so that its next delivery waits. Any thread may call this. A
        message that was delivered too often does not count, because nobody got it.
        """
        if not self._exceeded(inbound):
            self._failures.add(self._source, inbound)

    def _over(self, wait: _Wait) -> None:
        inbound, wait.inbound = wait.inbound, None
        if inbound is None:  # the message was given back, or the consumer is closed
            return
        if self._aside.pop(inbound, None) is not None:
            self._ready[inbound] = wait.count
            self._inbox.appendleft(inbound)
        elif self._waiting.pop(inbound, None) is not None:
            self._ready[inbound] = wait.count
        else:  # another thread is just giving the message back
            return
        self._due()

    def _end(self, waits: list[_Wait]) -> None:
        """End waits before their time. The messages can be freed at once, although a wait may be as long as 24 days."""
        for wait in waits:
            wait.inbound = None
        if waits:
            self._submit(_cancel, waits)

    def __contains__(self, inbound: Inbound) -> bool:
        """Whether the message waits outside the inbox."""
        return inbound in self._aside

    def release(self, *, back: bool) -> None:
        """End every wait.

        Args:
            back: whether the messages that are not in the inbox go back into the inbox. Otherwise they are dropped.
        """
        aside, self._aside = self._aside, {}
        try:
            waiting, self._waiting = self._waiting, {}
            self._ready.clear()
            if not back:
                self.failing.clear()
            if back:  # before the timers are cancelled, because Ctrl-C may end the caller there
                self._inbox.extend(aside)
        except BaseException:  # Ctrl-C: a message that is in neither place would never be delivered
            if back:
                self._inbox.extend([inbound for inbound in aside if inbound not in self._inbox])
            raise
        self._end([*aside.values(), *waiting.values()])


def _cancel(waits: list[_Wait]) -> None:
    """Cancel the timers of waits that were ended. Runs on the loop, which forgets the timers then."""
    for wait in waits:
        if wait.timer is not None:
            wait.timer.cancel()


class Inbox:
    """The messages of one consumer that nobody has yet.

    The loop appends messages. The session's thread (or dispatcher) takes them.

    Args:
        messages: the container, in the order in which the messages are handed out.
        delays: delays redelivered messages. ``None`` means that no message is delayed.
        guard: the guard of the consumer. If it has a file, the file is asked about each message.
        runtime: brings the answers of the guard's file to the loop, and computes the identities of large messages on
            another thread.
        look: called on the loop when a message that had to wait may be handed out.
        read: decodes a large message, on a thread. ``None`` means that messages are decoded when they are taken.
        identifies: whether the loop or the caller will ask for the identity of each message. If true, the identity of a
            large message is computed on another thread before the message is handed out.
    """

    __slots__ = (
        "_arrivals",
        "_guard",
        "_heavy",
        "_look",
        "_read",
        "_reading",
        "_runtime",
        "_unasked",
        "_weighs",
        "checks",
        "delays",
        "deliver",
        "messages",
        "untold",
        "wanted",
    )

    def __init__(
        self,
        messages: deque[Inbound] | PriorityInbox,
        delays: Delays | None,
        guard: DuplicateGuard | None,
        runtime: Runtime,
        look: Callable[[], None],
        identifies: bool = False,
        read: Callable[[Inbound], None] | None = None,
    ) -> None:
        self.messages = messages
        self.delays = delays
        self._guard = guard if guard is not None and guard.file is not None else None
        self._runtime = runtime
        self._look = look
        self._arrivals: deque[Completion[None]] = deque()
        self._unasked: list[Inbound] = []  # because an empty deque would take 700 bytes for each consumer
        """Messages that arrived and were not looked up in the guard's file yet."""
        self._weighs = (guard is not None or identifies) and self._guard is None
        self._heavy: list[Inbound] = []
        """Large messages whose digest is not computed yet. The digest of 100 MB takes a third of a second."""
        self._read = read
        self._reading: Inbound | None = None
        """The message that a thread decodes now."""
        self.untold = False
        """Whether the next message waits for an answer of the guard's file, for a digest, or until it is decoded."""
        self.wanted: Callable[[Inbound], bool] = _always
        """Whether anybody will read a message, so that a thread has to decode it first if it is large."""
        self.checks = delays is not None or self._guard is not None or read is not None
        """Whether :meth:`keeps_back` may keep a message back."""
        self.deliver: Callable[[Inbound], None] = messages.append
        """Appends one message. No caller is woken yet."""
        if self._weighs:
            self.deliver = self._deliver_weighed
        elif self._guard is not None:
            self.deliver = self._deliver_unasked

    # -- from the loop ------------------------------------------------------------------------------------------

    def _deliver_unasked(self, inbound: Inbound) -> None:
        self.messages.append(inbound)
        self._unasked.append(inbound)

    def _deliver_weighed(self, inbound: Inbound) -> None:
        if inbound.heavy:
            self.checks = True
            self._heavy.append(inbound)
        self.messages.append(inbound)

    def redeliver(self, inbounds: Sequence[Inbound]) -> None:
        """Put messages back at the head of the inbox, oldest first, because the caller gave them back."""
        self.messages.extendleft(reversed(inbounds))
        if self._guard is not None:
            self._unasked.extend(inbound for inbound in inbounds if inbound.known is None)

    def wake(self) -> None:
        """Wake the callers that wait, and look up the new messages in the guard's file."""
        if self._unasked and self._guard is not None:
            unasked, self._unasked = self._unasked, []
            self._guard.look_up(unasked, lambda: self._runtime.submit_from_thread(self._told))
        if self._heavy:
            heavy, self._heavy = self._heavy, []
            self._runtime.elsewhere(partial(_identify, heavy), self._told)
        for arrival in taken(self._arrivals):
            arrival.succeed()

    def _told(self) -> None:
        """Look again for a message that may be handed out, because the guard's file answered, because the keys that
        waited are now in the file, because digests are ready, or because a message is decoded. Runs on the loop.
        """
        self.untold = False
        self._look()

    def clear(self) -> None:
        """Drop all messages. The broker has them again, and takes no outcome for them."""
        self.messages.clear()
        if self.delays is not None:
            self.delays.release(back=False)

    def interrupted(self) -> None:
        """Drop all messages, because the connection is lost and the broker will deliver them again."""
        self.clear()
        self._unasked.clear()
        self._heavy.clear()
        self.untold = False  # a thread that still decodes a message wakes the callers when it has ended

    # -- from the consumer's side -------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of messages in this inbox."""
        return len(self.messages) + (0 if self.delays is None else len(self.delays))

    def used(self) -> int:
        """Return the number of messages that use up the prefetch. Delayed messages outside the inbox do not, up to
        ``_MOST_ASIDE``, because otherwise no message could overtake them.
        """
        return len(self.messages) + (0 if self.delays is None else max(0, len(self.delays) - _MOST_ASIDE))

    @property
    def blocked(self) -> bool:
        """Whether the next message must wait, for its delay or for the guard."""
        return self.untold or (self.delays is not None and self.delays.blocks)

    def keeps_back(self, inbound: Inbound) -> bool:
        """Return whether a message that was just taken must wait. A message that must wait is in the inbox again, or
        among the delayed messages.
        """
        waits = self._must_wait_for_digest(inbound) if self._guard is None else self._must_wait_for_file(inbound)
        if waits or self._must_wait_for_thread(inbound):
            self.messages.appendleft(inbound)
            return True
        if self.delays is not None and self.delays.must_wait(inbound):
            inbound.read = None  # to free memory; after the delay it is decoded again
            return True
        return False

    def _must_wait_for_thread(self, inbound: Inbound) -> bool:
        """Whether this message is large and no thread has decoded it yet, so that the loop would wait too long. Only
        the next message is decoded, because a decoded message may take a hundred times its bytes. Runs on the loop.
        """
        if self._read is None or inbound.size <= LARGE or inbound.read is not None or inbound.quick:
            return False
        if not self.wanted(inbound):
            return False
        self.untold = True
        if self._reading is not inbound:
            self._reading = inbound
            self._runtime.elsewhere(partial(self._read, inbound), partial(self._was_read, inbound))
        return True

    def _was_read(self, inbound: Inbound) -> None:
        if self._reading is inbound:
            self._reading = None
            self._told()

    def _must_wait_for_digest(self, inbound: Inbound) -> bool:
        """Whether this message is large and another thread still computes its digest."""
        if self._weighs and inbound.known is None and inbound.heavy:
            self.untold = True  # set before ``known`` is read again, for the reason in ``_must_wait_for_file``
            if inbound.known is None:
                return True
            self.untold = False
        return False

    def _must_wait_for_file(self, inbound: Inbound) -> bool:
        """Whether the guard's file has not answered for this message yet, or is too far behind with its writes."""
        file = None if self._guard is None else self._guard.file
        if file is None:
            return False
        if inbound.known is None and not inbound.redeliveries:
            # set before ``known`` is read again, because the file sets ``known`` before the loop resets ``untold``
            self.untold = True
            if inbound.known is None:
                return True
            self.untold = False
        if file.full:
            self.untold = True
            file.add((), self._told)
            return True
        return False

    def failed(self, inbound: Inbound) -> None:
        """Remember that a message that was handed out goes back as failed, if its next delivery may have to wait."""
        if self.delays is not None:
            self.delays.failed(inbound)

    def __contains__(self, inbound: Inbound) -> bool:
        """Whether the message is in this inbox, or waits for the end of its delay."""
        return inbound in self.messages or (self.delays is not None and inbound in self.delays)

    def take_all(self, unseen: list[Inbound]) -> set[Inbound]:
        """Move all messages into ``unseen``, including the delayed ones. At every moment a message is in this inbox or
        in ``unseen``, also if Ctrl-C ends the call.

        Returns:
            The messages that go back as failed, because they were about to do so.
        """
        failing: set[Inbound] = set()
        if self.delays is not None:
            self.delays.release(back=True)
            failing, self.delays.failing = self.delays.failing, failing
        self.messages.move(unseen) if isinstance(self.messages, PriorityInbox) else _move(self.messages, unseen)
        return failing

    def expect(self) -> Completion[None]:
        """Return the completion that the next :meth:`wake` completes."""
        arrival: Completion[None] = Completion()
        self._arrivals.append(arrival)
        return arrival

    def forget(self, arrival: Completion[None]) -> None:
        """Remove a completion for which nobody waits any more."""
        if not arrival.done:
            with suppress(ValueError):  # a wake has removed it already
                self._arrivals.remove(arrival)


def _always(_: Inbound) -> bool:
    return True


def make_inbox(
    channel: Channel,
    info: ConsumerInfo,
    guard: DuplicateGuard | None,
    look: Callable[[], None],
    admission: Admission,
    *,
    transacted: bool,
) -> Inbox:
    """Return the inbox of a consumer, as the options say. A browser shows the order of the queue, without delays."""
    options, runtime = channel.options, channel.runtime
    replays = transacted and not info.browser and channel.url.failover.transaction_replay
    by_priority = options.local_message_priority and not info.browser
    messages: deque[Inbound] | PriorityInbox = PriorityInbox() if by_priority else deque()
    policy = options.redelivery_policy_for(info.destination)
    delays: Delays | None = None
    goes_back = policy.max_redeliveries is not None and policy.outcome in _GIVES_BACK
    if (policy.delays or goes_back) and not info.browser:
        exceeded, blocking = admission.delivered_too_often, not options.non_blocking_redelivery
        delays = Delays(
            policy,
            exceeded,
            blocking,
            channel.failures,
            info.source,
            messages,
            runtime.call_later,
            runtime.submit,
            look,
        )
    read = admission.read if runtime.callers_on_loop else None
    return Inbox(messages, delays, guard, runtime, look, replays or admission.identifies, read)


def _identify(inbounds: list[Inbound]) -> None:
    """Compute the identities of large messages. Runs on a thread of its own, because this may take long."""
    identify(inbounds)
    for inbound in inbounds:
        inbound.known = False  # because there is no file that could know the message

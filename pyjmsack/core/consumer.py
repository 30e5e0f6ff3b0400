"""A consumer: its parts, which messages are delivered again, and how the consumer ends (S16-S38, S49-S57, S125,
S141).

A consumer is made of parts:

- The :mod:`inbox <pyjmsack.core.inbox>` has the messages that nobody has yet.
- :mod:`taking <pyjmsack.core.taking>` takes the next message from the inbox.
- The :mod:`admission <pyjmsack.core.admission>` decides whether the message may be handed out.
- :mod:`unsettled <pyjmsack.core.unsettled>` has the messages that the caller has.
- :mod:`receiving <pyjmsack.core.receiving>` lets a caller wait for a message.
- :mod:`listening <pyjmsack.core.listening>` feeds a listener.

This file has the state of a consumer, and the steps that end a consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from itertools import groupby
from typing import Any

from pyjmsack.core.admission import Admission
from pyjmsack.core.inbox import make_inbox
from pyjmsack.core.listening import Dispatchers, Listener, Listening
from pyjmsack.core.receiving import Receiving
from pyjmsack.core.state import SessionState
from pyjmsack.core.stats import ConsumerStats, Counts
from pyjmsack.core.steps import Deadline, Steps, ended
from pyjmsack.core.subscriptions import Subscriptions
from pyjmsack.core.taking import Taking
from pyjmsack.core.tracing import TracedConsumer
from pyjmsack.core.transaction import Runs
from pyjmsack.core.unsettled import Unsettled
from pyjmsack.errors import IllegalStateException, JMSException, RequestTimedOutException
from pyjmsack.message import Acknowledger, Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import Outcome

__all__ = ["Consumer", "State"]

_GIVE_BACK = (Outcome.RELEASED, Outcome.MODIFIED_FAILED)
"""The outcomes after which the broker delivers a message again."""


class State(IntEnum):
    """The state of a consumer, from open to closed."""

    OPEN = 0
    EBBING = 1
    """``drain()`` waits for messages that are on their way. The broker settled these messages when it sent them, so
    they cannot go back to the queue."""
    DRAINED = 2
    """``drain()`` was called. Nothing is handed out any more, except messages that the broker has settled already."""
    DETACHED = 3
    """The broker closed the consumer, or the connection is lost. ``error`` says why."""
    CLOSING = 4
    """The caller closed the consumer. The link to the broker stays open as long as delivered messages may still be
    acknowledged (S29, S84)."""
    CLOSED = 5
    """The consumer is closed for the broker, too: the link is being ended, or the session is being closed."""


class Consumer:
    """The core of one consumer.

    Args:
        session: the facts about the session that its producers and consumers may read.
        info: the destination and the settings of the consumer.
        acknowledger: carries out ``message.acknowledge()`` in this face.
        dispatchers: the dispatchers of the session, which run listeners.
        feed: gives messages to the listener in the way of this face. A dispatcher calls this function.
        subscriptions: the subscriptions of the connection. The name of a subscription is free again when the consumer
            has ended.
        leave: called with the id of the consumer when the consumer ends. It takes the consumer out of the table of the
            session, and returns ``None`` if another thread has already taken the consumer out.
        allow_pull_listener: whether a listener may be set with prefetch 0 (S9).

    Raises:
        IllegalStateException: the options contradict each other (S10).
    """

    def __init__(
        self,
        session: SessionState,
        info: ConsumerInfo,
        acknowledger: Acknowledger,
        dispatchers: Dispatchers,
        feed: Callable[[Listening], Any],
        subscriptions: Subscriptions,
        leave: Callable[[int], object],
        *,
        allow_pull_listener: bool,
    ) -> None:
        channel, transacted = session.channel, session.info.transacted
        self.session = session
        self.info = info
        self.state = State.OPEN
        self.error: BaseException | None = None
        self.on_arrival: Callable[[], None] | None = None
        """Called when messages came, the connection was lost, or the consumer was closed. It must not block."""
        self.guard = session.memory.guard(info, channel.info, transacted=transacted)
        """Remembers processed messages, or the messages that a browser has shown. ``None`` means that nothing is
        remembered."""
        self._counts = Counts()
        processed = None if info.browser else self.guard
        self.admission = Admission(channel, info, self.guard, transacted=transacted)
        self.inbox = make_inbox(channel, info, processed, self.arrived, self.admission, transacted=transacted)
        self.deliver = self.inbox.deliver
        self.buffered = self.inbox.used
        trace = None if channel.traces is None or info.browser else channel.traces.consumer(info)
        self.unsettled = Unsettled(
            session, info, self.inbox, processed, self._counts, acknowledger, self._released, trace
        )
        self.listening = Listening(
            session, info, self, self.unsettled, dispatchers, feed, trace, allow_pull=allow_pull_listener
        )
        self.taking = Taking(
            session,
            info,
            self.inbox,
            self.admission,
            self.unsettled,
            self.listening,
            self._counts,
            trace,
            self.finish_if_closed,
        )
        self.receiving = Receiving(session, info, self, self.inbox, self.taking, self._counts)
        self.take_for_listener = self.taking.take_for_listener
        self.remote_close = channel.events.remote_close(info.id, "on_consumer_closed")
        self._channel = channel
        self._subscriptions = subscriptions
        self._leave = leave
        self._closing = False
        """True while :meth:`close` runs. It gives the messages in the inbox back before the link ends."""
        self._ended: Completion[None] = Completion()

    # -- state --------------------------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """True if the caller cannot use the consumer any more."""
        return self.state >= State.CLOSING

    @property
    def stalled(self) -> bool:
        """True if no message is handed out now, even if the inbox holds messages. :attr:`Taking.stalled` names the
        reasons."""
        return self.taking.stalled

    @property
    def trace(self) -> TracedConsumer | None:
        """The object that makes the spans of this consumer. ``None`` means that there are no spans."""
        return self.taking.trace

    @property
    def has_messages(self) -> bool:
        """True if the inbox holds messages that may be handed out now."""
        return bool(self.inbox.messages)

    def check_alive(self) -> None:
        """Raise an error if the broker closed this consumer, or the connection is lost."""
        if self.error is not None:
            cause = self.error
            raise cause.fresh() if isinstance(cause, JMSException) else cause

    def check_open(self) -> None:
        """Raise an error if this consumer is closed (S125)."""
        if self.state >= State.CLOSING:
            error = IllegalStateException("the consumer is closed")
            error.__cause__ = self.error
            raise error
        self.session.check_open()

    def check_receive(self) -> None:
        """Raise an error if ``receive`` is not allowed now (S8, S125)."""
        self.check_open()
        if self.session.listeners:
            raise IllegalStateException("receive() is not allowed while a consumer of this session has a listener (S8)")

    @property
    def stats(self) -> ConsumerStats:
        """The present counts of this consumer."""
        return self._counts.stats(buffered=len(self.inbox), unacknowledged=self.unsettled.unacknowledged)

    @property
    def refused(self) -> int:
        """The number of messages that this consumer refused: nobody got them, and this consumer does not get them
        again.
        """
        return self._counts.refused

    # -- from the provider, on the loop -------------------------------------------------------------------------

    def redeliver(self, inbounds: Sequence[Inbound]) -> None:
        """Put messages back at the front of the inbox, oldest first, because the caller gave them back."""
        self.inbox.redeliver(inbounds)
        self.arrived()

    def arrived(self) -> None:
        """Wake the callers that wait for a message. Called once for each burst."""
        self.inbox.wake()
        if self.listening.listener is not None:
            self.listening.schedule()
        elif self.on_arrival is not None:
            self.on_arrival()

    def detached(self, error: BaseException) -> None:
        """Remember that the broker closed this consumer, or that the connection is lost. If the connection is lost,
        this method calls no listeners, because the connection calls them itself (S126, S128).
        """
        if self.closed:
            return
        self.error = error
        if self.state is State.OPEN:
            self.state = State.DETACHED
        self.session.memory.handed_out.detached.add(self.info.id)
        self.inbox.clear()
        self.arrived()
        if self._channel.failure is not None:
            return
        if self.session.remote_close.error is None:  # if the session ended too, its listeners were called already
            self.remote_close.happened(error)
        if self.listening.listener is not None:
            self._channel.events.report(error)

    def joined(self) -> None:
        """Remember that this consumer is in the table of the session, and alert the guard if a connection was lost
        (S105).

        After a loss, the loop first notes the loss, and then alerts the guards of the consumers in the table. This
        method runs after the consumer was added to the table, and then looks for a loss. So the loop finds this
        consumer, or this method finds the loss.
        """
        if self._channel.lost_generation > 0 and self.guard is not None and not self.info.browser:
            self.guard.alert = True

    def interrupted(self) -> None:
        """Remember that the connection is lost and is being restored. The broker will deliver the messages in the inbox
        again. The caller can still read the messages that it has (S101)."""
        self.inbox.interrupted()
        self.unsettled.lost()
        if self.guard is not None:
            self.guard.alert = True
        self.finish_if_closed()

    @property
    def over(self) -> bool:
        """True if a caller that waits for a message will get neither a message nor an error."""
        if self.state is State.DRAINED:
            return not self.inbox.messages or self.stalled
        return self.state >= State.CLOSING

    @property
    def wants_more(self) -> bool:
        """Whether the broker may send more messages to this consumer."""
        return self.state in (State.OPEN, State.DETACHED)

    def set_listener(self, listener: Listener | None, concurrency: int = 1) -> None:
        """Install or remove a listener (S9). The listener gets up to ``concurrency`` messages at a time."""
        self.check_open()
        self.listening.check(listener, concurrency)
        if listener is not None:
            self.check_alive()
        self.listening.set(listener, concurrency)

    def acknowledge(self, outcome: Outcome = Outcome.ACCEPTED) -> None:
        """Give all messages of this consumer that the caller holds the same outcome (S25).

        Raises:
            IllegalStateException: the broker closed this consumer, so it delivers the messages again (S125).
        """
        if not self.unsettled.tracks:
            return
        if self.error is not None:
            self.unsettled.settle_stale(outcome)
            if self.unsettled.take_back():
                self._refuse(outcome)
            return
        if self.trace is not None:
            self.trace.acknowledge("acknowledge", [*self.unsettled.delivered])
        self.unsettled.settle_delivered(outcome)

    def settle_one(self, message: Message, outcome: Outcome) -> None:
        """Give one message its outcome.

        Raises:
            IllegalStateException: the broker closed this consumer, so it delivers the message again (S125).
        """
        inbound = message._delivery
        if self.error is not None and inbound in self.unsettled.delivered:
            self.unsettled.forget(inbound)
            self._refuse(outcome)
            return
        if self.trace is not None and not inbound.settled:
            self.trace.settle(outcome, message)
        self.unsettled.settle_one(inbound, outcome)

    def _refuse(self, outcome: Outcome) -> None:
        """Raise an error unless the outcome gives messages back. Called if the broker closed this consumer: the broker
        then delivers the messages again, and no other outcome has an effect.
        """
        if outcome not in _GIVE_BACK:
            raise IllegalStateException(
                f"the broker closed the consumer of {self.info.destination.name}, and delivers its messages again,"
                f" so {outcome.name} has no effect (S125)"
            ) from self.error

    def _released(self) -> None:
        """Continue after the caller settled messages: a closed consumer may end, and a consumer whose window was full
        hands out messages again (S56).

        The loop wakes whoever waits, because any thread may acknowledge a message, and in asyncio only the loop may
        complete a future or start a task.
        """
        self.finish_if_closed()
        window = self.unsettled.window
        if window is not None and window.limit is not None and self.inbox.messages:
            self._channel.submit(self.arrived)

    # -- recover and transactions -------------------------------------------------------------------------------

    def recover(self) -> None:
        """Deliver again the messages that the caller holds, oldest first and before newer messages. The redelivery is
        counted (S32). If the broker closed this consumer, the broker delivers the messages again.
        """
        if self.closed:
            self.unsettled.settle_delivered(Outcome.MODIFIED_FAILED)
            return
        delivered = self.unsettled.take_back()
        if self.error is not None:
            return
        for inbound in delivered:
            inbound.redeliveries += 1
        self.redeliver(delivered)

    @property
    def takes_part(self) -> bool:
        """Whether the open transaction has messages of this consumer (S83, S84)."""
        return self.unsettled.in_transaction

    def failed(self, inbound: Inbound) -> None:
        """Remember that a message that was handed out goes back as failed, so that its next delivery waits (S115)."""
        self.inbox.failed(inbound)

    def rolled_back(self, inbound: Inbound, *, by_caller: bool) -> None:
        """Prepare a message for a new delivery, because the transaction that received it is rolled back: by the caller,
        or because the commit failed."""
        self.failed(inbound)
        if self.admission.limit is not None:
            self.admission.limit.rolled_back(inbound, by_caller=by_caller)

    def committed(self, inbound: Inbound) -> None:
        """Forget how often a message was rolled back, because the transaction that received it is committed."""
        if self.admission.limit is not None:
            self.admission.limit.done(inbound)

    def halt(self) -> Steps[None]:
        """Drain the link: the broker sends the messages that are on their way, and then stops. Otherwise a newer
        message could come before the messages that the rollback delivers again (S83)."""
        if self.info.prefetch > 0:
            done: Completion[None] = Completion()
            self._channel.submit(self._channel.provider.drain, self.info.id, done)
            yield done, None

    def take_unseen(self, runs: Runs) -> None:
        """Empty the inbox, and add its messages to ``runs``, oldest first, with the outcomes by which they go back to
        the broker. If Ctrl-C ends the call, each message is in ``runs`` or in the inbox."""
        unseen: list[Inbound] = []
        try:
            failing = self.inbox.take_all(unseen)
            self.unsettled.mark_runs(groupby(unseen, partial(_handed_back, failing)), runs)
        except BaseException:
            chosen = {inbound for _, inbounds in runs for inbound in inbounds}
            lost = self._channel.lost_generation
            self.inbox.redeliver([i for i in unseen if i not in chosen and i.generation > lost])
            raise

    def send_outcomes(self, runs: Runs) -> None:
        """Send outcomes that were chosen before. Runs on the loop."""
        self.unsettled.send_outcomes(runs)

    def send_after_all(self, runs: Runs) -> None:
        """Send outcomes that were chosen before, because Ctrl-C ended the call that chose them."""
        self.unsettled.send_after_all(runs)

    def resume(self) -> Steps[None]:
        """Finish a close that waited for the end of the rollback (S84)."""
        self.leave_transaction()
        if self.closed and not self._needed:
            yield from self._detach()

    def transaction_ended(self) -> None:
        """Finish, without waiting, a close that waited for the end of the commit."""
        self.leave_transaction()
        self.finish_if_closed()

    def leave_transaction(self) -> None:
        """Remember that this consumer no longer takes part in a transaction."""
        self.unsettled.in_transaction = False

    # -- end ----------------------------------------------------------------------------------------------------

    def close(self) -> Steps[None]:
        """Close the consumer for the caller. The link stays open as long as delivered messages may still be
        acknowledged (S29, S84)."""
        if self.closed:
            self.finish_if_closed()  # Ctrl-C may have ended another close before it did so
            return
        try:
            self._closing = True
            self.state = State.CLOSING
            self.taking.stop()
            self.listening.close()
            self.arrived()
            deadline = Deadline(self._channel.options.close_timeout)
            yield from self.listening.idle(deadline)
            self.unsettled.flush()
            done: Completion[None] = Completion()
            self._channel.submit(self._channel.provider.stop_consumer, self.info.id, done)
            yield done, deadline.remaining()
            self.release_inbox()
            self._closing = False
        except BaseException:  # the caller gave up: finish without waiting
            self.unsettled.flush()
            self._channel.submit(self._channel.provider.stop_consumer, self.info.id, Completion())
            self.release_inbox()
            self._closing = False
            self.finish_if_closed()
            raise
        if not self._needed:
            yield from self._detach()

    @property
    def _needed(self) -> bool:
        """Whether the link is still needed: for outcomes, for the open transaction, or by another thread.

        Each thread first notes that it has finished, and then looks here. So the last thread finds that the link is not
        needed any more.
        """
        unsettled = self.unsettled
        return self._closing or self.taking.passing != 0 or bool(unsettled.delivered) or unsettled.in_transaction

    def release_inbox(self) -> None:
        """Give the messages in the inbox back to the broker. The redelivery of a message is counted only if the caller
        already had the message, and a ``recover()`` put it back into the inbox (S30, S31).
        """
        runs: Runs = []
        try:
            self.take_unseen(runs)
            self.unsettled.settle_runs(runs)
        except BaseException:
            self.send_after_all(runs)
            raise

    def finish_if_closed(self) -> None:
        """If the consumer is closed and nothing needs the link any more, end the link, without waiting."""
        if self.state is State.CLOSING and not self._needed:
            self._submit_detach()

    def _detach(self) -> Steps[None]:
        if self.state is State.CLOSED:
            return
        self._submit_detach()
        deadline = Deadline(self._channel.options.close_timeout)
        yield from ended(self._ended, deadline, f"closing the consumer of {self.info.destination.name}")

    def _submit_detach(self) -> None:
        """Submit the command that ends the link. Submit it only once, because several threads may find that the link is
        not needed any more."""
        self.state = State.CLOSED
        if self._leave(self.info.id) is None:
            return
        self.unsettled.flush()
        self.release_inbox()
        if not self.unsettled.has_stale:  # otherwise the session ends the record when the last stale message is settled
            self.end_record()
        self.submit_end(self._ended)

    def submit_end(self, done: Completion[None]) -> None:
        """Submit the command that ends the link. Acknowledgements that wait for the guard's file leave before the link
        ends."""
        self.unsettled.submit_behind(self.close_link, self.info.id, done)

    def close_link(self, number: int, done: Completion[None]) -> None:
        """End the link. Runs on the loop. The name of the subscription is free when the broker has answered (S141)."""
        if self.info.subscription is not None:
            self._subscriptions.release_after(self.info.subscription, done)
        self._channel.provider.close_consumer(number, done)

    def end_record(self) -> None:
        """Write to the ledger that the messages without an outcome will not get one any more."""
        if self.unsettled.record is not None:
            self.unsettled.record.over()

    def abandon(self) -> None:
        """Give all messages back, because the session is closing. The redelivery of messages that were handed out is
        counted; the redelivery of messages in the inbox is not (S30, S31).
        """
        self.state = State.CLOSED
        self.taking.end()
        self.unsettled.flush()
        self.unsettled.settle_batch(self.unsettled.take_back(), Outcome.MODIFIED_FAILED)
        self.end_record()
        self.release_inbox()
        self.arrived()

    def drain(self, timeout: float | None) -> Steps[bool]:
        """End without loss. No more messages are handed out, the running listener finishes, and the acknowledgements
        that wait are sent. The messages that nobody saw go back to the broker, and their redelivery is not counted.
        Messages that the caller holds may still be acknowledged.

        Messages that the broker settled when it sent them cannot go back (S36). If there is no listener, ``receive``
        still hands these messages out. A consumer with a listener drops them.

        Returns:
            False if the running listener or the broker did not finish within ``timeout`` seconds. No message of a
            listener is lost, because it gets its outcome when the listener ends.
        """
        self.check_open()
        deadline = Deadline(timeout)
        keeps = self.info.presettled and self.listening.listener is None
        self.state = State.EBBING if keeps else State.DRAINED
        if not keeps:
            self.taking.stop()
        self.arrived()
        done: Completion[None] = Completion()
        self._channel.submit(self._channel.provider.stop_consumer, self.info.id, done)
        try:
            yield done, deadline.remaining()
            if keeps:  # the broker may have settled messages that it sends only when it gets credit again
                done = Completion()
                self._channel.submit(self._channel.provider.drain, self.info.id, done)
                yield done, deadline.remaining()
        finally:
            if self.state is State.EBBING:
                self.state = State.DRAINED
                self.arrived()
        yield from self.listening.idle(deadline)
        self.unsettled.flush()
        if not keeps:
            self.release_inbox()
        return not deadline.expired and not isinstance(done.error, RequestTimedOutException)


def _handed_back(failing: set[Inbound], inbound: Inbound) -> Outcome:
    return Outcome.MODIFIED_FAILED if inbound in failing or inbound.redeliveries else Outcome.RELEASED

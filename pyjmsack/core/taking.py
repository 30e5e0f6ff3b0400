"""Takes messages from the inbox for the caller: finds the next message, asks whether it may be handed out, and counts
it.

:class:`Taking` has no waits. If Ctrl-C comes between the inbox and the caller, the message goes back to the inbox.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from pyjmsack.core.admission import Admission, Refusal, Why
from pyjmsack.core.inbox import Inbox
from pyjmsack.core.listening import Listening
from pyjmsack.core.state import SessionState
from pyjmsack.core.stats import Counts
from pyjmsack.core.steps import TURN, Deadline, Steps
from pyjmsack.core.tracing import TracedConsumer
from pyjmsack.core.unsettled import PLENTY, Unsettled
from pyjmsack.errors import MessageFormatException
from pyjmsack.loggers import get_logger
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import Outcome

__all__ = ["REFUSED_AT_ONCE", "Taking"]

log = get_logger("pyjmsack")
_FOR_EVER = (Outcome.ACCEPTED, Outcome.REJECTED, Outcome.MODIFIED_FAILED_UNDELIVERABLE)
"""The outcomes after which the broker does not deliver the message to this consumer again."""
TORN = 1000
"""How many damaged messages one consumer gives back, to be delivered again. This consumer refuses any later damaged
message for ever, because the broker may have no limit of deliveries."""

REFUSED_AT_ONCE = 100
"""The largest number of messages that are refused in one search for a message, which also ends ``TURN`` seconds after
its first refusal. Then ``receive`` checks its timeout, the dispatcher of a listener serves the other consumers, and in
asyncio the loop has a turn, because a sender may send such messages without end."""


class Taking:
    """Takes messages for one consumer.

    Args:
        session: the facts about the session that its producers and consumers may read.
        info: id, destination and prefetch of the consumer.
        inbox: the messages that wait.
        admission: decides whether a message may be handed out.
        unsettled: the messages that the caller has not acknowledged.
        listening: the listener, which may still be at work on an earlier delivery of a message.
        counts: the statistics of the consumer.
        trace: makes spans. ``None`` means that there are no spans.
        finish: called after :meth:`stop`, when nothing is on its way to the caller.
    """

    __slots__ = (
        "_admission",
        "_at_work",
        "_channel",
        "_counts",
        "_finish",
        "_here",
        "_id",
        "_inbox",
        "_listening",
        "_name",
        "_over",
        "_prompt",
        "_session",
        "_step",
        "_stopped",
        "_taken",
        "_through",
        "_unsettled",
        "cut",
        "passing",
        "trace",
    )

    def __init__(
        self,
        session: SessionState,
        info: ConsumerInfo,
        inbox: Inbox,
        admission: Admission,
        unsettled: Unsettled,
        listening: Listening,
        counts: Counts,
        trace: TracedConsumer | None,
        finish: Callable[[], None],
    ) -> None:
        self._session = session
        self._channel = session.channel
        self._id = info.id
        self._name = info.destination.name
        self._inbox = inbox
        self._admission = admission
        self._unsettled = unsettled
        self._listening = listening
        self._counts = counts
        self.trace = trace
        self._step = max(1, info.prefetch // 10)
        self._taken = 0
        self._prompt = session.info.ack_mode.presettled
        """Whether the provider must learn at once that messages were taken. True in the mode without acknowledgements,
        because over STOMP the provider acknowledges the messages of this mode when they are taken."""
        self._stopped = False
        self._here = session.channel.runtime.thread
        self._finish = finish
        self._over = False
        self._through: Completion[None] | None = None
        """Completed when the message on its way has reached the caller. A close waits for this completion."""
        self.cut = False
        """Whether the last :meth:`take` ended because it refused many messages. The next message may be good."""
        self.passing = 0
        """The number of the thread that may have a message on its way from the inbox to the caller, without an outcome
        yet; 0 means no thread."""
        self._at_work = False
        """Whether the next message must wait, because a listener still processes an earlier delivery of the same
        message, from a lost connection."""

    def stop(self) -> None:
        """Take no more messages. A message that is on its way to the caller already (``passing``) still arrives."""
        self._stopped = True

    def end(self) -> None:
        """Hand out nothing from now on, because all messages go back to the broker. This includes a message on its way
        to the caller.
        """
        self._stopped = self._over = True

    def through(self, deadline: Deadline) -> Steps[None]:
        """Wait, after :meth:`stop`, until the message on its way has its outcome, because the outcome must leave before
        the session ends. If the calling thread itself has this message, for example because a signal handler closes the
        session, do not wait.
        """
        if self.passing not in (0, self._here()):
            self._through = done = Completion[None]()
            if self.passing:  # otherwise the other thread has finished, perhaps without seeing the completion
                yield done, deadline.remaining()

    @property
    def stalled(self) -> bool:
        """True if no message is handed out now, even if the inbox holds messages: the consumer was stopped, the caller
        holds too many unacknowledged messages, or the next message must wait (for its delay, for an answer of the
        guard's file, for a digest, or for a listener that works on an earlier delivery of it)."""
        inbox, unsettled = self._inbox, self._unsettled
        if self._at_work or inbox.untold or self._stopped:
            return True
        if inbox.delays is not None and inbox.delays.blocks:
            return True
        return unsettled.window is not None and unsettled.window.is_full(len(unsettled.delivered))

    def take(self, refusals: int | None = None) -> Message | None:
        """Take the next message that the caller may have. The message is not acknowledged. Returns ``None`` if there is
        no such message (S22, S156, S111, S166).

        Args:
            refusals: the most messages that are refused in this call, which also ends ``TURN`` seconds after the first
                refusal. Then the call returns ``None``, although more messages may be there. ``None`` means no limit.
        """
        inbound: Inbound | None = None
        until: float | None = None  # the clock is read only after a refusal, because each good message comes here
        self.cut = False
        try:
            while (inbound := self.take_undecoded()) is not None:
                message = self._admitted(inbound)
                if message is not None and not self._over:
                    return message
                if self._over:  # the session gave everything back while this message was decoded
                    return None
                if refusals is not None:
                    refusals -= 1
                    until = monotonic() + TURN if until is None else until
                    if refusals <= 0 or monotonic() >= until:
                        self.cut = True
                        return None
        except BaseException:
            self._put_back(inbound)
            raise
        return None

    def take_undecoded(self) -> Inbound | None:
        """Take the next message, undecoded. :meth:`take` or :meth:`admit` decides whether it may be handed out."""
        self._at_work = False
        if self.stalled:
            return None
        inbox, session, listening = self._inbox, self._session, self._listening
        messages = inbox.messages
        while messages and session.started:
            inbound: Inbound | None = None
            try:
                try:
                    inbound = messages.popleft()
                except IndexError:  # another thread emptied the inbox, for example by a rollback
                    return None
                if inbound.generation <= self._channel.lost_generation and not inbound.settled:
                    # stale: this thread put the message back after the loss, and the broker delivers it again
                    self._count_taken()
                    continue
                if listening.workers is not None and listening.works_on(inbound):
                    self._at_work = True
                    messages.appendleft(inbound)
                    return None
                if inbox.checks and inbox.keeps_back(inbound):
                    if inbox.blocked:
                        return None
                    self._count_taken()  # the message waits outside the inbox, so another one may come
                    self._channel.submit(self._make_room)
                    continue
                self._count_taken()
                return inbound
            except BaseException:
                self._put_back(inbound)
                raise
        return None

    def _count_taken(self) -> None:
        self._taken += 1
        if self._taken % self._step == 0:
            channel = self._channel
            lazy = len(self._inbox.messages) >= PLENTY and not self._prompt
            submit = channel.submit_lazily if lazy else channel.submit
            submit(self._replenish)

    def _replenish(self) -> None:
        """Let the broker send more messages (S53). Runs on the loop, perhaps after :meth:`end`. The inbox is empty then
        because all messages go back, and not because the caller wants more: Classic would send messages that also go
        back, and newer messages would overtake them (S31).
        """
        if not self._over:
            self._channel.provider.replenish(self._id)

    def _make_room(self) -> None:
        """Let another message come, because one waits outside the inbox (S116). Runs on the loop."""
        if not self._over:
            self._channel.provider.make_room(self._id)

    def admit(self, inbound: Inbound) -> Message | None:
        """Decode a message that was taken undecoded, acknowledge it as :meth:`receive_now` does, and return it. Return
        ``None`` if the message may not be handed out.
        """
        message = self._admitted(inbound)
        if message is not None:
            if self.trace is not None:
                self.trace.receive(message, None, accepts=self._unsettled.accepts(inbound))
            self._unsettled.hand_over(message, acknowledge=True)
        return message

    def _admitted(self, inbound: Inbound) -> Message | None:
        decision = self._admission.decide(inbound)
        counts = self._counts
        if isinstance(decision, Refusal):
            self._refuse(inbound, decision)
            return None
        counts.delivered += 1
        if decision._redelivery_count:
            counts.redelivered += 1
        return decision

    def _refuse(self, inbound: Inbound, refusal: Refusal) -> None:
        """Settle, log and count a message that is not handed out."""
        why, outcome, ack_type, error = refusal
        counts, name = self._counts, self._name
        if why is Why.DUPLICATE:
            counts.skipped += 1
            self._unsettled.skip(inbound)
            return
        if why is Why.TORN:
            log.error("a message on %s came damaged, and is given back: %s", name, error)
            counts.torn += 1
            if counts.torn > TORN:
                outcome = Outcome.MODIFIED_FAILED_UNDELIVERABLE
        elif why is Why.BROKEN:
            log.error("a message on %s cannot be decoded and is refused: %s", name, error)
        elif why is Why.NOT_TRANSFORMED and error is not None:
            self._inbox.failed(inbound)
            log.warning("%s", error, exc_info=error.__cause__)
            self._channel.events.report(error)
        elif why is Why.TOO_OFTEN and self._admission.limit is not None and outcome in _FOR_EVER:
            self._admission.limit.done(inbound)
        counts.refused += outcome in _FOR_EVER
        self._unsettled.settle(inbound, outcome, ack_type, joins=False)

    def _put_back(self, inbound: Inbound | None) -> None:
        """Put a message back at the head of the inbox, because Ctrl-C came before the caller had the message. A message
        with an outcome is not put back."""
        if inbound is not None and not inbound.settled and inbound not in self._inbox:
            try:
                self._unsettled.forget(inbound)
            finally:  # also after a second Ctrl-C
                self._inbox.messages.appendleft(inbound)

    def take_for_listener(self) -> Message | None:
        """Take a message for a listener. The message is not acknowledged. In a transacted session it joins the
        transaction."""
        try:
            self.passing = self._here()  # before the look into the inbox, so that a close waits for this message
            message = self.take(REFUSED_AT_ONCE)
            if message is not None:
                self._unsettled.hand_over(message, acknowledge=False)
            return message
        finally:
            self._passed()

    def _passed(self) -> None:
        """Remember that no message is on its way any more, because the caller has the message, or it is back in the
        inbox. Finish a close that began meanwhile.
        """
        self.passing = 0
        if self._stopped:
            if self._through is not None:
                self._through.succeed()
            self._finish()

    def receive_now(self, body_type: type[Any] | None = None, since: int | None = None) -> Message | None:
        """Take a message for ``receive()``. In the automatic modes the message is acknowledged before it is handed out
        (S16).

        Args:
            body_type: the type that the body must have. ``None`` means any type.
            since: when the caller began to wait, in nanoseconds since 1970, for the span of ``receive()``.

        Raises:
            MessageFormatException: the body is not a ``body_type``. In the automatic modes the message is put back
                (S176).
        """
        message: Message | None = None
        fits = True
        try:
            self.passing = self._here()  # before the look into the inbox, so that a close waits for this message
            message = self.take(REFUSED_AT_ONCE)
            if message is None:
                return None
            fits = body_type is None or message.is_body_assignable_to(body_type)
            if fits or not self._unsettled.auto:
                if self.trace is not None:  # before the acknowledgement, so that Ctrl-C here puts the message back
                    self.trace.receive(message, since, accepts=self._unsettled.accepts(message._delivery))
                self._unsettled.hand_over(message, acknowledge=True)
            else:
                self._put_back(message._delivery)
        except BaseException as error:
            if message is None:
                raise
            self._put_back(message._delivery)
            # The interpreter may reach its limit when the acknowledgement is on its way already. Then the caller gets
            # the message, because the broker does not deliver it again.
            if not message._delivery.settled or not isinstance(error, (RecursionError, MemoryError)):
                raise
        finally:
            self._passed()
        if not fits:
            raise MessageFormatException(f"receive_body: {message!r} has no body of type {body_type!r} (S176)")
        return message

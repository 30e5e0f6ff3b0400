"""Decides which of the messages that arrived may be handed out (S105, S111-S113, S156, S166, S192). Expired messages,
duplicates, and messages that were delivered too often are not handed out.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from pyjmsack.core.channel import Channel, RolledBack
from pyjmsack.core.guard import DuplicateGuard
from pyjmsack.core.transformer import received
from pyjmsack.errors import JMSException, MessageFormatException
from pyjmsack.message import BytesMessage, Message
from pyjmsack.spi.envelope import Inbound, NotOneMessageError
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.types import AckType, Outcome
from pyjmsack.uri import RedeliveryPolicy

__all__ = ["Admission", "RedeliveryLimit", "Refusal", "Why"]


class Why(Enum):
    """The reason why a message is not handed out."""

    DUPLICATE = "it was processed before"
    EXPIRED = "its time to live is over"
    TOO_OFTEN = "it was delivered too often"
    TORN = "it came damaged"
    BROKEN = "it cannot be decoded"
    NOT_TRANSFORMED = "consumer_transform raised"


class Refusal(NamedTuple):
    """The reason why a message is not handed out, and the outcome that the message gets."""

    why: Why
    outcome: Outcome
    ack_type: AckType | None = None
    """ActiveMQ's name for the acknowledgement. ``None`` means that the outcome determines the name."""
    error: JMSException | None = None


_DUPLICATE = Refusal(Why.DUPLICATE, Outcome.ACCEPTED)
_EXPIRED = Refusal(Why.EXPIRED, Outcome.MODIFIED_FAILED_UNDELIVERABLE, AckType.EXPIRED)


class RedeliveryLimit:
    """Decides for each message of one consumer whether it was delivered too often (S112).

    The decision is made each time a message is about to be handed out. In a transacted session with
    ``jms.redeliveryPolicy.preDispatchCheck=false``, the decision is made at a rollback instead. So a message that
    other connections got too often is still handed out once by this connection, because this connection has not rolled
    the message back yet. The outcome ``ACCEPTED`` discards the message. With this outcome only the rollbacks of this
    connection count, because a lost connection also raises the count of the broker.

    Args:
        policy: the limit, and the outcome of a message over the limit.
        source: the queue or the subscription of the consumer.
        rolled_back: counts the rollbacks. All consumers of the connection share it, because the broker may deliver the
            message to another consumer after the rollback.
        transacted: whether the session is transacted.
    """

    def __init__(
        self, policy: RedeliveryPolicy, source: Hashable, rolled_back: RolledBack, *, transacted: bool
    ) -> None:
        self._policy = policy
        self._source = source
        self.at_rollback = transacted and not policy.pre_dispatch_check
        """Whether the decision is made at a rollback. Then each message needs its identity."""
        self._counts_itself = self.at_rollback and policy.outcome is Outcome.ACCEPTED
        self._rolled_back = rolled_back

    def exceeded(self, inbound: Inbound) -> bool:
        """Whether this message was delivered too often. Such a message must not be handed out."""
        count = inbound.redelivery_count + inbound.redeliveries
        if not count or inbound.maybe_unseen:  # otherwise a limit of 0 would refuse all that was only prefetched
            return False
        if not self.at_rollback:
            return self._policy.exceeded(count)
        if not (self._counts_itself or self._policy.exceeded(count)):
            return False
        identity = inbound.identity()
        if identity is None:  # a rollback cannot remember this message, so only an outcome that keeps it is safe
            return not self._counts_itself
        times = self._rolled_back.times((self._source, identity))
        return self._policy.exceeded(times) if self._counts_itself else times > 0

    def rolled_back(self, inbound: Inbound, *, by_caller: bool) -> None:
        """Count the rollback of this message, if the count decides whether the message is handed out again.

        Args:
            inbound: the message.
            by_caller: false if a commit failed. Such a rollback does not count before a message is discarded, because
                the caller did not fail.
        """
        if self._counts_itself and not by_caller:
            return
        count = inbound.redelivery_count + inbound.redeliveries + 1
        if self.at_rollback and (self._counts_itself or self._policy.exceeded(count)):
            identity = inbound.identity()
            if identity is not None:
                self._rolled_back.add((self._source, identity))

    def done(self, inbound: Inbound) -> None:
        """Forget the rollbacks of a message that was committed, or that is over the limit and leaves the queue."""
        if self.at_rollback and self._rolled_back:
            identity = inbound.identity()
            if identity is not None:
                self._rolled_back.forget((self._source, identity))


class Admission:
    """Decides whether each message of one consumer may be handed out. This class only decides. The caller settles, logs
    and counts the messages.

    Args:
        channel: the connection, whose options and ``consumer_transform`` hook are used.
        info: the consumer.
        guard: knows the processed messages. ``None`` means that nothing is remembered.
        transacted: whether the session is transacted.
    """

    __slots__ = (
        "_away",
        "_checks_expiry",
        "_destination",
        "_guard",
        "_idle",
        "_too_often",
        "_transforms",
        "_validate_names",
        "limit",
    )

    def __init__(self, channel: Channel, info: ConsumerInfo, guard: DuplicateGuard | None, *, transacted: bool) -> None:
        options = channel.options
        policy = options.redelivery_policy_for(info.destination)
        self._destination = info.destination
        self._away = channel.runtime.away
        self._idle = channel.runtime.idle_acknowledger
        self._guard = guard
        self._transforms = channel.transforms
        self._validate_names = options.validate_property_names
        self._checks_expiry = options.local_message_expiry and not info.browser
        self._too_often = Refusal(Why.TOO_OFTEN, policy.outcome, AckType.POISON)
        self.limit: RedeliveryLimit | None = None
        if policy.max_redeliveries is not None and not info.browser:
            self.limit = RedeliveryLimit(policy, info.source, channel.rolled_back, transacted=transacted)

    @property
    def identifies(self) -> bool:
        """Whether the identity of each message is needed, because rollbacks are counted."""
        return self.limit is not None and self.limit.at_rollback

    def delivered_too_often(self, inbound: Inbound) -> bool:
        """Return whether a message was delivered too often, so that it is not handed out."""
        return self.limit is not None and self.limit.exceeded(inbound)

    def read(self, inbound: Inbound) -> None:
        """Decode a large message, so that :meth:`decide` is quick. Called on a thread."""
        try:
            message = inbound.to_message(self._destination)
            with suppress(BaseException):  # of a codec; whoever reads the body gets this error
                message._prepare()
            with suppress(MessageFormatException):  # whoever reads a property gets this error
                _ = message._properties  # the properties may have as many bytes as the body
            inbound.read = message
        except BaseException as error:  # decide() raises it, and then the message is refused, or the caller is told
            inbound.read = error

    def decide(self, inbound: Inbound) -> Message | Refusal:
        """Return the message if it may be handed out, and otherwise the refusal: the reason, and the outcome."""
        redeliveries = inbound.redeliveries
        read, inbound.read = inbound.read, None
        guard = self._guard
        if guard is not None and guard.alert and guard.knows(inbound):
            return _DUPLICATE
        if self._checks_expiry and inbound.expired(time.time_ns() // 1_000_000):
            return _EXPIRED
        if self.delivered_too_often(inbound):
            return self._too_often
        try:
            if isinstance(read, BaseException):
                raise read
            message = inbound.to_message(self._destination) if read is None else read
        except NotOneMessageError as error:
            return Refusal(Why.TORN, Outcome.MODIFIED_FAILED, error=error)
        except MessageFormatException as error:
            return Refusal(Why.BROKEN, Outcome.MODIFIED_FAILED_UNDELIVERABLE, error=error)
        if self._transforms.received is not None:
            try:
                message = received(self._transforms.received, message, self._destination)
            # the broker delivers the message again, and the redelivery is counted, as when a listener raises (S18)
            except JMSException as error:
                return Refusal(Why.NOT_TRANSFORMED, Outcome.MODIFIED_FAILED, error=error)
        message._redelivery_count = inbound.redelivery_count + redeliveries
        message._delivery = inbound
        message._validate_names = self._validate_names
        if self._idle is not None:  # core/unsettled.py replaces it if the message needs an acknowledgement
            message._ack = self._idle
        if isinstance(message, BytesMessage):
            message._away = self._away
        return message

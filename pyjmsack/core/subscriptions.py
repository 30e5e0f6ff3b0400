"""The names of subscriptions that are in use on a connection, and their users (S141-S145)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyjmsack.core.channel import Channel
from pyjmsack.core.steps import Steps, answered
from pyjmsack.destination import Destination, Topic
from pyjmsack.errors import IllegalStateException, InvalidDestinationException, JMSException
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import Subscription
from pyjmsack.spi.spellings import check_storable

__all__ = ["Subscriptions", "check_name", "check_topic"]


def check_name(name: object) -> None:
    """Raise an error unless ``name`` can name a subscription. It must not contain ``|``, which separates the words of a
    link name (S143, S145).

    Raises:
        JMSException: the name is empty, is not a string, or contains ``|``.
    """
    if not isinstance(name, str) or not name.strip() or "|" in name:
        raise JMSException(f"subscription name {name!r}: expected a non-empty string without '|' (S143)")


def check_topic(topic: object) -> None:
    """Raise an error unless ``topic`` can have subscriptions that outlive a consumer or are shared (S141).

    Raises:
        InvalidDestinationException: ``topic`` is not a topic, or it is a temporary topic.
    """
    if not isinstance(topic, Topic) or topic.is_temporary:
        raise InvalidDestinationException(f"{topic!r}: a subscription by name needs a topic that is not temporary")


class _Use:
    """The subscribers of one name: a single subscriber, or several that share the subscription."""

    def __init__(self, shared: bool, topic: Destination | None, selector: str | None) -> None:
        self.shared = shared
        self.topic = topic
        self.selector = selector
        self.given = 0
        """How many subscribers got a number. No number is used twice while anybody uses the name (S145)."""
        self.live: list[Subscription] = []
        self.leaving: list[Subscription] = []
        """The subscribers in ``live`` that are leaving: the broker was asked to end them, and has not answered yet."""
        self.waiting: list[Callable[[], None]] = []
        """Claims that are repeated when all subscribers have left."""

    def refusal(self, wanted: Subscription, topic: Destination | None, selector: str | None) -> str | None:
        """Return the reason why another subscriber cannot join, or ``None`` if the subscriber can join."""
        if self.shared != wanted.shared:
            return "is in use on this connection; shared and unshared subscribers of one name exclude each other (S143)"
        if not self.shared:
            return "has an active consumer, or a closed consumer with messages that are not acknowledged (S141)"
        if self.topic != topic:
            return f"belongs to topic {self.topic} as long as it has active consumers (S143)"
        if self.selector != selector:
            return f"has the selector {self.selector!r} as long as it has active consumers (S143)"
        return None


class Subscriptions:
    """The named subscriptions of one connection. The methods that return ``Steps`` (``core/steps.py``) run in the
    thread or task of the caller. All other methods run on the loop, one call at a time.

    A durable subscription and one that is not durable may have the same name, because they are two subscriptions. A
    shared and an unshared durable subscription may not have the same name at the same time.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._uses: dict[tuple[str, bool], _Use] = {}

    def take(self, wanted: Subscription, topic: Destination | None, selector: str | None) -> Steps[Subscription]:
        """Take a name. If the last user of the name is leaving, wait until the user has left.

        Raises:
            IllegalStateException: the name is in use (S141, S143).
            InvalidDestinationException: this broker cannot store the name together with the client id.
        """
        channel = self._channel
        check_storable("the name of the subscription", f"{wanted.name}:{channel.info.client_id}", channel.metadata)
        claimed: Completion[Subscription] = Completion()
        what = f"waiting for the end of another consumer of {wanted.name}"
        try:  # before the command leaves, because Ctrl-C may come at any step
            channel.submit(self.claim, wanted, topic, selector, claimed)
            return (yield from answered(claimed, channel.deadline(), what))
        except BaseException:
            if claimed.error is None:
                channel.submit(self.withdraw, claimed)
            raise

    def unsubscribe(self, name: str) -> Steps[None]:
        """Delete a durable subscription; see :meth:`Session.unsubscribe`."""
        check_name(name)
        channel = self._channel
        channel.require("durable-subscription")
        taken = yield from self.take(Subscription(name, durable=True, shared=False), None, None)
        done: Completion[None] = Completion()
        done.add_callback(lambda _: self.release(taken))
        channel.submit(channel.provider.unsubscribe, name, done)
        # if the caller gives up, the next user of the name waits for the broker's answer
        undo = partial(channel.submit, self.release_after, taken, done)
        yield from answered(done, channel.deadline(), f"unsubscribing {name}", undo=undo)

    def claim(
        self, wanted: Subscription, topic: Destination | None, selector: str | None, done: Completion[Subscription]
    ) -> None:
        """Take the name. ``done`` gets the subscription with its number, or an ``IllegalStateException``.

        If the last user of the name is just leaving, the claim waits until the user has left.
        """
        if done.done:  # the caller gave up while the claim waited
            return
        key = (wanted.name, wanted.durable)
        use = self._uses.setdefault(key, _Use(wanted.shared, topic, selector))
        refusal = use.refusal(wanted, topic, selector) if use.live else None
        if refusal is None:
            use.given += 1
            subscription = replace(wanted, number=use.given)
            use.live.append(subscription)
            done.succeed(subscription)
        elif len(use.leaving) == len(use.live):
            use.waiting.append(lambda: self.claim(wanted, topic, selector, done))
        else:
            done.fail(IllegalStateException(f"subscription {wanted.name!r} {refusal}"))

    def withdraw(self, claimed: Completion[Subscription]) -> None:
        """Withdraw a claim, because nobody waits for it any more."""
        claimed.fail(IllegalStateException("the caller gave up while it waited for the name of the subscription"))
        if claimed.error is None:
            self.release(claimed.result())

    def release_after(self, subscription: Subscription, ended: Completion[None]) -> None:
        """Remember that a subscriber is leaving, and release its name when ``ended`` is done."""
        use = self._uses.get((subscription.name, subscription.durable))
        if use is not None and any(other is subscription for other in use.live):
            use.leaving.append(subscription)
        ended.add_callback(lambda _: self.release(subscription))

    def release(self, subscription: Subscription) -> None:
        """Remember that a subscriber has left. A second call does nothing."""
        key = (subscription.name, subscription.durable)
        use = self._uses.get(key)
        if use is None:
            return
        use.live = [other for other in use.live if other is not subscription]
        use.leaving = [other for other in use.leaving if other is not subscription]
        if not use.live:
            del self._uses[key]
        if len(use.leaving) == len(use.live):
            waiting, use.waiting = use.waiting, []
            for claim in waiting:
                claim()

"""Named subscriptions in AMQP. This module makes the name and the source of the link of a subscriber, in the same form
as Qpid JMS (S145). The source says from where messages come."""

from __future__ import annotations

from dataclasses import replace

from pyjmsack.errors import IllegalStateException, InvalidDestinationException
from pyjmsack.providers.amqp.engine.performatives import Attach, Source, Target
from pyjmsack.providers.amqp.engines import AmqpEngine, SessionEnd
from pyjmsack.providers.amqp.link import AmqpLink
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import Subscription

__all__ = ["AmqpLookup", "described_source", "durable_link_name", "link_name", "still_there"]

_UNSETTLED_STATE = 2
"""The value of the field ``durable`` that makes the broker keep the messages and their delivery states (3.5.5)."""


def link_name(subscription: Subscription, explicit_client_id: bool) -> str:
    """Return the name of the link of this subscriber, which is unique on its connection (S145)."""
    number = subscription.number
    if not subscription.durable:
        return f"{subscription.name}|{'' if explicit_client_id else 'global-'}volatile{number}"
    name = durable_link_name(subscription.name, explicit_client_id)
    if number == 1:
        return name
    return f"{name}|{number}" if explicit_client_id else f"{name}{number}"


def durable_link_name(name: str, explicit_client_id: bool) -> str:
    """Return the link name of the first subscriber of a durable subscription."""
    return name if explicit_client_id else f"{name}|global"


def described_source(source: Source, subscription: Subscription, explicit_client_id: bool) -> Source:
    """Return the source of a subscription's link. The source tells the broker whether the subscription is durable,
    shared and global.

    A global subscription belongs to no client id (3.5.3, 3.5.6).
    """
    words = ["topic"]
    if subscription.durable:
        source = replace(source, durable=_UNSETTLED_STATE, expiry_policy="never", distribution_mode="copy")
    if subscription.shared:
        words.append("shared")
        if not explicit_client_id:
            words.append("global")
    return replace(source, capabilities=tuple(words))


def still_there(name: str, error: BaseException | None) -> BaseException | None:
    """Return the error if a subscription that should be deleted still exists.

    Args:
        name: the name of the subscription.
        error: the result of the search for the subscription. ``InvalidDestinationException`` means that the
            subscription is gone.
    """
    if isinstance(error, InvalidDestinationException):
        return None
    return error or IllegalStateException(
        f"durable subscription {name!r} has a consumer on another connection, so the broker kept it (S141)"
    )


class AmqpLookup(AmqpLink):
    """Looks for a durable subscription. For this, the class attaches a link with the name of the subscription, without
    topic and selector, and ends the link again (S141).

    If a subscription belongs to no client id, the broker finds it only if the Attach frame says that the subscription
    is shared and global, as in Qpid JMS. If ``delete`` is true, the link is closed, which deletes the subscription.
    Otherwise the link is only detached.
    """

    def __init__(
        self, engine: AmqpEngine, session: SessionEnd, name: str, *, explicit_client_id: bool, delete: bool
    ) -> None:
        attach = Attach(
            link_name=durable_link_name(name, explicit_client_id),
            handle=0,
            role=True,
            snd_settle_mode=0,
            target=Target(),
            desired_capabilities=() if explicit_client_id else ("shared", "global"),
        )
        super().__init__(engine, session, attach, f"durable subscription {name!r}")
        self._delete = delete
        self._name = name

    def run(self, done: Completion[None]) -> None:
        """Open the link, and end it again.

        ``done`` fails with ``InvalidDestinationException`` if there is no subscription of this name.
        """
        attached: Completion[None] = Completion()
        attached.add_callback(lambda _: self._found(attached.error, done))
        self.open(attached)

    def _attach(self) -> None:
        self._link = self._session.attach_receiver(self._description, self)

    def _found(self, error: BaseException | None, done: Completion[None]) -> None:
        if isinstance(error, InvalidDestinationException):
            unknown = InvalidDestinationException(
                f"there is no durable subscription {self._name!r} (S141)", error_code=error.error_code
            )
            unknown.__cause__ = error
            done.fail(unknown)
        elif error is not None:
            done.fail(error)
        else:
            self.close(done)

    def _part(self) -> None:
        self._link.detach(closed=self._delete)

    def _attached(self) -> bool:
        return self._link.remote.source is not None

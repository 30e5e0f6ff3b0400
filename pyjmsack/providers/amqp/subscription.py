"""Named subscriptions in AMQP's words: link names and sources, as Qpid JMS writes them (S145)."""

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
"""How durable: messages and what is known of them (3.5.5)."""


def link_name(subscription: Subscription, explicit_client_id: bool) -> str:
    """Return the name by which the broker knows this subscriber's link, unique on its connection (S145)."""
    number = subscription.number
    if not subscription.durable:
        return f"{subscription.name}|{'' if explicit_client_id else 'global-'}volatile{number}"
    name = durable_link_name(subscription.name, explicit_client_id)
    if number == 1:
        return name
    return f"{name}|{number}" if explicit_client_id else f"{name}{number}"


def durable_link_name(name: str, explicit_client_id: bool) -> str:
    """Return the link name of a durable subscription's first subscriber."""
    return name if explicit_client_id else f"{name}|global"


def described_source(source: Source, subscription: Subscription, explicit_client_id: bool) -> Source:
    """Return the source that says what the subscription is: for how long, whose, shared or not (3.5.3, 3.5.6)."""
    words = ["topic"]
    if subscription.durable:
        source = replace(source, durable=_UNSETTLED_STATE, expiry_policy="never", distribution_mode="copy")
    if subscription.shared:
        words.append("shared")
        if not explicit_client_id:
            words.append("global")
    return replace(source, capabilities=tuple(words))


def still_there(name: str, error: BaseException | None) -> BaseException | None:
    """Return the error for a subscription that should have been deleted. ``None`` if a look for the subscription found
    none."""
    if isinstance(error, InvalidDestinationException):
        return None
    return error or IllegalStateException(
        f"durable subscription {name!r} has a consumer on another connection, so the broker kept it (S141)"
    )


class AmqpLookup(AmqpLink):
    """Looks for a durable subscription: attaches a link with its name, without topic and selector, and ends the link
    (S141).

    A subscription that belongs to no client id is found only if the attach says that it is shared and global, as Qpid
    JMS does. With ``delete`` the link is closed, which deletes the subscription; otherwise it is detached.
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
        """Attach and part; ``done`` fails with ``InvalidDestinationException`` if the broker has none of the name."""
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

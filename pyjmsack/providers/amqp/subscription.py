"""Named subscriptions in AMQP's words: link names and sources, as Qpid JMS writes them (S145)."""

from __future__ import annotations

from proton import Data, Receiver, Terminus, symbol

from pyjmsack.errors import IllegalStateException, InvalidDestinationException
from pyjmsack.providers.amqp.link import AmqpLink
from pyjmsack.providers.amqp.proton_engine import AmqpEngine
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import Subscription

__all__ = ["AmqpLookup", "describe_source", "durable_link_name", "link_name", "still_there"]


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


def describe_source(source: Terminus, subscription: Subscription, explicit_client_id: bool) -> None:
    """Say what the subscription is: for how long, whose, and shared or not (AMQP 1.0 3.5.3, 3.5.6)."""
    words = ["topic"]
    if subscription.durable:
        source.durability = Terminus.DELIVERIES
        source.expiry_policy = Terminus.EXPIRE_NEVER
        source.distribution_mode = Terminus.DIST_MODE_COPY
    if subscription.shared:
        words.append("shared")
        if not explicit_client_id:
            words.append("global")
    capabilities = source.capabilities
    capabilities.clear()
    capabilities.put_array(False, Data.SYMBOL)
    capabilities.enter()
    for word in words:
        capabilities.put_symbol(symbol(word))
    capabilities.exit()


def still_there(name: str, error: BaseException | None) -> BaseException | None:
    """Return what is wrong with a subscription that should be gone, from the outcome of a look for it."""
    if isinstance(error, InvalidDestinationException):
        return None
    return error or IllegalStateException(
        f"durable subscription {name!r} has a consumer on another connection, so the broker kept it (S141)"
    )


class AmqpLookup(AmqpLink):
    """Looks for a durable subscription: attaches by its name, without saying what it is of, and parts (S141).

    One that belongs to no client id is found only if the attach asks for what it is, as Qpid JMS does. With ``delete``
    the link is closed, which deletes the subscription, else detached.
    """

    def __init__(
        self, engine: AmqpEngine, link: Receiver, name: str, *, explicit_client_id: bool, delete: bool
    ) -> None:
        super().__init__(engine, link, f"durable subscription {name!r}")
        self._delete = delete
        self._name = name
        self._global = not explicit_client_id
        link.source.type = Terminus.UNSPECIFIED
        link.snd_settle_mode, link.rcv_settle_mode = link.SND_UNSETTLED, link.RCV_FIRST

    def run(self, done: Completion[None]) -> None:
        """Attach and part; ``done`` fails with ``InvalidDestinationException`` if the broker has none of the name."""
        attached: Completion[None] = Completion()
        attached.add_callback(lambda _: self._found(attached.error, done))
        self.open(attached)

    def _attach(self) -> None:
        if self._global:
            self._engine.attach(self._link, ("shared", "global"))
        else:
            super()._attach()

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
        if self._delete:
            self._link.close()
        else:
            self._link.detach()

    def _attached(self) -> bool:
        return bool(self._link.remote_source.type != Terminus.UNSPECIFIED)

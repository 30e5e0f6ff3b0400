"""Describes and checks a consumer or browser before the broker is asked for it.

Each error that the client can find by itself is raised here.
"""

from __future__ import annotations

from pyjmsack.core.channel import Channel
from pyjmsack.core.temporaries import Temporaries
from pyjmsack.destination import Destination
from pyjmsack.errors import InvalidDestinationException, InvalidSelectorException, UnsupportedFeatureException
from pyjmsack.loggers import get_logger
from pyjmsack.selector import check_selector
from pyjmsack.spi.demands import check_consumer
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo, SessionInfo, Subscription
from pyjmsack.spi.spellings import check_destination_name
from pyjmsack.types import AckMode
from pyjmsack.uri import DestinationOptions, parse_destination_options

__all__ = ["Sources", "check_destination"]

log = get_logger("pyjmsack")
MIN_BROWSER_PREFETCH = 1000
"""The least number of messages that a browser asks for at a time. A smaller prefetch is raised to this number."""


def check_destination(destination: object, metadata: ConnectionMetadata | None) -> None:
    """Raise an error if the argument cannot be used as a destination.

    Raises:
        InvalidDestinationException: the argument is not a destination; or it is a temporary destination that was
            deleted; or it names several destinations, and the broker would take the text as one name; or the broker
            cannot store the name (S67, S68).
    """
    if not isinstance(destination, Destination):
        raise InvalidDestinationException(f"{destination!r} is not a destination; use session.create_queue(name) (S67)")
    if destination.is_temporary and getattr(destination, "deleted", False):
        raise InvalidDestinationException(f"temporary destination {destination.name} was deleted (S68)")
    check_destination_name(destination, metadata)


class Sources:
    """Describes the consumers of one session.

    Args:
        channel: the connection.
        info: id and acknowledge mode of the session.
        temporaries: the temporary destinations of the connection.
    """

    __slots__ = ("_channel", "_info", "_temporaries")

    def __init__(self, channel: Channel, info: SessionInfo, temporaries: Temporaries) -> None:
        self._channel = channel
        self._info = info
        self._temporaries = temporaries

    def check(self, destination: Destination, selector: str | None) -> tuple[DestinationOptions, str | None]:
        """Check whether this destination can be consumed or browsed, before the broker is asked.

        Returns:
            The options of the destination, and the selector for the broker. A blank selector means none (S187).

        Raises:
            InvalidSelectorException: the selector is wrong, unless ``jms.validateSelector`` is off.
            InvalidDestinationException: as for :func:`check_destination`, or because the destination is a temporary one
                of another connection (S130).
        """
        check_destination(destination, self._channel.metadata)
        self._temporaries.check_consumable(destination)
        options = parse_destination_options(destination)
        selector = selector if selector is not None else options.selector
        if selector is not None and not isinstance(selector, str):
            raise InvalidSelectorException(f"selector {selector!r}: expected a text")
        if selector is None or not selector.strip():
            return options, None
        if self._channel.options.validate_selector:
            check_selector(selector)
        return options, selector

    def describe(
        self,
        destination: Destination,
        selector: str | None,
        no_local: bool,
        subscription: Subscription | None,
        *,
        browser: bool,
        pulls: bool,
    ) -> tuple[ConsumerInfo, DestinationOptions]:
        """Return the description of a consumer for the broker, and the options of the destination.

        Args:
            destination: a queue or a topic, with its own options.
            selector: the selector of the caller. If it is given, the selector of the destination is not used.
            no_local: whether messages of this connection are left out.
            subscription: the name and kind of the subscription, for a named subscriber; otherwise ``None``.
            browser: whether the messages stay in the queue.
            pulls: whether the consumer is used with ``receive``. If false, a prefetch of 0 is raised to 1, because
                prefetch 0 works only with ``receive``.

        Raises:
            UnsupportedFeatureException: this protocol or this broker lacks a feature that the consumer needs.
            InvalidSelectorException, InvalidDestinationException: as for :meth:`check`.
        """
        options, selector = self.check(destination, selector)
        prefetch = self._prefetch(destination, options.prefetch, browser, subscription)
        info = self._consumer_info(destination, options, prefetch if pulls else max(1, prefetch), browser)
        info.selector, info.subscription = selector, subscription
        info.no_local = no_local or bool(options.no_local)
        self._check_features(info)
        return info, options

    def _check_features(self, info: ConsumerInfo) -> None:
        """Raise an error if a consumer asks for a feature that this protocol or this broker does not have (S119, S144,
        S147).
        """
        metadata, subscription = self._channel.the_metadata, info.subscription
        check_consumer(metadata, info)
        if info.pending_limit and "pending-limit" not in metadata.capabilities:
            log.warning("%s: consumer.maximumPendingMessageLimit has no effect at this broker", info.destination.name)
        if subscription is not None and subscription.shared and info.no_local:
            raise UnsupportedFeatureException("no_local is not available for shared subscriptions (S147)")

    def _consumer_info(
        self, destination: Destination, options: DestinationOptions, prefetch: int, browser: bool
    ) -> ConsumerInfo:
        """Return the description of a consumer. An option of the destination overrides the same option of the
        connection."""
        jms = self._channel.options
        presettled = browser or self._info.ack_mode.presettled
        presettled = presettled or jms.presettle_policy.consumer(destination, self._info.transacted)
        exclusive = jms.exclusive_consumer and not destination.is_topic and not browser
        retroactive = jms.use_retroactive_consumer if options.retroactive is None else options.retroactive
        limit = options.maximum_pending_message_limit
        limit = jms.prefetch_policy.maximum_pending_message_limit if limit is None else limit
        return ConsumerInfo(
            self._channel.next_id(),
            self._info.id,
            destination,
            prefetch,
            browser=browser,
            presettled=presettled,
            exclusive=exclusive if options.exclusive is None else options.exclusive,
            priority=options.priority,
            retroactive=retroactive and destination.is_topic,
            pending_limit=limit if destination.is_topic else 0,
            expected_message_size=options.expected_message_size,
        )

    def _prefetch(
        self, destination: Destination, given: int | None, browser: bool, subscription: Subscription | None
    ) -> int:
        policy = self._channel.options.prefetch_policy
        durable = subscription is not None and subscription.durable
        auto = self._info.ack_mode is AckMode.AUTO_ACKNOWLEDGE
        prefetch = policy.for_destination(destination, given, durable=durable, browser=browser, auto=auto)
        # A browser may prefetch more than asked, because it takes no message from other consumers. A browser must
        # prefetch at least this number, because Artemis 2.56 is unreliable when the credit of a browser runs out
        # (S134).
        return max(prefetch, MIN_BROWSER_PREFETCH) if browser else prefetch

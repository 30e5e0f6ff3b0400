"""The window of a consumer: how much the broker sends before it waits for ACKs.

Messages that the caller holds fill the window. When the window is full, the client opens another subscription beside
the first, so that the consumer does not stall (S53).
"""

from __future__ import annotations

import logging

from pyjmsack.errors import ConnectionLostException
from pyjmsack.providers.stomp.subscriptions import Shared, Subscriptions
from pyjmsack.spi.aside import Aside
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import InboundSink
from pyjmsack.spi.resources import ConsumerInfo

__all__ = ["Window"]

log = logging.getLogger("pyjmsack.stomp")

_NO_SUBSCRIPTION = "AMQ339016"
"""Artemis ends the connection with this code if it refuses a subscription. While sends are on their way, its ERROR
does not say which request it answers."""
_MOST_REFUSING = 1000
"""The most queues that ``_refusing`` contains. If there are more, the oldest is forgotten, and a consumer of it asks
again."""
_refusing: dict[tuple[str, str], None] = {}
"""The broker and the name of each queue that refused another subscription of a consumer.

All connections of the process share this, because Artemis ends a connection with each refusal: a consumer that failover
restores, or that the program opens again, must not ask again. Loops on several threads use this without a lock; at
worst one of them asks once more."""

_STALL = 0.02
"""Seconds after which a full window is checked again."""
_FULL = 0.9
"""A window in bytes counts as full when this part of it is used, because we know only roughly how the broker counts a
frame."""


class Window:
    """Watches the windows of the subscriptions of one consumer, and makes more room when they are full.

    Args:
        shared: the common state of the connection.
        info: describes the consumer.
        sink: the inbox. While messages are in it, the caller does not hold the whole window.
        subscriptions: their messages fill the window.
        aside: says when so many copies are on their way that the consumer must not ask for more messages.
        serial: True if the session acknowledges each message before it hands out the next one. Then prefetch 1 needs no
            second subscription.
    """

    def __init__(
        self,
        shared: Shared,
        info: ConsumerInfo,
        sink: InboundSink,
        subscriptions: Subscriptions,
        aside: Aside,
        *,
        serial: bool,
    ) -> None:
        self._shared = shared
        self._info = info
        self._sink = sink
        self._subscriptions = subscriptions
        self._aside = aside
        size = shared.dialect.window_size(info) if info.prefetch > 1 else 1
        self.size = int(size * _FULL) if subscriptions.by_bytes else size
        """The number of messages or bytes at which a subscription is full."""
        self.widens = not info.presettled and not (serial and info.prefetch <= 1)
        """True if the consumer gets more room when it is full."""
        self._place = shared.place, info.destination.name
        self._timer: Timer | None = None
        self._warned = False

    @property
    def is_full(self) -> bool:
        """True if no subscription has room."""
        subscriptions = self._subscriptions.all
        return bool(subscriptions) and all(subscription.used >= self.size for subscription in subscriptions)

    def watch(self) -> None:
        """Check after a moment whether the window is still full."""
        if self._timer is None:
            self._timer = self._shared.connector.call_later(_STALL, self._look)

    def _look(self) -> None:
        """Check the window again, because it was full a moment ago. If it is still full although the inbox is empty,
        make more room, because the caller holds all messages.
        """
        self._timer = None
        if self._subscriptions.stopped or self._shared.engine.failed is not None or not self.is_full:
            return
        if self._sink.buffered():
            self.watch()
        else:
            self._widen()
            self._shared.engine.flush()

    def pull(self) -> None:
        """Ask for one message (S50). Usually a message is on its way already. If the caller holds the messages of all
        subscriptions, open another subscription."""
        if not self._subscriptions.stopped and self.is_full and not self._sink.buffered():
            self._widen()

    def _widen(self) -> None:
        info = self._info
        if self._subscriptions.volatile:
            self._acknowledge_early()
        elif self._aside.busy:
            self.watch()
        elif self._place in _refusing:
            self._warn_of_stall("the broker refused another subscription for it before")
        elif not self._shared.dialect.routed and (info.subscription is not None or info.exclusive):
            self._warn_of_stall("this broker allows it one subscription only")
        else:
            self._subscriptions.subscribe(self._subscription_opened)

    def _subscription_opened(self, error: BaseException | None) -> None:
        """Handle the answer to a request for one more subscription. If the broker refused it, for example because the
        queue has a limit on its consumers, go on with the present subscriptions."""
        if error is None or (isinstance(error, ConnectionLostException) and error.error_code != _NO_SUBSCRIPTION):
            return
        _refusing.pop(self._place, None)
        _refusing[self._place] = None
        while len(_refusing) > _MOST_REFUSING:
            _refusing.pop(next(iter(_refusing)), None)
        self._warn_of_stall(str(error))

    def _acknowledge_early(self) -> None:
        """Acknowledge the messages that the caller holds, to make room for more. The messages are safe in this client
        as long as their subscription lives."""
        outstanding = self._subscriptions.outstanding
        handed_out = len(outstanding) - self._sink.buffered()
        for inbound in [*outstanding][: max(0, handed_out)]:
            self._subscriptions.acknowledge(inbound)
            inbound.subscription = None

    def _warn_of_stall(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning(
                "the consumer of %s holds as many unacknowledged messages as its prefetch allows (%d), and gets no more"
                " until some are acknowledged (S56): %s",
                self._info.destination.name,
                self._info.prefetch,
                why,
            )

    def cancel(self) -> None:
        """Stop watching a full window, because the consumer or its connection ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

"""The window of a consumer, which limits how much the broker sends before it waits for ACKs (acknowledgements).

Messages that the caller holds fill the window. When the window is full, the client opens another subscription beside
the first, so that the consumer does not stall (S53).
"""

from __future__ import annotations

from itertools import islice

from pyjmsack.errors import ConnectionLostException, JMSException
from pyjmsack.loggers import get_logger
from pyjmsack.providers.stomp.subscriptions import Shared, StompSubscription, Subscriptions
from pyjmsack.spi.aside import Aside
from pyjmsack.spi.engine import Timer
from pyjmsack.spi.envelope import InboundSink
from pyjmsack.spi.resources import ConsumerInfo
from pyjmsack.spi.stomp_names import COPY

__all__ = ["Window"]

log = get_logger("pyjmsack.stomp")

_NO_SUBSCRIPTION = "AMQ339016"
"""The code with which Artemis ends the connection when it refuses a subscription. The code is needed, because an
ERROR frame that comes while sends are on their way does not say which request was refused."""
_MOST_REFUSING = 1000
"""The largest number of queues in ``_refusing``. If more are added, the oldest one is forgotten, and a consumer of this
queue asks again."""
_refusing: dict[tuple[str, str], None] = {}
"""The broker and the name of each queue that refused another subscription of a consumer.

All connections of the process share this dictionary, because Artemis ends a connection with each refusal. Therefore a
consumer must not ask again after failover has restored it, or after the program has opened it again. Loops on several
threads use this dictionary without a lock. At worst, one of them asks once more.
"""

_GROUPS = (b"\nJMSXGroupID:", f"\n{COPY}JMSXGroupID:".encode(), b"\n_AMQ_GROUP_ID:")
"""The beginnings of the header lines that name the group of a message. The second one is the copy that this library
sends, because Classic drops the original."""
_LOOKED_AT = 100
"""The largest number of messages that are searched for a group, because the loop searches them."""
_STALL = 0.02
"""Seconds after which a full window is checked again."""
_LONG_STALL = 0.2
"""The same, if the inbox has ``_FEW`` messages or more, because the caller needs some time for them."""
_FEW = 50
_MOST_BEYOND = 100
"""The broker may send this number of messages more than the window allows. One message more ends the connection."""
_MOST_WINDOWS = 4
"""If the window is counted in bytes, the broker may send this number of windows, and ``_MOST_BYTES_BEYOND``. One
message more ends the connection. The limit is wide, because this client knows only roughly how the broker counts."""
_MOST_BYTES_BEYOND = 1 << 20


class Window:
    """Watches the windows of the subscriptions of one consumer, and makes more room when they are full.

    Args:
        shared: the common state of the connection.
        info: describes the consumer.
        sink: the inbox. While messages wait in the inbox, the caller does not hold the whole window.
        subscriptions: the subscriptions of the consumer, whose messages fill the window.
        aside: counts the copies for the dead-letter queue. While too many of these copies are on their way, the
            consumer must not ask for more messages.
        serial: True if the session acknowledges each message before it hands out the next one. In this case, a consumer
            with prefetch 1 needs no second subscription.
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
        self._serial = serial
        self.measure()
        self._place = shared.place, info.destination.name
        self._timer: Timer | None = None
        self._warned = False
        self._warned_of_groups = False

    def measure(self) -> None:
        """Compute the limits again, because the number of messages that the broker sends ahead has changed."""
        subscriptions = self._subscriptions
        size = subscriptions.window
        self.limit = _MOST_WINDOWS * size + _MOST_BYTES_BEYOND if subscriptions.by_bytes else size + _MOST_BEYOND
        """If a subscription holds more messages or bytes than this, and the broker sends another message, the
        connection ends."""
        self.widens = not self._info.presettled and not (self._serial and subscriptions.prefetch <= 1)
        """True if the window gets more room when it is full."""

    def overrun(self, subscription: StompSubscription) -> JMSException:
        """Return the error for a broker that sent more than :attr:`limit` allows."""
        unit = "bytes" if self._subscriptions.by_bytes else "messages"
        return ConnectionLostException(
            f"the broker sent more messages of {self._info.destination.name!r} than the window of the consumer allows:"
            f" {subscription.used:,} {unit} wait for an acknowledgement"
        )

    @property
    def is_full(self) -> bool:
        """True if no subscription has room."""
        subscriptions = self._subscriptions.all
        return bool(subscriptions) and all(one.used >= self._subscriptions.full_at for one in subscriptions)

    def watch(self) -> None:
        """Check after a moment whether the window is still full."""
        if self._timer is None:
            pause = _STALL if self._sink.buffered() < _FEW else _LONG_STALL
            self._timer = self._shared.connector.call_later(pause, self._look)

    def _look(self) -> None:
        """Check the window again, because it was full a moment ago. If the window is still full and the inbox is empty,
        the caller holds all messages, and this method makes more room."""
        self._timer = None
        if self._subscriptions.stopped or self._shared.engine.failed is not None or not self.is_full:
            return
        if self._sink.buffered():
            self.watch()
        else:
            self._widen()
            self._shared.engine.flush()

    def pull(self) -> None:
        """Ask for one message (S50). Usually a message is on its way already. If the caller holds messages that fill
        all subscriptions, open another subscription."""
        if not self._subscriptions.stopped and self.is_full and not self._sink.buffered():
            self._widen()

    def make_room(self) -> None:
        """Open another subscription if the messages that the caller put aside fill the window (S116).

        Artemis would end the connection, with all its other consumers, if the queue has a limit on its consumers.
        Therefore a consumer of Artemis waits.
        """
        if not self._shared.dialect.routed:
            self.pull()

    def _widen(self) -> None:
        info = self._info
        if self._aside.busy:
            self.watch()
        elif self._subscriptions.volatile:
            self._acknowledge_early()
            if self.is_full:
                self._stalled("a consumer of a topic has only one subscription")
        elif self._place in _refusing:
            self._stalled("the broker has already refused another subscription for a consumer of this queue")
        elif not self._shared.dialect.routed and (info.subscription is not None or info.exclusive):
            self._stalled("this broker allows this consumer only one subscription")
        else:
            self._warn_of_lost_groups()
            if not self._warned and self._holds_groups():
                self._warn_of_stall(
                    "the broker keeps a group at one subscription, so another one gets other groups only"
                )
            self._subscriptions.subscribe(self._subscription_opened)

    def _holds_groups(self) -> bool:
        """Return True if one of the oldest messages that the caller holds belongs to a group (S191)."""
        oldest = islice(self._subscriptions.outstanding, _LOOKED_AT)
        return any(inbound.head.find(name) >= 0 for inbound in oldest for name in _GROUPS)

    def _subscription_opened(self, error: BaseException | None) -> None:
        """Handle the answer to a request for one more subscription. If the broker refused the subscription, for example
        because the queue has a limit on its consumers, go on with the present subscriptions."""
        if error is None or (isinstance(error, ConnectionLostException) and error.error_code != _NO_SUBSCRIPTION):
            return
        _refusing.pop(self._place, None)
        _refusing[self._place] = None
        while len(_refusing) > _MOST_REFUSING:
            _refusing.pop(next(iter(_refusing)), None)
        self._stalled(str(error))

    def _stalled(self, why: str) -> None:
        """End the consumer if nothing can make room in its window, because only messages that were set aside fill it
        (S166). Otherwise the caller can make room, so warn the caller.

        Args:
            why: why the consumer gets no other subscription.
        """
        subscriptions = self._subscriptions
        if subscriptions.all and all(subscriptions.is_lost(one) for one in subscriptions.all):
            self._aside.end(
                f", and its window (prefetch {subscriptions.prefetch:,}) has no room for others, because {why}"
            )
        else:
            self._warn_of_stall(why)

    def _warn_of_lost_groups(self) -> None:
        """Warn if messages that were set aside fill a subscription. The broker sends the rest of a message group to no
        other subscription. Classic may hide the group, so this method cannot ask whether there is one (S191)."""
        subscriptions = self._subscriptions
        if not self._warned_of_groups and any(subscriptions.is_lost(one) for one in subscriptions.all):
            self._warned_of_groups = True
            log.error(
                "messages of %s that can neither be handed out nor removed fill a window of its consumer (prefetch %d)."
                " If they belong to message groups, the consumer gets no more of these groups until it ends and the"
                " messages are removed; a larger prefetch leaves room (S166, S191)",
                self._info.destination.name,
                subscriptions.prefetch,
            )

    def _acknowledge_early(self) -> None:
        """Acknowledge the messages that the caller holds, to make room for more. This client delivers these messages
        again if necessary, as long as the subscription lives. A message that has no usable id stays."""
        outstanding = self._subscriptions.outstanding
        handed_out = len(outstanding) - self._sink.buffered()
        for inbound in [*outstanding][: max(0, handed_out)]:
            if inbound.ack is not None:
                self._subscriptions.acknowledge(inbound)
                inbound.subscription = None

    def _warn_of_stall(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            aside = self._aside.count
            log.warning(
                "the consumer of %s holds as many unacknowledged messages as its prefetch allows (%d)%s, and gets no"
                " more until some are acknowledged (S56): %s",
                self._info.destination.name,
                self._info.prefetch,
                f", of which {aside} {'were' if aside > 1 else 'was'} set aside (S166)" if aside else "",
                why,
            )

    def cancel(self) -> None:
        """Stop watching a full window, because the consumer or its connection ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

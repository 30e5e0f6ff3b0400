"""Limits how many sends of a producer may be under way, and lets callers wait for room, in both faces (S65)."""

from __future__ import annotations

from collections.abc import Callable

from pyjmsack.core.channel import Channel
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.core.tracing import TracedSend
from pyjmsack.core.transaction import Transaction
from pyjmsack.errors import ResourceAllocationException, SendTimedOutException
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Encoder, Outbound, Payload
from pyjmsack.spi.resources import ProducerInfo
from pyjmsack.uri import parse_destination_options

__all__ = ["WINDOW", "Done", "Send", "SendWindow", "describe"]

Done = Callable[["BaseException | None"], None]

WINDOW = 4096
"""The largest number of sends of one producer that the broker has not confirmed. At this number the next send waits,
because otherwise the sends to a broker that stopped answering would fill the memory. The number is four times the
credit that the brokers grant, so no send waits here while the broker answers."""


class Send(Outbound):
    """One send of a producer, and the code that gets its result."""

    __slots__ = ("_then", "_transaction", "_window", "trace")

    def __init__(
        self,
        window: SendWindow,
        transaction: Transaction | None,
        payload: Payload,
        encoder: Encoder,
        message: Message,
        then: Done,
    ) -> None:
        self.producer_id = window.producer_id
        self.payload = payload
        self.encoder = encoder
        self.notifies = self.left = False
        self.message_id = message._message_id
        self.presettled = window.presettled
        self.transacted = transaction is not None
        self._window = window
        self._then = then
        self._transaction = transaction
        self.trace: TracedSend | None = None

    def done(self, error: BaseException | None) -> None:
        """Take the broker's answer: first tell the caller, then the transaction, which may be waiting to commit."""
        self._window.on_done(len(self.payload))
        if self.trace is not None:
            self.trace.answered(error)
        self._then(error)
        if self._transaction is not None:
            self._transaction.on_sent(error)


class SendWindow:
    """Counts the sends of one producer.

    Each counter is written by only one side, the caller or the loop. The caller counts the sends that it submitted, and
    the limit uses this count. The loop counts the sends that it gave to the provider, and the sends that were answered.
    The loop's counts are always exact, because Ctrl-C may interrupt the caller before it counts, but never the loop.
    """

    __slots__ = (
        "_answered",
        "_byte_limit",
        "_bytes_settled",
        "_channel",
        "_handed_over",
        "_name",
        "_rooms",
        "_send",
        "_settled",
        "bytes_submitted",
        "presettled",
        "producer_id",
        "submitted",
    )

    def __init__(self, channel: Channel, info: ProducerInfo) -> None:
        self._channel = channel
        self._name = describe(info)
        self._send = channel.provider.send
        self.producer_id = info.id
        self.presettled = info.presettled
        self.submitted = self.bytes_submitted = 0
        self._handed_over = self._settled = self._bytes_settled = 0
        own = None if info.destination is None else parse_destination_options(info.destination).window_size
        self._byte_limit = channel.options.producer_window_size if own is None else own or None
        """``producer.windowSize`` of the destination, or ``jms.producerWindowSize`` if the destination does not set it;
        ``None`` means no limit."""
        self._rooms: list[Completion[None]] = []
        """The callers that wait for room in the window; in asyncio any number of tasks."""
        self._answered: list[Completion[None]] = []

    @property
    def full(self) -> bool:
        """Whether the window of unconfirmed sends is used up, in messages or in bytes (S65)."""
        if self.submitted - self._settled >= WINDOW:
            return True
        return self._byte_limit is not None and self.bytes_submitted - self._bytes_settled >= self._byte_limit

    # -- on the way out -----------------------------------------------------------------------------------------

    def hand_over(self, outbound: Outbound) -> None:
        """Count a send, and give it to the provider. Runs on the loop."""
        self._handed_over += 1
        self._send(outbound)

    def hand_over_transacted(self, outbound: Send) -> None:
        """Count a send and give it to the provider. The transaction counts the send, too, because the commit waits for
        the answer to each send. Runs on the loop.
        """
        assert outbound._transaction is not None  # only transacted producers use this method
        outbound._transaction.submitted += 1
        self.hand_over(outbound)

    def on_done(self, size: int) -> None:
        """Count a send of ``size`` bytes as answered. Runs on the loop."""
        self._settled += 1
        self._bytes_settled += size
        if self._rooms and self.submitted - self._settled <= WINDOW // 2 and self._has_half_of_its_bytes():
            _wake(self._rooms)
        if self._answered and self._settled >= self._handed_over:
            _wake(self._answered)

    def _has_half_of_its_bytes(self) -> bool:
        return self._byte_limit is None or self.bytes_submitted - self._bytes_settled <= self._byte_limit // 2

    # -- waiting ------------------------------------------------------------------------------------------------

    def check_room(self) -> None:
        """Raise an error if the window is full, for a caller that cannot wait (S65).

        Raises:
            ResourceAllocationException: the window is full. The text says how much is unconfirmed, and what to do.
        """
        if self.full:
            limit = f"{WINDOW} messages"
            if self._byte_limit is not None:
                limit += f" or {self._byte_limit} bytes"
            raise ResourceAllocationException(
                f"send_async to {self._name}: nothing was sent, because {self._unconfirmed} are unconfirmed, and the"
                f" limit is {limit}; await some of the futures first, or await send(), which waits for room (S65)"
            )

    def wait_for_room(self, closed: Callable[[], bool]) -> Steps[None]:
        """Wait until half of the window is free, or the producer is ``closed``.

        Raises:
            SendTimedOutException: the broker gave no credit within ``jms.sendTimeout`` (S66).
        """
        deadline = Deadline(self._channel.options.send_timeout, "jms.sendTimeout")
        while self.full and not closed():
            room: Completion[None] = Completion()
            self._rooms.append(room)
            if not self.full:
                return
            if not (yield room, deadline.remaining()) and deadline.expired:
                raise SendTimedOutException(
                    f"send to {self._name}: {self._unconfirmed} are unconfirmed, and the broker took no message"
                    f" within {deadline}"
                )

    @property
    def _unconfirmed(self) -> str:
        messages, size = self.submitted - self._settled, self.bytes_submitted - self._bytes_settled
        return f"{messages} messages with {size} bytes in total"

    def when_answered(self, answered: Completion[None]) -> None:
        """Complete ``answered`` when each send so far has its answer. Runs on the loop."""
        if self._settled >= self._handed_over:
            answered.succeed()
        else:
            self._answered.append(answered)


def describe(info: ProducerInfo) -> str:
    """Return the name of the destination, for error texts."""
    return "any destination" if info.destination is None else info.destination.name


def _wake(waiting: list[Completion[None]]) -> None:
    """Wake all waiting callers. Each caller checks again whether it can go on."""
    while waiting:
        waiting.pop(0).succeed()

"""The differences between the brokers. One table contains the names, windows and subscriptions, and the effects of ACK
and NACK, the frames that acknowledge and refuse a message.

STOMP 1.2 says nothing about destination names, prefetch, durable subscriptions or dead letters, and each broker has
its own headers for them. To an unknown broker, this client sends only headers that every broker understands, and
nothing that could lose a message.

To add a broker, add its dialect to the table here, its features to ``spi/features.py``, and the headers that it adds to
a message to ``spi/stomp_names.py``. Without the last step users see these headers as properties.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from pyjmsack.destination import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from pyjmsack.errors import InvalidDestinationException, MessageFormatException
from pyjmsack.providers.stomp.frames import Limits
from pyjmsack.providers.stomp.header_lines import escape, is_forged, raw_header, unescape
from pyjmsack.selector.artemis import stomp_filter
from pyjmsack.spi.resources import ConsumerInfo, Subscription

__all__ = ["StompDialect", "dialect_of", "parse_destination"]

_OWN_ID: Final = re.compile(rb"ID(?::|\\c).+-\d{1,19}-\d{1,19}-\d{1,19}(?:(?::|\\c)-?\d{1,18}){4}")
"""An id that ActiveMQ Classic made. It consists of host, port, time and numbers."""
_USUAL_ID: Final = re.compile(rb".*[^\\](?:(?::|\\c)-?[0-9]{1,18}){3}", re.DOTALL)
"""An id that :func:`_is_readable` surely accepts. This pattern is quicker than the function."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that ActiveMQ Classic cuts off at the ends of the name in ``reply-to``."""
_SHOWN: Final = 80
"""The largest number of characters of a name in an error text."""
_ROUTING = {False: "ANYCAST", True: "MULTICAST"}


@dataclass(frozen=True, slots=True)
class StompDialect:
    """The way in which one broker speaks STOMP."""

    broker: str
    """The key of the broker in ``pyjmsack.spi.features.BROKERS``."""
    queue: str = "/queue/"
    """The prefix of the name of a queue. The prefix is empty if a header names the kind of the destination instead."""
    topic: str = "/topic/"
    reply_queue: str = "/queue/"
    """The prefix of the name of a queue in the header ``reply-to``. This prefix is never empty, because no header names
    the kind of the reply destination."""
    reply_topic: str = "/topic/"
    routed: bool = False
    """True if ``destination-type`` and ``subscription-type`` name the kind of a destination. Without these headers,
    Artemis takes each name for the name of a topic, confirms the messages that are sent to this topic, and drops them.
    """
    window_in_bytes: bool = False
    window: tuple[str, ...] = ("activemq.prefetchSize", "prefetch-count")
    """The headers that set the window, which limits the unacknowledged messages or their bytes."""
    durable: str = "activemq.subscriptionName"
    """The name of the header that contains the name of a durable subscription."""
    no_local: str = "activemq.noLocal"
    transacted_acks: bool = False
    """Whether an ACK (acknowledgement) with a header ``transaction`` takes effect at the COMMIT. Artemis applies such
    an ACK at once."""
    auto_acks: bool = False
    """Whether ``ack:auto`` acknowledges only messages that the broker sent. On Artemis ``ack:auto`` also acknowledges
    earlier messages that the broker never sent, because it could not convert them."""
    nacks: bool = False
    """Whether a NACK (the frame that refuses a message) makes a dead letter of a persistent message. On Artemis NACK
    loses the message."""
    own_ids: bool = False
    """Whether an ACK must name a message by an id that the broker can read. Classic writes the id that an AMQP or
    OpenWire client chose into the frame, and ends the connection of a client that sends an ACK with such an id."""
    errors_end: bool = True
    """Whether an ERROR frame is always the last frame of its connection."""
    receipts_cover: bool = False
    """Whether the RECEIPT of a SEND confirms the earlier SENDs of the connection too. On Artemis this is true for two
    reasons. Artemis sends the RECEIPT only when everything that its session has begun to store is on the disk. And a
    refused SEND ends the connection, so no later RECEIPT comes."""
    bare_text: bool = False
    """Whether the broker may send a text with a NUL without a content-length. Classic does so with the text of an
    OpenWire client."""
    hides_jmsx: bool = False
    """Whether a message arrives without the ``JMSXGroupID``, ``JMSXGroupSeq`` and ``JMSXUserID`` of its sender."""
    pauses_at: int | None = None
    """The number of messages without an acknowledgement after which a broker may send the next ones only after 30
    seconds, although the window has room. Classic does so (``maxPageSize``). ``None`` means that the broker does not.
    """
    pending_limit: bool = False
    """Whether a subscriber may limit the number of messages that wait for it. If more messages wait, the broker drops
    the oldest ones."""
    typed_text: bool = False
    """Whether the header ``amq-msg-type:text`` says that a body with ``content-length`` is text."""
    limits: Limits | None = None
    """The limits of the broker for one frame. The broker closes the connection if a frame is larger."""
    delays: bool = False
    """Whether a delayed message carries the length of its delay in ``AMQ_SCHEDULED_DELAY``. Other brokers read the end
    of the delay from ``AMQ_SCHEDULED_TIME``."""
    longest_head: int | None = None
    """The largest number of bytes of header lines that the broker can store. For each line, four bytes are added to its
    length. Artemis keeps the lines as UTF-16 in one record of its journal, which has 490 KiB by default, and ends the
    connection if the lines are longer."""
    dead_letters: str = "DLQ"
    expired: str = "DLQ"
    queue_prefix: str = ""
    """The prefix that the user sets for the names of queues (``jms.queuePrefix``). Names that the broker made do not
    get this prefix."""
    topic_prefix: str = ""

    def acknowledges(self, head: bytes) -> bool:
        """Return True if an ACK (acknowledgement) can name the message with these header lines."""
        if self.bare_text and is_forged(head):
            return False
        if self.own_ids:
            message_id = raw_header(head, b"\nmessage-id:")
            if head.find(b"\nJMS_AMQP_") >= 0:
                return _OWN_ID.fullmatch(message_id or b"") is not None
            if message_id is not None:
                return _USUAL_ID.fullmatch(message_id) is not None or _is_readable(message_id)
        return head.find(b"\nack:") >= 0 or head.find(b"\nmessage-id:") >= 0

    def name(self, destination: Destination) -> str:
        """Return the value of the header ``destination``, without the escapes of STOMP."""
        if destination.is_temporary:
            return destination.name
        return (self.topic if destination.is_topic else self.queue) + self.prefixed(destination)

    def check_temporary(self, destination: Destination) -> None:
        """Refuse a temporary destination whose name comes from another protocol. Classic would take such a name for the
        name of an ordinary destination, from which nobody receives.

        Raises:
            InvalidDestinationException: Classic does not know the name over STOMP.
        """
        name = destination.name
        if destination.is_temporary and self.broker.startswith("classic-") and not name.startswith(tuple(_TEMPORARY)):
            raise InvalidDestinationException(
                f"ActiveMQ Classic does not know {name[:_SHOWN]!r} over STOMP, and the message would be lost; use the"
                " name in the reply_to of a message that came over STOMP (S68)"
            )

    def prefixed(self, destination: Destination) -> str:
        """Return the name of a destination with the prefix of the user."""
        return (self.topic_prefix if destination.is_topic else self.queue_prefix) + destination.name

    def send_lines(self, destination: Destination) -> str:
        """Return the header lines that name a destination in a SEND frame."""
        line = f"destination:{escape(self.name(destination))}\n"
        return f"{line}destination-type:{_ROUTING[destination.is_topic]}\n" if self.routed else line

    def reply_to(self, destination: Destination) -> str:
        """Return the value of the header ``reply-to``, without the escapes of STOMP. The value also names the kind of
        the destination.

        Raises:
            MessageFormatException: this broker would change the name.
        """
        if self.routed and destination.is_temporary:
            return f"temp-{'topic' if destination.is_topic else 'queue'}://{destination.name}"
        if destination.is_temporary:
            return destination.name
        if not self.routed and destination.name != destination.name.strip(_BLANKS):
            raise MessageFormatException(
                f"reply_to {destination.name[:_SHOWN]!r}: ActiveMQ Classic cuts off the blanks at the ends of this name"
                " over STOMP; expected a name without them, or a connection over AMQP (S160)"
            )
        return (self.reply_topic if destination.is_topic else self.reply_queue) + self.prefixed(destination)

    def window_size(self, info: ConsumerInfo) -> int:
        """Return the window of one subscription, in messages or bytes. The window has room for at least one message
        (S52)."""
        return max(1, info.prefetch) * (info.expected_message_size if self.window_in_bytes else 1)

    def subscribe_lines(self, info: ConsumerInfo) -> str:
        """Return the header lines of a SUBSCRIBE frame, except ``id`` and ``receipt``.

        Raises:
            UnsupportedFeatureException: this broker cannot have ``no_local`` and this selector together (S147).
        """
        destination = info.destination
        name = self.name(destination)
        ack = "auto" if info.presettled and self.auto_acks else "client-individual"
        lines = [f"destination:{escape(name)}", f"ack:{ack}"]
        if self.routed:
            lines.append(f"subscription-type:{_ROUTING[destination.is_topic]}")
        # Artemis reads 0 as one message at a time, and any positive number as bytes
        size = 0 if self.window_in_bytes and info.prefetch <= 1 else self.window_size(info)
        lines += [f"{header}:{size}" for header in self.window]
        lines += self._options(info)
        return "\n".join(lines) + "\n"

    def _options(self, info: ConsumerInfo) -> list[str]:
        lines = []
        if info.selector:
            text = stomp_filter(info.selector, no_local=info.no_local) if self.routed else info.selector
            lines.append(f"selector:{escape(text)}")
        if info.subscription is not None and info.subscription.durable:
            lines.append(self.durable_line(info.subscription))
        if info.no_local:
            lines.append(f"{self.no_local}:true")
        if info.browser:
            lines.append("browser:true")
        if info.exclusive:
            lines.append("activemq.exclusive:true")
        if info.priority is not None:
            lines.append(f"activemq.priority:{info.priority}")
        if info.retroactive:
            lines.append("activemq.retroactive:true")
        if info.pending_limit and self.pending_limit:
            lines.append(f"activemq.maximumPendingMessageLimit:{info.pending_limit}")
        return lines

    def durable_line(self, subscription: Subscription) -> str:
        """Return the header line that names a durable subscription."""
        return f"{self.durable}:{escape(subscription.name)}"


def _is_readable(message_id: bytes) -> bool:
    """Return True if ActiveMQ Classic can read the id that it has written into the header line of a message.

    For an ACK, Classic reads the text of the id again. Behind each of the last three colons there must be a number of
    64 bits. The part before them may be anything: it has the name of a host, and a prefix that a program may choose.
    """
    try:
        numbers = unescape(message_id.decode("utf-8", "replace")).rsplit(":", 3)[1:]
    except MessageFormatException:
        return True  # the frame has another fault, and is refused for it
    return all(_NUMBER.fullmatch(number) and -(2**63) <= int(number) < 2**63 for number in numbers)


_ARTEMIS: Final = StompDialect(
    "artemis",
    queue="",
    topic="",
    reply_queue="queue://",  # the form of Java clients, which all clients and brokers read
    reply_topic="topic://",
    routed=True,
    window_in_bytes=True,
    receipts_cover=True,
    window=("consumer-window-size",),
    durable="durable-subscription-name",
    no_local="no-local",
    longest_head=220_000,
    expired="ExpiryQueue",
)


def _classic(broker: str) -> StompDialect:
    return StompDialect(
        broker,
        window=("activemq.prefetchSize",),
        transacted_acks=True,
        auto_acks=True,
        nacks=True,
        own_ids=True,
        errors_end=False,
        bare_text=True,
        hides_jmsx=True,
        pauses_at=200,
        pending_limit=True,
        typed_text=True,
        delays=True,
        limits=Limits(body=104857600, headers=1000, header_line=10240),
        dead_letters="ActiveMQ.DLQ",
        expired="ActiveMQ.DLQ",
    )


_DIALECTS: Final = {
    dialect.broker: dialect
    for dialect in (_ARTEMIS, _classic("classic-5"), _classic("classic-6"), StompDialect("unknown"))
}


def dialect_of(broker: str, queue_prefix: str = "", topic_prefix: str = "") -> StompDialect:
    """Return the dialect of a broker (a key of ``pyjmsack.spi.features.BROKERS``), with the user's prefixes."""
    dialect = _DIALECTS[broker]
    if not queue_prefix and not topic_prefix:
        return dialect
    return replace(dialect, queue_prefix=queue_prefix, topic_prefix=topic_prefix)


_PREFIXES: dict[str, type[Destination]] = {
    "/queue/": Queue,
    "/topic/": Topic,
    "queue://": Queue,
    "topic://": Topic,
}
_TEMPORARY: dict[str, type[Destination]] = {
    "/temp-queue/": TemporaryQueue,
    "/remote-temp-queue/": TemporaryQueue,
    "/temp-topic/": TemporaryTopic,
    "/remote-temp-topic/": TemporaryTopic,
}
"""The prefixes of ActiveMQ Classic's names of temporary destinations. A name with such a prefix is used as it is."""
_JAVA_TEMPORARY: dict[str, tuple[type[Destination], str]] = {
    "temp-queue://": (TemporaryQueue, "/remote-temp-queue/"),
    "temp-topic://": (TemporaryTopic, "/remote-temp-topic/"),
}
"""The prefixes of names of temporary destinations, in messages from clients of the other protocols. For each prefix,
the class of the destination, and the prefix that ActiveMQ Classic has instead."""


def parse_destination(text: str, dialect: StompDialect, kind: type[Destination]) -> Destination:
    """Return the destination that a ``destination`` or ``reply-to`` header of any client names.

    Args:
        text: the header's value, not empty.
        kind: the kind of the destination if the name has no prefix.
    """
    for prefix, prefixed in _PREFIXES.items():
        if text.startswith(prefix) and text[len(prefix) :].strip():
            return prefixed._literal(text[len(prefix) :])
    for prefix, prefixed in _TEMPORARY.items():
        if text.startswith(prefix):
            return prefixed._literal(text)
    for prefix, (prefixed, ours) in _JAVA_TEMPORARY.items():
        name = text[len(prefix) :]
        if text.startswith(prefix) and name.strip():
            return prefixed._literal(name if dialect.routed else ours + name)
    return kind._literal(text)

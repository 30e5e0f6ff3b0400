"""A channel of kombu: declares, sends, consumes and acknowledges."""

# kombu has no type annotations, and some types that a checker infers from its source are too narrow for our overrides
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from itertools import count
from traceback import clear_frames
from typing import Any, ClassVar
from uuid import uuid4

from amqp.protocol import queue_declare_ok_t
from kombu.exceptions import ChannelError
from kombu.messaging import Consumer
from kombu.transport import virtual

from pyjmsack import ConnectionLostException, DeliveryMode, Destination, Queue
from pyjmsack.kombu.compressed import unpacked
from pyjmsack.kombu.connection import Connection
from pyjmsack.kombu.decoding import check_body
from pyjmsack.kombu.envelope import DUPLICATE_ID, ROUTING_KEY, from_jms, reply_destination, to_envelope, to_jms
from pyjmsack.kombu.names import ExchangeKind, queue_name
from pyjmsack.kombu.qos import QoS
from pyjmsack.kombu.receiving import Binding, Delivery, Feed
from pyjmsack.kombu.refused import NOT_A_TASK, check_task, is_worker, reason
from pyjmsack.kombu.window import Window
from pyjmsack.loggers import get_logger

__all__ = ["Channel"]

log = get_logger("pyjmsack.kombu")
_PREDECLARED = {f"amq.{kind.value}": kind.value for kind in ExchangeKind}
_TRANSIENT = 1
_CLOSED = "the channel is closed; its unacknowledged messages are delivered again"
_MARK = "pyjmsack_mark"
"""The name of a property that has the same value in each try of one ``publish`` of kombu. Only the value is sent, as
the duplicate mark of the message."""


class Received(virtual.Message):
    """A message of kombu. It unpacks a compressed body itself, because kombu would unpack the body without a limit of
    the size.

    Args:
        payload: headers, properties and body.
        channel: the channel that received the message.
        kwargs: passed on to kombu.

    Raises:
        MessageFormatException: the body is JSON with too many values.
        Exception: the body cannot be decoded or unpacked. It is raised here, because kombu would only keep the error,
            and a worker of Celery would then acknowledge the message.
    """

    def __init__(self, payload: dict[str, Any], channel: Channel, **kwargs: Any) -> None:
        headers: dict[str, Any] = payload["headers"]
        others = {name: value for name, value in headers.items() if name != "compression"}
        super().__init__({**payload, "headers": others}, channel=channel, **kwargs)
        if self.errors:
            self._reraise_error()
        if method := headers.get("compression"):
            self.body: Any = unpacked(self.body, method, channel.largest)
            self.headers["compression"] = method
        if self.body:
            check_body(self.body, self.content_type)


class Channel(virtual.Channel):
    """A channel of kombu: the object by which kombu and Celery send and receive.

    Args:
        connection: the connection that :meth:`Transport.establish_connection` returned.
        kwargs: passed on to kombu.
    """

    Message = Received
    supports_fanout = True
    do_restore = False
    body_encoding: ClassVar[str | None] = None
    from_transport_options = ("deadletter_queue",)

    connection: Connection | None
    closed: bool
    _qos: QoS

    def __init__(self, connection: Connection, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._feeds: dict[str, tuple[Feed, Any, bool]] = {}
        self.largest = connection.settings.largest
        """The largest number of bytes of a body that is unpacked."""
        self._tags = count(1)
        self._tag_prefix = uuid4().hex
        self._qos = QoS(self)

    def checked(self) -> Connection:
        """Return the connection, after a check that the channel and the connection are open.

        Raises:
            ConnectionLostException: the connection or the channel is closed. The broker delivers its unacknowledged
                messages again.
        """
        connection = self.connection
        if connection is None or self.closed:
            raise ConnectionLostException(_CLOSED)
        connection.check()
        return connection

    @property
    def state(self) -> Any:
        """What was declared on the connection.

        Raises:
            ConnectionLostException: kombu has replaced the connection of the channel.
        """
        if self.connection is None:
            raise ConnectionLostException(_CLOSED)
        return self.connection.state

    @property
    def feeds(self) -> list[Feed]:
        """The consumers of this channel."""
        return [feed for feed, _, _ in [*self._feeds.values()]]

    @property
    def consumed(self) -> list[str]:
        """The names of the queues that this channel consumes, one for each consumer."""
        return [feed.queue for feed in self.feeds]

    # -- declaring ----------------------------------------------------------------------------------------------

    def queue_declare(self, queue: str | None = None, passive: bool = False, **kwargs: Any) -> Any:
        """Declare a queue. The broker makes the queue at its first message or consumer.

        Args:
            queue: the name; ``None`` or empty means a new name.
            passive: whether to count the messages instead of declaring the queue.
            kwargs: ``exclusive`` or ``auto_delete`` make a queue that ends with its last consumer. All other arguments
                are ignored.

        Returns:
            Name, number of messages and number of consumers. The messages are counted if ``passive`` is set. The number
            of consumers is always 0.

        Raises:
            ConnectionLostException: the channel or the connection is closed.
        """
        queue = queue or f"amq.gen-{uuid4()}"
        if passive:
            return queue_declare_ok_t(queue, self._size(queue), 0)
        temporary = bool(kwargs.get("exclusive") or kwargs.get("auto_delete"))
        self.checked().queues.declare(queue, temporary=temporary)
        return queue_declare_ok_t(queue, 0, 0)

    def queue_bind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Bind a queue to an exchange. The queue then gets messages that are sent to the exchange.

        Args:
            queue: the name of the queue.
            exchange: the name of an exchange that was declared on this connection; ``None`` or empty means
                ``amq.direct``.
            routing_key: which messages of the exchange the queue gets. A topic exchange allows ``*`` and ``#``.
            arguments: kept for kombu; the broker does not get them.
            kwargs: ignored.

        Raises:
            ChannelError: the exchange is not declared, or this broker cannot bind the queue with this routing key.
            JMSException: the broker refused the binding.
        """
        exchange = exchange or "amq.direct"
        connection = self.checked()
        binding = Binding(self._kind(exchange), exchange, routing_key or "")
        connection.call(connection.queues.bind(queue, binding))
        if not self.state.has_binding(queue, *binding.name):
            self.state.binding_declare(queue, *binding.name, arguments)

    def queue_unbind(
        self,
        queue: str,
        exchange: str | None = None,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """End a binding. Messages that the queue got by the binding stay in the queue.

        Args:
            queue: the name of the queue.
            exchange: the name of the exchange; ``None`` or empty means ``amq.direct``.
            routing_key: the routing key of the binding.
            arguments, kwargs: ignored.

        Raises:
            ConnectionLostException: the channel or the connection is closed.
        """
        connection, name = self.checked(), (exchange or "amq.direct", routing_key or "")
        connection.call(connection.queues.unbind(queue, name))
        self.state.binding_delete(queue, *name)

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **kwargs: Any) -> Any:
        """Remove a queue with its messages.

        Args:
            queue: the name of the queue.
            if_unused: ignored.
            if_empty: whether a queue with messages stays.
            kwargs: ignored.

        Returns:
            The number of messages that were removed. ``None`` if the queue stays.

        Raises:
            ConnectionLostException: the channel or the connection is closed.
        """
        if if_empty and self._size(queue):
            return None
        connection = self.checked()
        removed = connection.call(connection.queues.delete(queue))
        self.state.queue_bindings_delete(queue)
        return removed

    def exchange_delete(self, exchange: str, if_unused: bool = False, nowait: bool = False) -> None:
        """End all bindings of this connection to an exchange.

        Args:
            exchange: the name of the exchange.
            if_unused, nowait: ignored.
        """
        for binding in [key for key in self.state.bindings if key.exchange == exchange]:
            self.queue_unbind(binding.queue, exchange, binding.routing_key)
        self.state.exchanges.pop(exchange, None)

    def after_reply_message_received(self, queue: str) -> None:
        """Do nothing, because a queue for replies ends with its consumer.

        Args:
            queue: ignored.
        """

    def list_bindings(self) -> Iterator[tuple[str, str, str]]:
        """Return queue, exchange and routing key of each binding of this connection."""
        return ((key.queue, key.exchange, key.routing_key) for key in [*self.state.bindings])

    def _kind(self, exchange: str) -> ExchangeKind:
        declared = self.state.exchanges.get(exchange)
        kind = declared["type"] if declared is not None else _PREDECLARED.get(exchange)
        if kind is None:
            raise ChannelError(
                f"NOT_FOUND - no exchange {exchange!r}: declare it on this connection first, because its type decides"
                " where its messages go",
                (60, 40),
                "Channel.basic_publish",
                "404",
            )
        try:
            return ExchangeKind(kind)
        except ValueError:
            known = ", ".join(one.value for one in ExchangeKind)
            raise ChannelError(f"exchange {exchange!r} has the type {kind!r}; this transport has {known}") from None

    def _size(self, queue: str) -> int:
        connection = self.checked()
        return connection.call(connection.queues.size(queue))

    def _purge(self, queue: str) -> int:
        connection = self.checked()
        return connection.call(connection.queues.purge(queue))

    # -- sending ------------------------------------------------------------------------------------------------

    def basic_publish(self, message: dict[str, Any], exchange: str, routing_key: str, **kwargs: Any) -> None:
        """Send a message to an exchange. The call returns when the broker has the message, unless the URL has
        ``jms.forceAsyncSend=true``.

        Args:
            message: headers, properties and body, as kombu prepared them.
            exchange: the name of an exchange that was declared on this connection; empty means the queue that
                ``routing_key`` names.
            routing_key: chooses the queues.
            kwargs: ignored.

        Raises:
            ChannelError: the exchange is not declared.
            ConnectionLostException: the connection was lost before the broker answered.
            JMSException: the broker refused the message.
        """
        connection, body = self.checked(), message["body"]
        mark = message["properties"].setdefault(_MARK, uuid4().hex)
        self._inplace_augment_message(message, exchange, routing_key)
        shown = {**message, "properties": {k: v for k, v in message["properties"].items() if k != _MARK}}
        outgoing = to_jms(shown, body) if connection.settings.envelope == "jms" else to_envelope(shown)
        outgoing.properties[DUPLICATE_ID] = mark
        if exchange:
            outgoing.properties[ROUTING_KEY] = routing_key or ""
        how = self._how(connection, message)
        for destination in self._destinations(exchange or "", routing_key or ""):
            connection.send(destination, outgoing, how)

    def _destinations(self, exchange: str, routing_key: str) -> list[Destination]:
        if not exchange:
            return [reply_destination(routing_key)]
        queues = self.checked().queues
        found: list[Destination] = [queues.topic(self._kind(exchange), exchange, routing_key)]
        if queues.routes_locally:
            found += [Queue(queue_name(name)) for name in queues.durable_queues(exchange, routing_key)]
        return found

    def _how(self, connection: Connection, message: dict[str, Any]) -> dict[str, Any]:
        """Return delivery mode, priority, time to live and delay of a message."""
        properties = message["properties"]
        transient = properties.get("delivery_mode") == _TRANSIENT
        how: dict[str, Any] = {
            "delivery_mode": DeliveryMode.NON_PERSISTENT if transient else DeliveryMode.PERSISTENT,
            "priority": self._get_message_priority(message),
        }
        expiration = properties.get("expiration")
        if expiration is not None:
            how["time_to_live"] = max(int(expiration), 1) / 1000
        eta = message["headers"].get("eta") if connection.settings.native_eta else None
        if eta is not None and (delay := _seconds_until(eta)) > 0:
            how["delivery_delay"] = delay
        return how

    def encode_body(self, body: str | bytes, encoding: str | None = None) -> tuple[Any, str | None]:
        """Return a body in a form that JSON can hold, and the name of its encoding. A text stays as it is, and bytes
        become base64.

        Args:
            body: the body.
            encoding: ignored.
        """
        if isinstance(body, str):
            return body, "utf-8"
        return self.codecs["base64"].encode(body), "base64"

    # -- consuming ----------------------------------------------------------------------------------------------

    def basic_consume(self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any) -> None:
        """Call a function with the messages of a queue. ``drain_events`` of kombu's connection makes the calls.

        Args:
            queue: the name of the queue.
            no_ack: whether each message is acknowledged before the call.
            callback: called with a message of kombu.
            consumer_tag: the name of the consumer, for :meth:`basic_cancel`.
            kwargs: ignored.

        Raises:
            JMSException: the broker refused the consumer.
        """
        window = Window() if no_ack else self.qos.window

        def keep(feed: Feed) -> None:
            self._feeds[consumer_tag] = feed, callback, no_ack

        self.checked().consume(self, consumer_tag, queue, window, keep)
        self._consumers.add(consumer_tag)
        self._tag_to_queue[consumer_tag] = queue

    def basic_cancel(self, consumer_tag: str) -> None:
        """End a consumer. A queue that deletes itself ends with its last consumer. An unknown tag is ignored.

        The consumer is forgotten at the end, so that a call that a signal handler has cut can be repeated.

        Args:
            consumer_tag: the name that :meth:`basic_consume` got.
        """
        if (found := self._feeds.get(consumer_tag)) is not None:
            self._end_consumers([found[0]])

    def _end_consumers(self, feeds: list[Feed]) -> None:
        """End consumers, all at the same time, because the end of each takes long if the broker stands still."""
        connection = self.connection
        if connection is not None and not connection.alive:
            connection = None
        if connection is not None and feeds:
            connection.cancel(feeds)
        for feed in feeds:
            tag, queue = feed.tag, feed.queue
            if connection is not None and connection.queues.is_temporary(queue) and connection.consumers(queue) <= 1:
                connection.call(connection.queues.forget(queue))
                connection.state.queue_bindings_delete(queue)
            self._consumers.discard(tag)
            self._tag_to_queue.pop(tag, None)
            self._feeds.pop(tag, None)

    def deliver(self, delivery: Delivery) -> bool:
        """Give a message to the callback of its consumer. Return False if the consumer was cancelled meanwhile.

        Args:
            delivery: a message, with the consumer that it is for.
        """
        found = None if delivery.feed is None else self._feeds.get(delivery.feed.tag)
        if found is None or found[0] is not delivery.feed:  # cancelled, perhaps by the callback of the last message
            return False
        _, callback, no_ack = found
        connection, message = self.checked(), self._received(delivery, callback, no_ack=no_ack)
        if message is None:
            return True
        worker = is_worker(callback)
        try:
            if worker:
                # kombu's consumer sets this only when it has the message, which is too late for the check
                message.accept = getattr(callback.__self__, "accept", None)
                check_task(message)
            connection.took(delivery)
            callback(message)
        except NOT_A_TASK as error:
            if not worker:
                raise
            self._refused(delivery, error)
            if not no_ack:
                self.qos.reject(message.delivery_tag)
        return True

    def _received(self, delivery: Delivery, callback: Any = None, *, no_ack: bool) -> Any:
        """Return a message in kombu's form. If the message is unreadable, make it a dead letter and return ``None``."""
        connection, tag = self.checked(), f"{self._tag_prefix}.{next(self._tags)}"
        message, error = _read_safely(delivery, self._read, connection, delivery, tag)
        if error is not None:
            self._refused(delivery, error)
            connection.settle(delivery, "reject")
            return None
        consumer = getattr(callback, "__self__", None)
        if isinstance(consumer, Consumer) and consumer.on_message is None:
            # kombu would decode the body later. After an interrupt there, the message would stay unacknowledged,
            # and the program would not have it. The errors of a bad body come again when kombu asks for the body
            message.accept = consumer.accept
            _read_safely(delivery, message.decode)
        if no_ack:
            connection.settle(delivery, "accept")
        else:
            self.qos.append(message, tag, delivery)
        return message

    def _read(self, connection: Connection, delivery: Delivery, tag: str) -> Any:
        payload = from_jms(delivery.message)
        _complete(payload, tag, delivery, redelivered=connection.came_before(delivery.message))
        return self.Message(payload, channel=self)

    @staticmethod
    def _refused(delivery: Delivery, error: Exception) -> None:
        log.error("a message of %s cannot be read and becomes a dead letter: %s", delivery.queue, reason(error))

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        """Return a message that the broker has in a queue now, or ``None`` if there is none.

        If a message cannot be read, it becomes a dead letter, and the next message is tried.

        Args:
            queue: the name of the queue.
            no_ack: whether the message is acknowledged before this call returns.
            kwargs: ignored.

        Raises:
            ConnectionLostException: the channel or the connection is closed.
        """
        connection, window = self.checked(), Window() if no_ack else self.qos.window
        while True:
            hand: list[Delivery] = []
            try:
                connection.get(queue, window, hand)
                if not hand:
                    return None
                hand[0].doubted = True  # the next call gets another object for it, which would not know of a doubt
                found = self._received(hand[0], no_ack=no_ack)
                hand[0].given = True
            except BaseException:
                connection.abandon(hand)
                raise
            if found is not None:
                return found

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        """Acknowledge a message, or all messages up to this one.

        Args:
            delivery_tag: the tag of the message. An unknown tag is ignored.
            multiple: whether all messages that were delivered before this one are acknowledged too.

        Raises:
            ConnectionLostException: the connection is lost or closed, and the broker delivers the message again.
        """
        for tag in self.qos.up_to(delivery_tag) if multiple else (delivery_tag,):
            self.qos.ack(tag)

    def basic_recover(self, requeue: bool = False) -> None:
        """Give all unacknowledged messages back to their queues.

        Args:
            requeue: ignored.

        Raises:
            ConnectionLostException: the connection is lost or closed. The broker then has the messages already.
        """
        self.qos.release_all()

    def close(self) -> None:
        """End the consumers, and give unacknowledged messages back to their queues. A second call has no effect."""
        if self.closed:
            return
        connection = self.connection
        if connection is not None and connection.alive:
            connection.ends_consumers(self)
            self._end_consumers(self.feeds)
            self.qos.release_all()
        self.closed = True
        if connection is not None:
            connection.close_channel(self)
            self.connection = None
        self.exchange_types = None

    @property
    def qos(self) -> QoS:
        """The unacknowledged messages and the prefetch count."""
        return self._qos


def _read_safely(delivery: Delivery, read: Callable[..., Any], *arguments: Any) -> tuple[Any, Exception | None]:
    """Return the result of ``read(*arguments)``, or the error if the message is to blame for it. If a signal handler
    has raised the error, such as that of a time limit, raise the error, because the message is good.

    The second reading tells the two apart. It has the same depth of calls as the first one, because deeply nested data
    fails by another error at another depth.
    """
    result, error = _tried(read, *arguments)
    if error is None:
        return result, None
    clear_frames(error.__traceback__)  # they hold the body, which may be large
    again = _tried(read, *arguments)[1]
    if _is_to_blame(delivery, error, again):
        del again  # its traceback would keep this frame
        return None, error.with_traceback(None)
    try:
        raise error
    finally:
        del error, again  # they would keep this frame, with the message


def _tried(read: Callable[..., Any], *arguments: Any) -> tuple[Any, Exception | None]:
    """Return the result of reading a message, or the error. This catches any error, because the sender chose the text,
    and kombu raises errors of many kinds when it reads the text."""
    try:
        return read(*arguments), None
    except Exception as error:
        return None, error


def _is_to_blame(delivery: Delivery, error: Exception, again: Exception | None) -> bool:
    """Return whether a message is to blame for ``error``, the error of its first reading. ``again`` is the error of the
    second reading. If both failed by different errors, nobody knows. Then the message is read once more at its next
    turn.
    """
    if again is None:
        return False
    if type(again) is type(error) or delivery.doubted:
        return True
    delivery.doubted = True
    return False


def _complete(payload: dict[str, Any], tag: str, delivery: Delivery, *, redelivered: bool) -> None:
    """Set the properties of a received message that its sender cannot know, such as its delivery tag."""
    properties, message = payload["properties"], delivery.message
    properties["delivery_tag"] = tag
    info = properties["delivery_info"]
    info.setdefault("exchange", "")
    info.setdefault("routing_key", delivery.queue)
    info["redelivered"] = redelivered
    info["delivery_count"] = message.delivery_count


def _seconds_until(eta: Any) -> float:
    """Return the number of seconds until ``eta``, the earliest time at which a task of Celery may run. Return 0 if the
    time has no time zone, because then the worker waits for this time, and not the broker.
    """
    try:
        when = eta if isinstance(eta, datetime) else datetime.fromisoformat(str(eta).replace("Z", "+00:00"))
    except ValueError:
        return 0
    return (when - datetime.now(timezone.utc)).total_seconds() if when.tzinfo is not None else 0

"""What both faces offer without waiting: properties and constructors. The faces add the calls that wait."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from os import PathLike
from typing import Any, BinaryIO, TypeVar, cast

from pyjmsack.core.connection import Connection
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.producer import Producer
from pyjmsack.core.requestor import Requestor
from pyjmsack.core.session import Session
from pyjmsack.core.spellings import check_composite
from pyjmsack.core.stats import ConsumerStats
from pyjmsack.core.tracing import Processed
from pyjmsack.destination import Destination, Queue, TemporaryQueue, Topic, named
from pyjmsack.errors import JMSException
from pyjmsack.java_options.names import StrictNames
from pyjmsack.message import (
    BytesMessage,
    MapMessage,
    Message,
    ObjectMessage,
    StreamedBytesMessage,
    StreamMessage,
    TextMessage,
    to_source,
)
from pyjmsack.spi.features import Capabilities
from pyjmsack.spi.resources import ConnectionMetadata
from pyjmsack.types import AckMode, ConnectionState, DeliveryMode, Value

M = TypeVar("M", bound=Message)

__all__ = ["ConnectionFacade", "ConsumerFacade", "ProducerFacade", "RequestorFacade", "SessionFacade"]


class ConnectionFacade(StrictNames):
    """The part of a connection that does not wait."""

    def __init__(self, core: Connection) -> None:
        self._core = core

    @property
    def state(self) -> ConnectionState:
        """What the connection is doing, as far as the client knows: ``"connected"``, ``"interrupted"`` while failover
        looks for a broker (S101), ``"failed"``, ``"closing"``, ``"closed"``, or ``"connecting"``."""
        return self._core.state

    @property
    def metadata(self) -> ConnectionMetadata:
        """Protocol, broker name and version, provider version (S119)."""
        return self._core.channel.the_metadata

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked for over this protocol at this broker, ``"browser" in connection.capabilities``; its
        ``support(feature)`` says how, or why not. It also holds the words an AMQP broker offers itself with."""
        return self._core.channel.the_metadata.capabilities

    @property
    def exception_listener(self) -> Callable[[JMSException], Any] | None:
        """Called with every error that no caller waits for: a lost connection (once, S128), a failed asynchronous send
        (S64), a consumer the broker closed (S126), a failing listener in CLIENT or transacted mode (S20)."""
        return self._core.events.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: Callable[[JMSException], Any] | None) -> None:
        if listener is not None and not callable(listener):
            raise TypeError(f"exception_listener: expected a callable, not {type(listener).__name__}")
        self._core.events.exception_listener = listener

    @property
    def message_transformer(self) -> object | None:
        """Replaces messages before they are sent and after they were received, from now on; see the factory (S192).

        A consumer's hook that raises is reported to the exception listener, and its message comes again, counted.
        A producer's hook raises out of ``send``. A new message has the id, correlation id and ``reply_to`` of the old
        one where it has none; the id is replaced by the send, which stamps the new message.

        Raises (on setting):
            TypeError: it has neither function, or one that is a coroutine function.
        """
        return self._core.channel.transforms.transformer

    @message_transformer.setter
    def message_transformer(self, transformer: object | None) -> None:
        self._core.channel.transforms.set(transformer)

    def add_connection_listener(self, listener: object) -> None:
        """Call methods of ``listener`` when something happens to this connection (S109, S127). The methods are
        ``on_connection_established(url)`` and ``on_connection_failure(error)``; with ``failover:`` also
        ``on_connection_interrupted(url)`` and ``on_connection_restored(url)``. If the broker closes a session, a
        producer or a consumer and not the connection, the method is ``on_session_closed(session, error)``,
        ``on_producer_closed(producer, error)`` or ``on_consumer_closed(consumer, error)``. A producer or consumer that
        ends with its session has no call of its own. The listener may lack any of the methods; in ``pyjmsack.aio`` they
        may be coroutine functions. There is one call at a time, in order, and an error that a method raises is
        logged."""
        self._core.add_listener(listener)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} to {self._core.channel.url}, {self._state}>"

    @property
    def _state(self) -> str:
        return "closed" if self._core.closed else "failed" if self._core.channel.failure else "open"

    def __del__(self) -> None:
        """Warn if nobody can close the connection any more, as a socket does. It stays open until the process ends,
        because its consumers may still be at work."""
        if hasattr(self, "_core") and self._state == "open":
            warnings.warn(f"unclosed connection {self!r}", ResourceWarning, stacklevel=2, source=self)


class SessionFacade(StrictNames):
    """The part of a session that does not wait."""

    def __init__(self, core: Session) -> None:
        self._core = core
        core.state.remote_close.given(self)
        self._validate_names = core.channel.options.validate_property_names

    @property
    def acknowledge_mode(self) -> AckMode:
        """The mode of this session and of all its consumers (S2)."""
        return self._core.info.ack_mode

    @property
    def transacted(self) -> bool:
        """Whether sends and acknowledgements take effect at ``commit()``."""
        return self._core.info.transacted

    @property
    def transaction_guarantee(self) -> str:
        """``"atomic"``: sends and acknowledgements of a transaction take effect together or not at all (S75).
        ``"at-least-once"``: the broker applies the acknowledgements after the sends, so that a failure in between
        delivers messages again (S88). ``"none"``: the session has no transactions."""
        return self._core.channel.the_metadata.transaction_guarantee if self._core.info.transacted else "none"

    def create_queue(self, name: str) -> Queue:
        """Return a queue by name; it may carry options, ``orders?consumer.prefetchSize=10``. ``queue://orders`` is the
        queue ``orders``, as for ActiveMQ's client.

        Raises:
            InvalidDestinationException: the name is empty, or names a topic: ``topic://orders``; or it names several
                queues, ``a,b``, and this broker would take that as one name.
        """
        self._core.check_open()
        queue = named(Queue, name)
        check_composite(queue, self._core.channel.metadata)
        return queue

    def create_topic(self, name: str) -> Topic:
        """Return a topic by name; as ``create_queue``, with ``topic://prices``."""
        self._core.check_open()
        topic = named(Topic, name)
        check_composite(topic, self._core.channel.metadata)
        return topic

    def create_message(self) -> Message:
        """Return a message without a body."""
        return self._configured(Message())

    def create_text_message(self, text: str | None = None) -> TextMessage:
        """Return a text message; ``None`` is a body of its own, not the empty text (S170)."""
        return self._configured(TextMessage(text))

    def create_bytes_message(
        self, data: bytes | PathLike[str] | BinaryIO | Iterable[bytes] | None = None, *, length: int | None = None
    ) -> BytesMessage:
        """Return a bytes message, to be written to or made of ``data`` (S171).

        A file or an iterable is read while the message is sent, on a thread of its own, in pieces, so that a body of
        any size takes a few megabytes of memory (S168, docs/large-bodies.md). The file must stay as it is until then.

        Args:
            data: bytes; a path (``pathlib.Path``; a ``str`` is refused, so that no text of others names a file), read
                anew with every send; an open binary file, from its position to its end; or an iterable of bytes, read
                once.
            length: bytes of the whole body, for an iterable or a file that cannot seek.

        Raises:
            MessageFormatException: ``data`` is none of these, or the length is missing.
            OSError: there is no such file.
        """
        source = to_source(data, length)
        if source is not None:
            return self._configured(StreamedBytesMessage(source))
        return self._configured(BytesMessage(cast("bytes | None", data)))

    def create_map_message(self, items: Mapping[str, Value] | None = None) -> MapMessage:
        """Return a message with names and typed values (S172)."""
        return self._configured(MapMessage(items))

    def create_stream_message(self, items: Iterable[Value] | None = None) -> StreamMessage:
        """Return a message with typed values, to be written to or made of ``items`` (S174)."""
        return self._configured(StreamMessage(items))

    def create_object_message(self, obj: Any = None, content_type: str | None = None) -> ObjectMessage:
        """Return a message with a plain value, or with anything that the codec of a content type can write (S175)."""
        return self._configured(ObjectMessage(obj, content_type))

    def _configured(self, message: M) -> M:
        self._core.check_open()
        message._validate_names = self._validate_names
        return message

    def __repr__(self) -> str:
        state = "closed" if self._core.closed else "open"
        return f"<{type(self).__module__}.{type(self).__name__} {self.acknowledge_mode.name}, {state}>"


class ProducerFacade(StrictNames):
    """The part of a producer that does not wait. The attributes are defaults for each send (S152)."""

    def __init__(self, core: Producer) -> None:
        self._core = core
        core.remote_close.given(self)

    @property
    def destination(self) -> Destination | None:
        """Where it sends, or ``None`` for an anonymous producer (S67)."""
        return self._core.info.destination

    @property
    def delivery_mode(self) -> DeliveryMode:
        """Persistent unless set otherwise (S152)."""
        return self._core.defaults.delivery_mode

    @delivery_mode.setter
    def delivery_mode(self, value: int) -> None:
        self._core.defaults.set_delivery_mode(value)

    @property
    def priority(self) -> int:
        """0 to 9, 4 unless set otherwise (S152)."""
        return self._core.defaults.priority

    @priority.setter
    def priority(self, value: int) -> None:
        self._core.defaults.set_priority(value)

    @property
    def time_to_live(self) -> float | timedelta:
        """Seconds (or a ``timedelta``) until the message expires; 0 means never (S154)."""
        return self._core.defaults.time_to_live

    @time_to_live.setter
    def time_to_live(self, value: float | timedelta) -> None:
        self._core.defaults.set_time_to_live(value)

    @property
    def delivery_delay(self) -> float | timedelta:
        """Seconds (or a ``timedelta``) before the broker delivers the message (S157)."""
        return self._core.defaults.delivery_delay

    @delivery_delay.setter
    def delivery_delay(self, value: float | timedelta) -> None:
        self._core.defaults.set_delivery_delay(value)

    @property
    def disable_message_id(self) -> bool:
        """Send without a message id (S158)."""
        return self._core.defaults.disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, value: bool) -> None:
        self._core.defaults.disable_message_id = bool(value)

    @property
    def disable_message_timestamp(self) -> bool:
        """Send without a timestamp (S158)."""
        return self._core.defaults.disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, value: bool) -> None:
        self._core.defaults.disable_message_timestamp = bool(value)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} for {self._core.describe()}>"


class RequestorFacade(StrictNames):
    """The part of a requestor that does not wait."""

    def __init__(self, core: Requestor) -> None:
        self._core = core

    @property
    def destination(self) -> Destination:
        """Where the requests go."""
        return self._core.destination

    @property
    def reply_to(self) -> TemporaryQueue:
        """The temporary queue to which the replies come."""
        return self._core.reply_to

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} to {self.destination}>"


class ConsumerFacade(StrictNames):
    """The part of a consumer that does not wait."""

    def __init__(self, core: Consumer) -> None:
        self._core = core
        core.remote_close.given(self)

    @property
    def destination(self) -> Destination:
        """What it consumes."""
        return self._core.info.destination

    def _processing(self) -> Callable[[Message], Processed | None] | None:
        """Return what begins the span of a listener that gets a message of ``receive``; ``None`` if there are no spans.
        From now on ``receive`` itself has none. For ``app/``, whose listeners the core does not know."""
        trace = self._core.trace
        if trace is None:
            return None
        trace.receives = False
        return trace.process

    @property
    def selector(self) -> str | None:
        """Its selector, ``None`` if it takes every message."""
        return self._core.info.selector

    @property
    def stats(self) -> ConsumerStats:
        """Counts of this consumer (S57)."""
        return self._core.stats

    @property
    def message_listener(self) -> Callable[[Message], Any] | None:
        """A callable that gets each message, one at a time, on the session's dispatcher; in ``pyjmsack.aio`` it may be
        a coroutine function. What happens if it raises: S18, S20, S21.

        Raises (on setting):
            IllegalStateException: closed, or prefetch 0 (S9).
        """
        return self._core.listening.listener

    @message_listener.setter
    def message_listener(self, listener: Callable[[Message], Any] | None) -> None:
        self._core.set_listener(listener)

    def set_message_listener(self, listener: Callable[[Message], Any] | None, *, concurrency: int = 1) -> None:
        """Set the listener, for ``concurrency`` messages at a time.

        Messages of one group (``JMSXGroupID``) keep their order; others may overtake each other. Only for modes in
        which each message is acknowledged on its own.

        Raises:
            IllegalStateException: closed, prefetch 0 (S9), or ``concurrency`` above 1 in CLIENT or transacted mode.
            ValueError: ``concurrency`` below 1.
        """
        self._core.set_listener(listener, concurrency)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} of {self._core.info.destination.name}>"

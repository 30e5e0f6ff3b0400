"""The parts of both faces that do not wait: properties, constructors, ``set_message_listener`` and
``add_connection_listener``. The faces add the calls that wait.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from os import PathLike
from typing import Any, BinaryIO, NoReturn, TypeVar, cast

from pyjmsack.core.connection import Connection
from pyjmsack.core.consumer import Consumer
from pyjmsack.core.producer import Producer
from pyjmsack.core.requestor import Requestor
from pyjmsack.core.session import Session
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
from pyjmsack.spi.spellings import check_composite
from pyjmsack.types import AckMode, ConnectionState, DeliveryMode, Value

M = TypeVar("M", bound=Message)

__all__ = [
    "ConnectionFacade",
    "ConsumerFacade",
    "OfOneProcess",
    "ProducerFacade",
    "RequestorFacade",
    "SessionFacade",
    "refuse_pickle",
]


def refuse_pickle(self: object) -> NoReturn:
    """Refuse to pickle a received message. The object that settles the message has this function as its
    ``__reduce__``."""
    raise TypeError(
        "a received message cannot be pickled, because its session waits for its outcome; pickle its body or its"
        " properties, or a new message that you make from them"
    )


class OfOneProcess(StrictNames):
    """An object that uses an open connection, so it stays in the process of the connection."""

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled, with an error that says what can be pickled."""
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled, because it uses an open connection of this process;"
            " a ConnectionFactory, a Queue and a Topic can be pickled: connect in the other process"
        )


class ConnectionFacade(OfOneProcess):
    """The methods and properties of a connection that return without waiting.

    Args:
        core: the connection, which both faces share.
    """

    def __init__(self, core: Connection) -> None:
        self._core = core

    @property
    def state(self) -> ConnectionState:
        """The state of the connection, as far as the client knows. It is ``"connecting"``, ``"connected"``,
        ``"interrupted"`` while failover looks for a broker (S101), ``"failed"``, ``"closing"`` or ``"closed"``.
        """
        return self._core.state

    @property
    def metadata(self) -> ConnectionMetadata:
        """The protocol, the name and version of the broker, and the version of the provider (S119)."""
        return self._core.channel.the_metadata

    @property
    def capabilities(self) -> Capabilities:
        """The features that this protocol has at this broker. ``"browser" in connection.capabilities`` tells whether
        the feature ``browser`` is one of them.

        ``support(feature)`` says how a feature works here, or why it does not. The object also contains the words by
        which an AMQP broker names its own capabilities.
        """
        return self._core.channel.the_metadata.capabilities

    @property
    def exception_listener(self) -> Callable[[JMSException], Any] | None:
        """A callable that gets each error for which no caller waits: a lost connection (once, S128), a failed
        asynchronous send (S64), a consumer that the broker closed (S126), a listener that raises in CLIENT or
        transacted mode (S20).

        Raises (on setting):
            TypeError: the listener is neither callable nor ``None``.
        """
        return self._core.events.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: Callable[[JMSException], Any] | None) -> None:
        if listener is not None and not callable(listener):
            raise TypeError(f"exception_listener: expected a callable, not {type(listener).__name__}")
        self._core.events.exception_listener = listener

    @property
    def message_transformer(self) -> object | None:
        """The object that replaces messages before they are sent and after they were received (S192). The class of the
        connection factory describes the functions of this object. A new transformer takes effect at once; ``None``
        removes the transformer.

        If ``consumer_transform`` raises, the error goes to the exception listener, the message is delivered again, and
        the redelivery is counted. If ``producer_transform`` raises, ``send`` raises. If a function returns another
        message, this message takes the id, the correlation id and the ``reply_to`` of the original. A value that the
        new message has already is kept. A send replaces the id by a new one.

        Raises (on setting):
            TypeError: the object has none of these functions, or one of its functions is not a plain function.
        """
        return self._core.channel.transforms.transformer

    @message_transformer.setter
    def message_transformer(self, transformer: object | None) -> None:
        self._core.channel.transforms.set(transformer)

    def add_connection_listener(self, listener: object) -> None:
        """Call methods of ``listener`` when something happens to this connection (S109, S127).

        The listener may lack any of these methods. In ``pyjmsack.aio`` they may be coroutine functions.

        - ``on_connection_established(url)``: the connection is open. If the connection is open already when the
          listener is added, the method is called at once.
        - ``on_connection_failure(error)``: the connection is lost.
        - ``on_connection_interrupted(url)`` and ``on_connection_restored(url)``: with ``failover:`` only.
        - ``on_session_closed(session, error)``, ``on_producer_closed(producer, error)`` and
          ``on_consumer_closed(consumer, error)``: the broker closed this object, but not the connection. No method is
          called for a producer or consumer that ends together with its session.

        The methods are called one at a time, in the order of the events. An error that a method raises is logged.

        Args:
            listener: any object that has some of the methods.
        """
        self._core.add_listener(listener)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} to {self._core.channel.url}, {self._state}>"

    @property
    def _state(self) -> str:
        return "closed" if self._core.closed else "failed" if self._core.channel.failure else "open"

    def __del__(self) -> None:
        """Warn if nobody can close the connection any more, as Python does for a socket. The connection stays open
        until the process ends, because its consumers may still be at work.
        """
        if hasattr(self, "_core") and self._state == "open":
            warnings.warn(f"unclosed connection {self!r}", ResourceWarning, stacklevel=2, source=self)


class SessionFacade(OfOneProcess):
    """The methods and properties of a session that return without waiting.

    Args:
        core: the session, which both faces share.
    """

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
        """The promise of the broker for the transactions of this session.

        ``"atomic"``: sends and acknowledgements of a transaction take effect together or not at all (S75).
        ``"at-least-once"``: the broker applies the acknowledgements after the sends, so that a failure in between
        delivers messages again (S88). ``"none"``: the session has no transactions.
        """
        return self._core.channel.the_metadata.transaction_guarantee if self._core.info.transacted else "none"

    def create_queue(self, name: str) -> Queue:
        """Return the queue of this name. The broker is not asked.

        Args:
            name: the name, such as ``orders``. The form ``queue://orders`` of ActiveMQ's client means the same. Options
                may follow: ``orders?consumer.prefetchSize=10``.

        Raises:
            InvalidDestinationException: the name is empty; or it names a topic, such as ``topic://orders``; or it names
                several queues, such as ``a,b``, and this broker would take the text as one name.
            IllegalStateException: the session is closed.
        """
        self._core.check_open()
        queue = named(Queue, name)
        check_composite(queue, self._core.channel.metadata)
        return queue

    def create_topic(self, name: str) -> Topic:
        """Return the topic of this name. The broker is not asked.

        Args:
            name: the name, such as ``prices``. The form ``topic://prices`` of ActiveMQ's client means the same. Options
                may follow: ``prices?consumer.prefetchSize=10``.

        Raises:
            InvalidDestinationException: the name is empty; or it names a queue, such as ``queue://prices``; or it names
                several topics, such as ``a,b``, and this broker would take the text as one name.
            IllegalStateException: the session is closed.
        """
        self._core.check_open()
        topic = named(Topic, name)
        check_composite(topic, self._core.channel.metadata)
        return topic

    def create_message(self) -> Message:
        """Return a message without a body."""
        return self._configured(Message())

    def create_text_message(self, text: str | None = None) -> TextMessage:
        """Return a text message.

        Args:
            text: the body. ``None`` means that there is no text, which differs from the empty text (S170).

        Raises:
            MessageFormatException: ``text`` is neither a ``str`` nor ``None``.
            IllegalStateException: the session is closed.
        """
        return self._configured(TextMessage(text))

    def create_bytes_message(
        self, data: bytes | PathLike[str] | BinaryIO | Iterable[bytes] | None = None, *, length: int | None = None
    ) -> BytesMessage:
        """Return a bytes message with the body ``data``, or with an empty body to write to (S171).

        A file or an iterable is read while the message is sent, on a thread of its own, in pieces. So a body of any
        size takes a few megabytes of memory (S168, docs/large-bodies.md). The file must not change before the send has
        ended.

        Args:
            data: bytes; or a ``pathlib.Path``, whose file is read again for each send; or an open binary file, which is
                read from its position to its end; or an iterable of bytes, which is read once. ``None`` means an empty
                body to write to. A ``str`` is no path here, because a text that a stranger wrote must not name a file.
            length: the number of bytes of the whole body. It must be given for an iterable, and for a file that cannot
                seek.

        Raises:
            MessageFormatException: ``data`` is none of these, or the length is missing.
            OSError: the file does not exist.
            IllegalStateException: the session is closed.
        """
        source = to_source(data, length)
        if source is not None:
            return self._configured(StreamedBytesMessage(source))
        return self._configured(BytesMessage(cast("bytes | None", data)))

    def create_map_message(self, items: Mapping[str, Value] | None = None) -> MapMessage:
        """Return a message with names and typed values (S172).

        Args:
            items: the first entries. ``None`` means no entries yet.

        Raises:
            MessageFormatException: a name is empty, or a value has no type of JMS.
            IllegalStateException: the session is closed.
        """
        return self._configured(MapMessage(items))

    def create_stream_message(self, items: Iterable[Value] | None = None) -> StreamMessage:
        """Return a message with typed values in their order (S174).

        Args:
            items: the first values. ``None`` means no values yet.

        Raises:
            MessageFormatException: a value has no type of JMS.
            IllegalStateException: the session is closed.
        """
        return self._configured(StreamMessage(items))

    def create_object_message(self, obj: Any = None, content_type: str | None = None) -> ObjectMessage:
        """Return a message with a plain value, or with a value that the codec of a content type can write (S175).

        Args:
            obj: the body. Without a content type, the body is made of ``None``, ``bool``, numbers, text, bytes, lists
                and dicts.
            content_type: the name under which a codec was registered, such as ``application/json``. ``None`` means no
                codec.

        Raises:
            MessageFormatException: the body cannot be written.
            IllegalStateException: the session is closed.
        """
        return self._configured(ObjectMessage(obj, content_type))

    def _configured(self, message: M) -> M:
        self._core.check_open()
        message._validate_names = self._validate_names
        return message

    def __repr__(self) -> str:
        state = "closed" if self._core.closed else "open"
        return f"<{type(self).__module__}.{type(self).__name__} {self.acknowledge_mode.name}, {state}>"


class ProducerFacade(OfOneProcess):
    """The methods and properties of a producer that return without waiting.

    A send uses the values of these properties if its caller gives no other values (S152).

    Args:
        core: the producer, which both faces share.
    """

    def __init__(self, core: Producer) -> None:
        self._core = core
        core.remote_close.given(self)

    @property
    def destination(self) -> Destination | None:
        """The destination of the messages. ``None`` means that each send names its destination (S67)."""
        return self._core.info.destination

    @property
    def delivery_mode(self) -> DeliveryMode:
        """Whether the broker keeps the messages over a restart. The default is ``PERSISTENT``: the broker keeps them
        (S152)."""
        return self._core.defaults.delivery_mode

    @delivery_mode.setter
    def delivery_mode(self, value: int) -> None:
        self._core.defaults.set_delivery_mode(value)

    @property
    def priority(self) -> int:
        """The priority of messages, from 0 to 9. The default is 4 (S152)."""
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
        """Whether messages are sent without a message id (S158)."""
        return self._core.defaults.disable_message_id

    @disable_message_id.setter
    def disable_message_id(self, value: bool) -> None:
        self._core.defaults.disable_message_id = bool(value)

    @property
    def disable_message_timestamp(self) -> bool:
        """Whether messages are sent without a timestamp (S158)."""
        return self._core.defaults.disable_message_timestamp

    @disable_message_timestamp.setter
    def disable_message_timestamp(self, value: bool) -> None:
        self._core.defaults.disable_message_timestamp = bool(value)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} for {self._core.describe()}>"


class RequestorFacade(OfOneProcess):
    """The methods and properties of a requestor that return without waiting.

    Args:
        core: the requestor, which both faces share.
    """

    def __init__(self, core: Requestor) -> None:
        self._core = core

    @property
    def destination(self) -> Destination:
        """The destination of the requests."""
        return self._core.destination

    @property
    def reply_to(self) -> TemporaryQueue:
        """The temporary queue to which the replies come."""
        return self._core.reply_to

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} to {self.destination}>"


class ConsumerFacade(OfOneProcess):
    """The methods and properties of a consumer that return without waiting.

    Args:
        core: the consumer, which both faces share.
    """

    def __init__(self, core: Consumer) -> None:
        self._core = core
        core.remote_close.given(self)

    @property
    def destination(self) -> Destination:
        """The destination from which this consumer receives."""
        return self._core.info.destination

    def _processing(self) -> Callable[[Message], Processed | None] | None:
        """Return the function that begins the span (OpenTelemetry) for the processing of a message; ``None`` without
        tracing. ``app/`` calls this to trace its listeners. Afterwards ``receive`` makes no spans, because ``app/``
        calls ``receive`` for its listeners, and one span for each message is enough.
        """
        trace = self._core.trace
        if trace is None:
            return None
        trace.receives = False
        return trace.process

    @property
    def selector(self) -> str | None:
        """The selector of this consumer. ``None`` if the consumer takes every message."""
        return self._core.info.selector

    @property
    def stats(self) -> ConsumerStats:
        """Counts of this consumer (S57)."""
        return self._core.stats

    @property
    def message_listener(self) -> Callable[[Message], Any] | None:
        """A callable that gets each message, one at a time, on a thread of the session; in ``pyjmsack.aio``, in a task
        of the session. In ``pyjmsack.aio`` the callable may be a coroutine function. S18, S20 and S21 say what happens
        if the callable raises.

        Raises (on setting):
            IllegalStateException: the consumer is closed, or has prefetch 0 (S9).
            TypeError: the listener is neither callable nor ``None``.
        """
        return self._core.listening.listener

    @message_listener.setter
    def message_listener(self, listener: Callable[[Message], Any] | None) -> None:
        self._core.set_listener(listener)

    def set_message_listener(self, listener: Callable[[Message], Any] | None, *, concurrency: int = 1) -> None:
        """Set the listener, which gets up to ``concurrency`` messages at a time.

        Messages of one group (``JMSXGroupID``) keep their order. Other messages may overtake each other. A
        ``concurrency`` above 1 is allowed only in modes in which each message is acknowledged on its own.

        Args:
            listener: called with each message. ``None`` removes the listener.
            concurrency: how many messages may be with the listener at once, at least 1.

        Raises:
            IllegalStateException: the consumer is closed, has prefetch 0 (S9), or ``concurrency`` is above 1 in CLIENT
                or transacted mode.
            TypeError: the listener is neither callable nor ``None``.
            ValueError: ``concurrency`` is not a whole number of at least 1.
        """
        self._core.set_listener(listener, concurrency)

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__} of {self._core.info.destination.name}>"

"""Makes the spans and metrics of one connection, by the semantic conventions 1.44 of OpenTelemetry for messaging."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from time import time_ns
from typing import Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
    set_span_in_context,
)

from pyjmsack.destination import Destination
from pyjmsack.kept import LONGEST
from pyjmsack.message import Message
from pyjmsack.otel.limits import PropertyGetter, PropertySetter, property_name
from pyjmsack.otel.settings import Hook, Settings
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo
from pyjmsack.spi.tracing import Sent

__all__ = ["OpenTelemetryTracing"]

log = logging.getLogger("pyjmsack.otel")
SYSTEM: Final = "activemq"
LINKS: Final = 128
"""The largest number of links of one span. There is a limit, because the acknowledgement of many messages is one span.
"""
DESTINATIONS: Final = 1000
"""The largest number of destinations whose attributes are kept. There is a limit, because a producer without a
destination of its own may send to any number of destinations."""
_GETTER: Final = PropertyGetter()
_SETTER: Final = PropertySetter()
_NOTHING: Final = Context()
_TYPES: Final = {"send": "send", "receive": "receive", "process": "process"}
"""The type of each operation. An operation that is not in this table has the type ``settle``."""
Attributes = Mapping[str, Any]
NONE: Final[Attributes] = {}


class _Place:
    """Hold the attributes that all spans and metrics of one operation on one destination share."""

    __slots__ = ("attributes", "measured", "name")

    def __init__(self, operation: str, destination: Destination | None, common: Attributes, *, bound: bool) -> None:
        kind = {"messaging.operation.name": operation, "messaging.operation.type": _TYPES.get(operation, "settle")}
        measured = {key: value for key, value in common.items() if key != "messaging.client.id"}
        self.attributes: dict[str, Any] = {**common, **kind}
        self.measured: dict[str, Any] = {**measured, **kind}
        """The attributes of the metrics. Metrics need attributes with few different values."""
        where: str = common.get("server.address", "")
        if "server.port" in common:
            where += f":{common['server.port']}"
        if destination is not None:
            name = destination.name[:LONGEST]
            self.attributes["messaging.destination.name"] = name
            if destination.is_temporary:
                self.attributes["messaging.destination.temporary"] = True
            elif len(destination.name) <= LONGEST:
                where = name
                if bound:
                    self.measured["messaging.destination.name"] = name
        elif operation in ("commit", "rollback"):
            where = ""
        self.name = f"{operation} {where}".rstrip()


class _Operation:
    """Hold the span of one operation, and measure the operation."""

    __slots__ = ("_began", "_error", "_histogram", "_measured", "_records", "span")

    def __init__(
        self,
        span: Span,
        histogram: Histogram | None,
        measured: Attributes,
        *,
        records: bool = False,
        began: int | None = None,
    ) -> None:
        self.span = span
        self._histogram = histogram
        self._measured = measured
        self._records = records
        self._began = time_ns() if began is None else began
        """The time at which the operation began, in nanoseconds since 1970, by the clock of the spans. So a span and
        the metric have the same duration."""
        self._error: BaseException | None = None

    def end(self, error: BaseException | None = None, at: int | None = None) -> None:
        """End the span of the operation, and measure how long the operation took.

        Args:
            error: why the operation failed.
            at: when the operation ended, in nanoseconds since 1970, if that was before now.
        """
        span = self.span
        if error is not None and span.is_recording():
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
            if self._records:
                span.record_exception(error)
        span.end(at)
        if self._histogram is not None:
            took = max(0, (time_ns() if at is None else at) - self._began)
            self._histogram.record(took / 1e9, failed(self._measured, error))


def failed(measured: Attributes, error: BaseException | None) -> Attributes:
    """Return the attributes of a metric, with the error added."""
    return measured if error is None else {**measured, "error.type": type(error).__qualname__}


class OpenTelemetryTracing:
    """Makes the spans of one connection."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.tracer = settings.tracer()
        self.propagator = settings.propagator()
        self.instruments = settings.instruments()
        self.created: WeakKeyDictionary[Inbound, SpanContext] = WeakKeyDictionary()
        """For each message that the caller has not acknowledged yet, the context in which the message was made."""
        self._fields = [property_name(field) for field in self.propagator.fields]
        self._common: Attributes = {"messaging.system": SYSTEM}
        self._places: dict[tuple[str, Destination | None, bool], _Place] = {}

    def leads_to(self, metadata: ConnectionMetadata, client_id: str) -> None:
        """Remember the broker to which the connection is open. After a failover this is called again for the new
        broker.
        """
        server = urlsplit(metadata.url)
        common: dict[str, Any] = {"messaging.system": SYSTEM, "messaging.client.id": client_id[:LONGEST]}
        if server.hostname is not None:
            common["server.address"] = server.hostname
        if server.port is not None:
            common["server.port"] = server.port
        self._common = common
        self._places = {}

    def place(self, operation: str, destination: Destination | None, *, bound: bool = True) -> _Place:
        """Return the attributes that all spans of an operation on a destination share."""
        key = (operation, destination, bound)
        place = self._places.get(key)
        if place is None:
            place = _Place(operation, destination, self._common, bound=bound)
            if destination is None or len(destination.name) <= LONGEST:
                if len(self._places) >= DESTINATIONS:
                    self._places = {}
                self._places[key] = place
        return place

    def start(
        self,
        place: _Place,
        kind: SpanKind,
        message: Message | None = None,
        more: Attributes = NONE,
        *,
        parent: Context | None = None,
        links: Sequence[Link] = (),
        since: int | None = None,
    ) -> Span:
        """Start a span. The sampler sees only the attributes of the place, which is enough for the conventions. The
        other attributes are made only if the span is sampled."""
        span = self.tracer.start_span(place.name, parent, kind, place.attributes, links, since)
        if span.is_recording():
            if message is not None:
                span.set_attributes(_about(message))
            span.set_attributes(more)
        return span

    def extract(self, message: Message) -> Context:
        """Return the context that the producer wrote into a message."""
        properties: Mapping[str, Any] | None = message._properties
        if not properties or not any(field in properties for field in self._fields):
            return _NOTHING
        return self.propagator.extract(properties, _NOTHING, _GETTER)

    # -- sending ------------------------------------------------------------------------------------------------

    def send(self, message: Message, destination: Destination, *, bound: bool) -> Sent:
        """Start the span of a send. The message carries the context of this span, unless the application set a context
        of its own.

        A received message has the context of its earlier send. This method replaces that context by the new one.
        """
        own: dict[str, Any] = message._properties or {}
        foreign = any(field in own for field in self._fields)
        given = INVALID_SPAN.get_span_context()
        # the properties are read-only in a received message, whose context belongs to the earlier send
        if foreign and not message._properties_readonly:
            given = get_current_span(self.extract(message)).get_span_context()
        place = self.place("send", destination, bound=bound)
        if given.is_valid:  # the application made this context for the message, and not for this send
            span = self.start(place, SpanKind.CLIENT, message, links=[Link(given)])
            properties = None
        else:
            span = self.start(place, SpanKind.PRODUCER, message)
            properties = {**own}
            for field in self._fields if foreign else ():
                properties.pop(field, None)
            self.propagator.inject(properties, set_span_in_context(span), _SETTER)
        call(self.settings.send_hook, span, message)
        if self.instruments is None:
            return Sent(_Operation(span, None, {}) if span.is_recording() else None, properties)
        return Sent(_Sending(span, self.instruments.operation, place.measured, self), properties)

    # -- receiving ----------------------------------------------------------------------------------------------

    def consumer(self, info: ConsumerInfo) -> OpenTelemetryConsumer:
        """Return the tracing of a new consumer."""
        return OpenTelemetryConsumer(self, info)

    def operation(
        self,
        name: str,
        destination: Destination | None,
        message: Message | None,
        more: Attributes,
        *,
        created: Sequence[SpanContext],
    ) -> _Operation:
        """Start an operation that settles messages."""
        place = self.place(name, destination)
        span = self.start(place, SpanKind.CLIENT, message, more, links=[Link(each) for each in created[:LINKS]])
        return _Operation(span, None if self.instruments is None else self.instruments.operation, place.measured)

    def transaction(self, name: str, count: int) -> _Operation:
        """Start the span of the ``commit`` or the ``rollback`` of a transaction with ``count`` messages."""
        return self.operation(name, None, None, {"messaging.batch.message_count": count}, created=())


class _Sending(_Operation):
    """Hold the span of one send, and count the send."""

    __slots__ = ("_sent",)

    def __init__(self, span: Span, histogram: Histogram, measured: Attributes, tracing: OpenTelemetryTracing) -> None:
        super().__init__(span, histogram, measured)
        assert tracing.instruments is not None  # see send()
        self._sent = tracing.instruments.sent

    def end(self, error: BaseException | None = None, at: int | None = None) -> None:
        """End the span of the send, and count the send."""
        _Operation.end(self, error, at)
        self._sent.add(1, failed(self._measured, error))


class OpenTelemetryConsumer:
    """Makes the spans of one consumer."""

    def __init__(self, tracing: OpenTelemetryTracing, info: ConsumerInfo) -> None:
        self._tracing = tracing
        self._destination = info.destination
        self._more: dict[str, Any] = {}
        if info.subscription is not None:
            self._more["messaging.destination.subscription.name"] = info.subscription.name

    def receive(self, message: Message, since: int | None, *, accepts: bool) -> None:
        """Make the span of a call of ``receive`` that is about to return. If ``accepts`` is true, this call also
        acknowledges the message, and the acknowledgement gets a span too."""
        tracing = self._tracing
        began = time_ns() if since is None else since
        created = get_current_span(tracing.extract(message)).get_span_context()
        if not accepts:
            self._remember(message, created)
        links = [Link(created)] if created.is_valid else []
        place = tracing.place("receive", self._destination)
        span = tracing.start(place, SpanKind.CLIENT, message, self._more, links=links, since=since)
        if span.is_recording():
            span.set_attributes(_count(message))
        call(tracing.settings.receive_hook, span, message)
        # if the span is not sampled, its child is not sampled either
        if accepts and (span.is_recording() or tracing.instruments is not None):
            self._accept(message, set_span_in_context(span), links)
        self._consumed(place)
        histogram = None if tracing.instruments is None else tracing.instruments.operation
        _Operation(span, histogram, self._measured(place), began=began).end()

    def _accept(self, message: Message, parent: Context, links: Sequence[Link]) -> None:
        tracing = self._tracing
        place = tracing.place("accept", self._destination)
        span = tracing.start(place, SpanKind.CLIENT, message, parent=parent, links=links)
        histogram = None if tracing.instruments is None else tracing.instruments.operation
        _Operation(span, histogram, self._measured(place)).end()

    def receive_failed(self, error: BaseException, since: int) -> None:
        """Make the span of a call of ``receive`` that raises an error."""
        tracing = self._tracing
        place = tracing.place("receive", self._destination)
        span = tracing.start(place, SpanKind.CLIENT, None, self._more, since=since)
        histogram = None if tracing.instruments is None else tracing.instruments.operation
        _Operation(span, histogram, self._measured(place), began=since).end(error)

    def process(self, message: Message, *, received: bool = False) -> _Processing:
        """Start the span for the call of a listener, and make the context of this span the current context."""
        tracing = self._tracing
        context = tracing.extract(message)
        created = get_current_span(context).get_span_context()
        self._remember(message, created)
        parent = context
        if received and get_current_span().get_span_context().is_valid:
            parent = contexts.get_current()
        elif tracing.settings.process_parent == "ambient":
            parent = set_span_in_context(INVALID_SPAN, context)
        place = tracing.place("process", self._destination)
        links = [Link(created)] if created.is_valid else []
        span = tracing.start(place, SpanKind.CONSUMER, message, self._more, parent=parent, links=links)
        if span.is_recording():
            span.set_attributes(_count(message))
        call(tracing.settings.receive_hook, span, message)
        if not received:
            self._consumed(place)
        histogram = None if tracing.instruments is None else tracing.instruments.process
        return _Processing(span, histogram, self._measured(place), set_span_in_context(span, parent))

    def settle(self, name: str, message: Message) -> _Operation:
        """Start the span for the outcome of one message, such as ``accept``."""
        tracing = self._tracing
        created = tracing.created.get(message._delivery)
        known = [] if created is None else [created]
        return tracing.operation(name, self._destination, message, self._more, created=known)

    def acknowledge(self, name: str, inbounds: Sequence[Inbound]) -> _Operation:
        """Start the span for the outcome of several messages that are settled together."""
        found = (self._tracing.created.get(inbound) for inbound in inbounds)
        created = [*{(each.trace_id, each.span_id): each for each in found if each is not None}.values()]
        more = {**self._more, "messaging.batch.message_count": len(inbounds)}
        return self._tracing.operation(name, self._destination, None, more, created=created)

    def _remember(self, message: Message, created: SpanContext) -> None:
        """Keep the context of a message until the message is acknowledged."""
        if created.is_valid:
            self._tracing.created[message._delivery] = created

    def _measured(self, place: _Place) -> Attributes:
        return {**place.measured, **self._more} if self._more else place.measured

    def _consumed(self, place: _Place) -> None:
        instruments = self._tracing.instruments
        if instruments is not None:
            instruments.consumed.add(1, self._measured(place))


class _Processing(_Operation):
    """Hold the span of a listener that works on one message."""

    __slots__ = ("_token",)

    def __init__(self, span: Span, histogram: Histogram | None, measured: Attributes, context: Context) -> None:
        super().__init__(span, histogram, measured, records=True)
        self._token = contexts.attach(context)

    def leave(self) -> None:
        """Make the context before the call of the listener the current context again."""
        contexts.detach(self._token)


def call(hook: Hook | None, span: Span, message: Message) -> None:
    """Call a hook of the user if the span is recorded. Log an error of the hook."""
    if hook is not None and span.is_recording():
        try:
            hook(span, message)
        except Exception:
            log.warning("a hook of the instrumentation raised", exc_info=True)


def _about(message: Message) -> Attributes:
    """Return the attributes of one message."""
    found: dict[str, Any] = {}
    if message._message_id is not None:
        found["messaging.message.id"] = message._message_id[:LONGEST]
    if message._correlation_id is not None:
        found["messaging.message.conversation_id"] = message._correlation_id[:LONGEST]
    return found


def _count(message: Message) -> Attributes:
    """Return an attribute with the number of deliveries of a received message."""
    return {"messaging.activemq.message.delivery_count": message._redelivery_count + 1}

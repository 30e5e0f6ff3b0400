"""Makes the spans and metrics of one connection, by the semantic conventions 1.44 of OpenTelemetry for messaging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from time import time_ns
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from pyjmsack.destination import Destination
from pyjmsack.kept import LONGEST
from pyjmsack.loggers import ends_program, get_logger
from pyjmsack.message import Message
from pyjmsack.otel.limits import PropertyGetter, PropertySetter, property_name
from pyjmsack.otel.settings import Hook, Settings
from pyjmsack.otel.w3c import standard
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo
from pyjmsack.spi.tracing import Sent

if TYPE_CHECKING:
    from pyjmsack.otel.sampling import Sampling

__all__ = ["OpenTelemetryTracing"]

log = get_logger("pyjmsack.otel")
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
        self.sampling = sampling_of(self.tracer)
        """The decisions about sampling. ``None`` means that the SDK decides about each span."""
        self.created: WeakKeyDictionary[Inbound, SpanContext] = WeakKeyDictionary()
        """For each message that the caller has not acknowledged yet, the context in which the message was made."""
        self._fields = frozenset(property_name(field) for field in self.propagator.fields)
        self._w3c = standard(self.propagator)
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
        choice: int | None = None,
    ) -> Span:
        """Start a span. If the SDK has to ask its sampler, the sampler sees only the attributes in ``place``. The other
        attributes are made only if the span is sampled.

        Args:
            place: the attributes that all spans of this operation on this destination share.
            kind: the kind of the span.
            message: the message of the operation, if there is only one.
            more: further attributes.
            parent: the context with the parent. ``None`` stands for the current context.
            links: the links.
            since: when the operation began. ``None`` means now.
            choice: the decision of :meth:`choose`, if it was made already.
        """
        if self.sampling is None:
            span = self.tracer.start_span(place.name, parent, kind, place.attributes, links, since)
            if span.is_recording():
                span.set_attributes(_about(message, more))
            return span
        above = parent_of(parent)
        choice = self.sampling.choose(above) if choice is None else choice
        if choice > 0:
            return self.sampling.span(choice, above)
        tracer = self.sampling.tracer(-choice) if choice else self.tracer
        attributes = {**place.attributes, **_about(message, more)}
        return tracer.start_span(place.name, parent, kind, attributes, links, since)

    def choose(self, parent: SpanContext | None) -> int:
        """Decide about a span before it is made. Return the result of ``Sampling.choose``, or 0 if the SDK has to
        decide.
        """
        return 0 if self.sampling is None else self.sampling.choose(parent)

    def extract(self, message: Message) -> Context:
        """Return the context that the producer wrote into a message."""
        properties: Mapping[str, Any] | None = message._properties
        if not properties or self._fields.isdisjoint(properties):
            return _NOTHING
        created = None if self._w3c is None else self._w3c.read(properties)
        if created is not None:
            return set_span_in_context(NonRecordingSpan(created), _NOTHING)
        return self.propagator.extract(properties, _NOTHING, _GETTER)

    # -- sending ------------------------------------------------------------------------------------------------

    def send(self, message: Message, destination: Destination, *, bound: bool) -> Sent:
        """Start the span of a send. The message carries the context of this span, unless the application set a context
        of its own.

        A received message has the context of its earlier send. This method replaces the earlier context by the context
        of the new span.
        """
        own: dict[str, Any] = message._properties or {}
        properties = {**own}
        if own and not self._fields.isdisjoint(own):
            # the properties are read-only in a received message, whose context belongs to the earlier send
            given = INVALID_SPAN if message._properties_readonly else get_current_span(self.extract(message))
            if given.get_span_context().is_valid:
                return self._send_as_made(message, self.place("send", destination, bound=bound), given)
            for field in self._fields:
                properties.pop(field, None)
        context = contexts.get_current()
        parent = parent_of(context)
        choice = self.choose(parent)
        if choice > 0 and self.sampling is not None and self._w3c is not None:  # the message needs only the ids
            flags, span_id = self.sampling.ids(parent)
            self._w3c.write(properties, choice, span_id, flags, None if parent is None else parent.trace_state)
            self._w3c.write_baggage(properties, context, parent)
            if self.instruments is None:
                return Sent(None, properties)
            return self._sent(INVALID_SPAN, message, self.place("send", destination, bound=bound), properties)
        place = self.place("send", destination, bound=bound)
        span = self.start(place, SpanKind.PRODUCER, message, choice=choice)
        made = span.get_span_context()
        if self._w3c is None or not made.is_valid:
            self.propagator.inject(properties, set_span_in_context(span), _SETTER)
        else:
            self._w3c.write(properties, made.trace_id, made.span_id, made.trace_flags, made.trace_state)
            self._w3c.write_baggage(properties, context, parent)
        return self._sent(span, message, place, properties)

    def _send_as_made(self, message: Message, place: _Place, given: Span) -> Sent:
        """Start the span of a send whose message has a context that the application made for this message."""
        span = self.start(place, SpanKind.CLIENT, message, links=[Link(given.get_span_context())])
        return self._sent(span, message, place, None)

    def _sent(self, span: Span, message: Message, place: _Place, properties: dict[str, Any] | None) -> Sent:
        call(self.settings.send_hook, span, message)
        if self.instruments is None:
            return Sent(_Operation(span, None, {}) if span.is_recording() else None, properties)
        return Sent(_Sending(span, self.instruments.operation, place.measured, self), properties)

    # -- receiving ----------------------------------------------------------------------------------------------

    def consumer(self, info: ConsumerInfo) -> OpenTelemetryConsumer:
        """Return the tracing of a new consumer."""
        return OpenTelemetryConsumer(self, info)

    def operation(
        self, name: str, destination: Destination | None, message: Message | None, more: Attributes, *inbounds: Inbound
    ) -> _Operation | None:
        """Start an operation that settles messages. Return ``None`` if the span is not sampled and nobody collects
        metrics.
        """
        choice = self.choose(parent_of(None))
        if choice > 0 and self.instruments is None:
            return None
        known = (self.created.get(inbound) for inbound in inbounds)
        created = {(each.trace_id, each.span_id): each for each in known if each is not None}.values()
        links = [Link(each) for each in islice(created, LINKS)]
        place = self.place(name, destination)
        span = self.start(place, SpanKind.CLIENT, message, more, links=links, choice=choice)
        return _Operation(span, None if self.instruments is None else self.instruments.operation, place.measured)

    def transaction(self, name: str, count: int) -> _Operation | None:
        """Start the span of the ``commit`` or the ``rollback`` of a transaction with ``count`` messages."""
        return self.operation(name, None, None, {"messaging.batch.message_count": count})


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
        choice = tracing.choose(parent_of(None))
        if choice > 0 and accepts and tracing.instruments is None:
            return
        created = get_current_span(tracing.extract(message)).get_span_context()
        if not accepts:
            self._remember(message, created)
        if choice > 0 and tracing.instruments is None:
            return
        links = [Link(created)] if created.is_valid else []
        place = tracing.place("receive", self._destination)
        more = self._received(message)
        span = tracing.start(place, SpanKind.CLIENT, message, more, links=links, since=since, choice=choice)
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
        above = parent_of(parent)
        choice = tracing.choose(above)
        place = tracing.place("process", self._destination)
        if choice > 0 and tracing.sampling is not None:
            span: Span = tracing.sampling.span(choice, above)
        else:
            links = [Link(created)] if created.is_valid else []
            more = self._received(message)
            span = tracing.start(place, SpanKind.CONSUMER, message, more, parent=parent, links=links, choice=choice)
            call(tracing.settings.receive_hook, span, message)
        if not received:
            self._consumed(place)
        histogram = None if tracing.instruments is None else tracing.instruments.process
        return _Processing(span, histogram, self._measured(place), set_span_in_context(span, parent))

    def settle(self, name: str, message: Message) -> _Operation | None:
        """Start the span for the outcome of one message, such as ``accept``."""
        return self._tracing.operation(name, self._destination, message, self._more, message._delivery)

    def acknowledge(self, name: str, inbounds: Sequence[Inbound]) -> _Operation | None:
        """Start the span for the outcome of several messages that are settled together."""
        more = {**self._more, "messaging.batch.message_count": len(inbounds)}
        return self._tracing.operation(name, self._destination, None, more, *inbounds)

    def _received(self, message: Message) -> Attributes:
        """Return the attributes that only the span of a received message has."""
        return {**self._more, "messaging.activemq.message.delivery_count": message._redelivery_count + 1}

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


def sampling_of(tracer: Tracer) -> Sampling | None:
    """Return an object that decides as the sampler of this tracer does. Return ``None`` if the tracer does not belong
    to the SDK of OpenTelemetry, or if the SDK has to decide about each span.
    """
    if type(tracer).__module__ != "opentelemetry.sdk.trace":
        return None
    from pyjmsack.otel.sampling import known_sampling  # late: this package does not need the SDK

    return known_sampling(tracer)


def parent_of(context: Context | None) -> SpanContext | None:
    """Return the span context of the current span of ``context``. A ``context`` of ``None`` means the current context.
    Return ``None`` if there is no valid span.
    """
    if context is None:
        context = contexts.get_current()
    if not context:
        return None
    found = get_current_span(context).get_span_context()
    return found if found.is_valid else None


def call(hook: Hook | None, span: Span, message: Message) -> None:
    """Call a hook of the user if the span is recorded. Log an error of the hook."""
    if hook is not None and span.is_recording():
        try:
            hook(span, message)
        except BaseException as error:
            if ends_program(error):
                raise
            log.warning("a hook of the instrumentation raised", exc_info=True)


def _about(message: Message | None, more: Attributes) -> Attributes:
    """Return the attributes of one message, together with ``more``."""
    found: dict[str, Any] = {}
    if message is not None and message._message_id is not None:
        found["messaging.message.id"] = message._message_id[:LONGEST]
    if message is not None and message._correlation_id is not None:
        found["messaging.message.conversation_id"] = message._correlation_id[:LONGEST]
    found.update(more)
    return found

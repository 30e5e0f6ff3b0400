"""The tracing of a connection. Without tracing, none of this code runs.

The user may supply a sampler, a span processor, an exporter or a hook. An error of such code is logged and goes no
further. Therefore the error never changes the outcome of a message. In the blocking face such code never runs on the
I/O loop. The answer to a send that nobody waits for arrives on the loop, so a helper thread ends the span of this send,
in both faces. Nobody waits for this thread longer than for the close of the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from time import time_ns
from typing import Any, TypeVar

from pyjmsack.core.runtime import Runtime, taken
from pyjmsack.core.steps import Deadline, Steps
from pyjmsack.destination import Destination
from pyjmsack.loggers import ends_program, get_logger
from pyjmsack.message import Message
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConnectionMetadata, ConsumerInfo
from pyjmsack.spi.tracing import ConsumerTracing, Operation, Processing, Tracing
from pyjmsack.types import Outcome

__all__ = ["Processed", "TracedConsumer", "TracedSend", "Traces"]

log = get_logger("pyjmsack")
T = TypeVar("T")
_NAMES = {
    Outcome.ACCEPTED: "accept",
    Outcome.REJECTED: "reject",
    Outcome.RELEASED: "release",
    Outcome.MODIFIED_FAILED: "modify",
    Outcome.MODIFIED_FAILED_UNDELIVERABLE: "modify",
}
GATHER = 0.1
"""Seconds for which ended operations are collected, because waking a thread costs more than ending a span."""
MOST = 10_000
"""The largest number of ended operations of a connection that wait for the helper thread. Further operations are
dropped, because they would fill the memory. This happens only if an exporter or a span processor blocks."""
LAST_SPANS = 0.5
"""Seconds for which a close waits for the spans, if less is left of ``jms.closeTimeout``. A send without an answer
fails only when that time is over, and a span processor that does not block needs a moment to learn of it."""


def safely(call: Callable[..., T], *arguments: Any, **named: Any) -> T | None:
    """Call a method of a tracing object. If the method raises, log the error and return ``None``.

    Errors such as ``SystemExit`` count too: they would end the thread of a listener between a message and its outcome.
    On the main thread Ctrl-C passes, because it may come at any moment there.
    """
    try:
        return call(*arguments, **named)
    except BaseException as error:
        if ends_program(error):
            raise
        log.warning("tracing failed; the message is sent or delivered as usual", exc_info=True)
        return None


class TracedSend:
    """Traces one send, from the encoding of the message to the answer of the broker."""

    __slots__ = ("_awaited", "_operation", "_traces", "properties")

    def __init__(self, traces: Traces, operation: Operation | None, properties: dict[str, Any] | None) -> None:
        self._traces = traces
        self._operation = operation
        self.properties = properties
        """The properties that are encoded with the message instead of its own properties."""
        self._awaited = False
        """Whether the caller waits for the answer, and ends the operation."""

    def answered(self, error: BaseException | None) -> None:
        """End the operation, because the broker answered. If the caller waits for the answer, do nothing, because the
        caller ends the operation. Called on the I/O loop.
        """
        if self._operation is not None and not self._awaited:
            self._traces.later(self._operation.end, error, time_ns())

    def end(self, error: BaseException | None = None) -> None:
        """End the operation, because the send is over; called by the sender's thread or task."""
        if self._operation is not None:
            safely(self._operation.end, error)

    def confirmed(self, steps: Steps[None]) -> Steps[None]:
        """Return steps that first run the given ``steps``, which wait for the answer, and then end the operation.
        Called before the send leaves.
        """
        if self._operation is None:
            return steps
        self._awaited = True
        return self._confirmed(steps)

    def _confirmed(self, steps: Steps[None]) -> Steps[None]:
        try:
            yield from steps
        except BaseException as error:
            self.end(error)
            raise
        self.end()


class Processed:
    """Traces the work of a listener on one message."""

    __slots__ = ("_processing",)

    def __init__(self, processing: Processing) -> None:
        self._processing = processing

    def end(self, error: BaseException | None) -> None:
        """End the span, because the listener returned or raised. The context of the span stays current."""
        safely(self._processing.end, error)

    def leave(self) -> None:
        """Leave the context of the span, because all work on the message is done."""
        safely(self._processing.leave)


class TracedConsumer:
    """Traces what one consumer does."""

    __slots__ = ("_traces", "_tracing", "receives")

    def __init__(self, traces: Traces, tracing: ConsumerTracing) -> None:
        self._traces = traces
        self._tracing = tracing
        self.receives = True
        """Whether ``receive`` makes spans. ``receive`` makes no span if ``app/`` calls it for a listener, because the
        listener has a span."""

    def receive(self, message: Message, since: int | None, *, accepts: bool) -> None:
        """Remember that ``receive`` is about to return this message, which is not acknowledged yet."""
        if self.receives:
            safely(self._tracing.receive, message, since, accepts=accepts)

    def receiving(self, steps: Steps[T]) -> Steps[T]:
        """Run the steps, which wait for a message. If they raise an error, record it."""
        began = time_ns()
        try:
            return (yield from steps)
        except Exception as error:
            if self.receives:
                safely(self._tracing.receive_failed, error, began)
            raise

    def process(self, message: Message) -> Processed | None:
        """Begin the span of a listener that gets this message. Return the object that ends the span, or ``None`` if
        there is no span."""
        processing = safely(self._tracing.process, message)
        return None if processing is None else Processed(processing)

    def settle(self, outcome: Outcome, message: Message) -> None:
        """Trace the outcome of one message. The outcome is sent without a wait, so the operation ends at once."""
        operation = safely(self._tracing.settle, _NAMES[outcome], message)
        if operation is not None:
            safely(operation.end)

    def acknowledge(self, name: str, inbounds: Sequence[Inbound]) -> None:
        """Trace the outcome of several messages that are settled together."""
        if inbounds:
            operation = safely(self._tracing.acknowledge, name, inbounds)
            if operation is not None:
                safely(operation.end)

    def batches(self, settle: Callable[[list[Inbound]], None]) -> Callable[[list[Inbound]], None]:
        """Return a function that settles a batch of messages and traces this. The function may run on the loop or in
        the caller's thread.
        """

        def told(inbounds: list[Inbound]) -> None:
            self._traces.later(self.acknowledge, "accept", inbounds)
            settle(inbounds)

        return told


class Traces:
    """Traces what one connection does.

    Args:
        tracing: the tracing object of this connection.
        runtime: has the loop, and makes the helper thread.
    """

    def __init__(self, tracing: Tracing, runtime: Runtime) -> None:
        self._tracing = tracing
        self._runtime = runtime
        self._elsewhere = runtime.helper("pyjmsack-tracing")
        self._waiting: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._scheduled = False
        self._runs = False
        """Whether the helper thread makes calls. The loop alone writes it."""
        self._at_work = 0
        """The number of calls that the helper thread is in: 0 or 1."""
        self._dropped = 0
        self._over: Completion[None] | None = None
        """Succeeds when no call waits any more. ``None`` until the connection is closed."""

    def leads_to(self, metadata: ConnectionMetadata, client_id: str) -> None:
        """Remember which broker the connection leads to. Called when the connection was opened or restored."""
        safely(self._tracing.leads_to, metadata, client_id)

    def send(self, message: Message, target: Destination, *, bound: bool) -> TracedSend | None:
        """Begin the operation of a send; called before the message is encoded."""
        sent = safely(self._tracing.send, message, target, bound=bound)
        return None if sent is None else TracedSend(self, sent.operation, sent.properties)

    def consumer(self, info: ConsumerInfo) -> TracedConsumer | None:
        """Return the object that traces a new consumer. ``None`` if consumers are not traced."""
        consumer = safely(self._tracing.consumer, info)
        return None if consumer is None else TracedConsumer(self, consumer)

    def transaction(self, name: str, count: int, steps: Steps[None]) -> Steps[None]:
        """Run ``steps``, which commit or roll back, and trace them as one operation."""
        operation = safely(self._tracing.transaction, name, count)
        if operation is None:
            yield from steps
            return
        try:
            yield from steps
        except BaseException as error:
            safely(operation.end, error)
            raise
        safely(operation.end)

    def later(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Let the helper thread make a call soon. The loop and callers may use this."""
        if len(self._waiting) >= MOST:
            self._dropped += 1
            if self._dropped == 1:
                log.warning("an exporter or span processor blocks: %d spans wait, and further spans are dropped", MOST)
            return
        self._waiting.append((call, arguments))
        if not self._scheduled and self._over is None:  # a close looks for calls itself
            self._scheduled = True
            self._runtime.call_later(GATHER, self._wake)

    def _wake(self) -> None:
        """Let the helper thread make the calls that wait. Runs on the loop."""
        self._scheduled = False  # before the calls are taken, so that a call that comes later schedules another run
        if not self._runs:
            self._runs = True
            self._elsewhere(self._run, self._ran)

    def _run(self) -> None:
        """Make the calls that wait. Runs on the helper thread."""
        for call, arguments in taken(self._waiting):
            self._at_work = 1
            safely(call, *arguments)
            self._at_work = 0

    def _ran(self) -> None:
        """Look once more, because a call may have come when the helper thread was about to end. Runs on the loop."""
        self._runs = False
        if self._waiting:
            self._wake()
        elif self._over is not None:
            self._over.succeed()

    def _finish(self, over: Completion[None]) -> None:
        self._over = over
        self._wake()

    def close(self, deadline: Deadline) -> Steps[None]:
        """Wait until the calls that wait are made, but not longer than the deadline, or ``LAST_SPANS`` seconds if less
        is left. Then drop the other calls, because the code of the user may never return.
        """
        over: Completion[None] = Completion()
        self._runtime.submit(self._finish, over)  # behind what fails the last sends, whose spans then wait, too
        left = deadline.remaining()
        yield over, None if left is None else max(left, LAST_SPANS)
        dropped = self._at_work + sum(1 for _ in taken(self._waiting))
        if dropped:
            log.warning(
                "the connection is closed, and %d spans that were not ended within jms.closeTimeout are dropped:"
                " an exporter or span processor blocks",
                dropped,
            )

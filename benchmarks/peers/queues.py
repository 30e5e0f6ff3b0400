"""Fills queues before a measurement, as fast as python-qpid-proton can."""

from __future__ import annotations

import time
from typing import Any

from proton import Message, byte, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container

from benchmarks.job import BenchmarkError, Job, Scenarios, Timing
from benchmarks.peers.terminus import Event, QueueTarget, connect

_ID_DIGITS = 12
_JMS_TEXT, _JMS_QUEUE = byte(5), byte(0)  # x-opt-jms-msg-type and x-opt-jms-dest


def _broker_name(connection: Any) -> str:
    properties = connection.remote_properties or {}
    return " ".join(str(properties[key]) for key in ("product", "version") if key in properties) or "unknown broker"


class Encoded:
    """A message that is encoded once. Only its message id differs from copy to copy, if it has one."""

    def __init__(self, message: Message) -> None:
        self._encoded: bytes = message.encode()
        before, _, after = self._encoded.partition(b"0" * _ID_DIGITS)
        self._parts = (before, after) if after else None

    def copy(self, number: int) -> bytes:
        """Return the bytes of one message."""
        if self._parts is None:
            return self._encoded
        before, after = self._parts
        return b"%s%0*d%s" % (before, _ID_DIGITS, number, after)


def _plain(job: Job) -> Encoded:
    """The message that ``proton.Message`` makes of a text: no annotations, no message id."""
    return Encoded(Message(body=job.text, durable=True))


def jms_message(job: Job, *, durable: bool = True) -> Encoded:
    """Return the message of a JMS client: annotations, message id, address and timestamp."""
    message = Message(body=job.text, durable=durable, id="ID:" + "0" * _ID_DIGITS, address=job.queue)
    message.creation_time = time.time()
    message.annotations = {symbol("x-opt-jms-msg-type"): _JMS_TEXT, symbol("x-opt-jms-dest"): _JMS_QUEUE}
    return Encoded(message)


class _Filler(MessagingHandler):
    """Sends bytes encoded once. All but the last go settled: links keep order, so its confirmation is for all."""

    def __init__(self, job: Job, message: Encoded) -> None:
        super().__init__()
        self.job = job
        self.message = message
        self.sent = 0
        self.start = self.end = 0
        self.broker = self.reason = ""

    def on_start(self, event: Event) -> None:
        """Open connection and link."""
        connection = connect(event.container, self.job.url)
        event.container.create_sender(connection, self.job.queue, options=QueueTarget())

    def on_sendable(self, event: Event) -> None:
        """Use up the credit."""
        self.start = self.start or time.perf_counter_ns()
        sender = event.sender
        while sender.credit and self.sent < self.job.count:
            self.sent += 1
            delivery = sender.delivery(str(self.sent))
            sender.stream(self.message.copy(self.sent))
            sender.advance()
            if self.sent < self.job.count:
                delivery.settle()

    def on_accepted(self, event: Event) -> None:
        """The broker has the last message."""
        self.end = time.perf_counter_ns()
        self.broker = _broker_name(event.connection)
        event.connection.close()

    def on_rejected(self, event: Event) -> None:
        """Give up."""
        event.connection.close()

    on_released = on_rejected

    def on_transport_error(self, event: Event) -> None:
        """Keep the reason: this is the first contact with a broker that may not be there."""
        self.reason = f": {event.transport.condition}"


def _fill(job: Job, message: Encoded) -> Timing:
    filler = _Filler(job, message)
    Container(filler).run()
    if not filler.end:
        raise BenchmarkError(f"the queue was not filled, {filler.sent} of {job.count} were sent{filler.reason}")
    return Timing(filler.sent, filler.end - filler.start, filler.broker)


SCENARIOS: Scenarios = {
    "fill-plain": lambda job: _fill(job, _plain(job)),
    "fill-jms": lambda job: _fill(job, jms_message(job)),
}

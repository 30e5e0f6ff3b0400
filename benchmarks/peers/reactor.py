"""python-qpid-proton's reactor, used as its documentation shows."""

from __future__ import annotations

from typing import Any

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

from benchmarks.job import BenchmarkError, Job, Scenarios, Stopwatch, Timing, check_text
from benchmarks.peers.terminus import CLIENT, Event, QueueSource, QueueTarget, connect

_PREFETCH = 1000  # as Qpid JMS and pyjmsack


class _Client(MessagingHandler):
    """Counts and times; an error ends it early, which :meth:`run_to_end` notices."""

    def __init__(self, job: Job, **options: Any) -> None:
        super().__init__(**options)
        self.job = job
        self.watch: Stopwatch | None = None
        self.timing: Timing | None = None
        self.done = 0

    def run_to_end(self) -> Timing:
        """Run the reactor until all is done."""
        Container(self).run()
        if self.done != self.job.count or self.timing is None:
            raise BenchmarkError(f"the reactor ended after {self.done} of {self.job.count} messages")
        return self.timing

    def begin(self) -> None:
        """Start the clock, at the first message."""
        self.watch = self.watch or Stopwatch()

    def end(self) -> None:
        """Stop the clock."""
        if self.watch is not None:
            self.timing = self.watch.timing(self.done, CLIENT)


class _Sender(_Client):
    """Sends as much as the broker gives credit for; timed from the first send to the last confirmation."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.sent = 0
        self.text = job.text

    def on_start(self, event: Event) -> None:
        """Open connection and link."""
        connection = connect(event.container, self.job.url)
        event.container.create_sender(connection, self.job.queue, options=QueueTarget())

    def on_sendable(self, event: Event) -> None:
        """Use up the credit."""
        self.begin()
        sender = event.sender
        while sender.credit and self.sent < self.job.count:
            sender.send(Message(body=self.text, durable=True))
            self.sent += 1

    def on_accepted(self, event: Event) -> None:
        """Count a confirmation."""
        self.done += 1
        if self.done == self.job.count:
            self.end()
            event.connection.close()

    def on_rejected(self, event: Event) -> None:
        """Give up: not every message will be confirmed."""
        event.connection.close()

    on_released = on_rejected


class _Receiver(_Client):
    """Timed from the first message to the answer to the link's close, which the broker gives after the accepts."""

    def __init__(self, job: Job, *, auto_accept: bool) -> None:
        super().__init__(job, prefetch=_PREFETCH, auto_accept=auto_accept)
        self.accepts_each = not auto_accept

    def on_start(self, event: Event) -> None:
        """Open connection and link."""
        connection = connect(event.container, self.job.url)
        event.container.create_receiver(connection, self.job.queue, options=QueueSource())

    def on_message(self, event: Event) -> None:
        """Read one message."""
        self.begin()
        check_text(event.message.body, self.job)
        if self.accepts_each:
            self.accept(event.delivery)
        self.done += 1
        if self.done == self.job.count:
            event.receiver.close()

    def on_link_closed(self, event: Event) -> None:
        """The broker has taken everything."""
        self.end()
        event.connection.close()


SCENARIOS: Scenarios = {
    "send-async": lambda job: _Sender(job).run_to_end(),
    "receive": lambda job: _Receiver(job, auto_accept=True).run_to_end(),
    "listener": lambda job: _Receiver(job, auto_accept=False).run_to_end(),
}

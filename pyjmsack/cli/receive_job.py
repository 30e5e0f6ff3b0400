"""One run of ``pyjmsack receive``, which writes each message before it acknowledges the message."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyjmsack import AckMode, Message, MessageConsumer, MessageFormatException, Session
from pyjmsack.cli.managing import remark
from pyjmsack.cli.receive_output import Output
from pyjmsack.cli.resending import lossy
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.terminal import Counter, amount
from pyjmsack.cli.transfer import check_left

__all__ = ["ReceiveJob"]

SLICE = 0.2
"""The number of seconds that one ``receive()`` waits. The number is small, because a signal does not interrupt
``receive()``."""


class ReceiveJob:
    """Receives messages, writes them to the output, flushes the output and acknowledges the messages, in this order.

    Args:
        session: the session. Its mode acknowledges each message alone if ``leave`` is given.
        output: takes the messages.
        stop: ends the run.
        show: shows the number so far.
        transaction: commit after this number of messages. ``None`` means no transactions.
        leave: called with a message that the output cannot keep. The message stays in the queue.
    """

    def __init__(
        self,
        session: Session,
        output: Output,
        stop: Stop,
        show: Counter,
        transaction: int | None,
        leave: Callable[[Message, MessageFormatException], None] | None = None,
    ) -> None:
        self._session = session
        self._output = output
        self._stop = stop
        self._show = show
        self._commit_size = transaction
        self._leave = leave
        self._batch = transaction or output.batch
        self._uncommitted = self._left = 0
        self._pending: list[Message] = []
        self.received = 0
        """The number of messages that were given to the output."""
        self.acknowledged = 0
        """The number of messages that left the queue, because the reader of the output has them."""
        self.reader_gone = self._warned = False

    def run(self, consumer: MessageConsumer, count: int | None, idle: float | None) -> None:
        """Receive until ``count`` messages came, no message came for ``idle`` seconds, a signal came, or the reader of
        the output ended.
        """
        try:
            while not self._stop.requested and self.received != count:
                message = self._next(consumer, idle)
                if message is None:
                    break
                self._take(message, last=not consumer.stats.buffered)
            self._acknowledge()
            self._commit()
        except BrokenPipeError:
            self.reader_gone = True  # closing the session gives back the messages that were not acknowledged

    def _next(self, consumer: MessageConsumer, idle: float | None) -> Message | None:
        # look into the inbox first, even for 0 seconds: asking the broker after each message would stall the flow
        deadline = None if idle is None else time.monotonic() + max(idle, SLICE)
        while not self._stop.requested:
            left = SLICE if deadline is None else min(SLICE, deadline - time.monotonic())
            if left <= 0:
                # this call asks the broker; a receive with a time limit looks into the inbox only
                return consumer.receive_nowait()
            message = consumer.receive(left)
            if message is not None:
                return message
        return None

    def _take(self, message: Message, *, last: bool) -> None:
        try:
            self._output.write(message)
        except MessageFormatException as error:
            if self._leave is None:
                raise
            self._leave(message, error)
            self._left += 1
            check_left(self._left, f"{amount(self.received)} exported")
        else:
            self._warn(message)
            self._pending.append(message)
            self._uncommitted += 1
            self.received += 1
        if len(self._pending) >= self._output.batch or last:
            self._acknowledge()
        if self._uncommitted == self._commit_size:
            self._commit()
        self._show(self.received, "")

    def _warn(self, message: Message) -> None:
        """Tell the user once if the broker may have left out the content of a message, because the output does not show
        that the content is missing."""
        fault = None if self._warned else lossy(message)
        if fault is not None:
            remark(f"warning: {fault}")
            self._warned = True

    def _acknowledge(self) -> None:
        """Flush the output, and then acknowledge the messages that were written."""
        if not self._pending:
            return
        self._output.flush()
        mode = self._session.acknowledge_mode
        if mode is AckMode.CLIENT_ACKNOWLEDGE:
            self._session.acknowledge()
        elif mode.individual:
            for message in self._pending:
                message.acknowledge()
        if not self._commit_size:
            self.acknowledged += len(self._pending)
        self._pending.clear()

    def _commit(self) -> None:
        if self._commit_size and self._uncommitted:
            self._acknowledge()
            self._session.commit()
            self.acknowledged += self._uncommitted
            self._uncommitted = 0

"""One flow of numbered messages: a producer, in some flows a relay in transactions, and a consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from functools import partial
from time import monotonic
from typing import Any

from pyjmsack import AckMode, Queue, SendTimedOutException, TransactionRolledBackException
from pyjmsack.cli.soak.ledger import Ledger

__all__ = ["Call", "Load", "StuckError", "awaited", "in_threads"]

Call = Callable[..., Awaitable[Any]]
"""A function that calls a method of either face. The method is a coroutine function in ``pyjmsack.aio``, and blocks in
``pyjmsack``."""

BATCH = 50
WINDOW = 2000
"""The largest number of confirmed messages that have not arrived yet. More messages would fill the disk of a broker
that is killed often."""
RELAYED_WINDOW = 200
"""The largest number of confirmed messages that have not arrived yet in a flow with a relay. The number is small,
because a relay is slow and all messages have to arrive at the end of the soak."""
TRANSACTION = 5
ROLLED_BACK = 20
"""One transaction of the relay out of this number is rolled back."""
GIVEN_BACK = 10
"""If the mode is individual, one message out of this number is given back to the queue at its first delivery."""
LOOK_SECONDS = 0.005
STANDSTILL = 0.5
"""The largest number of seconds that the time between two looks adds to the wait for a message. If more time passed,
the machine may have slept, so the rest of this time does not count.
"""


class StuckError(Exception):
    """No message arrived for too long."""


async def awaited(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a method of the asyncio face, and return its result."""
    return await function(*arguments, **named)


def in_threads(executor: Executor) -> Call:
    """Return a function that calls a method of the blocking face on a thread of ``executor``.

    Each flow needs two threads of the executor.
    """

    async def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(executor, partial(function, *arguments, **named))

    return call


class Load:
    """A flow that sends as fast as it receives. Its methods belong to one event loop.

    Args:
        open_session: opens a session of a started connection. Each end of the flow calls it once.
        mode: the acknowledge mode of the consumer: AUTO or an individual mode.
        relayed: whether messages go to ``queue``, from which a transacted session moves them to ``queue.out``.
        call: :func:`awaited` or :func:`in_threads`.
        patience: seconds without an arrival after which the flow is stuck.
    """

    def __init__(
        self,
        open_session: Callable[[AckMode], Awaitable[Any]],
        queue: str,
        mode: AckMode = AckMode.AUTO_ACKNOWLEDGE,
        *,
        relayed: bool = False,
        call: Call = awaited,
        patience: float = 60.0,
    ) -> None:
        self._open_session = open_session
        self._source = Queue(queue)
        self._target = Queue(f"{queue}.out") if relayed else self._source
        self._mode = mode
        self._relayed = relayed
        self._call = call
        self._patience = patience
        self._window = RELAYED_WINDOW if relayed else WINDOW
        self._tasks: list[asyncio.Task[None]] = []
        self._sending = True
        self._over = False
        self._consumer: Any = None
        self._given_back: set[int] = set()
        self.ledger = Ledger()
        self.atomic = True
        """Whether each message arrives once.

        Behind a relay a message may arrive twice if the broker has no atomic transactions.
        """

    def start(self) -> None:
        """Start the producer, the relay and the consumer of the flow."""
        works = [self._produce(), self._consume(), *([self._relay()] if self._relayed else [])]
        self._tasks = [self._start(work) for work in works]

    @staticmethod
    def _start(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(work)

    @property
    def skipped(self) -> int:
        """The number of messages that were delivered again and that the guard did not hand out (S105)."""
        return self._consumer.stats.duplicates_skipped if self._consumer else 0

    @property
    def stats(self) -> Any:
        """The counters of the consumer, such as delivered and acknowledged. ``None`` means that there is no consumer
        yet."""
        return self._consumer.stats if self._consumer else None

    async def reaches(self, received: int) -> None:
        """Wait until this number of messages has arrived.

        Raises:
            StuckError: no message arrived for ``patience`` seconds.
            JMSException: one end failed.
        """
        await self._wait(lambda: len(self.ledger.received) >= received)

    async def _wait(self, condition: Callable[[], bool]) -> None:
        seen, waited, looked = -1, 0.0, monotonic()
        while not condition():
            self.check()
            now = monotonic()
            waited += min(now - looked, STANDSTILL)  # if more time passed, the machine slept
            looked = now
            if len(self.ledger.received) != seen:
                seen, waited = len(self.ledger.received), 0.0
            if waited > self._patience:
                found = ", ".join(
                    [f"{len(self.ledger.confirmed):,} confirmed, {seen:,} received", *self.ledger.problems()]
                )
                raise StuckError(f"nothing arrived for {self._patience:g} s: {found}")
            await asyncio.sleep(LOOK_SECONDS)

    def check(self) -> None:
        """Raise the error of the producer, the relay or the consumer if one of them failed."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def finish(self) -> None:
        """Stop sending, receive the rest, and check whether more messages arrived than were sent.

        Raises:
            StuckError: the rest does not arrive.
            JMSException: one end failed.
        """
        producing, *others = self._tasks
        self._sending = False
        stuck: StuckError | None = None
        await self._wait(producing.done)
        try:
            await self._wait(lambda: self.ledger.arrived)
        except StuckError as error:
            stuck = error
        finally:
            self._over = True
            await asyncio.gather(*others)
        if stuck is not None:
            late = "all messages had arrived" if self.ledger.arrived else "messages were still missing"
            raise StuckError(f"{stuck}; the consumer looked once more, and then {late}")

    async def cancel(self) -> None:
        """Stop the flow, and receive nothing more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _produce(self) -> None:
        session = await self._open_session(AckMode.AUTO_ACKNOWLEDGE)
        producer = await self._call(session.create_producer, self._source)
        number = 0
        while self._sending:
            if self.ledger.in_flight > self._window:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            batch = range(number, number + BATCH)
            number += BATCH
            answers = [asyncio.wrap_future(producer.send_async(str(n))) for n in batch]
            for n, error in zip(batch, await asyncio.gather(*answers, return_exceptions=True), strict=True):
                if error is None:
                    self.ledger.confirm(n)
                elif isinstance(error, SendTimedOutException):
                    self.ledger.excuse(n)
                else:
                    raise error

    async def _consume(self) -> None:
        session = await self._open_session(self._mode)
        self._consumer = await self._call(session.create_consumer, self._target)
        while not self._over:
            await self._take(0.2)
        while await self._take(0):
            pass  # a message that was never sent: the ledger reports it

    async def _take(self, timeout: float) -> bool:
        message = await self._call(self._consumer.receive, timeout=timeout)
        if message is None:
            return False
        if self._mode.individual:
            if self._gives_back(message.text):
                message.release()
                return True
            message.acknowledge()
        self.ledger.receive(message.text)
        return True

    def _gives_back(self, text: str) -> bool:
        """Whether the message is given back at its first delivery."""
        number = int(text.split()[0])
        if number % GIVEN_BACK or number in self._given_back:
            self._given_back.discard(number)
            return False
        self._given_back.add(number)
        return True

    async def _relay(self) -> None:
        session = await self._open_session(AckMode.SESSION_TRANSACTED)
        self.atomic = session.transaction_guarantee == "atomic"
        consumer = await self._call(session.create_consumer, self._source)
        producer = await self._call(session.create_producer, self._target)
        transaction = 0
        while not self._over:
            transaction += 1
            try:
                await self._relay_some(session, consumer, producer, transaction)
            except TransactionRolledBackException as error:
                self.ledger.rolled_back += 1
                self.ledger.in_doubt += error.in_doubt

    async def _relay_some(self, session: Any, consumer: Any, producer: Any, transaction: int) -> None:
        numbers: list[str] = []
        while len(numbers) < TRANSACTION:
            message = await self._call(consumer.receive, timeout=0.2)
            if message is None:
                break
            numbers.append(message.text)
        for place, number in enumerate(numbers):
            await self._call(producer.send, f"{number} {transaction} {place} {len(numbers)}")
        if numbers:
            await self._call(session.commit if transaction % ROLLED_BACK else session.rollback)

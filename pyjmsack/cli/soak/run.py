"""One soak: the flows of both faces, the kills, and the resources of the process."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyjmsack import AckMode
from pyjmsack.cli.options import Login
from pyjmsack.cli.resources import Resources
from pyjmsack.cli.soak.faults import Fault
from pyjmsack.cli.soak.load import Call, Load, StuckError, awaited, in_threads
from pyjmsack.cli.soak.report import Flow, Report
from pyjmsack.cli.stopping import Stop
from pyjmsack.cli.terminal import Counter

__all__ = ["FLOWS", "Plan", "Soak", "run"]

FLOWS = (
    ("AUTO", AckMode.AUTO_ACKNOWLEDGE, False),
    ("INDIVIDUAL", AckMode.INDIVIDUAL_ACKNOWLEDGE, False),
    ("transacted relay", AckMode.AUTO_ACKNOWLEDGE, True),
)
_THREADS = 4 * len(FLOWS)
"""The number of threads for the blocking face. The flows of this face never need so many threads at a time."""
_WARM = 100
"""The number of messages of each flow before the first kill."""
_LEAST_KILLS = 2
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Plan:
    """The plan of a soak. Times are in seconds."""

    login: Login
    faces: Sequence[str]
    seconds: float
    kill_every: float
    patience: float


class _Ends:
    """The connections of one face, with one session each."""

    def __init__(self, factory: Any, call: Call) -> None:
        self._factory, self._call = factory, call
        self._connections: list[Any] = []
        self.interruptions = 0
        self.broker = ""

    async def open_session(self, mode: AckMode) -> Any:
        """Open a new connection, and a session on this connection."""
        connection = await self._call(self._factory.create_connection)
        self._connections.append(connection)
        # this listener ignores the error of the connection, because the calls of the flows raise it
        connection.exception_listener = lambda error: None
        connection.add_connection_listener(self)
        await self._call(connection.start)
        metadata = connection.metadata
        self.broker = f"{metadata.broker_name} {metadata.broker_version} over {metadata.protocol}"
        return await self._call(connection.create_session, mode)

    def on_connection_interrupted(self, url: str) -> None:
        """Count that a connection was interrupted."""
        self.interruptions += 1

    async def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            await self._call(connection.close)


def run(plan: Plan, fault: Fault, stop: Stop, show: Counter) -> Soak:
    """Run the flows and kill, until the time is over or ``stop`` is requested. Then receive the rest.

    Raises:
        JMSException: a connection failed for good.
        BrokerError, Failure: the broker could not be killed or restarted.
    """
    with _threads(_THREADS + 1) as executor:
        soak = Soak(plan, fault, stop, show, executor)
        asyncio.run(soak.run())
    return soak


@contextmanager
def _threads(count: int) -> Iterator[ThreadPoolExecutor]:
    """Yield an executor that has started all its threads, so that each later thread is a leak."""
    with ThreadPoolExecutor(count, "pyjmsack-soak") as executor:
        barrier = threading.Barrier(count)
        for started in [executor.submit(barrier.wait) for _ in range(count)]:
            started.result()
        yield executor


class Soak:
    """One run of ``pyjmsack soak``: its flows, and what was measured."""

    def __init__(self, plan: Plan, fault: Fault, stop: Stop, show: Counter, executor: ThreadPoolExecutor) -> None:
        self._plan, self._fault, self._stop, self._show, self._executor = plan, fault, stop, show, executor
        faces: dict[str, tuple[Callable[[], Any], Call]] = {
            "blocking": (plan.login.factory, in_threads(executor)),
            "asyncio": (plan.login.aio_factory, awaited),
        }
        self._ends = {face: _Ends(faces[face][0](), faces[face][1]) for face in plan.faces}
        name = f"pyjmsack.soak.{uuid.uuid4()}"
        self._loads = {
            (face, title): Load(
                self._ends[face].open_session,
                f"{name}.{face}.{number}",
                mode,
                relayed=relayed,
                call=faces[face][1],
                patience=plan.patience,
            )
            for face in plan.faces
            for number, (title, mode, relayed) in enumerate(FLOWS)
        }
        self._samples: list[Resources] = []
        self._outages: list[float] = []
        self._stuck: list[str] = []
        self._started = self._ended = 0.0

    async def run(self) -> None:
        """Run the flows and the kills, and close all connections."""
        self._started = time.monotonic()
        for load in self._loads.values():
            load.start()
        try:
            await self._go_on()
        finally:
            self._ended = time.monotonic()
            await self._each(Load.cancel)
            for ends in self._ends.values():
                await ends.close()

    async def _go_on(self) -> None:
        if await self._all(lambda load: load.reaches(_WARM)):
            self._started = time.monotonic()
            while await self._pause() and await self._strike():
                pass
        if not self._stuck:
            self._samples.append(Resources.now())
            await self._all(Load.finish)

    async def _pause(self) -> bool:
        """Wait until the next kill is due. Return False if the run has no further kill. Unless the user stops the run,
        there are at least two kills, even if the time is too short for them.
        """
        last = self._started + self._plan.seconds
        due = time.monotonic() + self._plan.kill_every
        if len(self._outages) >= _LEAST_KILLS:
            due = min(due, last)
        while (now := time.monotonic()) < due and not self._stop.requested:
            for load in self._loads.values():
                load.check()
            self._show(int(now - self._started), self._remark())
            await asyncio.sleep(_LOOK_SECONDS)
        return (due < last or len(self._outages) < _LEAST_KILLS) and not self._stop.requested

    def _remark(self) -> str:
        ledgers = [load.ledger for load in self._loads.values()]
        confirmed = sum(len(ledger.confirmed) for ledger in ledgers)
        received = sum(len(ledger.received) for ledger in ledgers)
        return f"{len(self._outages)} kills, {confirmed:,} confirmed, {received:,} received"

    async def _strike(self) -> bool:
        """Cause the fault, such as a killed broker, and wait until each flow receives again. Return whether each flow
        received again in time.
        """
        # no sample before the first loss, because this loss starts threads for listeners, and these threads stay
        if self._outages:
            self._samples.append(Resources.now())
        began = time.monotonic()
        await asyncio.get_running_loop().run_in_executor(self._executor, self._fault.strike)
        marks = {load: len(load.ledger.received) for load in self._loads.values()}
        flows = await self._all(lambda load: load.reaches(marks[load] + 1))
        self._outages.append(time.monotonic() - began)
        return flows

    async def _all(self, step: Callable[[Load], Awaitable[None]]) -> bool:
        """Do one step with every flow, and return whether no flow is stuck."""
        answers = await self._each(step)
        for (face, title), answer in zip(self._loads, answers, strict=True):
            if isinstance(answer, StuckError):
                self._stuck.append(f"{title} ({face}): {answer}")
            elif answer is not None:
                raise answer
        return not self._stuck

    async def _each(self, step: Callable[[Load], Awaitable[None]]) -> list[BaseException | None]:
        return await asyncio.gather(*map(step, self._loads.values()), return_exceptions=True)

    def report(self, before: Resources, after: Resources) -> Report:
        """Return the report. ``before`` and ``after`` are the resources of this process before and after the run."""
        flows = [
            Flow(face, title, load.ledger, load.skipped, load.atomic) for (face, title), load in self._loads.items()
        ]
        return Report(
            broker=next(iter(self._ends.values())).broker,
            what=self._fault.what,
            seconds=self._ended - self._started,
            outages=self._outages,
            interruptions=sum(ends.interruptions for ends in self._ends.values()),
            flows=flows,
            samples=self._samples,
            before=before,
            after=after,
            stuck=self._stuck,
        )

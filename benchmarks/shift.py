"""Flows through connections that are cut, at cold Artemis brokers under load: does any message get lost or swapped?

Artemis mixes up messages when a connection with a consumer is lost (docs/upstream). A flow is one queue with one to
three consumers in one acknowledge mode. Each consumer has a wire of its own. All wires of a queue are cut together,
several times, because a link that stays while another one is lost is in danger itself. Or the last consumer is healthy:
then one of the other wires is cut at a time, and never the last one. The books say what became of each message by its
own number: acknowledged, released and seen again, rejected and found among the dead letters.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyjmsack
import pyjmsack.aio
from pyjmsack import AckMode, Queue, TransactionRolledBackException
from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.soak.load import Call, awaited, in_threads
from pyjmsack.testing import Wire

__all__ = ["Case", "Found", "Total", "busy", "cases", "run_round", "run_rounds"]

MODES = ("individual", "client", "auto", "dups_ok", "transacted", "pull", "listener")
CUTS = 7
"""Cuts of each connection of a queue."""
PATIENCE = 20.0
_ACK_MODES = {
    "client": AckMode.CLIENT_ACKNOWLEDGE,
    "auto": AckMode.AUTO_ACKNOWLEDGE,
    "dups_ok": AckMode.DUPS_OK_ACKNOWLEDGE,
    "transacted": AckMode.SESSION_TRANSACTED,
}
_PREFETCH, _BATCH, _WINDOW = 200, 50, 600
"""Each cut brings back what was prefetched. With 1,000 of these a flow takes four times as long and finds no more."""
_ONCE = ("individual", "listener", "pull", "auto")
"""Modes in which one consumer alone acknowledges no message twice. In CLIENT mode a message may come again before the
consumer, which held it when the connection was lost, acknowledges it (S95)."""


@dataclass(frozen=True)
class Case:
    """One kind of flow."""

    mode: str
    face: str
    consumers: int
    healthy: bool
    options: str
    """URL options of every connection: name=value&name=value."""


@dataclass
class Found:
    """What became of the messages of a flow."""

    case: Case
    confirmed: set[int] = field(default_factory=set)
    done: Counter[int] = field(default_factory=Counter)
    released: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    in_doubt: set[int] = field(default_factory=set)
    dead: set[int] = field(default_factory=set)
    torn: int = 0
    error: str = ""

    @property
    def open(self) -> set[int]:
        """Confirmed messages that nobody has had yet."""
        return self.confirmed - self.done.keys() - self.rejected - self.in_doubt

    def problems(self) -> Iterator[str]:
        """Say what is wrong."""
        if self.error:
            yield self.error
        if lost := sorted(self.open - self.dead):
            yield f"lost {lost[:10]}"
        if swapped := sorted(self.dead ^ self.rejected):
            yield f"dead letters that are not those rejected {swapped[:10]}"
        if self.case.consumers == 1 and self.case.mode in _ONCE:
            doubled = sorted(n for n, times in self.done.items() if times > 1)
            if doubled:
                yield f"doubled {doubled[:10]}"


def cases(options: str, *, healthy: bool) -> Iterator[Case]:
    """Yield every kind of flow once: modes, faces, and one to three consumers."""
    for place, mode in enumerate(MODES):
        for offset, face in enumerate(("aio", "sync")):
            consumers = 1 + (place + offset) % 3
            yield Case(mode, face, consumers, healthy and consumers > 1, options)


class Flow:
    """One queue, its producer and its consumers, until everything that was confirmed is done."""

    def __init__(self, broker: EmbeddedArtemis, name: str, case: Case, call: Call, rng: random.Random) -> None:
        self._url, self._name, self._case, self._call, self._rng = broker.amqp_url, name, case, call, rng
        self._factory: Any = pyjmsack.aio.ConnectionFactory if case.face == "aio" else pyjmsack.ConnectionFactory
        self._connections: list[Any] = []
        self._consumers: list[Any] = []
        self._rolled_back: set[int] = set()
        self._sending, self._over = True, False
        self._ended = asyncio.Event()
        self.found = Found(case)

    async def run(self) -> Found:
        """Run it, and close what it opened."""
        cut = self._case.consumers - self._case.healthy
        wires = [Wire(self._url) for _ in range(cut)]
        urls = [self._options(wire.url, "failover:({})") for wire in wires]
        if self._case.healthy:
            urls.append(self._options(self._url, "{}"))
        works = [asyncio.ensure_future(work) for work in (self._produce(), *map(self._consume, urls))]
        try:
            await self._cut(wires)
            self._sending = False
            await works[0]
            await self._progress(lambda: not self.found.open, works)
        except Exception as error:  # whatever ends a flow is its result
            self.found.error = f"{type(error).__name__}: {error}"
        finally:
            self._over = True
            self._ended.set()
            works[0].cancel()  # after Ctrl-C the broker is gone, and sends would wait for it
            for work, result in zip(works, await asyncio.gather(*works, return_exceptions=True), strict=True):
                if isinstance(result, Exception) and not self.found.error and work is not works[0]:
                    self.found.error = f"{type(result).__name__}: {result}"
            cores = [consumer._core for consumer in self._consumers if hasattr(consumer, "_core")]
            self.found.torn = sum(core._counts.torn for core in cores)
            await self._look_at_dead_letters()
            for connection in self._connections:
                await self._call(connection.close)
            for wire in wires:
                wire.close()
        return self.found

    def _options(self, url: str, form: str) -> str:
        prefetch = f"&jms.prefetchPolicy.all={0 if self._case.mode == 'pull' else _PREFETCH}"
        member = f"{url}?{self._case.options}"
        if form == "{}":
            return member + prefetch
        return form.format(member) + f"?failover.reconnectDelay=10&failover.useReconnectBackOff=false{prefetch}"

    async def _open(self, url: str, mode: AckMode) -> Any:
        connection = self._factory(url).create_connection()
        connection = await connection if self._case.face == "aio" else connection
        self._connections.append(connection)
        await self._call(connection.start)
        return await self._call(connection.create_session, mode)

    # -- faults -------------------------------------------------------------------------------------------------

    async def _cut(self, wires: list[Wire]) -> None:
        for number in range(CUTS):
            cut = [self._rng.choice(wires)] if self._case.healthy else wires
            if number and self._rng.random() < 0.5:  # while the broker fills the window of a new link
                for wire in cut:
                    wire.cut_after(self._rng.randrange(1_000, 30_000), replies=True)
                await self._progress(lambda cut=cut: any(wire.broken for wire in cut), [])
            else:  # or later: a link that was careful has its window by then
                wanted = len(self.found.done) + 150
                await self._progress(lambda wanted=wanted: len(self.found.done) >= wanted, [])
                await asyncio.sleep(self._rng.uniform(0.0, 2.7))
            for wire in cut:
                wire.cut()
            for wire in cut:
                wire.heal()
        wanted = len(self.found.done) + 200
        await self._progress(lambda: len(self.found.done) >= wanted, [])

    async def _progress(self, condition: Callable[[], bool], works: list[asyncio.Future[None]]) -> None:
        seen, since = -1, time.monotonic()
        while not condition():
            for work in works[1:]:
                if work.done():
                    work.result()
            if (now := sum(self.found.done.values()) + len(self.found.rejected)) != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > PATIENCE:
                raise TimeoutError(f"no progress for {PATIENCE:g} s, {len(self.found.open)} messages are open")
            await asyncio.sleep(0.005)

    async def _look_at_dead_letters(self) -> None:
        session = await self._open(self._url, AckMode.AUTO_ACKNOWLEDGE)
        browser = await self._call(session.create_browser, Queue("DLQ"))
        texts = [m.text async for m in browser] if self._case.face == "aio" else [m.text for m in browser]
        self.found.dead = {int(text.split()[1]) for text in texts if text.split()[0] == self._name}

    # -- the two ends -------------------------------------------------------------------------------------------

    async def _produce(self) -> None:
        session = await self._open(self._url, AckMode.AUTO_ACKNOWLEDGE)
        producer = await self._call(session.create_producer, Queue(self._name))
        number = 0
        while self._sending:
            if number - len(self.found.done) - len(self.found.rejected) > _WINDOW:
                await asyncio.sleep(0.005)
                continue
            batch = range(number, number + _BATCH)
            number += _BATCH
            await asyncio.gather(*(asyncio.wrap_future(producer.send_async(f"{self._name} {n}")) for n in batch))
            self.found.confirmed.update(batch)

    async def _consume(self, url: str) -> None:
        session = await self._open(url, _ACK_MODES.get(self._case.mode, AckMode.INDIVIDUAL_ACKNOWLEDGE))
        consumer = await self._call(session.create_consumer, Queue(self._name))
        self._consumers.append(consumer)
        if self._case.mode == "listener":
            await self._listen(consumer)
            return
        batch: list[Any] = []
        while not self._over:
            message = await self._call(consumer.receive, timeout=0.2)
            if message is not None:
                batch.append(message)
            if batch and (message is None or len(batch) == (7 if self._case.mode in ("client", "transacted") else 1)):
                await self._end(session, batch)
                batch = []

    async def _listen(self, consumer: Any) -> None:
        if self._case.face == "aio":

            async def on_message(message: Any) -> None:
                self._judge(message)

            consumer.set_message_listener(on_message, concurrency=3)
        else:
            consumer.set_message_listener(self._judge, concurrency=3)
        await self._ended.wait()
        await self._call(consumer.close)

    async def _end(self, session: Any, batch: list[Any]) -> None:
        numbers = [_number(message) for message in batch]
        mode = self._case.mode
        if mode in ("individual", "pull"):
            self._judge(batch[0])
            return
        if mode == "client":
            batch[-1].acknowledge()
        elif mode == "transacted":
            if self._rng.random() < 0.15 and self._rolled_back.isdisjoint(numbers):
                self._rolled_back.update(numbers)
                await self._call(session.rollback)
                return
            try:
                await self._call(session.commit)
            except TransactionRolledBackException as error:
                if error.in_doubt:
                    self.found.in_doubt.update(numbers)
                return
        self.found.done.update(numbers)

    def _judge(self, message: Any) -> None:
        """Give an outcome to one message, by its number."""
        number, found = _number(message), self.found
        if number % 10 == 0 and number not in found.released:
            found.released.add(number)
            message.release()
        elif number % 17 == 3:
            found.rejected.add(number)
            message.reject()
        else:
            message.acknowledge()
            found.done[number] += 1


def _number(message: Any) -> int:
    return int(message.text.split()[1])


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep cores busy."""
    works = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for work in works:
            work.kill()
            work.wait()


@dataclass
class Total:
    """What some rounds came to."""

    flows: int = 0
    messages: int = 0
    torn: int = 0
    bad: list[Found] = field(default_factory=list)


def run_rounds(
    options: str, rounds: int, seed: int, *, healthy: bool, broker: Callable[[], EmbeddedArtemis] | None = None
) -> Iterator[Total]:
    """Run rounds of seven flows, each at a broker that has just started; yield what they come to so far."""
    total = Total()
    for number in range(rounds):
        rng = random.Random(seed + number)  # noqa: S311 - it chooses cases, and keeps no secret
        kinds = rng.sample([*cases(options, healthy=healthy)], 7)
        for found in run_round(kinds, seed + number, broker or patient_broker):
            total.flows += 1
            total.messages += len(found.confirmed)
            total.torn += found.torn
            if any(found.problems()):
                total.bad.append(found)
        yield total


def patient_broker() -> EmbeddedArtemis:
    """Return a broker without a limit of deliveries: a message may be ahead of several connections when they are cut,
    one after the other, so seven cuts can be more than ten deliveries."""
    return EmbeddedArtemis(address_settings={"#": {"max-delivery-attempts": -1}})


def run_round(kinds: list[Case], seed: int, make_broker: Callable[[], EmbeddedArtemis] = patient_broker) -> list[Found]:
    """Run flows side by side at one cold broker."""
    rng = random.Random(seed)  # noqa: S311 - it chooses when to cut, and keeps no secret

    async def flows(broker: EmbeddedArtemis, pool: ThreadPoolExecutor) -> list[Found]:
        running: list[Awaitable[Found]] = []
        for number, case in enumerate(kinds):
            call = awaited if case.face == "aio" else in_threads(pool)
            flow = Flow(broker, f"flow-{seed}-{number}", case, call, rng)
            running.append(flow.run())
        return list(await asyncio.gather(*running))

    with make_broker() as broker, ThreadPoolExecutor(6 * len(kinds)) as pool:
        return asyncio.run(flows(broker, pool))

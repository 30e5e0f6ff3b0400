"""Random calls in random order, some of them cancelled, at a broker with real queues. A model counts each message."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from peer_faces import PATIENCE, REASON

from pyjmsack import AckMode, Queue, aio
from pyjmsack.errors import JMSException, RequestTimedOutException, TransactionRolledBackException

pytest.importorskip("proton", reason=REASON)

from queues_peer import QueuesPeer  # needs proton

MODES = (
    AckMode.AUTO_ACKNOWLEDGE,
    AckMode.CLIENT_ACKNOWLEDGE,
    AckMode.INDIVIDUAL_ACKNOWLEDGE,
    AckMode.SESSION_TRANSACTED,
)
NAMES = [f"m{number}" for number in range(60)]


@pytest.fixture
def peer() -> Iterator[QueuesPeer]:
    peer = QueuesPeer()
    yield peer
    peer.stop()


class Member:
    """A session with its consumers, and the messages that its caller has."""

    def __init__(self, session: aio.Session, mode: AckMode) -> None:
        self.session = session
        self.mode = mode
        self.consumers: list[aio.MessageConsumer] = []
        self.producer: aio.MessageProducer | None = None
        self.held: dict[str, Any] = {}
        self.sent: list[str] = []
        """The messages that the open transaction sends."""


class Model:
    """Makes random calls, and knows what must have become of each message."""

    def __init__(self, connection: aio.Connection, seed: int) -> None:
        self.random = random.Random(seed)
        self.connection = connection
        self.members: list[Member] = []
        self.processed: set[str] = set()
        """Messages that are acknowledged."""
        self.unsure: set[str] = set()
        """Messages of commits that were cancelled."""
        self.confirmed: set[str] = set()
        self.offered: set[str] = set()
        """Messages whose send was cancelled, or whose commit was."""
        self.sends = 0

    def hand_out(self, member: Member, name: str, message: Any) -> None:
        """Note that a caller gets a message."""
        assert name not in self.processed, f"{name} was acknowledged before"
        assert not any(name in other.held for other in self.members), f"{name} was handed out before"
        if member.mode is AckMode.AUTO_ACKNOWLEDGE:
            self.processed.add(name)
        else:
            member.held[name] = message

    # -- calls --------------------------------------------------------------------------------------------------

    async def open(self, _: Member) -> None:
        mode = self.random.choice(MODES)
        self.members.append(Member(await self.connection.create_session(mode), mode))

    async def consume(self, member: Member) -> None:
        if len(member.consumers) < 2:
            member.consumers.append(await member.session.create_consumer(Queue(self.random.choice("ab"))))

    async def receive(self, member: Member) -> None:
        if member.consumers:
            consumer = self.random.choice(member.consumers)
            message = await consumer.receive(self.random.choice([0, 0.001, 0.02]))
            if message is not None:
                self.hand_out(member, str(message.properties["name"]), message)

    async def acknowledge(self, member: Member) -> None:
        if member.mode not in (AckMode.CLIENT_ACKNOWLEDGE, AckMode.INDIVIDUAL_ACKNOWLEDGE) or not member.held:
            return
        name = self.random.choice([*member.held])
        message, names = member.held[name], {*member.held}
        if member.mode is AckMode.INDIVIDUAL_ACKNOWLEDGE:
            names = {name}
            if self.random.random() < 0.3:
                del member.held[name]
                await message.release()
                return
        await message.acknowledge()
        self.processed |= names
        member.held = {name: held for name, held in member.held.items() if name not in names}

    async def recover(self, member: Member) -> None:
        if member.mode is not AckMode.SESSION_TRANSACTED:
            member.held.clear()
            await member.session.recover()

    async def end_transaction(self, member: Member) -> None:
        if member.mode is not AckMode.SESSION_TRANSACTED:
            return
        await member.session._lock.in_turn(lambda: self.commit_or_roll_back(member))

    async def commit_or_roll_back(self, member: Member) -> None:
        commits = self.random.random() < 0.7
        received, sent = {*member.held}, {*member.sent}
        member.held.clear()
        member.sent.clear()
        current = member.session._core.transactions.current
        try:
            await (member.session.commit() if commits else member.session.rollback())
        except TransactionRolledBackException as error:
            if error.in_doubt:
                raise AssertionError("the broker answered in time") from error
        except BaseException:
            if member.session._core.transactions.current is current:  # the broker was not asked
                member.held |= dict.fromkeys(received)
                member.sent += sent
            elif commits:
                self.unsure |= received
                self.offered |= sent
            raise
        else:
            if commits:
                self.processed |= received
                self.confirmed |= sent

    async def send(self, member: Member) -> None:
        if member.producer is None:
            member.producer = await member.session.create_producer(Queue("out"))
        self.sends += 1
        name = f"s{self.sends}"
        size = self.random.choice([10, 15_000])
        message = member.session.create_bytes_message(iter([bytes(size), b"end"]), length=size + 3)
        message.properties["name"] = name
        if member.mode is AckMode.SESSION_TRANSACTED:
            producer = member.producer

            async def send() -> None:
                member.sent.append(name)
                await producer.send(message)

            await member.session._lock.in_turn(send)
        else:
            self.offered.add(name)
            await member.producer.send(message)
            self.confirmed.add(name)

    async def close_consumer(self, member: Member) -> None:
        if member.consumers:
            await member.consumers.pop().close()

    async def close(self, member: Member) -> None:
        self.members.remove(member)
        await member.session.close()

    # -- a run --------------------------------------------------------------------------------------------------

    async def run(self, steps: int) -> None:
        """Make so many calls; some are cancelled, and some go on beside the next ones."""
        await self.open(Member(None, AckMode.AUTO_ACKNOWLEDGE))  # type: ignore[arg-type]  # open() needs no member
        calls: dict[Callable[[Member], Awaitable[None]], int] = {
            self.receive: 9,
            self.acknowledge: 3,
            self.end_transaction: 3,
            self.send: 3,
            self.consume: 2,
            self.open: 1,
            self.recover: 1,
            self.close_consumer: 1,
            self.close: 1,
        }
        under_way: set[asyncio.Task[None]] = set()
        for _ in range(steps):
            if not self.members:
                await self.open(Member(None, AckMode.AUTO_ACKNOWLEDGE))  # type: ignore[arg-type]
            (call,) = self.random.choices([*calls], [*calls.values()])
            task = asyncio.ensure_future(self._quietly(call, self.random.choice(self.members)))
            under_way.add(task)
            fate = self.random.random()
            if fate < 0.5:
                await asyncio.wait([task], timeout=PATIENCE)
                assert task.done(), f"{call} hangs"
            else:
                for _ in range(self.random.randrange(6)):
                    await asyncio.sleep(self.random.choice([0, 0, 0.001]))
                if fate < 0.75:
                    task.cancel()
        for end in await asyncio.wait_for(asyncio.gather(*under_way, return_exceptions=True), PATIENCE):
            assert end is None or isinstance(end, asyncio.CancelledError), end
        for member in [*self.members]:
            await self.close(member)

    @staticmethod
    async def _quietly(call: Callable[[Member], Awaitable[None]], member: Member) -> None:
        try:
            await call(member)
        except RequestTimedOutException as error:
            raise AssertionError("the broker answers in time") from error
        except JMSException:  # such as the error that the session is closed
            pass

    async def rest(self) -> None:
        """Receive all that is left."""
        member = Member(await self.connection.create_session(), AckMode.AUTO_ACKNOWLEDGE)
        for queue in "ab":
            consumer = await member.session.create_consumer(Queue(queue))
            while (message := await consumer.receive(0)) is not None:
                self.hand_out(member, str(message.properties["name"]), message)


@pytest.mark.parametrize("engine", ["python", "proton"])
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_no_message_is_lost_doubled_or_acknowledged_without_its_caller(
    peer: QueuesPeer, seed: int, engine: str
) -> None:
    """S16, S22, S30, S75, S80, S84: also for large messages in small frames, whose session is closed meanwhile."""
    prefetch = (1, 20, 5, 1000)[seed % 4]
    options = f"amqp.engine={engine}&amqp.spoolOver=2000&amqp.maxFrameSize=512&jms.prefetchPolicy.all={prefetch}"
    for queue, names in ("a", NAMES[::2]), ("b", NAMES[1::2]):
        peer.fill(queue, names, size=5_000)

    async def run() -> Model:
        async with aio.ConnectionFactory(f"{peer.url}?{options}").create_connection() as connection:
            await connection.start()
            model = Model(connection, seed)
            await model.run(120)
            before = peer.do(lambda: dict(peer.accepted))
            assert model.processed <= {*before} <= model.processed | model.unsure
            await model.rest()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return model

    model = asyncio.run(run())
    peer.wait_closed()
    assert peer.accepted == dict.fromkeys(NAMES, 1)
    assert all(peer.stored[name] == 1 for name in model.confirmed)
    assert {*peer.stored} <= model.confirmed | model.offered
    assert max(peer.stored.values(), default=1) == 1

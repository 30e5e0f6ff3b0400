"""The guard against messages that were processed already (S105)."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from core_fakes import Bench, FakeInbound, FakeRuntime

from pyjmsack.core.admission import Admission
from pyjmsack.core.guard import DuplicateGuard, FileStore, HandedOut, MemoryStore, Store, make_store
from pyjmsack.core.inbox import Inbox, make_inbox
from pyjmsack.core.unsettled import Unsettled
from pyjmsack.destination import Destination, Queue, Topic
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.resources import ConnectionInfo, ConsumerInfo, Subscription
from pyjmsack.uri import parse_url


class Delivery:
    """A message with a key, or without."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key
        self.known: bool | None = None
        self.heavy = False

    def identity(self) -> bytes | None:
        return self._key


A, B, NAMELESS = Delivery(b"a"), Delivery(b"b"), Delivery(None)


def guard(
    store: Store,
    destination: Destination,
    number: int = 1,
    *,
    name: str | None = None,
    client_id: str = "me",
    durable: bool = True,
    shared: bool = False,
    generated: bool = False,
) -> DuplicateGuard:
    subscription = None if name is None else Subscription(name, durable=durable, shared=shared)
    info = ConsumerInfo(number, 1, destination, 1, subscription=subscription)
    return DuplicateGuard(store, info, ConnectionInfo(client_id, not generated), HandedOut(), transacted=False)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    connection: Any = SimpleNamespace(
        runtime=SimpleNamespace(submit_from_thread=lambda: None), events=SimpleNamespace(report=None)
    )
    made: Store = MemoryStore(1000) if request.param == "memory" else FileStore(connection, str(tmp_path / "ids"), 1000)
    yield made
    made.close()


def test_only_what_was_processed_is_known(store: Store) -> None:
    """A message without an id never is: it may be repeated on purpose."""
    watch = guard(store, Queue("q"))
    watch.add([A, A, NAMELESS])
    assert [watch.knows(delivery) for delivery in (A, B, NAMELESS)] == [True, False, False]


@pytest.mark.parametrize(
    ("other", "known"),
    [
        ({"destination": Queue("q"), "number": 2}, True),
        ({"destination": Queue("other")}, False),
        ({"destination": Topic("q")}, False),
    ],
)
def test_consumers_of_a_queue_share_their_memory_and_others_do_not(store: Store, other: dict, known: bool) -> None:
    """A queue gives a message to one consumer, whichever that is."""
    guard(store, Queue("q")).add([A])
    assert guard(store, **other).knows(A) == known


@pytest.mark.parametrize(
    ("first", "second", "known"),
    [
        ({}, {"number": 2}, False),
        ({}, {}, False),  # of another connection with the same client id
        ({}, {"client_id": "you"}, False),
        ({"name": "1"}, {}, False),
        ({"name": "s"}, {"name": "s", "number": 2}, True),
        ({"name": "s"}, {"name": "t"}, False),
        ({"name": "s"}, {"name": "s", "client_id": "you"}, False),
        ({"name": "s"}, {"name": "s", "durable": False, "shared": True}, False),
        ({"name": "s", "shared": True}, {"name": "s", "durable": False, "shared": True}, False),
        ({"name": "s", "shared": True}, {"name": "s", "shared": True, "client_id": "you"}, False),
    ],
)
def test_each_subscription_of_a_topic_has_its_own_copy_s105(
    store: Store, first: dict, second: dict, known: bool
) -> None:
    """Two consumers of one session on one topic both get every message. Those of another subscription with the same
    name were taken for copies, acknowledged and dropped."""
    guard(store, Topic("t"), **first).add([A])
    assert guard(store, Topic("t"), **second).knows(A) == known


@pytest.mark.parametrize("durable", [True, False])
def test_a_shared_subscription_without_a_client_id_is_known_in_each_connection_s105_s143(
    store: Store, durable: bool
) -> None:
    """The client id is then a new random text in each connection, so after a restart nothing was known."""
    shared = {"name": "s", "shared": True, "durable": durable, "generated": True}
    guard(store, Topic("t"), client_id="1f3a", **shared).add([A])
    assert guard(store, Topic("t"), client_id="9c2e", **shared).knows(A)
    assert not guard(store, Topic("t"), name="s", shared=True, durable=durable, client_id="1f3a").knows(A)


def test_memory_is_bounded_and_forgets_the_oldest() -> None:
    """``failover.duplicateGuardSize``."""
    store = MemoryStore(3)
    store.add([b"1", b"2", b"3", b"4"])
    assert [key in store for key in (b"1", b"2", b"3", b"4")] == [False, True, True, True]


def test_memory_takes_keys_of_two_threads_at_once() -> None:
    """The caller's, and the loop's when acknowledgements that were put off have waited long enough (S45)."""
    store = MemoryStore(10)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            for added in [threads.submit(_add_many, store, start) for start in (0, 100_000)]:
                added.result()
    finally:
        sys.setswitchinterval(interval)
    assert [key in store for key in (0, 100_000)] == [False, False]
    assert 49_999 in store or 149_999 in store


def _add_many(store: MemoryStore, start: int) -> None:
    for key in range(start, start + 50_000):
        store.add((key,))


@pytest.mark.option("failover.duplicateGuard", "core")
@pytest.mark.option("failover.duplicateGuardSize", "core")
@pytest.mark.option("jms.auditDepth", "core")
@pytest.mark.option("jms.auditMaximumProducerNumber", "core")
@pytest.mark.option("jms.checkForDuplicates", "core")
@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("", 65536),
        ("failover.duplicateGuardSize=5", 5),
        ("failover.duplicateGuard=none", None),
        ("jms.checkForDuplicates=false", None),
        ("jms.auditDepth=10&jms.auditMaximumProducerNumber=3", 30),
        ("jms.auditDepth=10", 640),
        ("jms.auditMaximumProducerNumber=3", 6144),
    ],
)
def test_the_options_of_activemq_size_the_guard_or_switch_it_off_s105(options: str, size: int | None) -> None:
    """A.2 ``checkForDuplicates``, ``auditDepth``, ``auditMaximumProducerNumber``."""
    url = parse_url(f"failover:(amqp://h)?{options}")
    store = make_store(SimpleNamespace(url=url, options=url.connection))
    assert (None if store is None else store._size) == size


def test_a_commit_does_not_remember_what_ctrl_c_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """S105: nobody has processed it; after a failover it would be acknowledged unseen."""
    bench = Bench()
    session = bench.session(0)
    session.memory.store = MemoryStore(10)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Unsettled, "settle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.receiving.receive_now()
    bench.run(session.commit())
    assert consumer.guard is not None
    assert not consumer.guard.knows(FakeInbound("a"))
    assert consumer.receiving.receive_now() is not None
    bench.run(session.commit())
    assert consumer.guard.knows(FakeInbound("a"))


class SlowFile:
    """A guard's file that does not say when something is written."""

    asked = False

    def add(self, keys: object, command: Callable[[], None], *_: object) -> None:
        self.asked = True
        self.written = command


def test_a_commit_whose_caller_gives_up_before_the_file_has_written_ends_what_was_closed_in_it() -> None:
    """S84: the broker had committed, and the link of the closed consumer stayed until the end of the session."""
    bench = Bench()
    session = bench.session(0)
    consumer = bench.consumer(session)
    bench.arrive(consumer, "a")
    assert consumer.receiving.receive_now() is not None
    bench.run(consumer.close())
    session.memory.store, file = MemoryStore(10), SlowFile()
    session.memory.file = file  # type: ignore[assignment]  # has the one verb that is used
    steps = session.commit()
    next(steps)
    while not file.asked:
        bench.runtime.turn()
        steps.send(True)
    steps.close()
    bench.runtime.turn()
    assert "close_consumer" in bench.provider.names()


def test_a_connection_leaves_its_broker_behind_the_acknowledgements_that_wait_for_a_file_s43() -> None:
    """``failover.priorityBackup`` moves an open connection."""
    bench = Bench()
    files = [SlowFile(), SlowFile()]
    for file in files:
        bench.session().memory.file = file  # type: ignore[assignment]  # has the one verb that is used
    left: Completion[None] = Completion()
    bench.connection.on_leaving(left)
    for file in reversed(files):
        assert not left.done
        file.written()
    assert left.done


class Large:
    """A message whose digest takes long."""

    def __init__(self, *, broken: bool = False) -> None:
        self.known: bool | None = None
        self.heavy = True
        self.redeliveries = 0
        self._broken = broken

    def identity(self) -> bytes | None:
        if self._broken:
            raise MemoryError
        self.heavy = False
        return b"large"


@pytest.mark.parametrize("guarded", [True, False], ids=["guard", "transactionReplay"])
@pytest.mark.parametrize("broken", [False, True])
def test_the_digest_of_a_large_message_is_computed_on_another_thread_before_the_message_is_handed_out(
    broken: bool, guarded: bool
) -> None:
    """S105, S107: it would hold up the loop of the asyncio face, and a second message does not overtake the first."""
    runtime, looks = FakeRuntime(), []
    watch = guard(MemoryStore(10), Queue("q")) if guarded else None
    inbox = Inbox(deque(), None, watch, runtime, lambda: looks.append(1), identifies=not guarded)
    assert not inbox.checks
    inbox.deliver(Large(broken=broken))
    inbox.deliver(Delivery(b"s"))
    inbox.wake()
    assert inbox.checks
    assert inbox.keeps_back(inbox.messages.popleft())
    assert inbox.blocked
    assert looks == []
    runtime.work_off()
    assert looks == [1]
    assert not inbox.blocked
    assert [inbox.keeps_back(inbox.messages.popleft()) for _ in range(2)] == [False, False]


@pytest.mark.parametrize(
    ("url", "transacted", "identifies"),
    [
        ("failover:(amqp://a)?failover.transactionReplay=true", True, True),
        ("failover:(amqp://a)?failover.transactionReplay=true", False, False),
        ("failover:(amqp://a)", True, False),
    ],
)
def test_a_transaction_that_is_replayed_knows_its_large_messages_without_a_guard(
    url: str, transacted: bool, identifies: bool
) -> None:
    """S107: the digest was computed on the loop when the message was acknowledged."""
    channel = Bench().connection.channel
    channel.url = parse_url(url)
    info = ConsumerInfo(1, 1, Queue("q"), prefetch=1)
    admission = Admission(channel, info, None, transacted=transacted)
    inbox = make_inbox(channel, info, None, lambda: None, admission, transacted=transacted)
    inbox.deliver(Large())
    assert inbox.checks is identifies


@pytest.mark.parametrize(("mode", "identifies"), [(0, True), (1, False)], ids=["transacted", "auto"])
def test_a_limit_that_counts_rollbacks_knows_its_large_messages_without_a_guard(mode: int, identifies: bool) -> None:
    """S113: the digest was computed on the loop of the user when the transaction was rolled back."""
    bench = Bench("jms.redeliveryPolicy.maxRedeliveries=1", "jms.redeliveryPolicy.preDispatchCheck=false")
    consumer = bench.consumer(bench.session(mode))
    consumer.inbox.deliver(Large())
    assert consumer.inbox.checks is identifies


def test_without_a_guard_a_large_message_waits_for_no_digest() -> None:
    inbox = Inbox(deque(), None, None, FakeRuntime(), lambda: None)
    inbox.deliver(Large())
    assert not inbox.checks
    assert not inbox.keeps_back(inbox.messages.popleft())

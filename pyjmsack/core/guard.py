"""The guard skips messages that were processed already, because some messages are delivered again after a failover
(S105). A store keeps the ids of processed messages.

There are two kinds of stores. A store in the memory of the process implements :class:`Store`. A store that outlives the
process, or that several processes share, implements ``GuardFile`` in ``spi/guard_file.py``, even if this store is a
server. A message is written to such a store before the message is acknowledged, and looked up there before the message
is handed out, both on a thread of the store. ``io/guard_file.py`` is the only one so far.

To add a store, implement one of the two, let ``uri/failover.py`` parse the name of the store as a value of
``failover.duplicateGuard``, and let :func:`make_store` choose the store. ``spi/registry.py`` finds a ``GuardFile``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Protocol
from uuid import uuid4
from weakref import WeakValueDictionary

from pyjmsack.core.channel import Channel
from pyjmsack.core.steps import Steps, answered
from pyjmsack.spi.completion import Completion
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.registry import open_guard_file
from pyjmsack.spi.resources import ConnectionInfo, ConsumerInfo

__all__ = ["DuplicateGuard", "FileStore", "HandedOut", "Memory", "MemoryStore", "Store", "make_store", "nothing"]

_AUDIT_DEPTH, _AUDITED_PRODUCERS = 2048, 64
"""Defaults of ActiveMQ for ``jms.auditDepth`` and ``jms.auditMaximumProducerNumber``."""

SHOWN = 1 << 20
"""The largest number of messages that a browser of a failover connection remembers. After a failover, the browser skips
the messages that it has shown."""


def nothing() -> None:
    """Do nothing; the default command of :meth:`FileStore.add`."""


class Store(Protocol):
    """Remembers the keys of messages, up to a fixed number. The oldest keys are forgotten first."""

    def key(self, identity: bytes, /) -> Any:
        """Return the key under which the store remembers a message with this identity."""
        ...

    def add(self, keys: Sequence[Any]) -> None:
        """Remember keys."""
        ...

    def __contains__(self, key: Any) -> bool: ...

    def close(self) -> None:
        """Close the store. It is not used afterwards."""
        ...


class MemoryStore:
    """Keeps the keys of one session in memory, for as long as the session lives.

    Args:
        size: the largest number of keys that are remembered.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._keys: OrderedDict[Hashable, None] = OrderedDict()
        """The keys, oldest first. This is an ``OrderedDict``, because a plain dict finds its first key slowly after
        many keys were removed. With a plain dict this took 78 µs for each message."""

    @staticmethod
    def key(identity: bytes) -> int:
        """Return a hash of 64 bits. In another process, the same identity has another hash.

        A hash is used because a digest takes ten times as long. The probability that a new message has the same hash as
        one of 65,536 remembered messages is 4e-15. Even such a message is skipped only after a failover, because the
        guard compares no hashes before a failover.
        """
        return hash(identity)

    def add(self, keys: Sequence[int]) -> None:
        """Remember keys. Then forget the oldest keys until at most ``size`` keys are left. The loop also calls this
        method, when the waiting time of a batch of acknowledgements is over.
        """
        known = self._keys
        for key in keys:
            known[key] = None
        while len(known) > self._size:
            known.popitem(last=False)

    def __contains__(self, key: int) -> bool:
        return key in self._keys

    def close(self) -> None:
        """Do nothing, because a store in memory has nothing to close."""


class FileStore:
    """Keeps the keys in a file, because the keys must stay when the process has ended; see
    :class:`pyjmsack.spi.guard_file.GuardFile`.

    Args:
        channel: the connection. Its exception listener gets the error if the file cannot be used.
        path: the file.
        size: the largest number of keys that are remembered.
    """

    def __init__(self, channel: Channel, path: str, size: int) -> None:
        self._channel = channel
        self._submit = channel.runtime.submit_from_thread
        self._report = partial(self._submit, channel.events.report)
        self._file = open_guard_file(path, size, self._report)

    @staticmethod
    def key(identity: bytes) -> bytes:
        """Return a digest of the identity, because every process must compute the same key."""
        return blake2b(identity, digest_size=16).digest()

    def opened(self) -> Steps[None]:
        """Wait until the file can be used.

        Raises:
            JMSException: the file cannot be used. The text names the file.
        """
        done: Completion[None] = Completion()
        self._file.opened(partial(self._submit, done.settle))
        yield from answered(done, self._channel.deadline(), "opening the file of failover.duplicateGuard")

    def add(self, keys: Sequence[bytes], command: Callable[..., Any] = nothing, *arguments: Any) -> None:
        """Remember keys. When these keys and all earlier keys are in the file, the loop runs the command."""
        self._file.write(keys, nothing if command is nothing else partial(self._submit, command, *arguments))

    def look_up(self, keys: Callable[[], Sequence[bytes]], answer: Callable[[set[bytes]], None]) -> None:
        """Look the keys up. ``answer`` gets the keys that the file contains. The thread of the file calls both
        functions."""
        self._file.ask(keys, answer)

    @property
    def full(self) -> bool:
        """Whether too many keys wait to be written."""
        return self._file.full

    def __contains__(self, key: bytes) -> bool:
        """Whether this process wrote the key. :meth:`look_up` also finds the keys that other processes wrote."""
        return key in self._file

    def close(self) -> None:
        """Stop using the file. Other sessions may go on using it."""
        self._file.close(self._report)


def make_store(channel: Channel) -> MemoryStore | FileStore | None:
    """Return the store of a new session. ``None`` without failover, or if the URL turns the guard off."""
    options, jms = channel.url.failover, channel.options
    store, path = options.duplicate_guard
    if not channel.url.members or store == "none" or not jms.check_for_duplicates:
        return None
    size = options.duplicate_guard_size
    if jms.audit_depth is not None or jms.audit_maximum_producer_number is not None:
        size = (jms.audit_depth or _AUDIT_DEPTH) * (jms.audit_maximum_producer_number or _AUDITED_PRODUCERS)
    if store == "memory":
        return MemoryStore(size)
    if store == "sqlite":
        return FileStore(channel, path, size)
    raise AssertionError(f"make_store() knows no store {store!r}; this is a defect of pyjmsack")


class HandedOut(WeakValueDictionary[Any, Inbound]):
    """Messages that were handed out in a session and that the callers still have, by key. The table does not keep a
    message in memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.detached: set[int] = set()
        """Ids of consumers that the broker closed: their messages went back to the queue."""


class Memory:
    """The knowledge of one session about the messages that it processed or handed out (S105).

    Args:
        store: the processed messages. ``None`` means that nothing is remembered.
    """

    __slots__ = ("file", "handed_out", "store")

    def __init__(self, store: MemoryStore | FileStore | None) -> None:
        self.store = store
        self.file = store if isinstance(store, FileStore) else None
        self.handed_out = HandedOut()

    def opened(self) -> Steps[None]:
        """Wait until the session can remember processed messages.

        Raises:
            JMSException: the file of the guard cannot be used.
        """
        if self.file is not None:
            yield from self.file.opened()

    def close(self) -> None:
        """Close the store, because the session processes no more messages."""
        if self.store is not None:
            self.store.close()

    def guard(self, info: ConsumerInfo, connection: ConnectionInfo, *, transacted: bool) -> DuplicateGuard | None:
        """Return the guard of a consumer, or ``None`` if the consumer needs no guard.

        A browser has a guard as well. After a failover the browser starts at the head of the queue again, and skips the
        messages that it has shown.
        """
        if self.store is None:
            return None
        if info.browser:
            return DuplicateGuard(MemoryStore(SHOWN), info, connection, HandedOut(), transacted=False)
        if info.presettled:
            return None
        return DuplicateGuard(self.store, info, connection, self.handed_out, transacted=transacted)


class DuplicateGuard:
    """Knows which messages one consumer processed, and which messages the caller has.

    A queue gives a message to only one consumer, so the consumers of a queue share the memory of their store. Each
    subscription has a memory of its own, because it gets its own copy of a message.

    Args:
        store: remembers the processed messages.
        info: the consumer.
        connection: the connection, whose client id a subscription may belong to.
        handed_out: the messages that the callers have. The session forgets them at the end of a transaction.
        transacted: whether the session is transacted. In a transacted session, a message is acknowledged as soon as it
            is handed out, and yet the caller has it until the transaction ends.
    """

    def __init__(
        self, store: Store, info: ConsumerInfo, connection: ConnectionInfo, handed_out: HandedOut, *, transacted: bool
    ) -> None:
        self._store = store
        self.file = store if isinstance(store, FileStore) else None
        """The file to which a processed message is written before it is acknowledged. ``None`` means no file."""
        self._handed_out = handed_out
        self._transacted = transacted
        self.alert = self.file is not None
        """Whether a message may come that was processed before. At first this is true only with a file, which knows the
        messages of other connections, too. After a failover it is always true (S105)."""
        scope = [type(info.destination).__name__, info.destination.name]
        if info.destination.is_topic:
            scope += _subscription(info, connection)
        self._scope = blake2b("\0".join(scope).encode(), digest_size=8).digest()

    def add_one(self, inbound: Inbound) -> None:
        """Remember one message as processed. This is quicker than :meth:`add` with one message."""
        key = self._key(inbound)
        if key is not None:
            self._store.add((key,))

    def add(self, inbounds: Iterable[Inbound]) -> None:
        """Remember messages as processed."""
        keys = self._keys(inbounds)
        if keys:
            self._store.add(keys)

    def acknowledge(self, inbounds: Iterable[Inbound], command: Callable[..., Any], *arguments: Any) -> None:
        """Write messages to the file as processed. When they are in the file, the loop runs the command that
        acknowledges them.
        """
        assert self.file is not None
        self.file.add(self._keys(inbounds), command, *arguments)

    def look_up(self, inbounds: Sequence[Inbound], told: Callable[[], None]) -> None:
        """Note in each message whether the file knows it. Then call ``told``, on the thread of the file."""
        assert self.file is not None

        def answer(found: set[bytes]) -> None:
            for inbound in inbounds:
                inbound.known = self._key(inbound) in found
            told()

        self.file.look_up(lambda: self._keys(inbounds), answer)

    def _keys(self, inbounds: Iterable[Inbound]) -> list[Any]:
        return [key for inbound in inbounds if (key := self._key(inbound)) is not None]

    def knows(self, inbound: Inbound) -> bool:
        """Return whether the message was processed before, or the caller has another delivery of it."""
        key = self._key(inbound)
        return key is not None and (bool(inbound.known) or key in self._store or self._has_another(key, inbound))

    def note_handed_out(self, inbound: Inbound) -> None:
        """Remember that the caller has the message and has not processed it yet."""
        key = self._key(inbound)
        if key is not None:
            self._handed_out[key] = inbound

    def _has_another(self, key: Any, inbound: Inbound) -> bool:
        """Return whether the caller has another delivery of the same message, over the same connection.

        In this case the sender sent a second copy, and the broker stored both copies (S91). A delivery of another
        connection does not count, because the broker delivered the same message again (S95). ``inbound`` itself does
        not count either: if it comes once more, it was given back, and the caller does not have it any more (S82).
        """
        other = self._handed_out.get(key)
        if other is None or other is inbound or other.generation != inbound.generation:
            return False
        return self._transacted or not (other.settled or other.consumer_id in self._handed_out.detached)

    def _key(self, inbound: Inbound) -> Any | None:
        identity = inbound.identity()
        return None if identity is None else self._store.key(self._scope + identity)


def _subscription(info: ConsumerInfo, connection: ConnectionInfo) -> list[str]:
    """Return texts that are the same for all consumers of one subscription of a topic, and differ for all other
    subscriptions (S141, S143)."""
    subscription = info.subscription
    if subscription is None:  # nobody else has this subscription, and it ends with its consumer
        return ["consumer", uuid4().hex]
    # a generated client id is another one after each start, and the subscription then belongs to no client id
    owner = connection.client_id if connection.explicit_client_id else ""
    return ["durable" if subscription.durable else "shared", owner, subscription.name]

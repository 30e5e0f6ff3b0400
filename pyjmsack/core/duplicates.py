"""The guard against messages that were processed already: after a failover some come again (S105)."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from pyjmsack.errors import JMSException
from pyjmsack.spi.envelope import Inbound
from pyjmsack.spi.resources import ConsumerInfo

if TYPE_CHECKING:
    from pyjmsack.core.connection import Connection

__all__ = ["DuplicateGuard", "InHand", "MemoryStore", "SqliteStore", "Store", "make_store"]

_ROWS = 500
"""Keys written with one statement."""
_TRIM_EVERY = 1000
_AUDIT_DEPTH, _AUDITED_PRODUCERS = 2048, 64
"""Defaults of ActiveMQ for ``jms.auditDepth`` and ``jms.auditMaximumProducerNumber``."""


class Store(Protocol):
    """Remembers keys of messages: the newest ones, up to a number."""

    outlives: bool
    """Whether it may know messages of an earlier process."""

    def key(self, identity: bytes, /) -> Any:
        """Return what is kept of the bytes by which a message is known."""
        ...

    def add(self, keys: Sequence[Any]) -> None:
        """Remember keys."""
        ...

    def __contains__(self, key: Any) -> bool: ...

    def close(self) -> None:
        """Nothing more will be asked."""
        ...


class MemoryStore:
    """The keys of one session, for as long as it lives.

    Args:
        size: most keys that are remembered.
    """

    outlives = False

    def __init__(self, size: int) -> None:
        self._size = size
        self._keys: OrderedDict[Hashable, None] = OrderedDict()
        """A plain dict looks for its first key among all that it had before, which took 78 µs a message."""

    @staticmethod
    def key(identity: bytes) -> int:
        """Return a hash of 64 bits, keyed anew in each process, for a tenth of the time of a digest: a message is taken
        for one of 65,536 others with a probability of 4e-15, and only if it came after a failover and that before."""
        return hash(identity)

    def add(self, keys: Sequence[int]) -> None:
        """Remember keys; the oldest ones go. The loop may add, too, when acknowledgements have waited long enough."""
        known = self._keys
        for key in keys:
            known[key] = None
        while len(known) > self._size:
            known.popitem(last=False)

    def __contains__(self, key: int) -> bool:
        return key in self._keys

    def close(self) -> None:
        """Nothing to close."""


class SqliteStore:
    """Keys in a file, so that they outlive the process. Sessions that name the same file share it.

    A key is written before its acknowledgement is sent, in a way that a killed process does not undo. Each call is one
    statement, and sqlite keeps those of several threads and processes apart.

    Args:
        path: the file; made if it is not there.
        size: most keys that are remembered.

    Raises:
        JMSException: the file cannot be used; each call may say so.
    """

    outlives = True

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self._size = size
        self._added = 0
        with self._named():
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=NORMAL",
            "CREATE TABLE IF NOT EXISTS processed (number INTEGER PRIMARY KEY, key BLOB UNIQUE)",
        ):
            self._execute(statement)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Let an error say which file it is about."""
        try:
            yield
        except sqlite3.Error as error:
            raise JMSException(f"failover.duplicateGuard=sqlite:{self._path}: {error}") from error

    def _execute(self, statement: str, values: Sequence[bytes | int] = ()) -> list[Any]:
        with self._named():
            return self._database.execute(statement, values).fetchall()

    @staticmethod
    def key(identity: bytes) -> bytes:
        """Return a digest: any process makes the same one."""
        return blake2b(identity, digest_size=16).digest()

    def add(self, keys: Sequence[bytes]) -> None:
        """Remember keys; now and then the oldest ones go."""
        for start in range(0, len(keys), _ROWS):
            rows = keys[start : start + _ROWS]
            marks = ",".join(["(?)"] * len(rows))
            self._execute(f"INSERT OR IGNORE INTO processed (key) VALUES {marks}", rows)  # noqa: S608 - marks only
        self._added += len(keys)
        if self._added >= _TRIM_EVERY:
            self._added = 0
            last = "(SELECT max(number) FROM processed)"
            self._execute(f"DELETE FROM processed WHERE number <= {last} - ?", (self._size,))  # noqa: S608 - fixed

    def __contains__(self, key: bytes) -> bool:
        return bool(self._execute("SELECT 1 FROM processed WHERE key = ?", (key,)))

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def make_store(connection: Connection) -> Store | None:
    """Return the store of a new session; ``None`` without failover, or if the user wants none."""
    options, jms = connection.url.failover, connection.options
    store, path = options.duplicate_guard
    if not connection.url.members or store == "none" or not jms.check_for_duplicates:
        return None
    size = options.duplicate_guard_size
    if jms.audit_depth is not None or jms.audit_maximum_producer_number is not None:
        size = (jms.audit_depth or _AUDIT_DEPTH) * (jms.audit_maximum_producer_number or _AUDITED_PRODUCERS)
    return MemoryStore(size) if store == "memory" else SqliteStore(path, size)


class InHand(WeakValueDictionary[Any, Inbound]):
    """What the callers of a session's consumers have, by key; it keeps none of it alive."""

    def __init__(self) -> None:
        super().__init__()
        self.detached: set[int] = set()
        """Ids of consumers that the broker closed: what these delivered is the broker's again."""


class DuplicateGuard:
    """What one consumer processed, among all that its store remembers, and what is in the caller's hands.

    A queue gives a message to one consumer, whichever that is; each subscription gets its own copy.

    Args:
        in_hand: of the session, which forgets it with the transaction.
        transacted: whether what they have is acknowledged already, in the open transaction.
    """

    def __init__(self, store: Store, info: ConsumerInfo, client_id: str, in_hand: InHand, *, transacted: bool) -> None:
        self._store = store
        self._in_hand = in_hand
        self._transacted = transacted
        destination, subscription = info.destination, info.subscription
        scope = [type(destination).__name__, destination.name]
        if destination.is_topic:
            scope += [client_id, str(info.id) if subscription is None else subscription.name]
        self._scope = blake2b("\0".join(scope).encode(), digest_size=8).digest()
        self.outlives = store.outlives

    def add_one(self, inbound: Inbound) -> None:
        """This one was processed; quicker than a list of one."""
        key = self._key(inbound)
        if key is not None:
            self._store.add((key,))

    def add(self, inbounds: Iterable[Inbound]) -> None:
        """These were processed."""
        keys = [key for inbound in inbounds if (key := self._key(inbound)) is not None]
        if keys:
            self._store.add(keys)

    def knows(self, inbound: Inbound) -> bool:
        """Whether the same message was processed before, or another delivery of it is in the caller's hands."""
        key = self._key(inbound)
        return key is not None and (key in self._store or self._holds(key, inbound))

    def hold(self, inbound: Inbound) -> None:
        """The caller has it, not processed yet."""
        key = self._key(inbound)
        if key is not None:
            self._in_hand[key] = inbound

    def _holds(self, key: Any, inbound: Inbound) -> bool:
        """Whether the caller has another delivery of the same message, by the same connection: a sender repeated it,
        and the broker stored both (S91). What another connection brought is this message itself, come again (S95), and
        so is the very delivery: it was given back, and nobody has it but us (S82)."""
        held = self._in_hand.get(key)
        if held is None or held is inbound or held.generation != inbound.generation:
            return False
        return self._transacted or not (held.settled or held.consumer_id in self._in_hand.detached)

    def _key(self, inbound: Inbound) -> Any | None:
        identity = inbound.identity()
        return None if identity is None else self._store.key(self._scope + identity)

"""One broker of a kind for all workers of a run: the first that asks starts it, the others are told where it is."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from pyjmsack.broker import EmbeddedActiveMQ, EmbeddedArtemis

__all__ = ["Served", "SharedBrokers"]

Embedded = EmbeddedArtemis | EmbeddedActiveMQ


class Served(NamedTuple):
    """Where a broker listens. It serves other workers as well, so no test may stop it."""

    amqp_url: str
    stomp_url: str


class SharedBrokers:
    """The brokers that a worker uses, by key.

    Every user of a broker holds a shared lock on a file of its key. The worker that started the broker stops it when
    it has the lock alone. The system frees the locks of a worker that dies.
    """

    def __init__(self, factories: Mapping[str, Callable[[], Embedded]], directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._factories = factories
        self._directory = directory
        self._users: dict[str, IO[str]] = {}
        self._served: dict[str, Served] = {}
        self._started: dict[str, Embedded] = {}

    def get(self, key: str) -> Served:
        """Return a broker, started if nobody has."""
        if key not in self._served:
            with self._locked(f"{key}.gate"):  # one worker at a time comes in
                self._users[key] = self._lock(f"{key}.users", fcntl.LOCK_SH)
                self._served[key] = self._found(key) or self._start(key)
        return self._served[key]

    def _found(self, key: str) -> Served | None:
        address = self._directory / f"{key}.json"
        return Served(**json.loads(address.read_text())) if address.exists() else None

    def _start(self, key: str) -> Served:
        self._started[key] = broker = self._factories[key]().start()
        served = Served(broker.amqp_url, broker.stomp_url)
        (self._directory / f"{key}.json").write_text(json.dumps(served._asdict()))
        return served

    def close(self) -> None:
        """Let go of all brokers, then stop those that this worker started, each when nobody uses it any more."""
        for user in self._users.values():
            user.close()
        for key, broker in self._started.items():
            with self._locked(f"{key}.users"):
                (self._directory / f"{key}.json").unlink()
                broker.stop()

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with self._lock(name, fcntl.LOCK_EX):
            yield

    def _lock(self, name: str, kind: int) -> IO[str]:
        file = (self._directory / name).open("w")
        fcntl.flock(file, kind)
        return file

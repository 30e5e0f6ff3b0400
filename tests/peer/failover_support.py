"""Outages for the failover tests: when there is no broker, and for how long, is the test's choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peer import Peer, Transfer
from peer_faces import Face, Told

__all__ = ["Events", "Outage", "dropping", "interruptible", "once"]


class Events:
    """A connection listener that writes down what happened to the connection."""

    def __init__(self, connection: Any) -> None:
        self._told = Told()
        connection.add_connection_listener(self)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_connection_"):
            raise AttributeError(name)
        return lambda *arguments: self._told(name.removeprefix("on_connection_"), *arguments)

    def wait(self, *names: str) -> None:
        """Wait for exactly these, in order."""
        assert [call[0] for call in self._told.wait(len(names))] == list(names)

    @property
    def names(self) -> list[str]:
        """What happened so far."""
        return [call[0] for call in self._told.calls]

    @property
    def calls(self) -> list[tuple[Any, ...]]:
        """The same, with arguments."""
        return self._told.calls


class Outage:
    """A peer that drops its connections and does not open new ones, until it does."""

    def __init__(self, face: Face, peer: Peer, connection: Any) -> None:
        self._face = face
        self._peer = peer
        self._events = Events(connection)
        self._events.wait("established")

    def begin(self) -> None:
        """Cut the connection; returns when the client knows."""
        self._peer.script.silent.add("open")
        known = len(self._events.names)
        self._peer.drop()
        self._face.until(lambda: len(self._events.names) > known)

    def end(self) -> None:
        """Be there again; returns when the client is back."""
        known = len(self._events.names)
        self.end_soon()
        self._face.until(lambda: len(self._events.names) > known)
        assert self._events.names[-1] == "restored"

    def end_soon(self) -> None:
        """Be there again. In one turn of the peer: a connection made in between would get its Open and be cut then."""

        def act() -> None:
            self._peer.script.silent.discard("open")
            for connection in self._peer.connections:
                if connection.alive:  # it waits for its Open
                    connection.drop()

        self._peer.do(act)


def interruptible(face: Face, *, options: str = "", **script: Any) -> tuple[Peer, Any, Outage]:
    """Start a peer, connect to it through a failover URL, and return both with the switch of its outages."""
    peer = face.peer(**script)
    connection = face.failover(peer, options=options)
    return peer, connection, Outage(face, peer, connection)


def dropping(peer: Peer) -> Callable[..., None]:
    """Return an answer to anything: cut the newest connection."""

    def drop(*_: Any) -> None:
        peer.connections[-1].drop()

    return drop


def once(first: Callable[..., Any], then: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is ``first`` once, and ``then`` from then on."""
    calls: list[Callable[..., Any]] = [first]

    def call(argument: Transfer | Any) -> Any:
        return (calls.pop() if calls else then)(argument)

    return call

"""Both faces behind one: the asyncio face is driven from another thread, so that a test is written once, blocking."""

from __future__ import annotations

import asyncio
import inspect
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from polling import wait_until
from without_proton import REASON

import pyjmsack
import pyjmsack.aio
from pyjmsack.message import Message

if TYPE_CHECKING:
    from peer import Peer

__all__ = ["PATIENCE", "AioFace", "Face", "SyncFace", "Told"]

PATIENCE = 60.0
"""Seconds after which a wait is a failure. Nothing waits this long when it works."""


class Told:
    """A completion listener, or any callable, that writes down what it is told; wait with :meth:`wait`."""

    def __init__(self, then: Callable[..., Any] | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._then = then
        self._changed = threading.Condition()

    def __call__(self, *arguments: Any) -> None:
        with self._changed:
            self.calls.append(arguments)
            self._changed.notify_all()
        if self._then is not None:
            self._then(*arguments)

    def on_completion(self, message: Any) -> None:
        self("completed", _name(message), None)

    def on_exception(self, message: Any, error: BaseException) -> None:
        self("failed", _name(message), error)

    def wait(self, number: int) -> list[tuple[Any, ...]]:
        """Wait for that many calls."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.calls) >= number, PATIENCE):
                raise AssertionError(f"{len(self.calls)} calls instead of {number}: {self.calls}")
        return list(self.calls)

    def first(self) -> Any:
        """Wait for the first call and return its only argument."""
        return self.wait(1)[0][0]


def _name(message: Any) -> Any:
    return getattr(message, "text", None)


class Face:
    """What a test needs of a face; closes everything at its end."""

    name = ""
    module: Any = None

    def __init__(self) -> None:
        self._peers: list[Peer] = []
        self._opened: list[Any] = []
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="test")

    def peer(self, *, tls: ssl.SSLContext | None = None, **script: Any) -> Peer:
        """Start a scripted broker."""
        pytest.importorskip("proton", reason=REASON)
        from peer import Peer, Script

        peer = Peer(Script(**script), tls=tls)
        self._peers.append(peer)
        return peer

    def factory(self, peer: Peer, *options: str, **arguments: Any) -> Any:
        """Return a connection factory for a peer."""
        if not any(option.startswith("jms.closeTimeout=") for option in options):
            options = (*options, "jms.closeTimeout=3000")  # a hang at the end of a test is then short
        url = f"{peer.url}?{'&'.join(options)}"
        return self.wrap(self.module.ConnectionFactory(url, **arguments))

    def connect(self, peer: Peer, *options: str, start: bool = True, **arguments: Any) -> Any:
        """Connect to a peer."""
        connection = self.factory(peer, *options, **arguments).create_connection()
        self._opened.append(connection)
        if start:
            connection.start()
        return connection

    def failover(self, *peers: Peer | str, options: str = "", start: bool = True, **arguments: Any) -> Any:
        """Connect through a failover URL to the first of several peers."""
        members = ",".join(peer if isinstance(peer, str) else peer.url for peer in peers)
        url = f"failover:({members})?jms.closeTimeout=3000&{options}".rstrip("&")
        connection = self.wrap(self.module.ConnectionFactory(url, **arguments)).create_connection()
        self._opened.append(connection)
        if start:
            connection.start()
        return connection

    def session(self, peer: Peer, *options: str, mode: int = 1, **arguments: Any) -> Any:
        """Return a session of a new connection."""
        return self.connect(peer, *options, **arguments).create_session(mode)

    def background(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run a blocking call beside the test."""
        return self._pool.submit(call, *arguments)

    def barrier(self, peer: Peer, session: Any) -> None:
        """Make sure that everything the client wrote so far has arrived.

        Twice, as proton writes the attach before the outcomes of the same burst.
        """
        for _ in range(2):
            before = len(peer.all("attach"))
            session.create_producer(pyjmsack.Queue("barrier"))
            peer.wait_frames("attach", before + 1)

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait for something inside the client that shows nowhere else."""
        wait_until(condition, PATIENCE)

    def wrap(self, target: Any) -> Any:
        """Return a blocking view of an object of this face."""
        return target

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call what may be a coroutine function of this face, and wait for the result."""
        return function(*arguments, **named)

    def close(self) -> None:
        """Cut the peers off first: then closing waits for nothing."""
        for peer in self._peers:
            peer.stop()
        for connection in self._opened:
            connection.close()
        self._pool.shutdown()
        for peer in self._peers:
            peer.check()


class SyncFace(Face):
    """The blocking face as it is."""

    name = "sync"
    module = pyjmsack


class AioFace(Face):
    """The asyncio face: its loop runs in a thread, every access goes there and waits."""

    name = "aio"
    module = pyjmsack.aio

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="aio-face", daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call on the loop, await what can be awaited, and wait for the result."""

        async def run() -> Any:
            result = function(*arguments, **named)
            if isinstance(result, asyncio.Future):
                return _concurrent(result)
            return await result if inspect.isawaitable(result) else result

        return self.wrap(asyncio.run_coroutine_threadsafe(run(), self.loop).result(3 * PATIENCE))

    def wrap(self, target: Any) -> Any:
        module = type(target).__module__
        ours = module.startswith("pyjmsack.aio") or isinstance(target, Message)
        return _View(self, target) if ours else target

    def close(self) -> None:
        super().close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()


def _concurrent(future: asyncio.Future[Any]) -> Future[Any]:
    result: Future[Any] = Future()

    def copy(done: asyncio.Future[Any]) -> None:
        error = done.exception()
        if error is None:
            result.set_result(done.result())
        else:
            result.set_exception(error)

    future.add_done_callback(copy)
    return result


class _View:
    """An object of the asyncio face, seen from a thread that blocks."""

    def __init__(self, face: AioFace, target: Any) -> None:
        self.__dict__.update(_face=face, _target=target)

    def __getattr__(self, name: str) -> Any:
        value = self._face.call(lambda: getattr(self._target, name))
        if not callable(value) or isinstance(value, Told):
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            return self._face.call(value, *(_unwrapped(a) for a in arguments), **named)

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        self._face.call(setattr, self._target, name, value)

    def __iter__(self) -> Iterator[Any]:
        generator = self._target.__aiter__()
        while True:
            try:
                yield self._face.call(generator.__anext__)
            except StopAsyncIteration:
                return

    def __repr__(self) -> str:
        return f"<view of {self._target!r}>"


def _unwrapped(value: Any) -> Any:
    return value._target if isinstance(value, _View) else value

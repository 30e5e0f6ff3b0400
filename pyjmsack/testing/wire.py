""":class:`Wire`: a relay between a client and a broker, which can fail on command."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from urllib.parse import urlsplit

__all__ = ["Wire"]

_HOST = "127.0.0.1"
_CHUNK = 65536
_BACKLOG = 16  # the number of chunks that a delayed direction holds before it stops reading


class _Direction:
    """One direction of the wire. All connections through the wire share its faults."""

    def __init__(self) -> None:
        self.lag = 0.0
        self.left: int | None = None
        """The number of bytes that still pass before the wire is cut. ``None`` means that any number passes."""
        self.open = asyncio.Event()
        self.heal()

    def heal(self) -> None:
        self.lag, self.left = 0.0, None
        self.open.set()

    def let_through(self, data: bytes) -> bytes:
        """Return the part of ``data`` that may pass before the wire is cut."""
        if self.left is None:
            return data
        passing = data[: self.left]
        self.left -= len(passing)
        return passing


class Wire:
    """A TCP relay on 127.0.0.1 to a broker. A test connects to :attr:`url` instead of the broker, and can then break
    the wire.

    The relay works on a thread of its own, so every method may be called from any thread and from a coroutine. A method
    has taken effect when it returns, and never waits for the network. Several faults may hold at the same time, until
    :meth:`heal`.

    >>> with Wire(broker.amqp_url) as wire:  # doctest: +SKIP
    ...     connection = ConnectionFactory(wire.url).create_connection()
    ...     wire.cut()

    Args:
        broker_url: the URL of one broker, ``SCHEME://HOST:PORT``. If it has options, ``url`` has the same options. The
            broker may speak any protocol.

    Raises:
        ValueError: ``broker_url`` is not of that form.
    """

    def __init__(self, broker_url: str) -> None:
        parts = urlsplit(broker_url)
        try:
            host, port = parts.hostname, parts.port
        except ValueError:  # no number
            host = port = None
        if not parts.scheme or not host or not port:
            raise ValueError("broker_url: expected SCHEME://HOST:PORT of one broker")
        self._target = (host, port)
        self._broken = False
        self._connections: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        """For the task of each connection: the writers to its client and to its broker, as soon as each is open."""
        started: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="pyjmsack-wire", daemon=True
        )
        self._thread.start()
        own = host if host == "localhost" else _HOST  # the certificate of the broker may have this name
        self._url = parts._replace(netloc=f"{own}:{started.result()}").geturl()

    @property
    def url(self) -> str:
        """The URL to connect to instead of the broker."""
        return self._url

    @property
    def broken(self) -> bool:
        """Whether the wire was cut, by :meth:`cut` or by :meth:`cut_after`, and is not healed yet."""
        return self._broken

    def cut(self) -> None:
        """Break every connection. From now on break each new connection too, until :meth:`heal`.

        Raises:
            RuntimeError: the wire is closed.
        """
        self._apply(self._cut)

    def cut_after(self, count: int, *, replies: bool = False) -> None:
        """Cut the wire when ``count`` more bytes have passed in one direction. If the wire is cut now, it works again
        until these bytes have passed.

        ``cut_after(0, replies=True)`` cuts the wire when the broker answers, so that the broker has done its work and
        the client does not get the answer.

        Args:
            count: the bytes that still pass. With 0 the next byte cuts the wire.
            replies: whether to count the bytes from the broker. Otherwise the bytes to the broker are counted.

        Raises:
            ValueError: ``count`` is negative.
            RuntimeError: the wire is closed.
        """
        if count < 0:
            raise ValueError(f"count: {count} is negative; expected a number of bytes")

        def limit() -> None:
            self._broken = False
            (self._from_broker if replies else self._to_broker).left = count

        self._apply(limit)

    def swallow_replies(self) -> None:
        """From now on keep all bytes that the broker sends. :meth:`heal` sends these bytes on. If the wire is cut
        before :meth:`heal` is called, the bytes are lost.

        Raises:
            RuntimeError: the wire is closed.
        """
        self._apply(lambda: self._from_broker.open.clear())

    def delay(self, seconds: float) -> None:
        """Delay all bytes, in both directions.

        Args:
            seconds: how long to delay each byte. 0 ends the delay.

        Raises:
            ValueError: ``seconds`` is negative.
            RuntimeError: the wire is closed.
        """
        if seconds < 0:
            raise ValueError(f"seconds: {seconds} is negative; expected 0 or more")

        def slow_down() -> None:
            self._to_broker.lag = self._from_broker.lag = seconds

        self._apply(slow_down)

    def heal(self) -> None:
        """End all faults. New connections work, and swallowed bytes arrive. Connections that were cut stay cut.

        Raises:
            RuntimeError: the wire is closed.
        """

        def mend() -> None:
            self._broken = False
            self._to_broker.heal()
            self._from_broker.heal()

        self._apply(mend)

    def close(self) -> None:
        """Break every connection and end the relay. A second call has no effect."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop ended just now
                self._loop.call_soon_threadsafe(self._ended.set)
            self._thread.join()

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Wire {self._target[0]}:{self._target[1]}>"

    def _apply(self, change: Callable[[], None]) -> None:
        """Run ``change`` on the relay's thread, and return when it has ended."""
        done: Future[None] = Future()

        def run() -> None:
            change()
            done.set_result(None)

        try:
            self._loop.call_soon_threadsafe(run)
        except RuntimeError as error:
            raise RuntimeError("The wire is closed.") from error
        done.result()

    async def _serve(self, started: Future[int]) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._to_broker, self._from_broker = _Direction(), _Direction()
        try:  # asyncio's own server is no choice, because its close() forgets connections that it just accepted
            listener = socket.create_server((_HOST, 0))
        except OSError as error:
            started.set_exception(error)
            return
        with listener:
            listener.setblocking(False)
            self._loop.add_reader(listener, self._accept, listener)
            started.set_result(listener.getsockname()[1])
            await self._ended.wait()
            self._loop.remove_reader(listener)
        self._cut()
        if self._connections:
            await asyncio.wait(self._connections)

    def _cut(self) -> None:
        self._broken = True
        self._to_broker.left = self._from_broker.left = None
        for connection, writers in self._connections.items():
            connection.cancel()
            for writer in writers:
                writer.transport.abort()

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # the client closed the connection already
            return
        if self._broken:
            client.close()
            return
        writers: list[asyncio.StreamWriter] = []
        connection = asyncio.create_task(self._relay(client, writers))
        self._connections[connection] = writers

        def ended(_: object) -> None:
            del self._connections[connection]
            client.close()  # needed for a task that was cancelled before it began

        connection.add_done_callback(ended)

    async def _relay(self, client: socket.socket, writers: list[asyncio.StreamWriter]) -> None:
        """Carry one connection: connect to the broker, and pass the bytes on in both directions until both end."""
        pumps: list[asyncio.Task[None]] = []
        try:
            reader, writer = await asyncio.open_connection(sock=client)
            writers.append(writer)
            broker_reader, broker_writer = await asyncio.open_connection(*self._target)
            writers.append(broker_writer)
            pumps = [
                asyncio.create_task(self._pump(reader, broker_writer, self._to_broker)),
                asyncio.create_task(self._pump(broker_reader, writer, self._from_broker)),
            ]
            await asyncio.wait(pumps)
        except OSError:  # the broker does not accept connections
            pass
        finally:
            for pump in pumps:
                pump.cancel()
            for each in writers:
                each.transport.abort()
            await asyncio.gather(*pumps, *(each.wait_closed() for each in writers), return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Direction) -> None:
        """Pass the bytes of one connection on in one direction. When the sender has ended, pass on the end too."""
        backlog: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_BACKLOG)
        reading = asyncio.create_task(self._read(reader, backlog, way))
        try:
            await self._write(backlog, writer, way)
        except OSError:
            writer.transport.abort()  # the other direction then ends too, because its reader sees the abort
        finally:
            reading.cancel()

    async def _read(
        self, reader: asyncio.StreamReader, backlog: asyncio.Queue[tuple[float, bytes]], way: _Direction
    ) -> None:
        data = b"first"
        while data:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                data = b""
            await backlog.put((self._loop.time() + way.lag, data))

    async def _write(
        self, backlog: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter, way: _Direction
    ) -> None:
        writer.transport.set_write_buffer_limits(high=0)  # so drain() waits until the system has the bytes
        while True:
            due, data = await backlog.get()
            await asyncio.sleep(max(0.0, due - self._loop.time()))
            await way.open.wait()
            if not data:
                writer.write_eof()
                return
            writer.write(way.let_through(data))
            await writer.drain()
            if way.left == 0:
                self._cut()

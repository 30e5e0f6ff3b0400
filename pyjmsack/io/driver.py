"""Connects an engine with a socket of asyncio. The driver passes bytes in both directions, calls the engine at its
deadlines, and waits while the socket is full."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from asyncio.trsock import TransportSocket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from math import inf
from ssl import SSLContext, SSLError
from typing import cast
from weakref import WeakKeyDictionary, WeakSet

from pyjmsack.errors import ConnectionLostException, JMSException, RequestTimedOutException
from pyjmsack.io.helpers import Helpers
from pyjmsack.io.inquiry import History, Inquiry, shaken
from pyjmsack.io.names import Address, Names
from pyjmsack.io.reaching import connect
from pyjmsack.io.reading import BodyReading
from pyjmsack.io.spooling import Spool, Spooler
from pyjmsack.io.tls import client_context, handshake_error, refusal
from pyjmsack.loggers import get_logger
from pyjmsack.message import BodySource
from pyjmsack.recognition import mismatch, recognise
from pyjmsack.spi.engine import Engine, Timer
from pyjmsack.uri import SCHEMES, BrokerUrl, Endpoint, TransportOptions

__all__ = ["AsyncioConnector"]

log = get_logger("pyjmsack.io")

_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)
"""The socket option that makes TCP acknowledge bytes at once. Only Linux has this option; elsewhere the value is
``None``."""
WRITE_SIZE = 1 << 20
"""The driver gathers this number of bytes for one write, because many system calls take longer than copying the
pieces."""
_TURN_SIZE = 1 << 23
"""After this number of bytes other connections of the loop have a turn, because a peer may read as fast as the driver
writes."""

READ_SIZE = 1 << 18
"""The largest number of bytes that one read takes from the socket."""
_SMALL_READ = 1 << 14
"""A read may always take this number of bytes, and the time of a smaller read is not measured."""
_LONG_READ = 0.05
"""If the engine works on the bytes of one read for longer than this number of seconds of CPU, the next read is smaller.
Otherwise a broker that sends many tiny frames would hold up the other connections of the loop."""

_FAREWELL = 5.0
"""After this number of seconds a socket is closed although the peer has not read the last bytes, or has not answered
the end of TLS."""

_START_ONE = "; no broker listens there: start one with `pyjmsack broker`"
"""The next step for a port of this machine at which nobody listens."""
_MOST_HELPERS = 2
"""The largest number of threads with which one connection works on files. One thread writes large messages. The other
reads these messages, or certificates, or computes the rounds of SCRAM before there are messages."""
_read_buffers: WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = WeakKeyDictionary()


def _read_buffer(loop: asyncio.AbstractEventLoop) -> memoryview:
    """Return the memory into which the streams of a loop read. All streams share this memory, because a loop reads for
    one stream at a time, and the driver copies the bytes before the next read.

    Without this memory, asyncio would allocate a buffer of this size for each read and free most of it again, which
    takes three system calls.
    """
    buffer = _read_buffers.get(loop)
    if buffer is None:
        buffer = _read_buffers[loop] = memoryview(bytearray(READ_SIZE))
    return buffer


class Driver(asyncio.BufferedProtocol):
    """The connection between one socket and one engine. asyncio calls the methods, and the methods call the engine.

    All methods run on the loop.

    Args:
        history: the known facts about the brokers. ``None`` means that a silent port is not asked which protocol it
            speaks.
    """

    def __init__(
        self, engine: Engine, loop: asyncio.AbstractEventLoop, endpoint: Endpoint, history: History | None = None
    ) -> None:
        self.encrypted = endpoint.tls
        self._endpoint = endpoint
        self._expected = _expected(endpoint)
        """The protocol to which the first bytes from the broker must belong. ``None`` after the right bytes have come,
        or if any protocol is allowed."""
        self._history = history
        self._inquiry: Inquiry | None = None
        """The inquiry that asks the port for its protocol, while a plain stream waits for its first byte."""
        self._engine = engine
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._turn: asyncio.Handle | None = None
        """The next flush, while the engine has more bytes and other connections have their turn."""
        self._deaf = False
        """True while the driver does not read from the socket."""
        self._closing = False
        self._broken: JMSException | None = None
        """The error that ended the writing."""
        self._timer: asyncio.TimerHandle | None = None
        self._tick_at = 0.0
        """The time of the loop at which the timer calls ``_tick``."""
        self._socket: TransportSocket | None = None
        self._buffer = _read_buffer(loop)
        self._room = READ_SIZE
        """The largest number of bytes of the next read."""

    def acknowledge_at_once(self, sock: TransportSocket) -> None:
        """Let TCP acknowledge received bytes at once, without waiting for bytes to send, if the system can.

        ActiveMQ Classic does not set TCP_NODELAY. Therefore Classic holds back its second answer until TCP has
        acknowledged the first answer. Without this method the acknowledgement takes 40 ms, for example in each commit.
        """
        if _QUICK_ACK is not None:
            self._socket = sock

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the engine, because the socket is connected and TLS, if used, is set up."""
        self._transport = cast(asyncio.Transport, transport)
        with self._net():
            self._engine.connection_made(self)
        self._tick()
        self._inquire(transport)

    def _inquire(self, transport: asyncio.BaseTransport) -> None:
        """Prepare to ask the port which protocol it speaks, if no byte comes.

        The port is not asked if the connection uses TLS, because the broker has answered the TLS handshake already. The
        port is not asked either if the connection has reached its broker before.
        """
        if self._history is None or self._history.answered or self._expected is None or self.encrypted:
            return
        address = transport.get_extra_info("peername")
        if address:
            self._inquiry = Inquiry(self._loop, self._expected, self._end_with)
            self._inquiry.begin(address[:2])

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory into which asyncio reads from the socket."""
        return self._buffer if self._room == READ_SIZE else self._buffer[: self._room]

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the bytes that asyncio has read to the engine."""
        data = bytes(self._buffer[:nbytes])
        # with TLS each read gets the whole memory, because at the end of the stream asyncio reads only once more, and
        # drops the bytes that do not fit
        if nbytes < _SMALL_READ or self.encrypted:
            self.received(data)
            return
        began = time.thread_time()
        self.received(data)
        if time.thread_time() - began > _LONG_READ:
            self._room = max(_SMALL_READ, self._room // 4)
        elif self._room < READ_SIZE:
            self._room = min(READ_SIZE, self._room * 2)

    def received(self, data: bytes) -> None:
        """Pass bytes of the peer to the engine."""
        if self._expected is not None and self._is_stranger(data, self._expected):
            return
        with self._net():
            self._engine.receive_data(data)
        if self._socket is not None and not self._closing:
            # set again after each read, because the system resets this option after a while
            self._socket.setsockopt(socket.IPPROTO_TCP, cast(int, _QUICK_ACK), 1)
        if self._timer is None and not self._closing:
            self._tick()

    def _is_stranger(self, data: bytes, expected: str) -> bool:
        """Return whether the first bytes from the broker belong to another protocol than ``expected``. In this case,
        end the connection with an error that names the other protocol."""
        self._end_inquiry()
        spoken = recognise(data)
        if spoken is None or spoken == expected:
            self._expected = None
            if self._history is not None:
                self._history.answered = True
            return False
        self._end_with(spoken)
        return True

    def _end_with(self, spoken: str) -> None:
        """End the connection with an error, because the port speaks the protocol ``spoken`` and not the protocol of the
        URL."""
        expected, self._expected = self._expected, None
        if expected is not None and not self._closing:
            self._engine.connection_lost(ConnectionLostException(mismatch(str(self._endpoint), spoken, expected)))
            self.abort()

    def _end_inquiry(self) -> None:
        inquiry, self._inquiry = self._inquiry, None
        if inquiry is not None:
            inquiry.end()

    @contextmanager
    def _net(self) -> Iterator[None]:
        """If the engine raises an exception, end the connection with an error of this library.

        Otherwise a caller would wait for ever, or get a Python exception that explains nothing.
        """
        try:
            yield
        except BaseException as error:
            text = f"the peer sent bytes that this client cannot read ({type(error).__name__}: {error})"
            self._engine.connection_lost(_caused(ConnectionLostException(text), error))
            self.abort()
            if not isinstance(error, Exception):  # such as SystemExit in code of the program
                raise
            log.error("%s", text, exc_info=error)

    def retick(self) -> None:
        """Call the engine's ``tick`` in the next turn of the loop, because the deadline of the engine may have
        changed."""
        if self._closing:
            return
        now = self._loop.time()
        if self._timer is not None:
            if self._tick_at <= now:  # otherwise bytes in each turn of the loop would put the tick off for ever
                return
            self._timer.cancel()
        self._tick_later(now)

    def eof_received(self) -> None:
        """Let asyncio close the connection, because the peer closed its side and sends nothing more."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the engine that the socket is closed."""
        self._closing = True
        self._end_inquiry()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._engine.connection_lost(self._broken or refusal(exc) or exc)

    def pause_writing(self) -> None:
        """Leave further bytes in the engine, because the socket's buffer is full."""
        self._paused = True

    def resume_writing(self) -> None:
        """Write again, because the socket's buffer has room."""
        self._paused = False
        self.flush()

    def flush(self) -> None:
        """Write the bytes of the engine, until the engine has no more or the socket is full. If the engine has very
        many bytes, write the rest in the next turns of the loop.

        If writing fails, for example because there is no memory, end the connection. A part of a frame may have left,
        and the peer would take the next bytes for the rest of this frame.
        """
        self._flush(_TURN_SIZE)

    def _flush(self, most: float) -> None:
        """Write at most about ``most`` bytes now."""
        try:
            if self._turn is not None:
                self._turn.cancel()
                self._turn = None
            if self._transport is not None and not self._closing:
                self._write(self._transport, most)
        except BaseException as error:
            text = f"the bytes for the peer could not be written ({type(error).__name__}: {error})"
            self._broken = _caused(ConnectionLostException(text), error)
            self.abort()  # then asyncio calls connection_lost
            if not isinstance(error, Exception):
                raise
            log.error("%s", text)

    def _write(self, transport: asyncio.Transport, most: float) -> None:
        take = self._engine.data_to_send
        written = 0
        while not self._paused:
            if written >= most:
                self._turn = self._loop.call_soon(self.flush)
                return
            chunks, size = [], 0
            while size < WRITE_SIZE and (data := take()):
                chunks.append(data)
                size += len(data)
            if not chunks:
                return
            transport.write(chunks[0] if len(chunks) == 1 else b"".join(chunks))
            written += size

    def pause(self) -> None:
        """Stop reading until :meth:`resume` is called."""
        if self._transport is not None and not self._closing and not self._deaf:
            self._deaf = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Start to read again."""
        if self._transport is not None and not self._closing and self._deaf:
            self._deaf = False
            self._transport.resume_reading()

    @property
    def unwritten(self) -> bool:
        """Whether the stream is open and the socket has not taken all bytes yet."""
        transport = self._transport
        if transport is None or self._closing:
            return False
        # the transport of TLS does not count what the transport below it holds, and has no public name for it
        below = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
        waits = self._paused or self._turn is not None
        return waits or any(each.get_write_buffer_size() > 0 for each in (transport, below) if each is not None)

    def close(self) -> None:
        """Write the remaining bytes and close the socket.

        If the socket is full, close the socket at once, because the peer does not read. Failover repeats the pending
        sends at another broker, and this peer would get them too if it reads again later. A peer that stops to read
        now gets a few seconds.
        """
        if self._closing or self._transport is None:
            return
        if not self._paused:
            self._flush(inf)
        if self._paused:
            self.abort()
        elif not self._closing:  # the flush may have failed
            self._closing = True
            self._transport.close()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._loop.time() + _FAREWELL, self._transport.abort)

    def abort(self) -> None:
        """Close the socket at once. Bytes that are not written yet are dropped."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def _tick(self) -> None:
        self._timer = None
        if self._closing:
            return
        deadline = None
        with self._net():  # the engine may read bytes that came earlier
            deadline = self._engine.tick(self._loop.time())
        # if the engine called retick meanwhile, a second timer would double the timers with each tick
        if deadline is not None and self._timer is None and not self._closing:
            self._tick_later(deadline)

    def _tick_later(self, deadline: float) -> None:
        self._tick_at = deadline
        self._timer = self._loop.call_at(deadline, self._tick)


class AsyncioConnector:
    """Opens streams on one loop.

    Args:
        url: the URL, whose transport options are used.
        ssl_context: the TLS context of the application. ``None`` means that a context is made from the options.
        sibling: another connector of the same JMS connection. Both share what the connection knows about its brokers,
            and its helper threads. ``None`` means that this is the first connector.
    """

    def __init__(
        self,
        url: BrokerUrl,
        loop: asyncio.AbstractEventLoop,
        ssl_context: SSLContext | None,
        sibling: AsyncioConnector | None = None,
    ) -> None:
        self._options: TransportOptions = url.transport
        self._loop = loop
        self._ssl_context = ssl_context
        self._history: History = sibling._history if sibling else History()
        self._names: Names = sibling._names if sibling else Names(loop)
        self._helpers: Helpers = sibling._helpers if sibling else Helpers(loop, "pyjmsack-files", _MOST_HELPERS)
        self._drivers: WeakSet[Driver] = sibling._drivers if sibling else WeakSet()
        self._tasks: set[asyncio.Task[None]] = set()
        self.elsewhere = self._helpers.elsewhere
        """``elsewhere(work, then)`` lets a thread run ``work``, and calls ``then`` on the loop when ``work`` has
        ended."""
        self._spooler = Spooler(self.elsewhere)

    @property
    def unwritten(self) -> bool:
        """Whether a socket of the JMS connection has not taken all bytes yet. Used on the loop."""
        return any(driver.unwritten for driver in [*self._drivers])

    def _drive(self, engine: Engine, endpoint: Endpoint) -> Driver:
        driver = Driver(engine, self._loop, endpoint, self._history)
        self._drivers.add(driver)
        return driver

    def for_url(self, url: BrokerUrl) -> AsyncioConnector:
        """Return a new connector for a member of a failover URL."""
        return AsyncioConnector(url, self._loop, self._ssl_context, self)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` after ``delay`` seconds."""
        return self._loop.call_later(delay, callback)

    def connect(self, endpoint: Endpoint, engine: Engine, failed: Callable[[Exception], None]) -> None:
        """Open a stream for the engine. If this fails, call ``failed`` with a JMS exception."""
        task = self._loop.create_task(self._connect(endpoint, engine, failed))
        self._tasks.add(task)
        task.add_done_callback(partial(self._over, endpoint, failed))

    def _over(self, endpoint: Endpoint, failed: Callable[[Exception], None], task: asyncio.Task[None]) -> None:
        """Forget a task that opened a stream. If the program cancelled the task, together with all tasks of its loop,
        this attempt has failed, and failover makes another attempt.
        """
        if task in self._tasks:
            self._tasks.discard(task)
            if task.cancelled():
                failed(ConnectionLostException(f"connecting to {endpoint} was cancelled by the program"))

    def read(self, source: BodySource) -> BodyReading:
        """Return a ``BodyReading``, which starts its own thread when the first piece of the body is asked for."""
        return BodyReading(self._loop, source)

    def spool(self, directory: str | None, told: Callable[[int], None]) -> Spool:
        """Return a place in a file for a large message that arrives. After one or several writes, ``told`` is called
        with the number of bytes that still wait for the disk."""
        return self._spooler.open(directory, told)

    def cancel(self) -> None:
        """Give up all streams that are not open yet."""
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()

    async def _connect(self, endpoint: Endpoint, engine: Engine, failed: Callable[[Exception], None]) -> None:
        timeout = self._options.connect_timeout
        try:
            await asyncio.wait_for(self._open(endpoint, engine), timeout)
        except Exception as error:
            failed(_connect_error(endpoint, error, timeout))

    async def _open(self, endpoint: Endpoint, engine: Engine) -> None:
        options = self._options
        if SCHEMES[endpoint.scheme].websocket:
            # imported here, because only WebSocket needs the third-party package that ``websocket.py`` imports
            from pyjmsack.io.websocket import WebSocketEngine

            engine = WebSocketEngine(engine, endpoint, options.ws_http_headers)
        context: SSLContext | None = None
        if endpoint.tls:
            # a thread reads the certificates, because they are files, and reading a file may take long
            context = await self._helpers.run(partial(client_context, options, self._ssl_context))
        addresses = await self._names.look_up(endpoint.host, endpoint.port)
        local: list[Address] = []
        if options.local_address or options.local_port:
            local = await self._names.look_up(options.local_address, options.local_port or 0)
        opening = partial(
            connect,
            self._loop,
            partial(self._drive, engine, endpoint),
            addresses,
            local,
            ssl=context,
            server_hostname=endpoint.host if context is not None else None,
        )
        if context is None or self._history.answered:
            transport, driver = await opening()
        else:
            transport, driver = await shaken(self._loop, endpoint, lambda opened: opening(opened=opened))
        if transport.is_closing():
            # the engine has closed the stream already, and has reported this; the file descriptor may be closed, too
            return
        sock = transport.get_extra_info("socket")
        _configure(sock, options)
        if options.tcp_no_delay:
            driver.acknowledge_at_once(sock)


def _expected(endpoint: Endpoint) -> str | None:
    """Return the name that :func:`recognise` has for the protocol of an endpoint.

    Returns ``None`` for a WebSocket, because its engine checks the protocol itself.
    """
    return None if SCHEMES[endpoint.scheme].websocket else SCHEMES[endpoint.scheme].protocol.upper()


def _is_here(host: str) -> bool:
    """Return True if a host name or an address means this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # the name of another machine
        return False


def _connect_error(endpoint: Endpoint, cause: Exception, timeout: float | None) -> JMSException:
    """Return the error for a stream that was not opened.

    The system has a time limit of its own for a TCP connect. From Python 3.11 its error has the same class as the error
    of our limit, but it has a number.
    """
    if isinstance(cause, JMSException):
        return cause
    error: JMSException
    if timeout is not None and isinstance(cause, asyncio.TimeoutError) and getattr(cause, "errno", None) is None:
        error = RequestTimedOutException(f"no connection to {endpoint} within transport.connectTimeout ({timeout:g} s)")
    elif isinstance(cause, SSLError):
        error = handshake_error(endpoint, cause)
    else:  # OSError, or the error for a host name or a socket option that Python refuses
        step = _START_ONE if isinstance(cause, ConnectionRefusedError) and _is_here(endpoint.host) else ""
        error = ConnectionLostException(f"cannot connect to {endpoint}: {cause}{step}")
    return _caused(error, cause)


def _caused(error: JMSException, cause: BaseException) -> JMSException:
    error.__cause__ = cause
    return error


def _configure(sock: socket.socket, options: TransportOptions) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(options.tcp_no_delay))
    if options.tcp_keep_alive:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if options.so_linger is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, options.so_linger))
    if options.traffic_class and sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, options.traffic_class)
    elif options.traffic_class:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, options.traffic_class)
    if options.send_buffer_size is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_size)
    if options.receive_buffer_size is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_size)

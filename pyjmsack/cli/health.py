"""``/health/live`` and ``/health/ready`` over HTTP, for a program that watches the service."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any, Final

import click

__all__ = ["serving_health"]

_PATIENCE: Final = 2.0
"""The number of seconds in which a client must have sent its request and read the answer."""
_TURN: Final = 1.0
"""The number of seconds that a probe waits while the health is computed for an earlier probe."""
_MOST: Final = 32
"""The largest number of connections at a time, and of their threads. To admit another connection, the server closes the
oldest one."""
_MOST_WAITING: Final = 16
"""The largest number of probes that wait for their turn. The threads of connections that were closed wait too."""
_LARGEST: Final = 8_192
"""The largest number of bytes of a request, without a body."""
_LOOK: Final = 0.2
"""The number of seconds between two looks for connections whose time is over."""
_WRITING: Final = 1
"""The value of ``socket.SHUT_WR``. It tells the client that the answer is complete."""
_BOTH: Final = 2
"""The value of ``socket.SHUT_RDWR``. It ends the pending read or write of a connection."""


class _InTurn:
    """Computes the health for one probe at a time.

    A check of the service may take a long time. Each probe has a thread of its own, and without this limit each new
    probe would add one more thread that waits for the check. The thread does not notice that its connection is closed.
    Therefore only a few probes wait.
    """

    def __init__(self, health: Callable[[], dict[str, Any]]) -> None:
        self._health = health
        self._turn = threading.Lock()
        self._places = threading.Semaphore(_MOST_WAITING)

    def __call__(self) -> dict[str, Any]:
        """Return the health, or ``DOWN`` if the health for an earlier probe is not ready soon. Return ``DOWN`` at once
        if many other probes wait.
        """
        if not self._turn.acquire(blocking=False) and not self._wait():
            return {"status": "DOWN", "error": "a check of an earlier probe has not returned"}
        try:
            return self._health()
        finally:
            self._turn.release()

    def _wait(self) -> bool:
        if not self._places.acquire(blocking=False):
            return False
        try:
            return self._turn.acquire(timeout=_TURN)
        finally:
            self._places.release()


class _Server(ThreadingTCPServer):
    """Answers each connection in a thread of its own, so that no probe has to wait for a slow client.

    The time limit is for the whole connection, because a client that sends a byte each second would never let a single
    read time out. A connection that is cut counts until its thread has ended, so that threads cannot pile up.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128  # connections that may wait for an answer; the usual 5 is too few beside slow clients

    def __init__(self, *how: Any) -> None:
        self._since: dict[Any, float] = {}
        """The open connections, oldest first, with the moment when each was opened."""
        self._replaceable: dict[Any, None] = {}
        """The connections that may be cut to admit another one, oldest first. Their threads would end at once."""
        self._places = threading.Semaphore(_MOST)
        super().__init__(*how)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a new connection in a thread of its own. Close the oldest connection if there are too many."""
        if not self._places.acquire(blocking=False):
            oldest = next(filter(self.claim, [*self._replaceable]), None)
            if oldest is not None:
                self._cut(oldest)
            self._places.acquire()  # a thread of a connection that was cut, or that has its answer, ends at once
        self._since[request] = time.monotonic()
        self._replaceable[request] = None
        super().process_request(request, client_address)

    def claim(self, request: Any) -> bool:
        """Return whether this caller is the first who claims the connection: its thread, or the server that cuts it.

        The thread does this before the work that nobody can end, the checks of the service. If the server waited for
        the end of such a thread, a slow check would hold up all probes.
        """
        return self._replaceable.pop(request, self) is None

    def shutdown_request(self, request: Any) -> None:
        """Close the connection and give its place back, because its thread ends."""
        self._since.pop(request, None)
        self._replaceable.pop(request, None)
        try:
            super().shutdown_request(request)
        finally:
            self._places.release()

    def service_actions(self) -> None:
        """Cut the connections whose time is over. ``serve_forever`` calls this method again and again."""
        now = time.monotonic()
        for request, since in [*self._since.items()]:
            if now - since > _PATIENCE:
                self._cut(request)

    def _cut(self, request: Any) -> None:
        self._since.pop(request, None)
        self._replaceable.pop(request, None)
        with suppress(OSError):  # the client has closed the connection already
            request.shutdown(_BOTH)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing about a client that went away, or whose connection was cut."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(StreamRequestHandler):
    """Answers a probe with an HTTP status and a JSON document, and closes the connection.

    Only the first line of the request is looked at. The parser for header fields in the standard library takes seconds
    and hundreds of megabytes for some requests, and a probe says nothing in its header fields that matters here.
    """

    timeout = _PATIENCE
    rbufsize = _LARGEST

    def __init__(self, health: Callable[[], dict[str, Any]], *request: Any) -> None:
        self._health = health
        super().__init__(*request)  # this call also answers the request

    def handle(self) -> None:
        """Answer the request, if its first line is that of a probe."""
        line = self._first_line()
        if line is None:
            self._answer("", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            self._drop_the_rest()
            return
        match line.split():
            case ["GET" | "HEAD" as method, path, version] if version.startswith("HTTP/1."):
                self._answer_probe(method, path)
            case [_, _, version] if version.startswith("HTTP/1."):
                self._answer("", HTTPStatus.METHOD_NOT_ALLOWED)
            case _:
                self._answer("", HTTPStatus.BAD_REQUEST)

    def _answer_probe(self, method: str, path: str) -> None:
        """Answer ``live`` always with 200, and ``ready`` with 200 if the app is ``"UP"``."""
        assert isinstance(self.server, _Server)
        if path == "/health/live":
            self._answer(method, HTTPStatus.OK, {"status": "UP"})
        elif path != "/health/ready":
            self._answer(method, HTTPStatus.NOT_FOUND)
        elif self.server.claim(self.request):  # else nobody reads the answer
            state = self._health()  # checks may be slow
            up = state["status"] == "UP"
            self._answer(method, HTTPStatus.OK if up else HTTPStatus.SERVICE_UNAVAILABLE, state)

    def _first_line(self) -> str | None:
        """Read the request up to its blank line, and return its first line. Return ``None`` if the blank line does not
        come within ``_LARGEST`` bytes."""
        first = line = self.rfile.readline(_LARGEST)
        room = _LARGEST - len(line)
        while line.strip(b"\r\n") and room:  # until the blank line, or until the client sends no more
            line = self.rfile.readline(room)
            room -= len(line)
        return first.decode("latin-1") if room or line in (b"\n", b"\r\n") else None

    def _answer(self, method: str, status: HTTPStatus, state: dict[str, Any] | None = None) -> None:
        """Send an answer. The answer to ``HEAD`` has no document."""
        document = json.dumps({"error": status.phrase} if state is None else state).encode()
        lines = [f"HTTP/1.0 {status.value} {status.phrase}", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(document)}", "Connection: close"]
        lines += ["Allow: GET, HEAD"] if status is HTTPStatus.METHOD_NOT_ALLOWED else []
        head = "\r\n".join([*lines, "", ""]).encode()
        self.wfile.write(head if method == "HEAD" else head + document)

    def _drop_the_rest(self) -> None:
        """Read some more of a request that is too large. If bytes were left unread, the kernel would reset the
        connection, and the client could lose the answer."""
        self.request.shutdown(_WRITING)
        for _ in range(8):
            if not self.rfile.read1(_LARGEST):
                return


@contextmanager
def serving_health(health: Callable[[], dict[str, Any]], host: str, port: int) -> Iterator[int]:
    """While the context is open, a thread answers probes for the health of an app. Yield the port.

    Raises:
        ClickException: the port cannot be opened.
    """
    try:
        server = _Server((host, port), partial(_Handler, _InTurn(health)))
    except OSError as error:
        raise click.ClickException(f"--health-port {port} on {host}: {error}") from error
    thread = threading.Thread(target=partial(server.serve_forever, _LOOK), name="pyjmsack-health", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

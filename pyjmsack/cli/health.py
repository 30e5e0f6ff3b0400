"""``/health/live`` and ``/health/ready`` over HTTP, for a program that watches the service."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import click

__all__ = ["serving_health"]

_PATIENCE: Final = 2.0
"""The number of seconds in which a client must have sent its request and read the answer."""
_TURN: Final = 1.0
"""The number of seconds that a probe waits while the health is computed for an earlier probe."""
_MOST: Final = 32
"""The largest number of connections at a time. To admit another connection, the server closes the oldest one."""
_MOST_WAITING: Final = 16
"""The largest number of probes that wait for their turn. The threads of connections that were closed wait too."""
_LOOK: Final = 0.2
"""The number of seconds between two looks for connections whose time is over."""
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


class _Server(ThreadingHTTPServer):
    """Answers each connection in a thread of its own, so that no probe has to wait for a slow client.

    The time limit is for the whole connection, because a client that sends a byte each second would never let a single
    read time out.
    """

    daemon_threads = True
    request_queue_size = 128  # connections that may wait for an answer; the usual 5 is too few beside slow clients

    def __init__(self, *how: Any) -> None:
        self._since: dict[Any, float] = {}
        """The open connections, oldest first, with the moment when each was opened."""
        super().__init__(*how)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a new connection in a thread of its own. Close the oldest connection if there are too many."""
        if len(self._since) >= _MOST:
            self._cut(next(iter([*self._since]), None))
        self._since[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection, because it is over."""
        self._since.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut the connections whose time is over. ``serve_forever`` calls this method again and again."""
        now = time.monotonic()
        for request, since in [*self._since.items()]:
            if now - since > _PATIENCE:
                self._cut(request)

    def _cut(self, request: Any) -> None:
        self._since.pop(request, None)
        with suppress(OSError):  # the client has closed the connection already
            request.shutdown(_BOTH)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing about a client that went away, or whose connection was cut."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers a probe with the HTTP status 200 or 503, and with the state as JSON."""

    timeout = _PATIENCE

    def __init__(self, health: Callable[[], dict[str, Any]], *request: Any) -> None:
        self._health = health
        super().__init__(*request)  # this call also answers the request

    def do_GET(self) -> None:
        """Answer ``live`` always with 200, and ``ready`` with 200 if the app is ``"UP"``."""
        if self.path not in ("/health/live", "/health/ready"):
            self.send_error(404)
            return
        state = self._health() if self.path == "/health/ready" else {"status": "UP"}  # checks may be slow
        code = 200 if state["status"] == "UP" else 503
        document = json.dumps(state).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        self.wfile.write(document)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because each probe would be one line in the log."""


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
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

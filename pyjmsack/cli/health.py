"""``/health/live`` and ``/health/ready`` over HTTP, for whoever watches a service."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

import click

__all__ = ["serving_health"]

_PATIENCE: Final = 2.0
"""Seconds that a client has for its request; the server answers one at a time."""


class _Handler(BaseHTTPRequestHandler):
    """Answers 200 or 503, with the state as JSON."""

    timeout = _PATIENCE

    def __init__(self, health: Callable[[], dict[str, Any]], *request: Any) -> None:
        self._health = health
        super().__init__(*request)  # which answers

    def do_GET(self) -> None:
        """``live``: the process answers. ``ready``: each listener takes messages, and the sender is connected."""
        if self.path not in ("/health/live", "/health/ready"):
            self.send_error(404)
            return
        state = self._health()
        code = 503 if self.path == "/health/ready" and state["status"] != "UP" else 200
        document = json.dumps(state if self.path == "/health/ready" else {"status": "UP"}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        self.wfile.write(document)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each question."""


@contextmanager
def serving_health(health: Callable[[], dict[str, Any]], host: str, port: int) -> Iterator[None]:
    """Answer questions for the health of an app, in a thread, as long as this lasts.

    Raises:
        ClickException: the port cannot be had.
    """
    try:
        server = HTTPServer((host, port), partial(_Handler, health))
    except OSError as error:
        raise click.ClickException(f"--health-port {port} on {host}: {error}") from error
    thread = threading.Thread(target=server.serve_forever, name="pyjmsack-health", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

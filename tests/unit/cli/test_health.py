"""The health server under clients that never finish, and the processes of ``pyjmsack run --workers``."""

from __future__ import annotations

import socket
import subprocess
import threading
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from click.testing import CliRunner
from polling import wait_until

from pyjmsack.cli import health as module
from pyjmsack.cli import run as running
from pyjmsack.cli.health import serving_health

UP = {"status": "UP"}


def ask(port: int, what: str = "live") -> int:
    """Return the status of a probe."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/{what}", timeout=20) as answer:
        return int(answer.status)


def test_a_probe_is_answered_while_other_clients_never_finish_their_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if there are more of them than connections that are answered at a time."""
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    with serving_health(lambda: UP, "127.0.0.1", 0) as port, ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(module._MOST + 5)]
        for each in slow:
            each.sendall(b"GET /health/li")
        assert ask(port) == 200


def test_a_client_that_drips_is_cut_although_each_byte_comes_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    with (
        serving_health(lambda: UP, "127.0.0.1", 0) as port,
        socket.create_connection(("127.0.0.1", port)) as slow,
    ):
        slow.settimeout(0.05)
        with suppress(ConnectionError):
            while True:  # the test's timeout is the limit
                slow.sendall(b"X")
                with suppress(TimeoutError):
                    assert slow.recv(1) == b""
                    break
        assert ask(port) == 200


def test_a_check_that_does_not_return_holds_one_thread_whatever_the_number_of_probes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each probe left one more thread in the check, without end."""
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    monkeypatch.setattr(module, "_TURN", 0.01)
    begun, over, inside = threading.Event(), threading.Event(), []

    def stuck() -> dict[str, Any]:
        inside.append(threading.get_ident())
        begun.set()
        over.wait(60)
        return UP

    with serving_health(stuck, "127.0.0.1", 0) as port, ExitStack() as stack:
        stack.callback(over.set)
        first = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        first.sendall(b"GET /health/ready HTTP/1.0\r\n\r\n")
        assert begun.wait(60)
        for _ in range(3):
            with pytest.raises(HTTPError, match="503"):
                ask(port, "ready")
        assert len(inside) == 1
        assert ask(port) == 200


def test_probes_that_gave_up_hold_few_threads_and_delay_no_other_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them waited in a thread of its own for its turn, also after its connection was closed."""
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    monkeypatch.setattr(module, "_TURN", 60.0)
    begun, over = threading.Event(), threading.Event()

    def stuck() -> dict[str, Any]:
        begun.set()
        over.wait(60)
        return UP

    before = threading.active_count()
    with serving_health(stuck, "127.0.0.1", 0) as port, ExitStack() as stack:
        stack.callback(over.set)
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", port)) as probe:
                probe.sendall(b"GET /health/ready HTTP/1.0\r\n\r\n")
            assert begun.wait(60)
        # the server, the check, and the probes that wait
        wait_until(lambda: threading.active_count() - before <= 2 + module._MOST_WAITING)
        with pytest.raises(HTTPError, match="503"):
            ask(port, "ready")


def test_a_worker_process_that_was_healthy_for_a_while_is_soon_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now, started = 0.0, []

    class Dead:
        def __init__(self, *_: Any, **__: Any) -> None:
            started.append(now)

        def poll(self) -> int:
            return 1

    monkeypatch.setattr(subprocess, "Popen", Dead)
    worker = running._Worker(["x"], lambda: now)
    waits = []
    for _ in range(7):
        now = worker._due
        worker.start_if_due()
        worker.start_if_due()  # sees the end
        waits.append(worker._due - now)
    assert len(started) == 7
    assert waits[0] <= 1
    assert 20 < waits[-1] <= 30
    now = worker._due
    worker.start_if_due()
    now += 3600
    worker.start_if_due()
    assert worker._due - now <= 1


def test_worker_processes_are_not_killed_before_the_stop_timeout_of_their_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "patient_service.py").write_text(
        "from pyjmsack import App\napp = App('amqp://localhost:1', stop_timeout=600)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    told: list[float] = []
    monkeypatch.setattr(running, "_noting_signals", lambda: ExitStack())
    monkeypatch.setattr(running, "_supervise", lambda *how: told.append(how[-1]) or 0)
    assert CliRunner().invoke(running.run, ["patient_service:app", "--workers", "2"]).exit_code == 0
    assert told[0] > 600

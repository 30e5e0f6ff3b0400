"""The health server under clients that never finish, and the processes of ``pyjmsack run --workers``."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
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


class Check:
    """A check that does not return before the test says so, and the probe that asked for it."""

    def __init__(self) -> None:
        self.calls = 0
        self.begun, self.over = threading.Event(), threading.Event()
        self.port = 0
        self.probe = socket.socket()

    def __call__(self) -> dict[str, Any]:
        self.calls += 1
        self.begun.set()
        self.over.wait(60)
        return UP


@contextmanager
def in_a_check() -> Iterator[Check]:
    """Serve the health while one probe waits for its check."""
    check = Check()
    with serving_health(check, "127.0.0.1", 0) as check.port, check.probe, ExitStack() as stack:
        stack.callback(check.over.set)
        check.probe.connect(("127.0.0.1", check.port))
        check.probe.sendall(b"GET /health/ready HTTP/1.0\r\n\r\n")
        assert check.begun.wait(60)
        yield check


def test_a_check_that_does_not_return_holds_one_thread_whatever_the_number_of_probes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each probe left one more thread in the check, without end."""
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    monkeypatch.setattr(module, "_TURN", 0.01)
    with in_a_check() as check:
        for _ in range(3):
            with pytest.raises(HTTPError, match="503"):
                ask(check.port, "ready")
        assert check.calls == 1
        assert ask(check.port) == 200


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


class Watched(threading.Semaphore):
    """Tells when somebody has to wait for it."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.waiting = threading.Event()

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        if blocking:
            self.waiting.set()
        return super().acquire(blocking, timeout)


def test_a_connection_that_was_cut_counts_until_its_thread_has_ended() -> None:
    """There were more threads than connections, because a thread that was at work did not notice the cut."""
    inside, most, over, done = 0, 0, threading.Event(), threading.Event()
    lock = threading.Lock()

    def handler(*_: Any) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        over.wait(60)
        with lock:
            inside -= 1
            if not inside:
                done.set()

    with module._Server(("127.0.0.1", 0), handler) as server, ExitStack() as stack:
        stack.callback(over.set)
        server._places = Watched(module._MOST)
        pairs = [tuple(map(stack.enter_context, socket.socketpair())) for _ in range(module._MOST + 1)]
        for ours, _ in pairs[:-1]:
            server.process_request(ours, None)
        late = threading.Thread(target=server.process_request, args=(pairs[-1][0], None))
        late.start()
        assert server._places.waiting.wait(60)
        assert pairs[0][1].recv(1) == b""  # the oldest is cut
        wait_until(lambda: inside == module._MOST)
        over.set()
        late.join(60)
        assert done.wait(60)
    assert most <= module._MOST


def test_a_thread_in_a_check_is_not_waited_for_to_admit_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another connection makes room, although that of the check is the oldest one."""
    monkeypatch.setattr(module, "_PATIENCE", 60.0)
    monkeypatch.setattr(module, "_MOST", 2)
    monkeypatch.setattr(module._Handler, "timeout", 60.0)
    with in_a_check() as check, socket.create_connection(("127.0.0.1", check.port)) as slow:
        slow.sendall(b"GET /health/li")
        assert [ask(check.port) for _ in range(3)] == [200, 200, 200]
        assert slow.recv(1) == b""
        check.over.set()
        assert read(check.probe).startswith(b"HTTP/1.0 200 ")


def read(client: socket.socket) -> bytes:
    """Return all that the server sends until it closes the connection."""
    return b"".join(iter(lambda: client.recv(65_536), b""))


def said(request: bytes, health: dict[str, Any] = UP) -> tuple[bytes, bytes]:
    """Return the head and the document of the answer to a request."""
    with (
        serving_health(lambda: health, "127.0.0.1", 0) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as client,
    ):
        client.sendall(request)
        head, _, document = read(client).partition(b"\r\n\r\n")
        return head, document


def test_the_header_fields_of_a_request_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser of the standard library took 1.6 s and 287 MB for one request with many lone CRs."""

    def parse(*_: Any) -> None:
        raise AssertionError("somebody parses header fields")

    monkeypatch.setattr("http.client.parse_headers", parse)
    assert said(b"GET /health/live HTTP/1.1\r\nHost: here\r\nA:" + b"a\r" * 1000 + b"\r\n\r\n")[0][:13] == (
        b"HTTP/1.0 200 "
    )


@pytest.mark.parametrize("beyond", [0, 1, 5000])
@pytest.mark.parametrize("fields", [b"", b"A: b\r\n" * 500], ids=["one", "many"])
def test_a_request_has_at_most_8_kib(fields: bytes, beyond: int) -> None:
    begin, end = b"GET /health/live HTTP/1.1\r\n" + fields + b"A: ", b"\r\n\r\n"
    request = begin + b"b" * (module._LARGEST - len(begin + end) + beyond) + end
    assert said(request)[0][:13] == (b"HTTP/1.0 431 " if beyond else b"HTTP/1.0 200 ")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"GET /health/live HTTP/1.0", b"200"),
        (b"GET /health/ready HTTP/1.1", b"503"),
        (b"GET / HTTP/1.1", b"404"),
        (b"GET /health/live HTTP/2.0", b"400"),
        (b"POST /health/live HTTP/1.1", b"405"),
        (b"GET /health/live", b"400"),
        (b"\xff\x00", b"400"),
        (b"", b"400"),
    ],
)
@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_each_request_is_answered_by_its_first_line(line: bytes, status: bytes, end: bytes) -> None:
    head, document = said(line + end + (b"Host: here" + end + end if line else b""), {"status": "DOWN"})
    assert head.split()[1] == status
    assert b"Content-Length: %d\r\n" % len(document) in head
    assert (b"Allow: GET, HEAD" in head) is (status == b"405")


@pytest.mark.parametrize("path", [b"live", b"ready", b"nothing"])
def test_the_answer_to_head_is_that_to_get_without_the_document(path: bytes) -> None:
    request = b" /health/" + path + b" HTTP/1.1\r\n\r\n"
    (head, document), (only, nothing) = said(b"GET" + request), said(b"HEAD" + request)
    assert head == only
    assert document
    assert not nothing


def test_a_client_that_ends_its_request_early_is_answered() -> None:
    """As with ``printf 'GET /health/live HTTP/1.0' | nc -N``."""
    with (
        serving_health(lambda: UP, "127.0.0.1", 0) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as client,
    ):
        client.sendall(b"GET /health/live HTTP/1.0")
        client.shutdown(socket.SHUT_WR)
        assert read(client).startswith(b"HTTP/1.0 200 OK\r\n")


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


def test_a_worker_process_that_cannot_be_started_is_tried_again_and_harms_no_other_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole service stopped, because a system had no free descriptor when one worker had died."""
    errors = [OSError(24, "Too many open files"), OSError(12, "Cannot allocate memory")]

    def start(*_: Any, **__: Any) -> Any:
        if errors:
            raise errors.pop(0)
        return "a process"

    monkeypatch.setattr(subprocess, "Popen", start)
    now = 0.0
    worker = running._Worker(["x"], lambda: now)
    for _ in range(3):
        now = worker._due
        worker.start_if_due()
    assert worker.process == "a process"
    assert "cannot be started ([Errno 24] Too many open files); the next try is in" in capsys.readouterr().err


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


@pytest.mark.parametrize(("program", "code"), [("pass", 0), ("raise SystemExit(1)", 1)], ids=["good", "bad"])
def test_worker_processes_that_end_before_their_app_has_begun_are_no_failure(program: str, code: int) -> None:
    """SIGTERM ends a process that still imports its module, and no listener was at work in it."""
    importing = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    ended = subprocess.Popen([sys.executable, "-c", program])
    ended.wait(60)
    assert running._end([importing, ended], [signal.SIGTERM], 60) == code
    assert importing.returncode == -signal.SIGTERM
    assert importing.stdin is not None
    importing.stdin.close()

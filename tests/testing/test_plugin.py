"""The pytest plugin, in suites of users: each test here is a pytest of its own."""

from __future__ import annotations

import json
import os
import re
import socketserver
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
IMAGES = ["pyjmsack/artemis:2.56.0", "pyjmsack/activemq:6.3.1", "pyjmsack/activemq:5.18.3"]
NO_REAPER = "testcontainers/ryuk; fetch it with docker pull, or set TESTCONTAINERS_RYUK_DISABLED=true"

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a pytest with a suite's text; warnings are errors there, too. In a process of its own: in this one it would
    forget afterwards whatever of the library it was the first to import, and the tests to come would have two of it."""
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def run(suite: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(suite)
        return pytester.runpytest_subprocess("-W", "error", "-p", "no:randomly", *arguments)

    return run


def test_the_documented_example_passes_as_it_stands_there(run: Run) -> None:
    (example,) = re.findall(r"^```python test_orders.py\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    result = run(example, "--pyjmsack-broker=embedded")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["pyjmsack brokers: embedded (--pyjmsack-broker=embedded)"])


def test_the_documented_fixture_of_ones_own_replaces_the_plugins(run: Run) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    result = run(f"{example}\n\ndef test_it(artemis): pass\n", "-o", "addopts=--fixtures-per-test")
    result.stdout.fnmatch_lines(["artemis -- test_*.py:7"])


def test_every_test_starts_with_running_brokers_and_the_last_one_leaves_none(run: Run) -> None:
    result = run(
        """
        import os
        import pytest

        pids = set()

        @pytest.mark.parametrize("harm", ["nothing", "kill", "pause", "pause", "kill", "stop"])
        def test_harm(artemis, harm):
            assert artemis.running
            with open(f"/proc/{artemis.pid}/stat") as stat:
                assert stat.read().rpartition(")")[2].split()[0] != "T", "it is paused"
            pids.add(artemis.pid)
            getattr(artemis, harm, lambda: None)()

        def test_it_was_the_same_until_it_was_killed(artemis):
            assert len(pids) == 3, pids
            print("PID", artemis.pid)
        """,
        "--pyjmsack-broker=embedded",
        "-s",
    )
    result.assert_outcomes(passed=7)
    (pid,) = re.findall(r"PID (\d+)", result.stdout.str())
    assert not Path(f"/proc/{pid}").exists()


def test_a_broker_that_does_not_start_again_fails_only_the_tests_that_use_it(run: Run) -> None:
    """Every later test failed, also those without a broker."""
    result = run(
        """
        import pytest

        tries = []

        def fail():
            tries.append("restart")
            raise OSError("the port is taken")

        def test_kill(artemis):
            artemis.kill()
            artemis.true_restart, artemis.restart = artemis.restart, fail

        def test_without_a_broker(): assert tries == ["restart"]

        def test_without_a_broker_again(): assert tries == ["restart"]

        def test_with_the_broker(artemis): pass

        @pytest.mark.parametrize("jms_broker", ["artemis"], indirect=True)
        def test_with_any_broker(jms_broker): pass

        @pytest.fixture
        def later(pytestconfig):
            from _pyjmsack_pytestplugin import brokers_of
            return brokers_of(pytestconfig)._started["artemis"]

        def test_repair(later): later.restart = later.true_restart

        def test_with_the_broker_again(artemis): assert artemis.running
        """,
        "--pyjmsack-broker=embedded",
    )
    result.assert_outcomes(passed=5, errors=2)
    assert "could not be started again" not in result.stdout.str()


def test_the_end_of_the_output_names_a_broker_that_ended(run: Run) -> None:
    result = run(
        """
        def fail(): raise OSError("the port is taken")

        def test_kill(artemis):
            artemis.kill()
            artemis.restart = fail

        def test_without_a_broker(): pass
        """,
        "--pyjmsack-broker=embedded",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["pyjmsack brokers: artemis ended and could not be started again: the port is taken"])


def test_it_works_with_xdist_and_each_worker_has_its_own_broker(run: Run) -> None:
    result = run(
        """
        import pytest

        @pytest.mark.parametrize("number", range(2))
        def test_something(artemis, number, worker_id, pytestconfig):
            with open(pytestconfig.rootpath / "seen", "a") as seen:
                seen.write(f"{worker_id} {artemis.amqp_url}\\n")
        """,
        "--pyjmsack-broker=embedded",
        "-n2",
        "--dist=each",
    )
    result.assert_outcomes(passed=4)
    seen = {tuple(line.split()) for line in Path("seen").read_text().splitlines()}
    assert len(seen) == len({worker for worker, _ in seen}) == len({url for _, url in seen}) == 2


def test_a_suite_that_does_not_use_it_pays_nothing(run: Run) -> None:
    result = run(
        """
        import sys

        def test_nothing_was_imported():
            names = {name.partition(".")[0] for name in sys.modules}
            assert "_pyjmsack_pytestplugin" in names
            assert not names & {"pyjmsack", "proton", "cproton", "testcontainers", "docker"}
        """
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["pyjmsack brokers: *"])


def test_a_suite_can_leave_it_out(run: Run) -> None:
    result = run("def test_it(artemis): pass", "-p", "no:pyjmsack")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'artemis' not found"])
    assert "pyjmsack brokers" not in result.stdout.str()


def test_a_mode_that_does_not_exist_is_refused_with_those_that_do(run: Run) -> None:
    result = run("", "--pyjmsack-broker=docker")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*invalid choice: 'docker' (choose from *auto*container*embedded*"])


def header(result: pytest.RunResult) -> str:
    """Return what the run says of its brokers."""
    (line,) = [line for line in result.stdout.lines if line.startswith("pyjmsack brokers: ")]
    return line.removeprefix("pyjmsack brokers: ")


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """A container engine that can only list its images."""

    daemon_threads = False

    def __init__(self, path: Path, answer: bytes) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path == "/images/json" else 500)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(str(path), Handler)


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory with a short name: that of a unix socket may have 100 characters."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def engine(short: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[str]], None]]:
    """Have DOCKER_HOST be an engine with the images that it is called with."""
    monkeypatch.delenv("TESTCONTAINERS_RYUK_DISABLED", raising=False)
    monkeypatch.delenv("RYUK_CONTAINER_IMAGE", raising=False)
    with ExitStack() as started:

        def start(tags: list[str]) -> None:
            path = short / "engine.sock"
            rows = [{"RepoTags": None}, *({"RepoTags": [tag]} for tag in tags)]
            made = started.enter_context(Engine(path, json.dumps(rows).encode()))
            serving = threading.Thread(target=made.serve_forever)
            serving.start()
            started.callback(serving.join)
            started.callback(made.shutdown)
            monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")

        yield start


@pytest.mark.skipif(sys.platform == "win32", reason="needs unix sockets")
@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([*IMAGES, "testcontainers/ryuk:0.8.1"], "containers (--pyjmsack-broker=auto)"),
        (IMAGES, f"embedded (no containers: no image {NO_REAPER})"),
        (IMAGES[1:], "embedded (no containers: no image pyjmsack/artemis:2.56.0)"),
        ([], f"embedded (no containers: no image {', '.join(IMAGES)})"),
    ],
)
def test_auto_takes_containers_if_the_engine_has_every_image(
    run: Run, engine: Callable[[list[str]], None], tags: list[str], expected: str
) -> None:
    engine(tags)
    assert header(run("")) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="needs unix sockets")
def test_auto_takes_containers_without_the_reapers_image_where_it_is_disabled_or_another(
    run: Run, engine: Callable[[list[str]], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine([*IMAGES, "company/reaper:1"])
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    assert header(run("")) == "containers (--pyjmsack-broker=auto)"
    monkeypatch.delenv("TESTCONTAINERS_RYUK_DISABLED")
    monkeypatch.setenv("RYUK_CONTAINER_IMAGE", "company/reaper:1")
    assert header(run("")) == "containers (--pyjmsack-broker=auto)"
    monkeypatch.delenv("RYUK_CONTAINER_IMAGE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert header(run("")) == f"embedded (no containers: no image {NO_REAPER})"
    (tmp_path / ".testcontainers.properties").write_text("tc.host=x\nryuk.disabled=true\n")
    assert header(run("")) == "containers (--pyjmsack-broker=auto)"


@pytest.mark.skipif(sys.platform == "win32", reason="needs unix sockets")
@pytest.mark.timeout(400)
def test_auto_falls_back_to_embedded_brokers_when_no_container_starts_and_says_why(
    run: Run, engine: Callable[[list[str]], None]
) -> None:
    """As with an engine that has another reaper than this testcontainers wants, and no registry to ask."""
    engine([*IMAGES, "testcontainers/ryuk:0.0.1"])  # it can list its images and nothing else
    result = run("def test_it(artemis): assert artemis.running")
    result.assert_outcomes(passed=1)
    assert "pyjmsack brokers: containers (--pyjmsack-broker=auto)" in result.stdout.str()
    result.stdout.fnmatch_lines(
        ["pyjmsack brokers: embedded, because no container could be started: The container of *"]
    )


def test_auto_says_why_it_takes_no_containers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = Path("nowhere.sock").absolute()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{nowhere}")
    assert header(run("")) == f"embedded (no containers: no engine at {nowhere})"
    nowhere.touch()
    assert header(run("")).startswith(f"embedded (no containers: the engine at {nowhere} does not answer: ")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    assert header(run("")).startswith("embedded (no containers: the engine in DOCKER_HOST is not on this machine")
    assert header(run("", "--pyjmsack-broker=container")) == "containers (--pyjmsack-broker=container)"


def test_a_container_that_cannot_be_started_is_an_error_that_says_what_to_do(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{os.devnull}")
    result = run("def test_it(artemis): pass", "--pyjmsack-broker=container")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*BrokerError: The container of pyjmsack/artemis:2.56.0 could not be started: *"])

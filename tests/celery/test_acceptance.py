"""The integration tests of kombu and of Celery, out of their source archives, pass with this transport."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from contract.brokers import Target
from shared_brokers import Served

VERSION = "5.7.0"
"""The version of kombu and of Celery whose tests run, against the kombu and the Celery that are installed."""
ACCEPTANCE = Path(__file__).with_name("kombu_acceptance.py")
_PYTEST = sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly"
QUICK = "(Message or EventLoop or Priority or test_fanout or test_topic or simple_queue and Basic)"
"""Without the tests that wait for seconds."""
_OTHERS = "the tests of Celery run on this broker over this protocol, too (test_worker.py)"
_NOT_WITH_RPC = {
    "test_retry and not switches and not unpickleable": "Celery expects the failure with rpc://",
    "test_replaced_task_nesting_level_0": "the test loses what the worker noted before delay() returned",
    "django": "Django is not installed",
}
"""Tests of Celery that cannot pass here, as pytest's option ``-k`` chooses them, with the reasons."""
_NOT_WITH_FILES = {
    "test_header_failure_fails_the_chords_after": "it fails with kombu's own filesystem:// as well",
    "test_error_propagates_from_chord and not test_error_propagates_from_chord2": "it does so, too",
    "test_chord_header_id_duplicated_on_rabbitmq_msg_duplication": "there is no Redis",
}
"""The same for results in files. ``rpc://`` has no chords, so Celery would skip most tests of its canvas."""
_NOT_ON_CLASSIC = "not (TestExchangeTypes and test_topic) and not TestPriority"
"""Classic keeps nothing for a durable queue that is bound with wildcards, and has no order by priority unless its
configuration asks for it (broker facts, 6)."""


@pytest.fixture(scope="session")
def archive(pytestconfig: pytest.Config) -> Path:
    """kombu's source archive, unpacked in pytest's cache; pip fetches it once."""
    return unpacked(pytestconfig, "kombu")


@pytest.fixture(scope="session")
def celerys_archive(pytestconfig: pytest.Config) -> Path:
    """Celery's source archive, in the same way."""
    return unpacked(pytestconfig, "celery")


def unpacked(config: pytest.Config, name: str) -> Path:
    folder = Path(config.cache.mkdir(name))
    found = folder / f"{name}-{VERSION}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker of pytest fetches, the others wait
        if not (found / "t" / "integration" / "__init__.py").exists():
            fetch(name, folder)
    return found


def fetch(name: str, folder: Path) -> None:
    """Let pip fetch an archive, and unpack it."""
    command = "download --no-binary :all: --no-deps --disable-pip-version-check"
    done = subprocess.run(
        [sys.executable, "-m", "pip", *command.split(), f"{name}=={VERSION}", "-d", str(folder)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    found = [*folder.glob(f"{name}-{VERSION}.tar.gz")]
    if not found:
        pytest.skip(f"pip cannot fetch the source archive of {name}: {done.stderr.strip()[-300:]}")
    with tarfile.open(found[0]) as packed:
        packed.extractall(folder, filter="data")


@pytest.mark.parametrize(
    ("target", "chosen"),
    [
        pytest.param(Target("amqp", "artemis"), QUICK, id="amqp-artemis-quick"),
        *(
            pytest.param(target, "", id=f"{target}-all", marks=pytest.mark.whole_tier(_OTHERS))
            for target in (
                Target("amqp", "artemis"),
                Target("stomp", "artemis"),
                Target("amqp", "classic-6"),
                Target("stomp", "classic-6"),
            )
        ),
    ],
)
def test_kombus_own_integration_tests_pass(
    target: Target, chosen: str, archive: Path, brokers: Callable[[str], Served], tmp_path: Path
) -> None:
    """BasicFunctionality, BaseExchangeTypes, BaseMessage, BaseTimeToLive, BasePriority, BaseEventLoop, BaseFailover."""
    served = brokers(target.broker)
    url = served.amqp_url if target.protocol == "amqp" else served.stomp_url
    without = _NOT_ON_CLASSIC if target.broker.startswith("classic") else ""
    expression = " and ".join(filter(None, [chosen, without]))
    done = subprocess.run(
        [*_PYTEST, "-c", os.devnull, "--rootdir", str(tmp_path), "-k", expression, str(ACCEPTANCE)],
        env={**os.environ, "JMS_BROKER": f"jms+{url}", "PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


@pytest.mark.whole_tier("the tests of this folder run workers, results and remote control, too")
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("module", ["canvas", "inspect", "serialization", "tasks", "worker"])
def test_celerys_own_integration_tests_pass(
    module: str, celerys_archive: Path, any_broker: Served, tmp_path: Path
) -> None:
    """A worker with prefork, Artemis over AMQP; results by ``rpc://``, and those of the canvas in files."""
    files = tmp_path / "results"
    files.mkdir()
    backend, without = (f"file://{files}", _NOT_WITH_FILES) if module == "canvas" else ("rpc://", _NOT_WITH_RPC)
    (tmp_path / "sitecustomize.py").write_text("import pyjmsack.kombu\n")  # the programs that the tests start
    celery = tmp_path / "celery"
    celery.write_text(f'#!/bin/sh\nexec {sys.executable} -m celery "$@"\n')
    celery.chmod(0o755)
    chosen = " and ".join(f"not ({name})" for name in without)
    plugins = ("-p", "pyjmsack.kombu", "-p", "celery.contrib.pytest", "-c", str(celerys_archive / "pyproject.toml"))
    done = subprocess.run(
        [*_PYTEST, *plugins, "-k", chosen, str(celerys_archive / "t" / "integration" / f"test_{module}.py")],
        env={
            **os.environ,
            "TEST_BROKER": f"jms+{any_broker.amqp_url}",
            "TEST_BACKEND": backend,
            "WORKER_LOGLEVEL": "INFO",
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{celerys_archive}",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout

"""kombu's own integration tests, out of its source archive, pass with this transport."""

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
"""The version of kombu whose tests run, against the kombu that is installed."""
ACCEPTANCE = Path(__file__).with_name("kombu_acceptance.py")
_PYTEST = sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly"
QUICK = "(Message or EventLoop or Priority or test_fanout or test_topic or simple_queue and Basic)"
"""Without the tests that wait for seconds."""
_OTHERS = "the tests of Celery run on this broker over this protocol, too (test_worker.py)"
_NOT_ON_CLASSIC = "not (TestExchangeTypes and test_topic) and not TestPriority"
"""Classic keeps nothing for a durable queue that is bound with wildcards, and has no order by priority unless its
configuration asks for it (broker facts, 6)."""


@pytest.fixture(scope="session")
def archive(pytestconfig: pytest.Config) -> Path:
    """kombu's source archive, unpacked in pytest's cache; pip fetches it once."""
    folder = Path(pytestconfig.cache.mkdir("kombu"))
    unpacked = folder / f"kombu-{VERSION}"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker of pytest fetches, the others wait
        if not (unpacked / "t" / "integration" / "common.py").exists():
            fetch(folder)
    return unpacked


def fetch(folder: Path) -> None:
    """Let pip fetch the archive, and unpack it."""
    command = "download --no-binary :all: --no-deps --disable-pip-version-check"
    done = subprocess.run(
        [sys.executable, "-m", "pip", *command.split(), f"kombu=={VERSION}", "-d", str(folder)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    found = [*folder.glob(f"kombu-{VERSION}.tar.gz")]
    if not found:
        pytest.skip(f"pip cannot fetch the source archive of kombu: {done.stderr.strip()[-300:]}")
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

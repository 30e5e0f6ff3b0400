"""``pyjmsack audit --master spark://...``: on a real cluster, and told clearly where there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyjmsack.cli.main import cli
from pyjmsack.ledger import Ledger
from pyjmsack.spi.ledger import tail

from .standalone import ENVIRONMENT, Standalone

pytestmark = pytest.mark.timeout(600)  # a cluster of two JVMs, an executor's and a driver's

ON_CLUSTER = pytest.mark.whole_tier("the JVMs of a cluster need minutes; in local mode the same audit runs")

CROWDED = """
import sys
from pyjmsack.spark.audit import ClusterError, audit_session
try:
    audit_session(sys.argv[1], patience=1, spark__executor__memory="900g")
except ClusterError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def master(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Standalone(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster.url


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Path]:
    """Three sends, of which the first two were received: some is Parquet, some still raw."""
    path = tmp_path / "ledger"
    origin = ("AMQP 1.0", "amqp://broker:5672", "c")
    sealed, raw = (Ledger(path, name) for name in ("sealed", "raw"))
    for number, writer in ((1, sealed), (2, raw), (3, sealed)):
        writer.send(f'"ID:{number}",,{number},1000,2000,"confirmed",,{tail("p", "queue://q", *origin)}\n')
        if number < 3:
            receiver = tail("c", "queue://q", 1, *origin)
            writer.receive(f'"ID:{number}",{number},3000,4000,1,0,"accepted",,{receiver}\n')
    sealed.close()
    yield path
    raw.close()


def run(*command: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, *command]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=500, check=False, env=ENVIRONMENT)


@ON_CLUSTER
def test_the_audit_runs_on_a_cluster(master: str, ledger: Path) -> None:
    """Its workers need the ledgers, and no Python."""
    done = run("-m", "pyjmsack", "audit", str(ledger), "--master", master, "--json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert (document["sends"], document["receives"]) == ({"confirmed": 3}, {"accepted": 2})
    assert document["findings"]["unknown"] == {"count": 1, "ids": ["ID:3"]}


@ON_CLUSTER
def test_a_cluster_without_room_is_told_instead_of_waited_for(master: str) -> None:
    done = run("-c", CROWDED, master)
    assert done.returncode == 0, done.stderr
    assert f"no worker of {master} started an executor within 1 s; a worker needs a free core and 900g" in done.stdout


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("spark://127.0.0.1:1", "no Spark master answers at spark://127.0.0.1:1 (127.0.0.1:1: Connection refused)"),
        ("spark://here", "expected a cluster such as spark://host:7077, not spark://here"),
    ],
)
def test_a_master_that_is_not_there_is_told_at_once(java: None, ledger: Path, address: str, message: str) -> None:
    result = CliRunner().invoke(cli, ["audit", str(ledger), "--master", address])
    assert (result.exit_code, result.stderr.strip()) == (1, f"Error: {message}")

"""The programs in ``examples/`` do what they say, each in a process of its own, against a real broker."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shared_brokers import Served

from pyjmsack import ConnectionFactory, RequestTimedOutException

EXAMPLES = Path(__file__).parents[1] / "examples"
TIMEOUT = 60

EXPECTED = {
    "aio_workers.py": {"job 3: the first attempt fails", "10 jobs done"},
    "app.py": {
        "delivery 1: the mail server is busy",
        "audited once: to ann",
        "receipt: 4 words to ann",
        "health: UP",
    },
    "browse_queue.py": {
        "3 parcels wait",
        "heavy: parcel of 12 kg",
        "heavy: parcel of 25 kg",
        "took 3: browsing had left them there",
    },
    "individual_listener.py": {
        "fine: done, delivery 1",
        "flaky: failed, once more",
        "flaky: done, delivery 2",
        "hopeless: rejected",
        "all decided",
    },
    "pipelined_sends.py": {"5000 of 5000 confirmed", "received 5000"},
    "request_reply.py": {"bolt: 0.10", "nut: 0.05", "washer: no answer"},
    "send_and_receive.py": {
        "received 'order 0' for EU",
        "received 'order 1' for US",
        "received 'order 2' for EU",
        "acknowledged 3",
    },
    "subscriptions.py": {
        "archive: first edition",
        "archive: second edition",
        "desk: story 0, story 1, story 2, story 3, story 4, story 5",
    },
    "transaction.py": {
        "letter 0: moved, delivery 1",
        "letter 1: something went wrong, rolling back",
        "letter 1: moved, delivery 2",
        "letter 2: moved, delivery 1",
        "moved 3 in 4 tries",
        "archived letter 0",
        "archived letter 1",
        "archived letter 2",
    },
}
"""Lines that each program prints; their order may depend on the broker."""


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_example_prints_what_it_promises_and_warns_of_nothing(name: str, broker_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        env={**os.environ, "PYJMSACK_URL": broker_url},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == EXPECTED[name]
    assert done.stderr == ""


@pytest.mark.full_tier("it needs ActiveMQ Classic")
def test_the_service_of_the_request_example_outlives_a_requester_that_has_left(
    brokers: Callable[[str], Served], queue_name: str
) -> None:
    """ActiveMQ Classic refuses the reply, and the commit failed and ended the service."""
    spec = importlib.util.spec_from_file_location("example", EXAMPLES / "request_reply.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.URL, example.QUEUE = brokers("classic-6").amqp_url, queue_name
    stop = threading.Event()
    with ConnectionFactory(example.URL).create_context() as context, ThreadPoolExecutor() as pool:
        queue = context.create_queue(queue_name)
        with context.create_requestor(queue) as leaving, pytest.raises(RequestTimedOutException):
            leaving.request("bolt", timeout=0.1)
        service = pool.submit(example.serve, stop)
        try:
            with context.create_requestor(queue) as requestor:
                assert requestor.request("nut", timeout=TIMEOUT).get_body(str) == "0.05"
        finally:
            stop.set()
        service.result(TIMEOUT)

"""A body of 100 MB passes, and how much memory that takes (S168)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from contract.brokers import not_on
from contract.harness import Jms

SIZE = 100_000_000  # ActiveMQ Classic takes frames of 100 MiB, headers included
STOMP_SIZE = 20_000_000  # the time that Artemis needs to read a STOMP frame grows with the square of its size
PATIENCE = 120

# in one worker: two at a time would need a gigabyte
pytestmark = [
    pytest.mark.timeout(2 * PATIENCE),
    pytest.mark.xdist_group("large"),
    pytest.mark.full_tier("many seconds of copying"),
]

PROGRAM = """
import sys
import pyjmsack

url, name, what, size = *sys.argv[1:4], int(sys.argv[4])

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

with pyjmsack.ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
    connection.start()
    queue = session.create_queue(name)
    if what == "send":
        body = b"x" * size
        before = peak()
        session.create_producer(queue).send(body)
    else:
        before = peak()
        message = session.create_consumer(queue).receive(timeout=100)
        assert len(message.data) == size
    print((peak() - before) / size)
"""


@not_on("stomp-classic", "STOMP: no frame may be larger than 100 MB")
async def test_a_body_of_100_mb_passes(jms: Jms) -> None:
    """S168; 20 MB where that would take minutes."""
    session = await jms.session()
    size = STOMP_SIZE if jms.target.named("stomp-artemis") else SIZE
    body = bytes(range(256)) * (size // 256)
    await (await session.create_producer(jms.queue)).send(body)
    message = await (await session.create_consumer(jms.queue)).receive(timeout=PATIENCE)
    assert message is not None
    assert message.body == body
    await jms.left()


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
def test_a_large_body_is_in_memory_about_three_times(broker_url: str, queue_name: str) -> None:
    """S168: the payload, the copy of the AMQP engine, and what is on its way; the caller's own body not counted."""
    for what in ("send", "receive"):
        command = [sys.executable, "-c", PROGRAM, broker_url, queue_name, what, str(SIZE // 2)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < 3.7, what

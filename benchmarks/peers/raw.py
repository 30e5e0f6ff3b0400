"""python-qpid-proton: its reactor, and its BlockingConnection for the one-by-one send."""

from __future__ import annotations

from functools import partial

from proton import Message
from proton.utils import BlockingConnection

from benchmarks.job import PATIENCE, Job, Scenarios, Stopwatch, Timing, login
from benchmarks.peers import reactor
from benchmarks.peers.terminus import CLIENT, QueueTarget


def _send(job: Job, *, durable: bool = True) -> Timing:
    """Timed from the first send to the last confirmation; ``send`` raises when a message was not accepted."""
    username, password = login()
    text = job.text
    connection = BlockingConnection(job.url, timeout=PATIENCE, user=username, password=password)
    try:
        sender = connection.create_sender(job.queue, options=QueueTarget())
        watch = Stopwatch()
        for _ in range(job.count):
            sender.send(Message(body=text, durable=durable))
        return watch.timing(job.count, CLIENT)
    finally:
        connection.close()


SCENARIOS: Scenarios = {**reactor.SCENARIOS, "send": _send, "send-nonpersistent": partial(_send, durable=False)}

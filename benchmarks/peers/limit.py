"""What the broker can do on this machine: a bare socket that writes ready-made frames, and one that only counts what
comes. A client can hardly be faster.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.job import Job, Scenarios, Timing
from benchmarks.peers import limit_amqp, limit_stomp


def _of_protocol(over_amqp: Callable[[Job], Timing], over_stomp: Callable[[Job], Timing]) -> Callable[[Job], Timing]:
    return lambda job: (over_stomp if job.url.startswith("stomp") else over_amqp)(job)


_RECEIVE = _of_protocol(limit_amqp.receive, limit_stomp.receive)
SCENARIOS: Scenarios = {
    "send-async": _of_protocol(limit_amqp.send_all, limit_stomp.send_all),
    "send": _of_protocol(limit_amqp.send_each, limit_stomp.send_each),
    "send-nonpersistent": _of_protocol(limit_amqp.send_nonpersistent, limit_stomp.send_nonpersistent),
    "drain": limit_amqp.drain,
    "receive": _RECEIVE,
    "listener": _RECEIVE,
}

"""``python -m benchmarks scale``."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_all_consumers_attach_and_come_back_after_a_kill_of_the_broker(bench, protocol: str) -> None:
    [report] = bench("scale", "--protocol", protocol, "--connections", 2, "--consumers", 40)
    assert report["consumers"] == 40
    assert report["attach_seconds"] > 0
    assert report["restore_seconds"] > 0

"""``python -m benchmarks run``."""

from __future__ import annotations

import pytest
from shared_brokers import Served

SCENARIOS = ("send-async", "receive", "listener", "send", "send-nonpersistent", "request", "request-many")


@pytest.mark.parametrize(
    "protocol", ["amqp", pytest.param("stomp", marks=pytest.mark.whole_tier("the row above is the same program"))]
)
def test_every_row_counts_its_messages_and_those_of_a_bare_socket(bench, any_broker: Served, protocol: str) -> None:
    """A measurement whose queue has more or fewer messages than it should is an error of the command."""
    chosen = [word for scenario in SCENARIOS for word in ("--scenario", scenario)]
    addresses = ("--url", any_broker.amqp_url, "--stomp-url", any_broker.stomp_url)
    few = ("--count", 130, "--blocking-count", 3, "--rounds", 1, "--size", 100, "--no-java")
    [report] = bench("run", *addresses, "--protocol", protocol, *few, *chosen)
    assert report["errors"] == []
    rows = {row["name"]: row for row in report["scenarios"]}
    for name in SCENARIOS[:5]:
        assert any(ratio["name"] == "sync/limit" for ratio in rows[name]["ratios"]), name
    for name in SCENARIOS[5:]:
        for face in ("sync", "aio"):
            [measured] = rows[name]["peers"][face]["rounds"]
            assert 0 < measured["p50"] <= measured["p99"]
            assert measured["processor"] > 0


def test_a_message_of_several_frames_reaches_the_limit_too(bench, any_broker: Served) -> None:
    """Artemis takes 128 KiB in a frame."""
    chosen = ("--scenario", "send-async", "--scenario", "receive", "--only", "limit")
    [report] = bench("run", "--url", any_broker.amqp_url, "--count", 3, "--rounds", 1, "--size", 300_000, *chosen)
    assert report["errors"] == []

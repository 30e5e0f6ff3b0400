"""``python -m benchmarks growth``, ``scale``, ``large``, ``cold`` and ``simulate``, with small numbers."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_growth_measures_each_point_of_each_axis_and_draws_them(bench, tmp_path: Path) -> None:
    few = ("--protocol", "amqp", "--face", "aio", "--count", 20, "--most", 2, "--rounds", 1)
    [report] = bench("growth", *few, "--chart", tmp_path / "growth.svg")
    points = {(point["axis"], point["scenario"], point["value"]): point for point in report["points"]}
    assert {key for key in points if key[0] != "bodies"} == {
        ("consumers", "consumers-1", 1),
        ("queues", "queues-1", 1),
        *(("processes", scenario, number) for scenario in ("send-async", "receive") for number in (1, 2)),
    }
    assert len(points) == 6 + 2 * 4
    assert all(point["rate"] > 0 and point["processor"] > 0 for point in points.values())
    assert "</svg>" in (tmp_path / "growth.svg").read_text()


@pytest.mark.parametrize(
    "protocol", ["amqp", pytest.param("stomp", marks=pytest.mark.whole_tier("the row above is the same program"))]
)
def test_scale_attaches_all_consumers_and_restores_them_after_a_cut_and_after_a_kill(bench, protocol: str) -> None:
    [found] = bench("scale", "--protocol", protocol, "--consumers", 6, "--connections", 2)
    assert (found["consumers"], found["connections"]) == (6, 2)
    assert min(found["attached"], found["after_cut"]) > 0


def test_large_receives_the_body_that_it_sent_in_both_faces(bench) -> None:
    """The command compares the two files."""
    found = bench("large", "--size", 9_000_000, "--heap", "512m")
    assert [(one["face"], one["job"]) for one in found] == [
        (face, job) for face in ("sync", "aio") for job in ("send", "receive")
    ]


def test_cold_measures_both_faces_over_both_protocols(bench) -> None:
    found = bench("cold", "--rounds", 1)
    assert len(found) == 4
    for one in found:
        assert one["all"] == pytest.approx(one["imports"] + one["connect"] + one["first"])


@pytest.mark.parametrize("outage", [1, 10, 60])
def test_simulated_clients_all_come_back_within_the_longest_wait_and_not_at_the_same_moment(bench, outage: int) -> None:
    """The clock is simulated. The waits are those of the library, with its default options."""
    [[found]] = bench("simulate", "--clients", 300, "--outage", outage, "--options", "", "--login", 0)
    assert found["waits"]["p100"] <= 0.75
    assert found["busiest_back"] < 300 / 2
    assert found["attempts"] > 300

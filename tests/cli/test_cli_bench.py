"""``pyjmsack bench`` against real brokers: its figures, and that it leaves nothing behind in anybody's queue."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from cli_support import Cli, put, rest, take_all
from polling import wait_until

from pyjmsack import ConnectionFactory
from pyjmsack.cli.bench.own_queue import PREFIX
from pyjmsack.management import Manager


def queues_of_runs(cli: Cli, jolokia: str | None = None) -> list[str]:
    """Return the queues of bench that the broker has."""
    with Manager(ConnectionFactory(cli.url), jolokia=jolokia) as manager:
        return [each.name for each in manager.queues(f"{PREFIX}*")]


def figures(text: str) -> dict[str, Any]:
    """Return the document of a run."""
    document: dict[str, Any] = json.loads(text)
    return document


@pytest.mark.parametrize("what", ["send", "receive", "roundtrip"])
def test_a_run_has_figures_and_its_queue_is_gone(cli: Cli, what: str) -> None:
    found = figures(cli.ok("bench", what, "--count", 60, "--clients", 2, "--size", 100, "--json"))
    assert (found["messages"], found["unanswered"], found["queues_left"]) == (60, 0, [])
    times = found["latency_seconds"]
    assert 0 < times["p50"] <= times["p90"] <= times["p99"] <= times["p99.9"] <= times["max"]
    assert found["bytes_per_second"] == pytest.approx(found["messages_per_second"] * 100)
    assert not [each for each in queues_of_runs(cli) if found["queue"] in each]


def test_a_person_sees_a_table_and_a_chart(cli: Cli) -> None:
    result = cli.run("bench", "roundtrip", "--count", 20)
    assert result.exit_code == 0, result.output
    assert "p99.9" in result.stdout
    assert "█" in result.stdout
    assert PREFIX in result.stderr


def test_ctrl_c_ends_a_run_with_the_figures_so_far_and_the_queue_is_gone(cli: Cli) -> None:
    process = cli.start("bench", "send", "--seconds", "1h", "--rate", "50", "--json")
    assert process.stderr is not None
    name = process.stderr.readline().decode().split()[-1].rstrip(".")
    with Manager(ConnectionFactory(cli.url)) as manager:
        wait_until(lambda: any(each.added for each in manager.queues(name)))
    process.send_signal(signal.SIGINT)
    lines, _, code = rest(process)
    assert code == 0
    found = figures(lines[-1])
    assert (found["stopped"], found["messages"] > 0, found["unanswered"]) == (True, True, 0)
    assert name not in queues_of_runs(cli)


def test_with_a_queue_of_the_user_it_takes_what_it_says_and_no_more(cli: Cli, queue_name: str) -> None:
    put(cli.url, queue_name, [str(number) for number in range(5)])
    refused = cli.run("bench", "receive", "--queue", queue_name, stdin="")
    assert refused.exit_code == 2
    taken = cli.run("bench", "receive", "--queue", queue_name, "--count", 2, "--yes")
    assert "2 messages" in taken.stderr
    sent = cli.run("bench", "send", "--queue", queue_name, "--count", 3, "--size", 1, "--yes")
    assert "3 messages were left" in sent.stderr
    assert [text for text, _ in take_all(cli.url, queue_name, wait_for=6)][:3] == ["2", "3", "4"]


def test_on_classic_the_queue_is_deleted_by_jolokia_and_else_emptied_and_told(classic: tuple[str, str]) -> None:
    url, jolokia = classic
    cli = Cli(url)
    found = figures(cli.ok("bench", "send", "--count", 50, "--json", "--jolokia", jolokia))
    assert found["queue"] not in queues_of_runs(cli, jolokia)
    result = cli.run("bench", "send", "--count", 50, "--json")
    assert result.exit_code == 0, result.output
    name = figures(result.stdout)["queue"]
    assert f"Emptied {name}" in result.stderr
    with Manager(ConnectionFactory(url), jolokia=jolokia) as manager:
        assert manager.queue(name).messages == 0
        manager.delete_queue(name)

"""``pyjmsack soak``: it passes on a good library, and notices a bad one."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_support import Cli

from pyjmsack.broker import EmbeddedArtemis
from pyjmsack.cli.resources import Resources
from pyjmsack.cli.soak.ledger import Ledger, Numbers
from pyjmsack.cli.soak.load import Load, StuckError
from pyjmsack.cli.soak.report import MEMORY_LIMIT, Flow, Report, as_document

pytestmark = pytest.mark.timeout(600)

FLOWS = {(flow, face) for flow in ("AUTO", "INDIVIDUAL", "transacted relay") for face in ("blocking", "asyncio")}


WHOLE = pytest.mark.whole_tier("kills run over AMQP, cuts over STOMP; tests/faults has both over both")


def soaked(*arguments: object, exit_code: int = 0) -> dict[str, Any]:
    """Run a soak and return its document."""
    result = Cli("").run("soak", *arguments, "--json")
    assert result.exit_code == exit_code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["ok"] is (exit_code == 0)
    return document


def assert_nothing_lost(document: dict[str, Any]) -> None:
    """Every flow did something, and nothing is missing."""
    assert {(flow["flow"], flow["face"]) for flow in document["flows"]} == FLOWS
    for flow in document["flows"]:
        assert flow["confirmed"] == flow["received"] >= 100, flow
        assert (flow["lost"], flow["torn"], flow["doubled"] if flow["atomic"] else 0) == (0, 0, 0), flow


@pytest.mark.parametrize("protocol", ["amqp", pytest.param("stomp", marks=WHOLE)])
def test_kills_of_the_broker_lose_double_and_tear_nothing_and_leave_nothing_behind(protocol: str) -> None:
    """S75, S91, S92, S97, S105: two kills and more, both faces."""
    document = soaked("--minutes", 0.3, "--kill-every", 5, "--protocol", protocol)
    assert_nothing_lost(document)
    assert protocol.upper() in document["broker"]
    assert len(document["outages"]) == document["kills"] >= 2
    connections = 2 * (3 * 2 + 1)  # two ends of three flows and a relay, in each face
    assert document["interruptions"] >= document["kills"] * connections
    for name in ("threads", "descriptors"):
        held = document["resources"][name]
        assert held["last"] <= held["first"]
        assert held["after"] <= held["before"]


@pytest.mark.parametrize("protocol", [pytest.param("amqp", marks=WHOLE), "stomp"])
def test_without_a_command_connections_to_one_s_own_broker_are_cut(
    brokers: Callable[[str], Any], protocol: str
) -> None:
    """S91, S105."""
    url = f"failover:({getattr(brokers('artemis'), f'{protocol}_url')})?failover.maxReconnectDelay=200"
    document = soaked("--minutes", 0.1, "--kill-every", 1, "--url", url)
    assert_nothing_lost(document)
    assert document["interruptions"] >= 14


def test_one_s_own_broker_is_killed_and_restarted_by_commands(tmp_path: Path) -> None:
    """S91, S105."""
    wish, pid = tmp_path / "wish", tmp_path / "pid"
    os.mkfifo(wish)

    def restart(broker: EmbeddedArtemis) -> None:
        for _ in range(2):
            wish.read_text()
            broker.restart()
            pid.write_text(str(broker.pid))

    with EmbeddedArtemis() as broker:
        pid.write_text(str(broker.pid))
        restarting = threading.Thread(target=restart, args=[broker])
        restarting.start()
        document = soaked(
            *("--minutes", 0.05, "--kill-every", 2, "--face", "asyncio"),
            *("--url", f"failover:({broker.amqp_url})?failover.maxReconnectDelay=200"),
            *("--kill-command", f"sh -c 'kill -s KILL $(cat {pid})'"),
            *("--restart-command", f"cp /dev/null {wish}"),
        )
        restarting.join()
    assert (document["kills"], document["interruptions"]) == (2, 2 * 7)


def test_a_lost_message_is_found(brokers: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    receive = Ledger.receive
    monkeypatch.setattr(Ledger, "receive", lambda ledger, text: None if text == "77" else receive(ledger, text))
    url = f"failover:({brokers('artemis').amqp_url})"
    arguments = ("--minutes", 0.05, "--kill-every", 1, "--face", "asyncio", "--patience", 20, "--url", url)
    document = soaked(*arguments, exit_code=1)
    assert [flow["lost"] for flow in document["flows"]] == [1, 1, 0]
    assert "AUTO (asyncio): 1 lost (numbers 77)" in document["problems"]
    assert any("nothing arrived for 20 s" in problem for problem in document["problems"])


async def arrives(clock: Iterable[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for one message with a patience of 2 s, by a clock; the message comes when the clock has ended."""
    times = iter(clock)
    load = Load(NotImplemented, "q", patience=2.0)

    def now() -> float:
        time = next(times, None)
        if time is None:
            load.ledger.receive("0")
        return time or 0.0

    monkeypatch.setattr("pyjmsack.cli.soak.load.monotonic", now)
    await load.reaches(1)


def test_patience_ends_while_nothing_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StuckError, match="nothing arrived for 2 s: 0 confirmed, 0 received"):
        asyncio.run(arrives((0.4 * look for look in range(8)), monkeypatch))


def test_patience_does_not_end_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(arrives([0, 0.1, 3600, 3600.1, 7200], monkeypatch))


def test_a_message_that_comes_twice_is_found(brokers: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """S105: it is what a guard that does not guard would lead to."""
    receive = Ledger.receive

    def receive_77_twice(ledger: Ledger, text: str) -> None:
        for _ in range(2 if text == "77" else 1):
            receive(ledger, text)

    monkeypatch.setattr(Ledger, "receive", receive_77_twice)
    url = f"failover:({brokers('artemis').amqp_url})"
    document = soaked("--minutes", 0.05, "--kill-every", 1, "--face", "asyncio", "--url", url, exit_code=1)
    assert [flow["doubled"] for flow in document["flows"]] == [1, 1, 0]
    assert "AUTO (asyncio): 1 doubled" in document["problems"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--url", "amqp://localhost:5672"], "expected failover:(amqp://HOST:PORT"),
        (["--url", "failover:(amqp://localhost)"], "the soak needs the port of each broker"),
        (["--url", "failover:(amqp://a:1)", "--protocol", "stomp"], "--protocol is for the embedded broker"),
        (["--kill-command", "true"], "give its URL with --url"),
        (["--url", "failover:(amqp://a:1)", "--restart-command", "true"], "--restart-command needs --kill-command"),
        (["--minutes", "0"], "0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_does_not_fit_together_is_a_usage_error(arguments: list[str], words: str) -> None:
    result = Cli("").run("soak", *arguments)
    assert result.exit_code == 2
    assert words in result.output.replace("\n", " ")


def test_a_command_that_fails_ends_the_soak(brokers: Callable[[str], Any]) -> None:
    url = f"failover:({brokers('artemis').amqp_url})"
    result = Cli("").run("soak", "--minutes", 0.1, "--kill-every", 0.5, "--url", url, "--kill-command", "false")
    assert result.exit_code == 1
    assert "Error: 'false': Command '['false']' returned non-zero exit status 1." in result.stderr


def test_a_command_that_kills_nothing_is_noticed_and_what_it_prints_does_not_mix_with_the_result(
    brokers: Callable[[str], Any], capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"failover:({brokers('artemis').amqp_url})"
    arguments = ("--minutes", 0.02, "--kill-every", 0.5, "--face", "asyncio", "--url", url)
    document = soaked(*arguments, "--kill-command", "echo killed", exit_code=1)
    assert document["problems"] == ["no kill interrupted a connection"]
    assert "killed" not in capfd.readouterr().out


def test_the_tables_say_it_in_words(brokers: Callable[[str], Any]) -> None:
    url = f"failover:({brokers('artemis').amqp_url})?failover.maxReconnectDelay=200"
    out = Cli("").ok("soak", "--minutes", 0.05, "--kill-every", 1, "--face", "asyncio", "--url", url)
    assert "times connections cut" in out
    assert "Nothing lost, nothing doubled, nothing torn." in out


def test_numbers_remember_any_order_in_little_memory() -> None:
    numbers, others = Numbers(), Numbers()
    assert all(numbers.add(n) for n in (1, 0, 2, 5, 4))
    assert not numbers.add(1)
    assert not numbers.add(5)
    assert [n for n in range(7) if n in numbers] == [0, 1, 2, 4, 5]
    assert len(numbers) == 5
    assert numbers.missing_in(others) == [0, 1, 2, 4, 5]
    assert [others.add(n) for n in (5, 1)] == [True, True]
    assert (numbers.missing_in(others), others.missing_in(numbers)) == ([0, 2, 4], [])


def booked(*texts: str, confirmed: int) -> Ledger:
    """Return a ledger with arrivals."""
    ledger = Ledger()
    for number in range(confirmed):
        ledger.confirm(number)
    for text in texts:
        ledger.receive(text)
    return ledger


def test_the_ledger_finds_loss_repetition_and_torn_transactions() -> None:
    assert booked("0", "1", confirmed=2).problems() == []
    assert booked("0", confirmed=3).problems() == ["2 lost (numbers 1, 2)"]
    assert booked(confirmed=12).problems() == ["12 lost (numbers 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)"]
    assert booked("0", "0", "1", confirmed=2).problems() == ["1 doubled"]
    assert booked("0", "0", "1", confirmed=2).problems(atomic=False) == []
    assert booked("0 1 0 2", "1 1 1 2", confirmed=2).problems() == []
    assert booked("0 1 0 2", "1 2 0 1", confirmed=2).problems() == ["1 transactions torn"]
    assert booked("0 1 0 3", "1 1 1 3", "1 1 2 3", confirmed=2).problems() == ["1 doubled"]
    assert booked("0 1 0 2", "1 1 1 2", "0 1 0 2", confirmed=2).problems() == ["1 doubled"]


def test_a_send_that_timed_out_may_arrive_once_or_not() -> None:
    """S91."""
    for texts, problems in ((("0",), []), (("0", "1"), []), (("0", "1", "1"), ["1 doubled"])):
        ledger = booked(confirmed=1)
        ledger.excuse(1)
        for text in texts:
            ledger.receive(text)
        assert ledger.problems() == problems
        assert ledger.arrived


@pytest.mark.parametrize(
    ("samples", "after", "problem"),
    [
        ([(3, 5, 0), (3, 5, MEMORY_LIMIT)], (1, 1), None),
        ([(3, 5, 0), (4, 5, 0)], (1, 1), "threads: grew by 1, more than 0"),
        ([(3, 5, 0), (3, 7, 0)], (1, 1), "descriptors: grew by 2, more than 0"),
        ([(3, 5, 0), (3, 5, MEMORY_LIMIT + 1)], (1, 1), "memory: grew by 20,000,001, more than 20,000,000"),
        ([(3, 5, 0), (3, 5, 0)], (1, 2), "descriptors: 1 left after closing"),
    ],
)
def test_what_grows_is_found(
    samples: Sequence[tuple[int, int, int]], after: tuple[int, int], problem: str | None
) -> None:
    report = Report(
        broker="",
        what="",
        seconds=1,
        outages=[1.0],
        interruptions=1,
        flows=[Flow("AUTO", "asyncio", Ledger(), 0, True)],
        samples=[Resources(*sample) for sample in samples],
        before=Resources(1, 1, 0),
        after=Resources(*after, 0),
        stuck=[],
    )
    assert as_document(report)["problems"] == ([problem] if problem else [])

"""``pyjmsack demo``: it passes on a good library, and notices a bad one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_support import Cli

from pyjmsack import Message, ResourceAllocationException
from pyjmsack.cli.demo import auditing, receiving, sending
from pyjmsack.cli.demo.killing import is_time
from pyjmsack.cli.demo.ledger import FAIL_EVERY, Ledger, ProcessingError
from pyjmsack.cli.demo.rows import FAILOVER_ROWS, ROWS
from pyjmsack.cli.demo.running import plan
from pyjmsack.cli.demo.source import Line, Source, default_paths, line_message
from pyjmsack.cli.options import Login
from pyjmsack.ledger import read_ledgers


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Some files: text, empty, without a last line end, not UTF-8; 230 lines together."""
    (tmp_path / "text.txt").write_text("".join(f"line {number}\n" for number in range(200)))
    (tmp_path / "empty").touch()
    (tmp_path / "unfinished").write_bytes(b"one\r\ntwo\n\nfour")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 25 + b"\n")
    return tmp_path


def rows_of(cli: Cli, files: Path, exit_code: int = 0) -> list[dict[str, Any]]:
    """Run the demo and return its rows."""
    patience = 3 if exit_code else 30  # what is to arrive may take long on a machine at work
    result = cli.run("demo", "--input", files, "--patience", patience, "--no-audit", "--json")
    assert result.exit_code == exit_code, result.output
    document = json.loads(result.stdout)
    assert document["ok"] is (exit_code == 0)
    assert len(document["left_out"]) == 1  # nobody kills a broker that is not the demo's own
    rows: list[dict[str, Any]] = document["rows"]
    assert len(rows) == len(ROWS)
    return rows


def test_nothing_is_lost_in_any_row(cli: Cli, files: Path) -> None:
    total = len(Source.read([files]).lines)
    for row in rows_of(cli, files):
        assert (row["sent"], row["confirmed"], row["received"], row["lost"]) == (total, total, total, 0), row
        no_return = row["name"] in ("NO_ACKNOWLEDGE", "ARTEMIS_PRE_ACKNOWLEDGE")
        assert (row["redelivered"] == 0) is no_return, row
        assert row["problems"] == []


def test_nothing_is_lost_over_stomp(brokers: Callable[[str], Any], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"line {number}\n" for number in range(60)))
    for row in rows_of(Cli(brokers("artemis").stomp_url), tmp_path):
        assert (row["protocol"], row["received"], row["lost"], row["problems"]) == ("STOMP", 60, 0, []), row


def test_the_demo_s_own_broker_is_killed_and_spoken_to_in_the_protocols_that_were_asked_for(files: Path) -> None:
    """S91, S105: over both protocols and in both faces, nothing is lost or doubled by a killed broker."""
    result = Cli("").run("demo", "--input", files, "--protocol", "both", "--patience", 30, "--no-audit", "--json")
    assert result.exit_code == 0, result.output
    assert "Starting Artemis" in result.stderr
    document = json.loads(result.stdout)
    assert [row["protocol"] for row in document["rows"]] == ["AMQP", "STOMP"] * len(ROWS + FAILOVER_ROWS)
    killed = {(row["face"], row["protocol"], row["kills"], row["lost"]) for row in document["rows"] if row["kills"]}
    assert killed == {(face, protocol, 2, 0) for face in ("blocking", "asyncio") for protocol in ("AMQP", "STOMP")}
    assert document["broker"].endswith("over AMQP 1.0 and STOMP 1.2")
    assert document["left_out"] == []


def test_a_processed_line_that_comes_again_after_a_kill_is_a_duplicate(tmp_path: Path) -> None:
    """S105: marked as redelivered or not; one that failed before the kill may come again, marked or not."""
    (tmp_path / "text").write_text("line\n" * FAIL_EVERY)
    source = Source.read([tmp_path])
    ledger = Ledger(source, broker_dies=True)
    for line in source.lines[:-1]:
        ledger.deliver(line_message(line))
    failing = line_message(source.lines[-1])
    with pytest.raises(ProcessingError):
        ledger.deliver(failing)
    assert (ledger.owed, ledger.complete) == (1, False)
    ledger.deliver(failing)
    assert (ledger.owed, ledger.complete, ledger.duplicates) == (0, True, 0)
    ledger.deliver(failing)
    assert ledger.duplicates == 1


def test_every_mode_has_a_row() -> None:
    assert {row.mode.value for row in ROWS} == {0, 1, 2, 3, 4, 100, 101, 257}
    assert {row.face for row in ROWS} == {"blocking", "asyncio"}


def test_by_default_3000_lines_of_whole_files_run_side_by_side_and_the_killing_rows_together() -> None:
    source = Source.read(default_paths(), 3000)
    assert 2900 < len(source.lines) <= 3000
    contents = [Path(name).read_bytes() for name in source.names]
    assert b"".join(line.data for line in source.lines) == b"".join(contents)
    waves = plan({"AMQP": Login(), "STOMP": Login()}, True, False, source, 1)
    assert [(len(wave.runs), wave.kills.left) for wave in waves] == [(18, 0), (4, 2)]
    assert all(run.job.kills is waves[1].kills for run in waves[1].runs)


def test_full_runs_all_lines_row_after_row_and_each_killing_row_has_its_own_kills() -> None:
    source = Source.read(default_paths())
    assert len(source.lines) > 30_000
    waves = plan({"AMQP": Login(), "STOMP": Login()}, True, True, source, 1)
    assert [(len(wave.runs), wave.kills.left) for wave in waves] == [(1, 0)] * 18 + [(1, 2)] * 4


def test_the_broker_is_killed_when_every_row_has_begun_and_the_fastest_has_its_part(files: Path) -> None:
    source = Source.read([files])
    jobs = [run.job for run in plan({"AMQP": Login()}, True, False, source, 1)[1].runs]
    enough = len(source.lines) // 3 + 1
    for line in source.lines[:enough]:
        with contextlib.suppress(ProcessingError):
            jobs[0].ledger.deliver(line_message(line))
    assert not is_time(jobs, 1 / 3)
    jobs[1].ledger.deliver(line_message(source.lines[0]))
    assert is_time(jobs, 1 / 3)
    assert not is_time(jobs, 2 / 3)


def test_the_table_says_it_in_words(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a single line\n")
    out = cli.ok("demo", "--input", tmp_path / "one", "--no-audit")
    table = out.partition("Nothing lost")[0]
    assert max(map(len, table.splitlines()[1:])) <= 80, "a terminal of 80 columns shows it whole"
    assert out.partition("What to try next:")[2].count("pyjmsack ") == 3
    assert "1 lines of 1 files" in out
    assert "Nothing lost" in out
    assert "Left out: the rows in which the broker is killed" in out
    assert "FAILED" not in out


def test_a_lost_line_fails_every_row(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver = Ledger.deliver

    def lossy(ledger: Ledger, message: Message) -> tuple[int, int]:
        if message.get_int_property("sequence") == 7:
            return 0, 0
        return deliver(ledger, message)

    monkeypatch.setattr(Ledger, "deliver", lossy)
    for row in rows_of(cli, files, exit_code=1):
        assert (row["lost"], row["ok"]) == (1, False)
        assert any("lines lost" in problem for problem in row["problems"])


def test_a_changed_line_is_found_by_its_digest(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def corrupting(line: Line, *, rolled_back: bool = False) -> Message:
        changed = line._replace(data=b"changed\n") if line.sequence == 7 else line
        return line_message(changed, rolled_back=rolled_back)

    monkeypatch.setattr(sending, "line_message", corrupting)
    blocking = [row for row in rows_of(cli, files, exit_code=1) if row["face"] == "blocking"]
    assert [(row["lost"], row["ok"]) for row in blocking] == [(0, False)] * len(blocking)
    assert all("1 files differ" in row["problems"][0] for row in blocking)


def test_a_rolled_back_send_that_appears_is_a_failure(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyjmsack.Session.rollback", lambda session: session.commit())
    transacted = [row for row in rows_of(cli, files, exit_code=1) if row["name"] == "SESSION_TRANSACTED"]
    assert any("rolled-back sends appeared" in problem for problem in transacted[0]["problems"])
    assert any("did not come again" in problem for problem in transacted[0]["problems"])


def test_a_missing_recover_is_a_failure(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyjmsack.Session.recover", lambda session: None)
    failed = [row for row in rows_of(cli, files, exit_code=1) if not row["ok"]]
    assert [row["name"] for row in failed] == ["CLIENT_ACKNOWLEDGE"]


def test_messages_left_on_the_queue_are_a_failure(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Message, "acknowledge", lambda message: None)
    failed = [row for row in rows_of(cli, files, exit_code=1) if not row["ok"]]
    assert {row["mode"] for row in failed} == {2, 4, 101}
    assert all("left on the queue" in row["problems"][-1] for row in failed)


def test_a_failing_sender_ends_the_demo_with_one_line(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(job: object) -> None:
        raise ResourceAllocationException("the broker is full")

    monkeypatch.setattr(receiving, "send_all", refused)
    result = cli.run("demo", "--input", files, "--patience", 1, "--no-audit")
    assert result.exit_code == 1
    assert result.stderr.strip().endswith("Error: the broker is full")


def test_nothing_to_send_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert cli.run("demo", "--input", tmp_path / "empty").exit_code == 2
    assert cli.run("demo", "--input", tmp_path / "absent").exit_code == 2


def test_without_spark_the_demo_says_how_to_get_its_audit(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditing, "missing_for_audit", lambda: "pip install something")
    (tmp_path / "text").write_text("line\n")
    result = cli.run("demo", "--input", tmp_path / "text", "--patience", 30, "--ledger", tmp_path / "ledger")
    assert result.exit_code == 0, result.output
    before, _, after = result.stdout.partition(
        "Left out: the audit of this run's ledger on Spark. pip install something\n"
    )
    assert "Nothing lost" in before
    assert after.startswith("\nWhat to try next:"), "it is said once, after the result"
    sends = read_ledgers([tmp_path / "ledger"]).table("sends")
    assert set(sends["send_outcome"].to_pylist()) >= {"confirmed", "rolled_back"}

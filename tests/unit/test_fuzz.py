"""The fuzzers of ``python -m benchmarks fuzz``, for a moment and with a fixed seed (S127, S129)."""

from __future__ import annotations

import random
import selectors
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from without_proton import REASON

import benchmarks.__main__ as benchmarks
from benchmarks.fuzz import amqp, run, stomp, targets, websocket, worker
from benchmarks.fuzz.bench import FindingError
from benchmarks.fuzz.values import described, frame

CASES = 60


def have(engine: str) -> None:
    """Skip what needs proton where it is not installed."""
    if engine.endswith("proton"):
        pytest.importorskip("proton", reason=REASON)


@pytest.mark.parametrize("target", targets.TARGETS)
def test_hostile_input_is_an_error_of_ours_or_is_survived(target: str) -> None:
    """Whoever waits is told, with an exception of ours; nothing is kept or written without bound."""
    have(target)
    findings = [(case, worker.look(target, worker.input_of(target, 1, case))) for case in range(CASES)]
    assert [finding for finding in findings if finding[1] is not None] == []


def test_an_input_is_the_same_each_time() -> None:
    for target in targets.TARGETS:
        assert worker.input_of(target, 5, 7) == worker.input_of(target, 5, 7) != worker.input_of(target, 5, 8)


# -- the fuzzers reach what they are for ------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["python", "proton"])
def test_the_amqp_fuzzers_have_a_consumer_that_gets_messages(engine: str) -> None:
    have(engine)
    transfers = b"".join(amqp.transfer(random.Random(2), n) for n in range(5))
    bench, sink = amqp.connected([*amqp.WELCOME, transfers], engine)
    assert [verb for verb, done in bench.asked if not done.done] == ["create_producer", "drain"]
    assert [verb for verb, done in bench.asked if done.done and done.error is not None] == []
    assert len(sink.kept) == 5


def test_the_stomp_fuzzer_has_a_consumer_that_gets_messages() -> None:
    message = b"MESSAGE\nsubscription:s%s\nmessage-id:1\nack:1\n\nx\0"
    bench, sink = stomp.subscribed([stomp.CONNECTED % b"other", b"".join(message % b"%d" % n for n in range(5))])
    assert [verb for verb, done in bench.asked if not done.done] == ["unsubscribe"]
    assert len(sink.kept) == 1


def test_the_websocket_fuzzer_comes_past_the_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[bytes] = []
    monkeypatch.setattr(websocket.Inner, "receive_data", lambda self, data: received.append(data))
    websocket.run_websocket([websocket.UPGRADED, b"\x82\x03abc"])
    assert received == [b"abc"]


@pytest.mark.parametrize(
    "properties",
    [
        b"\xc1\x04\x02\x45\x50\x01",
        b"\xc1\x05\x02\xa3\x01\xff\x41",
        b"\x00\x53\x01\x41",
        b"\x41",
        b"\xc1\x09\x02\xa3\x01a\x73\xff\xff\xff\xff",
        b"\xc1\x06\x02\xa0\x02ab\x41",
    ],
    ids=["a list as key", "no symbol", "described", "a boolean", "a char beyond all", "binary as key"],
)
@pytest.mark.parametrize("target", ["amqp", "amqp-proton"])
def test_properties_of_an_open_that_are_none_harm_nobody(target: str, properties: bytes) -> None:
    """What the fuzzers found: proton raises for these when they are read."""
    have(target)
    opened = described(0x10, [amqp.amqp_text("peer"), *[b"\x40"] * 8, properties])
    answer = amqp.AMQP_HEADER + frame(opened) + amqp.begin(0)
    assert worker.look(target, [amqp.WELCOME[0], answer]) is None


NO_FRAMES = bytes.fromhex(
    "0000004302000001005314d00000002c00000002d00000001e00000003c0010000a012782d6f70742d6a6d732d6d73672d747970654441"
    "708000000092ca22a805f00e0000002102000000005313d00000000a00000002600001a001000000ff20d4505300000028020000010053"
    "14d000000009000000017000000001eb4d74f794fd0b8e61bdf843a58e61bdf843a5660d000000ae02000001005301d000000092000000"
    "0be002024200b10000000e616d71703a6e6f742d666f756e6442c01704a303d501f55348c00401a101ddd1000000040000da000053d300"
    "c10100a106c3a4c3a4c3a400734701a97943c12306b0000000013145844d9bf6ce7962aa8fc00a01809cf9fb7b824b80cc400045616d71"
    "f00000000900000001739e47362983ffffffffffffffffe00705560cbd4f80c7559a6ab60e60935c3116d29179a00000001c0200000175"
    "d00000000a00000001b30000000161a3ab"
)
"""A transfer, a flow and a transfer with lengths that do not fit, and bytes that are no frame. proton cannot read what
it makes of them."""


@pytest.mark.parametrize("target", ["amqp", "amqp-proton"])
def test_a_field_that_proton_cannot_read_at_all_ends_the_connection_with_an_error_of_ours(target: str) -> None:
    """S129: what a fuzzer found; proton raises ``RuntimeError`` for it."""
    have(target)
    opened = described(0x10, [amqp.amqp_text("peer"), b"\x40", b"\x70\x00\x02\x00\x00"])
    answer = amqp.AMQP_HEADER + frame(opened) + amqp.begin(0)
    assert worker.look(target, [amqp.WELCOME[0], answer, NO_FRAMES]) is None


# -- findings ---------------------------------------------------------------------------------------------------


def broken(monkeypatch: pytest.MonkeyPatch, harm: Any) -> None:
    monkeypatch.setitem(targets.TARGETS, "body", targets.TARGETS["body"]._replace(run=harm))


def test_an_exception_is_a_finding_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def harm(chunks: list[bytes]) -> None:
        raise FindingError("harm")

    broken(monkeypatch, harm)
    found = worker.look("body", [b""])
    assert found is not None
    assert found[0] == "FindingError: harm"
    assert found[1].startswith("test_fuzz.py:")


def test_growing_memory_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytes] = []
    broken(monkeypatch, lambda chunks: kept.append(b"x" * 1000))
    monkeypatch.setattr(worker, "resident", lambda: (50 << 20) + 1_000_000 * len(kept))
    told: list[dict[str, Any]] = []
    assert sum(1 for _ in worker.cases("body", 1, 0, 30, told.append)) <= 601
    assert [news["where"] for news in told if "finding" in news] == ["memory"]


def test_an_input_that_does_harm_is_saved_and_can_be_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = run.Report("body")
    run._save(report, 1, 3, "harm", tmp_path)
    (saved,) = tmp_path.iterdir()
    assert saved.name == "fuzz-body-1-3.json"
    assert run.replay(saved) is None
    seen: list[list[bytes]] = []

    def harm(chunks: list[bytes]) -> None:
        seen.append(chunks)
        raise FindingError("again")

    broken(monkeypatch, harm)
    assert "again" in str(run.replay(saved))
    assert seen == [worker.input_of("body", 1, 3)]


def test_a_worker_runs_inputs_and_says_how_many(tmp_path: Path) -> None:
    (report,) = run.run(["body"], 1, 0.01, tmp_path, lambda line: None)
    assert report.inputs > 0
    assert report.findings == []


@pytest.mark.parametrize(
    ("program", "limit", "said"),
    [("while True: pass", "_MOST_PROCESSOR", "of the processor"), ("input()", "_MOST_SILENCE", "waited")],
    ids=["runs", "waits"],
)
def test_a_worker_that_hangs_is_told_from_one_that_gets_no_processor(
    program: str, limit: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker on a busy machine was a finding: only its silence was measured."""
    monkeypatch.setattr(run, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(run, limit, 0.1)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as child, selectors.DefaultSelector() as selector:
        assert child.stdout is not None
        selector.register(child.stdout, selectors.EVENT_READ)
        fault = run._hangs(child, selector)
        child.kill()
    assert fault is not None
    assert said in fault


def test_a_worker_that_dies_is_reported_with_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.Popen
    dead = [sys.executable, "-c", "raise SystemExit(3)"]
    monkeypatch.setattr(run.subprocess, "Popen", lambda command, **pipes: real(dead, **pipes))
    fault, last = run._watch(run.Report("body"), ["body", "1", "7", "1", "absent"], lambda line: None)
    assert (fault, last) == ("the process died with exit code 3", 7)


def test_without_proton_its_targets_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """They used to be reported as findings: `AttributeError: 'NoneType' object has no attribute 'receive_data'`."""
    ran: list[str] = []
    monkeypatch.setattr(benchmarks, "proton_is_installed", lambda: False)
    monkeypatch.setattr(run, "run", lambda chosen, *others: ran.extend(chosen) or [])
    result = CliRunner().invoke(benchmarks.main, ["fuzz", "--minutes", "1"])
    assert result.exit_code == 0, result.output
    assert "left out: amqp-proton, credit-proton: proton is not installed" in result.output
    assert ran == [name for name in targets.TARGETS if name not in targets.ON_PROTON]
    others = CliRunner().invoke(benchmarks.main, ["fuzz", "--target", "stomp"])
    assert "left out" not in others.output, "nothing is"
    assert ran[-1] == "stomp"
    asked = CliRunner().invoke(benchmarks.main, ["fuzz", "--target", "amqp-proton"])
    assert asked.exit_code == 2
    assert "pip install -e '.[proton]'" in asked.output

"""Fuzzing for minutes: one process for each target, whose findings and whose end are written down."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.fuzz.worker import input_of, look

__all__ = ["Report", "replay", "run"]

_LOOK_EVERY = 10.0
"""Seconds without news after which this process looks whether the worker still runs."""
_MOST_PROCESSOR = 20.0
"""Seconds of processor time without news after which an input counts as one that never ends. Processor time is counted,
because on a busy machine a worker may get none for many seconds."""
_MOST_SILENCE = 300.0
"""Seconds without news after which an input counts as one that waits for ever."""


@dataclass
class Report:
    """The result of one target."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    memory: int = 0
    findings: list[str] = field(default_factory=list)

    def sentence(self) -> str:
        """Return it for a reader."""
        rate = self.inputs / self.seconds if self.seconds else 0.0
        lines = [f"{self.target}: {self.inputs:,} inputs, {rate:,.0f} a second, {self.memory / 1e6:.0f} MB"]
        return "\n".join([*lines, *(f"  FINDING {text}" for text in self.findings)])


def run(targets: Sequence[str], seed: int, minutes: float, out: Path, progress: Callable[[str], None]) -> list[Report]:
    """Fuzz each target for its share of the time; inputs that show something are saved in ``out``."""
    return [_run_target(target, seed, 60 * minutes / len(targets), out, progress) for target in targets]


def _run_target(target: str, seed: int, seconds: float, out: Path, progress: Callable[[str], None]) -> Report:
    report, started, start = Report(target), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder, "case")
        while (left := started + seconds - time.monotonic()) > 0 and len(report.findings) < 10:
            fault, last = _watch(report, [target, str(seed), str(start), str(left), str(state)], progress)
            report.inputs += last - start
            start = last + 1
            if fault is None:
                break
            _save(report, seed, last, fault, out)
    report.seconds = time.monotonic() - started
    for finding in report.findings[:]:
        if finding.startswith("{"):
            report.findings.remove(finding)
            news = json.loads(finding)
            _save(report, seed, news["case"], f"{news['finding']} ({news['where']})", out)
    return report


def _watch(report: Report, arguments: Sequence[str], progress: Callable[[str], None]) -> tuple[str | None, int]:
    """Run a worker. Return how it failed, ``None`` if it came to its end, and the number of its last input."""
    command = [sys.executable, "-m", "benchmarks.fuzz.worker", *arguments]
    last = int(arguments[2])
    with subprocess.Popen(command, stdout=subprocess.PIPE) as worker, selectors.DefaultSelector() as selector:
        assert worker.stdout is not None  # a pipe was asked for
        selector.register(worker.stdout, selectors.EVENT_READ)
        while (fault := _hangs(worker, selector)) is None and (line := worker.stdout.readline()):
            news: dict[str, Any] = json.loads(line)
            last, report.memory = news["case"], news.get("memory", report.memory)
            if "finding" in news:
                report.findings.append(json.dumps(news))
            if news.get("done"):
                return None, last
            progress(f"{report.target}: {last:,} inputs, {report.memory / 1e6:.0f} MB, {len(report.findings)} findings")
        if fault is not None:
            worker.kill()
    if fault is None and worker.returncode == 0:  # it has found enough
        return None, last
    state = Path(arguments[4])
    last = int(state.read_bytes() or b"0") if state.exists() else last
    return fault or f"the process died with exit code {worker.returncode}", last


def _hangs(worker: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> str | None:
    """Wait for news of the worker or its end. Return a sentence if it hangs."""
    processor, began = _processor_time(worker.pid), time.monotonic()
    while not selector.select(_LOOK_EVERY):
        spent, silent = _processor_time(worker.pid) - processor, time.monotonic() - began
        if spent > _MOST_PROCESSOR:
            return f"the process did not come back after {spent:.0f} s of the processor"
        if silent > _MOST_SILENCE:
            return f"the process waited for {silent:.0f} s"
    return None


def _processor_time(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _save(report: Report, seed: int, case: int, text: str, out: Path) -> None:
    """Write the input down, so that it can be run again."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"fuzz-{report.target}-{seed}-{case}.json"
    chunks = [chunk.hex() for chunk in input_of(report.target, seed, case)]
    found = {"target": report.target, "seed": seed, "case": case, "finding": text, "input": chunks}
    path.write_text(json.dumps(found, indent=1))
    report.findings.append(f"{text}; the input is in {path}")


def replay(path: Path) -> str | None:
    """Run a saved input. Return the defect, ``None`` if there is none."""
    saved = json.loads(path.read_text())
    found = look(saved["target"], [bytes.fromhex(chunk) for chunk in saved["input"]])
    return None if found is None else f"{found[0]} ({found[1]})"

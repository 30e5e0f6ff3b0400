"""``python -m benchmarks audit``: how long the audit of a planted ledger takes, and whether it finds the planted
defects.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.job import BenchmarkError

WANTED = 20.0  # seconds for 10 million sends and as many receives, on two cores
_SHARE = 10_000  # one message of so many is planted in each class


@dataclass(frozen=True)
class AuditTiming:
    """The result of a measurement."""

    rows: int
    seconds: float
    planted: int
    load: float

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**vars(self), "target_seconds": WANTED if self.rows == 10_000_000 else None}

    def sentence(self) -> str:
        """Return it in words."""
        return (
            f"{self.rows:,} sends and as many receives audited in {self.seconds:.1f} s of job time (wanted for"
            f" 10,000,000 on two cores: {WANTED:g} s);"
            f" all {self.planted:,} planted messages found; load before {self.load:.1f}"
        )


def measure(rows: int, master: str, memory: str) -> AuditTiming:
    """Plant a ledger, audit it once, compare.

    Raises:
        BenchmarkError: the audit missed a planted defect, or found one that was not planted.
    """
    from benchmarks import planted
    from pyjmsack.spark.audit import audit_session, run_audit

    plan = planted.plan(rows, max(1, rows // _SHARE))
    with tempfile.TemporaryDirectory(prefix="bench-audit-") as folder:
        ledger = Path(folder, "ledger")
        planted.write(ledger, plan, (rows // 3, rows // 2))
        spark = audit_session(master, spark__driver__memory=memory)
        try:
            spark.range(1000).groupBy("id").count().collect()  # the first job pays for the session
            load = os.getloadavg()[0]
            start = time.monotonic()
            audit = run_audit(spark, [ledger], suspects=0, still_queued=0)  # no broker has these
            seconds = time.monotonic() - start
        finally:
            spark.stop()
    expected = {name: len(numbers) for name, numbers in plan.planted.items()}
    expected["redelivered"] += expected["duplicated"]  # a message that is processed twice was delivered twice
    found = {name: finding.count for name, finding in audit.findings.items() if finding.count}
    if found != expected:
        raise BenchmarkError(f"the audit found {found}, planted was {expected}")
    return AuditTiming(rows, seconds, sum(map(len, plan.planted.values())), load)

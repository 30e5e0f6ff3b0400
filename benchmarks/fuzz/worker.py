"""The process that runs inputs: ``python -m benchmarks.fuzz.worker TARGET SEED START SECONDS``.

It tells its parent about once a second how far it is, in lines of JSON, and of each finding. The parent knows from that
what to blame when this process dies or hangs: C code runs here on hostile input.
"""

from __future__ import annotations

import gc
import json
import logging
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.fuzz.targets import TARGETS

__all__ = ["cases", "input_of", "look"]

MOST_SECONDS = 2.0
"""Processor time of one input, at most."""
MOST_GROWTH = 64 << 20
"""Bytes by which a process may grow once it is warm."""
_WARM = 300
_LOOK_EVERY = 200
_TELL_EVERY = 1.0
_MOST_FINDINGS = 10


def input_of(target: str, seed: int, case: int) -> list[bytes]:
    """Return an input: the same each time."""
    return TARGETS[target].make(random.Random(f"{target}:{seed}:{case}"))  # noqa: S311 - it must be the same each time


def look(target: str, chunks: list[bytes]) -> tuple[str, str] | None:
    """Run one input. Return the defect and its place, or ``None``."""
    before = time.thread_time()
    try:
        TARGETS[target].run(chunks)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error}"[:500], f"{Path(last.filename).name}:{last.lineno}"
    spent = time.thread_time() - before
    return (f"it took {spent:.1f} s of the processor", "time") if spent > MOST_SECONDS else None


def resident() -> int:
    """Return the bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def cases(target: str, seed: int, start: int, seconds: float, tell: Callable[[dict[str, Any]], None]) -> Iterator[int]:
    """Run inputs for so many seconds; yield the number of each before it runs."""
    end, told, warm, seen = time.monotonic() + seconds, 0.0, 0, set[str]()
    case = start
    while time.monotonic() < end:
        if time.monotonic() - told > _TELL_EVERY:
            told = time.monotonic()
            tell({"case": case, "memory": resident()})
        yield case
        found = look(target, input_of(target, seed, case))
        if found is None and case % _LOOK_EVERY == 0 and case - start >= _WARM:
            gc.collect()
            grown = resident() - warm if warm else 0
            warm = warm or resident()
            found = (
                (f"the process grew by {grown:,} bytes since it was warm", "memory") if grown > MOST_GROWTH else None
            )
        if found is not None and found[1] not in seen:
            seen.add(found[1])
            tell({"case": case, "finding": found[0], "where": found[1]})
            if len(seen) >= _MOST_FINDINGS or found[1] == "memory":
                return
        case += 1
    tell({"case": case, "memory": resident(), "done": True})


def main() -> None:
    """Run one target; the number of the input at hand is in the file that is named last."""
    target, seed, start, seconds, state = sys.argv[1:]
    logging.disable(logging.CRITICAL)

    def tell(news: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(news) + "\n")
        sys.stdout.flush()

    with Path(state).open("wb", buffering=0) as file:
        for case in cases(target, int(seed), int(start), float(seconds), tell):
            file.seek(0)
            file.write(b"%020d" % case)


if __name__ == "__main__":
    main()

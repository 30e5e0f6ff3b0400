"""``python -m benchmarks profile``: where the time of our side goes, thread by thread."""

from __future__ import annotations

import cProfile
import pstats
import sys
import threading
import uuid
from types import FrameType
from typing import Any, TextIO

from benchmarks.environment import broker, require_library
from benchmarks.job import Job, Timing
from benchmarks.processes import run_tool
from benchmarks.scenarios import Scenario
from benchmarks.worker import scenarios_of

_ONE_FOR_ALL = sys.version_info >= (3, 12)  # since then one profiler sees every thread, and a second one is refused


class _Profiles:
    """One profiler for each thread that starts while this is installed, and one for the thread that installs it."""

    def __init__(self) -> None:
        self._all = [cProfile.Profile()]

    def __enter__(self) -> _Profiles:
        if not _ONE_FOR_ALL:
            threading.setprofile(self._start_in_thread)
        self._all[0].enable()
        return self

    def __exit__(self, *exc: object) -> None:
        self._all[0].disable()
        if not _ONE_FOR_ALL:
            threading.setprofile(None)

    def _start_in_thread(self, frame: FrameType, event: str, argument: Any) -> None:
        """Called for the first event of a new thread; ``enable`` takes this function's place there."""
        profile = cProfile.Profile()
        self._all.append(profile)
        profile.enable()

    def write(self, stream: TextIO, sort: str, lines: int) -> None:
        """Print one table for each profiler."""
        for number, profile in enumerate(self._all):
            stream.write(f"\n--- thread {number}{' (the main one)' if not number else ''}\n")
            pstats.Stats(profile, stream=stream).sort_stats(sort).print_stats(lines)


def profile(
    url: str | None, scenario: Scenario, face: str, count: int, size: int, fill: str, sort: str, lines: int
) -> Timing:
    """Run a scenario of ours in this process under cProfile; the rate is that of a profiled program."""
    require_library()
    with broker(url) as addresses:
        job = Job(
            scenario.job, scenario.url.format(url=addresses.tools), f"bench-{uuid.uuid4().hex[:8]}-profile", count, size
        )
        if not scenario.sends and scenario.fills:
            run_tool(f"fill-{fill}", addresses.tools, job.queue, count, size)
        with _Profiles() as profiles:
            timing = scenarios_of(face)[scenario.job](job)
        run_tool("drain", addresses.tools, job.queue)
    profiles.write(sys.stdout, sort, lines)
    return timing

"""The file of an export."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyjmsack.cli.export import opened_output
from pyjmsack.cli.stopping import Stop
from pyjmsack.message import TextMessage


@pytest.fixture
def stop() -> Iterator[Stop]:
    stop = Stop()
    yield stop
    stop.close()


def test_an_export_that_a_signal_stopped_before_its_first_line_leaves_no_file(tmp_path: Path, stop: Stop) -> None:
    """The empty file stopped the next try: "File exists"."""
    file = tmp_path / "messages.jsonl"
    for _ in range(2):
        with opened_output(file, stop):
            stop.request(signal.SIGINT)
    assert not file.exists()


@pytest.mark.parametrize(("stops", "lines"), [(True, 1), (False, 0)])
def test_an_export_with_a_line_or_of_an_empty_queue_leaves_its_file(
    tmp_path: Path, stop: Stop, stops: bool, lines: int
) -> None:
    file = tmp_path / "messages.jsonl"
    with opened_output(file, stop) as output:
        for _ in range(lines):
            output.write(TextMessage("x"))
        output.flush()
        if stops:
            stop.request(signal.SIGINT)
    assert len(file.read_text().splitlines()) == lines

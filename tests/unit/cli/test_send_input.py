"""Lines that are no messages: each is an InputError with its place."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pyjmsack.cli.send_input import InputError, read_items
from pyjmsack.cli.stopping import Stop


@pytest.mark.parametrize(
    "line",
    [
        "[" * 200_000,
        '{"body": ' + "[" * 200_000,
        '{"body_map": ' + '{"a": ' * 2000 + "1" + "}" * 2001,
        '{"properties": [1]}',
        '{"properties": {"a": 1}, "property_types": [1]}',
        '{"properties": {"a": 1}, "property_types": {"a": "complex"}}',
        '{"body_base64": 5}',
        '{"body_object": {"$type": 1}}',
        '{"reply_to": 5}',
        '{"reply_to": []}',
        '{"type": {}}',
        '{"expiration": "2026-01-01T00:00:00"}',
        '{"expiration": 5}',
        '{"expiration": []}',
        '{"expiration": ""}',
        '{"body": "", "properties": {"a": -Infinity}, "property_types": {"a": "long"}}',
        '{"priority": ' + "9" * 5000 + "}",
    ],
    ids=range(17),
)
def test_a_line_that_is_no_message_names_its_place(line: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(InputError, match=r"lines\.jsonl, line 1: "):
        list(read_items("jsonl", (file,), False, Stop()))


def test_long_lines_of_standard_input_come_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each piece of a line was copied with all pieces before it: a line of 100 MB took minutes."""
    texts = ["a" * 200_000, "", "b", "c" * 70_000]
    file = tmp_path / "lines"
    file.write_text("\n".join(texts))
    with file.open("rb") as opened, io.TextIOWrapper(opened) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        items = read_items("lines", (), False, Stop())
        assert [item.message.body for item in items] == texts

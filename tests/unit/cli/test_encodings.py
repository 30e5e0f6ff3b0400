"""Standard output in an encoding that does not have every character: no text of a producer ends a command."""

from __future__ import annotations

import io
import json
import sys

import click
import pytest

from pyjmsack.cli import main as commands

TEXT = "é 中 😀"


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("latin-1", "é \\u4e2d \\ud83d\\ude00"),
        ("utf-8", TEXT),
    ],
)
def test_a_character_that_the_output_does_not_have_is_escaped(
    monkeypatch: pytest.MonkeyPatch, encoding: str, expected: str
) -> None:
    """`browse`, `stat` and `move` ended with a traceback. `stat` showed no queue at all."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    monkeypatch.setattr(commands, "cli", lambda: click.echo(TEXT))
    commands.main()
    sys.stdout.flush()
    assert written.getvalue().decode(encoding) == f"{expected}\n"


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_json_stays_json_in_each_encoding(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    monkeypatch.setattr(commands, "cli", lambda: sys.stdout.write(json.dumps({TEXT: TEXT}, ensure_ascii=False)))
    commands.main()
    sys.stdout.flush()
    assert json.loads(written.getvalue().decode(encoding)) == {TEXT: TEXT}


def test_an_output_without_an_encoding_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(commands, "cli", lambda: said.append("run"))
    for output in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stdout", output)
        commands.main()
    assert said == ["run", "run"]

"""What strangers put into messages or brokers say: it controls neither the terminal nor the directory."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pyjmsack import BytesMessage, JMSException, TextMessage
from pyjmsack.cli.errors import Failure, explain
from pyjmsack.cli.receive_output import RENDERERS, Directory, open_output
from pyjmsack.cli.send_input import FILE_NAME
from pyjmsack.cli.terminal import visible, visible_json

HOSTILE = "a\x1b[2J\x1b]0;title\x07b\x7f\x9b31m\u202e\r\nc\td"


def named(name: str, body: str = "body") -> TextMessage:
    message = TextMessage(body)
    message.properties[FILE_NAME] = name
    return message


NAMES = {
    "ascii": "n" * 249,
    "two bytes": "\u00e4" * 249,
    "four bytes": "x" + "\U0001f600" * 249,
    "enormous": "n" * 60_000,
    "control": "a\x1b[2J\nb",
    "only dots": "...",
    "a directory": "../../etc/",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_file_name_of_any_length_becomes_a_file_and_nothing_else_stays(tmp_path: Path, name: str) -> None:
    output = Directory(tmp_path)
    output.write(named(NAMES[name]))
    output.write(named("next"))
    first, second = sorted(os.listdir(tmp_path))
    assert first.startswith("000001")
    assert first.isprintable()
    assert len(os.fsencode(first)) <= 207
    assert second == "000002-next"
    assert [(tmp_path / each).read_text() for each in (first, second)] == ["body", "body"]


def test_the_file_and_its_name_are_on_the_disk_before_the_message_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash of the machine the file could be gone, and so would be the message."""
    synced: list[str] = []
    monkeypatch.setattr("os.fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    output = Directory(tmp_path)
    output.write(named("sender"))
    output.flush()
    file, directory = synced
    assert (file.endswith(".partial"), directory) == (True, str(tmp_path))


def test_a_file_system_that_does_not_take_the_name_gets_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def picky(source: Any, target: Any) -> None:
        if "sender" in str(target):
            raise OSError(errno.ENAMETOOLONG, "File name too long")
        link(source, target)

    monkeypatch.setattr(os, "link", picky)
    Directory(tmp_path).write(named("sender"))
    (only,) = os.listdir(tmp_path)
    assert only.endswith(".txt")


def test_no_partial_file_stays_when_a_file_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Any, target: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space"):
        Directory(tmp_path).write(named("a"))
    assert os.listdir(tmp_path) == []


def test_a_link_that_others_made_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the name of the partial file could be foreseen."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr("secrets.token_hex", lambda size: "foreseen")
    (shared / ".foreseen.partial").symlink_to(victim)
    with pytest.raises(FileExistsError):
        Directory(shared).write(named("a"))
    assert victim.read_text() == "precious"
    assert (shared / ".foreseen.partial").is_symlink()


def test_control_characters_are_shown_as_such() -> None:
    shown = visible(HOSTILE)
    assert shown == "a\\x1b[2J\\x1b]0;title\\x07b\\x7f\\x9b31m\\u202e\\r\nc\td"
    assert visible("\ud800 \u00e4") == "\\ud800 \u00e4"


def test_json_says_the_same_without_control_characters() -> None:
    document = {"body": HOSTILE, "name\x9b": "\U000e0001"}
    shown = visible_json(json.dumps(document, ensure_ascii=False))
    assert shown.isprintable()
    assert json.loads(shown) == document


@pytest.mark.parametrize("format_name", RENDERERS)
@pytest.mark.parametrize("kind", [TextMessage, BytesMessage])
def test_a_terminal_is_not_controlled_by_a_message(
    format_name: str, kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, child = os.openpty()
    with os.fdopen(child, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        no_stop: Any = None  # only a pipe looks at it
        output = open_output(format_name, no_stop)
        output.write(kind(HOSTILE if kind is TextMessage else HOSTILE.encode() + b"\xff"))
        output.flush()
        shown = os.read(parent, 65536)
    os.close(parent)
    assert b"\x1b" not in shown
    assert shown.decode().replace("\r\n", "").replace("\t", "").isprintable()


def test_an_error_of_a_broker_does_not_control_the_terminal() -> None:
    assert explain(JMSException(f"refused: {HOSTILE}")).isprintable()
    assert Failure(HOSTILE).format_message() == visible(HOSTILE)

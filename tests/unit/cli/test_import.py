"""An import: its record writes through no link of others, a damaged record is refused, and expired messages are left
out.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

from pyjmsack import (
    InvalidDestinationException,
    JMSException,
    MessageFormatException,
    Queue,
    TextMessage,
    UnsupportedFeatureException,
)
from pyjmsack.cli import import_
from pyjmsack.cli.errors import Failure
from pyjmsack.cli.import_ import _Import, _Progress
from pyjmsack.cli.send_input import Item


def test_the_record_of_an_import_is_not_written_through_a_link(tmp_path: Path) -> None:
    """The temporary name can be foreseen: the token stands in the record."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    record = tmp_path / "orders.progress"
    progress = _Progress.of(record, "orders")
    (tmp_path / f".{record.name}.{progress.token}").symlink_to(victim)
    progress.lines = 7
    with closing(progress):
        progress.save()
    assert victim.read_text() == "precious"
    assert not record.is_symlink()
    with closing(_Progress.of(record, "orders")) as again:
        assert replace(again, held=None) == progress
    assert {each.name for each in tmp_path.iterdir()} == {"victim", "orders.progress"}


def test_a_record_that_a_kill_left_half_written_is_replaced(tmp_path: Path) -> None:
    record = tmp_path / "orders.progress"
    progress = _Progress.of(record, "orders")
    (tmp_path / f".{record.name}.{progress.token}").write_text('{"queue": "or')
    with closing(progress):
        progress.save()
    with closing(_Progress.of(record, "orders")) as again:
        assert replace(again, held=None) == progress


def test_of_two_imports_that_begin_a_record_at_the_same_time_one_is_refused(tmp_path: Path) -> None:
    """Both would send all lines, with different duplicate ids."""
    record = tmp_path / "orders.progress"
    with closing(_Progress.of(record, "orders")) as first, closing(_Progress.of(record, "orders")) as second:
        first.save()
        with pytest.raises(Failure, match="another import uses"):
            second.save()
        first.lines = 7
        first.save()
        with pytest.raises(Failure, match="another import uses"):
            _Progress.of(record, "orders")
    with closing(_Progress.of(record, "orders")) as again:
        assert again.lines == 7
    assert [each.name for each in tmp_path.iterdir()] == [record.name]


@pytest.mark.parametrize(
    "change",
    [
        {"token": "../../etc/passwd"},
        {"token": 7},
        {"lines": -1},
        {"lines": "many"},
        {"lines": 1.5},
        {"lines": True},
        {"unsendable": 0.5},
    ],
)
def test_a_record_with_impossible_values_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    record = tmp_path / "orders.progress"
    with closing(_Progress.of(record, "orders")) as progress:
        progress.save()
    record.write_text(json.dumps(json.loads(record.read_text()) | change))
    with pytest.raises(Failure, match="not the record of an import"):
        _Progress.of(record, "orders")


@pytest.mark.parametrize("number", [None, 1, 3])
def test_an_import_does_not_go_on_with_the_record_of_another_version(tmp_path: Path, number: int | None) -> None:
    """Its duplicate ids are others, so lines that Artemis has would come twice. One that is done stays done."""
    record = tmp_path / "orders.progress"
    known = {"format": number, "queue": "orders", "token": "0123456789abcdef", "lines": 70, "done": False}
    if number is None:
        del known["format"]
    record.write_text(json.dumps(known))
    with pytest.raises(Failure, match=r"another version.*Finish this import with that version.*after line 70"):
        _Progress.of(record, "orders")
    record.write_text(json.dumps(known | {"done": True}))
    with closing(_Progress.of(record, "orders")) as progress:
        assert progress.done


def test_a_record_that_cannot_be_written_ends_the_import_with_a_line(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"how far the import came.*nowhere"):
        _Progress.of(tmp_path / "nowhere" / "orders.progress", "orders").save()


def test_a_message_that_expires_while_the_rate_holds_it_back_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The times were computed for a whole batch before its first wait, so that expired messages came to life again."""
    now = start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    monkeypatch.setattr(import_, "datetime", SimpleNamespace(now=lambda zone: now))

    def wait() -> None:
        nonlocal now
        now += timedelta(seconds=1)

    pace, session, stop = MagicMock(), MagicMock(), MagicMock(requested=False)
    pace.wait.side_effect = wait
    job = _Import(_Progress.of(None, "orders"), False, 100, pace, stop, MagicMock())
    lives = (0.5, 2.5, 2.5, -1)  # the time when the message expires, in seconds after the start
    items = [Item(f"line {each}", TextMessage("x"), expiration=start + timedelta(seconds=each)) for each in lives]
    job._send_all(session, Queue("orders"), iter(items), recognised=False)
    sends = session.create_producer.return_value.send_async.call_args_list
    assert [call.kwargs for call in sends] == [{"time_to_live": 0.5}]
    assert (job.sent, job.expired) == (1, 3)
    assert pace.wait.call_count == 3  # nothing waits for a message that expired before


@pytest.mark.parametrize("error", [InvalidDestinationException, MessageFormatException, UnsupportedFeatureException])
@pytest.mark.parametrize("bad", [{"bad"}, {"a", "bad", "b"}], ids=["one", "all"])
def test_an_import_leaves_out_what_cannot_be_sent_and_fails_at_the_end(
    bad: set[str], error: type[JMSException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stopped there, again and again, and sent nothing of its batch."""
    sent: list[str | None] = []

    def send(message: TextMessage, **how: object) -> MagicMock:
        if message.text in bad:
            raise error("too odd")
        sent.append(message.text)
        return MagicMock()

    factory = MagicMock()
    connection = factory.return_value.create_connection.return_value.__enter__.return_value
    session = connection.create_session.return_value.__enter__.return_value
    session.create_producer.return_value.send_async.side_effect = send
    monkeypatch.setattr("pyjmsack.cli.options.Login.factory", factory)
    monkeypatch.setattr(import_, "target_on_demand", MagicMock())
    lines = tmp_path / "orders.jsonl"
    lines.write_text(
        "".join(json.dumps({"type": "text", "body": each, "reply_to": "queue:a"}) + "\n" for each in ("a", "bad", "b"))
    )
    result = CliRunner().invoke(import_.import_, ["orders", str(lines), "--json"])
    assert sent == [each for each in ("a", "bad", "b") if each not in bad]
    assert json.loads(result.stdout)["sent"] == len(sent)
    assert result.exit_code == 1
    count = "1 message" if len(bad) == 1 else "3 messages"
    assert f"{count} left out, because this protocol or broker cannot carry them" in result.stderr
    assert "too odd" in result.stderr


@pytest.mark.parametrize("lines", [1, 1000])
def test_an_import_whose_input_is_shorter_than_its_record_says_fails_and_is_not_done(
    lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of a larger file said done, and the exit code was 0."""
    monkeypatch.setattr("pyjmsack.cli.options.Login.factory", MagicMock())
    monkeypatch.setattr(import_, "target_on_demand", MagicMock())
    record, file = tmp_path / "orders.progress", tmp_path / "orders.jsonl"
    with closing(_Progress.of(record, "orders")) as progress:
        progress.lines = lines
        progress.save()
    file.write_text('{"body": "a"}\n')
    result = CliRunner().invoke(import_.import_, ["orders", str(file), "--resume", str(record)])
    assert json.loads(record.read_text())["done"] is (lines == 1)
    assert result.exit_code == (0 if lines == 1 else 1)
    said = "says that 1,000 lines were sent before, but the input has 1: give the same input"
    assert (said in result.stderr.replace("\n", " ")) is (lines == 1000)


def test_an_import_that_is_stopped_while_it_skips_lines_does_not_call_its_input_short(tmp_path: Path) -> None:
    progress = _Progress.of(None, "orders")
    progress.lines = 7
    job = _Import(progress, False, 100, MagicMock(), MagicMock(requested=True), MagicMock())
    assert job.run(MagicMock(), iter(())) is None
    assert not progress.done

"""The log as JSON and as key=value: one line for each event, no password in it, and a page that tells the truth."""

from __future__ import annotations

import importlib
import io
import json
import logging
import re
import sys
from pathlib import Path

import pytest

import pyjmsack.logging
from pyjmsack.loggers import get_logger

DOCS = Path(__file__).parents[2] / "docs"
LOG = logging.getLogger("pyjmsack")


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixture of all tests restores handlers and level; this one restores the rest."""
    monkeypatch.setattr(LOG, "propagate", LOG.propagate)


def test_each_event_is_one_json_object_in_one_line() -> None:
    stream = io.StringIO()
    pyjmsack.logging.json(stream=stream)
    log = logging.getLogger("pyjmsack.failover")
    log.info("the connection to %s is lost: %s", "amqp://a:1", "two\nlines")
    log.debug("not written")
    try:
        raise ValueError("bad\nvalue")
    except ValueError:
        log.exception("it failed")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["level"], first["logger"]) == ("info", "pyjmsack.failover")
    assert first["event"] == "the connection to %s is lost: %s"
    assert first["message"] == "the connection to amqp://a:1 is lost: two\nlines"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", first["time"])
    assert second["error"] == "ValueError: bad\nvalue"
    assert "Traceback" in second["traceback"]


def test_each_event_is_one_line_of_key_value() -> None:
    stream = io.StringIO()
    pyjmsack.logging.key_value(logging.WARNING, stream)
    logging.getLogger("pyjmsack.app").warning('a "%s"\nb', "c=d")
    (line,) = stream.getvalue().splitlines()
    assert "level=warning logger=pyjmsack.app event=" in line
    assert r'message="a \"c=d\"\nb"' in line


@pytest.mark.parametrize("set_up", [pyjmsack.logging.json, pyjmsack.logging.key_value], ids=["json", "key_value"])
def test_no_password_and_no_endless_text_is_written(set_up: object) -> None:
    stream = io.StringIO()
    assert callable(set_up)
    set_up(stream=stream)
    try:
        raise ConnectionError("amqp://bob:s3cret@host:5672 and stomp://x:p@s3cret@h refused")
    except ConnectionError:
        LOG.exception("%s", "failover:(amqp://bob:s3cret@host:5672)" + "x" * 100_000)
    assert "s3cret" not in stream.getvalue()
    assert "bob" in stream.getvalue()
    assert len(stream.getvalue()) < 25_000


def test_a_second_call_replaces_the_first_and_a_wrong_level_changes_nothing() -> None:
    first, second = io.StringIO(), io.StringIO()
    pyjmsack.logging.json(stream=first)
    pyjmsack.logging.key_value(stream=second)
    before = LOG.handlers[:]
    with pytest.raises(ValueError, match="LOUD"):
        pyjmsack.logging.json("LOUD")
    LOG.info("once")
    assert (first.getvalue(), second.getvalue().count("once")) == ("", 2)  # the event and the message
    assert LOG.handlers == before


def test_the_import_changes_nothing() -> None:
    def state() -> object:
        return [*LOG.handlers], LOG.level, LOG.propagate, [*logging.getLogger().handlers]

    before = state()
    importlib.reload(pyjmsack.logging)
    assert state() == before


def test_the_page_names_the_loggers_of_the_code_and_their_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    generate = importlib.import_module("generate_logging")
    monkeypatch.delitem(sys.modules, "generate_logging")
    page = (DOCS / "logging.md").read_text(encoding="utf-8")
    table = page.partition("## Loggers")[2].partition("## Events")[0]
    assert set(re.findall(r"^\| `([\w.]+)`", table, re.MULTILINE)) == generate.loggers()
    assert page == generate.page(), "run: python docs/generate_logging.py"


class _Fails(logging.Handler):
    """A handler of a program, with a mistake."""

    def emit(self, record: logging.LogRecord) -> None:
        raise ValueError(record.getMessage())


def test_no_logger_of_the_library_raises_the_error_of_a_handler_s127(capsys: pytest.CaptureFixture[str]) -> None:
    """Such an error would come between two steps of a protocol, on the loop of the connection."""
    log, handler = get_logger("pyjmsack.failover"), _Fails()
    log.addHandler(handler)
    try:
        log.warning("broken")
    finally:
        log.removeHandler(handler)
    assert "ValueError: broken" in capsys.readouterr().err
    assert get_logger("pyjmsack.failover") is log


def test_a_record_still_names_the_line_that_logged(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("pyjmsack.failover").warning("here")
    assert caplog.records[-1].funcName == "test_a_record_still_names_the_line_that_logged"


def test_each_module_of_the_library_gets_its_logger_from_one_place() -> None:
    package = Path(pyjmsack.logging.__file__).parent
    paths = {path.relative_to(package): path.read_text("utf-8") for path in package.rglob("*.py")}
    others = {str(path) for path, text in paths.items() if 'logging.getLogger("' in text}
    users = ("broker/", "cli/", "spark/")  # built on the public interface, they log between no two steps of a protocol
    assert {path for path in others if not path.startswith(users)} == {"logging.py"}

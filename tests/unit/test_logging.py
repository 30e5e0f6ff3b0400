"""The log as JSON and as key=value: one line for each event, no password in it, and a page that tells the truth."""

from __future__ import annotations

import importlib
import io
import json
import logging
import re
import sys
import threading
import tracemalloc
from collections.abc import Callable
from functools import partial
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
        raise ConnectionError("amqp://bob:s3cret@host:5672, stomp://x:p@s3cret@h and amqp://x:p@s3cret#/1@h refused")
    except ConnectionError:
        LOG.exception("%s", "failover:(amqp://bob:s3cret@host:5672)" + "x" * 100_000)
    assert "s3cret" not in stream.getvalue()
    assert "bob" in stream.getvalue()
    assert len(stream.getvalue()) < 25_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("amqp://u:p@h:1 is lost", "amqp://u:***@h:1 is lost"),
        ("failover:(amqp://u:p@h,amqp://x:q@i)", "failover:(amqp://u:***@h,amqp://x:***@i)"),
        ("amqp://u:p/q#r@s@h", "amqp://u:***@h"),
        ("postgres://me@example.com:p@db/x", "postgres://me@example.com:***@db/x"),
        ("amqp://:p@h", "amqp://:***@h"),
        ("GET http://svc:8080/users/me@example.com failed", None),
        ('{"url":"http://svc:8080/x","mail":"a@b"}', None),
        ("amqp://u:2024#p@h", "amqp://u:***@h"),
        ("amqps://u:12345/p@h:1", "amqps://u:***@h:1"),
        ("amqp://u:1?p@h", "amqp://u:***@h"),
        ("amqp://h:5672?jms.clientID=a@b", None),
        ("amqp://a:5672,amqp://b and me@home", None),
    ],
)
def test_the_password_of_a_login_is_masked_and_nothing_else(text: str, shown: str | None) -> None:
    record = logging.LogRecord("pyjmsack", logging.INFO, "", 0, "%s", (text,), None)
    assert json.loads(pyjmsack.logging.JsonFormatter().format(record))["message"] == (shown or text)


def test_a_long_text_with_urls_takes_no_memory_for_each_of_its_characters() -> None:
    """30 MB of JSON in an error took 2.4 GB and stopped the process for 7 s."""
    text = 'amqp://h:1/{"a":"b"}' + "x:y" * 1_000_000
    record = logging.LogRecord("pyjmsack", logging.INFO, "", 0, "%s", (text,), None)
    tracemalloc.start()
    try:
        pyjmsack.logging.JsonFormatter().format(record)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(text)
    finally:
        tracemalloc.stop()


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
    log.logger.addHandler(handler)
    try:
        log.warning("broken")
    finally:
        log.logger.removeHandler(handler)
    assert "ValueError: broken" in capsys.readouterr().err
    assert get_logger("pyjmsack.failover") is log


class _Stop(BaseException):
    """An error that is no ``Exception``, as ``pytest.fail`` and ``gevent.Timeout`` raise."""


def _in_thread(call: Callable[[], None]) -> list[BaseException]:
    """Run ``call`` on another thread, and return the error that it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised


@pytest.mark.parametrize("place", ["factory", "filter", "handler", "argument"])
@pytest.mark.parametrize("kind", [RuntimeError, RecursionError, _Stop, GeneratorExit, SystemExit, KeyboardInterrupt])
def test_no_error_of_a_programs_logging_comes_out_on_another_thread_s127(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], place: str
) -> None:
    """A factory of records that reads the request of a web framework raises on the I/O thread. ``failover:`` then never
    looked for another broker. ``SystemExit`` ended the loop of all connections."""
    log = get_logger("pyjmsack.failover")
    records = logging.getLogRecordFactory()
    calls: list[str] = []

    def fail(*arguments: object) -> bool:
        calls.append(place)
        raise kind("mistake")

    text = type("Text", (), {"__str__": fail})() if place == "argument" else "text"
    handler = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(handler, "handleError", lambda record: fail())
    if place == "handler":
        monkeypatch.setattr(handler, "emit", fail)
    elif place == "filter":
        handler.addFilter(fail)
    monkeypatch.setattr(log.logger, "handlers", [handler])
    monkeypatch.setattr(log.logger, "propagate", False)
    try:
        if place == "factory":
            logging.setLogRecordFactory(fail)  # type: ignore[arg-type]
        for write in (log.warning, log.error, log.exception):
            assert _in_thread(partial(write, "%s", text)) == []
    finally:
        logging.setLogRecordFactory(records)
    assert len(calls) >= 3


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_on_the_main_thread_a_program_may_be_ended_while_the_library_logs(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """Ctrl-C comes at any moment there, and a handler may end its program there."""
    log, handler = get_logger("pyjmsack.failover"), _Fails()
    monkeypatch.setattr(handler, "emit", _raiser(kind("end")))
    monkeypatch.setattr(log.logger, "handlers", [handler])
    with pytest.raises(kind):
        log.warning("text")
    monkeypatch.setattr(handler, "emit", _raiser(_Stop("end")))
    log.warning("text")


def test_an_error_of_a_handler_that_cannot_be_shown_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error may be closed."""
    log = get_logger("pyjmsack.failover")
    monkeypatch.setattr(log.logger, "handlers", [_Fails()])
    monkeypatch.setattr("traceback.print_exc", _raiser(_Stop("closed")))
    log.warning("text")
    monkeypatch.setattr("traceback.print_exc", _raiser(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        log.warning("text")


def _raiser(error: BaseException) -> Callable[..., None]:
    def fail(*arguments: object) -> None:
        raise error

    return fail


def test_a_record_still_names_the_line_that_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = get_logger("pyjmsack.failover")
    log.logger.setLevel(logging.DEBUG)
    for write in (log.debug, log.info, log.warning, log.error, log.exception):
        write("here")
    assert {record.funcName for record in caplog.records} == {"test_a_record_still_names_the_line_that_logged"}
    assert [record.levelname for record in caplog.records] == ["DEBUG", "INFO", "WARNING", "ERROR", "ERROR"]
    log.logger.setLevel(logging.NOTSET)


def test_each_module_of_the_library_gets_its_logger_from_one_place() -> None:
    package = Path(pyjmsack.logging.__file__).parent
    paths = {path.relative_to(package): path.read_text("utf-8") for path in package.rglob("*.py")}
    assert {str(path) for path, text in paths.items() if 'logging.getLogger("' in text} == {"logging.py"}

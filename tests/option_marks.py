"""Which tests prove which option of a URL or a destination: ``@pytest.mark.option("jms.ackWindow", "stomp")``.

The mark says that the test sees the option's effect over that protocol; ``core`` stands for all protocols, where the
effect is in code that knows none of them. ``tests/unit/test_option_marks.py`` compares all marks with the option table.

A mark alone proves nothing. So while a marked test runs it is recorded which options are read out of a URL with another
value than their default, and for which protocols; a test that does not give what it is marked with fails.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from importlib import import_module
from typing import Any, Final

import pytest

from pyjmsack.uri import parse
from pyjmsack.uri.option import Option
from pyjmsack.uri.transport import SCHEMES

options: Any = import_module("pyjmsack.uri.option")
"""The module; the package has a function of that name."""
PROTOCOLS: Final = ("amqp", "stomp")
CORE: Final = "core"
_SHARED_ROWS: Final = {"face", "target"}
"""Parameters that change nothing about what a test gives."""
Given = dict[str, set[str]]
_LEFT_OUT = pytest.StashKey[set[str]]()
_PASSED = pytest.StashKey[bool]()
_GIVEN = pytest.StashKey[dict[str, list[Given]]]()
"""What each row gave of a test that is marked and has rows of its own."""


def pytest_configure(config: pytest.Config) -> None:
    """Say what the mark means."""
    config.addinivalue_line("markers", "option(name, *protocols): sees its effect there (tests/option_marks.py)")
    config.stash[_GIVEN] = {}
    config.stash[_LEFT_OUT] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Remember whether a test passed: one that skips itself, where a package is missing, gives nothing."""
    report = yield
    if call.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture(autouse=True)
def _option_marks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that does not give the options that it is marked with."""
    callspec = getattr(request.node, "callspec", None)
    protocol = getattr(callspec.params.get("target"), "protocol", None) if callspec else None
    marks = [mark for mark in request.node.iter_markers("option") if _concerns(mark, protocol)]
    if not marks:
        yield
        return
    given: Given = {}
    _record(given, monkeypatch)
    yield
    if not request.node.stash.get(_PASSED, False):
        return
    if callspec is None or set(callspec.params) <= _SHARED_ROWS:
        assert not (missing := _missing(marks, given)), f"marked with what it does not give: {missing}; given: {given}"
    else:
        request.config.stash[_GIVEN].setdefault(request.node.nodeid.partition("[")[0], []).append(given)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """A test of which some rows are left out, by ``-k`` or by its tier, may not give everything."""
    for item in items:
        item.config.stash[_LEFT_OUT].add(item.nodeid.partition("[")[0])


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The same for a test with rows of its own, of which some give an option, when all have run in this process."""
    for name, rows in session.config.stash[_GIVEN].items():
        items = [item for item in session.items if item.nodeid.partition("[")[0] == name]
        if len(rows) == len(items) and name not in session.config.stash[_LEFT_OUT]:
            given: Given = {}
            for row in rows:
                for option, protocols in row.items():
                    given.setdefault(option, set()).update(protocols)
            if missing := _missing([*items[0].iter_markers("option")], given):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
                text = f"{name}: marked with what it does not give: {missing}; given: {given}"
                session.config.get_terminal_writer().line("\n" + text)


def _concerns(mark: pytest.Mark, protocol: str | None) -> bool:
    """Whether a row that runs over this protocol has to give the option; without one, a test has to give it alone."""
    return protocol is None or CORE in mark.args or protocol in mark.args[1:]


def _record(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    parse_value, assemble = options._parse_value, parse._assemble

    def value_of(row: Option, text: str) -> Any:
        value = parse_value(row, text)
        if row.default is None or value != row.kind.parse(row.default):
            given.setdefault(row.alias_of or row.name, seen)
        return value

    def assembled(address: Any, options: Any) -> Any:
        seen.add(SCHEMES[address.scheme].protocol)
        return assemble(address, options)

    monkeypatch.setattr(options, "_parse_value", value_of)
    monkeypatch.setattr(parse, "_assemble", assembled)


def _missing(marks: list[pytest.Mark], given: Given) -> list[str]:
    """Return the marks of which nothing was given; a test that runs on several targets gives one protocol a row."""
    return [
        " ".join(mark.args)
        for mark in marks
        if mark.args[0] not in given or not (CORE in mark.args or given[mark.args[0]] & set(mark.args[1:]))
    ]

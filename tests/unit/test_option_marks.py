"""Every option of the table has a test that sees its effect, over each protocol for which it is documented."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from option_marks import CORE, PROTOCOLS

from pyjmsack.uri import DESTINATION_OPTIONS, OPTIONS

TESTS = Path(__file__).parents[1]
CORE_TESTS = ("unit/", "security/", "peer/test_peer_failover.py")
"""Where a test may speak for all protocols: nothing of a protocol runs there, or nothing that matters."""
OF_ONE = {
    "jms.prefetchPolicy.maximumPendingMessageLimit": "stomp",
    "consumer.maximumPendingMessageLimit": "stomp",
    "consumer.expectedMessageSize": "stomp",
    "failover.amqpOpenServerListAction": "amqp",
    "failover.updateURIsSupported": "amqp",
    "jms.messageIDPolicy.messageIDType": "amqp",
}
"""Options whose name does not say that they have an effect over one protocol only; docs/options.md does."""
WITHOUT_EFFECT = ("failover.maxCacheSize", "failover.trackMessages", "jms.forceAsyncAcks")
"""Options of Java clients that are taken with any value and change nothing; docs/options.md says so."""


def wanted() -> set[tuple[str, str]]:
    """Return each option with each protocol for which it is documented."""
    rows = [row.name for row in OPTIONS.values() if not row.alias_of and row.name not in WITHOUT_EFFECT]
    names = [*rows, *DESTINATION_OPTIONS]
    return {(name, protocol) for name in names for protocol in PROTOCOLS if protocol in documented(name)}


def documented(name: str) -> tuple[str, ...]:
    one = OF_ONE.get(name, name.partition(".")[0])
    return (one,) if one in PROTOCOLS else PROTOCOLS


def marks() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield file, option and protocols of every mark on a test function."""
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "mark.option(" in text:
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                    for call in map(ast.unparse, node.decorator_list):
                        if call.startswith("pytest.mark.option("):
                            name, *protocols = ast.literal_eval(call.removeprefix("pytest.mark.option"))
                            yield path.relative_to(TESTS).as_posix(), name, tuple(protocols)


def test_every_option_is_seen_to_work_over_each_protocol_for_which_it_is_documented() -> None:
    """A mark on a test that does not give the option fails that test (tests/option_marks.py)."""
    seen = {(name, each) for _, name, protocols in marks() for each in (PROTOCOLS if CORE in protocols else protocols)}
    assert sorted(wanted() - seen) == []


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_the_page_says_of_an_option_without_effect_that_it_has_none(name: str) -> None:
    assert OPTIONS[name].help.startswith(("no effect with ", "noop alone"))


def test_a_mark_names_an_option_of_the_table_and_a_protocol_of_its_own() -> None:
    wrong = [
        (path, name, protocols)
        for path, name, protocols in marks()
        if not protocols
        or (name, documented(name)[0]) not in wanted()
        or (protocols != (CORE,) and not set(protocols) <= set(documented(name)))
        or (protocols == (CORE,) and not path.startswith(CORE_TESTS))
    ]
    assert wrong == []

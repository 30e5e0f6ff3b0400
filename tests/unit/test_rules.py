"""``pyjmsack explain S15`` prints a rule offline, and an error that cites a rule names this command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pyjmsack import (
    ConnectionLostException,
    InvalidSelectorException,
    InvalidURLException,
    JMSException,
    JMSSecurityException,
    RequestTimedOutException,
)
from pyjmsack.cli.errors import explain as explained
from pyjmsack.cli.main import cli
from pyjmsack.rules import nearest, rules

PACKAGE = Path(__file__).parents[2] / "pyjmsack"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *arguments], env={"PYJMSACK_URL": "amqp://127.0.0.1:1"})


@pytest.mark.parametrize("name", ["S15", "s15"])
def test_explain_prints_a_rule_its_reason_and_an_example(name: str) -> None:
    """S15."""
    result = run(name)
    assert result.exit_code == 0
    shown = " ".join(result.stdout.split())
    rule = rules()[15]
    assert shown.startswith("S15, kept: Session modes ")
    assert all(part in shown for part in (rule.text, f"Why: {rule.why}", f"Example: {rule.example}", rule.link))


def test_explain_gives_a_rule_as_json() -> None:
    report = json.loads(run("S15", "--json").stdout)
    assert (report["rule"], report["number"], report["state"]) == ("S15", 15, "kept")
    assert report["text"]
    assert report["why"]
    assert report["example"]


@pytest.mark.parametrize(("name", "near"), [(137, "S135, S140"), (999, "S192"), (0, "S1")])
def test_an_unknown_rule_is_a_usage_error_with_the_nearest_ones(name: int, near: str) -> None:
    result = run(f"S{name}")
    assert result.exit_code == 2
    assert result.stderr.endswith(f"there is no rule S{name}; the nearest: {near}\n")


def test_a_name_that_only_begins_like_a_rule_is_a_destination() -> None:
    assert "AUTO_ACKNOWLEDGE on S15.orders" in run("S15.orders").stdout


def test_every_rule_has_a_text_a_reason_and_an_example() -> None:
    assert len(rules()) > 170
    assert all(rule.text and rule.why and rule.example for rule in rules().values())
    assert not [rule.number for rule in rules().values() if "](" in rule.text + rule.why + rule.example]


def test_the_nearest_rules_are_those_around_a_number() -> None:
    assert [rule.number for rule in nearest(180)] == [176, 187]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("used by two threads (S15)", "used by two threads. Learn more: pyjmsack explain S15"),
        ("undone (S92, S97)", "undone. Learn more: pyjmsack explain S92"),
        ("wrong (S160-S162)", "wrong. Learn more: pyjmsack explain S160"),
        ("does it acknowledge? (S56)", "does it acknowledge? Learn more: pyjmsack explain S56"),
        ("the broker (S15) is gone", "the broker (S15) is gone"),
        ("queue S15", "queue S15"),
        ("", ""),
    ],
)
@pytest.mark.parametrize(
    "kind",
    [JMSException, InvalidURLException, ConnectionLostException, JMSSecurityException, RequestTimedOutException],
)
def test_an_error_that_ends_with_a_rule_ends_with_the_command_that_explains_it(
    kind: type[JMSException], text: str, shown: str
) -> None:
    """Those that are an ``OSError`` as well print no number of it."""
    assert str(kind(text)) == shown
    assert str(kind(text).fresh()) == shown


def test_the_command_line_puts_its_next_step_before_the_command() -> None:
    text = explained(InvalidSelectorException("no selector (S187)"))
    assert re.fullmatch(r"no selector; a selector looks like .+\. Learn more: pyjmsack explain S187", text)


def test_every_rule_that_an_error_of_the_package_cites_is_there() -> None:
    cited = {
        int(number)
        for path in PACKAGE.rglob("*.py")
        for number in re.findall(r"\(S(\d{1,3})\)[\"']", path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 15
    assert cited <= rules().keys()

"""The documentation is true: its programs run, its links lead somewhere, its names exist, its tables are complete."""

from __future__ import annotations

import ast
import html
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
from shared_brokers import Served

from _pyjmsack_pytestplugin import _KINDS
from pyjmsack.cli.demo.rows import FAILOVER_ROWS, ROWS
from pyjmsack.cli.main import cli
from pyjmsack.uri import DESTINATION_OPTIONS, IGNORED, IGNORED_OF_DESTINATIONS, OPTIONS, REFUSED
from pyjmsack.uri.transport import is_websocket_header

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "upstream" not in page.parts),
]
TUTORIAL = sorted((ROOT / "examples" / "tutorial").glob("*.py"))
TIMEOUT = 60

RULES = {*range(1, 136), *range(140, 177), *range(187, 193)}
"""The numbers of the rules; the gaps are room for more."""
TESTED = {*range(1, 75), *range(110, 120)}
"""Rules that a test names as soon as they are kept."""
_RULE = re.compile(
    r"^- <a id=\"s\d+\"></a>\*\*S(\d+)\*\* (kept|partly|later)(?: \(([^)]+)\))?\. ((?:.+\n(?=  ))*.+)", re.MULTILINE
)
_CITED = re.compile(r"\bS(\d{1,3})\b")
_LINT_CODES = re.compile(r"# (?:ruff: )?noqa:.*")
_PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_OPTION = re.compile(
    r"`\??((?:jms|amqp|stomp|transport)\.(?!py`)[A-Za-z.]+(?=[=`])|(?:consumer|producer)\.[A-Za-z]+(?==))"
)


class Program(NamedTuple):
    """A block of Python in a page, and the block of text behind it, which is what it prints."""

    source: str
    output: str | None


def programs() -> dict[str, Program]:
    """Return the programs that run alone, by page and number.

    Those of testing.md run in tests/testing/test_plugin.py, those of the tutorial run together.
    """
    return {
        f"{page.name}-{number}": program
        for page in PAGES
        if page.name not in ("testing.md", "tutorial.md")
        for number, program in enumerate(programs_of(page), start=1)
    }


def programs_of(page: Path) -> list[Program]:
    """Return the programs of a page."""
    return [Program(match[1], match[2]) for match in _PROGRAM.finditer(page.read_text(encoding="utf-8"))]


def rules() -> list[re.Match[str]]:
    """Return the rules of the page, each with number, state, theme and text."""
    return [*_RULE.finditer((ROOT / "docs" / "semantics.md").read_text(encoding="utf-8"))]


def programs_as_rows() -> Iterator[Any]:
    """Yield the programs. The fast tier runs those of the README only, because each starts a Python of its own."""
    for name, program in programs().items():
        marks = () if name.startswith("README.md") else pytest.mark.full_tier("each program is a process")
        yield pytest.param(program, id=name, marks=marks)


ONE_AFTER_THE_OTHER = pytest.mark.xdist_group("documents")
"""Programs of the pages share queues: those of the README send and receive in the same one."""


@ONE_AFTER_THE_OTHER
@pytest.mark.parametrize("program", [*programs_as_rows()])
def test_a_program_in_the_documentation_prints_what_stands_below_it(program: Program, any_broker: Served) -> None:
    run(program, any_broker)


@ONE_AFTER_THE_OTHER
@pytest.mark.parametrize(
    ("page", "package"), [("from-proton", "proton"), ("from-stomp-py", "stomp")], ids=["proton", "stomp.py"]
)
def test_the_old_program_of_a_guide_prints_the_same_as_the_new_one(page: str, package: str, any_broker: Served) -> None:
    """The new one runs in the test above."""
    pytest.importorskip(package, reason=f"the package of {package} is not installed")
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    old = re.search(r"^```python old_\w+\.py\n(.*?)^```\n\n```text\n(.*?)^```\n", text, re.MULTILINE | re.DOTALL)
    assert old is not None
    assert [program.output for program in programs_of(ROOT / "docs" / "howto" / f"{page}.md")] == [old[2]]
    run(Program(old[1], old[2]), any_broker)


def run(program: Program, broker: Served) -> None:
    """Run a program of a page against a broker, and compare what it prints with the page."""
    assert program.output is not None, "a ```text block with the output is missing"
    source = program.source.replace("amqp://localhost:5672", broker.amqp_url)
    source = source.replace("stomp://localhost:61613", broker.stomp_url)
    host, _, port = broker.stomp_url.removeprefix("stomp://").partition(":")
    source = source.replace('("localhost", 61613)', f'("{host}", {port})')
    assert source != program.source, "it would not run against the broker of the tests"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (done.stdout, done.stderr) == (program.output, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_that_is_a_file_of_the_reader_compiles(page: Path) -> None:
    """A block with a file's name needs what is not here, such as a web server; it is at least Python."""
    for name, source in re.findall(r"^```python (\S+)\n(.*?)^```\n", page.read_text(encoding="utf-8"), re.M | re.S):
        compile(source, f"{page.name}: {name}", "exec", dont_inherit=True)


def test_the_tutorial_shows_the_programs_of_its_folder() -> None:
    """In their order, each with its output."""
    shown = programs_of(ROOT / "docs" / "tutorial.md")
    assert [program.source for program in shown] == [path.read_text(encoding="utf-8") for path in TUTORIAL]
    assert all(program.output for program in shown)


@pytest.mark.full_tier("ten programs, one after the other")
def test_the_programs_of_the_tutorial_tell_one_story(any_broker: Served) -> None:
    """They share their queues, and the last ones leave nothing behind."""
    for program in programs_of(ROOT / "docs" / "tutorial.md"):
        run(program, any_broker)


def test_the_readme_is_short_and_has_a_program_in_each_face() -> None:
    """Two screens of text beside its programs."""
    page = README.read_text(encoding="utf-8")
    assert len(page.splitlines()) < 140
    sources = [program.source for name, program in programs().items() if name.startswith("README.md")]
    assert ["pyjmsack.aio" in source for source in sources] == [False, True]


def test_the_picture_in_the_readme_is_of_todays_rows() -> None:
    """Made by docs/make_demo_picture.py from a real run."""
    picture = html.unescape((ROOT / "docs" / "demo.svg").read_text(encoding="utf-8")).replace("\xa0", " ")
    for row in (*ROWS, *FAILOVER_ROWS):
        assert row.label in picture, "run: python docs/make_demo_picture.py"
    assert "FAILED" not in picture


def test_the_picture_of_a_failover_is_of_a_run_that_lost_nothing() -> None:
    """Made by docs/make_failover_picture.py."""
    text = (ROOT / "docs" / "failover.svg").read_text(encoding="utf-8")
    assert len(text) < 100_000
    assert ": 0 lost, 0 processed twice" in text
    assert "both clients are back" in text


def test_the_site_draws_each_chart_with_all_its_words() -> None:
    """The source stays text, and other blocks of text stay as they are."""
    page = (ROOT / "docs" / "explain" / "acknowledgement.md").read_text(encoding="utf-8")
    drawn = module_of("sequence").charts_drawn(page + "\n```text\n| a table | of others |\n```\n")
    charts = re.findall(r"^<svg .*?^</svg>", drawn, re.MULTILINE | re.DOTALL)
    assert len(charts) == page.count("```text") == 5
    assert "\n```text\n| a table | of others |\n```\n" in drawn
    for chart, source in zip(charts, re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL), strict=True):
        shown = " ".join(ElementTree.fromstring(chart).itertext()).split()
        assert sorted(re.findall(r"[\w()]+", " ".join(shown))) == sorted(re.findall(r"[\w()]+", source))


def generator_of(page: str) -> Any:
    """Return the module that writes a generated page."""
    return module_of(f"generate_{page}")


def module_of(name: str) -> Any:
    """Return a module of the folder docs."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    return generator


def test_the_table_of_features_is_what_connections_say() -> None:
    assert (ROOT / "docs" / "features.md").read_text(encoding="utf-8") == generator_of("features").page(), (
        "run: python docs/generate_features.py"
    )


def test_the_page_of_options_is_what_the_option_table_says() -> None:
    committed = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert committed == generator_of("options").page(), "run: python docs/generate_options.py"


def test_the_page_of_rules_names_the_tests_that_name_them() -> None:
    """In any order, as a merge leaves it."""
    committed = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    wrong = {*committed.splitlines()} ^ {*generator_of("rules").page().splitlines()}
    assert not wrong, "run: python docs/generate_rules.py"


def test_the_rules_in_the_package_are_those_of_the_page() -> None:
    committed = (ROOT / "pyjmsack" / "rules.json").read_text(encoding="utf-8")
    assert committed == generator_of("rules").data(), "run: python docs/generate_rules.py"


def test_every_rule_of_receiving_sending_and_redelivery_that_is_kept_is_named_by_a_test() -> None:
    named = {number for number, _, _ in generator_of("rules").rows()}
    kept = {int(rule[1]) for rule in rules() if rule[2] == "kept"}
    assert kept & TESTED <= named


def test_every_trap_has_tests_and_the_table_names_them() -> None:
    """The tests say which they are about at the beginning of their docstrings."""
    said: dict[int, list[str]] = {}
    for path in sorted((ROOT / "tests" / "contract").glob("test_traps*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for number in re.findall(r"[Tt]rap (\d+)", (ast.get_docstring(node) or "").partition(":")[0]):
                    said.setdefault(int(number), []).append(node.name)
    page = (ROOT / "docs" / "broker-facts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", page.partition("\n## Traps\n")[2], re.MULTILINE)
    assert [int(number) for number, _ in rows] == [*range(1, 27)]
    assert {int(number): re.findall(r"`(\w+)`", tests) for number, tests in rows} == said


def test_every_rule_has_a_line_once_and_in_order() -> None:
    assert [int(rule[1]) for rule in rules()] == sorted(RULES)


def test_every_rule_has_a_state_that_says_what_is_missing() -> None:
    page = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")
    introduction = " ".join(page.partition("\n## ")[0].split())
    for number, state, theme, text in (rule.groups() for rule in rules()):
        assert ("Missing:" in text) == (state == "partly"), number
        assert (theme is not None) == (state == "later"), number
        assert theme is None or f"*{theme}*" in introduction, number


@pytest.mark.parametrize("folder", ["pyjmsack", "tests", "examples", "benchmarks"])
def test_every_rule_that_is_cited_exists(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        for cited in _CITED.finditer(_LINT_CODES.sub("", path.read_text(encoding="utf-8"))):
            assert int(cited[1]) in RULES, f"{path.relative_to(ROOT)}: S{cited[1]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_and_headings_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in headings(target), link


def headings(page: Path) -> set[str]:
    """Return the anchors of a page: those of its headings, and those that it names."""
    text = page.read_text(encoding="utf-8")
    made = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.+)$", text)}
    return made | {*re.findall(r'<a id="([\w-]+)"></a>', text)}


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "rules.md"], ids=lambda page: page.name)
def test_a_rule_that_a_page_cites_is_a_link(page: Path) -> None:
    """Not within code, which cannot carry links."""
    text = re.sub(r"^```.*?^```|`[^`]+`|^ {4}.*?$|^#.*?$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"\[S\d+\]\(|\*\*S\d+\*\*|rules with numbers \(S1, S2 …\)", "", text)
    assert not _CITED.findall(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_that_the_pages_name_exist(page: Path) -> None:
    known = {*OPTIONS, *REFUSED, *IGNORED, *DESTINATION_OPTIONS, *IGNORED_OF_DESTINATIONS}
    for name in _OPTION.findall(page.read_text(encoding="utf-8")):
        assert name in known or name.endswith(".") or is_websocket_header(name), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_the_pages_show_exist(page: Path) -> None:
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for name in re.findall(r"bin/pyjmsack (\w+)", block):
            assert name in cli.commands, name


def test_the_versions_that_are_supported_are_those_of_the_package_the_workflows_and_the_fixtures() -> None:
    page = (ROOT / "docs" / "supported.md").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    promised = re.findall(r"^\| (3\.\d+) \|", page, re.MULTILINE)
    assert re.findall(r"Python :: (3\.\d+)", project) == promised
    for workflow in ("tests.yml", "wheels.yml"):
        text = (ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8")
        assert re.search(r"python: \[(.*)\]", text)[1].replace('"', "").split(", ") == promised  # type: ignore[index]
    tested = set(re.findall(r"^\| Active[^|]* \| ([\d.]+) \|", page, re.MULTILINE))
    assert tested == {kind.version for kind in _KINDS.values()}


def test_files_that_the_architecture_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = {path.name for path in (ROOT / "pyjmsack").rglob("*.py")}
    for named in re.findall(r"`([\w/]+\.py)`", page):
        known = Path(named).name in names if "/" not in named else (ROOT / "pyjmsack" / named).exists()
        assert known or (ROOT / named).exists(), named

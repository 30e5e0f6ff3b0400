"""The tiers of the tests. ``pytest`` runs the fast tier, ``pytest --tier full`` runs all.

A test's folder and its parameters decide, no list of names:

- The files directly in ``tests``, ``tests/unit`` and ``tests/peer`` are in the fast tier, with all their rows.
- Of ``tests/contract`` the fast tier has the blocking face over AMQP and the asyncio face over STOMP, both on Artemis.
  Of a test with parameters of its own the fast tier runs one row: the first over AMQP, the last over STOMP.
- A test that kills its broker (fixture ``mortal_brokers``), or that is marked ``full_tier(reason)``, is for the full
  tier only. So are all other folders.

Paths on the command line run whole: ``pytest tests/faults`` needs no option.

In the full tier all rows of ``tests/contract`` run with one face for each protocol and broker, because both faces have
the same core. On Artemis one row runs with the other face, too (``contract.brokers.CELLS``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from contract.brokers import CELLS, Target

TESTS = Path(__file__).parent
FAST_FOLDERS = {".", "unit", "peer", "contract"}
_CELL = {"face", "target"}
_LEFT_OUT = pytest.StashKey[Counter[str]]()
_WORKERS = "left_out"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--tier``."""
    parser.getgroup("pyjmsack's own tests").addoption(
        "--tier",
        choices=["fast", "full"],
        help="fast: what needs a few minutes; full: everything. Default: full if paths are given, else fast",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Decide the tier, before workers are started: they are told."""
    if config.option.tier is None:
        config.option.tier = "full" if config.args_source is pytest.Config.ArgsSource.ARGS else "fast"
    config.addinivalue_line("markers", "full_tier(reason): takes too long for the fast tier (tests/tiers.py)")
    config.stash[_LEFT_OUT] = Counter()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave whole folders out, unread."""
    if config.option.tier == "fast" and collection_path.is_dir() and collection_path.parent == TESTS:
        return collection_path.name not in FAST_FOLDERS or None
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier, in their order."""
    kept = set(full(items))
    if config.option.tier == "fast":
        everything, kept = kept, set(fast(kept))
        config.stash[_LEFT_OUT].update(folder(item) for item in everything - kept)
    items[:] = [item for item in items if item in kept]


def full(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests of the full tier: of a face that another stands for, one row of each test."""
    stood_for = [item for item in items if _stood_for(item)]
    yield from {*items} - {*stood_for}
    yield from _one_row(stood_for)


def fast(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests of the fast tier; which row of a test is chosen does not depend on the order."""
    eligible = [item for item in items if folder(item) in FAST_FOLDERS and not _for_full_tier(item)]
    yield from (item for item in eligible if folder(item) != "contract")
    yield from _one_row(item for item in eligible if folder(item) == "contract" and _in_cells(item))


def _one_row(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield one row of each test for each face and target: the first over AMQP, the last over STOMP."""
    for (_, _, target), rows in groupby(sorted(items, key=_place), key=lambda item: (_function(item), *_cell(item))):
        found = [*rows]
        runnable = [item for item in found if item.get_closest_marker("skip") is None] or found
        yield runnable[-1 if target.startswith("stomp") else 0]


def folder(item: pytest.Item) -> str:
    """Return the folder of ``tests`` in which a test is; ``.`` for a file directly in ``tests``."""
    parts = item.path.relative_to(TESTS).parts if item.path.is_relative_to(TESTS) else ()
    return parts[0] if len(parts) > 1 else "."


def _for_full_tier(item: pytest.Item) -> bool:
    return item.get_closest_marker("full_tier") is not None or "mortal_brokers" in getattr(item, "fixturenames", ())


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return dict(item.callspec.params) if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _cell(item: pytest.Item) -> tuple[str, str]:
    """Return the names of the face and of the target; empty if a test has none."""
    parameters = _parameters(item)
    face, target = parameters.get("face"), parameters.get("target")
    return getattr(face, "name", ""), str(target) if isinstance(target, Target) else ""


def _in_cells(item: pytest.Item) -> bool:
    face, target = _cell(item)
    return not target or (target in CELLS and face in ("", CELLS[target]))


def _stood_for(item: pytest.Item) -> bool:
    """Whether another face runs all rows of this test on the same target."""
    face, target = _cell(item)
    return folder(item) == "contract" and bool(face) and target in CELLS and face != CELLS[target]


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _place(item: pytest.Item) -> tuple[str, tuple[str, str], list[tuple[str, int]]]:
    """Return what sorts the rows of a test in one cell as they stand in its file."""
    indices = item.callspec.indices if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    rows = [(name, index) for name, index in indices.items() if name not in _CELL]
    return _function(item), _cell(item), rows


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells what it left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_WORKERS] = dict(session.config.stash[_LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """All workers collect the same."""
    node.config.stash[_LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get(_WORKERS, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the fast tier left out."""
    config = terminalreporter.config
    if config.option.tier == "fast":
        terminalreporter.write_line(left_out(config.stash[_LEFT_OUT]))


def left_out(counts: Counter[str]) -> str:
    """Return the line that says what the fast tier left out and how to run it."""
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.rglob("test_*.py"))}
    parts = [f"{count} tests of tests/{name}".replace("/.", "") for name, count in sorted(counts.items())]
    whole = ", ".join(sorted(folders - FAST_FOLDERS))
    return (
        f"This was the fast tier. Left out: {', '.join([*parts, f'and all of tests/{{{whole}}}'])}. "
        "All tests: pytest --tier full"
    )

"""The tiers of the tests: ``pytest`` runs the fast one, ``--tier full`` every test, ``--tier whole`` every row.

A test's folder and its parameters decide, no list of names:

- The files directly in ``tests``, ``tests/unit`` and ``tests/peer`` are in the fast tier, with all their rows.
- Of ``tests/contract`` the fast tier has the blocking face over AMQP and the asyncio face over STOMP, both on Artemis.
  Of a test with parameters of its own the fast tier runs one row: the first over AMQP, the last over STOMP.
- A test that kills its broker (fixture ``mortal_brokers``), or that is marked ``full_tier(reason)``, is for the full
  tier only. So are all other folders.

Paths on the command line run in the full tier: ``pytest tests/faults`` needs no option. A row that is named runs.

The full tier runs every test, but not the product of all its parameters with both faces, both protocols and three
brokers. A row is left out only where other rows run the same code against the same broker:

- A face is a thin layer over one core and knows neither protocols nor brokers (``test_layers.py`` keeps that so).
  Therefore each target has one face: on Artemis that of ``contract.brokers.CELLS``, on Classic 5 the blocking one, on
  Classic 6 asyncio. The other face runs one row on Artemis of those tests of ``tests/contract`` that no Classic runs:
  without that row the face would not meet the protocol.
- Classic 5 and 6 speak by the same code of this client: it looks at no version of a broker, and the contract has one
  table for both. Classic 6 runs all rows; Classic 5 runs one row of each test of ``tests/contract`` over each
  protocol.
- A row that is marked ``whole_tier(reason)`` takes long, and others stand for it; the reason names them.
- In ``tests/faults`` the faces take turns from row to row, and from protocol to protocol. Of the failover proof every
  fourth row runs on Classic 5: of each request one moment, another one with each request.

``--tier rest`` is the full tier without the fast one, for CI, which has run the fast one before.

``--tier whole`` leaves nothing out. ``docs/generate_proof.py`` runs the proof so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from contract.brokers import CELLS, TARGETS, Target

TESTS = Path(__file__).parent
FAST_FOLDERS = {".", "unit", "peer", "contract"}
_CELL = {"face", "target"}
_FACES = "sync", "aio"
_PROTOCOLS = "amqp", "stomp"
_LEFT_OUT = pytest.StashKey[Counter[str]]()
_WORKERS = "left_out"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--tier``."""
    parser.getgroup("pyjmsack's own tests").addoption(
        "--tier",
        choices=["fast", "rest", "full", "whole"],
        help="fast: what needs a few minutes; full: every test; rest: what full has and fast leaves out; "
        "whole: every row of every test, too. "
        "Default: whole if a row is named, full if paths are given, else fast",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Decide the tier, before workers are started: they are told."""
    if config.option.tier is None:
        given = config.args_source is pytest.Config.ArgsSource.ARGS
        config.option.tier = ("whole" if any("[" in each for each in config.args) else "full") if given else "fast"
    config.addinivalue_line("markers", "full_tier(reason): takes too long for the fast tier (tests/tiers.py)")
    config.addinivalue_line("markers", "whole_tier(reason): takes long, and other rows stand for it (tests/tiers.py)")
    config.stash[_LEFT_OUT] = Counter()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave whole folders out, unread."""
    if config.option.tier == "fast" and collection_path.is_dir() and collection_path.parent == TESTS:
        return collection_path.name not in FAST_FOLDERS or None
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier, in their order."""
    kept = set(items if config.option.tier == "whole" else full(items))
    if config.option.tier in ("fast", "rest"):
        quick = set(fast(kept))
        rest = kept - quick
        kept = quick if config.option.tier == "fast" else rest
        config.stash[_LEFT_OUT].update(folder(item) for item in rest)
    items[:] = [item for item in items if item in kept]


def full(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests of the full tier: of rows that others stand for, one of each test, or none."""
    items = [item for item in items if item.get_closest_marker("whole_tier") is None]
    faults = [item for item in items if folder(item) == "faults"]
    items = [*(item for item in items if folder(item) != "faults" and _runs_on_its_face(item)), *_in_turn(faults)]
    stood_for = [item for item in items if _stood_for(item)]
    on_classic = {_test(item) for item in items if _broker(item) == "classic-6" and not _skipped(item)}
    yield from {*items} - {*stood_for}
    yield from _one_row(item for item in stood_for if _broker(item) != "artemis" or _test(item) not in on_classic)


def fast(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests of the fast tier; which row of a test is chosen does not depend on the order."""
    eligible = [item for item in items if folder(item) in FAST_FOLDERS and not _for_full_tier(item)]
    yield from (item for item in eligible if folder(item) != "contract")
    yield from _one_row(item for item in eligible if folder(item) == "contract" and _in_cells(item))


def _one_row(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield one row of each test for each face and target: the first over AMQP, the last over STOMP."""
    for (_, _, target), rows in groupby(sorted(items, key=_place), key=lambda item: (_function(item), *_cell(item))):
        found = [*rows]
        runnable = [item for item in found if not _skipped(item)] or found
        yield runnable[-1 if target.startswith("stomp") else 0]


def folder(item: pytest.Item) -> str:
    """Return the folder of ``tests`` in which a test is; ``.`` for a file directly in ``tests``."""
    return _folder(item.path)


@cache  # asked several times for each of some 20,000 tests of some 230 files
def _folder(path: Path) -> str:
    parts = path.relative_to(TESTS).parts if path.is_relative_to(TESTS) else ()
    return parts[0] if len(parts) > 1 else "."


def _for_full_tier(item: pytest.Item) -> bool:
    return item.get_closest_marker("full_tier") is not None or "mortal_brokers" in getattr(item, "fixturenames", ())


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return dict(item.callspec.params) if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def _cell(item: pytest.Item) -> tuple[str, str]:
    """Return the names of the face and of the target; empty if a test has none."""
    target = _target(item)
    return getattr(_parameters(item).get("face"), "name", ""), str(target) if target else ""


def _target(item: pytest.Item) -> Target | None:
    target = _parameters(item).get("target")
    return target if isinstance(target, Target) else None


def _broker(item: pytest.Item) -> str:
    target = _target(item)
    return target.broker if target else ""


def _test(item: pytest.Item) -> tuple[str, str]:
    """Return what names a test over one protocol."""
    target = _target(item)
    return _function(item), target.protocol if target else ""


def _skipped(item: pytest.Item) -> bool:
    return item.get_closest_marker("skip") is not None


def _runs_on_its_face(item: pytest.Item) -> bool:
    face, target = _cell(item)[0], _target(item)
    return not face or target is None or target.runs_on(face)


def _in_turn(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield rows of which each has one face: the faces take turns. Of Classic 5 it is every fourth row."""
    for _, rows in groupby(sorted(items, key=_place), key=_function):
        seen: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for item in rows:
            own = {name: repr(value) for name, value in _parameters(item).items() if name not in {*_CELL, "protocol"}}
            number = sum(seen[name].setdefault(value, len(seen[name])) for name, value in own.items())
            turn = number + _place_of_connection(item)
            if _cell(item)[0] in ("", _FACES[turn % 2]) and (_broker(item) != "classic-5" or number % 4 == 0):
                yield item


def _place_of_connection(item: pytest.Item) -> int:
    """Return what differs by one from a protocol to the next, and from a broker to the next."""
    target = _target(item)
    return TARGETS.index(target) if target else _PROTOCOLS.index(_parameters(item).get("protocol", "amqp"))


def _in_cells(item: pytest.Item) -> bool:
    face, target = _cell(item)
    return not target or (target in CELLS and face in ("", CELLS[target]))


def _stood_for(item: pytest.Item) -> bool:
    """Whether another face on the same target runs all rows of this test, or Classic 6 does."""
    face, target = _cell(item)
    if folder(item) != "contract" or not target:
        return False
    return _broker(item) == "classic-5" or (bool(face) and target in CELLS and face != CELLS[target])


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
    parts = [
        f"{count} test{'s' * (count != 1)} of tests/{name}".replace("/.", "") for name, count in sorted(counts.items())
    ]
    whole = f"all of tests/{{{','.join(sorted(folders - FAST_FOLDERS))}}}"
    said = f"{', '.join(parts)} and {whole}" if parts else whole
    return f"This was the fast tier, without {said}. All tests: pytest --tier full"

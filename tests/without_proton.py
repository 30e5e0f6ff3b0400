"""Where python-qpid-proton is not installed, the test modules that import it are skipped, and say why.

proton is the peer of many tests of AMQP, and the judge of others. pip compiles it on most systems, so that the extra
``test`` does without.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from typing import Any

import pytest

REASON = "python-qpid-proton is not installed: pip install -e '.[test,proton]'"


class _Finder(MetaPathFinder):
    """Skips the module that is collected when it, or what it imports, asks for proton."""

    collecting = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if self.collecting and fullname == "proton":
            pytest.skip(REASON, allow_module_level=True)


_finder = _Finder()


def pytest_configure() -> None:
    """Look once."""
    if importlib.util.find_spec("proton") is None:
        sys.meta_path.insert(0, _finder)


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """While tests run, the library asks for proton like any program."""
    _finder.collecting = True
    try:
        return (yield)
    finally:
        _finder.collecting = False

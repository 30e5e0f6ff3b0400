"""What the tests of this folder need."""

from __future__ import annotations

import pytest

from .conftest import HAS_SPARK


def test_the_package_says_what_it_needs() -> None:
    """Where the extra is missing this is the only test of the folder, and it says why."""
    if not HAS_SPARK:
        with pytest.raises(ImportError, match=r"pyjmsack\[spark\]"):
            __import__("pyjmsack.spark")
        pytest.skip("PySpark is not installed: pip install -e '.[test,spark]' for the other tests of tests/spark")
    assert __import__("pyjmsack.spark").spark.JmsDataSource.name() == "jms"

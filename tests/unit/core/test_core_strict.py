"""``strict=true`` refuses transactions that are not atomic (S88)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from core_fakes import Bench

from pyjmsack.errors import UnsupportedFeatureException


@pytest.mark.option("strict", "core")
@pytest.mark.parametrize("guarantee", ["atomic", "at-least-once"])
@pytest.mark.parametrize("strict", [True, False])
def test_strict_refuses_a_transacted_session_that_would_not_be_atomic_s88(strict: bool, guarantee: str) -> None:
    bench = Bench(f"strict={strict}")
    bench.connection.channel.metadata = replace(bench.connection.channel.the_metadata, transaction_guarantee=guarantee)
    assert not bench.session(2).info.transacted
    if strict and guarantee != "atomic":
        with pytest.raises(UnsupportedFeatureException, match=r"strict=true: .* is at-least-once, not atomic"):
            bench.session(0)
        assert bench.provider.names() == ["create_session"]
    else:
        assert bench.session(0).info.transacted

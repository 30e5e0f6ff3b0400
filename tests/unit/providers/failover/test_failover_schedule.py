"""When to try again, and when to give up (A.1 failover.*, scenarios 63 and 80)."""

from __future__ import annotations

from collections import Counter
from itertools import count, islice
from typing import Any

import pytest
from failover_fakes import Bench

from pyjmsack.errors import ConnectionLostException
from pyjmsack.providers.failover.search import waits
from pyjmsack.uri import FailoverOptions

FIRST, LATER = True, False
OFF = "&failover.warnAfterReconnectAttempts=-1"


@pytest.mark.parametrize(
    ("first", "options", "expected"),
    [
        (FIRST, {}, [0, 0.01, 0.02, 0.04]),
        (LATER, {}, [0, 0.01, 0.02, 0.04]),
        (FIRST, {"initial_reconnect_delay": 1.5}, [0, 1.5, 0.02, 0.04]),
        (LATER, {"initial_reconnect_delay": 1.5}, [1.5, 0.01, 0.02, 0.04]),
        (LATER, {}, [0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.75, 0.75]),
        (LATER, {"max_reconnect_attempts": 9, "reconnect_delay": 8.0}, [0, 8, 16, 30, 30]),
        (FIRST, {"startup_max_reconnect_attempts": 9, "reconnect_delay": 8.0}, [0, 8, 16, 30, 30]),
        (
            LATER,
            {"reconnect_delay": 1.0, "reconnect_back_off_multiplier": 3.0, "max_reconnect_delay": 30.0},
            [0, 1, 3, 9, 27, 30, 30],
        ),
        (LATER, {"reconnect_delay": 1.0, "max_reconnect_delay": 2.5}, [0, 1, 2, 2.5, 2.5]),
        (LATER, {"reconnect_delay": 60.0, "use_reconnect_back_off": False}, [0, 60, 60]),
        (LATER, {"reconnect_delay": 0.0}, [0, 0, 0]),
    ],
)
def test_the_wait_before_each_round(first: bool, options: dict[str, Any], expected: list[float]) -> None:
    """The initial delay is for reconnects; the cap is for waits that grow. Limited attempts have the cap of Java."""
    assert [*islice(waits(FailoverOptions(**options), first=first), len(expected))] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first", "options", "rounds"),
    [
        (FIRST, {"max_reconnect_attempts": 3}, 3),
        (LATER, {"max_reconnect_attempts": 3}, 3),
        (FIRST, {"max_reconnect_attempts": 3, "startup_max_reconnect_attempts": 5}, 5),
        (LATER, {"max_reconnect_attempts": 3, "startup_max_reconnect_attempts": 5}, 3),
        (FIRST, {"startup_max_reconnect_attempts": 2}, 2),
        (LATER, {"startup_max_reconnect_attempts": 2}, None),
        (FIRST, {"max_reconnect_attempts": 0}, 1),
        (LATER, {"max_reconnect_attempts": 0}, 0),
        (LATER, {}, None),
    ],
)
def test_the_number_of_rounds(first: bool, options: dict[str, Any], rounds: int | None) -> None:
    """0 never reconnects, but the first connect is tried once; no number has no limit."""
    made = len([*islice(waits(FailoverOptions(**options), first=first), 1000)])
    assert made == (1000 if rounds is None else rounds)


def test_clients_that_lost_a_broker_together_do_not_come_back_together() -> None:
    """They are out of step after a few rounds: no tenth of a second sees many more of them than another one."""
    tries: Counter[int] = Counter()
    for _ in range(200):
        bench = Bench("amqp://a")
        bench.down["a"] = ConnectionLostException("connection refused")
        bench.member.fail()
        while bench.clock.now < 10:
            bench.clock.pass_by(bench.clock.waits[-1] + 0.000001)
            if 9 < bench.clock.now < 10:
                tries[int(10 * bench.clock.now)] += 1
    whole = sum(tries.values())
    assert 200 < whole < 600, "each tries every 0.375 to 0.75 seconds"
    assert max(tries.values()) < 3 * whole / 10, "as even as chance makes it"


def test_waits_that_do_not_grow_are_exact() -> None:
    bench = Bench("amqp://a", "failover.useReconnectBackOff=false&failover.reconnectDelay=1000")
    bench.down["a"] = ConnectionLostException("connection refused")
    bench.member.fail()
    bench.clock.pass_by(0)
    assert bench.clock.waits == [1]


def test_of_warnings_there_is_one_in_10_seconds(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench("amqp://a", "failover.maxReconnectAttempts=31&failover.reconnectDelay=0")
    bench.down["a"] = ConnectionLostException("connection refused")
    bench.member.fail()
    bench.clock.pass_by(0)
    assert [record.message.split()[5] for record in caplog.records if "rounds" in record.message] == ["10"]


@pytest.mark.option("failover.warnAfterReconnectAttempts", "core")
@pytest.mark.parametrize(("every", "warned"), [(10, [10, 20, 30]), (1, [*range(1, 31)]), (None, []), (0, [])])
def test_a_warning_every_so_many_rounds(
    every: int | None, warned: list[int], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``failover.warnAfterReconnectAttempts``."""
    option = "" if every is None else f"&failover.warnAfterReconnectAttempts={every}"
    bench = Bench("amqp://a", f"failover.maxReconnectAttempts=31&failover.reconnectDelay=0{option or OFF}")
    bench.down["a"] = ConnectionLostException("connection refused")
    monkeypatch.setattr("pyjmsack.providers.failover.search.time.monotonic", count(step=10).__next__)
    bench.member.fail()
    bench.clock.pass_by(0)
    assert [int(record.message.split()[5]) for record in caplog.records if "rounds" in record.message] == warned

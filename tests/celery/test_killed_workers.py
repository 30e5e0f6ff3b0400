"""A worker killed with SIGKILL in every moment of a task: the effects are counted."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from polling import wait_until
from shared_brokers import Served

SideMaker = Callable[..., Any]
LATE = {"received": 1, "prerun": 1, "effect": 2, "postrun": 2, "before-ack": 2, "after-ack": 1}
"""How often the effect is there, by the moment of the death. It is there twice where the worker dies between the effect
and the acknowledgement. Celery promises no more."""
EARLY = {"received": 1, "before-ack": 1, "after-ack": 0, "prerun": 0, "effect": 1, "postrun": 1}
"""The same for early acknowledgement, in the order of the moments. Nobody repeats a task that is acknowledged. The task
waits for its acknowledgement, because else the child of a worker may be faster than its parent."""
_OTHERS = "the rows of solo with late acknowledgement run the same lines"


@pytest.mark.parametrize(
    ("pool", "late", "moment"),
    [
        *(("solo", True, moment) for moment in LATE),
        *(pytest.param("prefork", True, moment, marks=pytest.mark.whole_tier(_OTHERS)) for moment in LATE),
        *(pytest.param("prefork", False, moment, marks=pytest.mark.whole_tier(_OTHERS)) for moment in EARLY),
    ],
)
def test_a_worker_killed_in_a_moment_of_a_task_loses_nothing_that_celery_promises(
    pool: str,
    late: bool,
    moment: str,
    any_broker: Served,
    side: SideMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker dies once, in this moment of the first task. The three tasks behind it run once, unless Celery ran
    them before it acknowledged the first one."""
    own = side(any_broker.amqp_url, task_acks_late=late)
    monkeypatch.setenv("DIE_AT", f"{moment} {tmp_path / 'died'}")
    if not late:
        monkeypatch.setenv("ACKNOWLEDGED", str(tmp_path / "acknowledged"))
    worker = own.start(pool, "-c", "1", waits=False)
    for number in range(4):
        own.tasks.effect.apply_async((number,), ignore_result=True)
    wait_until(lambda: worker.poll() is not None)
    assert worker.returncode == -signal.SIGKILL, own.log()
    own.start(pool, "-c", "1")
    assert own.tasks.add.delay(1, 1).get(timeout=60) == 2
    times = (LATE if late else EARLY)[moment]
    wait_until(lambda: own.done().total() >= 3 + times)
    least = Counter({"done 0": times, "done 1": 1, "done 2": 1, "done 3": 1})
    if late and moment.endswith("-ack"):
        # Celery keeps acknowledgements for the next turn of its loop, and tasks may run before that; and what was
        # acknowledged a moment ago is perhaps not on the wire
        assert least <= own.done() <= Counter({f"done {number}": 2 for number in range(4)}), own.log()
    else:
        assert own.done() == least, own.log()


@pytest.mark.whole_tier("the rows above kill a worker in each moment by name")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pool", ["prefork", "threads"])
@pytest.mark.parametrize("late", [True, False], ids=["late", "early"])
def test_workers_that_are_killed_again_and_again_lose_and_double_no_more_than_celery_does(
    late: bool, pool: str, any_broker: Served, side: SideMaker
) -> None:
    """Twenty deaths under 1,000 tasks, each after another number of effects. With late acknowledgement none is lost.
    Each death may cost or double the tasks that the worker was at, and no other. Also an early acknowledgement may
    double a task, because Celery lets the acknowledgement leave while the task runs already."""
    kills, count, random_ = 20, 1000, random.Random(21)
    own = side(any_broker.amqp_url, task_acks_late=late, worker_prefetch_multiplier=1)
    for number in range(count):
        own.tasks.effect.apply_async((number,), ignore_result=True)
    for _ in range(kills):
        wanted = own.done().total() + random_.randrange(1, 40)
        worker = own.start(pool)
        wait_until(lambda wanted=wanted: own.done().total() >= wanted)
        own.kill(worker)
    own.start(pool)
    assert own.tasks.add.delay(1, 1).get(timeout=200) == 2
    at_work = kills * 4  # two that run, and two that the worker has beside them
    wait_until(lambda: len(own.done()) >= count - (0 if late else at_work), 200)
    assert own.done().total() - count <= at_work

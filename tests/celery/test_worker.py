"""Celery workers on real brokers: pools, results, remote control, events, acknowledgements, ETAs."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contract.brokers import Embedded, Target
from polling import wait_until
from shared_brokers import Served

from pyjmsack.testing import Wire

SideMaker = Callable[..., Any]


def url_of(target: Target, served: Served) -> str:
    return served.amqp_url if target.protocol == "amqp" else served.stomp_url


@pytest.mark.parametrize(
    ("target", "pool"),
    [
        pytest.param(Target("amqp", "artemis"), "prefork", id="amqp-artemis-prefork"),
        pytest.param(Target("stomp", "artemis"), "threads", id="stomp-artemis-threads"),
        *(
            pytest.param(
                Target(protocol, broker),
                pool,
                id=f"{protocol}-{broker}-{pool}",
                marks=pytest.mark.whole_tier("the rows above run both protocols and two pools"),
            )
            for protocol, broker, pool in (
                ("amqp", "classic-6", "solo"),
                ("amqp", "artemis", "threads"),
                ("amqp", "artemis", "solo"),
                ("amqp", "artemis", "gevent"),
                ("stomp", "artemis", "gevent"),
                ("stomp", "artemis", "prefork"),
                ("amqp", "classic-6", "prefork"),
                ("stomp", "classic-6", "prefork"),
            )
        ),
    ],
)
def test_a_worker_returns_results_obeys_remote_control_and_tells_its_events(
    target: Target, pool: str, brokers: Callable[[str], Served], side: SideMaker
) -> None:
    """Tasks, groups, chains, errors; ping, active queues; revoking; the events of a task."""
    from celery import chain, group

    if pool == "gevent":
        pytest.importorskip("gevent", reason="gevent is not installed")
    own = side(url_of(target, brokers(target.broker)))
    own.start(pool)
    tasks, app = own.tasks, own.tasks.app
    seen = _Events(app)
    assert tasks.add.delay(2, 3).get(timeout=60) == 5
    assert sorted(group(tasks.add.s(n, n) for n in range(20)).apply_async().get(timeout=60)) == [*range(0, 40, 2)]
    linked: Any = chain(tasks.add.s(1, 2), tasks.add.s(10))
    assert linked.apply_async().get(timeout=60) == 13
    with pytest.raises(ValueError, match="on purpose"):
        tasks.fail.delay().get(timeout=60)
    inspect = app.control.inspect(**own.control())
    assert [*(inspect.ping() or {}).values()] == [{"ok": "pong"}]
    assert [queue["name"] for queues in inspect.active_queues().values() for queue in queues] == [
        app.conf.task_default_queue
    ]
    revoked = tasks.effect.apply_async((1,), countdown=3600)
    app.control.revoke(revoked.id, reply=True, **own.control())
    wait_until(lambda: seen.wanted <= seen.types)
    seen.close()
    assert own.done() == Counter()


def test_tasks_of_the_pool_gevent_run_at_the_same_time(any_broker: Served, side: SideMaker, tmp_path: Path) -> None:
    """Three tasks wait in one thread, and the worker still answers, restores a lost connection, and ends as asked."""
    pytest.importorskip("gevent", reason="gevent is not installed")
    gate = str(tmp_path / "gate")
    with Wire(any_broker.amqp_url) as wire:
        own = side(wire.url, task_acks_late=True, broker_connection_timeout=5)
        worker = own.start("gevent", "-c", "3")
        results = [own.tasks.wait_for.delay(gate) for _ in range(3)]
        wait_until(lambda: own.done()[f"began {gate}"] == 3)
        assert [*(own.tasks.app.control.inspect(**own.control()).ping() or {}).values()] == [{"ok": "pong"}]
        Path(gate).touch()
        assert [result.get(timeout=60) for result in results] == [None] * 3
        wire.cut()
        wire.heal()
        own.tasks.effect.apply_async((7,), ignore_result=True, retry=True)
        wait_until(lambda: own.done()["done 7"] == 1)
        worker.terminate()
        assert worker.wait(60) == 0, own.log()


class _Events:
    """The types of the events that came, received on a thread."""

    wanted = frozenset({"task-received", "task-started", "task-succeeded", "task-failed"})

    def __init__(self, app: Any) -> None:
        self.types: set[str] = set()
        self._app = app
        self._ready = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(60)

    def _run(self) -> None:
        with self._app.connection_for_read() as connection:
            receiver = self._app.events.Receiver(connection, handlers={"*": self._note})
            with receiver.consumer_context() as (own, _, _):
                self._ready.set()
                while not self._stop:
                    try:
                        own.drain_events(timeout=0.2)
                    except TimeoutError:
                        continue

    def _note(self, event: dict[str, Any]) -> None:
        self.types.add(event["type"])

    def close(self) -> None:
        self._stop = True
        self._thread.join()


@pytest.mark.parametrize(
    "early",
    [
        pytest.param(False, id="late"),
        pytest.param(True, id="early", marks=pytest.mark.whole_tier("late acknowledgement is what may lose or repeat")),
    ],
)
def test_a_task_whose_worker_is_killed_runs_again_only_with_late_acknowledgement(
    early: bool, any_broker: Served, side: SideMaker, tmp_path: Path
) -> None:
    """SIGKILL in the middle of a task. Those behind it were prefetched; none is lost."""
    own = side(any_broker.amqp_url, task_acks_late=not early, worker_prefetch_multiplier=4)
    worker, gate = own.start("prefork", "-c", "1"), str(tmp_path / "gate")
    own.tasks.wait_for.delay(gate)
    for number in range(10):
        own.tasks.effect.delay(number)
    wait_until(lambda: own.done()[f"began {gate}"])
    inspect = own.tasks.app.control.inspect(**own.control())
    wait_until(lambda: [[one["acknowledged"] for one in active] for active in inspect.active().values()] == [[early]])
    own.kill(worker)
    Path(gate).touch()
    own.start()
    assert own.tasks.add.delay(1, 1).get(timeout=60) == 2
    wait_until(lambda: sum(own.done()[f"done {number}"] for number in range(10)) == 10)
    once = {f"done {number}": 1 for number in range(10)}
    again = {f"began {gate}": 1} if early else {f"began {gate}": 2, f"done {gate}": 1}
    assert own.done() == {**once, **again}


@pytest.mark.whole_tier("the row of the worker killed in the middle is the same program")
def test_a_worker_killed_between_effect_and_acknowledgement_repeats_the_task(
    any_broker: Served, side: SideMaker, tmp_path: Path
) -> None:
    """Celery promises no more: the effect is there twice, not once and not three times."""
    own = side(any_broker.amqp_url, task_acks_late=True)
    worker, name = own.start(), str(tmp_path / "died")
    own.tasks.die_after_effect.delay(name)
    wait_until(lambda: worker.poll() is not None)
    own.start()
    assert own.tasks.add.delay(1, 1).get(timeout=60) == 2
    assert own.done() == {f"done {name}": 2}


@pytest.mark.parametrize(
    "protocol",
    ["amqp", pytest.param("stomp", marks=pytest.mark.whole_tier("the row above is the same program"))],
)
def test_a_task_whose_late_acknowledgement_is_swallowed_by_the_wire_runs_again(
    protocol: str, any_broker: Served, side: SideMaker, tmp_path: Path
) -> None:
    """The first byte that the worker writes after the effect cuts the wire, so the broker never gets the
    acknowledgement. The worker connects again and gets the task again; Celery promises no more. None is lost.

    Over STOMP the broker sends one message ahead. The worker may run it before the loss is seen, and that is the only
    other task that may run twice.
    """
    with Wire(url_of(Target(protocol, "artemis"), any_broker)) as wire:
        own = side(wire.url, task_acks_late=True, worker_prefetch_multiplier=1, worker_send_task_events=False)
        worker, gate = own.start("solo", "-c", "1"), str(tmp_path / "gate")
        own.tasks.wait_for.apply_async((gate,), ignore_result=True)
        for number in range(10):
            own.tasks.effect.apply_async((number,), ignore_result=True)
        wait_until(lambda: own.done()[f"began {gate}"])
        wire.cut_after(0)
        Path(gate).touch()
        wait_until(lambda: wire.broken)
        wire.heal()
        once = Counter({f"done {number}": 1 for number in range(10)})
        twice = Counter({f"began {gate}": 2, f"done {gate}": 2})
        wait_until(lambda: own.done() >= once + twice, 60)
        assert worker.poll() is None
        ahead = Counter({"done 0": 1 if protocol == "stomp" else 0})
        assert own.done() <= once + twice + ahead


@pytest.mark.parametrize(
    "count", [100, pytest.param(5000, marks=pytest.mark.whole_tier("the row of 100 tasks is the same program"))]
)
def test_no_task_is_lost_when_the_broker_is_killed_and_restarted(
    count: int, mortal_brokers: Callable[[str], Embedded], side: SideMaker
) -> None:
    """Tasks are sent, run and acknowledged while the broker dies; Celery connects again by itself."""
    broker = mortal_brokers("artemis")
    own = side(broker.amqp_url, task_acks_late=True, broker_connection_timeout=5)
    worker = own.start("threads")
    for number in range(count):
        own.tasks.effect.apply_async((number,), ignore_result=True)
        if number == count // 2:
            wait_until(lambda: len(own.done()) > count // 10, 60)
            broker.kill()
            broker.restart()
    wait_until(lambda: len(own.done()) == count, 60 + count / 20)
    assert worker.poll() is None
    doubled = own.done().total() - count
    assert doubled <= 2 * 4 + 2, "more than the worker had: two threads, a prefetch of four"


@pytest.mark.whole_tier("it watches a worker for seconds")
@pytest.mark.parametrize(("protocol", "pool"), [("amqp", "solo"), ("stomp", "solo"), ("amqp", "prefork")])
def test_an_idle_worker_uses_next_to_no_processor_time(
    protocol: str, pool: str, any_broker: Served, side: SideMaker
) -> None:
    """No polling: 1 % of a processor at most, with its children. The best of three looks of five seconds counts,
    because a worker that has just had tasks tidies up."""
    own = side(url_of(Target(protocol, "artemis"), any_broker))
    worker = own.start(pool)
    assert own.tasks.add.delay(1, 1).get(timeout=60) == 2
    looks = []
    for _ in range(3):
        before = _processor_seconds(worker.pid)
        time.sleep(5)
        looks.append(_processor_seconds(worker.pid) - before)
    assert min(looks) <= 0.05


def _processor_seconds(group: int) -> float:
    """Return what the processes of a process group have used of the processor."""
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended since it was listed
            continue
        if int(fields[2]) == group:
            used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")

"""Pulls and writes over both protocols at every broker, without a JVM: what holds there, and what is refused.

S88, S110, S119 and S159; docs/broker-facts.md says why brokers differ.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from contract.brokers import TARGETS, Target
from shared_brokers import Served

from pyjmsack import ConnectionFactory, Queue, Session, UnsupportedFeatureException
from pyjmsack.spark import pull as pulling
from pyjmsack.spark.batch import JmsBrowseReader, JmsDrainReader
from pyjmsack.spark.pull import Place
from pyjmsack.spark.spool import Spool
from pyjmsack.spark.stream import JmsStreamReader
from pyjmsack.spark.writer import send_rows
from pyjmsack.testing import Wire

from .kill_points import BEFORE, HALF, POINTS, points
from .rows import ids, of_pull, read, rows_of

if TYPE_CHECKING:
    from .conftest import Fill, Left, MakeOptions

ARTEMIS_STOMP = Target("stomp", "artemis")
NEW = {target: POINTS if target.broker == "artemis" else (HALF,) for target in TARGETS}
"""Points where a task is killed; every Spark test of all others is on Artemis."""


@pytest.fixture
def broker_url(target: Target, broker: Served) -> str:
    return broker.stomp_url if target.protocol == "stomp" else broker.amqp_url


@pytest.fixture
def amqp_url(broker: Served) -> str:
    return broker.amqp_url


# -- the kill table of one task -----------------------------------------------------------------------------------


def killed_pull(options: Any, place: Place, fatal: str) -> None:
    """Pull, and be killed at a point; runs in a process of its own."""

    def die(point: str) -> None:
        if point == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    with points(die):
        list(pulling.read_pull(options, place))


@pytest.mark.parametrize(
    ("target", "point"), [(t, point) for t, some in NEW.items() for point in some], ids=str, indirect=["target"]
)
def test_a_killed_task_is_tried_again_with_nothing_lost_and_nothing_twice(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left, point: str
) -> None:
    """The killed attempt, the attempt after it, and the batch after that, which meets what is redelivered."""
    sent = fill(queue_name, 300)
    given = options(maxMessagesPerPartition="200", idleMs="10000", maxWaitMs="60000")
    place = Place("query", 1, 0, 200)
    spool = Spool(given.spool, "query")
    spool.prepare(1)
    spool.prepare(2)
    process = multiprocessing.get_context("spawn").Process(target=killed_pull, args=(given, place, point))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL, "it reached the point"
    assert spool.file(1, 0).exists() == (point != BEFORE)
    rows = of_pull(given, place)
    assert len(rows) == 200
    while left(queue_name):
        for part in range(3):  # redelivered ones fill pulls without making rows
            rows += of_pull(options(), Place("query", 2, part, 200))
    assert ids(rows) == sorted(sent), "sent, stored, unique: 300 each; lost: 0"


@pytest.mark.parametrize("target", [ARTEMIS_STOMP], ids=str, indirect=True)
def test_half_of_the_acks_have_arrived_when_the_connection_is_lost(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a transacted receive is at-least-once: single ACKs after the commit, and each counts (S88)."""
    sent = fill(queue_name, 200)
    commit = Session.commit
    with Wire(broker_url) as wire:

        def cut(session: Session) -> None:
            wire.cut_after(1500)
            commit(session)

        given = options(url=wire.url)
        Spool(given.spool, "query").prepare(1)
        monkeypatch.setattr(Session, "commit", cut)
        rows = of_pull(given, Place("query", 1, 0, 200))
        monkeypatch.undo()
    assert 0 < left(queue_name) < 200, "half of them"
    given = options()
    Spool(given.spool, "query").prepare(2)
    rows += of_pull(given, Place("query", 2, 0, 500))
    assert ids(rows) == sorted(sent)
    assert left(queue_name) == 0


def test_what_has_no_id_is_known_again_where_the_broker_gives_it_one(
    options: MakeOptions,
    queue_name: str,
    left: Left,
    target: Target,
    broker_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Over STOMP both do (S159). Else it comes twice after an acknowledgement in doubt, and a log says so."""
    with ConnectionFactory(broker_url).create_context() as context:
        producer = context.create_producer(Queue(queue_name))
        producer.disable_message_id = True
        for number in range(20):
            producer.send(str(number))
    given = options()
    spool = Spool(given.spool, "query")
    spool.prepare(1)
    with monkeypatch.context() as patch:
        patch.setattr(Session, "commit", Session.rollback)
        first = of_pull(given, Place("query", 1, 0, 50))
    spool.prepare(2)
    with caplog.at_level(logging.WARNING, "pyjmsack.spark"):
        again = of_pull(given, Place("query", 2, 0, 50))
    known = target.protocol == "stomp"
    assert [row["message_id"] is not None for row in first] == [target.named("stomp-classic")] * 20
    assert len(again) == (0 if known else 20)
    assert ("20 messages have no id" in caplog.text) is not known
    assert left(queue_name) == 0


@pytest.mark.parametrize("target", [Target("stomp", "classic-5")], ids=str, indirect=True)
def test_what_classic_cannot_acknowledge_over_stomp_makes_no_row_stays_and_is_in_the_log(
    options: MakeOptions, queue_name: str, left: Left, amqp_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What AMQP clients sent with an id of theirs: its ACK would end the connection, a defect of the broker."""
    with ConnectionFactory(amqp_url).create_context() as context:
        producer = context.create_producer(Queue(queue_name))
        for number in range(5):
            producer.send(str(number))
    given = options()
    Spool(given.spool, "query").prepare(1)
    assert of_pull(given, Place("query", 1, 0, 50)) == []
    assert caplog.text.count("stays unacknowledged until its consumer ends") == 5
    assert left(queue_name) == 5


# -- probes -------------------------------------------------------------------------------------------------------


def test_looking_for_work_takes_nothing_and_counts_no_delivery(
    options: MakeOptions, queue_name: str, fill: Fill, left: Left
) -> None:
    given = options(pollMs="300")
    reader = JmsStreamReader(given)
    start = reader.initialOffset()
    assert reader.latestOffset(start, reader.getDefaultReadLimit()) == start, "an empty queue makes no batch"
    fill(queue_name, 3)
    for _ in range(3):
        assert reader.latestOffset(start, reader.getDefaultReadLimit())["n"] == 1
    assert left(queue_name) == 3
    Spool(given.spool, "query").prepare(1)
    rows = of_pull(given, Place("query", 1, 0, 3))
    assert [dict(row["properties"])["number"] for row in rows] == ["0", "1", "2"]
    assert {row["delivery_count"] for row in rows} == {1}


def test_available_now_counts_the_queue_or_is_refused_where_nobody_can(
    options: MakeOptions, queue_name: str, fill: Fill, target: Target
) -> None:
    fill(queue_name, 1200)
    reader = JmsStreamReader(options())
    if target == ARTEMIS_STOMP:
        with pytest.raises(UnsupportedFeatureException, match=r"availableNow.*use AMQP"):
            reader.prepareForTriggerAvailableNow()
        with pytest.raises(UnsupportedFeatureException, match=r"browser.*use AMQP"):
            read(JmsBrowseReader(options(mode="browse")))
        return
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert (end["p"], end["c"]) == (2, 600)


def test_a_drain_reads_the_same_again(options: MakeOptions, queue_name: str, fill: Fill, left: Left) -> None:
    sent = fill(queue_name, 50)
    given = options(mode="drain", drainId="one", maxMessagesPerPartition="20")
    rows = read(JmsDrainReader(given))
    assert ids(rows) == sorted(sent)
    assert left(queue_name) == 0
    assert read(JmsDrainReader(given)) == rows


# -- writing ------------------------------------------------------------------------------------------------------


def test_a_repeated_write_with_keys_adds_nothing_or_is_refused_where_the_broker_forgets(
    options: MakeOptions, queue_name: str, left: Left, target: Target
) -> None:
    given = options(dedupColumn="key")
    if target.broker != "artemis":
        with pytest.raises(
            UnsupportedFeatureException, match="option 'dedupColumn': ActiveMQ Classic has no duplicate detection"
        ):
            send_rows(given, rows_of(body=["a"], key=["1"]))
        assert send_rows(options(), rows_of(body=["a", "b"])).count == 2
    else:
        for _ in range(2):
            assert send_rows(given, rows_of(body=["a", "b"], key=["1", "2"])).count == 2
    assert left(queue_name) == 2


@pytest.mark.parametrize("target", [t for t in TARGETS if t.broker == "artemis"], ids=str, indirect=True)
def test_a_task_with_keys_is_not_repeated_after_the_broker_refused_a_row(options: MakeOptions, queue_name: str) -> None:
    """Over STOMP the connection ends, so that rows which are not confirmed count too."""
    given = replace(options(dedupColumn="key"), queue=None)
    rows = rows_of(body=["a", "b"], key=[f"{queue_name}-{n}" for n in "ab"], destination=[queue_name, f"{queue_name}#"])
    sent = send_rows(given, rows)
    assert sent.refused >= 1
    assert sent.count + sent.refused == 2
    assert sent.refusal is not None

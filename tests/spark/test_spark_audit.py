"""``pyjmsack audit`` finds what was planted, all of it and nothing else; and what really happened to real messages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from shared_brokers import Embedded

from pyjmsack import AckMode, ConnectionFactory, Queue
from pyjmsack.cli.demo import auditing
from pyjmsack.cli.errors import Failure
from pyjmsack.management import Manager
from pyjmsack.spark.audit import Audit, Finding, Look, Outage, look_into, queues_of, run_audit, write_page
from pyjmsack.spark.audit.findings import _believe, with_zeros
from pyjmsack.spark.audit.outages import find_outages, phase_name

from .standalone import ENVIRONMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(600)  # several Spark jobs behind one fixture, on a machine that may be busy

ROOT = Path(__file__).parents[2]
ROWS, EACH = 200_000, 150
OUTAGE = (60_000, 90_000)
PLANTED = ("lost", "duplicated", "redelivered", "out_of_order", "in_doubt", "torn", "dead_lettered")


@pytest.fixture(scope="session")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What is planted, and ``path``, where."""
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import planted
    finally:
        sys.path.remove(str(ROOT))
    made = planted.plan(ROWS, EACH)
    path = tmp_path_factory.mktemp("planted") / "ledger"
    planted.write(path, made, OUTAGE)
    return made, path


@pytest.fixture(scope="session")
def found(spark: SparkSession, plan: Any) -> Audit:
    """What the audit says of it."""
    return run_audit(spark, [plan[1]], suspects=ROWS, still_queued=0)


@pytest.mark.parametrize("name", PLANTED)
def test_everything_planted_is_found_and_nothing_else(found: Audit, plan: Any, name: str) -> None:
    """Both as a count and by full id. What is planted as duplicated or redelivered was delivered twice."""
    expected = plan[0].ids(name)
    if name == "redelivered":
        expected |= plan[0].ids("duplicated")
    assert found.findings[name].count == len(expected)
    assert set(found.findings[name].ids) == expected


def test_what_was_not_planted_is_not_found(found: Audit) -> None:
    assert {name for name, finding in found.findings.items() if finding.count} == {*PLANTED}
    assert (found.lost, found.never_delivered, found.ok) == (EACH, EACH, False)


def test_latencies_are_told_by_mode_protocol_and_outage(found: Audit) -> None:
    """Every message takes 2 ms here; the outage is that of the events."""
    phases = {one.phase: one for one in found.latencies}
    assert [*phases] == ["before", "during outage 1", "after outage 1"]
    assert {(one.mode, one.protocol) for one in found.latencies} == {("INDIVIDUAL_ACKNOWLEDGE", "amqp")}
    assert all(one.p50 == pytest.approx(0.002, rel=0.02) for one in found.latencies)
    arrived = ROWS - EACH - EACH // 2
    assert sum(one.count for one in found.latencies) == arrived
    assert phases["during outage 1"].count == pytest.approx(OUTAGE[1] - OUTAGE[0], rel=0.02)
    assert [outage.seconds for outage in found.outages] == [pytest.approx((OUTAGE[1] - OUTAGE[0]) * 50e-6)]


def test_the_page_opens_without_a_network_and_marks_the_outage(found: Audit, tmp_path: Path) -> None:
    write_page(found, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=", page), "something would be loaded"
    assert "150 lost" in page
    assert "outage 1, 1.5 s" in page
    assert found.findings["lost"].ids[0] in page


DRAWN = """
const box = one => { const r = one.getBoundingClientRect(); return [r.width, r.height]; };
return [...document.querySelectorAll(".js-plotly-plot")].map(chart => ({
  size: box(chart),
  lines: [...chart.querySelectorAll(".scatterlayer path.js-line")].map(box),
  outages: [...chart.querySelectorAll(".shapelayer path")].map(box),
  names: [...chart.querySelectorAll(".annotation-text")].map(one => one.textContent),
}));
"""
CELLS = "return [...document.querySelectorAll('#' + arguments[0] + ' tr')].map(r => [...r.cells].map(c => c.innerText))"


@pytest.mark.parametrize("width", [1200, 390])
def test_a_browser_draws_both_charts_and_the_numbers_of_the_json(
    found: Audit, plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """On a desk and on a telephone, without a network, and without a complaint in its console."""
    from pyjmsack.cli import audit as module
    from pyjmsack.cli.main import cli

    from .chromium import asked_for, chromium

    page = tmp_path / "audit.html"
    monkeypatch.setattr(module, "audit_ledgers", lambda *arguments: found)
    result = CliRunner().invoke(cli, ["audit", str(plan[1]), "--json", "--html", str(page)])
    document = json.loads(result.stdout)
    with chromium(tmp_path / "profile", width) as window:
        window.get(page.as_uri())
        timeline, distribution = window.execute_script(DRAWN)
        findings, latencies = (window.execute_script(CELLS, name) for name in ("findings", "latencies"))
        assert window.execute_script("return document.documentElement.scrollWidth <= innerWidth"), "too wide"
        assert window.get_log("browser") == []
        assert asked_for(window, page.as_uri()) == [page.as_uri()]
    for chart, lines in ((timeline, 2), (distribution, len(document["latencies"]))):
        assert min(chart["size"]) > 300
        assert len(chart["lines"]) == lines
        assert all(length > 200 and height > 100 for length, height in chart["lines"])
    assert [(length > 20, height > 100) for length, height in timeline["outages"]] == [(True, True)]
    assert timeline["names"] == ["outage 1, 1.5 s"]
    counts = {name: int(count.replace(",", "")) for name, _, count in findings[1:]}
    assert counts == {name: finding["count"] for name, finding in document["findings"].items()}
    expected = [
        [one["mode"], one["protocol"], one["when"], f"{one['count']:,}", f"{1000 * one['seconds']['p50']:,.1f}"]
        for one in document["latencies"]
    ]
    assert [row[:5] for row in latencies[1:]] == expected


def made(lost: int, queued: int, unknown: int, look: Look | None = None) -> Audit:
    """Return an audit that found so many messages without an acknowledgement, an outage of four seconds and a kill."""
    start = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
    counts = {"lost": lost, "still_queued": queued, "unknown": unknown, "torn": 0}
    findings = {name: Finding(name, name, count) for name, count in counts.items()}
    timeline = [(start + timedelta(seconds=at), "sends", 5) for at in (0, 6)]
    outages = [Outage(start + timedelta(seconds=1), start + timedelta(seconds=5))]
    return Audit(["a"], {}, {}, findings, lost, [], outages, ["c"], timeline, [(start, "c")], look)


@pytest.mark.parametrize(
    ("counts", "look", "verdict", "step"),
    [
        ((0, 0, 3), None, "3 either lost or still queued.", "--url URL"),
        ((1, 2, 0), Look("AMQP"), "1 lost, 2 still queued.", "look for the listed ids"),
        ((0, 3, 0), Look("AMQP"), "0 lost, 3 still queued.", "let a consumer take"),
        ((1, 2, 3), Look("AMQP", hidden=3), "1 lost, 2 still queued, 3 unknown.", "stop the consumers"),
        ((0, 2, 1), Look("AMQP", hidden=None, reason="of X"), "0 lost, 2 still queued, 1 unknown.", "because of X"),
        ((0, 0, 0), None, "Nothing is lost.", None),
    ],
)
def test_the_headline_says_lost_still_queued_and_unknown_and_what_to_do_next(
    counts: tuple[int, int, int], look: Look | None, verdict: str, step: str | None, tmp_path: Path
) -> None:
    audit = made(*counts, look)
    lost, _, unknown = counts
    assert (audit.verdict, audit.ok) == (verdict, not lost and not unknown)
    assert (audit.next_step is None) == (step is None)
    assert step is None or step in str(audit.next_step)
    write_page(audit, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert f"<h1>{verdict}</h1>" in page
    assert "outage: from the loss of a connection" in page
    assert "killed, or still open" in page


@pytest.mark.parametrize(("still_queued", "counts"), [(2, (1, 2)), (3, (0, 3)), (9, (0, 3))])
def test_the_number_of_the_user_is_taken_off_the_lost_messages(still_queued: int, counts: tuple[int, int]) -> None:
    findings = {name: Finding(name, name) for name in ("lost", "still_queued", "unknown")}
    findings["lost"].count = 3
    _believe(findings, still_queued)
    assert (findings["lost"].count, findings["still_queued"].count) == counts


def test_a_time_without_messages_is_drawn_as_zero() -> None:
    """A line from the last message before an outage to the first one after it would claim messages in between."""
    assert with_zeros({3: 5, 4: 2, 9: 7, 11: 1}) == [(3, 5), (4, 2), (5, 0), (8, 0), (9, 7), (10, 0), (11, 1)]
    assert with_zeros({}) == []


def real(url: str, queue: str, ledger: Path, count: int) -> list[str]:
    """Send, with a ledger; return the message ids."""
    ids = []
    with ConnectionFactory(url, ledger=ledger).create_context() as context:
        producer = context.create_producer(Queue(queue))
        for number in range(count):
            message = context.create_text_message(str(number))
            producer.send(message)
            ids.append(str(message.message_id))
    return ids


def take(url: str, queue: str, ledger: Path | None, count: int) -> None:
    with ConnectionFactory(url, ledger=ledger).create_context() as context:
        consumer = context.create_consumer(Queue(queue))
        for _ in range(count):
            assert consumer.receive(timeout=15) is not None


def test_what_another_program_took_is_lost_to_these_ledgers(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path
) -> None:
    """And not lost if the caller knows where it is."""
    ids = real(broker_url, queue_name, tmp_path, 10)
    take(broker_url, queue_name, tmp_path, 6)
    take(broker_url, queue_name, None, 4)
    audit = run_audit(spark, [tmp_path])
    assert (audit.findings["unknown"].ids, audit.lost, audit.ok) == (sorted(ids[6:]), 0, False)
    assert run_audit(spark, [tmp_path], still_queued=4).ok
    assert (audit.sends, audit.receives) == ({"confirmed": 10}, {"accepted": 6})


def test_the_broker_says_which_messages_are_still_queued_and_the_others_are_lost(
    spark: SparkSession, mortal_brokers: Callable[[str], Embedded], queue_name: str, tmp_path: Path
) -> None:
    """What a consumer holds is unknown: no browser shows it. A message that came after the look is unknown too.

    The broker is one that no other test uses, because the dead letters of other tests count too.
    """
    amqp_url = mortal_brokers("artemis").amqp_url
    ids = real(amqp_url, queue_name, tmp_path, 10)
    take(amqp_url, queue_name, tmp_path, 3)
    take(amqp_url, queue_name, None, 2)
    with ConnectionFactory(amqp_url).create_connection() as connection:
        connection.start()
        session = connection.create_session(AckMode.CLIENT_ACKNOWLEDGE)
        held = session.create_consumer(Queue(queue_name), f"JMSMessageID = '{ids[5]}'").receive(60)
        assert held is not None
        look = look_into(ConnectionFactory(amqp_url), queues_of([tmp_path]))
        audit = run_audit(spark, [tmp_path], look=look)
    assert look.hidden == 1
    assert set(audit.findings["still_queued"].ids) == set(ids[6:])
    assert (audit.lost, audit.queued, audit.unknown) == (2, 4, 1)

    look = look_into(ConnectionFactory(amqp_url), queues_of([tmp_path]))
    late = real(amqp_url, queue_name, tmp_path, 1)
    audit = run_audit(spark, [tmp_path], look=look)
    assert set(audit.findings["lost"].ids) == set(ids[3:5])
    assert set(audit.findings["still_queued"].ids) == set(ids[5:])
    assert audit.findings["unknown"].ids == late


def test_a_look_creates_no_queue(amqp_url: str, queue_name: str) -> None:
    """Browsing would create it at Artemis."""
    look = look_into(ConnectionFactory(amqp_url), [queue_name])
    assert (queue_name in look.absent, queue_name in look.seen) == (True, False)
    with Manager(ConnectionFactory(amqp_url)) as manager:
        assert manager.queues(queue_name) == []


class Lasting:
    """The session of all tests, which a command does not stop."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Leave it to the other tests."""


def test_the_command_asks_the_broker_of_its_url(
    spark: SparkSession, amqp_url: str, queue_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyjmsack.cli.main import cli

    real(amqp_url, queue_name, tmp_path, 3)
    monkeypatch.setattr("pyjmsack.spark.audit.audit_session", lambda master: Lasting(spark))
    done = CliRunner().invoke(cli, ["audit", str(tmp_path), "--json", "--url", amqp_url])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["lost"], document["still_queued"], document["queues"][queue_name]) == (0, 3, 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--queue", "q"], "--queue needs --url"), (["--url", "amqp://h", "--still-queued", "1"], "not both")],
)
def test_options_that_do_not_fit_are_refused(options: list[str], said: str, tmp_path: Path) -> None:
    from pyjmsack.cli.main import cli

    result = CliRunner().invoke(cli, ["audit", str(tmp_path), *options])
    assert result.exit_code == 2
    assert said in result.stderr


CONSUMER = """
import sys
from pyjmsack import AckMode, ConnectionFactory, Queue
url, queue, ledger, mode = sys.argv[1:]
connection = ConnectionFactory(url, ledger=ledger).create_connection()
connection.start()
consumer = connection.create_session(int(mode)).create_consumer(Queue(queue))
for number in range(500):
    consumer.receive(timeout=60).acknowledge()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "mode",
    [
        AckMode.INDIVIDUAL_ACKNOWLEDGE,
        pytest.param(AckMode.AUTO_ACKNOWLEDGE, marks=pytest.mark.whole_tier("the ledger has the same rows")),
    ],
)
def test_after_a_consumer_was_killed_nothing_counts_as_lost(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path, mode: AckMode
) -> None:
    """Its last rows are there although nobody closed its ledger: those which it acknowledged do not come again."""
    real(broker_url, queue_name, tmp_path, 1000)
    command = [sys.executable, "-c", CONSUMER, broker_url, queue_name, str(tmp_path), str(mode.value)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGKILL)
    with ConnectionFactory(broker_url, ledger=tmp_path).create_context() as context:
        consumer = context.create_consumer(Queue(queue_name))
        while consumer.receive(timeout=2) is not None:
            pass
    audit = run_audit(spark, [tmp_path])
    assert audit.ok, audit.findings["unknown"]
    assert [name for _, name in audit.kills] == audit.unclosed
    assert audit.findings["unsent"].count == 0
    assert len(audit.unclosed) == 1
    assert audit.receives["accepted"] >= 1000


def test_a_copy_for_each_subscription_is_no_duplicate(
    spark: SparkSession, broker_url: str, queue_name: str, tmp_path: Path
) -> None:
    """And a topic without subscribers loses nothing that was promised."""
    factory = ConnectionFactory(broker_url, ledger=tmp_path)
    with factory.create_context() as context:
        topic = context.create_topic(queue_name)
        consumers = [context.create_consumer(topic) for _ in range(2)]
        context.create_producer(topic).send("to both")
        assert [consumer.receive_body(str, timeout=15) for consumer in consumers] == ["to both"] * 2
        context.create_producer(context.create_topic(f"{queue_name}.nobody")).send("to nobody")
    audit = run_audit(spark, [tmp_path])
    assert not [finding for finding in audit.findings.values() if finding.count]
    assert audit.ok


def test_the_demo_ends_with_the_audit_of_its_own_ledger(spark: SparkSession, broker_url: str, tmp_path: Path) -> None:
    """In a process of its own, as it starts a Spark of its own. Java has two garbage collectors to choose from: that of
    the audit, and that of the environment, which counts."""
    assert "-XX:+UseSerialGC" in os.environ["SPARK_SUBMIT_OPTS"]
    (tmp_path / "text").write_text("".join(f"line {number}\n" for number in range(20)))
    command = [sys.executable, "-m", "pyjmsack", "demo", "--input", tmp_path, "--url", broker_url, "--json", "--audit"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    audit = json.loads(done.stdout)["audit"]
    assert (audit["ok"], audit["lost"], audit["unclosed_connections"]) == (True, 0, [])
    assert audit["sends"]["confirmed"] >= 20 * 9


def test_a_java_that_does_not_start_is_a_message_and_not_a_traceback(plan: Any) -> None:
    command = [sys.executable, "-m", "pyjmsack", "audit", plan[1]]
    environment = {**ENVIRONMENT, "SPARK_SUBMIT_OPTS": "-XX:+UseSerialGC -XX:+UseG1GC"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, env=environment)
    assert "Multiple garbage collectors selected" in done.stdout  # where Java prints this error
    assert "Error: Spark's Java ended while it started" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 1


def test_the_demo_goes_on_without_an_audit_that_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the user asked for the audit."""

    def fail(paths: tuple[Path, ...]) -> None:
        raise Failure("no Java")

    monkeypatch.setattr(auditing, "missing_for_audit", lambda: None)
    monkeypatch.setattr(auditing, "audit_ledgers", fail)
    with auditing.LedgerOfDemo(tmp_path, audits=None) as ledger:
        assert ledger.audit() is None
        assert ledger.left_out == "Left out: the audit of this run's ledger on Spark. no Java"
    with auditing.LedgerOfDemo(tmp_path, audits=True) as ledger, pytest.raises(Failure, match="no Java"):
        ledger.audit()


def event(kind: str, second: float, connection: str = "a") -> dict[str, Any]:
    time = datetime(2031, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=second)
    return {"kind": kind, "time": time, "connection_id": connection}


@pytest.mark.parametrize(
    ("events", "spans"),
    [
        ([event("established", 0), event("closed", 9)], []),
        ([event("interrupted", 1), event("restored", 3)], [(1, 3)]),
        (
            [event("interrupted", 1), event("interrupted", 2, "b"), event("restored", 3), event("restored", 4, "b")],
            [(1, 4)],
        ),
        (
            [event("interrupted", 1), event("restored", 2), event("interrupted", 5), event("restored", 6)],
            [(1, 2), (5, 6)],
        ),
        ([event("failure", 1), event("established", 4, "b")], [(1, 4)]),
        ([event("interrupted", 1), event("closed", 7, "b")], [(1, 7)]),
        ([event("failure", 1)], [(1, 1)]),
    ],
)
def test_outages_are_from_the_loss_to_the_return(events: list[dict[str, Any]], spans: list[tuple[int, int]]) -> None:
    assert find_outages(reversed(events)) == [
        Outage(event("", start)["time"], event("", end)["time"]) for start, end in spans
    ]


def test_phases_have_names() -> None:
    assert [phase_name(phase, 2) for phase in range(5)] == [
        "before",
        "during outage 1",
        "after outage 1",
        "during outage 2",
        "after outage 2",
    ]
    assert phase_name(0, 0) == "all"


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_prints_the_findings_and_ends_with_1(
    found: Audit, plan: Any, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit itself ran above: Spark's session is this process's only one."""
    from pyjmsack.cli import audit as module
    from pyjmsack.cli.main import cli

    monkeypatch.setattr(module, "audit_ledgers", lambda *arguments: found)
    result = CliRunner().invoke(cli, ["audit", str(plan[1]), *(["--json"] if as_json else [])])
    assert result.exit_code == 1
    assert "150 lost, 0 still queued; 150 torn." in result.stderr
    if as_json:
        document = json.loads(result.stdout)
        assert (document["lost"], document["findings"]["duplicated"]["count"]) == (EACH, EACH)
        assert document["outages"][0]["seconds"] == pytest.approx(1.5)
    else:
        assert "150 never delivered" in result.stdout
        assert "during outage 1" in result.stdout


def test_a_directory_that_is_no_ledger_is_named(spark: SparkSession, tmp_path: Path) -> None:
    from pyjmsack.ledger import LedgerError

    with pytest.raises(LedgerError, match="is not a ledger"):
        run_audit(spark, [tmp_path])

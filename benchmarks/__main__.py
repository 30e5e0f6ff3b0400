"""The command line: ``python -m benchmarks``."""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import Progress, TaskID

from benchmarks import auditing, memory, profiling, report, restore, tasks
from benchmarks.fuzz import run as fuzzing
from benchmarks.fuzz.targets import ON_PROTON, TARGETS, proton_is_installed
from benchmarks.growing import COMMANDS, clear_errors
from benchmarks.job import PASSWORD_VARIABLE, USERNAME_VARIABLE
from benchmarks.run import run
from benchmarks.scenarios import PEERS, PROTOCOLS, SCENARIOS, Settings

F = TypeVar("F", bound=Callable[..., Any])

_SCENARIO_NAMES = click.Choice([scenario.name for scenario in SCENARIOS])
_FACES = click.Choice([peer.name for peer in PEERS if peer.ours])
_COUNT = click.IntRange(min=1)
_BLOCKING_SHARE = 10  # one message each waits for the disk: a one-by-one send has so many times fewer of them
_JIT_BLOCKING_WARMUP = 2_000  # here the disk decides, and compiled code wins little


def _broker_options(command: F) -> F:
    command = click.option("--url", help="A broker's address, amqp://host:port. Without: an embedded broker.")(command)
    command = click.option("--username", envvar="PYJMSACK_USERNAME")(command)
    command = click.option("--password", envvar="PYJMSACK_PASSWORD")(command)
    return click.option("--size", default=1024, show_default=True, type=_COUNT, help="Characters a message.")(command)


def _fill_option(command: F) -> F:
    text = "What is received: bare texts of python-qpid-proton, or texts with the headers of a JMS client."
    return click.option("--fill", default="plain", show_default=True, type=click.Choice(["plain", "jms"]), help=text)(
        command
    )


def _pass_login(username: str | None, password: str | None) -> None:
    """The workers find them in their environment, where no process list shows them."""
    for variable, value in ((USERNAME_VARIABLE, username), (PASSWORD_VARIABLE, password)):
        if value is not None:
            os.environ[variable] = value


def _warmups(pipelined: int) -> dict[str, int]:
    return {one.name: pipelined if one.pipelined else min(pipelined, _JIT_BLOCKING_WARMUP) for one in SCENARIOS}


@click.group()
def main() -> None:
    """Measure pyjmsack beside python-qpid-proton and Qpid JMS (Java), on one broker."""


@main.command(name="run")
@_broker_options
@click.option("--count", default=15_000, show_default=True, type=_COUNT, help="Messages of a pipelined scenario.")
@click.option("--blocking-count", type=_COUNT, help="Messages of the one-by-one send.  [default: a tenth of --count]")
@click.option("--rounds", default=3, show_default=True, type=_COUNT, help="The best one counts.")
@click.option("--java/--no-java", default=True, help="Whether to measure Qpid JMS, if java and mvn are there.")
@click.option(
    "--java-warmup",
    default=60_000,
    show_default=True,
    type=click.IntRange(min=0),
    help="Messages before the timed ones, for the JIT; too few make Qpid JMS look slow.",
)
@click.option("--only", multiple=True, type=click.Choice([peer.name for peer in PEERS]), help="Clients; repeatable.")
@click.option("--scenario", "scenarios", multiple=True, type=_SCENARIO_NAMES, help="Rows of the table; repeatable.")
@_fill_option
@click.option(
    "--protocol",
    default="amqp",
    show_default=True,
    type=click.Choice([*PROTOCOLS]),
    help="What our clients speak; it decides which raw library they are compared with.",
)
@click.option("--stomp-url", help="With --url and --protocol stomp: the same broker's STOMP address.")
@click.option("--json", "as_json", is_flag=True, help="Every round, as JSON.")
@click.pass_context
def run_command(
    context: click.Context,
    url: str | None,
    username: str | None,
    password: str | None,
    size: int,
    count: int,
    blocking_count: int | None,
    rounds: int,
    java: bool,
    java_warmup: int,
    only: tuple[str, ...],
    scenarios: tuple[str, ...],
    fill: str,
    protocol: str,
    stomp_url: str | None,
    as_json: bool,
) -> None:
    """Run every client in turn and print rates and ratios; exit code 1 if a measurement failed."""
    _pass_login(username, password)
    spoken = PROTOCOLS[protocol]
    peers = [peer for peer in spoken.peers if (not only or peer.name in only) and (java or peer.name != "java")]
    chosen = [scenario for scenario in spoken.scenarios if not scenarios or scenario.name in scenarios]
    blocking = blocking_count or max(1, count // _BLOCKING_SHARE)
    counts = {scenario.name: count if scenario.pipelined else blocking for scenario in SCENARIOS}
    settings = Settings(size, rounds, counts, _warmups(java_warmup), fill, protocol)
    with clear_errors():
        result = run(url, peers, chosen, settings, stomp_url)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        report.show(result, report.console())
    context.exit(1 if result.errors else 0)


@main.command(name="memory")
@_broker_options
@click.option("--count", default=1_000_000, show_default=True, type=_COUNT, help="Messages through the consumer.")
@click.option("--face", default="sync", show_default=True, type=_FACES)
@click.option("--json", "as_json", is_flag=True, help="Every sample, as JSON.")
def memory_command(
    url: str | None, username: str | None, password: str | None, size: int, count: int, face: str, as_json: bool
) -> None:
    """Watch the memory of a process that receives many messages through one consumer."""
    _pass_login(username, password)
    with clear_errors(), Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("received", total=count)
        result = memory.measure(url, face, count, size, lambda received: progress.update(task, completed=received))
    click.echo(json.dumps(result.as_json(), indent=2) if as_json else result.sentence())


@main.command(name="restore")
@click.option("--protocol", "protocols", multiple=True, type=click.Choice([*PROTOCOLS]), default=[*PROTOCOLS])
@click.option("--rounds", default=5, show_default=True, type=_COUNT, help="The median counts.")
@click.option(
    "--outage",
    "outages",
    multiple=True,
    type=click.FloatRange(min=0),
    help="Measure only the first message, with default options, after so many seconds without a broker; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Every round, as JSON.")
def restore_command(protocols: tuple[str, ...], rounds: int, outages: tuple[float, ...], as_json: bool) -> None:
    """Kill and restart an embedded broker, and time how soon all is as before."""
    for protocol in protocols:
        with clear_errors(), Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(f"restored over {protocol}", total=(len(outages) or restore.STEPS) * rounds)
            update = partial(_completed, progress, task)
            result = (
                restore.measure_outages(protocol, outages, rounds, update)
                if outages
                else restore.measure(protocol, rounds, update)
            )
        click.echo(json.dumps(result.as_json()) if as_json else result.sentences())


def _completed(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


@main.command(name="spark")
@_broker_options
@click.option("--count", default=20_000, show_default=True, type=_COUNT, help="Messages of a measurement.")
@click.option("--rounds", default=3, show_default=True, type=_COUNT, help="The best one counts.")
@click.option("--json", "as_json", is_flag=True, help="Every round, as JSON.")
def spark_command(
    url: str | None, username: str | None, password: str | None, size: int, count: int, rounds: int, as_json: bool
) -> None:
    """Stream from a queue and write to one with Spark, beside a bare python-qpid-proton loop into a DataFrame."""
    from benchmarks import spark  # needs the extra [spark], which the others do not

    _pass_login(username, password)
    with clear_errors(), Console(stderr=True).status("Spark starts") as status:
        result = spark.measure(url, count, size, rounds, status.update)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        report.console().print(result.table())


@main.command(name="celery")
@click.option("--broker", "brokers", multiple=True, type=click.Choice(tasks.BROKERS), default=tasks.BROKERS)
@click.option("--pool", "pools", multiple=True, type=click.Choice(tasks.POOLS), default=tasks.POOLS[:2])
@click.option("--acks", multiple=True, type=click.Choice(["early", "late"]), default=["early", "late"])
@click.option("--size", "sizes", multiple=True, type=_COUNT, default=[100, 10_000], show_default=True)
@click.option("--count", default=2000, show_default=True, type=_COUNT, help="Tasks of a measurement.")
@click.option("--rounds", default=3, show_default=True, type=_COUNT, help="The median counts.")
@click.option("--json", "as_json", is_flag=True, help="Every round, as JSON.")
def celery_command(
    brokers: tuple[str, ...],
    pools: tuple[str, ...],
    acks: tuple[str, ...],
    sizes: tuple[int, ...],
    count: int,
    rounds: int,
    as_json: bool,
) -> None:
    """Tasks of Celery per second, on an embedded Artemis and on Redis, which Debian's redis-server has.

    It needs the package redis of Python, too. Each task is counted. With --broker amqp no Redis is needed.
    """
    cases = [tasks.Case(pool, ack == "late", size) for size in sizes for pool in pools for ack in acks]
    steps = rounds * len(cases) * len(brokers)
    with clear_errors(), Progress(console=Console(stderr=True), transient=True) as progress:
        shown = progress.add_task("measured", total=steps)
        result = tasks.measure(
            list(dict.fromkeys(brokers)), cases, count, rounds, lambda done: progress.update(shown, completed=done)
        )
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2))
    else:
        report.console().print(result.table())


@main.command(name="profile")
@_broker_options
@click.argument("scenario", type=_SCENARIO_NAMES)
@click.option("--count", default=20_000, show_default=True, type=_COUNT)
@click.option("--face", default="sync", show_default=True, type=_FACES)
@_fill_option
@click.option("--sort", default="tottime", show_default=True, type=click.Choice(["tottime", "cumulative"]))
@click.option("--lines", default=30, show_default=True, type=_COUNT)
def profile_command(
    url: str | None,
    username: str | None,
    password: str | None,
    size: int,
    scenario: str,
    count: int,
    face: str,
    fill: str,
    sort: str,
    lines: int,
) -> None:
    """Profile one scenario of pyjmsack, thread by thread."""
    _pass_login(username, password)
    chosen = next(one for one in SCENARIOS if one.name == scenario)
    with clear_errors():
        timing = profiling.profile(url, chosen, face, count, size, fill, sort, lines)
    click.echo(f"{timing.count * 1e9 / timing.nanoseconds:,.0f} messages per second, with the profiler's own cost")


@main.command(name="audit")
@click.option("--rows", default=10_000_000, show_default=True, type=click.IntRange(min=100_000), help="Sends.")
@click.option("--master", default="local[2]", show_default=True, help="Where Spark runs.")
@click.option("--memory", default="6g", show_default=True, help="Of a local Spark.")
@click.option("--json", "as_json", is_flag=True, help="The result, as JSON.")
def audit_command(rows: int, master: str, memory: str, as_json: bool) -> None:
    """Plant losses, duplicates and more into a ledger, and time the audit that must find them all."""
    with clear_errors():
        timing = auditing.measure(rows, master, memory)
    click.echo(json.dumps(timing.as_json(), indent=2) if as_json else timing.sentence())


@main.command(name="shift")
@click.option("--rounds", default=10, show_default=True, type=_COUNT, help="Of seven flows, each at a new broker.")
@click.option("--policy", default="afterLoss", show_default=True, type=click.Choice(["afterLoss", "always", "never"]))
@click.option("--healthy", is_flag=True, help="Queues with several consumers have one that is never cut.")
@click.option("--busy", "processes", default=2, show_default=True, type=click.IntRange(min=0), help="Busy loops.")
@click.option("--engine", default="python", show_default=True, type=click.Choice(["python", "proton"]))
@click.option("--seed", default=1, show_default=True, type=int)
@click.option("--slow-cleanup", default=0, metavar="MS", type=click.IntRange(min=0), help="Late threads of the broker.")
def shift_command(
    rounds: int, policy: str, healthy: bool, processes: int, engine: str, seed: int, slow_cleanup: int
) -> None:
    """Cut connections at cold Artemis brokers, and check that each message gets the outcome that was asked for.

    POLICY is the value of amqp.singleCredit, ENGINE that of amqp.engine. With --slow-cleanup 20 a plugin makes threads
    of the broker late where the race of docs/upstream is. Then about one flow in ten fails with --policy never. The
    plugin needs a JDK. Exit code 1 if a message was lost, doubled or taken for another one.
    """
    from benchmarks import shift  # need the extra [testing], which the others do not
    from benchmarks import slow_cleanup as slow

    total, told = shift.Total(), 0
    options = f"amqp.singleCredit={policy}&amqp.engine={engine}"
    with shift.busy(processes), tempfile.TemporaryDirectory() as directory:
        broker = slow.SlowCleanUp(Path(directory), slow_cleanup).broker if slow_cleanup else None
        for total in shift.run_rounds(options, rounds, seed, healthy=healthy, broker=broker):
            click.echo(f"{total.flows} flows, {total.messages:,} messages, {total.torn} torn, {len(total.bad)} bad")
            for found in total.bad[told:]:
                click.echo(f"{found.case}: {'; '.join(found.problems())}")
            told = len(total.bad)
    if total.bad:
        raise SystemExit(1)


@main.command(name="fuzz")
@click.option("--minutes", default=10.0, show_default=True, type=click.FloatRange(min=0.01), help="For all targets.")
@click.option("--target", "targets", multiple=True, type=click.Choice([*TARGETS]), help="Repeatable; all without.")
@click.option("--seed", type=click.IntRange(min=0), help="Gives the same inputs again.  [default: another each time]")
@click.option("--out", default=".", show_default=True, type=click.Path(path_type=Path), help="Where inputs are saved.")
@click.option("--replay", type=click.Path(path_type=Path, exists=True), help="Run one saved input instead.")
@click.pass_context
def fuzz_command(
    context: click.Context, minutes: float, targets: tuple[str, ...], seed: int | None, out: Path, replay: Path | None
) -> None:
    """Throw hostile frames, messages and texts at the parts that read them; exit code 1 if one does harm."""
    if replay is not None:
        found = fuzzing.replay(replay)
        click.echo(found or "nothing is wrong with it")
        context.exit(1 if found else 0)
    chosen = [*(targets or TARGETS)]
    left_out = [] if proton_is_installed() else [name for name in chosen if name in ON_PROTON]
    if left_out:
        advice = f"{', '.join(left_out)}: proton is not installed; run pip install -e '.[proton]'"
        if targets:
            raise click.UsageError(advice)
        chosen = [name for name in chosen if name not in left_out]
        click.echo(f"left out: {advice}")
    seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed
    click.echo(f"seed {seed}")
    with Console(stderr=True).status("") as status:
        reports = fuzzing.run(chosen, seed, minutes, out, status.update)
    for one in reports:
        click.echo(one.sentence())
    context.exit(1 if any(one.findings for one in reports) else 0)


for command in COMMANDS:
    main.add_command(command)

if __name__ == "__main__":
    main(prog_name="python -m benchmarks")

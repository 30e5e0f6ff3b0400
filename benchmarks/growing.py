"""The commands about growth: many consumers, processes and bytes, a first message, and clients that come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from benchmarks import cold, growth, large, report, scale, simulate
from benchmarks.chart import draw
from benchmarks.job import BenchmarkError
from benchmarks.scenarios import PROTOCOLS

__all__ = ["COMMANDS", "clear_errors"]

_COUNT = click.IntRange(min=1)
_PROTOCOLS = click.option(
    "--protocol", "protocols", multiple=True, type=click.Choice([*PROTOCOLS]), default=[*PROTOCOLS], show_default=True
)
_JSON = click.option("--json", "as_json", is_flag=True, help="The results as JSON.")


@contextmanager
def clear_errors() -> Iterator[None]:
    """Show an error of a benchmark as a sentence."""
    try:
        yield
    except BenchmarkError as error:
        raise click.ClickException(str(error)) from error


@click.command(name="growth")
@click.option(
    "--axis", "axes", multiple=True, type=click.Choice(growth.AXES), default=growth.AXES, help="What grows; repeatable."
)
@_PROTOCOLS
@click.option("--face", "faces", multiple=True, type=click.Choice(["sync", "aio"]), default=["sync", "aio"])
@click.option("--count", default=15_000, show_default=True, type=_COUNT, help="Messages of a process.")
@click.option("--most", default=1000, show_default=True, type=_COUNT, help="Consumers or processes.")
@click.option("--rounds", default=2, show_default=True, type=_COUNT, help="The best one counts.")
@click.option("--chart", type=click.Path(path_type=Path, dir_okay=False), help="Write the charts into this SVG file.")
@_JSON
def growth_command(
    axes: tuple[str, ...],
    protocols: tuple[str, ...],
    faces: tuple[str, ...],
    count: int,
    most: int,
    rounds: int,
    chart: Path | None,
    as_json: bool,
) -> None:
    """What a message costs with more consumers, more processes and larger bodies, on an embedded Artemis."""
    chosen = [
        case for case in growth.cases(axes, protocols, faces, count) if case.axis == "bodies" or case.value <= most
    ]
    with clear_errors(), Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measured", total=rounds * len(chosen))
        found = growth.measure(chosen, rounds, lambda done: progress.update(task, completed=done))
    if chart is not None:
        about = found.machine
        note = f"{about['cores']} cores that clients and broker share, load {about['load']:.1f} at the start"
        chart.write_text(draw(growth.panels(found), note), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
    else:
        for table in growth.tables(found):
            report.console().print(table)
    for error in found.errors:
        click.echo(f"failed: {error}", err=True)
    if found.errors:
        raise click.exceptions.Exit(1)


@click.command(name="scale")
@_PROTOCOLS
@click.option("--consumers", default=10_000, show_default=True, type=_COUNT)
@click.option("--connections", default=10, show_default=True, type=_COUNT)
@_JSON
def scale_command(protocols: tuple[str, ...], consumers: int, connections: int, as_json: bool) -> None:
    """Idle consumers in one asyncio process: time to attach, memory, and time to come back after a cut and a kill."""
    for protocol in protocols:
        with clear_errors(), Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(protocol, total=scale.STEPS)
            found = scale.measure(
                protocol,
                consumers,
                connections,
                lambda done: progress.update(task, completed=done),  # noqa: B023 - called within
            )
        click.echo(json.dumps(found.as_json()) if as_json else found.sentences())


@click.command(name="large")
@click.option("--size", default=1_000_000_000, show_default=True, type=_COUNT, help="Bytes of the body.")
@click.option("--heap", default="4g", show_default=True, help="Of the embedded Artemis.")
@_JSON
def large_command(size: int, heap: str, as_json: bool) -> None:
    """A large body over AMQP, sent from a file and received into a file: the memory that it takes."""
    with clear_errors():
        for found in large.measure(size, heap):
            click.echo(json.dumps(found.as_json()) if as_json else found.sentence())


@click.command(name="cold")
@click.option("--rounds", default=10, show_default=True, type=_COUNT, help="The median counts.")
@_JSON
def cold_command(rounds: int, as_json: bool) -> None:
    """Import, connection and first message of a process that has done nothing yet."""
    with clear_errors():
        for found in cold.measure(rounds):
            click.echo(json.dumps(found.as_json()) if as_json else found.sentence())


@click.command(name="simulate")
@click.option("--clients", default=simulate.CLIENTS, show_default=True, type=_COUNT)
@click.option("--outage", "outages", multiple=True, type=float, default=simulate.OUTAGES, show_default=True)
@click.option("--login", default=1.0, show_default=True, type=click.FloatRange(min=0), help="Milliseconds of a login.")
@click.option(
    "--options",
    multiple=True,
    default=["", "failover.maxReconnectDelay=30000"],
    help="Of the failover: URL; repeatable.  [default: none, and the longest wait of Java's clients]",
)
@click.option("--seed", default=1, show_default=True, type=int)
@_JSON
def simulate_command(
    clients: int, outages: tuple[float, ...], login: float, options: tuple[str, ...], seed: int, as_json: bool
) -> None:
    """Many clients lose a broker at the same moment: when they find it again, and how often they try. No broker."""
    found = simulate.measure(options, outages, clients, login / 1e3, seed)
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], indent=2))
    else:
        report.console().print(simulate.table(found))


COMMANDS = (growth_command, scale_command, large_command, cold_command, simulate_command)

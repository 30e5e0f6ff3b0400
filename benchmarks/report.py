"""The table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.results import Report, Row
from benchmarks.scenarios import PROTOCOLS

_PIPE_WIDTH = 190  # a pipe has no width; the table must not be folded to 80 columns there
_RATIOS = {
    "sync/raw": "pyjmsack / proton",
    "sync/stompy": "pyjmsack / stomp.py",
    "aio/sync": "aio / blocking",
    "sync/java": "pyjmsack / Qpid JMS",
    "sync/limit": "pyjmsack / limit",
}


def console() -> Console:
    """Return a console for the report on standard output."""
    probe = Console()
    return probe if probe.is_terminal else Console(width=_PIPE_WIDTH)


def table(rows: Sequence[Row], warmups: Mapping[str, int], protocol: str = "amqp") -> Table:
    """Return rates and ratios; ``warmups`` is the number of messages that the JIT got before, by scenario."""
    peers = PROTOCOLS[protocol].peers
    names = {peer.name for peer in peers}
    ratios = {name: heading for name, heading in _RATIOS.items() if names.issuperset(name.split("/"))}
    made = Table(title="messages per second, best round", caption=_caption(warmups), caption_justify="left")
    made.add_column("scenario")
    made.add_column("messages", justify="right")
    for peer in peers:
        made.add_column(peer.title, justify="right")
    for heading in ratios.values():
        made.add_column(heading, justify="right")
    for row in rows:
        found = {ratio.name: ratio for ratio in row.ratios()}
        made.add_row(
            row.scenario.title,
            f"{row.count:,}",
            *(_rate(row, peer.name) for peer in peers),
            *(verdict(found[name].value, found[name].target) if name in found else "" for name in ratios),
        )
    return made


_DETAILS = {"processor": "processor time a message", "p50": "round trip, p50", "p99": "round trip, p99"}


def details(rows: Sequence[Row], protocol: str = "amqp") -> Table | None:
    """Return processor times and round trips; ``None`` if no client told any."""
    peers = PROTOCOLS[protocol].peers
    made = Table(title="microseconds, least of the rounds")
    made.add_column("scenario")
    made.add_column("")
    for peer in peers:
        made.add_column(peer.title, justify="right")
    for row in rows:
        for field, words in _DETAILS.items():
            found = [row.least(peer.name, field) for peer in peers]
            if any(found):
                made.add_row(row.scenario.title, words, *(f"{value:,.1f}" if value else "" for value in found))
    return made if made.row_count else None


def verdict(value: float, target: float) -> Text:
    """Return a ratio, the wanted one, and whether it is met."""
    met = value >= target
    return Text(f"{value:.2f} (>= {target:g}) {'met' if met else 'not met'}", style="green" if met else "red")


def _rate(row: Row, peer: str) -> str:
    best = row.best(peer)
    if best is not None:
        return f"{best:,.0f}"
    return "failed" if peer in row.rounds else ""


def _caption(warmups: Mapping[str, int]) -> str:
    caption = (
        "Messages are persistent where the row says nothing else, and every number is from a process of its own. "
        "Sends end with the last confirmation, "
        "receives with the answer to the consumer's close."
    )
    if not warmups:
        return caption
    counts = " or ".join(f"{count:,}" for count in dict.fromkeys(warmups.values()))
    return f"{caption}\nQpid JMS: {counts} messages before, not timed, so that the JIT has compiled the code."


def show(result: Report, target: Console) -> None:
    """Print table, machine and failures."""
    measured_java = any("java" in row.rounds for row in result.rows)
    target.print(table(result.rows, result.settings.warmups if measured_java else {}, result.settings.protocol))
    if (more := details(result.rows, result.settings.protocol)) is not None:
        target.print(more)
    for ratio in result.variants:
        target.print(Text.assemble(f"{ratio.name}, against without: ", verdict(ratio.value, ratio.target)))
    target.print(_description(result), markup=False, highlight=False)
    if result.machine["load"] > result.machine["cores"] / 2:
        target.print("The machine was busy before the run: do not quote these numbers.", style="yellow")
    for error in result.errors:
        target.print(f"failed: {error}", style="red", markup=False, highlight=False)


def _description(result: Report) -> str:
    about, settings = result.machine, result.settings
    java = f", Java {about['java']}" if about["java"] else ""
    return (
        f"{about['cores']} cores ({about['machine']}), load {about['load']:.1f} at the start, {about['platform']}\n"
        f"{about['python']}{java}, {', '.join(result.clients)}; broker {result.broker}\n"
        f"{settings.size} characters a message, best of {settings.rounds}, {result.seconds:.0f} s in all"
    )

"""Writes the report for a browser. It is one file that includes plotly's script, because it must open without a
network.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

from pyjmsack.extras import missing_extra
from pyjmsack.spark.audit.findings import Audit

__all__ = ["looked_into", "write_page"]

_STYLE = (
    ":root{color-scheme:light dark}body{font-family:sans-serif;margin:1em auto;max-width:70em;padding:0 1em}"
    "div.table{overflow-x:auto}td,th{padding:.2em .6em;text-align:left;vertical-align:top}"
    ".number{text-align:right;white-space:nowrap}pre{overflow-x:auto}"
    "@media(max-width:30em){body{padding:0 .4em}td,th{padding:.2em}}"
)
_LOOK = {
    # these greys are readable on the light page and on the dark one
    "font_color": "#888",
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "margin": {"l": 70, "r": 10, "t": 60, "b": 60},
    # the legend is below the chart, because the screen of a telephone has no room beside the chart
    "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
    "showlegend": True,
}
_AXES = {"gridcolor": "rgba(128,128,128,.3)", "linecolor": "#888", "zeroline": False}
_MARGIN = 1.2
"""The factor between the highest value of a chart and the end of its axis. A logarithmic axis has this margin at both
ends.
"""
_NAMED = 4
"""The largest number of outages with names. With more outages only the numbers are written, because the names would
overlap."""


def write_page(audit: Audit, path: Path) -> None:
    """Write the report.

    Args:
        audit: the findings.
        path: the HTML file; an old file is replaced.

    Raises:
        ImportError: plotly is not installed.
        OSError: the file cannot be written.
    """
    try:
        from plotly.io import to_html
    except ImportError as missing:
        raise ImportError(missing_extra("spark", "The page of an audit", missing)) from missing

    config = {"responsive": True, "displayModeBar": False}
    figures = (_timeline(audit), _distribution(audit))
    charts = [to_html(figure, config, full_html=False, include_plotlyjs=not n) for n, figure in enumerate(figures)]
    path.write_text(
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width,initial-scale=1'>"
        f"<title>pyjmsack audit</title><style>{_STYLE}</style></head><body><h1>{audit.verdict}</h1>"
        f"{_summary(audit)}{_findings(audit)}{''.join(charts)}{_latencies(audit)}{_suspects(audit)}</body></html>",
        encoding="utf-8",
    )


def _timeline(audit: Audit) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure()
    # the dashes differ, because one line may cover the other line
    for name, dash in (("sends", "solid"), ("receives", "dot")):
        points = [(time, rate) for time, table, rate in audit.timeline if table == name]
        times, rates = [time for time, _ in points], [rate for _, rate in points]
        figure.add_scatter(x=times, y=rates, name=name, mode="lines", line_dash=dash)
    for number, outage in enumerate(audit.outages, 1):
        few = len(audit.outages) <= _NAMED
        figure.add_vrect(
            x0=outage.start,
            x1=outage.end,
            fillcolor="red",
            opacity=0.3,
            line_width=1,  # a border, because a short outage would be invisible without one
            line_color="red",
            annotation_text=f"outage {number}, {outage.seconds:.1f} s" if few else str(number),
            annotation_position="top left",
        )
    if audit.outages:  # an empty line for the legend, because areas have no entries there
        square = {"color": "red", "symbol": "square", "size": 12, "opacity": 0.3}
        name = "outage: from the loss of a connection until it was restored"
        figure.add_scatter(x=[None], y=[None], name=name, mode="markers", marker=square)
    _mark_kills(figure, audit)
    most = max((rate for _, _, rate in audit.timeline), default=1)
    figure.update_layout(title="Messages per second", **_LOOK)
    figure.update_xaxes(title="time, UTC", **_AXES)
    figure.update_yaxes(title="messages/s", range=[0, most * _MARGIN], **_AXES)
    return figure


def _mark_kills(figure: Any, audit: Audit) -> None:
    for moment, _ in audit.kills:
        figure.add_vline(x=moment, line_color="#888", line_dash="dash", line_width=1)
    if audit.kills:  # an empty line for the legend, because vertical lines have no entries there
        name = "the last row of a connection that was not closed: killed, or still open"
        line = {"color": "#888", "dash": "dash", "width": 1}
        figure.add_scatter(x=[None], y=[None], name=name, mode="lines", line=line)


def _distribution(audit: Audit) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure()
    ends = [seconds for latency in audit.latencies for seconds in latency.buckets]
    for latency in audit.latencies:
        # the line goes from 0 to 100 %, because a single bucket must make a line too
        shares = [100 * passed / latency.count for passed in accumulate(latency.buckets.values())]
        times = [min(ends) / _MARGIN, *latency.buckets, max(ends) * _MARGIN]
        name = f"{latency.mode}, {latency.protocol}, {latency.phase}"
        figure.add_scatter(
            x=[1000 * seconds for seconds in times], y=[0, *shares, 100], name=name, mode="lines", line_shape="hv"
        )
    figure.update_layout(title="From the send to the first delivery", **_LOOK)
    figure.update_xaxes(type="log", title="milliseconds, at most", **_AXES)
    figure.update_yaxes(title="% of the messages", range=[0, 105], **_AXES)
    return figure


def _summary(audit: Audit) -> str:
    lines = [", ".join(audit.paths)]
    for name, outcomes in (("sends", audit.sends), ("receives", audit.receives)):
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items())
        lines.append(f"{name}: {counts or 'none'}")
    lines += looked_into(audit)
    if audit.unclosed:
        lines.append(f"connections that were not closed: {len(audit.unclosed)}")
    if audit.next_step is not None:
        lines.append(audit.next_step)
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def looked_into(audit: Audit) -> list[str]:
    """Return lines of text about the queues that the audit looked into."""
    look = audit.look
    if look is None:
        return []
    seen = ", ".join(f"{name} ({count:,})" for name, count in look.seen.items()) or "none"
    lines = [f"queues that were looked into, with the messages that were seen: {seen}"]
    if look.absent:
        lines.append(f"queues that the broker does not have: {', '.join(look.absent)}")
    if look.hidden:
        lines.append(
            f"messages in these queues that no browser shows (held by consumers, scheduled, too many): {look.hidden:,}"
        )
    if look.hidden is None:
        lines.append(f"whether the queues have more messages is not known, because {look.reason}")
    return lines


def _findings(audit: Audit) -> str:
    rows = [(one.name, one.title, f"{one.count:,}") for one in audit.findings.values()]
    return _table("findings", ("finding", "meaning"), ("messages",), rows)


def _latencies(audit: Audit) -> str:
    rows = []
    for one in audit.latencies:
        times = (f"{1000 * seconds:,.1f}" for seconds in (one.p50, one.p90, one.p99, one.max))
        rows.append((one.mode, one.protocol, one.phase, f"{one.count:,}", *times))
    numbers = ("messages", "p50 ms", "p90 ms", "p99 ms", "max ms")
    return _table("latencies", ("acknowledge mode", "protocol", "when"), numbers, rows)


def _suspects(audit: Audit) -> str:
    parts = (
        f"<details><summary>{finding.name}: {len(finding.ids)} of {finding.count:,}</summary><pre>"
        f"{escape(chr(10).join(finding.ids))}</pre></details>"
        for finding in audit.findings.values()
        if finding.ids
    )
    return "".join(parts)


def _table(name: str, texts: tuple[str, ...], numbers: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return an HTML table. Its last columns have numbers."""
    styles = [""] * len(texts) + [" class='number'"] * len(numbers)

    def line(tag: str, cells: tuple[str, ...]) -> str:
        inside = (f"<{tag}{style}>{escape(cell)}</{tag}>" for cell, style in zip(cells, styles, strict=True))
        return f"<tr>{''.join(inside)}</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<div class='table'><table id='{name}'>{line('th', texts + numbers)}{body}</table></div>"

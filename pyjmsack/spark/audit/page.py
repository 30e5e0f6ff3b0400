"""The report for a browser: one file with everything in it, plotly's script too, so that it opens without a network."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from pyjmsack.spark.audit.findings import Audit

__all__ = ["write_page"]

_STYLE = (
    "body{font-family:sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:right}td:first-child{text-align:left}"
)


def write_page(audit: Audit, path: Path) -> None:
    """Write the report.

    Args:
        audit: what was found.
        path: the HTML file; one that is there is replaced.

    Raises:
        ImportError: plotly is not installed.
        OSError: the file cannot be written.
    """
    try:
        from plotly.io import to_html
    except ImportError as missing:
        raise ImportError(f"{missing}; the report needs: pip install 'pyjmsack[spark]'") from missing

    figures = (_timeline(audit), _distribution(audit))
    charts = [to_html(figure, full_html=False, include_plotlyjs=not n) for n, figure in enumerate(figures)]
    verdict = "Nothing is lost." if audit.ok else f"{audit.lost:,} lost, {audit.findings['torn'].count:,} torn."
    path.write_text(
        f"<!doctype html><html><head><meta charset='utf-8'><title>pyjmsack audit</title><style>{_STYLE}</style></head>"
        f"<body><h1>{verdict}</h1><p>{escape(', '.join(audit.paths))}</p>{_findings(audit)}{''.join(charts)}"
        f"{_latencies(audit)}{_suspects(audit)}</body></html>",
        encoding="utf-8",
    )


def _timeline(audit: Audit) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure()
    for name in ("sends", "receives"):
        points = [(time, rate) for time, table, rate in audit.timeline if table == name]
        figure.add_scatter(x=[time for time, _ in points], y=[rate for _, rate in points], name=name, mode="lines")
    for number, outage in enumerate(audit.outages, 1):
        figure.add_vrect(
            x0=outage.start,
            x1=outage.end,
            fillcolor="red",
            opacity=0.2,
            annotation_text=f"outage {number}, {outage.seconds:.1f} s",
        )
    figure.update_layout(title="Messages per second", yaxis_title="messages/s")
    return figure


def _distribution(audit: Audit) -> Any:
    import plotly.graph_objects as go

    figure = go.Figure()
    for latency in audit.latencies:
        milliseconds = [1000 * seconds for seconds in latency.buckets]
        name = f"{latency.mode}, {latency.protocol}, {latency.phase}"
        shares = [100 * count / latency.count for count in latency.buckets.values()]
        figure.add_scatter(x=milliseconds, y=shares, name=name, mode="lines", line_shape="hvh", fill="tozeroy")
    figure.update_layout(title="From the send to the first delivery", yaxis_title="% of the messages")
    figure.update_xaxes(type="log", title="milliseconds")
    return figure


def _findings(audit: Audit) -> str:
    return _table(("", "messages"), [(f"{f.name}: {f.title}", f"{f.count:,}") for f in audit.findings.values()])


def _latencies(audit: Audit) -> str:
    headings = ("mode", "protocol", "phase", "messages", "p50 ms", "p90 ms", "p99 ms", "max ms")
    rows = []
    for one in audit.latencies:
        times = (f"{1000 * seconds:,.1f}" for seconds in (one.p50, one.p90, one.p99, one.max))
        rows.append((one.mode, one.protocol, one.phase, f"{one.count:,}", *times))
    return _table(headings, rows)


def _suspects(audit: Audit) -> str:
    parts = (
        f"<details><summary>{finding.name}: {len(finding.ids)} of {finding.count:,}</summary><pre>"
        f"{escape(chr(10).join(finding.ids))}</pre></details>"
        for finding in audit.findings.values()
        if finding.ids
    )
    return "".join(parts)


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"

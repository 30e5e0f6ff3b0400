"""Draws the sequence charts of the pages: what is text in the source is an SVG on the site. It needs no other library.

A chart has two life lines, written ``|``. An arrow joins them: ``|--- message -->|`` or ``|<-- answer --|``.
All other words stay where they are, and ``<-- words`` at the end of a row is a remark.
"""

from __future__ import annotations

import re
from html import escape

__all__ = ["charts_drawn"]

_CELL, _ROW = 8.2, 24
_CHART = re.compile(r"^```text\n((?:.*\n)*?)```$", re.MULTILINE)
_ARROW = re.compile(r"\|(<?)-+ (.+?) -+(>?)\|")
_REMARK = re.compile(r"<-- (.+)$")
_WORDS = re.compile(r"[^\s|]+(?: [^\s|]+)*")
_RED = "#c0392b"


def charts_drawn(page: str) -> str:
    """Return the text of a page with its charts as SVG. Other blocks of text stay."""
    return _CHART.sub(lambda found: _drawn(found[1]) if _ARROW.search(found[1]) else found[0], page)


def _drawn(chart: str) -> str:
    rows = chart.splitlines()
    width = (max(map(len, rows)) + 2) * _CELL
    parts = [part for number, row in enumerate(rows) for part in _row(row, number * _ROW, number == 0)]
    title = escape(" ".join(chart.split()))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {len(rows) * _ROW + 4}" role="img"'
            f' aria-label="{title}" style="max-width: {width:.0f}px" font-family="ui-monospace, monospace"'
            ' font-size="13.6" fill="currentColor" stroke="none">',
            *parts,
            "</svg>",
        ]
    )


def _row(row: str, top: int, heading: bool) -> list[str]:
    """Return what stands in one row, from ``top`` to ``top`` + ``_ROW``."""
    base, parts = top + 17, []
    for found in re.finditer(r"\|", row):
        parts.append(_line(_x(found.start()), top, _x(found.start()), top + _ROW))
    remark = None if _ARROW.search(row) and row.rstrip().endswith("|") else _REMARK.search(row, row.rfind("|") + 1)
    if remark is not None:
        parts.append(_text(remark.start(), base, f"◂ {remark[1]}", f' fill="{_RED}"'))
        row = row[: remark.start()]
    if (arrow := _ARROW.search(row)) is not None:
        start, end, y = _x(arrow.start()), _x(arrow.end() - 1), top + 20
        tip, back = (start, 7) if arrow[1] else (end, -7)
        parts.append(_line(start, y, end, y))
        parts.append(f'<path d="M{tip:.1f} {y}l{back} -4v8z"/>')
        parts.append(_text((arrow.start() + arrow.end() - 1) / 2, top + 14, arrow[2], ' text-anchor="middle"'))
        row = row[: arrow.start()] + " " * len(arrow[0]) + row[arrow.end() :]
    weight = ' font-weight="700"' if heading else ""
    parts.extend(_text(found.start(), base, found[0], weight) for found in _WORDS.finditer(row))
    return parts


def _x(column: float) -> float:
    """Return the middle of a column."""
    return (column + 0.5) * _CELL


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path d="M{x:.1f} {y}L{to_x:.1f} {to_y}" stroke="currentColor" stroke-width="1.4"/>'


def _text(column: float, y: int, words: str, more: str) -> str:
    place = _x(column) if "middle" in more else column * _CELL
    return f'<text x="{place:.1f}" y="{y}"{more} xml:space="preserve">{escape(words)}</text>'

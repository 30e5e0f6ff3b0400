"""Line charts as SVG, one above the other, each with its own words at the lines' ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

WIDTH, HEIGHT = 840, 300
_LEFT, _RIGHT, _TOP, _FLOOR = 84, 590, 48, 250
_COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#666666")
_STEPS = 4
_LINE = 17
"""The least distance of two names, so that they do not overlap."""


@dataclass(frozen=True)
class Panel:
    """One chart: its ticks from left to right, and a value for each tick of each line; ``None`` leaves a gap."""

    title: str
    ticks: Sequence[str]
    lines: Mapping[str, Sequence[float | None]]


def draw(panels: Sequence[Panel], note: str) -> str:
    """Return a picture of the charts, with a note below."""
    height = HEIGHT * len(panels) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#222">',
        f"<title>{escape('; '.join(panel.title for panel in panels))}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>',
    ]
    for place, panel in enumerate(panels):
        parts.append(f'<g transform="translate(0 {place * HEIGHT})">')
        parts += _chart(panel)
        parts.append("</g>")
    parts.append(_text(_LEFT, height - 12, note))
    return "\n".join([*parts, "</svg>", ""])


def _chart(panel: Panel) -> list[str]:
    top = _nice(max((value for line in panel.lines.values() for value in line if value is not None), default=1.0))
    parts = [_text(_LEFT, 24, panel.title, 'font-weight="600"')]
    for step in range(_STEPS + 1):
        y = _FLOOR - (_FLOOR - _TOP) * step / _STEPS
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{top * step / _STEPS:,.10g}", 'text-anchor="end"'))
    across = [_LEFT + (_RIGHT - _LEFT) * place / max(1, len(panel.ticks) - 1) for place in range(len(panel.ticks))]
    parts += [_text(x, _FLOOR + 20, tick, 'text-anchor="middle"') for x, tick in zip(across, panel.ticks, strict=True)]
    ends: list[tuple[float, str, str]] = []
    for number, (name, line) in enumerate(panel.lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [
            (x, _FLOOR - (_FLOOR - _TOP) * value / top)
            for x, value in zip(across, line, strict=True)
            if value is not None
        ]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        if points:
            ends.append((points[-1][1], name, colour))
    return [*parts, *_names(ends)]


def _names(ends: list[tuple[float, str, str]]) -> list[str]:
    """Return the names of the lines beside their ends, moved down where two would overlap."""
    parts, free = [], float(_TOP) - _LINE
    for y, name, colour in sorted(ends):
        free = max(y + 4, free + _LINE)
        parts.append(_text(_RIGHT + 12, free, name, f'fill="{colour}"'))
    return parts


def _nice(value: float) -> float:
    """Return the next number that divides well into four steps."""
    unit = 10.0 ** floor(log10(value)) if value > 0 else 1.0
    return next(unit * factor for factor in (1, 2, 4, 6, 8, 10, 20) if unit * factor >= value)


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'

"""Draw the bar charts of the figures in docs/images from benchmarks/results. Run it with ``make pictures``.

There is one file for light and one for dark pages.

It also writes the chart's description into README.md and the pages that show it. `tests/docs/test_pictures.py` compares
the files with what this draws.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "images"
RESULTS = ROOT / "benchmarks" / "results" / "results-3.11.json"
PAGES = {
    "README.md": "https://raw.githubusercontent.com/funcmcp/funcmcp/main/docs/images",
    "docs/index.md": "images",
    "docs/explanation/figures.md": "../images",
}
"""The pages with the chart, and the address of docs/images from there."""

BEGIN, END = "<!-- chart: begin, written by make pictures -->", "<!-- chart: end -->"
_WIDTH, _MARGIN, _LABELS, _VALUES, _ROW, _TITLE, _GAP = 640, 18, 150, 90, 24, 30, 14
_KIB = 1024


@dataclass(frozen=True)
class Colours:
    """The colours of a chart.

    Attributes:
        paper: Background.
        ink: Text.
        bar: Bars of funcmcp.
        others: Bars of other libraries.
    """

    paper: str
    ink: str
    bar: str
    others: str


THEMES = {
    "figures-light.svg": Colours("#ffffff", "#1b2a3a", "#1d5fd1", "#768494"),
    "figures-dark.svg": Colours("#131416", "#e6edf3", "#5b9bff", "#7d8b9a"),
}
"""The colours of each file."""


@dataclass(frozen=True)
class Bar:
    """A bar of a chart.

    Attributes:
        label: What was measured.
        value: The length.
        text: The value as readers see it.
    """

    label: str
    value: float
    text: str


@dataclass(frozen=True)
class Chart:
    """Bars with one scale.

    Attributes:
        title: What the bars show.
        better: Whether longer or shorter bars are better.
        bars: From top to bottom.
    """

    title: str
    better: str
    bars: tuple[Bar, ...]


@cache
def results() -> dict[str, Any]:
    """Return the results of the benchmarks with Python 3.11."""
    decoded: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return decoded


def measurement(kind: str, **columns: object) -> dict[str, Any]:
    """Return the measurement of a kind that has these values."""
    rows: list[dict[str, Any]] = results()["measurements"][kind]
    return next(row for row in rows if columns.items() <= row.items())


def charts() -> list[Chart]:
    """Return the charts, from top to bottom."""
    eras = ("2025-11-25", "2026-07-28")
    starts = measurement("starts", tools=1000)["milliseconds"]
    memory = measurement("memory", era=eras[0])["resident_kib"]
    return [
        *(_calls(era) for era in eras),
        Chart(
            "Start of the process to the first answered call, 1,000 tools",
            "shorter is better",
            _bars({name: starts[name] / 1000 for name in ("funcmcp", "mcp", "fastmcp")}, "{:.2f} s"),
        ),
        Chart(
            "Memory of the process after 50,000 calls",
            "shorter is better",
            _bars({name: memory[name][-1] / _KIB for name in ("funcmcp", "mcp", "fastmcp")}, "{:.0f} MiB"),
        ),
    ]


def _calls(era: str) -> Chart:
    row = measurement("calls", tool="add", era=era, connections=16, function="async")["answers_per_second"]
    values = {name: row[name] for name in ("funcmcp run", "funcmcp", "mcp", "fastmcp")}
    return Chart(f"Calls per second, protocol {era}", "longer is better", _bars(values, "{:,.0f}"))


def _bars(values: Mapping[str, float], form: str) -> tuple[Bar, ...]:
    versions = results()["versions"]
    labels = {
        "funcmcp": "funcmcp in uvicorn",
        "mcp": f"official SDK {versions['mcp']}",
        "fastmcp": f"FastMCP {versions['fastmcp']}",
    }
    return tuple(Bar(labels.get(name, name), value, form.format(value)) for name, value in values.items())


def description() -> str:
    """Return the charts as sentences, for readers who do not see them."""
    return " ".join(
        f"{chart.title}: {', '.join(f'{bar.label} {bar.text}' for bar in chart.bars)}." for chart in charts()
    )


def draw(colours: Colours) -> str:
    """Return the charts as SVG."""
    parts: list[str] = []
    top = _MARGIN
    for chart in charts():
        parts.extend(_chart(chart, top, colours))
        top += _TITLE + _ROW * len(chart.bars) + _GAP
    machine, python = escape(results()["machine"]), escape(results()["python"])
    note = f"{machine}, Python {python}; calls with 16 connections. Measured by benchmarks/run.py."
    parts.append(_text(_MARGIN, top + 8, note, colours, 'font-size="11"'))
    height = top + 8 + _MARGIN
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    font = 'font-family="Verdana, DejaVu Sans, sans-serif" font-size="12"'
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title desc" {font}>',
        '<title id="title">funcmcp, the official SDK and FastMCP in figures</title>',
        f'<desc id="desc">{escape(description())}</desc>',
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="{colours.paper}"/>',
    ]
    return "\n".join([*head, *parts, "</svg>"]) + "\n"


def _chart(chart: Chart, top: int, colours: Colours) -> list[str]:
    longest = max(bar.value for bar in chart.bars)
    scale = (_WIDTH - 2 * _MARGIN - _LABELS - _VALUES) / longest
    parts = [
        _text(_MARGIN, top + 14, chart.title, colours, 'font-weight="bold" font-size="13"'),
        _text(_WIDTH - _MARGIN, top + 14, chart.better, colours, 'text-anchor="end" font-size="11"'),
    ]
    for index, bar in enumerate(chart.bars):
        y = top + _TITLE + _ROW * index
        start = _MARGIN + _LABELS
        length = max(2, round(bar.value * scale))
        colour = colours.bar if bar.label.startswith("funcmcp") else colours.others
        parts += [
            _text(_MARGIN, y + 12, bar.label, colours),
            f'<rect x="{start}" y="{y}" width="{length}" height="16" rx="2" fill="{colour}"/>',
            _text(start + length + 8, y + 12, bar.text, colours, 'font-weight="bold"'),
        ]
    return parts


def _text(x: int, y: int, text: str, colours: Colours, attributes: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{colours.ink}"{" " * bool(attributes)}{attributes}>{escape(text)}</text>'


def with_chart(page: str, text: str) -> str:
    """Return the text of a page with the chart between its markers.

    Args:
        page: Its path from the root of the repository.
        text: Its text.
    """
    folder = PAGES[page]
    light, dark = (f"{folder}/{name}" for name in THEMES)
    if page == "README.md":
        shown = (
            f'<picture>\n<source media="(prefers-color-scheme: dark)" srcset="{dark}">\n'
            f'<img src="{light}" width="{_WIDTH}" alt="{escape(description())}">\n</picture>'
        )
    else:
        shown = f"![{description()}]({light})"
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n\n{shown}\n\n{END}", text)


def main() -> None:
    """Write the files."""
    for name, colours in THEMES.items():
        (FOLDER / name).write_text(draw(colours), encoding="utf-8")
        sys.stdout.write(f"{(FOLDER / name).relative_to(ROOT)}\n")
    for page in PAGES:
        path = ROOT / page
        path.write_text(with_chart(page, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

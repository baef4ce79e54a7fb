"""The pictures of the command line, the diagrams and the charts in docs/images are those that `make pictures` draws."""

from __future__ import annotations

import re
import sys

import pytest

from scripts import charts, diagrams
from scripts.pictures import FOLDER, draw


@pytest.mark.slow("All pictures are drawn.")
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="one of the commands prints the version of Python")
def test_the_pictures_are_up_to_date() -> None:
    pictures = draw()
    assert pictures == {name: (FOLDER / name).read_text(encoding="utf-8") for name in pictures}, "Run: make pictures"
    assert "Lentil soup" in pictures["call.svg"].replace("&#160;", " ")
    assert "must&#160;be&#160;at&#160;most" in pictures["call.svg"]


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_a_diagram_is_up_to_date_and_on_a_page(name: str) -> None:
    drawn = diagrams.draw(diagrams.DIAGRAMS[name])
    assert (FOLDER / name).read_text(encoding="utf-8") == drawn, "Run: make pictures"
    pages = [path.read_text(encoding="utf-8") for path in FOLDER.parent.rglob("*.md")]
    assert any(f"/{name})" in page for page in pages)


@pytest.mark.parametrize("name", charts.THEMES)
def test_a_chart_is_up_to_date(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == charts.draw(charts.THEMES[name]), "Run: make pictures"


@pytest.mark.parametrize("page", charts.PAGES)
def test_a_page_has_the_chart_with_its_values_as_text(page: str) -> None:
    text = (charts.ROOT / page).read_text(encoding="utf-8")
    assert charts.with_chart(page, text) == text, "Run: make pictures"
    assert "funcmcp run" in text.partition(charts.BEGIN)[2].partition(charts.END)[0]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as "#1d5fd1" (WCAG 2.2)."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours (WCAG 2.2)."""
    darker, lighter = sorted((luminance(first), luminance(second)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("name", charts.THEMES)
def test_a_chart_can_be_read_by_everybody(name: str) -> None:
    colours = charts.THEMES[name]
    assert contrast(colours.ink, colours.paper) >= 4.5
    assert min(contrast(bar, colours.paper) for bar in (colours.bar, colours.others)) >= 3
    svg = (FOLDER / name).read_text(encoding="utf-8")
    values = [bar for chart in charts.charts() for bar in chart.bars]
    for bar in values:
        assert f">{bar.label}</text>" in svg
        assert f">{bar.text}</text>" in svg
    assert svg.count("<rect ") == len(values) + 1
    assert re.search(r'role="img" aria-labelledby="title desc"', svg)
    longest = max(float(x) for x in re.findall(r'<text x="(\d+)"[^>]*font-weight="bold">[\d.,]+[^<]*<', svg))
    assert longest <= 640 - 80  # room for a value beside its bar

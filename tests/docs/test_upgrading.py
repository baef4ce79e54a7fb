"""The public names of the last version: what breaks code is in the table of docs/reference/upgrading.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from funcmcp import __version__
from scripts.public_api import Break, breaks, public_api

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "upgrading.md").read_text(encoding="utf-8")
LAST = "0.1"
"""The last version that was released, whose public names are in tests/data/public_api."""

NEXT = "0.2"


def names_of(version: str) -> list[str]:
    """Return the public names of a version."""
    return (ROOT / "tests" / "data" / "public_api" / f"{version}.txt").read_text(encoding="utf-8").splitlines()


def test_each_break_is_in_the_table_with_what_to_write_instead() -> None:
    table = PAGE.partition(f"## From {LAST} to {NEXT}\n")[2]
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    assert {Break(name, change) for name, change, _ in rows} == set(breaks(names_of(LAST), public_api())), (
        "A public name or parameter changed. Keep the old one with a DeprecationWarning, or add a row to "
        "docs/reference/upgrading.md."
    )


def test_the_table_is_for_the_version_that_comes_next() -> None:
    assert __version__.startswith((LAST, NEXT)), "Write the names of the last version, and set LAST and NEXT."


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("m.f(a, b=...)", "m.f(a, b=..., *, c=...)", []),
        ("m.f(a, b=...)", "m.f(a, *, b=...)", ["parameter b: has another place, or none"]),
        (
            "m.f(a, b)",
            "m.f(b, a)",
            ["parameter a: has another place, or none", "parameter b: has another place, or none"],
        ),
        ("m.f(*, a=...)", "m.f()", ["parameter a: removed"]),
        ("m.f(*, a=...)", "m.f(**options)", []),
        ("m.f(*, a=...)", "m.f(*, a)", ["parameter a: has no default"]),
        ("m.f()", "m.f(a)", ["parameter a: is new and has no default"]),
        ("m.f()", "m.f(*, a)", ["parameter a: is new and has no default"]),
        ("m.f(a)", "m.f(a, /)", ["parameter a: has no name"]),
        ("m.f(**options)", "m.f()", ["parameter options: removed"]),
        ("m.f(*arguments)", "m.f(*values)", []),
        ("m.f(a, _)", "m.f(a)", []),
        ("m.f(self, a)", "m.f(a)", []),
        ("m.f(**options){a, b}", "m.f(**options){b, c}", ["option a: removed"]),
        ("m.f(**options){a}", "m.f(a=..., **options){b}", []),
        ("m.f(a)", "m.f", ["can't be called"]),
        ("m.value", "m.value(a)", []),
        ("m.value", "m.other", ["removed"]),
    ],
)
def test_a_change_is_a_break_if_code_can_notice_it(before: str, after: str, changes: list[str]) -> None:
    assert [change for _, change in breaks([before], [after])] == changes


def test_a_removed_class_is_one_break() -> None:
    before = ["m.C(a)", "m.C.method(self)", "m.C.value", "m.D(a)"]
    assert breaks(before, ["m.D(a)"]) == [Break("m.C", "removed")]
    assert breaks(before, ["m.C(a)", "m.C.value", "m.D(a)"]) == [Break("m.C.method", "removed")]

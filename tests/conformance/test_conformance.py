"""The official conformance suite against the sample that offers everything, served for real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.suite import Finding, Report, disagreements, read_expected, run
from tests.serving import REPOSITORY, Served, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent

# The suite's package, its options, how many scenarios it runs, what may fail.
RUNS = [
    pytest.param("conformance-0.1", ["--suite", "all"], 32, "0.1.16.txt", id="0.1.16"),
    pytest.param(
        "conformance-0.2", ["--suite", "all", "--spec-version", "2025-06-18"], 27, "2025-06-18.txt", id="2025-06-18"
    ),
    pytest.param("conformance-0.2", ["--requirements", "2025-11-25"], 33, "2025-11-25.txt", id="2025-11-25"),
    pytest.param("conformance-0.2", ["--requirements", "2026-07-28"], 50, "2026-07-28.txt", id="2026-07-28"),
]


@pytest.fixture(scope="module")
def everything() -> Iterator[Served]:
    with serve(REPOSITORY / "samples/everything/server.py") as served:
        yield served


@pytest.mark.parametrize(("suite", "options", "scenarios", "expected"), RUNS)
def test_every_scenario_passes_but_those_of_issues_to_come(
    suite: str, options: list[str], scenarios: int, expected: str, *, everything: Served, tmp_path: Path
) -> None:
    report = run(suite, everything.url, options, tmp_path)
    assert len(report.scenarios) == scenarios
    problems = disagreements(report, read_expected(HERE / "expected_failures" / expected))
    assert not problems, "\n" + "\n".join(problems)
    # The suite takes a tool's failure for an answer where it only wants to see the question.
    assert not [line for line in everything.output if "exception=" in line]


REPORT = Report(frozenset({"a", "b"}), (Finding("a", "x", "FAILURE", "why"), Finding("a", "y", "WARNING", "hm")))


@pytest.mark.parametrize(
    ("expected", "starts"),
    [
        (["a"], []),
        (["a:x", "a:y"], []),
        (["a:x"], ["WARNING a:y"]),
        ([], ["FAILURE a:x", "WARNING a:y"]),
        (["a", "b"], ["STALE b"]),
        (["a", "c"], ["STALE c"]),
        (["a", "b:x"], ["STALE b:x"]),
    ],
)
def test_unexpected_failures_and_stale_entries_are_told(expected: list[str], starts: list[str]) -> None:
    found = disagreements(REPORT, expected)
    assert [line[: len(start)] for line, start in zip(found, starts, strict=True)] == starts


def test_comments_and_blank_lines_are_no_entries(tmp_path: Path) -> None:
    file = tmp_path / "expected.txt"
    file.write_text("# issue 3\n\na  # why\nb:x\n", encoding="utf-8")
    assert read_expected(file) == ["a", "b:x"]

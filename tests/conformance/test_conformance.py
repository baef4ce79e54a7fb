"""The official conformance suite against the sample that offers everything, served for real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.azurite import Azurite
from tests.conformance.suite import (
    SCENARIOS,
    Finding,
    Report,
    cell,
    disagreements,
    documented,
    listed,
    read_expected,
    run,
)
from tests.postgres_server import postgres_server
from tests.redis_server import redis_server
from tests.serving import REPOSITORY, Served, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("The official suite plays all of its scenarios.")

EXPECTED = read_expected(Path(__file__).parent / "expected_failures.txt")
DOCUMENTED = (REPOSITORY / "docs" / "development" / "conformance.md").read_text(encoding="utf-8")

# The version of the suite, its options, and how many scenarios it runs.
RUNS = [
    pytest.param("0.1.16", "--suite all", 32, id="0.1.16"),
    pytest.param("0.2.0-alpha.12", "--suite all --spec-version 2025-03-26", 1, id="2025-03-26"),
    pytest.param("0.2.0-alpha.12", "--suite all --spec-version 2025-06-18", 27, id="2025-06-18"),
    pytest.param("0.2.0-alpha.12", "--requirements 2025-11-25", 33, id="2025-11-25"),
    pytest.param("0.2.0-alpha.12", "--requirements 2026-07-28", 50, id="2026-07-28"),
]


OUTCOMES = documented("Servers")


def check_outcomes(report: Report, options: str) -> None:
    """Fail unless each scenario of a run of the newest suite has the documented outcome."""
    revision = options.rpartition(" ")[2]
    expected = {name: cells[revision] for name, cells in OUTCOMES.items() if revision in cells}
    assert report.outcomes == {name: text for name, text in expected.items() if not name.startswith("sep-2640-")}


def test_each_scenario_of_the_newest_suite_is_documented_for_each_of_its_revisions() -> None:
    suite = listed()
    names = {"Servers": "Server", "Clients": "Client", "Authorization servers": "Authorization server"}
    assert set(suite) == set(names.values())
    for section, name in names.items():
        table = documented(section)
        assert list(table) == list(suite[name])
        for scenario, dates in suite[name].items():
            assert dates == ["extension"] or list(table[scenario]) == dates, scenario


def test_no_check_fails_and_each_skipped_one_has_its_reason() -> None:
    reasons = SCENARIOS.partition("\n## Skipped checks\n")[2].partition("\n## ")[0]
    for section in ("Servers", "Clients", "Authorization servers"):
        for scenario, cells in documented(section).items():
            assert cells, scenario
            for text in cells.values():
                passed, _, others = text.partition(" / ")
                assert others == "0" or (others.endswith("skipped") and f"`{scenario}`" in reasons), (scenario, text)
                assert passed.isdigit()


@pytest.fixture(scope="module")
def everything() -> Iterator[Served]:
    with serve(REPOSITORY / "samples/everything/server.py") as served:
        yield served


@pytest.mark.parametrize(("version", "options", "scenarios"), RUNS)
def test_every_scenario_passes_but_those_of_tasks_as_the_documentation_says(
    version: str, options: str, scenarios: int, *, everything: Served, tmp_path: Path
) -> None:
    report = run(f"conformance-{version[:3]}", everything.url, options.split(), tmp_path)
    assert len(report.scenarios) == scenarios
    problems = disagreements(report, EXPECTED if "2026-07-28" in options else [])
    assert not problems, "\n" + "\n".join(problems)
    # The suite takes a tool's failure for an answer where it only wants to see the question.
    assert not [line for line in everything.output if "exception=" in line]
    row = " | ".join(["", version, f"`{options}`", *report.cells(), ""]).strip()
    assert row in DOCUMENTED, row
    if version.startswith("0.2"):
        check_outcomes(report, options)


@pytest.fixture(scope="module")
def everything_behind_sign_in() -> Iterator[Served]:
    variables = {"PYTHONPATH": str(REPOSITORY)}
    with serve(Path(__file__).parent / "behind_sign_in.py", attribute="app", env=variables) as served:
        yield served


@pytest.mark.parametrize(("version", "options", "scenarios"), RUNS[-2:])
def test_the_same_scenarios_pass_behind_an_oauth_proxy(
    version: str, options: str, scenarios: int, *, everything_behind_sign_in: Served, tmp_path: Path
) -> None:
    report = run(f"conformance-{version[:3]}", everything_behind_sign_in.url, options.split(), tmp_path)
    assert len(report.scenarios) == scenarios
    assert not disagreements(report, EXPECTED if "2026-07-28" in options else [])
    row = " | ".join(["", version, f"`{options}`", *report.cells(), ""]).strip()
    assert row in DOCUMENTED, row
    check_outcomes(report, options)


@pytest.mark.parametrize("scenario", [name for name in OUTCOMES if name.startswith("sep-2640-")])
def test_every_check_of_skills_passes_and_none_is_skipped(scenario: str, everything: Served, tmp_path: Path) -> None:
    options = ["--force", "--spec-version", "2026-07-28", "--scenario", scenario]
    report = run("conformance-0.2", everything.url, options, tmp_path)
    assert report.outcomes == {scenario: OUTCOMES[scenario]["2026-07-28"]}
    assert "skipped" not in report.outcomes[scenario]


STORES = ("memory", "sqlite", "redis", "postgres", "azure")


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The place of a store: for SQLite a file, for others a server. Memory needs none."""
    if request.param == "redis":
        with redis_server() as redis:
            yield redis.url
    elif request.param == "postgres":
        with postgres_server() as postgres:
            yield postgres.url
    elif request.param == "azure":
        with Azurite() as azurite:
            yield azurite.connection_string
    else:
        yield str(tmp_path / "tasks.db")


@pytest.mark.parametrize(("store", "store_url"), [(name, name) for name in STORES], indirect=["store_url"])
def test_every_check_of_tasks_passes_on_each_store(store: str, store_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    variables = {"STORE": store, "STORE_URL": store_url, "PYTHONPATH": str(REPOSITORY)}
    with serve(Path(__file__).parent / "stored_tasks.py", env=variables) as served:
        report = run("conformance-0.2", served.url, ["--requirements", "2026-07-28"], folder)
    assert not disagreements(report, EXPECTED)
    assert report.cells()[-1] == "44 / 0"


REPORT = Report(frozenset({"a", "b"}), (Finding("a", "x", "FAILURE", "why"), Finding("a", "y", "WARNING", "hm")))


def test_the_table_counts_scored_scenarios_and_keeps_the_checks_of_tasks_apart() -> None:
    findings = (*REPORT.findings, Finding("tasks-x", "x", "FAILURE", "why"), Finding("c", "z", "FAILURE", "why"))
    scenarios = frozenset({"a", "b", "c", "tasks-x"})
    report = Report(scenarios, findings, ("a", "b", "b", "tasks-x"), frozenset({"c", "tasks-x"}))
    assert report.cells() == ["1 of 2", "3", "2", "1", "1 / 1"]


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


def test_an_outcome_names_what_neither_passed_nor_failed() -> None:
    assert cell(["SUCCESS", "INFO", "SUCCESS"]) == "2 / 0"
    assert cell(["FAILURE", "SKIPPED", "WARNING", "SKIPPED"]) == "0 / 1, 1 warning, 2 skipped"


def test_comments_and_blank_lines_are_no_entries(tmp_path: Path) -> None:
    file = tmp_path / "expected.txt"
    file.write_text("# issue 3\n\na  # why\nb:x\n", encoding="utf-8")
    assert read_expected(file) == ["a", "b:x"]

"""Runs the official conformance suite and compares what it found with what is expected to fail, and what is written."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.nodejs import node, package
from tests.patience import PATIENCE
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_RESULT_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_UNSCORED = re.compile(r"^  \S (\S+) \((?:extension|pending|added-after-release)\)$", re.MULTILINE)
_BAD = ("FAILURE", "WARNING")
_LISTED = re.compile(r"^  - (\S+) \[(.+)\]$", re.MULTILINE)
_ROW = re.compile(r"^\| `(\S+)` \|(.*)\|$", re.MULTILINE)
_REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
_TASKS = "tasks-"
"""How the scenarios of the tasks extension begin."""

SCENARIOS = (REPOSITORY / "docs" / "development" / "conformance-scenarios.md").read_text(encoding="utf-8")
"""The page with the result of each scenario of the newest suite."""


@dataclass(frozen=True)
class Finding:
    """One check that did not pass, of one scenario."""

    scenario: str
    check: str
    status: str
    message: str

    def __str__(self) -> str:
        return f"{self.status} {self.scenario}:{self.check}\n    {self.message}"


@dataclass(frozen=True)
class Report:
    """What a run found.

    Attributes:
        scenarios: those that ran.
        findings: checks that failed or warned.
        passed: for each check that passed, its scenario.
        unscored: scenarios that the suite does not score.
        outcomes: what `SCENARIOS` says of each scenario.
    """

    scenarios: frozenset[str]
    findings: tuple[Finding, ...]
    passed: tuple[str, ...] = ()
    unscored: frozenset[str] = frozenset()
    outcomes: Mapping[str, str] = field(default_factory=dict)

    def cells(self) -> list[str]:
        """Return what `docs/development/conformance.md` says of the run.

        That is: scored scenarios that pass; checks that passed, failed and warned; and apart from these, checks of
        the tasks extension that passed and failed.
        """
        scored = self.scenarios - self.unscored
        failed = [finding.scenario for finding in self.findings if finding.status == "FAILURE"]
        warned = [finding.scenario for finding in self.findings if finding.status == "WARNING"]
        tasks = [sum(name.startswith(_TASKS) for name in names) for names in (self.passed, failed)]
        others = [sum(not name.startswith(_TASKS) for name in names) for names in (self.passed, failed, warned)]
        passing = len(scored.difference(failed))
        return [f"{passing} of {len(scored)}", *map(str, others), " / ".join(map(str, tasks))]


def cell(statuses: Iterable[str]) -> str:
    """Return what `SCENARIOS` says of a run of a scenario: checks that passed and failed, and other outcomes."""
    counts = Counter(statuses)
    others = [f", {counts[status]} {status.lower()}" for status in ("WARNING", "SKIPPED") if counts[status]]
    return f"{counts['SUCCESS']} / {counts['FAILURE']}{''.join(others)}"


def documented(section: str) -> dict[str, dict[str, str]]:
    """Return the cells of a table in `SCENARIOS`, by scenario and revision; without those that are empty."""
    text = SCENARIOS.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = {name: [item.strip() for item in cells.split("|")] for name, cells in _ROW.findall(text)}
    return {
        name: {date: item for date, item in zip(_REVISIONS, cells, strict=False) if item}
        for name, cells in rows.items()
    }


def listed() -> dict[str, dict[str, list[str]]]:
    """Return the revisions of each scenario, by section, as the newest suite lists them."""
    script = package("conformance-0.2") / "dist" / "index.js"
    text = subprocess.run(
        [str(node()), str(script), "list"], capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout
    sections = [part.partition(" scenarios") for part in text.split("\n\n")]
    return {
        name.strip(): {scenario: dates.split(",") for scenario, dates in _LISTED.findall(scenarios)}
        for name, _, scenarios in sections
    }


def run(suite: str, url: str, options: list[str], folder: Path) -> Report:
    """Run a version of the suite against a server.

    Args:
        suite: the Node package of that version, e.g. ``"conformance-0.2"``.
        url: the endpoint.
        options: which scenarios, e.g. ``["--suite", "all"]``.
        folder: empty; the suite's results go there.

    Returns:
        All that ran. The exit code is not looked at: it leaves out the scenarios that the suite does not score.
    """
    script = package(suite) / "dist" / "index.js"
    if suite != "conformance-0.1":  # which has no such option
        options = [*options, "--timeout", str(1000 * PATIENCE)]
    finished = subprocess.run(
        [str(node()), str(script), "server", "--url", url, *options, "-o", str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=4 * PATIENCE,
        check=False,
    )
    checks = {_scenario(file): json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*/checks.json")}
    found = [_finding(name, check) for name in sorted(checks) for check in checks[name] if check["status"] in _BAD]
    passed = tuple(name for name in sorted(checks) for check in checks[name] if check["status"] == "SUCCESS")
    outcomes = {name: cell(check["status"] for check in checks[name]) for name in checks}
    return Report(frozenset(checks), tuple(found), passed, frozenset(_UNSCORED.findall(finished.stdout)), outcomes)


def disagreements(report: Report, expected: list[str]) -> list[str]:
    """Return, in words, what failed unexpectedly and which entries are stale because nothing failed.

    Args:
        report: what a run found.
        expected: entries ``scenario`` (any of its checks may fail) or ``scenario:check``.
    """
    used = set()
    lines = []
    for finding in report.findings:
        entry = next((e for e in (finding.scenario, f"{finding.scenario}:{finding.check}") if e in expected), None)
        if entry is None:
            lines.append(str(finding))
        used.add(entry)
    return lines + [f"STALE {entry}: it passes, or did not run" for entry in expected if entry not in used]


def read_expected(file: Path) -> list[str]:
    """Return the entries of a file of expected failures: one a line, ``#`` starts a comment."""
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def _scenario(file: Path) -> str:
    found = _RESULT_FOLDER.fullmatch(file.parent.name)
    assert found, f"unknown result folder {file.parent.name}"
    return found[1]


def _finding(scenario: str, check: dict[str, Any]) -> Finding:
    return Finding(scenario, check["id"], check["status"], check.get("errorMessage") or check["description"])

"""Runs the official conformance suite and compares what it found with what is expected to fail, and what is written."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.nodejs import node, package
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

_RESULT_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_UNSCORED = re.compile(r"^  \S (\S+) \((?:extension|pending|added-after-release)\)$", re.MULTILINE)
_BAD = ("FAILURE", "WARNING")
_TASKS = "tasks-"
"""How the scenarios of the tasks extension begin."""


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
    """

    scenarios: frozenset[str]
    findings: tuple[Finding, ...]
    passed: tuple[str, ...] = ()
    unscored: frozenset[str] = frozenset()

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
    finished = subprocess.run(
        [str(node()), str(script), "server", "--url", url, *options, "-o", str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    checks = {_scenario(file): json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*/checks.json")}
    found = [_finding(name, check) for name in sorted(checks) for check in checks[name] if check["status"] in _BAD]
    passed = tuple(name for name in sorted(checks) for check in checks[name] if check["status"] == "SUCCESS")
    return Report(frozenset(checks), tuple(found), passed, frozenset(_UNSCORED.findall(finished.stdout)))


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

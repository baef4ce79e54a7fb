"""Runs the official conformance suite and compares what it found with what is expected to fail."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.nodejs import node, package

if TYPE_CHECKING:
    from pathlib import Path

_RUN_SECONDS = 100
_RESULT_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_BAD = ("FAILURE", "WARNING")


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
    """What a run found: the scenarios that ran, and the checks that failed or warned."""

    scenarios: frozenset[str]
    findings: tuple[Finding, ...]


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
    subprocess.run(
        [str(node()), str(script), "server", "--url", url, *options, "-o", str(folder)],
        capture_output=True,
        timeout=_RUN_SECONDS,
        check=False,
    )
    checks = {_scenario(file): json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*/checks.json")}
    found = [_finding(name, check) for name in sorted(checks) for check in checks[name] if check["status"] in _BAD]
    return Report(frozenset(checks), tuple(found))


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

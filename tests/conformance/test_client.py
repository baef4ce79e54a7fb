"""The official conformance suite against our client: each scenario has the outcome that the documentation says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.conformance.suite import cell, documented
from tests.nodejs import node, package
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("The official suite plays all of its scenarios.")

RUNS = {
    "2025-03-26": ["--suite", "all", "--spec-version", "2025-03-26"],
    "2025-06-18": ["--suite", "all", "--spec-version", "2025-06-18"],
    "2025-11-25": ["--requirements", "2025-11-25"],
    "2026-07-28": ["--requirements", "2026-07-28"],
}
"""Runs of the suite by the revision of the client. Requirements contain the extensions of signing in."""

DOCUMENTED = documented("Clients")
SKILLS = "sep-2640-"
"""How the scenarios begin that belong to no revision, and that the runs leave out."""

_TURN = "$(case $MCP_CONFORMANCE_SCENARIO in (auth/wif-*|auth/enterprise-*) echo 2;; (*) echo $(( $$ / 2 % 2 ));; esac)"
"""The lock for which a client waits, in the language of the shell with which the suite starts it."""

_RESULT_FOLDER = re.compile(r"(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


def run_suite(folder: Path, *options: str) -> str:
    """Run the suite against our client; return what it prints.

    The suite starts the clients of all scenarios at once. On a machine with few cores, some would reach the time limits
    of their requests, so two of them run at a time, beside those whose tokens would expire while they wait.
    """
    turn = f"flock {folder}/turn-{_TURN} " if shutil.which("flock") else ""
    command = f"{turn}{sys.executable} -m tests.conformance.our_client"
    script = package("conformance-0.2") / "dist" / "index.js"
    arguments = ["client", "--command", command, "--timeout", "500000", "-o", str(folder), *options]
    ended = subprocess.run(
        [str(node()), str(script), *arguments], capture_output=True, text=True, timeout=580, check=False, cwd=REPOSITORY
    )
    return ended.stdout + ended.stderr


def outcomes_in(folder: Path) -> dict[str, str]:
    """Return the outcome of each scenario of a run."""
    outcomes = {}
    for file in folder.rglob("checks.json"):
        match = _RESULT_FOLDER.fullmatch(file.parent.relative_to(folder).as_posix())
        assert match, file
        outcomes[match[1]] = cell(check["status"] for check in json.loads(file.read_text(encoding="utf-8")))
    return outcomes


@pytest.mark.parametrize("revision", RUNS)
def test_each_scenario_of_a_revision_has_the_documented_outcome(revision: str, tmp_path: Path) -> None:
    output = run_suite(tmp_path, *RUNS[revision])
    expected = {name: cells[revision] for name, cells in DOCUMENTED.items() if revision in cells}
    assert outcomes_in(tmp_path) == {name: text for name, text in expected.items() if not name.startswith(SKILLS)}, (
        output[-3000:]
    )


def test_our_client_passes_all_scenarios_of_skills(tmp_path: Path) -> None:
    names = [name for name in DOCUMENTED if name.startswith(SKILLS)]
    options = ("--spec-version", "2026-07-28", "--force", "--scenario")
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda name: run_suite(tmp_path, *options, name), names))
    assert outcomes_in(tmp_path) == {name: DOCUMENTED[name]["2026-07-28"] for name in names}, "\n".join(outputs)[-3000:]

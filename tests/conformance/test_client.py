"""The official conformance suite against our client: signing in, and the choice of a revision."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.nodejs import node, package
from tests.serving import REPOSITORY

HERE = Path(__file__).parent
# The suite "auth" is of 2025-11-25. These are what revision 2026-07-28 requires of an OAuth client beside it, and what
# servers of 2025-03-26 need.
FURTHER = (
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
    "2025-03-26-oauth-metadata-backcompat",
    "2025-03-26-oauth-endpoint-fallback",
)
SUITE = 14


NEGOTIATION = 8


def run_suite(folder: Path, *options: str) -> str:
    """Run the suite against our client; return what it prints."""
    script = package("conformance-0.2") / "dist" / "index.js"
    command = [str(node()), str(script), "client", "--command", f"{sys.executable} {HERE / 'our_client.py'}"]
    command += ["--timeout", "200000", "-o", str(folder), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=REPOSITORY)
    return ended.stdout + ended.stderr


def checks_in(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Return the checks of a run, by scenario."""
    return {file.parent.name: json.loads(file.read_text()) for file in folder.rglob("checks.json")}


def test_our_client_passes_all_scenarios_of_signing_in(tmp_path: Path) -> None:
    runs = [("--suite", "auth"), *(("--scenario", f"auth/{name}") for name in FURTHER)]
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda options: run_suite(tmp_path, *options), runs))
    checks = checks_in(tmp_path)
    failed = [
        (name, check["id"], check.get("errorMessage"))
        for name, scenario in checks.items()
        for check in scenario
        if check["status"] in {"FAILURE", "WARNING"}
    ]
    assert (failed, len(checks)) == ([], SUITE + len(FURTHER)), "\n".join(outputs)[-3000:]


def test_our_client_chooses_a_revision_that_the_server_names(tmp_path: Path) -> None:
    output = run_suite(tmp_path, "--scenario", "request-metadata")
    statuses = [check["status"] for checks in checks_in(tmp_path).values() for check in checks]
    assert statuses == ["SUCCESS"] * NEGOTIATION, output[-3000:]

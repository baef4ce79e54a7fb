"""The official conformance suite against our client: signing in, and the choice of a revision."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.nodejs import node, package
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("The official suite plays all of its scenarios.")

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


EXTENSIONS = (
    "client-credentials-basic",
    "client-credentials-jwt",
    "wif-jwt-bearer",
    "enterprise-managed-authorization",
    "dpop",
    "dpop-nonce",
)
"""The scenarios of programs, and of tokens that are bound to a key."""

REVISIONS = ("2025-11-25", "2026-07-28")
NEGOTIATION = 8


# Checks passed, by scenario and revision. A client of 2026-07-28 has no handshake, whose two checks the suite skips.
USES = {
    ("initialize", "2025-06-18"): 1,
    ("initialize", "2025-11-25"): 1,
    ("tools_call", "2025-06-18"): 2,
    ("tools_call", "2025-11-25"): 2,
    ("tools_call", "2026-07-28"): 2,
    ("elicitation-sep1034-client-defaults", "2025-11-25"): 5,
    ("sse-retry", "2025-11-25"): 3,
    ("sep-2322-client-request-state", "2026-07-28"): 5,
    ("http-standard-headers", "2026-07-28"): 9,
    ("http-custom-headers", "2026-07-28"): 18,
    ("http-invalid-tool-headers", "2026-07-28"): 12,
    ("json-schema-ref-no-deref", "2026-07-28"): 1,
    ("json-schema-2020-12-preservation", "2025-11-25"): 9,
    ("json-schema-2020-12-preservation", "2026-07-28"): 9,
}
SKIPPED = {"ClientMcpMethodHeader_initialize", "ClientMcpMethodHeader_notifications_initialized"}


def run_suite(folder: Path, *options: str) -> str:
    """Run the suite against our client; return what it prints."""
    script = package("conformance-0.2") / "dist" / "index.js"
    command = [str(node()), str(script), "client", "--command", f"{sys.executable} -m tests.conformance.our_client"]
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


@pytest.mark.parametrize("revision", REVISIONS)
def test_our_client_passes_the_extensions_of_signing_in_in_both_eras(tmp_path: Path, revision: str) -> None:
    runs = [("--scenario", f"auth/{name}", "--spec-version", revision, "--force") for name in EXTENSIONS]
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda options: run_suite(tmp_path, *options), runs))
    checks = checks_in(tmp_path)
    other = [check for scenario in checks.values() for check in scenario if check["status"] in {"FAILURE", "WARNING"}]
    assert (other, len(checks)) == ([], len(EXTENSIONS)), "\n".join(outputs)[-3000:]


def test_our_client_chooses_a_revision_that_the_server_names(tmp_path: Path) -> None:
    output = run_suite(tmp_path, "--scenario", "request-metadata")
    statuses = [check["status"] for checks in checks_in(tmp_path).values() for check in checks]
    assert statuses == ["SUCCESS"] * NEGOTIATION, output[-3000:]


SKILLS = ("no-prefetch", "verify-digest", "verify-size", "verify-frontmatter")


def test_our_client_passes_all_scenarios_of_skills(tmp_path: Path) -> None:
    for name in SKILLS:
        run_suite(tmp_path, "--scenario", f"sep-2640-client-{name}")
    checks = [check for scenario in checks_in(tmp_path).values() for check in scenario]
    assert [check["status"] for check in checks] == ["SUCCESS"] * len(SKILLS)


def test_our_client_passes_all_scenarios_of_its_use(tmp_path: Path) -> None:
    def run(case: tuple[str, str]) -> str:
        scenario, revision = case
        return run_suite(tmp_path / scenario / revision, "--scenario", scenario, "--spec-version", revision)

    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(run, USES))
    passed = {}
    for scenario, revision in USES:
        checks = [check for found in checks_in(tmp_path / scenario / revision).values() for check in found]
        statuses = {check["status"] for check in checks if check["name"] not in SKIPPED}
        assert statuses <= {"SUCCESS", "INFO"}, (scenario, revision, outputs)
        passed[scenario, revision] = sum(check["status"] == "SUCCESS" for check in checks)
    assert passed == USES

"""The samples and a minimal server, audited by mcpscore: what others expect of a server, checked by their code.

Source: https://github.com/mcp-box/mcpscore, the rules of 1.29.0.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.requirements import require
from tests.serving import REPOSITORY, serve

_HTTPS = "the server listens on this machine; a proxy in front of it has the certificate"
_STREAMS = "with signed sessions, the default, no stream is open that could carry the notification"
EXPECTED_FAILURES = {
    "security_tls_enabled": _HTTPS,
    "capability_tools_list_changed": _STREAMS,
    "capability_prompts_list_changed": _STREAMS,
    "capability_resources_list_changed": _STREAMS,
    "readiness_2026_deprecated_features": "clients of 2026-07-28 may still set a log level until 2027-07-28",
}
"""Rules that may fail, each with the reason."""

_SUITE = "tools and schemas are those that the conformance suite asks for by name"
SERVERS: list[tuple[str, dict[str, str]]] = [
    ("tests/samples/minimal_server.py", {}),
    ("samples/orders/server.py", {}),
    ("samples/apps/server.py", {}),
    ("samples/azure/self_hosted/server.py", {}),
    (
        "samples/everything/server.py",
        {"tools_annotations_present": _SUITE, "tools_input_properties_documented": _SUITE},
    ),
]
"""Files, each with further rules that may fail."""


def audit(file: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the result of each rule that mcpscore applied to a server."""
    with serve(file, env={"ORDERS_DB": str(folder / "orders.db")}) as served:
        command = [str(Path(sys.executable).with_name("mcpscore")), "--no-config", "--json", served.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["partial"], report["transport"]) == (False, "streamable-http")
    return [*report["results"], *report["readiness"]["results"]]


@pytest.mark.slow("A program of others starts and sends many requests for each sample.")
@pytest.mark.parametrize(("file", "expected"), SERVERS, ids=[file for file, _ in SERVERS])
def test_an_auditor_that_others_wrote_finds_nothing_but_what_has_a_reason(
    file: str, expected: dict[str, str], tmp_path: Path
) -> None:
    require("mcpscore", find_spec("mcpscore"))
    results = audit(REPOSITORY / file, tmp_path)
    failed = {result["rule_id"]: result["message"] for result in results if not result["passed"]}
    unexpected = {rule: message for rule, message in failed.items() if rule not in EXPECTED_FAILURES | expected}
    assert unexpected == {}
    assert expected.keys() <= failed.keys()
    assert len(results) - len(failed) >= 40  # it looked at the server, and not at an error

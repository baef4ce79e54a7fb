"""Clients of others drive the tasks of samples/everything to their end: both eras, questions and cancellation."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests import nodejs
from tests.clients.plan import HERE
from tests.clients.test_inspector import Inspector
from tests.patience import PATIENCE
from tests.requirements import require
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.plan import Target, Transport

pytestmark = pytest.mark.slow("Clients of others start, and run tasks to their end.")

FASTMCP = REPOSITORY / ".servers/fastmcp/bin/python"
COMPUTED = "Computed pi for 0.2 seconds."


@pytest.fixture(scope="module")
def url(everything: Callable[[Transport], Target]) -> str:
    return everything("http").url


def output_of(*command: str) -> dict[str, Any]:
    """Return the JSON object that a program prints."""
    ended = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=PATIENCE, check=False, cwd="/"
    )
    assert ended.returncode == 0, ended.stderr
    printed: dict[str, Any] = json.loads(ended.stdout)
    return printed


def test_the_typescript_sdk_v1_follows_tasks_answers_their_questions_and_cancels(url: str) -> None:
    nodejs.package("@modelcontextprotocol/sdk")
    seen = output_of(str(nodejs.node()), str(HERE / "typescript_tasks.mjs"), str(nodejs.HOME), url)
    texts = {name: seen[name]["result"]["content"][0]["text"] for name in ("computed", "confirmed", "asked")}
    assert texts == {"computed": COMPUTED, "confirmed": "Deleted notes.txt.", "asked": "Ada agrees: True"}
    assert seen["computed"]["statuses"][-1] == "completed"
    assert seen["failed"]["statuses"][-1] == "failed"
    assert seen["failed"]["error"].endswith("failed")
    assert "input_required" in seen["confirmed"]["statuses"]
    assert "input_required" in seen["asked"]["statuses"]
    assert (seen["cancelled"]["created"], seen["cancelled"]["cancelled"]) == ("working", "cancelled")
    assert seen["cancelled"]["error"].endswith("was cancelled")
    assert seen["questions"] == ["Delete notes.txt?", "Do you agree?", "What is your name?"]


def test_fastmcps_client_follows_tasks_answers_their_questions_and_cancels(url: str) -> None:
    python = require("FastMCP (scripts/setup-fastmcp.sh)", str(FASTMCP) if FASTMCP.exists() else None)
    assert output_of(python, str(HERE / "fastmcp_tasks_client.py"), url) == {
        "computed": COMPUTED,
        "failed": "ToolError: The job failed.",
        "confirmed": "Deleted notes.txt.",
        "asked": "Ada agrees: True",
        "detached": "Hello Ada",
        "created": "working",
        "cancelled": "cancelled",
        "questions": ["Delete notes.txt?", "Do you agree?", "What is your name?", "What is your name?"],
    }


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_follows_a_task_to_its_end(url: str, era: str, tmp_path: Path) -> None:
    code, printed = Inspector(url, era, tmp_path).call("slow_compute", {"seconds": 0.2, "label": "pi"})
    assert (code, printed["result"]["content"][0]["text"]) == (0, COMPUTED)


def test_the_inspector_runs_a_tool_that_is_only_a_task(url: str, tmp_path: Path) -> None:
    code, printed = Inspector(url, "legacy", tmp_path).call("failing_job", {})
    assert code != 0
    assert printed["error"]["message"] == "The job failed."

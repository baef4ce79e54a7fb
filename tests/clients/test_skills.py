"""Clients of others read the skills of samples/everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.plan import HERE
from tests.clients.test_inspector import Inspector
from tests.clients.test_task_clients import output_of
from tests.requirements import require
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.plan import Target, Transport

pytestmark = pytest.mark.slow("Clients of others start for each case.")

FASTMCP = REPOSITORY / ".servers/differential/bin/python"
SKILLS = REPOSITORY / "samples/everything/skills"


@pytest.fixture(scope="module")
def url(everything: Callable[[Transport], Target]) -> str:
    return everything("http").url


def test_fastmcps_client_reads_and_verifies_each_skill(url: str) -> None:
    python = require("FastMCP 4.2 (scripts/setup-differential.sh)", str(FASTMCP) if FASTMCP.exists() else None)
    folders = {file.parent.name: file.parent for file in SKILLS.rglob("SKILL.md")}
    assert output_of(python, str(HERE / "fastmcp_skills_client.py"), url) == {
        name: {file.relative_to(folder).as_posix(): file.stat().st_size for file in folder.rglob("*") if file.is_file()}
        for name, folder in folders.items()
    }


def test_the_inspector_lists_skills_and_reads_their_files(url: str, tmp_path: Path) -> None:
    inspector = Inspector(url, "modern", tmp_path)
    code, listed = inspector.run("--method", "skills/list")
    assert (code, [skill["frontmatter"]["name"] for skill in listed["result"]["skills"]]) == (
        0,
        ["book-hotel", "write-report"],
    )
    uri = listed["result"]["skills"][0]["resources"][1]["uri"]
    code, read = inspector.run("--method", "resources/read", "--uri", uri)
    text = (SKILLS / "travel/book-hotel/examples/answer.md").read_text(encoding="utf-8")
    assert (code, read["result"]["contents"][0]["text"]) == (0, text)

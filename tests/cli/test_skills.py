"""``funcmcp skills``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = "---\nname: {name}\ndescription: How to {name}\n---\n\n# {name}\n"
SERVER = 'from funcmcp import MCPServer\n\nmcp = MCPServer("skills")\nmcp.add_skills("skills")\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "empty.py").write_text('from funcmcp import MCPServer\n\nmcp = MCPServer("empty")\n')
    for path in ("deploy", "ops/roll-back", "a/same", "b/same"):
        folder = tmp_path / "skills" / path
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(MANIFEST.format(name=folder.name))
    (tmp_path / "skills/deploy/steps.md").write_text("Step 1\n")
    (tmp_path / "skills/deploy/logo.bin").write_bytes(b"\0\xff")
    return tmp_path


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_the_skills_of_a_server_are_listed(project: Path) -> None:
    ended = funcmcp("skills", "server.py", folder=project)
    assert ended.stdout.splitlines() == [
        "skill://a/same/SKILL.md\t1\tHow to same",
        "skill://b/same/SKILL.md\t1\tHow to same",
        "skill://deploy/SKILL.md\t3\tHow to deploy",
        "skill://ops/roll-back/SKILL.md\t1\tHow to roll-back",
    ]
    listed = json.loads(funcmcp("skills", "server.py", "--json", folder=project).stdout)
    assert listed[2]["frontmatter"] == {"name": "deploy", "description": "How to deploy"}


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["deploy"], MANIFEST.format(name="deploy")),
        (["skill://ops/roll-back/SKILL.md"], MANIFEST.format(name="roll-back")),
        (["deploy", "steps.md"], "Step 1\n"),
    ],
)
def test_a_file_of_a_skill_is_printed(project: Path, arguments: list[str], printed: str) -> None:
    assert funcmcp("skills", "server.py", *arguments, folder=project).stdout == printed


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_file_is_printed_as_json_and_saved(project: Path) -> None:
    [contents] = json.loads(funcmcp("skills", "server.py", "deploy", "logo.bin", "--json", folder=project).stdout)[
        "contents"
    ]
    assert contents == {"uri": "skill://deploy/logo.bin", "mimeType": "application/octet-stream", "blob": "AP8="}
    funcmcp("skills", "server.py", "deploy", "logo.bin", "--save", "out", folder=project)
    assert [file.read_bytes() for file in (project / "out").iterdir()] == [b"\0\xff"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["server.py", "deploi"], "The server lists no skill deploi. Did you mean deploy?"),
        (["server.py", "qqq"], "The server lists no skill qqq."),
        (["server.py", "same"], "2 skills are called same"),
        (["server.py", "deploy", "../server.py"], "does not list the file"),
        (["server.py", "skill://x/SKILL.md"], "No skill is served"),
        (["empty.py"], "empty lists no skills."),
        (["empty.py", "skill://x/SKILL.md"], "does not declare skills"),
    ],
)
def test_what_cannot_be_shown_is_one_line(project: Path, arguments: list[str], error: str) -> None:
    ended = funcmcp("skills", *arguments, folder=project)
    assert ended.returncode == 1
    assert error in ended.stderr
    assert len(ended.stderr.splitlines()) == 1

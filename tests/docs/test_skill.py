"""The skill for coding agents is valid, its code and its commands run, and it names each page of the documentation."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from funcmcp import MCPServer
from funcmcp.testing import Client
from scripts.documentation_site import DOCS, passages_of
from scripts.skill import PAGES, SKILL, list_of_pages
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, run_to_end
from tests.docs.test_questions import WITH_PASSAGES

if TYPE_CHECKING:
    from pathlib import Path

_SLOW = pytest.mark.slow("All pages are read, or programs of others start.")

TEXT = (SKILL / "SKILL.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line for language, block in BLOCKS if language == "sh" for line in block.splitlines()]
INLINE_COMMANDS = sorted({span for span in re.findall(r"`(funcmcp [^`]+)`", TEXT) if "NAME" not in span})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the files of the skill."""
    server, test = (block for language, block in BLOCKS if language == "python")
    (tmp_path / "server.py").write_text(server, encoding="utf-8")
    (tmp_path / "test_server.py").write_text(test, encoding="utf-8")
    return tmp_path


@_SLOW
def test_a_linter_of_skills_accepts_it() -> None:
    run = run_to_end([sys.executable, "-m", "skillsaw", "lint", "--strict", str(SKILL)])
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_server_serves_it() -> None:
    mcp = MCPServer("Skills")
    mcp.add_skills(SKILL)

    async def read() -> str:
        async with Client(mcp) as client:
            [skill] = await client.list_skills()
            assert skill.uri == "skill://funcmcp/SKILL.md"
            return (await client.read_skill(skill)).text

    assert asyncio.run(read()) == TEXT


@_SLOW
def test_its_commands_succeed_one_after_the_other(project: Path) -> None:
    assert len(COMMANDS) > 7
    for command in COMMANDS:
        program, *arguments = shlex.split(command)
        if arguments[0] == "run":
            continue  # the next test
        if program == "python":
            run = run_to_end([sys.executable, *arguments, "-p", "no:cacheprovider"], folder=project)
        else:
            assert program == "funcmcp"
            run = funcmcp(*arguments, folder=project)
        assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
    assert (project / "Dockerfile").is_file()


@_SLOW
def test_its_server_is_called_over_http(project: Path) -> None:
    [command] = [shlex.split(command) for command in COMMANDS if command.startswith("funcmcp run")]
    with running([*FUNCMCP, *command[1:], "--port", "0"], folder=project) as server:
        run = funcmcp("call", server.endpoint(), "order", "dish=soup", "count=2")
    assert (run.returncode, run.stdout) == (0, "2 x soup: 9.00 EUR\n")


@pytest.mark.parametrize("command", INLINE_COMMANDS)
def test_a_command_in_its_text_has_these_options(command: str) -> None:
    name, *arguments = shlex.split(command)[1:]
    run = funcmcp(name, "--help", env={"COLUMNS": "200"})
    assert run.returncode == 0, run.stdout
    for option in arguments:
        assert not option.startswith("-") or option in run.stdout


@_SLOW
def test_the_list_of_pages_is_up_to_date() -> None:
    assert PAGES.read_text(encoding="utf-8") == list_of_pages(), "Run: make reference"


@_SLOW
def test_the_list_names_each_passage_that_answers_a_question() -> None:
    entries = dict(re.findall(r"^- .*? \(`([\w/.-]+)`\): (.*)$", list_of_pages(), re.MULTILINE))
    for question in WITH_PASSAGES:
        page, _, anchor = question["passage"].partition("#")
        headings = {passage.anchor: passage.heading for passage in passages_of(DOCS / page)}
        assert not anchor or headings[anchor] in entries[page]


@_SLOW
def test_the_list_names_each_page_for_users() -> None:
    names = set(re.findall(r"\(`([\w/.-]+\.md)`\)", list_of_pages()))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if path.name != "index.md"}
    assert names == {name for name in pages if not name.startswith("development/")}

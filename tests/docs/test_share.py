"""Each command of docs/guides/share.md prints what the page shows, in the folder of the project that the page has."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.install.forms import _GOOSE_PROGRAMS
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "share.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that runs a command in the folder of the page's project, and returns its stdout."""
    (server,) = blocks("python")
    (project,) = blocks("toml")
    folder = tmp_path / "order-desk"
    folder.mkdir()
    (folder / "server.py").write_text(server)
    (folder / "pyproject.toml").write_text(project)
    (readme,) = blocks("md")
    (folder / "README.md").write_text(readme)

    def run_in_folder(command: str) -> str:
        program, *arguments = shlex.split(command)
        assert program == "funcmcp"
        done = funcmcp(*arguments, folder=folder, env={"HOME": str(tmp_path / "home")})
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_in_folder


def test_each_command_prints_what_the_page_shows(run: Callable[[str], str]) -> None:
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "\n".join(blocks("console")), re.MULTILINE)
    assert len(commands) > 8
    for command, expected in commands:
        pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
        printed = run(command)
        assert re.fullmatch(pattern, printed.strip(), re.DOTALL), printed


def test_the_project_of_the_page_is_valid(run: Callable[[str], str]) -> None:
    assert run("funcmcp install mcp-json server.py --runner uvx").count("funcmcp@") == 1
    assert tomllib.loads(blocks("toml")[0])["project"]["scripts"] == {"order-desk": "server:mcp.run"}


def test_goose_starts_the_programs_that_the_page_names() -> None:
    (row,) = re.findall(r"^\| `goose` \| (.*?) \|", PAGE, re.MULTILINE)
    assert sorted(re.findall("`(.+?)`", row)) == sorted(_GOOSE_PROGRAMS)

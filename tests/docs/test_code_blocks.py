"""Every Python block in the documentation runs, and every command prints the output that the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.forking import funcmcp, run_file

ROOT = Path(__file__).parents[2]
ALL_DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DOCUMENTS = [path for path in ALL_DOCUMENTS if path.parent.name != "tutorial" and path.name != "share.md"]
"""The tutorial is in test_readme.py, and share.md in test_share.py: their blocks belong together."""
ELSEWHERE = {"frameworks.md": "test_frameworks.py", "agents.md": "test_agents.py", "lambda.md": "test_hosting.py"}
"""Pages whose blocks need packages that are not beside those of the tests, and the files with their tests."""
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[pytest.ParameterSet]:
    """Return the blocks of a language as parameters of tests."""
    parameters = []
    for document in DOCUMENTS:
        if document.name in ELSEWHERE:
            continue
        for match in FENCE.finditer(document.read_text()):
            if match[1] == language:
                line = document.read_text()[: match.start()].count("\n") + 1
                parameters.append(pytest.param(match[2], id=f"{document.relative_to(ROOT)}:{line}"))
    return parameters


@pytest.mark.slow("A process starts for each block of each page.")
@pytest.mark.parametrize("code", blocks("python"))
def test_a_python_block_runs(code: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(code)
    run = run_file("server.py", tmp_path)
    assert run.returncode == 0, run.stderr


def sessions() -> list[pytest.ParameterSet]:
    """Return each block of commands with the last Python block before it in the document."""
    parameters = []
    for document in DOCUMENTS:
        server = ""
        for match in FENCE.finditer(document.read_text()):
            if match[1] == "python":
                server = match[2]
            elif match[1] == "console":
                line = document.read_text()[: match.start()].count("\n") + 1
                parameters.append(pytest.param(server, match[2], id=f"{document.relative_to(ROOT)}:{line}"))
    return parameters


@pytest.mark.parametrize(("server", "session"), sessions())
def test_a_command_prints_what_the_document_shows(server: str, session: str, tmp_path: Path) -> None:
    """The Python block is saved as `server.py`. `...` in the output matches any text."""
    (tmp_path / "server.py").write_text(server)
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        program, *arguments = shlex.split(command)
        assert program == "funcmcp", f"not a command of funcmcp: {command}"
        run = funcmcp(*arguments, folder=tmp_path)
        assert run.returncode == 0, run.stderr
        pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
        assert re.fullmatch(pattern, run.stdout.strip(), re.DOTALL), run.stdout

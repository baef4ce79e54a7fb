"""Every Python block in the documents runs, and every command in them does what it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CLI = "from funcmcp.cli.main import main; main()"


def blocks(language: str) -> list[pytest.ParameterSet]:
    found = []
    for document in DOCUMENTS:
        for match in FENCE.finditer(document.read_text()):
            if match[1] == language:
                line = document.read_text()[: match.start()].count("\n") + 1
                found.append(pytest.param(match[2], id=f"{document.relative_to(ROOT)}:{line}"))
    return found


@pytest.mark.parametrize("code", blocks("python"))
def test_a_python_block_runs(code: str, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(code)
    run = subprocess.run(
        [sys.executable, "server.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def sessions() -> list[pytest.ParameterSet]:
    """Return each block of commands with the Python block that stands before it in the document."""
    found = []
    for document in DOCUMENTS:
        server = ""
        for match in FENCE.finditer(document.read_text()):
            if match[1] == "python":
                server = match[2]
            elif match[1] == "console":
                line = document.read_text()[: match.start()].count("\n") + 1
                found.append(pytest.param(server, match[2], id=f"{document.relative_to(ROOT)}:{line}"))
    return found


@pytest.mark.parametrize(("server", "session"), sessions())
def test_a_command_prints_what_the_document_shows(server: str, session: str, tmp_path: Path) -> None:
    """The Python block is `server.py`; `...` in the output stands for anything."""
    (tmp_path / "server.py").write_text(server)
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        program, *arguments = shlex.split(command)
        assert program == "funcmcp", f"only funcmcp's own commands are run: {command}"
        run = subprocess.run(
            [sys.executable, "-c", CLI, *arguments],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
        assert re.fullmatch(pattern, run.stdout.strip(), re.DOTALL), run.stdout

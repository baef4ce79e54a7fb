"""Which interpreter runs a Python app, and what its program may import."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import pytest

from funcmcp_host.workers import python_command
from funcmcp_host.workers.python_command import interpreter_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Python 3.13 has another azure-functions.")


@pytest.mark.parametrize("name", [".venv", "venv", "env"])
def test_an_app_with_a_virtual_environment_runs_in_it(name: str, tmp_path: Path) -> None:
    program = tmp_path / name / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    assert interpreter_of(tmp_path) == sys.executable  # it can't be executed yet
    program.chmod(0o755)
    assert interpreter_of(tmp_path) == str(program)


def test_an_app_without_one_runs_in_this_interpreter(tmp_path: Path) -> None:
    assert interpreter_of(tmp_path) == sys.executable


def test_the_program_is_valid_python_3_9_and_imports_nothing_of_funcmcp() -> None:
    tree = ast.parse(python_command._PROGRAM.read_text(encoding="utf-8"), feature_version=(3, 9))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names >= {"asyncio", "socket"}
    assert not {name for name in names | modules if name.startswith("funcmcp")}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match)]

"""Files that cannot be migrated are reported, and nothing else of the project suffers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

from funcmcp_cli.failure import Failure
from funcmcp_cli.migrate.plan import plan_migration
from funcmcp_cli.migrate.project import read_project

SERVER = b"from fastmcp import FastMCP\nmcp = FastMCP('a')\n"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("broken.py", b"from fastmcp import FastMCP\ndef f(:\n", "not valid in Python 3."),
        ("python2.py", b"import fastmcp\nprint 'x'\n", "not valid in Python 3."),
        ("latin.py", b"import fastmcp\nx = '\xe9'\n", "not in the encoding that it declares"),
        ("unknown.py", b"# coding: no-such-encoding\nimport fastmcp\n", "not in the encoding that it declares"),
        ("zero.py", b"import fastmcp\n\x00\n", ""),
        ("brackets.py", b"import fastmcp\nx = " + b"[" * 3000 + b"]" * 3000, "cannot be parsed: RecursionError"),
        ("minus.py", b"import fastmcp\nx = " + b"-" * 30_000 + b"1", "cannot be parsed: "),
        ("long.py", b"import fastmcp\n" + b"#" * 4_000_000, "longer than 4,000,000 bytes"),
        ("book.ipynb", b'{"cells": [{"source": ["from fastmcp import FastMCP\\n"]}]}', "a notebook"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path, name: str, data: bytes, text: str) -> None:
    (tmp_path / "server.py").write_bytes(SERVER)
    (tmp_path / name).write_bytes(data)
    plan = plan_migration(tmp_path)
    (note,) = [note for note in plan.notes if note.file == name]
    assert note.level == "missing"
    assert text in note.text
    assert [change.name for change in plan.changes] == ["server.py"]


def test_long_conditions_and_texts_are_migrated(tmp_path: Path) -> None:
    lines = ["x = 1" + " and 1" * 3000, "y = (", *["    'a'"] * 3000, ")", "if x:", "    pass"]
    lines += [line for number in range(500) for line in (f"elif x == {number}:", "    pass")]
    (tmp_path / "server.py").write_bytes(SERVER + "\n".join(lines).encode())
    assert [change.name for change in plan_migration(tmp_path).changes] == ["server.py"]


TRIGGER = b"import azure.functions as func\napp = func.FunctionApp()\n@app.mcp_tool()\ndef f(a: int) -> int: ...\n"


@pytest.mark.slow("Files with deep expressions are parsed.")
def test_an_expression_with_too_many_levels_is_a_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    (tmp_path / "server.py").write_bytes(TRIGGER + b"x = 1" + b" and 1" * 20_000)
    with pytest.raises(Failure, match="nested too deeply"):
        plan_migration(tmp_path)


def test_files_without_servers_are_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes(SERVER)
    (tmp_path / "other.py").write_bytes(b"import shop_mcp\ndef f(:\n")
    assert [note for note in plan_migration(tmp_path).notes if note.file == "other.py"] == []


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes(SERVER)
    os.mkfifo(tmp_path / "pipe.py")
    notes = [note for note in plan_migration(tmp_path).notes if note.level == "missing"]
    assert [(note.file, note.text) for note in notes] == [("pipe.py", "cannot be read: not a regular file")]


def test_links_and_environments_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes(SERVER)
    (tmp_path / "link.py").symlink_to("server.py")
    for folder in (".venv", "node_modules", "__pycache__"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "server.py").write_bytes(SERVER)
    (tmp_path / "loop").symlink_to(tmp_path)
    plan = plan_migration(tmp_path)
    assert [change.name for change in plan.changes] == ["server.py"]
    assert [(note.file, note.text) for note in plan.notes if note.level == "missing"] == [
        ("link.py", "a link to server.py; migrate that file")
    ]


def test_requirements_are_reported_with_their_lines(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes(SERVER)
    (tmp_path / "requirements.txt").write_text("httpx\nfastmcp>=2.0\n")
    (tmp_path / "pyproject.toml").write_text(
        'dependencies = [\n    "mcp[cli]>=1.2",\n    "mcp-other",\n]\n'
        'keywords = ["mcp"]\ndev = ["pytest", "fastmcp[apps]>=4; python_version > \'3\'"]\nother = ["mcp-other"]\n'
    )
    notes = [note for note in plan_migration(tmp_path).notes if note.level == "missing"]
    assert [(note.place, note.text.partition(",")[0]) for note in notes] == [
        ("pyproject.toml:2", "the requirement mcp: write funcmcp"),
        ("pyproject.toml:6", "the requirement fastmcp: write funcmcp"),
        ("requirements.txt:2", "the requirement fastmcp: write funcmcp"),
    ]


def test_the_missing_requirement_of_a_function_app_is_reported(tmp_path: Path) -> None:
    (tmp_path / "function_app.py").write_text("import azure.functions as func\n\n@app.mcp_tool()\ndef add(): ...\n")
    assert not [note for note in read_project(tmp_path).notes if note.file == "requirements.txt"]
    for text, count in (("azure-functions\n", 1), ("azure-functions\nfuncmcp-slim[azure]\n", 0)):
        (tmp_path / "requirements.txt").write_text(text)
        notes = [note for note in read_project(tmp_path).notes if note.file == "requirements.txt"]
        assert len(notes) == count, text


def test_an_empty_folder_and_a_missing_path_are_failures(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=f"{tmp_path} has no Python files"):
        plan_migration(tmp_path)
    with pytest.raises(Failure, match="does not exist"):
        plan_migration(tmp_path / "missing")
    (tmp_path / "plain.py").write_text("x = 1\n")
    assert plan_migration(tmp_path).notes == []
    assert plan_migration(tmp_path / "plain.py").changes == []


def test_requirements_that_can_not_be_read_are_noted(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes(SERVER)
    os.mkfifo(tmp_path / "requirements.txt")
    (tmp_path / "requirements-dev.txt").mkdir()
    notes = {note.file: note.text for note in plan_migration(tmp_path).notes if note.level == "missing"}
    assert notes == {
        "requirements.txt": "cannot be read: not a regular file",
        "requirements-dev.txt": "cannot be read: Is a directory",
    }


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_long_file_is_rewritten_unless_its_expressions_are_deep(tmp_path: Path) -> None:
    row = b'TEXTS = ["a text of a long file"]\n'
    (tmp_path / "server.py").write_bytes(SERVER + row * (600_000 // len(row)))
    (tmp_path / "deep.py").write_bytes(SERVER + b"#" * 600_000 + b"\na = x" + b".y" * 3_000)
    plan = plan_migration(tmp_path)
    assert [change.name for change in plan.changes] == ["server.py"]
    assert ("deep.py", "cannot be parsed: RecursionError") in [(note.file, note.text) for note in plan.notes]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_deep_expression_is_noted_at_once(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes(SERVER + b"\na = x" + b".y" * 20_000)
    notes = [note for note in plan_migration(tmp_path).notes if note.level == "missing"]
    assert [(note.file, note.text) for note in notes] == [("server.py", "cannot be parsed: RecursionError")]

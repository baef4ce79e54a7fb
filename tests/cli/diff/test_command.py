"""``funcmcp diff`` with targets, URLs, commands and saved files, and its exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP

OLD = '''
from funcmcp import MCPServer

mcp = MCPServer("Shop", version="1")


@mcp.tool
def order(dish: str, note: str = "") -> str:
    """Order a dish."""
    return f"{dish} {note}".strip()


@mcp.tool
def cancel(number: int) -> str:
    """Cancel an order."""
    raise ValueError("no")
'''
NEW = '''
from typing import Literal

from funcmcp import MCPServer

mcp = MCPServer("Shop", version="1")


@mcp.tool
def order(dish: Literal["soup", "stew"], table: int, note: str = "") -> str:
    """Order a dish."""
    return f"{dish} {note} at {table}"
'''
CALLS = [{"tool": "order", "arguments": {"dish": "soup"}}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("diff")
    for name, text in {"old": OLD, "new": NEW}.items():
        (folder / name).mkdir()
        (folder / name / "server.py").write_text(text)
    (folder / "calls.json").write_text(json.dumps(CALLS))
    saved = funcmcp("inspect", "old/server.py", "--json", "--calls", "calls.json", folder=folder)
    (folder / "old.json").write_text(saved.stdout)
    return folder


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_two_files_of_the_same_name_are_compared(folder: Path) -> None:
    shown = funcmcp("diff", "old/server.py", "new", folder=folder)
    assert (shown.returncode, shown.stderr) == (1, "")
    assert shown.stdout.splitlines() == [
        'breaking    tool order: argument dish: the list of values is new: ["soup", "stew"]',
        "breaking    tool order: argument table: new and required",
        "breaking    tool cancel: removed",
        "3 breaking, 0 compatible, 0 wording",
    ]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_saved_file_a_url_and_a_command_are_the_same_server(folder: Path) -> None:
    with running([*FUNCMCP, "run", "old/server.py", "--port", "0"], folder=folder) as process:
        shown = funcmcp("diff", "old.json", process.endpoint(), "--calls", "calls.json", folder=folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "no differences\n", "")
    command = f"{sys.executable} -m funcmcp run old/server.py --stdio"
    shown = funcmcp("diff", command, "old.json", "--breaking", "--json", folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    counts = {"breaking": 0, "compatible": 0, "wording": 0}
    assert json.loads(shown.stdout) == {"counts": counts, "differences": []}


def test_results_of_calls_are_compared(folder: Path) -> None:
    shown = funcmcp("diff", "old.json", "new/server.py", "--calls", "calls.json", "--json", folder=folder)
    assert shown.returncode == 1
    document = json.loads(shown.stdout)
    assert document["counts"] == {"breaking": 4, "compatible": 0, "wording": 0}
    assert document["differences"][-1] == {
        "level": "breaking",
        "subject": 'call order {"dish": "soup"}',
        "text": "isError changed from false to true",
    }


def test_only_breaking_differences_count_if_asked(folder: Path) -> None:
    changed = json.loads((folder / "old.json").read_text())
    changed["tools"][0]["description"] = "Order one."
    (folder / "changed.json").write_text(json.dumps(changed))
    assert funcmcp("diff", "old.json", "changed.json", folder=folder).returncode == 1
    assert funcmcp("diff", "old.json", "changed.json", "--breaking", folder=folder).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.json", "old.json"), "missing.json cannot be read: No such file or directory."),
        (("calls.json", "old.json"), "calls.json is not a saved server. Save one with: funcmcp inspect"),
        (("old.json", "old.json", "--calls", "old.json"), "old.json must have an array of calls"),
        (("no-such-program --x", "old.json"), "no-such-program"),
        (("old.json", "http://127.0.0.1:1/mcp"), "127.0.0.1:1"),
    ],
)
def test_a_server_that_does_not_answer_is_exit_code_2(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    shown = funcmcp("diff", *arguments, folder=folder)
    assert (shown.returncode, shown.stdout) == (2, "")
    assert message in shown.stderr
    assert shown.stderr.count("\n") == 1


BROKEN = "from funcmcp import MCPServer\n\nmcp = MCPServer('a')\nraise ValueError('no database')\n"


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("diff", "broken.py", "old.json"), "broken.py, line 4: ValueError: no database"),
        (("inspect", "broken.py"), "broken.py, line 4: ValueError: no database"),
        (("inspect", f"{sys.executable} broken.py"),
         "broken.py ended with exit code 1. broken.py, line 4: ValueError: no database"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_loaded_is_one_line(folder: Path, command: tuple[str, ...], text: str) -> None:
    (folder / "broken.py").write_text(BROKEN)
    shown = funcmcp(*command, folder=folder)
    assert shown.stdout == ""
    assert shown.stderr.removeprefix(f"{Path(sys.executable).name} ") == f"{text}\n"


def test_schemas_that_are_nested_too_deeply_to_compare_are_an_error(tmp_path: Path) -> None:
    for name in ("old", "new"):
        schema = '{"anyOf": [' * 400 + f'{{"title": "{name}"}}' + "]}" * 400
        (tmp_path / f"{name}.json").write_text(f'{{"tools": [{{"name": "a", "inputSchema": {schema}}}]}}')
    result = funcmcp("diff", "old.json", "new.json", folder=tmp_path)
    assert (result.returncode, result.stderr) == (2, "A schema or a value is nested too deeply to compare.\n")

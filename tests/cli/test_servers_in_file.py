"""The configuration file of a client as the target of commands, and where features come from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.forking import funcmcp
from tests.cli.processes import PYTHON

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "behind.py": "from funcmcp import MCPServer\n\nmcp = MCPServer('behind')\n\n\n@mcp.tool\ndef far() -> str:\n"
    "    return 'far'\n\n\n@mcp.resource('note://far')\ndef note() -> str:\n    return 'far note'\n\n\n"
    "@mcp.prompt\ndef greet() -> str:\n    return 'hello'\n\n\nif __name__ == '__main__':\n    mcp.run()\n",
    "desk.py": """
import sys

from funcmcp import MCPServer
from funcmcp.client import StdioCommand
from funcmcp.upstreams import Upstream

inner = MCPServer("inner")
billing = MCPServer("billing")
mcp = MCPServer("desk")


@inner.tool
def deep() -> str:
    return "deep"


@billing.tool
def add() -> str:
    return "added"


@mcp.tool
def local() -> str:
    return "local"


billing.mount(inner, prefix="inner")
mcp.mount(billing, prefix="billing")
mcp.mount(Upstream(StdioCommand(sys.executable, "behind.py"), name="behind"), prefix="far")
""",
}
SOURCES = {
    "tools": {
        "billing_add": "mounted billing",
        "billing_inner_deep": "mounted billing, mounted inner",
        "far_far": "upstream behind",
    },
    "resources": {"note://far/far": "upstream behind"},
    "prompts": {"far_greet": "upstream behind"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    entry = {"command": PYTHON, "args": ["behind.py"], "cwd": "${workspaceFolder}"}
    (tmp_path / "one.json").write_text(json.dumps({"mcpServers": {"a": entry}}))
    away = {"url": "http://127.0.0.1:9/mcp"}
    (tmp_path / "two.json").write_text(json.dumps({"mcpServers": {"a": entry, "away": away, "bad": 5}}))
    (tmp_path / "away.json").write_text(json.dumps({"mcpServers": {"away": away}}))
    return tmp_path


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_inspect_shows_where_features_come_from(folder: Path) -> None:
    shown = funcmcp("inspect", "desk.py:mcp", folder=folder)
    rows = [line.split("\t") for line in shown.stdout.splitlines() if "\t" in line]
    lines = {row[1]: "\t".join(row) for row in rows}
    assert lines["billing_inner_deep"].endswith("\tmounted billing, mounted inner")
    assert lines["far_far"].endswith("\tupstream behind")
    assert "mounted" not in lines["local"]
    assert json.loads(funcmcp("inspect", "desk.py:mcp", "--json", folder=folder).stdout)["sources"] == SOURCES
    assert "sources" not in json.loads(funcmcp("inspect", "behind.py", "--json", folder=folder).stdout)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize(
    ("file", "prefix", "uri"), [("one.json", "", "note://far"), ("two.json", "a_", "note://a/far")]
)
def test_commands_of_a_client_use_the_servers_of_a_file(folder: Path, file: str, prefix: str, uri: str) -> None:
    assert funcmcp("call", file, f"{prefix}far", folder=folder).stdout == "far\n"
    assert funcmcp("read", file, uri, folder=folder).stdout.strip() == "far note"
    assert "hello" in funcmcp("prompt", file, f"{prefix}greet", folder=folder).stdout
    shown = funcmcp("inspect", file, folder=folder)
    assert f"{prefix}far" in shown.stdout
    assert ("The server 'bad' is left out: it is not an object." in shown.stderr) == (file == "two.json")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_what_is_not_possible_is_one_line(folder: Path) -> None:
    ended = funcmcp("call", "away.json", "far", folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.splitlines()[-1].startswith("No server answers at http://127.0.0.1:9/mcp.")
    assert "Traceback" not in ended.stderr
    ended = funcmcp("call", "one.json", "far", "--header", "A: b", folder=folder)
    assert ended.stderr == (
        "--header, --bearer and --client-credentials are for one URL. Write headers into the file.\n"
    )

"""``funcmcp install`` in a process of its own, and the entry that it writes, started by a client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from funcmcp.client import Client, StdioCommand
from funcmcp_cli.failure import Failure
from funcmcp_cli.install.command import find_client
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
from funcmcp import MCPServer

mcp = MCPServer("Sums")


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
"""


async def test_a_client_starts_the_entry_that_the_command_wrote(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(SERVER)
    home = tmp_path / "home"
    variables = {"HOME": str(home)}
    file = home / ".cursor" / "mcp.json"
    shown = funcmcp("install", "cursor", "sums.py", "--dry-run", folder=tmp_path, env=variables)
    assert (shown.returncode, shown.stderr, home.exists()) == (0, "", False)
    assert shown.stdout.startswith(f"--- {file}\n+++ {file}\n@@ -0,0 +1,")
    written = funcmcp("install", "cursor", "sums.py", "--write", folder=tmp_path, env=variables)
    assert (written.returncode, written.stderr) == (0, "")
    assert written.stdout.startswith(f"Wrote sums to {file}. Restart Cursor")
    entry = json.loads(file.read_text())["mcpServers"]["sums"]
    async with Client(StdioCommand(entry["command"], *entry["args"], cwd="/")) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}
    again = funcmcp("install", "cursor", "sums.py", "--write", folder=tmp_path, env=variables)
    assert again.stdout == f"{file} already has this entry. Nothing was changed.\n"
    assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]


def test_only_the_file_of_this_machine_has_the_path_of_a_program(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "desk-mcp"
    program.parent.mkdir()
    program.touch(0o755)
    variables = {"HOME": str(tmp_path / "home"), "PATH": str(program.parent)}
    for options, command in (([], str(program)), (["--workspace", "."], "desk-mcp")):
        written = funcmcp("install", "cursor", "desk-mcp --fast", "--write", *options, folder=tmp_path, env=variables)
        assert (written.returncode, written.stderr) == (0, "")
        file = (tmp_path if options else tmp_path / "home") / ".cursor" / "mcp.json"
        assert json.loads(file.read_text())["mcpServers"]["desk-mcp"] == {"command": command, "args": ["--fast"]}


def test_the_configuration_is_printed_for_a_pipe(tmp_path: Path) -> None:
    shown = funcmcp(
        "install", "vscode", "https://example.com/mcp", "--header", "Authorization: Bearer ${TOKEN}",
        "--workspace", ".", folder=tmp_path,
    )  # fmt: skip
    assert shown.returncode == 0
    configuration = json.loads(shown.stdout)
    server = {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${input:TOKEN}"}}
    assert configuration["servers"] == {"example-com": server}
    assert configuration["inputs"][0]["password"] is True
    assert shown.stderr.splitlines() == [
        f"Add it to {tmp_path}/.vscode/mcp.json, or pass --write.",
        "The client opens the browser if the server requires a sign-in.",
        "Visual Studio Code asks for TOKEN when it starts the server.",
    ]


def test_variables_of_a_file_are_in_the_entry_and_in_the_import(tmp_path: Path) -> None:
    code = SERVER.replace("from funcmcp", "import os\nfrom funcmcp", 1).replace('"Sums"', 'os.environ["SUMS_NAME"]')
    (tmp_path / "sums.py").write_text(code)
    (tmp_path / ".env").write_text("SUMS_NAME='Total'\nKEY=one\n")
    options = ["--env-file", ".env", "--env", "KEY=two"]
    shown = funcmcp("install", "cursor", "sums.py", *options, folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    entry = json.loads(shown.stdout)["mcpServers"]["total"]
    assert entry["env"] == {"SUMS_NAME": "Total", "KEY": "two"}


def test_a_broken_file_is_refused_and_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"mcpServers": {\n  oops')
    done = funcmcp("install", "claude-desktop", "https://e.com", "--file", str(file), "--write", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"{file} is not a configuration of Claude Desktop: line 2, column 3: the name of a member is missing. "
        "The file is unchanged; correct it first.\n"
    )
    assert file.read_text() == '{"mcpServers": {\n  oops'
    assert [path.name for path in tmp_path.iterdir()] == ["broken.json"]


def test_an_unknown_client_and_a_missing_workspace_file_are_refused(tmp_path: Path) -> None:
    done = funcmcp("install", "vs-code", "https://e.com", folder=tmp_path)
    assert (done.returncode, done.stderr.startswith("Unknown client 'vs-code'. Did you mean vscode? Valid")) == (
        1,
        True,
    )
    with pytest.raises(Failure, match="Did you mean vscode"):
        find_client("Code")
    done = funcmcp("install", "windsurf", "https://e.com", "--workspace", ".", folder=tmp_path)
    assert done.stderr == "Windsurf reads no file in a project's folder. Leave out --workspace.\n"


def test_a_workspace_file_that_leads_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder, outside = tmp_path / "project", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / ".vscode").symlink_to(outside)
    arguments = ("install", "vscode", "https://example.com/mcp", "--write")
    refused = funcmcp(*arguments, "--workspace", "project", folder=tmp_path)
    assert refused.returncode == 1
    assert f"is a link to {outside}/mcp.json, outside of the folder" in refused.stderr
    assert list(outside.iterdir()) == []
    assert funcmcp(*arguments, "--file", "project/.vscode/mcp.json", folder=tmp_path).returncode == 0


def test_a_key_in_a_url_is_a_warning(tmp_path: Path) -> None:
    for query, is_key in (("?code=abc", True), ("?Code", True), ("?barcode=1", False)):
        shown = funcmcp("install", "cursor", f"https://example.com/mcp{query}", folder=tmp_path)
        assert (shown.returncode, "The URL contains a key" in shown.stderr) == (0, is_key)


def test_a_tool_that_is_left_out_is_an_error_after_the_entry(tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(
        "from funcmcp import MCPServer\nmcp = MCPServer('a')\n@mcp.tool\ndef bad(x: 'Foo') -> str:\n    return x\n"
    )
    shown = funcmcp("install", "cursor", "faulty.py", folder=tmp_path)
    assert shown.returncode == 1
    assert "mcpServers" in shown.stdout
    assert "The tool bad is left out of the list. Correct it: " in shown.stderr

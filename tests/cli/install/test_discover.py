"""``funcmcp discover``: what the files of clients have, without their secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

VSCODE = """{
  // servers of this project
  "servers": {
    "orders": {"type": "http", "url": "https://x.example/mcp?code=SECRET-1", "headers": {"X-Key": "SECRET-2"}},
    "bridge": {
      "command": "npx",
      "args": ["-y", "mcp-remote", "https://ann:SECRET-3@x.example/y?k=SECRET-4", "--header", "A: SECRET-5",
               "--api-key=SECRET-6", "API_TOKEN=SECRET-7", "--verbose", "-H",
               "Authorization: Bearer SECRET-10", "Basic SECRET-11", "https://SECRET-12@x.example/z",
               "Server=x;Password=SECRET-13", "--pwd", "SECRET-14", "https://x.example/sk-SECRET-15-long-enough/mcp"],
      "env": {"TOKEN": "SECRET-8"},
    },
    "odd": 7,
  },
}
"""
CODEX = """
[mcp_servers.sums]
command = "python"
args = ["sums.py\\n\\u001b[2J"]
env = { KEY = "SECRET-9" }
"""


def test_servers_of_all_clients_are_listed_without_secrets(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text(CODEX)
    (project / ".vscode").mkdir(parents=True)
    (project / ".vscode" / "mcp.json").write_text(VSCODE)
    variables = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    shown = funcmcp("discover", "--json", folder=project, env=variables)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "SECRET" not in shown.stdout
    assert [(entry["client"], entry["name"], entry["server"]) for entry in json.loads(shown.stdout)] == [
        ("codex", "sums", "python 'sums.py\n\x1b[2J'"),
        ("vscode", "orders", "https://x.example/mcp?***"),
        (
            "vscode",
            "bridge",
            (
                "npx -y mcp-remote 'https://ann:***@x.example/y?***' --header '***' '--api-key=***' 'API_TOKEN=***' "
                "--verbose -H 'Authorization:***' 'Basic ***' 'https://***@x.example/z' "
                "'Server=x;Password=***' --pwd '***' 'https://x.example/***/mcp'"
            ),
        ),
        ("vscode", "odd", "'?'"),
    ]
    lines = funcmcp("discover", folder=project, env=variables).stdout.splitlines()
    assert lines[0] == rf"codex\tsums\tpython 'sums.py\n\x1b[2J'\t{home}/.codex/config.toml".replace(r"\t", "\t")


def test_no_servers_and_a_broken_file_are_one_line_each(tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / ".config")}
    shown = funcmcp("discover", folder=tmp_path, env=variables)
    assert (shown.returncode, shown.stdout) == (0, "No MCP server is configured for the clients on this machine.\n")
    (tmp_path / ".mcp.json").write_text("{")
    ended = funcmcp("discover", folder=tmp_path, env=variables)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"{tmp_path}/.mcp.json can't be read: ")
    assert ended.stderr.count("\n") == 1


def test_servers_where_another_client_has_them_are_reported(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    file = tmp_path / ".vscode" / "mcp.json"
    file.write_text('{"mcpServers": {"orders": {"command": "uvx"}}}')
    shown = funcmcp("discover", folder=tmp_path, env={"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "c")})
    line = f"Visual Studio Code does not read the servers below 'mcpServers' in {file}. Move them to 'servers'.\n"
    assert (shown.returncode, shown.stderr) == (0, line)

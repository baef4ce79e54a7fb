"""Links that add a server, commands, and goose's YAML, read as the clients read them."""

from __future__ import annotations

import json
import os
import subprocess
from base64 import b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml

from funcmcp._page.mcp_clients import CLIENTS
from funcmcp_cli.failure import Failure
from funcmcp_cli.install.entries import ServerDescription, entry_for
from funcmcp_cli.install.forms import command_text, goose_link, goose_text, link_for
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = ServerDescription("desk", ("uvx", "--with", "a b", "desk-mcp"), env={"KEY": "${KEY}", "NOTE": 'a "b" & ü'})
URL = ServerDescription("desk", url="https://example.com/mcp?a=1&b=2", headers={"X-Team": "blue"})


def fields_of(link: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(link).query, keep_blank_values=True)


@pytest.mark.parametrize("client", ["cursor", "lm-studio"])
def test_a_link_of_clients_with_base64_has_the_entry(client: str) -> None:
    server = ServerDescription("desk", COMMAND.command, env={"NOTE": "a & ü"})
    entry = entry_for(CLIENTS[client], server)
    fields = fields_of(link_for(CLIENTS[client], server, entry))
    assert fields["name"] == ["desk"]
    assert json.loads(b64decode(fields["config"][0])) == entry.members


def test_a_link_of_visual_studio_code_has_the_questions_for_secrets() -> None:
    link = link_for(CLIENTS["vscode"], COMMAND, entry_for(CLIENTS["vscode"], COMMAND))
    value = json.loads(unquote(link.removeprefix("vscode:mcp/install?")))
    assert value.pop("inputs")[0]["id"] == "KEY"
    assert value == {
        "name": "desk",
        "type": "stdio",
        "command": "uvx",
        "args": ["--with", "a b", "desk-mcp"],
        "env": {"KEY": "${input:KEY}", "NOTE": 'a "b" & ü'},
    }


def test_a_link_of_goose_has_names_of_variables_without_their_values() -> None:
    fields = fields_of(goose_link(COMMAND))
    assert fields == {
        "id": ["desk"],
        "name": ["desk"],
        "cmd": ["uvx"],
        "arg": ["--with", "a b", "desk-mcp"],
        "env": ["KEY", "NOTE"],
    }
    assert fields_of(goose_link(URL)) == {
        "id": ["desk"],
        "name": ["desk"],
        "url": [URL.url],
        "header": ["X-Team=blue"],
    }
    assert fields_of(goose_link(ServerDescription("desk", ("/opt/bin/uvx", "desk"))))["cmd"] == ["uvx"]
    with pytest.raises(Failure, match=r"start only docker, jbang, npx, uvx, not python3\. Pass --runner uvx"):
        goose_link(ServerDescription("desk", ("/usr/bin/python3", "-m", "funcmcp")))


def test_the_text_for_goose_is_yaml() -> None:
    entry: dict[str, Any] = yaml.safe_load(goose_text(COMMAND))["extensions"]["desk"]
    assert entry == {
        "name": "desk",
        "enabled": True,
        "timeout": 300,
        "type": "stdio",
        "cmd": "uvx",
        "args": ["--with", "a b", "desk-mcp"],
        "envs": {"NOTE": 'a "b" & ü'},
        "env_keys": ["KEY"],
    }
    entry = yaml.safe_load(goose_text(URL))["extensions"]["desk"]
    assert (entry["type"], entry["uri"], entry["headers"]) == ("streamable_http", URL.url, {"X-Team": "blue"})


def test_a_shell_runs_the_command() -> None:
    program = ("python3", "-c", "import os; print(os.environ['NOTE'], os.environ['KEY'])")
    text = command_text(ServerDescription("desk", program, env=COMMAND.env))
    run = subprocess.run(
        ["sh", "-c", text],
        env={"PATH": os.environ["PATH"], "KEY": "k", "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
    )
    assert run.stdout.decode() == 'a "b" & ü k\n'
    with pytest.raises(Failure, match="A server at a URL has no command"):
        command_text(URL)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_the_command_prints_links_and_texts(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text("from funcmcp import MCPServer\n\nmcp = MCPServer('Desk')\n")
    (tmp_path / "requirements.txt").write_text("funcmcp\nrich>=14\n")
    link = funcmcp("install", "goose", "desk.py", "--link", folder=tmp_path)
    assert fields_of(link.stdout.strip())["arg"][:3] == ["--with", "rich>=14", "funcmcp@0.1.0"]
    link = funcmcp("install", "cursor", "uvx desk-mcp@1.0", "--link", "--env", "KEY=secret", folder=tmp_path)
    assert json.loads(b64decode(fields_of(link.stdout.strip())["config"][0]))["args"] == ["desk-mcp@1.0"]
    assert link.stderr == "The link contains the values of KEY. With --env NAME alone, the client asks for the value.\n"
    text = funcmcp("install", "goose", "desk.py", folder=tmp_path)
    assert yaml.safe_load(text.stdout)["extensions"]["desk"]["args"][-1] == "--stdio"
    text = funcmcp("install", "command", "uvx desk-mcp", "--env", "A=1", folder=tmp_path)
    assert text.stdout == "A=1 uvx desk-mcp\n"
    written = funcmcp("install", "mcp-json", "desk.py", "--write", folder=tmp_path)
    assert written.returncode == 0, written.stderr
    assert json.loads((tmp_path / "mcp.json").read_text())["mcpServers"].keys() == {"desk"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["command", "uvx a", "--link"], "A command has no link."),
        (["zed", "uvx a", "--link"], "Zed has no links."),
        (["goose", "python a.py", "--link"], "A link for goose can start only docker"),
        (["goose", "uvx a", "--write"], "This is printed only."),
        (["cursor", "uvx a", "--link", "--dry-run"], "This is printed only."),
        (["cursor", "https://e.com/mcp", "--runner", "uvx", "--env", "A=1"], "--env is for servers"),
    ],
)
def test_options_that_do_not_go_together_are_errors(tmp_path: Path, arguments: list[str], message: str) -> None:
    run = funcmcp("install", *arguments, folder=tmp_path)
    assert run.returncode != 0
    assert message in " ".join(run.stderr.split())

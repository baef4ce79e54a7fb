"""The files of the clients on each platform, and each client's documented format with other servers in it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from funcmcp._page.mcp_clients import CLIENTS
from funcmcp_cli.failure import Failure
from funcmcp_cli.install.entries import ServerDescription, entry_for
from funcmcp_cli.install.files import configuration_text, merged_text, user_file

HOME = Path("/Users/ada")
COMMAND = ServerDescription("kitchen", ("/venv/bin/python", "-m", "funcmcp"), env={"MENU": "today"})
URL = ServerDescription("kitchen", url="https://example.com/mcp", headers={"X-Team": "blue"})

STDIO: dict[str, Any] = {"command": "/venv/bin/python", "args": ["-m", "funcmcp"], "env": {"MENU": "today"}}
HEADERS = {"X-Team": "blue"}
DOCUMENTED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "antigravity": (
        '{"mcpServers": {"other": {"serverUrl": "https://other.example/mcp"}}}',
        STDIO,
        {"serverUrl": URL.url, "headers": HEADERS},
    ),
    "claude-code": (
        (
            '{\n  "numStartups": 3,\n  "projects": {"/shop": {"mcpServers": {}}},\n  "mcpServers": {\n    "other": {\n'
            '      "type": "stdio",\n      "command": "npx"\n    }\n  }\n}\n'
        ),
        {"type": "stdio", **STDIO},
        {"type": "http", "url": URL.url, "headers": HEADERS},
    ),
    "claude-desktop": (
        '{\n\t"globalShortcut": "Ctrl+Space",\n\t"mcpServers": {\n\t\t"other": {"command": "npx"}\n\t}\n}',
        STDIO,
        {"command": "npx", "args": ["-y", "mcp-remote", URL.url, "--header", "X-Team:blue"]},
    ),
    "cline": (
        '{"mcpServers": {"other": {"command": "node", "disabled": false, "autoApprove": []}}}\n',
        STDIO,
        {"type": "streamableHttp", "url": URL.url, "headers": HEADERS},
    ),
    "codex": (
        (
            '# mine\nmodel = "gpt"  # the good one\n\n[mcp_servers.other]\ncommand = "npx"\n\n[mcp_servers.other.env]\n'
            "A = '1'\n\n[profiles.fast]\nmodel = 'small'\n"
        ),
        STDIO,
        {"url": URL.url, "http_headers": HEADERS},
    ),
    "copilot-cli": (
        '{"mcpServers": {"other": {"type": "local", "command": "npx", "tools": ["*"]}}}',
        {"type": "stdio", "tools": ["*"], **STDIO},
        {"type": "http", "tools": ["*"], "url": URL.url, "headers": HEADERS},
    ),
    "cursor": (
        '{"mcpServers": {"other": {"url": "https://other.example/mcp"}}}',
        STDIO,
        {"url": URL.url, "headers": HEADERS},
    ),
    "devin": (
        '{"mcpServers": {"other": {"url": "https://other.example/mcp"}}}',
        STDIO,
        {"url": URL.url, "headers": HEADERS},
    ),
    "gemini-cli": (
        (
            '{\n  // how it looks\n  "theme": "Dracula",\n  "mcpServers": {\n    "other": {"httpUrl": "https://o.example"},\n'
            "  },\n}\n"
        ),
        STDIO,
        {"httpUrl": URL.url, "headers": HEADERS},
    ),
    "lm-studio": (
        '{\n  "mcpServers": {\n    "other": {"url": "https://other.example/mcp"}\n  }\n}\n',
        STDIO,
        {"url": URL.url, "headers": HEADERS},
    ),
    "opencode": (
        (
            '{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {\n    "servers": {\n      // for the web\n'
            '      "other": {"type": "remote", "url": "https://o.example"}\n    }\n  }\n}\n'
        ),
        {"type": "local", "command": ["/venv/bin/python", "-m", "funcmcp"], "environment": {"MENU": "today"}},
        {"type": "remote", "url": URL.url, "headers": HEADERS},
    ),
    "vscode": (
        (
            '{\r\n\t"servers": {\r\n\t\t"other": { "type": "http", "url": "https://o.example" } // other\r\n\t},\r\n'
            '\t"inputs": []\r\n}\r\n'
        ),
        {"type": "stdio", **STDIO},
        {"type": "http", "url": URL.url, "headers": HEADERS},
    ),
    "windsurf": (
        '{"mcpServers": {"other": {"serverUrl": "https://other.example/sse"}}}',
        STDIO,
        {"serverUrl": URL.url, "headers": HEADERS},
    ),
    "zed": (
        (
            '// Zed\n{\n  "theme": "One Dark", // mine\n  "context_servers": {\n    "other": {"command": "npx"},'
            " /* kept */\n  },\n}\n"
        ),
        STDIO,
        {"url": URL.url, "headers": HEADERS},
    ),
}
"""By client, a file as its documentation shows it, and the entries of the two servers above."""

WINDOWS = "C:/Users/ada/AppData/Roaming"
MAC = "/Users/ada/Library/Application Support"
FILES = {
    "antigravity": ("/Users/ada/.gemini/config/mcp_config.json",) * 3,
    "claude-code": ("/Users/ada/.claude.json",) * 3,
    "claude-desktop": tuple(
        f"{folder}/Claude/claude_desktop_config.json" for folder in ("/Users/ada/.config", MAC, WINDOWS)
    ),
    "cline": ("/Users/ada/.cline/data/settings/cline_mcp_settings.json",) * 3,
    "codex": ("/Users/ada/.codex/config.toml",) * 3,
    "copilot-cli": ("/Users/ada/.copilot/mcp-config.json",) * 3,
    "cursor": ("/Users/ada/.cursor/mcp.json",) * 3,
    "devin": (*("/Users/ada/.config/devin/mcp_config.json",) * 2, f"{WINDOWS}/devin/mcp_config.json"),
    "gemini-cli": ("/Users/ada/.gemini/settings.json",) * 3,
    "lm-studio": ("/Users/ada/.lmstudio/mcp.json",) * 3,
    "opencode": ("/Users/ada/.config/opencode/opencode.json",) * 3,
    "vscode": tuple(f"{folder}/Code/User/mcp.json" for folder in ("/Users/ada/.config", MAC, WINDOWS)),
    "windsurf": ("/Users/ada/.codeium/windsurf/mcp_config.json",) * 3,
    "zed": (*("/Users/ada/.config/zed/settings.json",) * 2, f"{WINDOWS}/Zed/settings.json"),
}
"""By client, its file on Linux, macOS and Windows."""


def without_comments(text: str) -> Any:
    """Return the value of a text of the table above, of which no string contains a slash pair but in URLs."""
    import re

    text = re.sub(r"(?<!:)//[^\r\n]*|/\*.*?\*/", "", text)
    return json.loads(re.sub(r",(\s*[}\]])", r"\1", text))


def servers_in(client: str, text: str) -> Any:
    value = tomllib.loads(text) if CLIENTS[client].format == "toml" else without_comments(text)
    for member in CLIENTS[client].servers:
        value = value[member]
    return value


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_each_client_has_a_file_on_each_platform(platform: str) -> None:
    environ = {"APPDATA": WINDOWS} if platform == "win32" else {}
    index = ["linux", "darwin", "win32"].index(platform)
    files = {name: user_file(client, platform, environ, HOME) for name, client in CLIENTS.items()}
    assert files == {name: Path(paths[index]) for name, paths in FILES.items()}


def test_variables_of_clients_and_of_linux_move_the_file() -> None:
    assert user_file(CLIENTS["codex"], "linux", {"CODEX_HOME": "/x"}, HOME) == Path("/x/config.toml")
    assert user_file(CLIENTS["vscode"], "linux", {"XDG_CONFIG_HOME": "/y"}, HOME) == Path("/y/Code/User/mcp.json")


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("server", [COMMAND, URL], ids=["stdio", "url"])
def test_an_entry_is_added_to_the_documented_file(name: str, server: ServerDescription) -> None:
    text, *entries = DOCUMENTED[name]
    expected = entries[0 if server is COMMAND else 1]
    merged = merged_text(text, CLIENTS[name], "kitchen", entry_for(CLIENTS[name], server))
    assert servers_in(name, merged) == {**servers_in(name, text), "kitchen": expected}
    # Nothing of the previous text is lost, and it is in its order.
    position = 0
    for line in text.replace("}", " ").split():
        word = line.rstrip(",")
        position = merged.find(word, position)
        assert position >= 0, f"{word} is missing in {merged}"
    assert ("\r\n" in merged) is ("\r\n" in text)
    assert merged.replace("\r\n", "").count("\n") in (0, merged.count("\n"))


@pytest.mark.parametrize("name", CLIENTS)
def test_a_second_merge_changes_nothing(name: str) -> None:
    entry = entry_for(CLIENTS[name], COMMAND)
    merged = merged_text(DOCUMENTED[name][0], CLIENTS[name], "kitchen", entry)
    assert merged_text(merged, CLIENTS[name], "kitchen", entry) == merged


@pytest.mark.parametrize("name", CLIENTS)
def test_a_configuration_without_a_file_has_one_server(name: str) -> None:
    text = configuration_text(CLIENTS[name], "kitchen", entry_for(CLIENTS[name], COMMAND))
    assert servers_in(name, text) == {"kitchen": DOCUMENTED[name][1]}


@pytest.mark.parametrize(
    ("name", "reference"),
    [("claude-code", "${T}"), ("cursor", "${env:T}"), ("opencode", "{env:T}"), ("gemini-cli", "${T}"),
     ("vscode", "${input:T}"), ("windsurf", "${env:T}"), ("devin", "${env:T}"), ("copilot-cli", "${T}")],
)  # fmt: skip
def test_a_reference_to_a_variable_has_the_form_of_the_client(name: str, reference: str) -> None:
    server = ServerDescription("s", url="https://example.com/mcp", headers={"Authorization": "Bearer ${T}"})
    entry = entry_for(CLIENTS[name], server)
    assert entry.members["headers"] == {"Authorization": f"Bearer {reference}"}


@pytest.mark.parametrize("name", ["antigravity", "claude-desktop", "cline", "zed"])
def test_a_client_without_references_refuses_them(name: str) -> None:
    server = ServerDescription("s", ("python",), env={"T": "${T}"})
    with pytest.raises(Failure, match=r"takes values literally, so its file cannot refer to \$\{T\}"):
        entry_for(CLIENTS[name], server)


def test_codex_reads_variables_by_members_of_its_own() -> None:
    headers = {"Authorization": "Bearer ${T}", "X-Key": "${KEY}", "X-Team": "blue"}
    entry = entry_for(CLIENTS["codex"], ServerDescription("s", url="https://example.com/mcp", headers=headers))
    assert entry.members == {
        "url": "https://example.com/mcp",
        "bearer_token_env_var": "T",
        "env_http_headers": {"X-Key": "KEY"},
        "http_headers": {"X-Team": "blue"},
    }
    entry = entry_for(CLIENTS["codex"], ServerDescription("s", ("python",), env={"T": "${T}", "A": "1"}))
    assert entry.members == {"command": "python", "args": [], "env": {"A": "1"}, "env_vars": ["T"]}
    with pytest.raises(Failure, match="Codex cannot build A"):
        entry_for(CLIENTS["codex"], ServerDescription("s", ("python",), env={"A": "x${T}"}))
    with pytest.raises(Failure, match="takes the value of X from one variable"):
        entry_for(CLIENTS["codex"], ServerDescription("s", url="https://example.com", headers={"X": "x${T}"}))


def test_visual_studio_code_asks_for_a_value_once() -> None:
    client = CLIENTS["vscode"]
    entry = entry_for(client, ServerDescription("s", url="https://example.com/mcp", headers={"A": "${T}", "B": "${T}"}))
    assert [item["id"] for item in entry.inputs] == ["T"]
    text = '{\n  "inputs": [\n    // mine\n    {"type": "promptString", "id": "mine"}\n  ]\n}\n'
    merged = merged_text(text, client, "s", entry)
    assert [item["id"] for item in without_comments(merged)["inputs"]] == ["mine", "T"]
    assert "// mine" in merged
    assert merged_text(merged, client, "s", entry) == merged


def test_http_beyond_this_machine_has_to_be_allowed_for_mcp_remote() -> None:
    entry = entry_for(CLIENTS["claude-desktop"], ServerDescription("s", url="http://kitchen.example/mcp"))
    assert entry.members["args"][-1] == "--allow-http"
    entry = entry_for(CLIENTS["claude-desktop"], ServerDescription("s", url="http://localhost:8000/mcp"))
    assert entry.members["args"][-1] == "http://localhost:8000/mcp"

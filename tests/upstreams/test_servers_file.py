"""Configuration files of clients, in the forms that their documentation shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from funcmcp._upstreams.servers_file import ConfiguredServers, ServersFileError, read_servers
from funcmcp.client import HTTPEndpoint, SignIn, StdioCommand
from funcmcp.upstreams import UpstreamTimeouts

ENVIRONMENT = {"TOKEN": "t-1", "GITHUB_TOKEN": "t-2"}


def target_of(entry: object, environment: dict[str, str] = ENVIRONMENT, **members: Any) -> HTTPEndpoint | StdioCommand:
    """Return how the server of an entry is reached."""
    servers = read_servers({"mcpServers": {"only": entry}, **members}, environment)
    assert servers.problems == []
    return servers.entries[0].target


def command_of(entry: object, **members: Any) -> StdioCommand:
    target = target_of(entry, **members)
    assert isinstance(target, StdioCommand)
    return target


def endpoint_of(entry: object, **members: Any) -> HTTPEndpoint:
    target = target_of(entry, **members)
    assert isinstance(target, HTTPEndpoint)
    return target


def problem_of(entry: object, **members: Any) -> str:
    servers = read_servers({"mcpServers": {"only": entry}, **members}, ENVIRONMENT)
    assert servers.entries == []
    (problem,) = servers.problems
    return problem.removeprefix("The server 'only' is left out: ")


CLAUDE_DESKTOP = '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "UTC"}}}}'
VSCODE = """\ufeff{
  // asked for once
  "inputs": [{"type": "promptString", "id": "GITHUB_TOKEN", "password": true}],
  "servers": {
    "github": {
      "type": "http",
      "url": "https://api.example.com/mcp",
      "headers": {"Authorization": "${input:GITHUB_TOKEN}"},
    },
  }
}"""
CURSOR = '{"mcpServers": {"github": {"url": "https://api.example.com/mcp", "headers": {"X-Key": "${env:TOKEN}"}}}}'
ZED = '{"context_servers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'
OPENCODE = """{"mcp": {"servers": {"time": {"type": "local", "command": ["uvx", "mcp-server-time"],
    "environment": {"KEY": "{env:TOKEN}"}}}}}"""
BARE = '{"time": {"command": "uvx", "args": ["mcp-server-time"]}}'
CODEX = """[mcp_servers.time]
command = "uvx"
args = ["mcp-server-time"]
env_vars = ["TOKEN"]

[mcp_servers.github]
url = "https://api.example.com/mcp"
bearer_token_env_var = "GITHUB_TOKEN"
env_http_headers = { X-Key = "TOKEN" }
"""
GEMINI = '{"mcpServers": {"github": {"httpUrl": "https://api.example.com/mcp", "timeout": 5000, "trust": false}}}'
WINDSURF = '{"mcpServers": {"github": {"serverUrl": "https://api.example.com/mcp"}}}'
URL = "https://api.example.com/mcp"


@pytest.mark.parametrize(
    ("file", "text", "reached"),
    [
        ("claude_desktop_config.json", CLAUDE_DESKTOP, [(("uvx", "mcp-server-time"), {"TZ": "UTC"})]),
        ("mcp.json", VSCODE, [(URL, {"Authorization": "t-2"})]),
        ("mcp.json", CURSOR, [(URL, {"X-Key": "t-1"})]),
        ("settings.json", ZED, [(("uvx", "mcp-server-time"), {})]),
        ("opencode.json", OPENCODE, [(("uvx", "mcp-server-time"), {"KEY": "t-1"})]),
        ("fastmcp.json", BARE, [(("uvx", "mcp-server-time"), {})]),
        ("settings.json", GEMINI, [(URL, {})]),
        ("mcp_config.json", WINDSURF, [(URL, {})]),
        (
            "config.toml",
            CODEX,
            [
                (("uvx", "mcp-server-time"), {"TOKEN": "t-1"}),
                (URL, {"X-Key": "t-1", "authorization": "Bearer t-2"}),
            ],
        ),
    ],
    ids=["Claude Desktop", "VS Code", "Cursor", "Zed", "OpenCode", "FastMCP", "Gemini CLI", "Windsurf", "Codex"],
)
def test_the_file_of_each_client_is_read(tmp_path: Path, file: str, text: str, reached: list[Any]) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    servers = read_servers(tmp_path / file, ENVIRONMENT)
    targets: list[Any] = []
    for entry in servers.entries:
        if isinstance(entry.target, StdioCommand):
            targets.append((entry.target.command, entry.target.env))
        else:
            targets.append((entry.target.url, dict(entry.target.headers)))
    assert targets == reached
    assert (servers.problems, servers.notes) == ([], [])


def test_a_broken_entry_is_named_and_takes_nothing_away_from_the_others() -> None:
    entries = {"good": {"command": "uvx"}, "bad": {"args": []}, "odd": 7, "off": {"command": "uvx", "disabled": True}}
    servers = read_servers({"mcpServers": entries}, {})
    assert [entry.name for entry in servers.entries] == ["good"]
    assert servers.problems == [
        "The server 'bad' is left out: it needs either a command or a url.",
        "The server 'odd' is left out: it is not an object.",
    ]
    assert servers.notes == ["The server 'off' is disabled."]


def test_names_have_prefixes_if_the_file_has_several_entries_whatever_becomes_of_them() -> None:
    entry = {"command": "uvx"}
    assert not read_servers({"mcpServers": {"a": entry}}, {}).has_prefixes
    assert read_servers({"mcpServers": {"a": entry, "b": {**entry, "enabled": False}}}, {}).has_prefixes
    assert read_servers({"mcpServers": {"a": entry, "b": 7}}, {}).has_prefixes


def prefixes_of(servers: ConfiguredServers) -> dict[str, str]:
    return {entry.name: entry.prefix for entry in servers.entries}


def test_prefixes_are_the_names_of_the_entries_with_the_characters_of_names() -> None:
    names = ["time", "my-server", "My Server", "io.github.user/weather", "x" * 70]
    servers = read_servers({"mcpServers": {name: {"command": "uvx"} for name in names}}, {})
    assert prefixes_of(servers) == {
        "time": "time",
        "my-server": "my-server",
        "My Server": "My_Server",
        "io.github.user/weather": "io_github_user_weather",
        "x" * 70: "x" * 63,
    }


def test_two_entries_never_get_the_same_prefix() -> None:
    servers = read_servers({"mcpServers": {name: {"command": "uvx"} for name in ("a b", "a_b", "時間")}}, {})
    assert prefixes_of(servers) == {"a b": "a_b"}
    assert servers.problems == [
        "The server 'a_b' is left out: 'a b' has the same prefix, a_b. Rename one of them.",
        "The server '時間' is left out: its name has no letter or digit of ASCII, so it gives no prefix. Rename it.",
    ]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"command": "uvx", "url": URL}, "it needs either a command or a url."),
        ({"command": "uvx", "type": "http"}, "a server of the type http needs a url."),
        ({"url": URL, "type": "stdio"}, "a server of the type stdio needs a command."),
        ({"url": URL, "type": "carrier-pigeon"}, "its type 'carrier-pigeon' is unknown. Use stdio, http or sse."),
        ({"url": URL, "transport": 5}, "its type 5 is unknown. Use stdio, http or sse."),
        ({"url": "ftp://example.com"}, "its url must begin with http:// or https://."),
        ({"url": 5}, "its url must begin with http:// or https://."),
        ({"url": URL, "headers": ["a"]}, "its headers must be an object."),
        ({"url": URL, "headers": {"a": None}}, "a value of its headers.a is not a string."),
        ({"url": URL, "headers": {"a": "${NOPE}"}}, "in its headers.a, the environment variable NOPE is not set."),
        ({"url": URL, "bearer_token_env_var": "NOPE"}, "the environment variable NOPE is not set."),
        ({"url": "http://${NOPE}/"}, "in its url, the environment variable NOPE is not set."),
        ({"command": "${NOPE}"}, "in its command, the environment variable NOPE is not set."),
        ({"command": "uvx", "args": ["a", "${NOPE}"]}, "in its args, the environment variable NOPE is not set."),
        ({"url": URL, "headers": {"a": "b\nc"}}, "the value of its header a has a line break or a null character."),
        ({"command": ""}, "its command must be a string that is not empty."),
        ({"command": []}, "its command must be a string that is not empty."),
        ({"command": 5}, "its command must be a string that is not empty."),
        ({"command": "uvx", "args": "mcp"}, "its args must be a list."),
        ({"command": "uvx", "args": [True]}, "a value of its args is not a string."),
        ({"command": "uvx", "env_vars": ["NOPE"]}, "the environment variable NOPE is not set."),
        (
            {"command": "uvx", "env": {"KEY": "${input:api-key}"}},
            "in its env.KEY, for its input api-key, the environment variable API_KEY is not set.",
        ),
        (
            {"command": "uvx", "envFile": "/none/.env"},
            "its envFile /none/.env can't be read: No such file or directory.",
        ),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_without_its_values(entry: object, problem: str) -> None:
    assert problem_of(entry) == problem


def test_references_are_replaced_as_the_clients_do() -> None:
    args = ["${TOKEN}", "${env:TOKEN}", "${NOPE:-other}", "${NOPE:-}", "a${TOKEN}b", "$TOKEN", "${1}", "{env:TOKEN}"]
    command = command_of({"command": "x", "args": args})
    assert command.command == ("x", "t-1", "t-1", "other", "", "at-1b", "$TOKEN", "${1}", "t-1")


def test_inputs_have_a_default_or_a_variable() -> None:
    inputs = [{"id": "region", "default": "eu"}, {"id": "TOKEN", "default": "no"}, "odd", {"id": "api-key"}]
    args = ["${input:region}", "${input:TOKEN}", "${input:api-key}"]
    command = command_of({"command": "x", "args": args}, environment={**ENVIRONMENT, "API_KEY": "k"}, inputs=inputs)
    assert command.command == ("x", "eu", "t-1", "k")


def test_numbers_are_texts() -> None:
    command = command_of({"command": "x", "args": ["--port", 8080], "env": {"PORT": 8080}})
    assert (command.command, command.env) == (("x", "--port", "8080"), {"PORT": "8080"})


def test_paths_are_in_the_folder_of_the_project(tmp_path: Path) -> None:
    folder = tmp_path / ".vscode"
    folder.mkdir()
    (tmp_path / ".env").write_text('# keys\nexport KEY="a b"\nTOKEN=of the file\n')
    (folder / "mcp.json").write_text(
        """{"servers": {"it": {"command": "${workspaceFolder}/run", "cwd": "src",
        "args": ["${workspaceFolderBasename}", "${userHome}"],
        "envFile": "${workspaceFolder}/.env", "env": {"TOKEN": "of the entry"}}}}"""
    )
    target = read_servers(folder / "mcp.json", {}).entries[0].target
    assert isinstance(target, StdioCommand)
    assert target.command == (f"{tmp_path}/run", tmp_path.name, str(Path.home()))
    assert (target.cwd, target.env) == (tmp_path / "src", {"KEY": "a b", "TOKEN": "of the entry"})


def test_a_broken_file_of_variables_is_named_without_the_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("secret value\n")
    problem = problem_of({"command": "uvx", "envFile": str(tmp_path / ".env")})
    assert problem.endswith("can't be read: line 1: write NAME=VALUE, with quotes that end on the same line.")


def test_users_sign_in_where_an_entry_or_the_command_says_so() -> None:
    assert endpoint_of({"url": URL}).sign_in is None
    assert endpoint_of({"url": URL, "auth": "oauth"}).sign_in == SignIn()
    assert endpoint_of({"url": URL, "auth": "${TOKEN}"}).headers == {"authorization": "Bearer t-1"}
    sign_in = SignIn(name="here")
    entries = {
        "a": {"url": URL, "auth": "oauth"},
        "b": {"url": URL},
        "c": {"url": URL, "headers": {"Authorization": "x"}},
    }
    servers = read_servers({"mcpServers": entries}, {}, sign_in)
    assert [getattr(entry.target, "sign_in", None) for entry in servers.entries] == [sign_in, sign_in, None]


def test_members_without_a_meaning_are_named_and_those_about_a_client_are_not() -> None:
    entry = {"command": "uvx", "alwaysAllow": ["a"], "description": "x", "colour": 1, "url2": "x"}
    servers = read_servers({"mcpServers": {"time": entry}}, {})
    assert servers.notes == ["The server 'time' has members without a meaning here: colour, url2."]


@pytest.mark.parametrize(("tools", "notes"), [(["*"], 0), (["now"], 0), ({"now": {"name": "time"}}, 1)])
def test_changes_of_tools_for_fastmcp_are_named(tools: object, notes: int) -> None:
    servers = read_servers({"mcpServers": {"time": {"command": "uvx", "tools": tools}}}, {})
    assert servers.notes == ["The server 'time' has members without a meaning here: tools."][:notes]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "mcp.json, line 1, column 2: "),
        ("[]", "mcp.json is not an object with servers."),
        ("{}", "The configuration names no servers. They are members of an object such as context_servers, "),
        ('{"mcpServers": {}}', "The configuration names no servers."),
        ('{"mcpServers": 5, "a": {"b": 1}}', "The configuration names no servers."),
        (b"\xff", "mcp.json is not UTF-8."),
    ],
)
def test_a_file_without_servers_is_an_error_that_says_why(tmp_path: Path, text: str | bytes, problem: str) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ServersFileError) as caught:
        read_servers(file, {})
    assert problem in str(caught.value)


def test_a_file_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ServersFileError, match=r"none\.json can't be read: No such file or directory\."):
        read_servers(tmp_path / "none.json", {})


@pytest.mark.parametrize(
    ("members", "timeouts"),
    [
        ({}, None),
        ({"timeout": 600_000}, UpstreamTimeouts(request=600)),
        ({"timeout": 1_800_000}, UpstreamTimeouts(request=1800, total=1800)),
        ({"timeout": 60}, UpstreamTimeouts(request=60)),
        ({"timeout": "60"}, None),
        ({"startup_timeout_sec": 20, "tool_timeout_sec": 45.5}, UpstreamTimeouts(connect=20, request=45.5)),
    ],
)
def test_an_entry_says_how_long_its_server_may_take(members: dict[str, Any], timeouts: UpstreamTimeouts | None) -> None:
    servers = read_servers({"mcpServers": {"a": {"url": "https://example.com/mcp", **members}}}, {})
    assert ([entry.timeouts for entry in servers.entries], servers.notes) == ([timeouts], [])


def test_a_timeout_that_could_be_seconds_or_milliseconds_is_named_and_not_used() -> None:
    servers = read_servers({"mcpServers": {"a": {"url": "https://example.com/mcp", "timeout": 1800}}}, {})
    assert servers.entries[0].timeouts is None
    assert servers.notes == [
        "The timeout 1800 of the server 'a' is not used: it could be seconds or milliseconds.",
    ]


def test_a_user_without_a_home_folder_needs_none_but_for_a_reference_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_home(path: Path) -> Path:
        if path.parts[:1] == ("~",):
            raise RuntimeError("Could not determine home directory.")
        return path

    monkeypatch.setattr(Path, "expanduser", without_home)
    entries = {"a": {"command": "a"}, "b": {"command": "b", "args": ["${userHome}"]}}
    servers = read_servers({"mcpServers": entries}, {})
    assert [entry.name for entry in servers.entries] == ["a"]
    assert len(servers.problems) == 1
    assert "it needs the home folder of the user" in str(servers.problems[0])

"""What ``funcmcp install`` prints beside files of clients: links that add a server, a command, and goose's YAML.

Sources: code.visualstudio.com, "Use MCP servers in VS Code" (the link); cursor.com/docs/mcp (the link);
lmstudio.ai/docs/app/mcp/deeplink; goose's documentation, "Using Extensions" and the code that opens its links, which
runs some programs only and takes no values of variables.
"""

from __future__ import annotations

import base64
import json
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from funcmcp._page.mcp_clients import ClientProfile
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from funcmcp_cli.install.entries import Entry, ServerDescription

MCP_JSON = ClientProfile(
    "mcp.json",
    "mcp.json",
    "mcp.json",
    has_comments=True,
    reference="${NAME}",
    next_step="Give it to a client that reads mcpServers.",
)
"""The form of most clients, as a file in the current folder."""

TEXTS = ("command", "goose")
"""Names in place of a client for which nothing is merged into a file."""

_GOOSE_PROGRAMS = ("docker", "jbang", "npx", "uvx")
"""Programs that goose's links may start, of those that others than goose have."""

_GOOSE_SECONDS = 300


def link_for(client: ClientProfile, server: ServerDescription, entry: Entry) -> str:
    """Return the link that adds a server to a client.

    Args:
        client: The client.
        server: The server.
        entry: The server's entry for the client.

    Raises:
        Failure: The client has no such links.
    """
    if client.page_link is None:
        raise Failure(f"{client.title} has no links. Leave out --link, or choose vscode, cursor, lm-studio or goose.")
    named: dict[str, Any] = {"name": server.name, **entry.members}
    if entry.inputs:
        named["inputs"] = entry.inputs
    values = {
        "name": server.name,
        "entry": base64.b64encode(json.dumps(entry.members).encode()).decode(),
        "named_entry": json.dumps(named),
    }
    return client.page_link.format(**{key: quote(value, safe="") for key, value in values.items()})


def goose_link(server: ServerDescription) -> str:
    """Return the link that adds a server to goose. goose asks for the values of variables."""
    fields = [("id", server.name), ("name", server.name)]
    if server.url:
        fields += [("url", server.url), *(("header", f"{name}={value}") for name, value in server.headers.items())]
    else:
        program = PurePath(server.command[0]).name.removesuffix(".exe")
        if program not in _GOOSE_PROGRAMS:
            raise Failure(
                f"A link for goose can start only {', '.join(_GOOSE_PROGRAMS)}, not {program}. Pass --runner uvx, or "
                "leave out --link and put the text into goose's file."
            )
        fields += [("cmd", program), *(("arg", argument) for argument in server.command[1:])]
        fields += [("env", name) for name in server.env]
    return f"goose://extension?{urlencode(fields, quote_via=quote)}"


def goose_text(server: ServerDescription) -> str:
    """Return a server's entry for goose's config.yaml. Each value is written as JSON, which YAML contains."""
    members: dict[str, Any] = {"name": server.name, "enabled": True, "timeout": _GOOSE_SECONDS}
    literals = {name: value for name, value in server.env.items() if value != f"${{{name}}}"}
    if server.url:
        members |= {"type": "streamable_http", "uri": server.url, "headers": dict(server.headers)}
    else:
        members |= {"type": "stdio", "cmd": server.command[0], "args": list(server.command[1:])}
    members |= {"envs": literals, "env_keys": [name for name in server.env if name not in literals]}
    lines = ["extensions:", f"  {json.dumps(server.name)}:"]
    for name, value in members.items():
        if value not in ({}, []):
            lines.append(f"    {name}: {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


def command_text(server: ServerDescription) -> str:
    """Return the command of a server for a POSIX shell."""
    if server.url:
        raise Failure("A server at a URL has no command. Write the URL itself into the client.")
    variables = [f"{name}={_shell_value(name, value)}" for name, value in server.env.items()]
    return " ".join([*variables, shlex.join(server.command)]) + "\n"


def _shell_value(name: str, value: str) -> str:
    return f'"${name}"' if value == f"${{{name}}}" else shlex.quote(value)

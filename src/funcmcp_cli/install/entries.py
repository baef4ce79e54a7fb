"""The entry of one server in the configuration of a client."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._page.mcp_clients import ClientProfile
    from funcmcp_cli.faults import Fault

_ALLOWED_BY_MCP_REMOTE = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])([:/]|$)")
"""URLs to which mcp-remote connects over HTTP without ``--allow-http``."""

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BEARER = re.compile(r"Bearer \$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class ServerDescription:
    """A server, as its user describes it.

    In values of *env* and *headers*, ``${NAME}`` refers to an environment variable of the user.

    Attributes:
        name: The name of the entry.
        command: The program and its arguments. Empty for a server at a URL.
        url: The endpoint. Empty for a command.
        env: Environment variables of the command.
        headers: Header fields of each request to the URL.
        advice: A sentence about the command that its user should know. Empty if there is none.
        faults: The features that the server leaves out of its lists.
        notes: Sentences about paths that lead to other files in the folder where a client starts the command.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""
    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A server in the form of one client.

    Attributes:
        members: The members of the entry.
        inputs: Values that Visual Studio Code asks its user for.
    """

    members: dict[str, Any]
    inputs: list[dict[str, Any]]


MEMBERS = frozenset(
    {
        "args", "bearer_token_env_var", "command", "env", "env_http_headers", "env_vars", "environment", "headers",
        "http_headers", "httpUrl", "serverUrl", "type", "url",
    }
)  # fmt: skip
"""Members that an entry gets from here. An existing entry keeps its other members, such as "disabled"."""

VARIABLES = frozenset({
    "bearer_token_env_var", "env", "env_http_headers", "env_vars", "environment", "headers", "http_headers",
})  # fmt: skip
"""Members with environment variables and header fields. An existing entry keeps those that are not given anew."""


def entry_for(client: ClientProfile, server: ServerDescription) -> Entry:
    """Return the entry of a server in a client's configuration.

    Raises:
        Failure: The client's file cannot refer to an environment variable in such a way.
    """
    if client.format == "toml":
        return Entry(_codex_members(server), [])
    if server.url and client.url is None:
        return Entry(_bridge_members(client, server), [])
    inputs: dict[str, dict[str, Any]] = {}
    env = {key: _with_references(client, value, inputs) for key, value in server.env.items()}
    headers = {key: _with_references(client, value, inputs) for key, value in server.headers.items()}
    members: dict[str, Any]
    if server.url:
        members = {**client.http, str(client.url): server.url}
        if headers:
            members[client.headers] = headers
        return Entry(members, list(inputs.values()))
    members = dict(client.stdio)
    if client.joins_command:
        members["command"] = list(server.command)
    else:
        members["command"] = server.command[0]
        members["args"] = list(server.command[1:])
    if env:
        members[client.env] = env
    return Entry(members, list(inputs.values()))


def _with_references(client: ClientProfile, value: str, inputs: dict[str, dict[str, Any]]) -> str:
    """Return a value with the client's references to environment variables, and add what the client asks for."""
    form = client.reference
    for name in _REFERENCE.findall(value):
        if form is None:
            raise Failure(
                f"{client.title} takes values literally, so its file cannot refer to ${{{name}}}. Pass the value."
            )
        if form.startswith("${input:"):
            inputs[name] = {"type": "promptString", "id": name, "description": f"The value of {name}", "password": True}
    if form is None:
        return value
    return _REFERENCE.sub(lambda match: form.replace("NAME", match[1]), value)


def _bridge_members(client: ClientProfile, server: ServerDescription) -> dict[str, Any]:
    """Return the entry of a URL for a client that starts processes only: mcp-remote connects to the URL."""
    arguments = ["-y", "mcp-remote", server.url]
    for name, value in server.headers.items():
        arguments += ["--header", f"{name}:{_with_references(client, value, {})}"]
    if server.url.startswith("http://") and not _ALLOWED_BY_MCP_REMOTE.match(server.url):
        arguments.append("--allow-http")
    return {"command": "npx", "args": arguments}


def _codex_members(server: ServerDescription) -> dict[str, Any]:
    """Return the entry of a server for Codex, which has members of its own for environment variables."""
    return _codex_url_members(server) if server.url else _codex_command_members(server)


def _codex_command_members(server: ServerDescription) -> dict[str, Any]:
    members: dict[str, Any] = {"command": server.command[0], "args": list(server.command[1:])}
    literals: dict[str, str] = {}
    forwarded: list[str] = []
    for key, value in server.env.items():
        if value == f"${{{key}}}":
            forwarded.append(key)
        elif _REFERENCE.search(value):
            raise Failure(
                f"Codex cannot build {key} from {value}. Set the variable {key} itself, and pass --env {key}."
            )
        else:
            literals[key] = value
    if literals:
        members["env"] = literals
    if forwarded:
        members["env_vars"] = forwarded
    return members


def _codex_url_members(server: ServerDescription) -> dict[str, Any]:
    members: dict[str, Any] = {"url": server.url}
    for name, value in server.headers.items():
        bearer = _BEARER.fullmatch(value)
        reference = _REFERENCE.fullmatch(value)
        if bearer and name.lower() == "authorization":
            members["bearer_token_env_var"] = bearer[1]
        elif reference:
            members.setdefault("env_http_headers", {})[name] = reference[1]
        elif _REFERENCE.search(value):
            raise Failure(
                f"Codex takes the value of {name} from one variable, or literally. Put all of it into a variable."
            )
        else:
            members.setdefault("http_headers", {})[name] = value
    return members

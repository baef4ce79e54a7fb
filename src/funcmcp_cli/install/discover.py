"""``funcmcp discover``: the servers in the configuration files of MCP clients."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from funcmcp._page.mcp_clients import CLIENTS
from funcmcp._text.visible import visible_line, visible_url
from funcmcp_cli.commands import app, examples
from funcmcp_cli.failure import Failure
from funcmcp_cli.home_folder import home_folder
from funcmcp_cli.json_values import as_list, as_object
from funcmcp_cli.output import write_json, write_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp._page.mcp_clients import ClientProfile

_SECRET = re.compile(r"(?i)key|token|secret|pass|pwd|header|credential|auth|cookie")
"""Words in the names of options whose values are not shown."""

_FIELD = re.compile(
    r"(?i)([\w-]*(?:key|token|secret|password|credential|auth|cookie)[\w-]*:|bearer |basic ).+", re.DOTALL
)
"""A header field or credentials as a word of its own, such as ``Authorization: Bearer ...`` after ``-H``."""

_ASSIGNED = re.compile(r"(?i)([\w -]*(?:key|token|secret|pass|pwd|credential)[\w-]*=)[^;&\s]+")
"""A part of a word, such as that of a connection string: ``Server=db;Password=...``."""

_KNOWN_KEY = re.compile(r"(?<![\w-])(?:sk-|gh[opsu]_|github_pat_|glpat-|xox[a-z]-|eyJ)[\w.-]{16,}")
"""A key or a token that says by its first characters what it is, also in the path of a URL."""


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """A server in a client's file.

    Attributes:
        client: The client's name on the command line.
        name: The name of the entry.
        server: The URL without its query, or the command without the values of options with secrets.
        file: The file.
    """

    client: str
    name: str
    server: str
    file: str


@app.command(epilog=examples("funcmcp discover", "funcmcp discover --json"))
def discover(*, as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False) -> None:
    """List the servers that MCP clients on this machine have in their files, for the user and for this folder.

    Environment variables, header fields, users and queries of URLs and other secrets of an entry are not shown. A key
    in the path of a URL is shown, unless it has a known form. The exit code is 1 if a file cannot be read.
    """
    from funcmcp_cli.show import print_rows

    servers: list[ConfiguredServer] = []
    problems: list[str] = []
    hints: list[str] = []
    for name, client in sorted(CLIENTS.items()):
        for file in _files(client):
            try:
                document = _read(client, file)
                servers += _servers_in(name, client, file, document)
                hints += _hints(client, file, document)
            except Failure as error:
                problems.append(str(error))
            except ValueError as error:
                problems.append(f"{file} can't be read: {error}")
    if as_json:
        write_json([asdict(server) for server in servers])
    elif servers:
        rows = [
            (server.client, visible_line(server.name), visible_line(server.server), server.file) for server in servers
        ]
        print_rows(("Client", "Name", "Server", "File"), rows)
    else:
        write_line("No MCP server is configured for the clients on this machine.")
    for problem in (*hints, *problems):
        write_line(problem, error=True)
    if problems:
        raise typer.Exit(1)


def _files(client: ClientProfile) -> list[Path]:
    """Return the files of a client, for the user and for the current folder, that exist."""
    from funcmcp_cli.install.files import user_file

    files = [user_file(client, sys.platform, os.environ, home_folder())]
    if client.workspace_file is not None:
        files.append(Path.cwd() / client.workspace_file)
    return [file for file in files if file.is_file()]


def _read(client: ClientProfile, file: Path) -> Any:
    """Return what a client's file contains; raise Failure or ValueError if it cannot be read."""
    from funcmcp._text.jsonc import parse
    from funcmcp_cli.install.files import read

    text = read(file).removeprefix("\ufeff")
    if client.format == "toml":
        try:
            return tomllib.loads(text)
        except RecursionError as error:
            raise ValueError("the values are nested too deeply") from error
    return parse(text, comments=client.has_comments).value if text.strip() else {}


def _servers_in(name: str, client: ClientProfile, file: Path, document: Any) -> Iterator[ConfiguredServer]:
    """Yield the servers in a client's file."""
    for key, entry in _member(document, client.servers).items():
        yield ConfiguredServer(name, str(key), _server_of(client, as_object(entry)), str(file))


def _hints(client: ClientProfile, file: Path, document: Any) -> Iterator[str]:
    """Yield a sentence about servers in a client's file that are where another client has them."""
    for members in sorted({other.servers for other in CLIENTS.values()} - {client.servers}):
        if _member(document, members) and not _member(document, client.servers):
            wrong, right = ".".join(members), ".".join(client.servers)
            yield f"{client.title} does not read the servers below {wrong!r} in {file}. Move them to {right!r}."


def _member(document: Any, members: tuple[str, ...]) -> Any:
    """Return the object that nested members lead to; an empty one if there is none."""
    for member in members:
        document = as_object(as_object(document).get(member))
    return document


def _server_of(client: ClientProfile, entry: Any) -> str:
    """Return the URL or the command of an entry, without what may be secret."""
    for member in (client.url, "url", "httpUrl", "serverUrl"):
        if member is not None and isinstance(entry.get(member), str):
            return _KNOWN_KEY.sub("***", visible_url(entry[member]))
    command = entry.get("command")
    program = as_list(command) if isinstance(command, list) else [command or "?", *as_list(entry.get("args"))]
    return shlex.join(_without_secrets([str(word) for word in program]))


def _without_secrets(arguments: list[str]) -> list[str]:
    """Return the words of a command; the values of options that name a secret, and the queries of URLs, are ``***``."""
    shown = []
    hides_next = False
    for word in arguments:
        is_url = "://" in word
        option, equals, _ = word.partition("=")
        is_secret = not is_url and bool(_SECRET.search(option)) and (word.startswith("-") or bool(equals))
        if hides_next:
            shown.append("***")
        elif is_secret and equals:
            shown.append(f"{option}=***")
        else:
            text = visible_url(word) if is_url else _ASSIGNED.sub(r"\1***", _FIELD.sub(r"\1***", word))
            shown.append(_KNOWN_KEY.sub("***", text))
        hides_next = is_secret and not equals and not hides_next
    return shown

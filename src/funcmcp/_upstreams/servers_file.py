"""The configuration files of MCP clients: which servers they name, and how each is reached.

How it works: `read_servers` finds the object with the servers, wherever one of the known clients has it. Each entry is
read for itself, so a broken one is a sentence in `problems` and takes nothing away from the others. References to
environment variables are replaced first, in every form that a client knows.

Sources: the pages in `funcmcp._page.mcp_clients`; code.visualstudio.com/docs/agents/reference/mcp-configuration
(`inputs`, predefined variables, `envFile`); code.claude.com/docs/en/mcp ("Environment variable expansion":
``${NAME:-default}``); gofastmcp.com/integrations/mcp-json-configuration.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from funcmcp._client.targets import HTTPEndpoint, SignIn, StdioCommand
from funcmcp._page.mcp_clients import CLIENTS
from funcmcp._text.files import read_text
from funcmcp._text.jsonc import parse
from funcmcp._text.variable_files import variables_in
from funcmcp._upstreams.limits import UpstreamTimeouts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PLACES = sorted({client.servers for client in CLIENTS.values()})
"""The nested members that lead to the object with the servers, as each client writes them."""

_URLS = ("url", "httpUrl", "serverUrl")
_HTTP_TYPES = {"http", "streamable-http", "streamableHttp", "streamable_http", "remote", "sse"}
_STDIO_TYPES = {"stdio", "local"}
_SHARED = {"type", "transport", "disabled", "enabled"}
_COMMAND_MEMBERS = _SHARED | {"command", "args", "env", "environment", "env_vars", "envFile", "cwd"}
_URL_MEMBERS = _SHARED | {*_URLS, "headers", "http_headers", "env_http_headers", "bearer_token_env_var", "auth"}
_OF_THE_CLIENT = {
    *("alwaysAllow", "autoApprove", "description", "dev", "gallery", "icon", "iconPath", "name", "note", "tools"),
    *("startup_timeout_sec", "timeout", "tool_timeout_sec", "trust", "version"),
}
"""Members that are about how a client uses a server: whether it asks, what it shows, how long it waits."""

_SECOND, _HOUR = 1000, 3600
"""`timeout` is in milliseconds in the files of most clients, and at most an hour in seconds in those of some."""

_REFERENCE = re.compile(r"\$\{(?:(env|input):)?([A-Za-z_][\w.-]*)(?::-([^}]*))?\}|\{env:([A-Za-z_]\w*)\}")
_NOT_IN_HEADER = re.compile("[\r\n\0]")
_NOT_IN_PREFIX = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_PREFIX = 63


class ServersFileError(ValueError):
    """A configuration can't be read, or names no servers."""


class _EntryError(ValueError):
    """An entry can't be used. The text does not contain values, which may be secret."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """A server in a configuration.

    Attributes:
        name: The name of the entry.
        prefix: The prefix of its names and URIs if it is one of several.
        target: How it is reached.
        timeouts: How long it may take; None if the entry does not say so.
    """

    name: str
    prefix: str
    target: HTTPEndpoint | StdioCommand
    timeouts: UpstreamTimeouts | None = None


@dataclass(slots=True)
class ConfiguredServers:
    """The servers of a configuration.

    Attributes:
        entries: Those that can be used.
        problems: A sentence for each entry that can't be used.
        notes: Sentences about members that have no meaning here, and about entries that are switched off.
        has_prefixes: Whether names get prefixes: if there is more than one entry, also if only one can be used. So
            names depend on the file alone.
    """

    entries: list[ServerEntry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    has_prefixes: bool = False


def read_servers(
    configuration: Mapping[str, Any] | Path, environment: Mapping[str, str], sign_in: SignIn | None = None
) -> ConfiguredServers:
    """Return the servers in a client's configuration.

    Args:
        configuration: The configuration, or its file: JSON with comments, or TOML.
        environment: The environment variables to which it may refer.
        sign_in: How a user signs in at URLs without other credentials.

    Raises:
        ServersFileError: The file can't be read, or has no servers.
    """
    folder = Path.cwd()
    if isinstance(configuration, Path):
        folder = _workspace_of(configuration.absolute())
        configuration = _parsed(configuration)
    entries = _entries_in(configuration)
    variables = _Variables(environment, configuration.get("inputs"), folder)
    servers = ConfiguredServers(has_prefixes=len(entries) > 1)
    prefixes: dict[str, str] = {}
    for name, entry in entries.items():
        try:
            target = _target_of(name, entry, variables, servers, sign_in)
            if target is not None:
                prefix = _prefix_of(name, prefixes)
                servers.entries.append(ServerEntry(name, prefix, target, _timeouts_of(name, entry, servers)))
        except (_EntryError, OSError) as error:
            servers.problems.append(f"The server {name!r} is left out: {error}")
    return servers


def _workspace_of(file: Path) -> Path:
    """Return the folder of the project that a file is for: that above ``.vscode`` and the like, else its own."""
    folder = file.parent
    return folder.parent if folder.name.startswith(".") else folder


def _parsed(file: Path) -> Mapping[str, Any]:
    """Return the contents of a file; raise ServersFileError."""
    try:
        text = read_text(file)
        value = tomllib.loads(text) if file.suffix == ".toml" else parse(text, comments=True).value
    except UnicodeDecodeError as error:
        raise ServersFileError(f"{file} is not UTF-8.") from error
    except OSError as error:
        raise ServersFileError(f"{file} can't be read: {error.strerror}.") from error
    except RecursionError as error:
        raise ServersFileError(f"{file} is nested too deeply.") from error
    except ValueError as error:
        raise ServersFileError(f"{file}, {error}.") from error
    if not isinstance(value, dict):
        raise ServersFileError(f"{file} is not an object with servers.")
    return value


def _entries_in(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entries of the servers, by name; raise ServersFileError if there are none."""
    for place in _PLACES:
        entries: Any = configuration
        for member in place:
            entries = entries.get(member) if isinstance(entries, dict) else None
        if isinstance(entries, dict) and entries:
            return entries
    if any(_is_entry(value) for value in configuration.values()):  # FastMCP takes servers without a member above them
        return configuration
    names = ", ".join(".".join(place) for place in _PLACES)
    raise ServersFileError(f"The configuration names no servers. They are members of an object such as {names}.")


def _is_entry(value: object) -> bool:
    return isinstance(value, dict) and any(member in value for member in ("command", *_URLS))


def _prefix_of(name: str, prefixes: dict[str, str]) -> str:
    """Return the prefix for an entry, and remember it; raise _EntryError if another entry has it."""
    prefix = _NOT_IN_PREFIX.sub("_", name).strip("_-")[:_MAX_PREFIX]
    if not prefix:
        raise _EntryError("its name has no letter or digit of ASCII, so it gives no prefix. Rename it.")
    other = prefixes.setdefault(prefix, name)
    if other != name:
        raise _EntryError(f"{other!r} has the same prefix, {prefix}. Rename one of them.")
    return prefix


def _target_of(
    name: str, entry: object, variables: _Variables, servers: ConfiguredServers, sign_in: SignIn | None
) -> HTTPEndpoint | StdioCommand | None:
    """Return how the server of an entry is reached; None if it is switched off. Raise _EntryError."""
    if not isinstance(entry, dict):
        raise _EntryError("it is not an object.")
    if entry.get("disabled") is True or entry.get("enabled") is False:
        servers.notes.append(f"The server {name!r} is disabled.")
        return None
    url = next((member for member in _URLS if member in entry), None)
    kind = entry.get("type", entry.get("transport"))
    _check_kind(kind, url, entry)
    unknown = sorted(entry.keys() - (_COMMAND_MEMBERS if url is None else _URL_MEMBERS) - _OF_THE_CLIENT)
    if isinstance(entry.get("tools"), dict):
        unknown.append("tools")  # changes of tools for FastMCP; in other files the list of allowed tools
    if unknown:
        servers.notes.append(f"The server {name!r} has members without a meaning here: {', '.join(unknown)}.")
    if url is not None:
        return _endpoint(entry, url, variables, sign_in)
    return _command(entry, variables)


def _timeouts_of(name: str, entry: Mapping[str, Any], servers: ConfiguredServers) -> UpstreamTimeouts | None:
    """Return how long the server of an entry may take; None if the entry does not say so, or not clearly."""
    options: dict[str, Any] = {}
    seconds = entry.get("tool_timeout_sec")
    timeout = entry.get("timeout")
    if _is_positive(timeout):
        if timeout < _SECOND:
            seconds = timeout
        elif timeout > _HOUR:
            seconds = timeout / 1000
        else:
            servers.notes.append(
                f"The timeout {timeout} of the server {name!r} is not used: it could be seconds or milliseconds."
            )
    if _is_positive(seconds):
        options |= {"request": seconds, "total": max(seconds, UpstreamTimeouts().total or seconds)}
    if _is_positive(entry.get("startup_timeout_sec")):
        options["connect"] = entry["startup_timeout_sec"]
    return UpstreamTimeouts(**options) if options else None


def _is_positive(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _check_kind(kind: object, url: str | None, entry: Mapping[str, Any]) -> None:
    """Raise _EntryError if an entry has neither a command nor a URL, both, or another type than fits."""
    if ("command" in entry) == (url is not None):
        raise _EntryError("it needs either a command or a url.")
    if kind is None:
        return
    if not isinstance(kind, str) or kind not in _HTTP_TYPES | _STDIO_TYPES:
        raise _EntryError(f"its type {kind!r:.40} is unknown. Use stdio, http or sse.")
    if (kind in _HTTP_TYPES) != (url is not None):
        raise _EntryError(f"a server of the type {kind} needs {'a url' if url is None else 'a command'}.")


def _endpoint(entry: Mapping[str, Any], url: str, variables: _Variables, sign_in: SignIn | None) -> HTTPEndpoint:
    address = variables.text(entry[url], url)
    if not address.startswith(("http://", "https://")):
        raise _EntryError(f"its {url} must begin with http:// or https://.")
    headers = variables.texts(entry, "headers", "http_headers")
    for name, variable in variables.texts(entry, "env_http_headers").items():
        headers[name] = variables.value("env", variable, None)
    if "bearer_token_env_var" in entry:
        token = variables.value("env", variables.text(entry["bearer_token_env_var"], "bearer_token_env_var"), None)
        headers["authorization"] = f"Bearer {token}"
    auth = entry.get("auth")
    if isinstance(auth, str) and auth != "oauth":
        headers["authorization"] = f"Bearer {variables.text(auth, 'auth')}"
    elif auth == "oauth" and sign_in is None:
        sign_in = SignIn()
    if any(name.lower() == "authorization" for name in headers):
        sign_in = None
    for name, value in headers.items():
        if _NOT_IN_HEADER.search(value):
            raise _EntryError(f"the value of its header {name} has a line break or a null character.")
    return HTTPEndpoint(address, headers, sign_in=sign_in)


def _command(entry: Mapping[str, Any], variables: _Variables) -> StdioCommand:
    program = entry["command"]
    words = [*(program if isinstance(program, list) else [program]), *_list_of(entry, "args")]
    if not words or not isinstance(words[0], str) or not words[0]:
        raise _EntryError("its command must be a string that is not empty.")
    count = len(words) - len(_list_of(entry, "args"))
    command = [variables.text(word, "command" if place < count else "args") for place, word in enumerate(words)]
    env: dict[str, str] = {}
    if "envFile" in entry:
        env |= _variables_of_file(variables.path(entry["envFile"], "envFile"))
    for name in _list_of(entry, "env_vars"):
        env[str(name)] = variables.value("env", str(name), None)
    env |= variables.texts(entry, "env", "environment")
    cwd = variables.path(entry["cwd"], "cwd") if "cwd" in entry else None
    return StdioCommand(*command, env=env, cwd=cwd)


def _list_of(entry: Mapping[str, Any], member: str) -> list[Any]:
    value = entry.get(member, [])
    if not isinstance(value, list):
        raise _EntryError(f"its {member} must be a list.")
    return value


def _with_home(path: Path) -> Path:
    """Return a path with the user's home folder for ``~``; raise _EntryError if the user has none."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise _EntryError(
            "it needs the home folder of the user, who has none. Set the environment variable HOME."
        ) from None


def _variables_of_file(file: Path) -> dict[str, str]:
    try:
        return variables_in(read_text(file))
    except OSError as error:
        raise _EntryError(f"its envFile {file} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise _EntryError(f"its envFile {file} can't be read: {error}") from error


class _Variables:
    """Replaces the references in the values of a configuration.

    Args:
        environment: The environment variables.
        inputs: The list of values that Visual Studio Code asks its user for.
        folder: The folder of the project.
    """

    def __init__(self, environment: Mapping[str, str], inputs: object, folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        described = [item for item in inputs if isinstance(item, dict)] if isinstance(inputs, list) else []
        self._defaults = {str(item.get("id")): item.get("default") for item in described}
        self._predefined = {
            "workspaceFolder": str(folder),
            "workspaceFolderBasename": folder.name,
        }

    def text(self, value: object, member: str) -> str:
        """Return a text without references; raise _EntryError if it is not a text, or a variable is not set."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)  # a port, as an argument or a variable
        if not isinstance(value, str):
            raise _EntryError(f"a value of its {member} is not a string.")
        try:
            return _REFERENCE.sub(self._replacement, value)
        except _EntryError as error:
            raise _EntryError(f"in its {member}, {error}") from None

    def texts(self, entry: Mapping[str, Any], *members: str) -> dict[str, str]:
        """Return the texts of the objects with these names, without references."""
        texts: dict[str, str] = {}
        for member in members:
            values = entry.get(member) or {}
            if not isinstance(values, dict):
                raise _EntryError(f"its {member} must be an object.")
            texts |= {name: self.text(value, f"{member}.{name}") for name, value in values.items()}
        return texts

    def path(self, value: object, member: str) -> Path:
        """Return a path in the folder of the project."""
        return self._folder / _with_home(Path(self.text(value, member)))

    def value(self, kind: str | None, name: str, default: str | None) -> str:
        """Return the value of a variable or of an input; raise _EntryError if there is none."""
        if kind is None and name in self._predefined:
            return self._predefined[name]
        if kind is None and name == "userHome":
            return str(_with_home(Path("~")))
        for variable in self._names_of(kind, name):
            if variable in self._environment:
                return self._environment[variable]
        if kind == "input" and isinstance(self._defaults.get(name), str):
            default = self._defaults[name]
        if default is None:
            what = f"for its input {name}, " if kind == "input" else ""
            raise _EntryError(f"{what}the environment variable {list(self._names_of(kind, name))[-1]} is not set.")
        return default

    def _names_of(self, kind: str | None, name: str) -> Iterable[str]:
        """Yield the names of the environment variables that stand for a reference."""
        yield name
        if kind == "input":
            yield re.sub(r"\W", "_", name).upper()

    def _replacement(self, match: re.Match[str]) -> str:
        kind, name, default, name_of_env = match.groups()
        return self.value(kind, name or name_of_env, default)

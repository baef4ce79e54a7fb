"""A project's folder as ``funcmcp doctor`` reads it: its files, and the contents of its code after it is imported."""

from __future__ import annotations

import codecs
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp._adapters.azure.settings import at, can_be_set
from funcmcp._text.files import MAX_BYTES, is_file, read_bytes, read_text
from funcmcp._text.jsonc import parse
from funcmcp_cli.failure import Failure
from funcmcp_host.app_rules.model import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Level: TypeAlias = Literal["error", "warning", "ok"]

_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?\s*([^;#]*)")
_INCLUDE = re.compile(r"(?:-r|--requirement)[\s=]*([^\s#]+)")
_PROBE_SECONDS = 60
_STDERR_LINES = 3
"""Lines at the end of a failed process's stderr that are part of the message."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check.

    Attributes:
        level: "error" if the app would not work, "warning" if it may not work as its author expects, otherwise "ok".
        subject: The file or setting that the finding is about.
        text: The rest of the sentence that begins with the subject: the fault, and what to do.
    """

    level: Level
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that the app requires.

    Attributes:
        extras: The extras in the brackets.
        versions: The versions after the name, such as ">=1.26,<2".
    """

    extras: frozenset[str]
    versions: str


@dataclass(frozen=True, slots=True)
class SignIn:
    """The sign-in of a server, its `OAuthProxy`.

    Attributes:
        url: The URL of the endpoint that tokens are for.
        callback: The redirect URI to register at the identity provider.
        upstream: The name of the identity provider.
        on_behalf_of: The scope that a registration in Entra ID exposes for tokens of other APIs; None: there are none.
        is_of_app: Whether the host in the URL is the one that Azure or Core Tools give the app.
        has_shared_keys: Whether other processes have the same keys.
        unknown_scopes: Scopes that features require and the proxy does not have, each with the names of its features.
    """

    url: str
    callback: str
    upstream: str
    on_behalf_of: str | None
    is_of_app: bool
    has_shared_keys: bool
    unknown_scopes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """An MCPServer in the project's code.

    Attributes:
        name: Its name.
        path: The path of its endpoint.
        has_auth: Whether it authenticates callers.
        keeps_sessions: Whether it keeps sessions in the memory of its process.
        longest_run: Seconds that a run of a task may take at most; None without tasks.
        unaccepted: Features that some clients do not accept: their names, and a text about the reason.
        sign_in: Its sign-in; None without an `OAuthProxy`.
        tokens: The estimate of what its list of tools costs a model.
    """

    name: str
    path: str
    has_auth: bool
    keeps_sessions: bool
    longest_run: float | None = None
    unaccepted: list[tuple[str, str]] = field(default_factory=list)
    sign_in: SignIn | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class ImportedCode:
    """The contents of the project's code after it is imported.

    Attributes:
        error: The error of the import. None if it succeeded.
        has_app: Whether the code has a FunctionApp.
        functions: The bindings of each function, by the function's name.
        servers: The MCPServer objects.
        files: The project's files that the import read, relative to its folder, with slashes.
    """

    error: str | None = None
    has_app: bool = False
    functions: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    servers: list[ImportedServer] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Project:
    """A project's folder.

    Attributes:
        folder: The path of the folder.
        documents: The JSON objects in host.json and local.settings.json, by file name. A missing file is left out.
        errors: The errors in these files, by file name.
        requirements: The required packages, by name in lower case with hyphens. None if the project has neither
            requirements.txt nor pyproject.toml.
        code_file: The file that Azure starts with: the script of the custom handler, or function_app.py.
        code: The contents of the code.
    """

    folder: Path
    documents: Mapping[str, dict[str, Any]]
    errors: Mapping[str, str]
    requirements: Mapping[str, Requirement] | None
    code_file: Path
    code: ImportedCode

    @property
    def funcmcp(self) -> Requirement | None:
        """The requirement of funcmcp, with or without the command. None if there is none, or no list of packages."""
        listed = [(self.requirements or {}).get(name) for name in ("funcmcp-slim", "funcmcp")]
        required = [requirement for requirement in listed if requirement is not None]
        if not required:
            return None
        extras = frozenset(extra for requirement in required for extra in requirement.extras)
        return Requirement(extras, required[0].versions)

    @property
    def has_command(self) -> bool:
        """Whether the app requires the distribution that has the command and an HTTP server."""
        return "funcmcp" in (self.requirements or {})

    @property
    def host(self) -> dict[str, Any]:
        """The object in host.json. Empty if the file is missing."""
        return self.documents.get("host.json", {})

    @property
    def settings(self) -> dict[str, str]:
        """The app settings in local.settings.json."""
        return _settings(self.documents)

    @property
    def is_self_hosted(self) -> bool:
        """Whether the app is a custom handler."""
        return at(self.host, "customHandler") is not None

    @property
    def triggers(self) -> list[tuple[str, dict[str, Any]]]:
        """The MCP bindings of all functions, each with its function's name."""
        return [(name, binding) for name, binding in self._bindings() if kind_of(binding).startswith("mcp")]

    @property
    def endpoints(self) -> list[tuple[str, dict[str, Any]]]:
        """The HTTP triggers that `http_app` made, each with its function's name.

        They are the ones with another function for preflight requests.
        """
        names = self.code.functions
        return [(name, binding) for name, binding in self.http_triggers if f"{name}_preflight" in names]

    @property
    def http_triggers(self) -> list[tuple[str, dict[str, Any]]]:
        """The HTTP triggers of all functions, each with its function's name."""
        return [(name, binding) for name, binding in self._bindings() if kind_of(binding) == "httptrigger"]

    @property
    def requirements_file(self) -> str:
        """The file with the packages that Azure's build installs."""
        return _requirements_file(self.folder) or "requirements.txt"

    @property
    def task_triggers(self) -> list[dict[str, Any]]:
        """The queue triggers that `http_app` made to run tasks."""
        names = {f"{name}_tasks" for name, _ in self.endpoints}
        return [binding for name, binding in self._bindings() if name in names and kind_of(binding) == "queuetrigger"]

    @property
    def has_auth(self) -> bool:
        """Whether every server authenticates callers."""
        return bool(self.code.servers) and all(server.has_auth for server in self.code.servers)

    def text_of(self, name: str) -> str:
        """Return a file's text. Return an empty text if the file is missing."""
        return text_of_file(self.folder / name)

    def _bindings(self) -> list[tuple[str, dict[str, Any]]]:
        return [(name, binding) for name, bindings in self.code.functions.items() for binding in bindings]


def text_of_file(file: Path) -> str:
    """Return a file's text, with bytes that are not UTF-8 replaced. Return an empty text if the file is missing.

    Raises:
        Failure: The file can't be read, or is too large.
    """
    if is_file(file):
        return _bytes_of(file).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    return ""


def _bytes_of(file: Path) -> bytes:
    try:
        return read_bytes(file, MAX_BYTES)
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from error


def read_project(folder: Path, defaults: Mapping[str, str] | None = None) -> Project:
    """Read a folder, and import its code in a new process.

    Args:
        folder: The folder.
        defaults: Environment variables of that process, unless this one or local.settings.json has them.

    Raises:
        Failure: The folder does not exist, or its pyproject.toml is not valid.
    """
    project = read_files(folder)
    return replace(project, code=_import(folder, project.code_file, project.settings, defaults or {}))


def read_files(folder: Path) -> Project:
    """Read the files of a folder, without its code.

    Raises:
        Failure: The folder does not exist, or its pyproject.toml is not valid.
    """
    if folder.is_file() or str(folder).startswith(("http:", "https:")):
        raise Failure(
            "doctor checks the folder of a project for Azure Functions. To check a server: funcmcp inspect FILE or URL"
        )
    if not folder.is_dir():
        raise Failure(f"The folder {folder} does not exist.")
    documents: dict[str, dict[str, Any]] = {}
    errors = {}
    for name in ("host.json", "local.settings.json"):
        try:
            documents[name] = _object(read_text(folder / name))
        except FileNotFoundError:
            continue
        except OSError as error:
            errors[name] = str(error.strerror)
        except ValueError as error:
            errors[name] = str(error)
    code_file = _code_file(folder, documents)
    return Project(folder, documents, errors, _requirements(folder), code_file, ImportedCode())


def _object(text: str) -> dict[str, Any]:
    value = parse(text, comments=True).value
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - the caller handles both kinds of invalid JSON alike
    return value


def _settings(documents: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    values = at(documents.get("local.settings.json"), "Values")
    if isinstance(values, dict):
        return {str(name): str(value) for name, value in values.items()}
    return {}


def _code_file(folder: Path, documents: Mapping[str, dict[str, Any]]) -> Path:
    """Return the file that Azure starts with: the script of the custom handler, or function_app.py by any name."""
    arguments = at(documents.get("host.json"), "customHandler", "description", "arguments")
    for argument in arguments if isinstance(arguments, list) else ():
        if str(argument).endswith(".py"):
            return folder / str(argument)
    name = _settings(documents).get("PYTHON_SCRIPT_FILE_NAME", "")
    return folder / (name if name.endswith(".py") else "function_app.py")


def _requirements(folder: Path) -> dict[str, Requirement] | None:
    """Return the packages that Azure's build installs: of requirements.txt, or else of pyproject.toml."""
    name = _requirements_file(folder)
    if name is None:
        return None
    try:
        read = _requirement_lines if name == "requirements.txt" else _dependencies
        lines = read(folder / name)
    except RecursionError as error:
        raise Failure(f"{folder / name} cannot be read: it is nested too deeply.") from error
    requirements = {}
    for line in lines:
        match = _REQUIREMENT.match(line.strip())
        if match:
            extras = {extra.strip().lower() for extra in (match[2] or "").split(",")} - {""}
            requirements[_normalized(match[1])] = Requirement(frozenset(extras), match[3].strip())
    return requirements


def _requirements_file(folder: Path) -> str | None:
    return next((name for name in ("requirements.txt", "pyproject.toml") if (folder / name).is_file()), None)


def _normalized(package: str) -> str:
    """Return a package's name in lower case with hyphens, as package indexes compare names."""
    return re.sub("[-_.]+", "-", package).lower()


def _requirement_lines(file: Path, files_read: set[Path] | None = None) -> list[str]:
    """Return the lines of a file and of the files that it includes with ``-r``. Each file is read once."""
    files_read = set() if files_read is None else files_read
    files_read.add(file.resolve())
    lines = []
    for line in _decoded(_bytes_of(file)).splitlines():
        include = _INCLUDE.match(line.strip())
        if include is None:
            lines.append(line)
            continue
        included = file.parent / include[1]
        if is_file(included) and included.resolve() not in files_read:
            lines += _requirement_lines(included, files_read)
    return lines


def _decoded(contents: bytes) -> str:
    """Return the text as pip decodes it: ``pip freeze > requirements.txt`` in PowerShell writes UTF-16."""
    encoding = "utf-16" if contents.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return contents.decode(encoding, "replace")


def _dependencies(file: Path) -> list[str]:
    try:
        dependencies = at(tomllib.loads(read_text(file)), "project", "dependencies")
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise Failure(f"{file} cannot be read: {error}.") from error
    if isinstance(dependencies, list):
        return [str(line) for line in dependencies]
    return []


def _import(folder: Path, code_file: Path, settings: Mapping[str, str], defaults: Mapping[str, str]) -> ImportedCode:
    """Import the code in a new process, with the app settings as environment variables, and return its contents."""
    if not is_file(code_file):
        return ImportedCode(error=f"{code_file.name} is missing")
    variables = {name: value for name, value in settings.items() if can_be_set(name, value)}
    try:
        process = subprocess.run(  # noqa: S603 - the user's own code, which the command's help says that it runs
            [sys.executable, "-m", "funcmcp_cli.doctor.probe", str(code_file.resolve())],
            cwd=folder,
            env={**defaults, **os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ImportedCode(error=f"importing {code_file.name} takes more than {_PROBE_SECONDS} seconds")
    if process.returncode or not process.stdout:
        last_lines = process.stderr.strip().splitlines()[-_STDERR_LINES:]
        return ImportedCode(error=" ".join(last_lines) or "its process ended")
    contents = json.loads(process.stdout)
    servers = [_server(values) for values in contents.pop("servers", [])]
    return ImportedCode(**contents, servers=servers)


def _server(values: dict[str, Any]) -> ImportedServer:
    sign_in = values.pop("sign_in")
    return ImportedServer(**values, sign_in=None if sign_in is None else SignIn(**sign_in))

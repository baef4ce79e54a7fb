"""A project's folder as ``funcmcp doctor`` sees it: its files, and what its code has once it is imported."""

from __future__ import annotations

import codecs
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp.adapters.azure.lenient_json import at, parse
from funcmcp.cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Level: TypeAlias = Literal["error", "warning", "ok"]

_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?\s*([^;#]*)")
_INCLUDED = re.compile(r"(?:-r|--requirement)[\s=]*([^\s#]+)")
_PROBE_SECONDS = 60
_FAILURE_LINES = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found.

    Attributes:
        level: "error" where the app would not work, "warning" where it may not do what its author wants, "ok".
        about: the file or setting that it is about.
        text: what is the matter, and what to do.
    """

    level: Level
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that the app needs.

    Attributes:
        extras: in the brackets.
        versions: what follows, such as ">=1.26,<2".
    """

    extras: frozenset[str]
    versions: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """What importing the project's code brought.

    Attributes:
        error: why it failed; None if it did not.
        has_app: whether a FunctionApp is in it.
        functions: the bindings of each function, by its name.
        servers: of each MCPServer its name and path, whether it asks who calls (`asks`), and whether it keeps sessions
            in memory (`keeps_sessions`).
        files: the project's own files that were imported, relative to its folder, with slashes.
    """

    error: str | None = None
    has_app: bool = False
    functions: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    servers: list[dict[str, Any]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Project:
    """A folder.

    Attributes:
        folder: where it is.
        documents: the JSON objects host.json and local.settings.json, by name, as far as they are there.
        broken: of those that could not be read, why.
        requirements: by name in lower case with hyphens; None without requirements.txt and pyproject.toml.
        code: the file that Azure starts with: that of the custom handler, or function_app.py.
        loaded: what its code has.
    """

    folder: Path
    documents: Mapping[str, dict[str, Any]]
    broken: Mapping[str, str]
    requirements: Mapping[str, Requirement] | None
    code: Path
    loaded: Loaded

    @property
    def host(self) -> dict[str, Any]:
        """host.json, or nothing."""
        return self.documents.get("host.json", {})

    @property
    def settings(self) -> dict[str, str]:
        """The app settings of local.settings.json."""
        return _settings(self.documents)

    @property
    def is_self_hosted(self) -> bool:
        """Whether the app is a custom handler."""
        return "customHandler" in self.host

    @property
    def triggers(self) -> list[tuple[str, dict[str, Any]]]:
        """The MCP bindings of all functions, with the functions' names."""
        return [(name, binding) for name, binding in self._bindings() if kind_of(binding).startswith("mcp")]

    @property
    def endpoints(self) -> list[tuple[str, dict[str, Any]]]:
        """The HTTP triggers that `http_app` made, by name: those that have one for preflight requests beside them."""
        return [
            (name, binding)
            for name, binding in self._bindings()
            if kind_of(binding) == "httptrigger" and f"{name}_preflight" in self.loaded.functions
        ]

    @property
    def asks(self) -> bool:
        """Whether every server asks who calls."""
        return all(server["asks"] for server in self.loaded.servers)

    def text_of(self, name: str) -> str:
        """Return a file's text, or nothing if it is not there."""
        file = self.folder / name
        return file.read_text(encoding="utf-8-sig", errors="replace") if file.is_file() else ""

    def _bindings(self) -> list[tuple[str, dict[str, Any]]]:
        return [(name, binding) for name, all_of_it in self.loaded.functions.items() for binding in all_of_it]


def kind_of(binding: Mapping[str, Any]) -> str:
    """Return a binding's type, whose case does not matter to the functions host."""
    return str(binding.get("type", "")).lower()


def can_be_set(name: str, value: str) -> bool:
    """Tell whether an environment can have a variable of that name and value."""
    return bool(name) and "=" not in name and "\0" not in name + value


def read_project(folder: Path) -> Project:
    """Read a folder, and import its code in a process of its own.

    Raises:
        Failure: there is no such folder.
    """
    if not folder.is_dir():
        raise Failure(f"There is no folder {folder}.")
    documents: dict[str, dict[str, Any]] = {}
    broken = {}
    for name in ("host.json", "local.settings.json"):
        try:
            documents[name] = _object((folder / name).read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            continue
        except ValueError as error:
            broken[name] = str(error)
    code = _code_of(folder, documents.get("host.json", {}))
    loaded = _load(folder, code, _settings(documents))
    return Project(folder, documents, broken, _requirements(folder), code, loaded)


def _object(text: str) -> dict[str, Any]:
    value = parse(text)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - as for all else that it may be instead
    return value


def _settings(documents: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    values = at(documents.get("local.settings.json"), "Values")
    return {str(name): str(value) for name, value in values.items()} if isinstance(values, dict) else {}


def _code_of(folder: Path, host: Mapping[str, Any]) -> Path:
    """Return the file that Azure starts with: that of the custom handler, or function_app.py."""
    arguments = at(host, "customHandler", "description", "arguments")
    scripts = [str(argument) for argument in arguments or [] if str(argument).endswith(".py")]
    return folder / (scripts[0] if scripts else "function_app.py")


def _requirements(folder: Path) -> dict[str, Requirement] | None:
    """Return what Azure's build installs: from requirements.txt, or else what pyproject.toml depends on."""
    if (folder / "requirements.txt").is_file():
        lines = _lines(folder / "requirements.txt", set())
    elif (folder / "pyproject.toml").is_file():
        lines = _dependencies(folder / "pyproject.toml")
    else:
        return None
    found = {}
    for line in lines:
        if match := _REQUIREMENT.match(line.strip()):
            extras = frozenset(extra.strip().lower() for extra in (match[2] or "").split(",") if extra.strip())
            found[re.sub("[-_.]+", "-", match[1]).lower()] = Requirement(extras, match[3].strip())
    return found


def _lines(file: Path, read: set[Path]) -> list[str]:
    """Return a file's lines, and those of the files that it takes in with ``-r``, each once."""
    read.add(file)
    found = []
    for line in _decoded(file.read_bytes()).splitlines():
        other = _INCLUDED.match(line.strip())
        included = file.parent / other[1] if other else None
        if included is None:
            found.append(line)
        elif included.is_file() and included.resolve() not in {known.resolve() for known in read}:
            found += _lines(included, read)
    return found


def _decoded(data: bytes) -> str:
    """Return the text that pip reads: PowerShell's ``pip freeze > requirements.txt`` writes UTF-16."""
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return data.decode(encoding, "replace")


def _dependencies(file: Path) -> list[str]:
    try:
        found = at(tomllib.loads(file.read_text(encoding="utf-8-sig")), "project", "dependencies")
    except ValueError as error:
        raise Failure(f"{file} can't be read: {error}.") from error
    return [str(line) for line in found] if isinstance(found, list) else []


def _load(folder: Path, code: Path, settings: Mapping[str, str]) -> Loaded:
    if not code.is_file():
        return Loaded(error=f"{code.name} is missing")
    command = [sys.executable, "-m", "funcmcp.cli.doctor.probe", str(code.resolve())]
    try:
        run = subprocess.run(  # noqa: S603 - the project's own code, which its author asked us to look at
            command,
            cwd=folder,
            env={**os.environ, **{name: value for name, value in settings.items() if can_be_set(name, value)}},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Loaded(error=f"importing {code.name} takes more than {_PROBE_SECONDS} seconds")
    if run.returncode or not run.stdout:
        return Loaded(error=" ".join(run.stderr.strip().splitlines()[-_FAILURE_LINES:]) or "its process ended")
    return Loaded(**json.loads(run.stdout))

"""Files and folders that have no server to import: what to pass in their place.

Each answer is a sentence for the end of an error. The files are read, and never imported.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp_cli.json_values import as_list, as_object
from funcmcp_cli.output import below_here

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

_MAX_FILES = 200
_MAX_CHARACTERS = 200_000
_SHOWN = 3
_JAVASCRIPT = (".cjs", ".js", ".mjs", ".ts")

_SERVER = re.compile(r"^\w+(?:: *\w+)? *= *(?:funcmcp\.)?MCPServer\(", re.MULTILINE)
_FUNCTIONS = re.compile(r"^\s*@\w+\.(?:route|schedule|\w+_trigger|mcp_\w+)\(|^\w+\.register_\w+\(", re.MULTILINE)
_HOST = re.compile(r"[a-z0-9][a-z0-9.-]*\.[a-z]{2,}", re.IGNORECASE)
_ONE_SLASH = re.compile(r"(https?):/?(?!/)(?=\w)")


class _Application(NamedTuple):
    """An application of another framework.

    Attributes:
        title: What it is, for a sentence.
        pattern: What a file that makes one has.
        module: The module of its class.
        name: Its class.
        advice: What to do with it. ``{}`` is its name in the module, and ``FILE`` its file.
    """

    title: str
    pattern: str
    module: str
    name: str
    advice: str

    def is_made_as(self, value: object, modules: Mapping[str, object]) -> bool:
        """Return whether an object is such an application; *modules* are those that are imported."""
        kind = getattr(modules.get(self.module), self.name, None)
        return isinstance(kind, type) and isinstance(value, kind)


APPLICATIONS = (
    _Application(
        "a server of FastMCP",
        "FastMCP(",
        "fastmcp",
        "FastMCP",
        "Move it to funcmcp: funcmcp migrate FILE",
    ),
    _Application(
        "a FastAPI application",
        "FastAPI(",
        "fastapi",
        "FastAPI",
        "Make tools of the routes of {}: mcp = MCPServer('name'), then mcp.tools_from_asgi({}).",
    ),
    _Application(
        "a function app",
        "FunctionApp(",
        "azure.functions",
        "FunctionApp",
        "Serve its folder with funcmcp host, or make a server at the top level: mcp = MCPServer('name').",
    ),
    _Application(
        "a Starlette application",
        "Starlette(",
        "starlette.applications",
        "Starlette",
        "Make a server, mcp = MCPServer('name'), and mount it in the application: {}.mount('/', mcp).",
    ),
    _Application(
        "a Flask application",
        "Flask(",
        "flask",
        "Flask",
        "Make a server, mcp = MCPServer('name'), in a file of its own. a2wsgi mounts it in {}.",
    ),
    _Application(
        "a Django project",
        "execute_from_command_line",
        "django.core.handlers.asgi",
        "ASGIHandler",
        "Make a server, mcp = MCPServer('name'), in server.py, and serve it in asgi.py.",
    ),
)
"""The applications that users pass as a server, the most specific first."""


def advice_about_file(file: Path, shown: str) -> str:
    """Return what to pass in place of a file that has no server to import; "" if nothing is known.

    Args:
        file: The file.
        shown: Its name for messages.
    """
    if file.suffix == ".ipynb":
        return f"{shown} is a notebook. Save its code as a Python file: jupyter nbconvert --to script {shown}"
    if file.suffix in (".mcpb", ".dxt"):
        return (
            f"{shown} is a bundle. funcmcp install CLIENT {shown} adds it to a client, and "
            f"funcmcp install command {shown} prints the command that starts it."
        )
    if file.suffix in _JAVASCRIPT:
        return f"{shown} is a program of Node. Pass the command that starts it: 'node {shown}'"
    if file.suffix in (".json", ".toml"):
        return _advice_about_document(file, shown)
    return ""


def _advice_about_document(file: Path, shown: str) -> str:
    """Return what to pass in place of a JSON or TOML file that is not the configuration of a client."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        document = as_object(tomllib.loads(text) if file.suffix == ".toml" else json.loads(text))
    except (OSError, ValueError, RecursionError):
        return ""
    if file.name == "pyproject.toml":
        return f"{shown} is the file of a project. {_advice_about_project(file.parent, document)}"
    if as_object(document.get("source")).get("path"):
        return f"{shown} is a configuration of FastMCP. Write: {_command_of_fastmcp(file.parent, document)}"
    if file.name == "package.json":
        return f"{shown} is the file of a Node project. Pass the command that starts its server: 'npx NAME'"
    if "manifest_version" in document:
        return f"{shown} is the manifest of a bundle. Pass the bundle: funcmcp install CLIENT FILE.mcpb"
    if "remotes" in document or "packages" in document:
        return f"{shown} is an entry of a registry. {_advice_about_entry(document)}"
    return ""


def _advice_about_project(folder: Path, document: Mapping[str, Any]) -> str:
    """Return which target a project has, as its files or its [project.scripts] say."""
    servers = _shown_servers(folder)
    if servers:
        return servers
    scripts = as_object(as_object(document.get("project")).get("scripts"))
    modules = dict.fromkeys(str(place).partition(":")[0] for place in scripts.values())
    return f"Pass the module of its server: {' or '.join(modules)}" if modules else "Pass the file of its server."


def _advice_about_entry(document: Mapping[str, Any]) -> str:
    """Return the URL, or the command, of the server in an entry of a registry (server.json)."""
    for remote in as_list(document.get("remotes")):
        if as_object(remote).get("url"):
            return f"Pass its URL: {as_object(remote)['url']}"
    for package in map(as_object, as_list(document.get("packages"))):
        runner = {"pypi": "uvx", "npm": "npx -y"}.get(str(package.get("registryType")))
        if runner is not None:
            return f"Pass the command that starts it: '{runner} {package.get('identifier')}'"
    return "Pass the command that starts it."


class _Member(NamedTuple):
    """A member of fastmcp.json, and what it is on a command line.

    Attributes:
        section: The object that has it.
        name: Its name.
        part: The part of the command: "folder", "uv", "run", "arguments", or "" for a sentence after the command.
        text: The words, with ``{}`` for the value, or for each value of a list.
    """

    section: str
    name: str
    part: str
    text: str


FASTMCP_MEMBERS = (
    _Member("deployment", "cwd", "folder", "cd {} &&"),
    _Member("environment", "project", "uv", "--project {}"),
    _Member("environment", "python", "uv", "--python {}"),
    _Member("environment", "dependencies", "uv", "--with {}"),
    _Member("environment", "requirements", "uv", "--with-requirements {}"),
    _Member("environment", "editable", "uv", "--with-editable {}"),
    _Member("deployment", "host", "run", "--host {}"),
    _Member("deployment", "port", "run", "--port {}"),
    _Member("deployment", "log_level", "run", "--log-level {}"),
    _Member("deployment", "args", "arguments", "{}"),
    _Member("deployment", "path", "", "The path is in the code: MCPServer(..., http=HTTPOptions(path={}))."),
    _Member("deployment", "env", "", "Set the environment variable {}."),
)
"""What the members of fastmcp.json are here. Those of ``source`` and ``deployment.transport`` are in the code."""


def _command_of_fastmcp(folder: Path, document: Mapping[str, Any]) -> str:
    """Return the command that does what a fastmcp.json says. The values of environment variables are not shown."""
    source = as_object(document["source"])
    target = below_here(folder / str(source["path"]))
    if source.get("entrypoint"):
        target += f":{source['entrypoint']}"
    parts: dict[str, list[str]] = {}
    for member in FASTMCP_MEMBERS:
        value = as_object(document.get(member.section)).get(member.name)
        values = list(value) if isinstance(value, (list, dict)) else [] if value is None else [value]
        for item in values:
            text = str(item).lower() if member.name == "log_level" else str(item)
            quoted = repr(text) if member.name == "path" else shlex.quote(text)
            parts.setdefault(member.part, []).append(member.text.format(quoted))
    if as_object(document.get("deployment")).get("transport") == "stdio":
        parts["run"] = ["--stdio"]
    uv = ["uv run", *parts["uv"]] if "uv" in parts else []
    arguments = ["--", *parts["arguments"]] if "arguments" in parts else []
    command = [*parts.get("folder", []), *uv, "funcmcp run", target, *parts.get("run", []), *arguments]
    sentences = " ".join(parts.get("", []))
    return f"{' '.join(command)}{'.' if sentences else ''} {sentences}".strip()


def advice_about_folder(folder: Path) -> str:
    """Return what to pass in place of a folder without server.py; "" if nothing is known.

    It is the file that makes a server, or what can be done with the files that are there.
    """
    servers = _shown_servers(folder)
    if servers:
        return servers
    for pattern in ("fastmcp.json", "server.json", "*.mcpb", "*.ipynb"):
        for file in sorted(folder.glob(pattern)):
            advice = advice_about_file(file, below_here(file))
            if advice:
                return advice
    advice = _advice_about_code(folder)
    if advice:
        return advice
    project = folder / "pyproject.toml"
    if project.is_file():
        return _advice_about_document(project, below_here(project)).partition(". ")[2]
    package = folder / "package.json"
    return _advice_about_document(package, below_here(package)) if package.is_file() else ""


def _advice_about_code(folder: Path) -> str:
    """Return what to do with the most specific application that a file of a folder makes; "" if there is none."""
    paths: dict[str, str] = {}
    for file, text in _python_files(folder):
        for application in APPLICATIONS:
            if application.pattern in text:
                paths.setdefault(application.title, below_here(file))
    for application in APPLICATIONS:
        path = paths.get(application.title)
        if path is not None:
            return f"{path} has {application.title}. {application.advice}".replace("{}", "app").replace("FILE", path)
    return ""


def _shown_servers(folder: Path) -> str:
    """Return a question with the files of a folder that make a server; "" if there are none."""
    files = [below_here(file) for file, text in _python_files(folder) if _SERVER.search(text)]
    return f"Did you mean {' or '.join(files[:_SHOWN])}?" if files else ""


def _python_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the Python files of a folder and of packages in it, each with its text. Tests come last."""
    patterns = ("*.py", "*/*.py", "src/*/*.py")
    files = [file for pattern in patterns for file in islice(sorted(folder.glob(pattern)), _MAX_FILES)]
    files = [file for file in files if "site-packages" not in file.parts]
    for file in sorted(files, key=lambda file: "test" in file.name):
        try:
            with file.open(encoding="utf-8", errors="replace") as stream:
                yield file, stream.read(_MAX_CHARACTERS)
        except OSError:
            continue


def advice_about_application(module: ModuleType, modules: Mapping[str, object], file: str) -> str:
    """Return what to do with the application of another framework in a module; "" if it has none.

    Args:
        module: The module.
        modules: The imported modules.
        file: The name of the module for messages.
    """
    for application in APPLICATIONS:
        for name, value in vars(module).items():
            if application.is_made_as(value, modules):
                return application.advice.replace("{}", name).replace("FILE", file)
    if hasattr(module, "execute_from_command_line") or Path(file).name == "manage.py":
        return APPLICATIONS[-1].advice
    return ""


def title_of_application(value: object, modules: Mapping[str, object]) -> str:
    """Return what an ASGI application of another framework is, such as "a FastAPI application"; "" for other objects.

    Args:
        value: The object.
        modules: The imported modules.
    """
    asgi = [application for application in APPLICATIONS if application.name in {"FastAPI", "Starlette"}]
    return next((application.title for application in asgi if application.is_made_as(value, modules)), "")


def advice_about_address(target: str) -> str:
    """Return the URL that a target without a valid scheme may stand for; "" if it looks like something else."""
    if _ONE_SLASH.match(target):
        return _ONE_SLASH.sub(r"\1://", target, count=1)
    host, slash, _ = target.partition("/")
    return f"https://{target}" if slash and _HOST.fullmatch(host) and not Path(host).exists() else ""


def remark_about_functions(folder: Path) -> str:
    """Return a sentence if the function app in a folder has functions beside those of its server, or ""."""
    file = folder / "function_app.py"
    if not (folder / "host.json").is_file() or not file.is_file():
        return ""
    if _FUNCTIONS.search(file.read_text(encoding="utf-8", errors="replace")) is None:
        return ""
    return f"function_app.py has functions that run does not serve. Serve the whole app: funcmcp host {folder}"

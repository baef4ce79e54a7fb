"""Targets such as ``path/to/server.py:mcp`` or ``package.module:mcp``, and the MCPServer that each names."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
import time
import traceback
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from funcmcp import MCPServer
from funcmcp._app.launch import imported_by_command
from funcmcp._serving.composition import runtime_of
from funcmcp_cli.failure import Failure
from funcmcp_cli.other_targets import (
    advice_about_address,
    advice_about_application,
    advice_about_file,
    advice_about_folder,
    title_of_application,
)
from funcmcp_cli.output import below_here

if TYPE_CHECKING:
    from types import ModuleType

    from funcmcp._server.tasks.service import Tasks
    from funcmcp._serving.composition import ServerRuntime

_EXTRAS = {
    "azure": "azure",
    "azurefunctions": "azure-streams",
    "httpx2": "client",
    "joserfc": "auth",
    "opentelemetry": "otel",
    "prometheus_client": "prometheus",
    "redis": "redis",
    "uvicorn": "server",
}
"""By library that a server's file may need, the extra of funcmcp that installs it."""

_OTHER_FRAMEWORKS = ("fastmcp", "mcp")
_OTHER_SERVERS = ("FastMCP", "MCPServer", "Server")

_IMPORTS_FUNCMCP = re.compile(r"^(?:import|from) funcmcp\b", re.MULTILINE)
_PROJECT_FILES = ("server.py", "function_app.py")
_A_SERVER = "mcp = MCPServer('name')."
_A_TARGET = "Pass a file, such as server.py, or a module, such as shop.server."
_HOST_FILE = "host.json"
_DOCUMENTS = {".cjs", ".dxt", ".ipynb", ".js", ".json", ".mcpb", ".mjs", ".toml", ".ts"}
"""The suffixes of files that are not modules, though the name of a module could end so."""

_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\|[^/]*\\")
"""The beginning of a path with backslashes."""

_SCRIPT_METADATA = re.compile(r"^# /// script$", re.MULTILINE)
_CHANGE_SECONDS = 2.0
"""Seconds in which the time of a file, in whole seconds, can be that of two changes."""


class MissingModule(Failure):
    """The code of a server imports a module that is not installed."""


@dataclass(frozen=True, slots=True)
class Target:
    """The place of a server.

    Attributes:
        text: The file or module as it is on the command line.
        root: The folder that the module is imported from.
        module: The module's dotted name.
        attribute: The server's name in the module. None for the only server in it.
        file: The module's file. None if the target names a module.
    """

    text: str
    root: Path
    module: str
    attribute: str | None
    file: Path | None


def load(target: str) -> MCPServer:
    """Return the server that a target names.

    Raises:
        Failure: The file, the module or the server does not exist, or importing it fails.
    """
    place = find(target)
    return _server_in(import_target(place), place)


def find(target: str) -> Target:
    """Return the place that a target names. Raise Failure if it names a file that does not exist."""
    if _looks_like_url(target):
        raise Failure(f"{target} looks like the endpoint of a running server. Write it as http://{target}.")
    text, attribute = _split(target)
    text = _file_or_module(text)
    if not text.endswith(".py") and "/" not in text:
        return Target(text, Path.cwd(), text, attribute, None)
    file = Path(text).resolve()
    if not file.is_file():
        url = advice_about_address(target)
        raise Failure(f"{text} does not exist. {f'Did you mean {url}?' if url else _similar_file(file)}")
    if file.suffix != ".py":
        raise Failure(advice_about_file(file, text) or f"{text} is not a Python file. {_A_TARGET}")
    root = file.parent
    parts = [file.stem]
    while (root / "__init__.py").is_file():  # a module of a package is imported by its full name, for relative imports
        parts.insert(0, root.name)
        root = root.parent
    return Target(text, root, ".".join(parts), attribute, file)


def _file_or_module(text: str) -> str:
    """Return the file of a folder's server, or the file or module itself. Raise Failure if it can't have a server."""
    path = Path(text)
    folder = function_app_in(text)
    if folder is not None:
        raise Failure(f"{text} is a function app. Serve it with: funcmcp host {folder}")
    if path.name == _HOST_FILE and path.is_file():
        path = path.parent
    if path.is_dir():
        return _project_file(str(path))
    if path.suffix in _DOCUMENTS and path.is_file():
        raise Failure(advice_about_file(path, text) or _advice_about_servers(text))
    return text


def _similar_file(file: Path) -> str:
    """Return a sentence with a Python file whose name is similar, or with what a target can be."""
    if os.sep == "/" and _WINDOWS_PATH.match(file.name):
        path = PureWindowsPath(file.name)
        if not path.drive and (file.parent / path.as_posix()).is_file():
            return f"Did you mean {path.as_posix()}?"
        return "It is a path of Windows, and this system writes paths with slashes."
    try:
        names = [path.name for path in file.parent.iterdir() if path.suffix == ".py"]
    except OSError:
        names = []
    similar = get_close_matches(file.name, names, 1)
    if similar:
        return f"Did you mean {similar[0]}?"
    return _A_TARGET


def _project_file(folder: str) -> str:
    """Return the file in a project's folder that has the server."""
    for name in _PROJECT_FILES:
        file = Path(folder, name)
        if file.is_file():
            return str(file)
    from funcmcp_host.app_folders import apps_below, choice_of  # noqa: PLC0415 - only for an error

    advice = choice_of(Path(folder), apps_below(Path(folder))) or advice_about_folder(Path(folder))
    if not advice and any(Path(folder).glob("*.py")):
        advice = "Pass the file in it that has the server."
    advice = advice or "Pass the file of the server, or make a project: funcmcp new NAME"
    raise Failure(f"{folder} is a folder without server.py. {advice}")


def _advice_about_servers(file: str) -> str:
    """Return how to use the configuration file of a client where one server is required."""
    command = shlex.join(["funcmcp", "run", str(Path(file).resolve()), "--stdio"])
    return f"{file} is a configuration file, and may name many servers. Pass the command that serves them: '{command}'"


def function_app_in(target: str) -> Path | None:
    """Return the folder of a function app that is made without funcmcp; None if the target is something else.

    Args:
        target: The folder, or its host.json or function_app.py.
    """
    folder = Path(target)
    if folder.name in (_HOST_FILE, _PROJECT_FILES[1]):
        folder = folder.parent
    if not (folder / _HOST_FILE).is_file() or (folder / "server.py").is_file():
        return None
    file = folder / "function_app.py"
    if not file.is_file():
        return folder if (folder / "package.json").is_file() or _is_in_another_language(folder) else None
    return None if _IMPORTS_FUNCMCP.search(file.read_text(encoding="utf-8", errors="replace")) else folder


def _is_in_another_language(folder: Path) -> bool:
    """Return whether an app has a custom handler that gets invocations, or is in a language that needs a worker."""
    from funcmcp_host.app_rules.handler_rules import invoked_functions  # noqa: PLC0415 - few targets are function apps
    from funcmcp_host.app_rules.model import read_app  # noqa: PLC0415
    from funcmcp_host.other_languages import language_of  # noqa: PLC0415

    app = read_app(folder, {})
    if app.has_custom_handler:
        return bool(invoked_functions(app))
    return language_of(folder) is not None


def _looks_like_url(target: str) -> bool:
    """Return whether a target begins like a host with a port."""
    host, _, port = target.partition("/")[0].partition(":")
    return (port.isdecimal() and not host.endswith(".py")) or host == "localhost"


def _split(target: str) -> tuple[str, str | None]:
    """Return the file or module of a target, and the server's name in it."""
    text, colon, name = target.rpartition(":")
    if not colon or not text or "/" in name or "\\" in name:  # the colon in C:\server.py is part of the path
        return target, None
    if not name.isidentifier():
        raise Failure(f"{target}: the part after the colon must be the server's name in the file, such as :mcp.")
    return text, name


def import_target(target: Target) -> ModuleType:
    """Import the module of a target. Raise Failure with the failing line of the user's code."""
    sys.path.insert(0, str(target.root))  # as Python does for a script, so that it can import its siblings
    token = imported_by_command.set(True)
    setting = sys.dont_write_bytecode
    sys.dont_write_bytecode = setting or _has_just_changed(target)
    try:
        module = importlib.import_module(target.module)
    except ModuleNotFoundError as error:
        if target.file is None and error.name and _is_prefix(error.name, target.module):
            raise Failure(
                f"The module {error.name!r} is neither in this folder nor installed. "
                "Pass a file, such as server.py, or a module that can be imported."
            ) from error
        raise MissingModule(_import_failure(target, error)) from error
    except (Exception, SystemExit) as error:
        raise Failure(_import_failure(target, error)) from error
    finally:
        imported_by_command.reset(token)
        sys.dont_write_bytecode = setting
    if target.file is not None and Path(module.__file__ or "").resolve() != target.file:
        raise Failure(f"{target.text} has the name of another module, {target.module}. Rename the file.")
    return module


def _has_just_changed(target: Target) -> bool:
    """Return whether the file of a target is so new that Python might take its bytecode for that of the next change.

    Bytecode has the time of its file in whole seconds. A change in the same second that keeps the size is not seen.
    """
    return target.file is not None and time.time() - target.file.stat().st_mtime < _CHANGE_SECONDS


def _is_prefix(name: str, module: str) -> bool:
    return f"{module}.".startswith(f"{name}.")


def _import_failure(target: Target, error: BaseException) -> str:
    """Return one line with the failing line of the user's code, the error, and what to do."""
    if isinstance(error, SyntaxError) and error.filename:
        line = _line(Path(error.filename), error.lineno)
        return f"{line}: {type(error).__name__}: {error.msg}. Correct it there."
    line = _failing_line(target, error)
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, ModuleNotFoundError):
        return f"{line}: {_missing_module(target, error, reason)}"
    if isinstance(error, KeyError) and _is_of_environment(error):
        return f"{line}: The environment variable {error.args[0]} is not set."
    if isinstance(error, ImportError) and "relative import" in str(error):
        return f"{line}: {reason}. Import by the file's name, or add an __init__.py to the folder of {target.text}."
    if isinstance(error, FileNotFoundError) and _is_beside(target, error.filename):
        path = f"Path(__file__).parent / {error.filename!r}"
        return f"{line}: {reason}. Clients start the server in another folder: write {path}."
    if isinstance(error, AttributeError) and error.obj is MCPServer:
        from funcmcp._text.other_frameworks import SERVER_ATTRIBUTES  # noqa: PLC0415 - only for an error

        if error.name in SERVER_ATTRIBUTES:
            return f"{line}: {reason}. Use {SERVER_ATTRIBUTES[error.name]}"
    return f"{line}: {reason}"


def _is_beside(target: Target, name: object) -> bool:
    """Return whether a file that is missing in the working directory is in the folder of the target."""
    return isinstance(name, str) and not Path(name).is_absolute() and (target.root / name).exists()


def _missing_module(target: Target, error: ModuleNotFoundError, reason: str) -> str:
    """Return which module is missing, and how it is installed."""
    library, _, submodule = (error.name or "").partition(".")
    if library in _OTHER_FRAMEWORKS and submodule:
        return f"There is no module {error.name} here. Move the server to funcmcp: funcmcp migrate {target.text}"
    if "pip install" in reason:
        return reason
    extra = _EXTRAS.get(library)
    if extra is not None:
        return f'{reason}. Install it: pip install "funcmcp[{extra}]"'
    if library in _OTHER_FRAMEWORKS:
        return f"{reason}. Install it, or move the server to funcmcp: funcmcp migrate {target.text}"
    if has_script_metadata(target):
        command = f"uvx --with-requirements {target.text} funcmcp run {target.text}"
        return f"{reason}. Install it, or have uv install what the file lists: {command}"
    return f"{reason}. Install it (pip install), or correct its name."


def has_script_metadata(target: Target) -> bool:
    """Return whether the file of a target lists its dependencies, as PEP 723 has it."""
    if target.file is None:
        return False
    return _SCRIPT_METADATA.search(target.file.read_text(encoding="utf-8", errors="replace")) is not None


def _is_of_environment(error: KeyError) -> bool:
    """Return whether an error is that of ``os.environ`` for a variable that is not set."""
    *_, frame = traceback.walk_tb(error.__traceback__)
    return frame[0].f_code is type(os.environ).__getitem__.__code__


def _failing_line(target: Target, error: BaseException) -> str:
    """Return the last line of the user's code in a traceback. Return the target if the traceback has none."""
    text = target.text
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename)
        if file.is_relative_to(target.root) and "site-packages" not in file.parts:
            text = _line(file, frame.lineno)
    return text


def _line(file: Path, number: int | None) -> str:
    return f"{below_here(file)}, line {number}"


def _server_in(module: ModuleType, target: Target) -> MCPServer:
    """Return the server in a module that a target names, or the only one that no other one there mounts."""
    servers = {name: value for name, value in vars(module).items() if isinstance(value, MCPServer)}
    if target.attribute is not None:
        return _server_with_name(target.attribute, servers, module, target)
    if servers:
        return _only(_unmounted(servers), target)
    for name, value in vars(module).items():
        if value is MCPServer and name != MCPServer.__name__:
            raise Failure(f"{name} in {target.text} is the class MCPServer. Write {name} = MCPServer('name').")
    advice = _advice_about_other(module, target) or advice_about_application(module, sys.modules, target.text)
    raise Failure(f"{target.text} has no server. {advice or 'Make one at the top level: ' + _A_SERVER}")


def _server_with_name(name: str, servers: dict[str, MCPServer], module: ModuleType, target: Target) -> MCPServer:
    """Return the server that has a name in a module."""
    if name in servers:
        return servers[name]
    problem = "is not an MCPServer" if hasattr(module, name) else "does not exist"
    application = title_of_application(getattr(module, name, None), sys.modules)
    if servers and application:
        problem = f"is {application}, which uvicorn {target.module}:{name} serves"
        advice = f"Its server is {' or '.join(f'{target.text}:{other}' for other in servers)}."
    elif servers:
        advice = f"Use {', '.join(f'{target.text}:{other}' for other in servers)}."
    else:
        advice = advice_about_application(module, sys.modules, target.text)
    raise Failure(f"{target.text}:{name} {problem}. {advice or 'Make a server at the top level: ' + _A_SERVER}")


def _advice_about_other(module: ModuleType, target: Target) -> str | None:
    """Return what to do with a server of another library in a module; None if there is none."""
    for name, value in vars(module).items():
        for kind in type(value).__mro__:
            library = kind.__module__.partition(".")[0]
            if library in _OTHER_FRAMEWORKS and kind.__name__ in _OTHER_SERVERS:
                return (
                    f"{name} is a server of the package {library}. Run it with the command of that package, "
                    f"or move it to funcmcp: funcmcp migrate {target.text}"
                )
    return None


def _unmounted(servers: dict[str, MCPServer]) -> dict[str, MCPServer]:
    """Return the servers that none of them mounts."""
    mounted = [below for server in servers.values() for below in runtime_of(server).mounted]
    return {name: server for name, server in servers.items() if runtime_of(server) not in mounted}


def _only(servers: dict[str, MCPServer], target: Target) -> MCPServer:
    """Return the only server, which may have several names."""
    server, *others = {id(server): server for server in servers.values()}.values()
    if others:
        targets = ", ".join(f"{target.text}:{name}" for name in servers)
        raise Failure(f"{target.text} has more than one server. Use one of {targets}.")
    return server


def open_tasks(runtime: ServerRuntime) -> Tasks:
    """Return the tasks of a server; raise Failure if it has no store of tasks."""
    tasks = runtime.server.open_tasks()
    if tasks is None:
        raise Failure(f"{runtime.name} has no store of tasks. Write MCPServer(..., tasks=RedisTasks(url)).")
    return tasks

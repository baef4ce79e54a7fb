"""From a target such as ``path/to/server.py:mcp`` or ``package.module:mcp`` to the MCPServer that it names."""

from __future__ import annotations

import importlib
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp.app import MCPServer
from funcmcp.cli.failure import Failure
from funcmcp.cli.output import write_line

if TYPE_CHECKING:
    from types import ModuleType

_EXTRAS = {
    "azure": "azure",
    "azurefunctions": "azure-streams",
    "httpx2": "auth",
    "joserfc": "auth",
    "opentelemetry": "otel",
    "redis": "redis",
    "uvicorn": "server",
}
"""The extra of funcmcp that installs a library which a server's file may need."""

_PROJECT_FILES = ("server.py", "function_app.py")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a server is.

    Attributes:
        shown: the module as the person wrote it.
        root: the folder that the module is imported from.
        module: its dotted name.
        attribute: the server's name in it; None for the only one.
        file: the module's file, where the target names a file.
    """

    shown: str
    root: Path
    module: str
    attribute: str | None
    file: Path | None


def load(target: str) -> MCPServer:
    """Return the server that a target names.

    Raises:
        Failure: there is no such file, module or server, or importing it fails.
    """
    found = find(target)
    return _server_in(import_target(found), found)


def load_or_exit(target: str) -> MCPServer:
    """Return the server that a target names, or end the process with a line on stderr: for worker processes."""
    try:
        return load(target)
    except Failure as failure:
        write_line(failure, error=True)
        sys.exit(1)


def find(target: str) -> Target:
    """Return where a target is; raise Failure if it names a file that does not exist."""
    if _looks_like_url(target):
        raise Failure(f"{target} looks like the endpoint of a running server. Write it as http://{target}.")
    shown, attribute = _split(target)
    if not shown.endswith(".py") and not Path(shown).is_dir() and "/" not in shown:
        return Target(shown, Path.cwd(), shown, attribute, None)
    if Path(shown).is_dir():
        shown = _in_project(shown)
    file = Path(shown).resolve()
    if not file.is_file() or file.suffix != ".py":
        raise Failure(
            f"There is no Python file {shown}. Name one, such as server.py, or a module, such as shop.server."
        )
    root, parts = file.parent, [file.stem]
    while (root / "__init__.py").is_file():  # a module of a package is imported as such: it may import its siblings
        parts.insert(0, root.name)
        root = root.parent
    return Target(shown, root, ".".join(parts), attribute, file)


def _in_project(folder: str) -> str:
    """Return the file of a project's folder that has the server."""
    for file in (Path(folder, name) for name in _PROJECT_FILES):
        if file.is_file():
            return str(file)
    raise Failure(f"{folder} is a folder without server.py. Name the file in it that has the server.")


def _looks_like_url(target: str) -> bool:
    """Tell whether a target begins like a host with a port."""
    host, _, port = target.partition("/")[0].partition(":")
    return (port.isdecimal() and not host.endswith(".py")) or host == "localhost"


def _split(target: str) -> tuple[str, str | None]:
    before, colon, name = target.rpartition(":")
    if not colon or not before or "/" in name or "\\" in name:  # the colon of C:\server.py names nothing
        return target, None
    if not name.isidentifier():
        raise Failure(f"{target}: what stands after the colon must be the server's name in the file, such as :mcp.")
    return before, name


def import_target(target: Target) -> ModuleType:
    """Import the module of a target; raise Failure, with the line of the user's own code, if that fails."""
    sys.path.insert(0, str(target.root))  # as Python does for a script: its siblings can be imported
    try:
        module = importlib.import_module(target.module)
    except ModuleNotFoundError as error:
        if target.file is None and error.name and _is_prefix(error.name, target.module):
            raise Failure(
                f"There is no module {error.name!r} in this folder or among the installed ones. "
                "Name a file, such as server.py, or a module that can be imported."
            ) from error
        raise Failure(_import_failure(target, error)) from error
    except (Exception, SystemExit) as error:
        raise Failure(_import_failure(target, error)) from error
    if target.file is not None and Path(module.__file__ or "").resolve() != target.file:
        raise Failure(f"{target.shown} has the name of another module, {target.module}: rename the file.")
    return module


def _is_prefix(name: str, module: str) -> bool:
    return f"{module}.".startswith(f"{name}.")


def _import_failure(target: Target, error: BaseException) -> str:
    """Return one line that says which line of the user's own code failed, and why."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_at(Path(error.filename), error.lineno)}: {type(error).__name__}: {error.msg}. Correct it there."
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename, target.root)]
    where = _at(Path(frames[-1].filename), frames[-1].lineno) if frames else target.shown
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, ModuleNotFoundError):
        if "pip install" in reason:
            return f"{where}: {reason}"
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is not None:
            return f'{where}: {reason}. Install it: pip install "funcmcp[{extra}]"'
        return f"{where}: {reason}. Install it, or correct its name."
    if isinstance(error, ImportError) and "relative import" in str(error):
        return f"{where}: {reason}. Import by the file's name, or put an __init__.py into the folder of {target.shown}."
    return f"{where}: {reason}"


def _is_own(filename: str, root: Path) -> bool:
    path = Path(filename)
    return path.is_relative_to(root) and "site-packages" not in path.parts


def _at(path: Path, line: int | None) -> str:
    folder = Path.cwd()
    shown = path.relative_to(folder) if path.is_relative_to(folder) else path
    return f"{shown}, line {line}"


def _server_in(module: ModuleType, target: Target) -> MCPServer:
    servers = {name: value for name, value in vars(module).items() if isinstance(value, MCPServer)}
    named = ", ".join(f"{target.shown}:{name}" for name in servers)
    if target.attribute is not None:
        if target.attribute in servers:
            return servers[target.attribute]
        what = "is not an MCPServer" if hasattr(module, target.attribute) else "does not exist"
        hint = f"Use {named}." if servers else "Make a server at the top level: mcp = MCPServer('name')."
        raise Failure(f"{target.shown}:{target.attribute} {what}. {hint}")
    different = {id(server): server for server in servers.values()}
    if len(different) == 1:
        return next(iter(different.values()))
    if different:
        raise Failure(f"{target.shown} has more than one server. Use one of {named}.")
    classes = [name for name, value in vars(module).items() if value is MCPServer and name != MCPServer.__name__]
    if classes:
        name = classes[0]
        raise Failure(f"{name} in {target.shown} is the class MCPServer. Write {name} = MCPServer('name').")
    raise Failure(f"{target.shown} has no server. Make one at the top level: mcp = MCPServer('name').")

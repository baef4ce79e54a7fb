"""Imports a project's code and says in JSON what is in it: a process of its own, for ``funcmcp doctor``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp.app import MCPServer
from funcmcp.cli.failure import Failure
from funcmcp.cli.targets import find, import_target

if TYPE_CHECKING:
    from types import ModuleType


def look(code: Path) -> dict[str, Any]:
    """Return what `Loaded` is made of; raise Failure if the file can't be imported."""
    module = import_target(find(str(code)))
    app = _app_in(module)
    modules = _modules(code.parent)
    files = sorted(Path(os.path.relpath(str(module.__file__))).as_posix() for module in modules)
    return {"has_app": app is not None, "functions": _functions(app), "servers": _servers(modules), "files": files}


def _app_in(module: ModuleType) -> Any:
    library = sys.modules.get("azure.functions")  # without it there is no app
    if library is None:
        return None
    kinds = (library.FunctionApp, library.AsgiFunctionApp, library.WsgiFunctionApp)
    return next((value for value in vars(module).values() if isinstance(value, kinds)), None)


def _functions(app: Any) -> dict[str, Any]:
    if app is None:
        return {}
    try:
        functions = app.get_functions()
    except ValueError as error:  # what the library finds wrong with a decorator
        raise Failure(f"function_app.py: {error}") from error
    return {
        function.get_function_name(): [json.loads(text) for text in function.get_raw_bindings()]
        for function in functions
    }


def _modules(folder: Path) -> list[ModuleType]:
    """Return the project's own modules."""
    return [module for module in list(sys.modules.values()) if _is_in(folder, getattr(module, "__file__", None))]


def _servers(modules: list[ModuleType]) -> list[dict[str, Any]]:
    servers = {
        id(value): value for module in modules for value in vars(module).values() if isinstance(value, MCPServer)
    }
    return [
        {
            "name": server.name,
            "path": server.path,
            "asks": server.server.guard is not None,
            "keeps_sessions": server.keeps_sessions,
        }
        for server in servers.values()
    ]


def _is_in(folder: Path, file: str | None) -> bool:
    return file is not None and Path(file).is_relative_to(folder) and "site-packages" not in Path(file).parts


def main() -> None:
    """Print the JSON of what is in the file that the command line names; what its code prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        found = look(Path(sys.argv[1]))
    except Failure as failure:
        found = {"error": str(failure)}
    with answers:
        json.dump(found, answers)
    os._exit(0)  # a thread that the project's code started must not keep us here


if __name__ == "__main__":
    main()

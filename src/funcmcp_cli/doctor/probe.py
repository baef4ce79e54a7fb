"""Imports a project's code and prints its contents as JSON. ``funcmcp doctor`` runs this module in a new process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from funcmcp import MCPServer
from funcmcp._adapters.azure.settings import hostname
from funcmcp._serving.composition import runtime_of
from funcmcp_cli.client_rules.problems import problems_in
from funcmcp_cli.client_rules.report import short_texts
from funcmcp_cli.failure import Failure
from funcmcp_cli.targets import find, import_target
from funcmcp_cli.token_costs import tokens_of_server

if TYPE_CHECKING:
    from types import ModuleType

    from funcmcp._server.dispatch import Server


def contents_of(code_file: Path) -> dict[str, Any]:
    """Return the members of `ImportedCode`. Raise Failure if the file cannot be imported."""
    module = import_target(find(str(code_file)))
    app = _app_in(module)
    modules = _project_modules(code_file.parent)
    files = sorted(Path(os.path.relpath(str(module.__file__))).as_posix() for module in modules)
    return {"has_app": app is not None, "functions": _functions(app), "servers": _servers(modules), "files": files}


def _app_in(module: ModuleType) -> Any:
    """Return the function app in a module. Return None if it has none."""
    library = sys.modules.get("azure.functions")
    if library is None:  # an app's module would have imported it
        return None
    for value in vars(module).values():
        if isinstance(value, library.FunctionApp | library.AsgiFunctionApp | library.WsgiFunctionApp):
            return value
    return None


def _functions(app: Any) -> dict[str, Any]:
    """Return the bindings of an app's functions, by the function's name."""
    if app is None:
        return {}
    try:
        functions = app.get_functions()
    except ValueError as error:  # the library rejects a decorator
        raise Failure(f"function_app.py: {error}") from error
    bindings_of = {}
    for function in functions:
        bindings_of[function.get_function_name()] = [json.loads(text) for text in function.get_raw_bindings()]
    return bindings_of


def _project_modules(folder: Path) -> list[ModuleType]:
    """Return the imported modules whose files are in the project's folder."""
    return [module for module in list(sys.modules.values()) if _is_in(folder, getattr(module, "__file__", None))]


def _servers(modules: list[ModuleType]) -> list[dict[str, Any]]:
    """Return the members of `ImportedServer` for each server in the modules."""
    servers = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, MCPServer):
                servers[id(value)] = value
    return [
        {
            "name": server.name,
            "path": runtime_of(server).path,
            "has_auth": runtime_of(server).server.guard is not None,
            "keeps_sessions": runtime_of(server).keeps_sessions,
            "longest_run": _longest_run(server),
            "unaccepted": short_texts(problems_in(runtime_of(server).server, server.name)),
            "sign_in": _sign_in(server),
            "tokens": tokens_of_server(server),
        }
        for server in servers.values()
    ]


def _longest_run(server: MCPServer) -> float | None:
    """Return the seconds that a run of a task may take at most; None if the server has no tasks."""
    catalog = runtime_of(server).server.catalog
    if "tasks" not in catalog.offered:
        return None
    longest = 0.0
    for tool in catalog.tools:
        if tool.task is not None:
            ttl = tool.task.ttl
            limit = tool.task_time_limit
            longest = max(longest, ttl if limit is None else min(ttl, limit.seconds))
    return longest


def _sign_in(server: MCPServer) -> dict[str, Any] | None:
    """Return the members of `SignIn`; None if the server has no proxy."""
    runtime = runtime_of(server)
    proxy = runtime.proxy
    if proxy is None:
        return None
    host = urlsplit(proxy.resource.resource).netloc
    return {
        "url": proxy.resource.resource,
        "callback": proxy.callback,
        "upstream": proxy.upstream.name,
        "on_behalf_of": getattr(proxy.upstream, "on_behalf_of", None),
        "is_of_app": host == hostname(),
        "has_shared_keys": proxy.has_shared_keys,
        "unknown_scopes": _unknown_scopes(runtime.server, set(proxy.resource.scopes)),
    }


def _unknown_scopes(server: Server, declared: set[str]) -> dict[str, str]:
    """Return the scopes that features require and that are not known, each with the names of its features."""
    users = dict.fromkeys(server.guard.scopes if server.guard is not None else (), "Auth.scopes")
    for feature in server.catalog.features():
        for scope in feature.access.required_scopes:
            names = users.get(scope)
            users[scope] = feature.key if names is None else f"{names}, {feature.key}"
    return {scope: names for scope, names in users.items() if scope not in declared}


def _is_in(folder: Path, file: str | None) -> bool:
    return file is not None and Path(file).is_relative_to(folder) and "site-packages" not in Path(file).parts


def main() -> None:
    """Print the contents of the file in the first argument, as JSON. What its code prints goes to stderr."""
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        contents = contents_of(Path(sys.argv[1]))
    except Failure as failure:
        contents = {"error": str(failure)}
    with stdout:
        json.dump(contents, stdout)
    os._exit(0)  # a thread that the project's code started must not keep the process alive


if __name__ == "__main__":
    main()

"""The checks of ``funcmcp doctor`` for a project's code after it is imported."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import at, prefix_in
from funcmcp._text.listing import counted
from funcmcp_cli.doctor.project import Finding, Project
from funcmcp_cli.token_costs import MANY_TOKENS
from funcmcp_host.app_rules.trigger_rules import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp_host.app_rules.model import App

_RUNNING_METHODS = {"run", "serve", "main"}


def check_code(project: Project) -> Iterator[Finding]:
    """Check that the code can be imported, and has an app or a server for Azure."""
    subject, code = "the code", project.code
    if code.error is not None:
        yield Finding("error", subject, f"cannot be imported: {code.error.removesuffix('.')}.")
    elif project.is_self_hosted:
        if code.servers:
            yield Finding("ok", subject, f"has the server {code.servers[0].name}.")
        else:
            yield Finding("error", subject, "has no MCPServer for the custom handler to serve. Create one.")
    elif not code.has_app:
        yield Finding("error", subject, "has no FunctionApp. Add app = funcmcp.azure.http_app(mcp) to function_app.py.")
    elif not project.triggers and not project.endpoints and not (project.http_triggers and code.servers):
        yield Finding(
            "error", subject, "has no MCP server in its app. Make the app with funcmcp.azure.http_app or trigger_app."
        )
    else:
        yield Finding("ok", subject, f"has an app with {counted(len(code.functions), 'function')}.")


def check_start(project: Project) -> Iterator[Finding]:
    """Check that the script of a custom handler runs its server."""
    name = project.code_file.name
    if not _is_started_as_script(project) or not project.code.servers:
        return
    if _runs_something(ast.parse(project.code_file.read_bytes())):
        yield Finding("ok", name, "runs the server.")
    else:
        yield Finding(
            "error", name, 'never runs the server. End it with `if __name__ == "__main__":` and `mcp.run()` below it.'
        )


def _is_started_as_script(project: Project) -> bool:
    """Return whether the custom handler is ``python server.py``, and not another program or ``python -m`` a module."""
    description = at(project.host, "customHandler", "description")
    program = PurePath(str(at(description, "defaultExecutablePath"))).stem.lower()
    arguments = at(description, "arguments")
    if not program.startswith("py") or not isinstance(arguments, list) or not arguments:
        return False
    return project.folder / str(arguments[0]) == project.code_file


def _runs_something(module: ast.Module) -> bool:
    """Return whether a script makes any call if it is ``__main__``, or calls a `run`, `serve` or `main`."""
    for node in ast.walk(module):
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return any(isinstance(part, ast.Call) for statement in node.body for part in ast.walk(statement))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _RUNNING_METHODS:
            return True
    return False


def check_route(project: Project) -> Iterator[Finding]:
    """Check that the endpoint has the same path on Azure and with ``funcmcp run``."""
    if "host.json" not in project.documents:
        return
    prefix = prefix_in(project.host)
    if project.is_self_hosted and prefix:
        yield Finding(
            "error", "routePrefix", f'is "{prefix}", which the server does not expect. Set it to "" in host.json.'
        )
    local_paths = {server.path for server in project.code.servers}
    if prefix and _serves_every_path(project):
        yield Finding(
            "error", "routePrefix", f'is "{prefix}", which the ASGI app does not expect. Set it to "" in host.json.'
        )
    for _, endpoint in project.endpoints:
        route = str(endpoint.get("route", "")).strip("/")
        path = f"/{prefix}/{route}" if prefix and route else f"/{prefix}{route}"
        if path in local_paths or not local_paths:
            yield Finding("ok", "routePrefix", f"makes {path} the endpoint's path.")
        else:
            yield Finding(
                "warning",
                "routePrefix",
                f"makes the endpoint's path {path} on Azure, but it is {min(local_paths)} with `funcmcp run`. "
                'Set extensions.http.routePrefix to "" in host.json.',
            )


def _serves_every_path(project: Project) -> bool:
    """Return whether a function hands every path on to an ASGI app, as `AsgiFunctionApp` of azure-functions does.

    The app sees the whole path, with the prefix.
    """
    routes = [str(trigger.get("route", "")).strip("/") for _, trigger in project.http_triggers]
    return (
        not project.endpoints
        and bool(project.code.servers)
        and any(re.fullmatch(r"\{\*\w+\}", route) for route in routes)
    )


def check_sessions(project: Project) -> Iterator[Finding]:
    """Check that sessions do not end with the instance that began them."""
    for server in project.code.servers:
        if server.keeps_sessions:
            yield Finding(
                "warning",
                "sessions",
                f"of {server.name} are in one instance's memory, and Azure starts several instances. "
                'Leave sessions="signed", or pass RedisSessions.',
            )


def check_clients(project: Project) -> Iterator[Finding]:
    """Check that no known client or API of models loses a feature."""
    for server in project.code.servers:
        for names, text in server.unaccepted:
            yield Finding("warning", names, text)
        if not server.unaccepted:
            yield Finding("ok", "clients", f"lose no tool, resource or prompt of {server.name}.")


def check_tokens(project: Project) -> Iterator[Finding]:
    """Check that the definitions of tools leave room in the context of a model."""
    for server in project.code.servers:
        if server.tokens > MANY_TOKENS:
            yield Finding(
                "warning",
                "tools",
                f"of {server.name} cost a model about {server.tokens:,} tokens in each conversation. Call "
                f"mcp.tool_search(), or see `funcmcp inspect {project.code_file.name} --tokens`.",
            )


def check_triggers(app: App) -> Iterator[Finding]:
    """Check that MCP triggers can be read, whoever wrote them."""
    for function, reason in unreadable(app):
        yield Finding("error", function, f"is left out. {reason}")

"""The checks of ``funcmcp doctor`` for a project's code after it is imported.

Source: the binding contract of Azure's MCP extension 1.5 and 1.6, for the keys of a binding and their values.
"""

from __future__ import annotations

import ast
import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.azure.settings import SELF_HOSTED_PROFILE, at, prefix_in
from funcmcp_cli.doctor.ignore_file import excluding_line
from funcmcp_cli.doctor.project import Finding, Project, kind_of
from funcmcp_cli.token_costs import MANY_TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REQUIRED_KEYS = {
    "mcptooltrigger": ("toolName", "description"),
    "mcpresourcetrigger": ("uri", "resourceName"),
    "mcpprompttrigger": ("promptName",),
    "mcptoolproperty": ("propertyName", "propertyType", "description", "isRequired"),
    "mcppromptargument": ("argumentName", "description", "isRequired"),
}
_NAME_KEYS = {"mcptooltrigger": "toolName", "mcpresourcetrigger": "uri", "mcpprompttrigger": "promptName"}
_JSON_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}
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
            yield Finding("error", subject, "has no MCPServer for the custom handler to serve.")
    elif not code.has_app:
        yield Finding("error", subject, "has no FunctionApp. Add app = funcmcp.azure.http_app(mcp) to function_app.py.")
    elif not project.triggers and not project.endpoints:
        yield Finding(
            "error", subject, "has no MCP server in its app. Make the app with funcmcp.azure.http_app or trigger_app."
        )
    else:
        yield Finding("ok", subject, f"has an app with {len(code.functions)} functions.")


def check_custom_handler(project: Project) -> Iterator[Finding]:
    """Check that a custom handler receives its requests unchanged."""
    if not project.is_self_hosted:
        return
    if at(project.host, "configurationProfile") == SELF_HOSTED_PROFILE:
        yield Finding("ok", "configurationProfile", "forwards requests to the server.")
    elif at(project.host, "customHandler", "http", "enableProxying") is True:
        yield Finding("ok", "customHandler", "forwards requests to the server.")
    else:
        yield Finding(
            "error",
            "customHandler",
            'does not receive the requests. Add "configurationProfile": "mcp-custom-handler" to host.json.',
        )


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


def check_deployed_files(project: Project) -> Iterator[Finding]:
    """Check that .funcignore does not exclude files that the app needs."""
    text = project.text_of(".funcignore")
    excluded_by: dict[str, list[str]] = {}
    for path in ("host.json", "requirements.txt", *project.code.files):
        if not (project.folder / path).is_file():
            continue
        line = excluding_line(text, path)
        if line is not None:
            excluded_by.setdefault(line, []).append(path)
    for line, paths in excluded_by.items():
        yield Finding(
            "error", ".funcignore", f"excludes {', '.join(paths)}, which the app needs. Remove the line {line!r}."
        )


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


def check_access(project: Project) -> Iterator[Finding]:
    """Check that the server or Azure authenticates callers."""
    if not (project.endpoints or project.triggers or project.is_self_hosted):
        return
    faults = [*_endpoint_faults(project), *_platform_faults(project)]
    yield from faults or [Finding("ok", "access", "needs a key of the app, or a sign-in.")]


def _endpoint_faults(project: Project) -> Iterator[Finding]:
    for name, endpoint in project.endpoints:
        is_anonymous = str(endpoint.get("authLevel", "")).lower() == "anonymous"
        # The function that serves the protected-resource metadata exists only if the endpoint's server requires tokens.
        requires_tokens = f"{name}_metadata" in project.code.functions
        if is_anonymous and not requires_tokens and not project.has_auth:
            yield Finding(
                "warning",
                "auth_level",
                "is anonymous and the server has no auth=, so any caller may use it. Pass auth=, or omit auth_level.",
            )
        elif requires_tokens and not is_anonymous:
            yield Finding(
                "error", "auth_level", "requires a key that clients who sign in do not have. Omit auth_level."
            )


def _platform_faults(project: Project) -> Iterator[Finding]:
    level = at(project.host, "extensions", "mcp", "system", "webhookAuthorizationLevel")
    if project.triggers and str(level).lower() == "anonymous":
        yield Finding(
            "warning",
            "webhookAuthorizationLevel",
            "is Anonymous, so any caller may use the triggers, unless App Service authentication is on.",
        )
    level = at(project.host, "customHandler", "http", "defaultAuthorizationLevel")
    if project.is_self_hosted and str(level).lower() == "anonymous" and not project.has_auth:
        yield Finding(
            "warning",
            "defaultAuthorizationLevel",
            'is anonymous and the server has no auth=, so any caller may use it. Pass auth=, or write "function".',
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


def check_triggers(project: Project) -> Iterator[Finding]:
    """Check that MCP triggers have the keys that the functions host requires, whoever wrote them."""
    if not project.triggers:
        return
    faults: list[Finding] = []
    counts: dict[tuple[str, str], int] = {}
    for function, binding in project.triggers:
        faults += _binding_faults(function, binding)
        kind = kind_of(binding)
        if kind in _NAME_KEYS:
            name = str(binding.get(_NAME_KEYS[kind])).lower()
            counts[kind, name] = counts.get((kind, name), 0) + 1
    for (_, name), count in counts.items():
        if count > 1:
            faults.append(Finding("error", name, "is the name of two features: the functions host ignores its case."))
    yield from faults or [Finding("ok", "triggers", f"of {len(counts)} tools, resources and prompts are complete.")]


def _binding_faults(function: str, binding: Mapping[str, Any]) -> Iterator[Finding]:
    kind = kind_of(binding)
    if kind not in _REQUIRED_KEYS:
        yield Finding(
            "error",
            function,
            f"has the binding {binding.get('type')}, which Azure's MCP extension does not have. "
            "Use mcpToolTrigger, mcpResourceTrigger (also for templates) or mcpPromptTrigger.",
        )
        return
    missing = [key for key in _REQUIRED_KEYS[kind] if key not in binding]
    if missing:
        yield Finding(
            "error", function, f"lacks {' and '.join(missing)} in its {binding.get('type')}. Azure does not load it."
        )
    if "toolProperties" in binding:
        yield from _property_faults(function, binding["toolProperties"])


def _property_faults(function: str, properties: object) -> Iterator[Finding]:
    try:
        rows = json.loads(properties) if isinstance(properties, str) else None
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        yield Finding("error", function, "has toolProperties that are not a JSON array in a string.")
        return
    for row in rows:
        kind = row.get("propertyType")
        if kind in _JSON_TYPES:
            continue
        advice = ' Write "number".' if kind == "float" else ""
        yield Finding(
            "error",
            function,
            f"has the property {row.get('propertyName')} of type {kind!r}, which JSON Schema does not have.{advice}",
        )

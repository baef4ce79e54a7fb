"""What ``funcmcp doctor`` checks in a project's code, once it is imported.

Source: the binding contract of Azure's MCP extension 1.5 and 1.6: which keys a binding must have, and what is in them.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from funcmcp.adapters.azure.lenient_json import at
from funcmcp.cli.doctor.ignore_file import excluding_line
from funcmcp.cli.doctor.project import Finding, Project, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REQUIRED_KEYS = {
    "mcptooltrigger": ("toolName", "description"),
    "mcpresourcetrigger": ("uri", "resourceName"),
    "mcpprompttrigger": ("promptName",),
    "mcptoolproperty": ("propertyName", "propertyType", "description", "isRequired"),
    "mcppromptargument": ("argumentName", "description", "isRequired"),
}
_NAMES = {"mcptooltrigger": "toolName", "mcpresourcetrigger": "uri", "mcpprompttrigger": "promptName"}
_JSON_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}


def check_code(project: Project) -> Iterator[Finding]:
    """The code can be imported and has what Azure looks for."""
    about = "the code"
    if project.loaded.error is not None:
        yield Finding("error", about, f"can't be imported: {project.loaded.error}.".replace("..", "."))
    elif project.is_self_hosted:
        if project.loaded.servers:
            yield Finding("ok", about, f"has the server {project.loaded.servers[0]['name']}.")
        else:
            yield Finding("error", about, "has no MCPServer that the custom handler could serve.")
    elif not project.loaded.has_app:
        yield Finding("error", about, "has no FunctionApp: app = funcmcp.azure.http_app(mcp) in function_app.py.")
    elif not project.triggers and not project.endpoints:
        yield Finding(
            "error", about, "has no MCP server in its app: funcmcp.azure.http_app or trigger_app puts one there."
        )
    else:
        yield Finding("ok", about, f"has an app with {len(project.loaded.functions)} functions.")


def check_handler(project: Project) -> Iterator[Finding]:
    """A custom handler gets its requests as they are."""
    if not project.is_self_hosted:
        return
    if at(project.host, "configurationProfile") == "mcp-custom-handler":
        yield Finding("ok", "configurationProfile", "lets requests through to the server.")
    elif at(project.host, "customHandler", "http", "enableProxying") is True:
        yield Finding("ok", "customHandler", "lets requests through to the server.")
    else:
        yield Finding(
            "error", "customHandler", 'requests do not reach it: write "configurationProfile": "mcp-custom-handler".'
        )


def check_start(project: Project) -> Iterator[Finding]:
    """The file that a custom handler starts as a script runs its server."""
    name = project.code.name
    if not _is_started_as_script(project) or not project.loaded.servers:
        return
    if _runs_something(ast.parse(project.code.read_bytes())):
        yield Finding("ok", name, "runs the server.")
    else:
        yield Finding(
            "error", name, 'never runs the server. End it with `if __name__ == "__main__":` and `mcp.run()` below it.'
        )


def _is_started_as_script(project: Project) -> bool:
    """Return whether the custom handler is ``python server.py``, and not another program or ``python -m`` something."""
    description = at(project.host, "customHandler", "description")
    program = PurePath(str(at(description, "defaultExecutablePath"))).stem.lower()
    arguments = at(description, "arguments")
    first = str(arguments[0]) if isinstance(arguments, list) and arguments else ""
    return program.startswith("py") and project.folder / first == project.code


def _runs_something(module: ast.Module) -> bool:
    """Return whether a script calls anything if it is ``__main__``, or `run`, `serve` or `main` of anything."""
    for node in ast.walk(module):
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            return any(isinstance(part, ast.Call) for statement in node.body for part in ast.walk(statement))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {"run", "serve", "main"}:
            return True
    return False


def check_deployed_files(project: Project) -> Iterator[Finding]:
    """The files that the app needs are deployed."""
    text = project.text_of(".funcignore")
    left_out: dict[str, list[str]] = {}
    for path in ("host.json", "requirements.txt", *project.loaded.files):
        line = excluding_line(text, path) if (project.folder / path).is_file() else None
        if line is not None:
            left_out.setdefault(line, []).append(path)
    for line, paths in left_out.items():
        yield Finding(
            "error", ".funcignore", f"leaves out {', '.join(paths)}, which the app needs: remove the line {line!r}."
        )


def check_route(project: Project) -> Iterator[Finding]:
    """The endpoint has the same path on Azure and on a developer's machine."""
    if "host.json" not in project.documents:
        return
    default = "" if at(project.host, "configurationProfile") == "mcp-custom-handler" else "api"
    given = at(project.host, "extensions", "http", "routePrefix")
    prefix = str(default if given is None else given).strip("/")
    if project.is_self_hosted and prefix:
        yield Finding(
            "error", "routePrefix", f'is "{prefix}", which the server does not know: set it to "" in host.json.'
        )
    local = {server["path"] for server in project.loaded.servers}
    for _, endpoint in project.endpoints:
        path = "/" + "/".join(part for part in (prefix, str(endpoint.get("route", "")).strip("/")) if part)
        if path in local or not local:
            yield Finding("ok", "routePrefix", f"the endpoint is {path}.")
        else:
            yield Finding(
                "warning",
                "routePrefix",
                f"the endpoint is {path} on Azure and {min(local)} with `funcmcp run`: "
                'set extensions.http.routePrefix to "" in host.json.',
            )


def check_access(project: Project) -> Iterator[Finding]:
    """Somebody asks who calls: the server, or Azure."""
    if not (project.endpoints or project.triggers or project.is_self_hosted):
        return
    faults = [*_endpoint_faults(project), *_platform_faults(project)]
    yield from faults or [Finding("ok", "access", "callers need a key of the app, or to sign in.")]


def _endpoint_faults(project: Project) -> Iterator[Finding]:
    for name, endpoint in project.endpoints:
        is_open = str(endpoint.get("authLevel", "")).lower() == "anonymous"
        tells = f"{name}_metadata" in project.loaded.functions  # where clients get tokens, so its server asks for them
        if is_open and not tells and not project.asks:
            yield Finding(
                "warning",
                "auth_level",
                "is anonymous and the server has no auth=: everybody may call it. Give it auth=, or leave this out.",
            )
        elif tells and not is_open:
            yield Finding(
                "error", "auth_level", "asks for a key that clients who sign in do not have. Leave auth_level out."
            )


def _platform_faults(project: Project) -> Iterator[Finding]:
    level = at(project.host, "extensions", "mcp", "system", "webhookAuthorizationLevel")
    if project.triggers and str(level).lower() == "anonymous":
        yield Finding(
            "warning",
            "webhookAuthorizationLevel",
            "is Anonymous: everybody may call the triggers, unless App Service authentication is on.",
        )
    level = at(project.host, "customHandler", "http", "defaultAuthorizationLevel")
    if project.is_self_hosted and str(level).lower() == "anonymous" and not project.asks:
        yield Finding(
            "warning",
            "defaultAuthorizationLevel",
            'is anonymous and the server has no auth=: everybody may call it. Give it auth=, or write "function".',
        )


def check_sessions(project: Project) -> Iterator[Finding]:
    """Sessions outlive the instance that began them."""
    for server in project.loaded.servers:
        if server["keeps_sessions"]:
            yield Finding(
                "warning",
                "sessions",
                f"of {server['name']} are in one instance's memory, and Azure starts several: "
                'leave sessions="signed", or take RedisSessions.',
            )


def check_triggers(project: Project) -> Iterator[Finding]:
    """MCP triggers, whoever wrote them, have what the functions host needs."""
    if not project.triggers:
        return
    faults = [fault for function, binding in project.triggers for fault in _binding_faults(function, binding)]
    names = Counter(
        (kind_of(binding), str(binding.get(_NAMES[kind_of(binding)])).lower())
        for _, binding in project.triggers
        if kind_of(binding) in _NAMES
    )
    faults += [
        Finding("error", name, "is there twice: the functions host does not tell upper from lower case.")
        for (_, name), count in names.items()
        if count > 1
    ]
    yield from faults or [Finding("ok", "triggers", f"{len(names)} tools, resources and prompts are complete.")]


def _binding_faults(function: str, binding: Mapping[str, Any]) -> Iterator[Finding]:
    kind, type_ = kind_of(binding), binding.get("type")
    if kind not in _REQUIRED_KEYS:
        yield Finding("error", function, f"{type_} is no binding of Azure's MCP extension: {_known()}.")
        return
    missing = [key for key in _REQUIRED_KEYS[kind] if key not in binding]
    if missing:
        yield Finding(
            "error", function, f"its {type_} has no {' and no '.join(missing)}, without which Azure does not load it."
        )
    if "toolProperties" in binding:
        yield from _property_faults(function, binding["toolProperties"])


def _known() -> str:
    return "there are mcpToolTrigger, mcpResourceTrigger (templates, too) and mcpPromptTrigger"


def _property_faults(function: str, properties: object) -> Iterator[Finding]:
    try:
        rows = json.loads(properties) if isinstance(properties, str) else None
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        yield Finding("error", function, "its toolProperties must be a JSON array in a string.")
        return
    for row in rows:
        kind = row.get("propertyType")
        if kind not in _JSON_TYPES:
            yield Finding(
                "error",
                function,
                f"the type of {row.get('propertyName')} is {kind!r}, which is no type of JSON Schema"
                + (': write "number".' if kind == "float" else "."),
            )

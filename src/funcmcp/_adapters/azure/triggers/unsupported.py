"""What of a server the functions host can't do: refused before anything is registered, or told in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._adapters.azure.triggers.binding_json import equivalent
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.log import logger, quote

if TYPE_CHECKING:
    from funcmcp._server.dispatch import Server

_ALTERNATIVE = "serve it with funcmcp.azure.http_app"


def check_features(server: Server, revision: str) -> None:
    """Refuse what would be wrong or unsafe behind the functions host.

    Raises:
        RegistrationError: names what it is, and says what to do.
    """
    if server.guard is not None:
        raise RegistrationError(
            "Azure's MCP triggers know no auth=: the functions host itself asks for its key, or App Service for a "
            f"sign-in, and neither is per feature. Leave auth out, or {_ALTERNATIVE}."
        )
    if revision not in server.revisions:
        raise RegistrationError(
            f"The functions host speaks revisions up to {revision}; add it to revisions, or {_ALTERNATIVE}."
        )
    for feature in server.catalog.features():
        if feature.access.required_scopes or feature.access.authorize is not None:
            raise RegistrationError(
                f"{feature.key} has scopes or authorize, which Azure's MCP triggers can't check: "
                f"take them away, or {_ALTERNATIVE}."
            )
    for tool in server.catalog.tools:
        if tool.task is not None and tool.task.mode == "required":
            raise RegistrationError(
                f'{tool.key} runs only as a task, and Azure\'s MCP triggers have no tasks: write task="optional", '
                f"which makes each call a plain call here, or {_ALTERNATIVE}."
            )
    _check_uris(server)


def _check_uris(server: Server) -> None:
    keys: dict[str, str] = {}
    for resource in (*server.catalog.resources, *server.catalog.templates):
        other = keys.setdefault(equivalent(resource.key), resource.key)
        if other != resource.key:
            raise RegistrationError(
                f"Azure's MCP triggers take {resource.key!r} and {other!r} for the same: "
                "let them differ by more than case and the names of variables."
            )


def warn_of_lost(server: Server) -> None:
    """Tell in the log what the functions host leaves out of what the server offers."""
    tools = {tool.key: tool.describe() for tool in server.catalog.tools}
    resources = {
        resource.key: resource.describe() for resource in (*server.catalog.resources, *server.catalog.templates)
    }
    completing = [
        feature.key
        for kind in (server.catalog.prompts, server.catalog.templates)
        for feature in kind
        if feature.completers
    ]
    lost = {
        "annotations of tools": [key for key, tool in tools.items() if "annotations" in tool],
        "icons of tools": [key for key, tool in tools.items() if "icons" in tool],
        "tasks (each call is a plain call)": [tool.key for tool in server.catalog.tools if tool.task is not None],
        "annotations of resources": [key for key, resource in resources.items() if "annotations" in resource],
        "icons of resources": [key for key, resource in resources.items() if "icons" in resource],
        "completions": completing,
        "lists of resources that a function makes": [lister.key for lister in server.catalog.listers],
        "instructions (set them in host.json)": [] if server.options.instructions is None else [server.options.name],
    }
    for member, keys in lost.items():
        if keys:
            logger.warning("Azure's MCP triggers have no %s: lost for %s.", member, quote(", ".join(keys)))


def watch(server: Server) -> None:
    """Tell in the log when features change later: the host learns what there is only once."""

    def warn(_feature: object, _count: int) -> None:
        logger.warning("A feature was added or removed after trigger_app: the functions host will not know of it.")

    for registry in (server.catalog.tools, server.catalog.resources, server.catalog.templates, server.catalog.prompts):
        registry.listeners.append(warn)

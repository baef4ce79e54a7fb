"""What of a server the functions host can't do: refused before anything is registered, or told in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._adapters.azure.triggers.binding_json import equivalent
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.log import logger, quote
from funcmcp._state.line_limit import LineLimit

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        if tool.confirmation is not None and tool.confirmation.is_required:
            raise RegistrationError(
                f"{tool.key} has confirm=, and Azure's MCP triggers can't ask a person: "
                f'write confirm_otherwise="run", which runs it without a question here, or {_ALTERNATIVE}.'
            )
    if server.routes.lists["tools/list"].cache_scope == "private":
        raise RegistrationError(
            "mcp.tool_search has whole_list_clients, and behind Azure's MCP triggers all clients get the same list: "
            f"leave it out, or {_ALTERNATIVE}."
        )
    if server.catalog.promised & {"skills"} or len(server.catalog.skills):
        raise RegistrationError(f"Azure's MCP triggers have no skills: leave mcp.add_skills out, or {_ALTERNATIVE}.")
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
    """Log what the functions host leaves out of what the server offers."""
    lost: dict[str, list[str]] = {}
    for member, key in [*_lost_of_tools(server), *_lost_of_others(server)]:
        lost.setdefault(member, []).append(key)
    for member, keys in lost.items():
        logger.warning("Azure's MCP triggers have no %s: lost for %s.", member, quote(", ".join(keys)))


def _lost_of_tools(server: Server) -> Iterator[tuple[str, str]]:
    """Yield what the host leaves out of tools, with the names of the tools."""
    for tool in server.routes.lists["tools/list"].shown():
        for member in sorted({"annotations", "icons"} & tool.describe().keys()):
            yield f"{member} of tools", tool.key
        if tool.task is not None:
            yield "tasks (each call is a plain call)", tool.key
        if tool.confirmation is not None:
            yield "confirmation (each call runs without a question)", tool.key


def _lost_of_others(server: Server) -> Iterator[tuple[str, str]]:
    """Yield what the host leaves out of the rest, with the keys of the features or the server's name."""
    catalog = server.catalog
    for resource in (*catalog.resources, *catalog.templates):
        for member in sorted({"annotations", "icons"} & resource.describe().keys()):
            yield f"{member} of resources", resource.key
    for feature in (*catalog.prompts, *catalog.templates):
        if feature.completers:
            yield "completions", feature.key
    for lister in catalog.listers:
        yield "lists of resources that a function makes", lister.key
    for method in catalog.methods:
        yield "methods of extensions", method.key
    if server.options.instructions is not None:
        yield "instructions (set them in host.json)", server.options.name


def watch(server: Server) -> None:
    """Log when features change later: the host reads the list of features only once."""
    lines = LineLimit()

    def warn(_feature: object, _count: int) -> None:
        lines.write("A feature was added or removed after trigger_app: the functions host will not know of it.")

    for registry in (server.catalog.tools, server.catalog.resources, server.catalog.templates, server.catalog.prompts):
        registry.listeners.append(warn)

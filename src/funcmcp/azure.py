"""MCP servers on Azure Functions. Needs ``pip install "funcmcp[azure]"``; see docs/guides/azure.md.

Example:
    ```python
    app = funcmcp.azure.http_app(mcp)  # in function_app.py: the endpoint is /api/mcp
    ```
    ```python
    app = funcmcp.azure.trigger_app(mcp)  # as Azure's own MCP triggers, at /runtime/webhooks/mcp
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp.adapters.azure import settings as azure_settings
from funcmcp.adapters.azure.triggers.extra_bindings import Bindings, Input, Output
from funcmcp.auth.protected_resource import WELL_KNOWN, ProtectedResource
from funcmcp.serving import serving_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp.adapters.azure.http_trigger import AuthLevel, FunctionApp
    from funcmcp.app import MCPServer

__all__ = ["Bindings", "Input", "Output", "http_app", "protected_resource", "public_url", "trigger_app"]


def http_app(
    mcp: MCPServer,
    *,
    route: str = "mcp",
    auth_level: AuthLevel | str | None = None,
    app: FunctionApp | None = None,
    streams: bool = False,
) -> FunctionApp:
    """Serve a server from a function app, by HTTP triggers.

    Args:
        mcp: the server.
        route: of the endpoint, below the route prefix that host.json gives the app's functions ("api" by default).
        auth_level: which of the platform's keys callers need: "anonymous", "function" or "admin". By default it is
            "function"; but "anonymous" if the server tells clients where to get tokens, for they know of no keys.
        app: register on this app; by default on a new one.
        streams: send event streams as they come. It is on for all HTTP functions of the app then, and needs
            ``pip install "funcmcp[azure-streams]"``. Without it a client gets a stream when it is complete, and what
            can't wait so long is refused.

    Returns:
        The app, to be a global of function_app.py.

    Raises:
        ValueError: the Functions host would not serve that route, or clients would not find the server's metadata.
        ImportError: another package has HTTP streams switched on in this app, or a package is missing.
    """
    from funcmcp.adapters.azure import http_trigger as azure_http  # noqa: PLC0415 - vendor code is loaded by those who use it

    if streams:
        import funcmcp.adapters.azure.http_streams  # noqa: PLC0415, F401 - importing it switches them on
    found = azure_http.FunctionApp() if app is None else app
    azure_http.register(serving_of(mcp), found, route=route, auth_level=auth_level)
    return found


def trigger_app(
    mcp: MCPServer,
    app: FunctionApp | None = None,
    *,
    bindings: Mapping[str, Sequence[Input | Output]] | None = None,
) -> FunctionApp:
    """Register a server's tools, resources and prompts as Azure's own MCP triggers; call it when all are registered.

    The functions host speaks with the clients, at ``/runtime/webhooks/mcp``. docs/guides/azure.md lists what
    it can't do.

    Args:
        mcp: the server.
        app: register on this app; by default on a new one.
        bindings: more bindings of functions, by the name of a tool or prompt or the URI of a resource; a function gets
            their values by a parameter of the type `Bindings`.

    Returns:
        The app, to be a global of function_app.py.

    Raises:
        RegistrationError: something in the server is beyond the functions host; the text names it and says what to do.
    """
    from funcmcp.adapters.azure.triggers import registration as azure_triggers  # noqa: PLC0415 - vendor code is loaded by those who use it

    found = azure_triggers.FunctionApp() if app is None else app
    azure_triggers.register(serving_of(mcp), found, bindings or {})
    return found


def public_url(route: str = "mcp", *, host: str | None = None) -> str:
    """Return the URL by which clients reach a function of this app.

    Args:
        route: of the function.
        host: a custom domain; by default the name that Azure gave the app, or that of Core Tools on your machine.

    Raises:
        ValueError: host.json can't be read.
    """
    return f"{_origin(host)}{azure_settings.route_prefix()}/{route.strip('/')}"


def protected_resource(
    authorization_servers: Sequence[str],
    *,
    scopes: Sequence[str] = (),
    route: str = "mcp",
    host: str | None = None,
    name: str | None = None,
) -> ProtectedResource:
    """Return what clients are told of where to get tokens, with this app's own URLs in it.

    Args:
        authorization_servers: issuers whose tokens are accepted.
        scopes: the scopes that callers can ask for.
        route: of the endpoint.
        host: a custom domain; by default the name that Azure gave the app, or that of Core Tools on your machine.
        name: what to call the server where people read it.

    Raises:
        ValueError: host.json can't be read, or a URL is none.
    """
    prefix = azure_settings.route_prefix()
    return ProtectedResource(
        resource=public_url(route, host=host),
        authorization_servers=authorization_servers,
        scopes=scopes,
        name=name,
        served_at=f"{_origin(host)}{prefix}{WELL_KNOWN}{prefix}/{route.strip('/')}" if prefix else None,
    )


def _origin(host: str | None) -> str:
    host = host or azure_settings.hostname()
    return f"{'http' if azure_settings.is_local(host) else 'https'}://{host}"

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

from funcmcp._adapters.azure import settings as azure_settings
from funcmcp._adapters.azure.key_values import AzureSignIns, AzureState
from funcmcp._adapters.azure.triggers.extra_bindings import Bindings, Input, Output
from funcmcp._auth.well_known import WELL_KNOWN
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from funcmcp._adapters.azure.http_function_tools import HTTPFunctionOptions
    from funcmcp._adapters.azure.http_trigger import AuthLevel, FunctionApp
    from funcmcp._app.mcp_server import MCPServer
    from funcmcp._auth.policy import Auth
    from funcmcp._auth.protected_resource import ProtectedResource
    from funcmcp._upstreams.auth import AuthFunction, UpstreamAuth

__all__ = [
    "AzureSignIns",
    "AzureState",
    "Bindings",
    "Input",
    "Output",
    "front",
    "http_app",
    "protected_resource",
    "public_url",
    "tool_from_http_function",
    "trigger_app",
]


def http_app(
    mcp: MCPServer,
    *,
    route: str = "mcp",
    auth_level: AuthLevel | str | None = None,
    app: FunctionApp | None = None,
    streams: bool = False,
) -> FunctionApp:
    """Serve an MCP server with HTTP triggers of a function app.

    With ``MCPServer(tasks=AzureTasks())`` the app also gets a function with a queue trigger, which runs the tasks.

    Args:
        mcp: The server.
        route: The route of the endpoint, below the route prefix of host.json (``"api"`` by default).
        auth_level: The platform's key that callers need: ``"anonymous"``, ``"function"`` or ``"admin"``. The default is
            ``"function"``, and ``"anonymous"`` for a server with `ProtectedResource`, because clients that get tokens
            have no key.
        app: The function app that gets the triggers. The default is a new one.
        streams: Send event streams while they are produced. This applies to all HTTP functions of the app and needs
            ``pip install "funcmcp[azure-streams]"``. Without it a client gets a stream when it is complete, and
            requests whose stream has no end are refused.

    Returns:
        The function app. Assign it to a global variable of function_app.py.

    Raises:
        ValueError: The Functions host can't serve the route, clients can't find the server's metadata, or the store of
            its tasks is no store for a function app.
        ImportError: Another package has HTTP streams switched on in this app, or a package is missing.
    """
    from funcmcp._adapters.azure import http_trigger as azure_http  # noqa: PLC0415 - vendor code, loaded when it is used

    if streams:
        import funcmcp._adapters.azure.http_streams  # noqa: PLC0415, F401 - the import switches streams on
    function_app = azure_http.FunctionApp() if app is None else app
    azure_http.register(runtime_of(mcp), function_app, route=route, auth_level=auth_level)
    return function_app


def trigger_app(
    mcp: MCPServer,
    app: FunctionApp | None = None,
    *,
    bindings: Mapping[str, Sequence[Input | Output]] | None = None,
) -> FunctionApp:
    """Register a server's tools, resources and prompts as Azure's own MCP triggers.

    Call it when all features are registered. The Functions host answers the clients, at ``/runtime/webhooks/mcp``;
    docs/guides/azure.md lists what it does not support.

    Args:
        mcp: The server.
        app: The function app that gets the triggers. The default is a new one.
        bindings: Further bindings of functions, by the name of a tool or prompt or the URI of a resource. A function
            gets their values with a parameter of the type `Bindings`.

    Returns:
        The function app. Assign it to a global variable of function_app.py.

    Raises:
        RegistrationError: The Functions host does not support a feature of the server. The text names the feature and
            the remedy.
    """
    from funcmcp._adapters.azure.triggers import registration as azure_triggers  # noqa: PLC0415 - vendor code, loaded when it is used

    function_app = azure_triggers.FunctionApp() if app is None else app
    azure_triggers.register(runtime_of(mcp), function_app, bindings or {})
    return function_app


def tool_from_http_function(
    mcp: MCPServer, app: FunctionApp, function: str, /, **options: Unpack[HTTPFunctionOptions]
) -> None:
    """Register an HTTP-triggered function of a function app as a tool. Calls stay in this process.

    Args:
        mcp: The server that gets the tool.
        app: The function app.
        function: The function's name in the app. Variables of its route are arguments of the tool.
        options: Further arguments and options of the tool; see docs/guides/existing.md.

    Raises:
        RegistrationError: The app has no such function, it can't be a tool, or the name is taken.
    """
    from funcmcp._adapters.azure import http_function_tools  # noqa: PLC0415 - vendor code, loaded when it is used

    tool = http_function_tools.tool_from_http_function(app, function, options, mcp.services)
    runtime_of(mcp).server.catalog.add(tool)


def front(
    url: str,
    *,
    key: str | None = None,
    auth: Auth | None = None,
    identity: UpstreamAuth | AuthFunction | None = None,
    resource: ProtectedResource | None = None,
) -> MCPServer:
    """Return a server that stands for a function app with Azure's MCP triggers, for clients of all revisions.

    The Functions host of the app answers in revisions before 2026-07-28 only. A request that the app answers with 503,
    because it starts, is sent again for a minute. Without *key* and *identity*, callers need credentials of the app,
    in ``x-functions-key`` or ``Authorization``, which are passed on to it and judged there. Then the front has to be
    run by those who run the app. It needs ``pip install "funcmcp-slim[client]"``, and not the extra ``azure``.

    Args:
        url: The URL of the app, ``https://NAME.azurewebsites.net``, or of its endpoint if that has another path than
            ``/runtime/webhooks/mcp``.
        key: The system key ``mcp_extension`` of the app, which all requests to it have. Callers need none: pass
            *auth*, or let only this machine reach the front.
        auth: Who may call the front, if *key* or *identity* says who calls the app.
        identity: Who calls the app, as ``auth=`` of `funcmcp.upstreams.Upstream`: `on_behalf_of`, for example.
        resource: Metadata that lead clients to the authorization server of the app, if their tokens are passed on. The
            resource is the URL of the front.

    Raises:
        ValueError: The URL is neither https nor on a loopback address, or the options do not go together.
    """
    from funcmcp._upstreams.front import front_of  # noqa: PLC0415 - few apps are fronts

    return front_of(url, key=key, auth=auth, identity=identity, resource=resource)


def public_url(route: str = "mcp", *, host: str | None = None) -> str:
    """Return the public URL of a function of this app.

    Args:
        route: The function's route.
        host: A custom domain. The default is the app's own host name on Azure, and that of Core Tools on your machine.

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
    """Return the metadata that leads clients to the authorization server, with this app's public URLs.

    Args:
        authorization_servers: URLs of the issuers whose tokens the server accepts.
        scopes: Scopes that clients can request.
        route: The route of the endpoint, as in `http_app`.
        host: A custom domain. The default is the app's own host name on Azure, and that of Core Tools on your machine.
        name: A name of the server for people.

    Raises:
        ValueError: host.json can't be read, or a URL is invalid.
    """
    from funcmcp._auth.protected_resource import ProtectedResource  # noqa: PLC0415 - not without `auth`

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

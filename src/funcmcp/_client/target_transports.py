"""The transport for each kind of target."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from funcmcp._client.targets import HTTPEndpoint, StdioCommand
from funcmcp._client.transport import Transport
from funcmcp._text.visible import visible_url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._app.mcp_server import MCPServer
    from funcmcp._transports.http.messages import Exchange

    Target: TypeAlias = MCPServer | str | HTTPEndpoint | StdioCommand | Transport | Exchange


def check_kind(target: object) -> None:
    """Raise TypeError or ValueError for what can't be a target, without a connection and without its modules."""
    if isinstance(target, str) and not target.startswith(("http://", "https://")):
        raise ValueError(
            f"{visible_url(target)!r} is not a URL of an endpoint, such as http://127.0.0.1:8000/mcp. "
            "A program is a StdioCommand, such as StdioCommand('python', 'server.py')."
        )
    if isinstance(target, str | HTTPEndpoint | StdioCommand | Transport) or callable(target):
        return
    from funcmcp._app.mcp_server import MCPServer  # noqa: PLC0415 - only servers in memory need it

    if not isinstance(target, MCPServer):
        raise TypeError(
            f"Client needs an MCPServer, a URL, a StdioCommand or a transport; got {type(target).__name__}."
        )


def transport_for(target: Target, headers: Mapping[str, str]) -> Transport:
    """Return the transport for a target. A module that only one kind of target needs is imported for that kind."""
    check_kind(target)
    if isinstance(target, str):
        target = HTTPEndpoint(target)
    if isinstance(target, HTTPEndpoint):
        return _http_transport(target, headers)
    if isinstance(target, StdioCommand):
        if headers:
            raise ValueError("headers are for HTTP. Pass secrets to a StdioCommand with env=.")
        from funcmcp._client.stdio import StdioTransport  # noqa: PLC0415 - see above

        return StdioTransport(target)
    from funcmcp._app.mcp_server import MCPServer  # noqa: PLC0415 - see above
    from funcmcp._client.streamable_http import MemoryTransport, StreamableHTTP  # noqa: PLC0415 - see above
    from funcmcp._serving.composition import runtime_of  # noqa: PLC0415 - see above

    if isinstance(target, MCPServer):
        return MemoryTransport(runtime_of(target), headers)
    if isinstance(target, Transport):
        return target
    return StreamableHTTP(target, "/mcp", headers)


def _http_transport(endpoint: HTTPEndpoint, headers: Mapping[str, str]) -> Transport:
    try:
        from funcmcp._client.http_exchange import HTTPTransport  # noqa: PLC0415 - vendor code, for URLs alone
    except ModuleNotFoundError as error:
        if error.name != "httpx2":
            raise
        message = 'httpx2 is not installed. A client of a URL needs: pip install "funcmcp[client]"'
        raise ModuleNotFoundError(message, name="httpx2") from None
    return HTTPTransport(endpoint, headers)

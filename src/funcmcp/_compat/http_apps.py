"""`create_streamable_http_app` and `create_sse_app` of FastMCP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._compat.server import FastMCP


@public("funcmcp.compat")
def create_streamable_http_app(
    server: FastMCP,
    streamable_http_path: str,
    *,
    routes: Sequence[Any] | None = None,
    middleware: Sequence[Any] | None = None,
    auth: Any = None,
    **options: Any,
) -> Any:
    """Return an ASGI application of Starlette that serves Streamable HTTP, as ``server.http_app`` does.

    Args:
        server: The server.
        streamable_http_path: The path of the endpoint.
        routes: More routes of Starlette.
        middleware: Starlette's middleware.
        auth: The authentication of the server, which has it already.
        options: Other options of `FastMCP.http_app`.

    Raises:
        TypeError: *auth* is not that of the server.
    """
    return _app(server, streamable_http_path, "http", routes, auth, {**options, "middleware": middleware})


@public("funcmcp.compat")
def create_sse_app(
    server: FastMCP,
    message_path: str,
    sse_path: str,
    *,
    routes: Sequence[Any] | None = None,
    middleware: Sequence[Any] | None = None,
    auth: Any = None,
    **options: Any,
) -> Any:
    """Return an ASGI application of Starlette that serves HTTP+SSE.

    Args:
        server: The server.
        message_path: Is ignored: clients get the path of messages from the stream.
        sse_path: The path of the stream.
        routes: More routes of Starlette.
        middleware: Starlette's middleware.
        auth: The authentication of the server, which has it already.
        options: Other options of `FastMCP.http_app`.

    Raises:
        TypeError: *auth* is not that of the server.
    """
    del message_path
    return _app(server, sse_path, "sse", routes, auth, {**options, "middleware": middleware})


def _app(
    server: FastMCP,
    path: str,
    transport: str,
    routes: Sequence[Any] | None,
    auth: Any,
    options: dict[str, Any],
) -> Any:
    if auth is not None and auth is not server.auth:
        # The application would be open, or have another sign-in than its author believes.
        raise TypeError("auth= has to be that of the server. Write FastMCP(name, auth=...), and leave it out here.")
    app = server.http_app(path, transport=transport, **options)
    if routes:
        app.router.routes[:0] = routes
    return app

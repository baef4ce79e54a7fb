"""What `MCPServer.run` and `MCPServer.run_async` do: choose a transport and serve on it until the process ends."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

from funcmcp._adapters.asgi.application import ASGIApplication, http_runtime_of
from funcmcp._server.log_output import is_json, write_about_server
from funcmcp._server.run import require_asyncio
from funcmcp._serving.composition import ServerRuntime, runtime_of
from funcmcp._transports.http.listen_address import (
    CUSTOM_HANDLER_PORT_VARIABLE,
    MAX_PORT,
    ONLY_THIS_MACHINE,
    ListenAddress,
    listen_address,
)

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Literal, TypeAlias

    Transport: TypeAlias = Literal["stdio", "http", "streamable-http", "sse"]

imported_by_command: ContextVar[bool] = ContextVar("imported_by_command", default=False)
"""Whether a command of the command line imports the file of a server, and so decides itself how to serve it."""

_HTTP_TRANSPORTS = {"http", "streamable-http", "sse"}
_USAGE = 2
"""The exit code for a wrong option or variable."""


def run(mcp: ASGIApplication, transport: Transport | None, *, host: str | None, port: int | None) -> None:
    """Serve an `MCPServer` as its method `run` documents."""
    _check_not_imported("run")
    runtime = runtime_of(mcp)
    kind = _kind_of_transport(transport, host, port)
    _check_no_loop_runs()
    _warn_of_features_elsewhere(runtime)
    if kind == "stdio":
        _check_grants_on_stdio(runtime)
        from funcmcp._transports import stdio  # noqa: PLC0415 - only servers on stdio need it

        if is_json():
            runtime.log_as_json()
        try:
            stdio.run(runtime.server, runtime.aclose, runtime.enter_lifespans, runtime.stoppable)
        except stdio.StreamError as error:
            write_about_server(
                f"{error.strerror}. On stdio the server needs stdin and stdout for its client.", logging.ERROR
            )
            raise SystemExit(1) from None
        return
    uvicorn, endpoint = uvicorn_adapter(), _endpoint(runtime, transport)
    try:
        address = listen_address(host, port, os.environ)
    except ValueError as error:
        write_about_server(error, logging.ERROR)
        raise SystemExit(_USAGE) from None
    try:
        uvicorn.serve(
            mcp,
            host=address.host,
            port=address.port,
            on_ready=partial(_announce, uvicorn, endpoint, address),
        )
    except uvicorn.StartError as error:
        write_about_server(error, logging.ERROR)
        raise SystemExit(1) from None
    except uvicorn.AddressError as error:
        write_about_server(f"{error.strerror}. Choose another address with host= and port=.", logging.ERROR)
        raise SystemExit(1) from None  # Without the text: a thread that ends so would not show it.


async def run_async(mcp: ASGIApplication, transport: Transport | None, *, host: str | None, port: int | None) -> None:
    """Serve an `MCPServer` as its method `run_async` documents."""
    _check_not_imported("run_async")
    require_asyncio()
    runtime = runtime_of(mcp)
    kind = _kind_of_transport(transport, host, port)
    _warn_of_features_elsewhere(runtime)
    if kind == "stdio":
        _check_grants_on_stdio(runtime)
        from funcmcp._transports import stdio  # noqa: PLC0415 - only servers on stdio need it

        if is_json():
            runtime.log_as_json()
        await stdio.run_async(runtime.server, runtime.aclose, runtime.enter_lifespans, runtime.stoppable)
        return
    uvicorn, endpoint = uvicorn_adapter(), _endpoint(runtime, transport)
    address = listen_address(host, port, os.environ)
    await uvicorn.serve_async(
        mcp,
        host=address.host,
        port=address.port,
        on_ready=partial(_announce, uvicorn, endpoint, address),
    )


def _announce(uvicorn: ModuleType, endpoint: str, address: ListenAddress, origin: str) -> None:
    """Write where the server is, and whether a platform that has chosen its port can't reach it."""
    uvicorn.announce(origin + endpoint, address.origin_note)
    if address.is_only_platform_port:
        write_about_server(ONLY_THIS_MACHINE)


def _endpoint(runtime: ServerRuntime, transport: Transport | None) -> str:
    """Return the path to announce; open the HTTP+SSE endpoint if the transport needs it."""
    return runtime.open_sse() if transport == "sse" else runtime.path


def _kind_of_transport(transport: Transport | None, host: str | None, port: int | None) -> Literal["stdio", "http"]:
    """Return the kind of a transport; raise ValueError if it does not exist, or the address is invalid for it."""
    has_address = host is not None or port is not None
    if host is not None and not isinstance(host, str):
        raise ValueError(f"host must be a string, such as '127.0.0.1'; got {host!r}.")
    if port is not None and (type(port) is not int or not 0 <= port <= MAX_PORT):
        raise ValueError(f"port must be an integer from 0 to {MAX_PORT}; got {port!r}.")
    if transport is None:
        return "http" if has_address or CUSTOM_HANDLER_PORT_VARIABLE in os.environ else "stdio"
    if transport == "stdio":
        if has_address:
            raise ValueError('host and port are for HTTP. Leave them out, or use the transport "http".')
        return "stdio"
    if transport not in _HTTP_TRANSPORTS:
        raise ValueError(f"transport must be 'stdio', 'http', 'streamable-http' or 'sse'; got {transport!r}.")
    return "http"


def _check_not_imported(method: str) -> None:
    """Raise RuntimeError if a command imports the file that calls the method."""
    if imported_by_command.get():
        raise RuntimeError(
            f'mcp.{method}() is called while the file is imported. Write it under: if __name__ == "__main__":'
        )


def _check_grants_on_stdio(runtime: ServerRuntime) -> None:
    """End the process if a tool needs a user who has signed in."""
    try:
        runtime.check_grants(has_callers=False)
    except RuntimeError as error:
        write_about_server(error, logging.ERROR)
        raise SystemExit(_USAGE) from None


def _warn_of_features_elsewhere(runtime: ServerRuntime) -> None:
    """Write a line on stderr if the server has no features and a server of another module has some.

    ``python -m package.server`` runs the module as ``__main__``. If a module of its tools imports ``package.server``,
    Python imports the file a second time, and the tools are those of the second server.
    """
    if _has_features(runtime):
        return
    for module_name, module in list(sys.modules.items()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if isinstance(value, ASGIApplication) and _has_features(http_runtime_of(value)):
                write_about_server(
                    f"{runtime.name} has no tools, resources or prompts, but the server {module_name}.{name} has some. "
                    "If both come from one file, it was imported twice: create the server in a module that is only "
                    "imported, and call run() in another one.",
                    logging.WARNING,
                )
                return


def _has_features(served: object) -> bool:
    return isinstance(served, ServerRuntime) and next(served.server.catalog.features(), None) is not None


def _check_no_loop_runs() -> None:
    """Raise RuntimeError if an event loop is running in this thread, as in a coroutine or a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("mcp.run() can't start while an event loop is running. Write: await mcp.run_async(...)")


def uvicorn_adapter() -> ModuleType:
    """Return the module that serves with uvicorn; end the process with one line if uvicorn is not installed."""
    try:
        # Imported by name and only here: it loads uvicorn.
        return importlib.import_module("funcmcp._processes.server")
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":
            raise
        raise SystemExit('uvicorn is not installed. To serve HTTP: pip install "funcmcp[server]"') from None

"""``funcmcp host``: serve a function app's MCP triggers."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from funcmcp._cli.commands import Drain, LogFormat, app, set_drain, set_log_format
from funcmcp._cli.failure import Failure, UsageFailure
from funcmcp._cli.function_app import announce_function_app, open_function_app, start_function_app
from funcmcp._cli.output import write_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._functions_host.folder import CrossOrigin
    from funcmcp._functions_host.served import FunctionsHost, HostSettings
    from funcmcp._transports.http.listen_address import ListenAddress

_PORT = 7071
_SERVER = "funcmcp._adapters.uvicorn.server"

_AZURE = "azure"
"""The value of --storage for storage accounts; ./azure is a folder of that name."""

_ALL_ADDRESSES = {"0.0.0.0", "::", ""}  # noqa: S104 - addresses to compare with, not to listen on
_DOCUMENTATION = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""By family, an address of another machine (RFC 5737, RFC 3849)."""

_DISCARD = 9
"""Any port: nothing is sent there."""


@app.command("host")
def host_command(  # noqa: PLR0913 - one for each option of the command
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The function app's folder.")] = Path(),
    *,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on.", show_default="$FUNCMCP_HOST, or 127.0.0.1")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The port; 0 for a free one.",
            show_default=f"$FUNCMCP_PORT, Host.LocalHttpPort of local.settings.json, $PORT, or {_PORT}",
        ),
    ] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve one client on stdin and stdout instead.")] = False,
    trust_proxy: Annotated[
        bool,
        typer.Option(
            "--trust-proxy",
            help="Hand X-MS-CLIENT-*, X-MS-TOKEN-* and X-ARR-* to functions: a proxy in front sets them.",
        ),
    ] = False,
    allow_cross_site: Annotated[
        bool,
        typer.Option("--allow-cross-site", help="Let links on pages of other sites run HTTP triggers on loopback."),
    ] = False,
    cors: Annotated[
        str | None,
        typer.Option(
            metavar="ORIGINS",
            help="The origins whose pages may call the app, separated by commas; * for all.",
            show_default="Host.CORS of local.settings.json",
        ),
    ] = None,
    cors_credentials: Annotated[
        bool, typer.Option("--cors-credentials", help="Let the pages of --cors send cookies.")
    ] = False,
    python: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The interpreter of a Python app.", show_default="DIR/.venv, or this one"),
    ] = None,
    engine: Annotated[
        Literal["auto", "runtime", "library"],
        typer.Option(help="What runs a Python app: azure-functions-runtime (Python 3.13) or azure-functions alone."),
    ] = "auto",
    node: Annotated[
        str | None, typer.Option(metavar="FILE", help="The program that runs a Node app.", show_default="node")
    ] = None,
    worker: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="The language worker of an app in another language: 'dotnet app.dll'."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="How many processes run the functions.")] = 1,
    reload: Annotated[
        bool | None,
        typer.Option(
            "--reload/--no-reload", help="Load the app again when its files change.", show_default="on a terminal"
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|azure",
            help="The folder of blobs and queues, or azure for the storage accounts of the app settings.",
            show_default="DIR/.funcmcp/storage",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Check arguments against the tool's input schema before a call.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="The time that a call may take.", show_default="host.json's"),
    ] = None,
    drain: Drain = None,
    log_level: Annotated[
        Literal["critical", "error", "warning", "info", "debug"], typer.Option(help="The least severe messages to log.")
    ] = "info",
    log_format: LogFormat = None,
) -> None:
    """Serve the MCP triggers of the function app in DIR, as the Azure Functions host does, until Ctrl+C or SIGTERM.

    It runs the app's code, in a process of its own with the app's interpreter.
    """
    from funcmcp._functions_host.served import HostSettings
    from funcmcp._server.log_output import write_as_text, write_to_stderr

    set_drain(drain)
    set_log_format(log_format)
    if not logging.getLogger().handlers:
        write_as_text(logging.getLogger())
    logging.getLogger().setLevel(log_level.upper())
    write_to_stderr()
    uses_service = storage == _AZURE
    if uses_service:
        _require_storage()
    address = _address_of(folder, host, port)
    settings = HostSettings(
        host=address.host,
        port=address.port,
        address_note=address.origin_note,
        trusts_proxy=trust_proxy,
        allows_cross_site=allow_cross_site,
        cross_origin=_cross_origin(folder, cors, credentials=cors_credentials),
        python=python,
        engine=engine,
        node=node,
        worker=worker,
        storage=None if storage is None or uses_service else Path(storage),
        blob_service=uses_service,
        strict=strict,
        timeout=timeout,
        workers=workers,
        reload=sys.stderr.isatty() if reload is None else reload,
    )
    if _has_custom_handler(folder):
        if stdio:
            raise Failure("A custom handler is served over HTTP only. Leave --stdio out.")
        _serve_custom_handler(folder, settings)
    elif stdio:
        _serve_stdio(folder, settings)
    else:
        _serve_http(folder, settings)


def _address_of(folder: Path, host: str | None, port: int | None) -> ListenAddress:
    """Return the address to listen on. The file of the app precedes the port of a platform."""
    from funcmcp._functions_host.folder import FolderError
    from funcmcp._transports.http.listen_address import (
        PLATFORM_PORT_VARIABLE,
        PORT_VARIABLE,
        listen_address,
        port_of_environment,
    )

    variable = ""
    try:
        if port is None:
            port, variable = (
                port_of_environment(os.environ, [PORT_VARIABLE])
                or _port_of_file(folder)
                or port_of_environment(os.environ, [PLATFORM_PORT_VARIABLE])
                or (_PORT, "")
            )
        return listen_address(host, port, os.environ)._replace(port_variable=variable)
    except FolderError as error:
        raise Failure(str(error)) from None
    except ValueError as error:
        raise UsageFailure(str(error)) from None


def _port_of_file(folder: Path) -> tuple[int, str] | None:
    """Return the port in local.settings.json, which is of no variable; None if there is none."""
    from funcmcp._functions_host.folder import local_port

    port = local_port(folder)
    return (port, "") if port else None


def _cross_origin(folder: Path, origins: str | None, *, credentials: bool) -> CrossOrigin | None:
    from funcmcp._functions_host.folder import FolderError, cross_origin, local_origins

    if origins is None and not credentials:
        return None
    try:
        if origins is None:
            origins = ",".join(local_origins(folder))
        if credentials and not origins:
            raise Failure("--cors-credentials needs --cors ORIGINS, or Host.CORS in local.settings.json.")
        return cross_origin(origins, credentials=credentials)
    except FolderError as error:
        raise Failure(str(error)) from None
    except ValueError as error:
        raise Failure(f"--cors: {error}") from None


def _require_storage() -> None:
    try:
        import funcmcp._functions_host.blob_service  # noqa: F401
    except ImportError as error:
        raise Failure('--storage azure needs azure-storage-blob. Run: pip install "funcmcp[host-storage]"') from error
    logging.getLogger("azure").setLevel(logging.WARNING)  # it logs each request


def _serve_http(folder: Path, settings: HostSettings) -> None:
    from funcmcp._adapters.asgi.application import ASGIApplication
    from funcmcp._cli.log_options import LogOptions, configure

    served = open_function_app(folder, settings, has_address=True)
    if served.needs_keys:
        raise Failure(
            f"Other machines can reach {settings.host}, so the app needs keys. Set "
            "FUNCMCP_HOST_KEYS=mcp_extension=KEY with at least 16 characters."
        )
    configure(served.mcp, LogOptions())

    async def serve() -> None:
        # The modules of the HTTP server are loaded while the worker loads the app: each takes about 0.2 s.
        loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, _SERVER))
        try:
            await start_function_app(served)
            announce_function_app(served)
            server = await loading
            await server.serve_async(
                ASGIApplication(served),
                host=settings.host,
                port=settings.port,
                on_ready=lambda origin: _announce(served, origin),
            )
        finally:
            await served.aclose()

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(serve())
    except OSError as error:
        from funcmcp._adapters.uvicorn.server import AddressError

        if not isinstance(error, AddressError):
            raise
        raise Failure(f"{error.strerror}. Choose another address with --host and --port.") from error


def _has_custom_handler(folder: Path) -> bool:
    from funcmcp._adapters.azure.settings import at
    from funcmcp._functions_host.folder import FolderError, read_json

    try:
        return at(read_json(folder / "host.json"), "customHandler") is not None
    except FolderError:
        return False


def _serve_custom_handler(folder: Path, settings: HostSettings) -> None:
    from funcmcp._adapters.asgi.application import ASGIApplication
    from funcmcp._functions_host.custom_handler import MISSING_KEYS, CustomHandlerHost
    from funcmcp._functions_host.folder import FolderError
    from funcmcp._functions_host.workers.worker import LoadFailed

    async def serve() -> None:
        try:
            served = CustomHandlerHost(folder, dict(os.environ), settings)
        except (FolderError, ValueError) as error:  # the latter is about keys in the environment
            raise Failure(str(error)) from error
        if served.needs_keys:
            raise Failure(MISSING_KEYS)
        try:
            await served.start()
            server = importlib.import_module(_SERVER)
            await server.serve_async(
                ASGIApplication(served),
                host=settings.host,
                port=settings.port,
                on_ready=lambda origin: write_note(
                    f"{served.folder.path.name} is served at {origin} ({_note_of(settings)}Ctrl+C stops it)"
                ),
            )
        except LoadFailed as error:
            raise Failure(f"The function app can't be loaded. {error}") from error
        finally:
            await served.aclose()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None


def _announce(served: FunctionsHost, origin: str) -> None:
    write_note(f"{served.name} is served at {origin}{served.path} ({_note_of(served.settings)}Ctrl+C stops it)")
    write_note(f"HTTP+SSE for older clients: {origin}{served.path}/sse")
    if served.http_count and not served.feature_count:
        write_note(f"No function of {served.folder.path.name} has an MCP trigger. Its HTTP triggers are at {origin}")
    if served.settings.host in _ALL_ADDRESSES:
        address = _address_in_network(socket.AF_INET6 if "[" in origin else socket.AF_INET)
        port = origin.rpartition(":")[2]
        if address is not None:
            write_note(f"Other machines reach it at http://{address}:{port}{served.path}")


def _note_of(settings: HostSettings) -> str:
    """Return the environment variables that have decided the address, for the line at the start."""
    return f"{settings.address_note}; " if settings.address_note else ""


def _address_in_network(family: socket.AddressFamily) -> str | None:
    """Return the address from which this machine would reach another one; None if it has no network."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_DOCUMENTATION[family], _DISCARD))  # of a datagram socket: nothing is sent
        except OSError:
            return None
        address: str = probe.getsockname()[0]
    return f"[{address}]" if family == socket.AF_INET6 else address


def _serve_stdio(folder: Path, settings: HostSettings) -> None:
    from funcmcp._transports.stdio import StreamError, run_async

    served = open_function_app(folder, settings, has_address=False)

    async def serve() -> None:
        try:
            await start_function_app(served)
            announce_function_app(served)
            await run_async(served.server, served.aclose)
        finally:
            await served.aclose()

    try:
        asyncio.run(serve())
    except StreamError as error:
        raise Failure(f"{error.strerror}. With --stdio the server exchanges messages with its client there.") from error

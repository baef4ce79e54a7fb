"""``funcmcp host``: serve a function app's MCP triggers."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from funcmcp_cli.commands import app
from funcmcp_cli.failure import Failure, UsageFailure
from funcmcp_cli.function_app import announce_function_app, open_function_app, start_function_app, write_breaches
from funcmcp_cli.output import write_note
from funcmcp_cli.server_options import HostOptions, set_variables, with_options

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from funcmcp._transports.http.listen_address import ListenAddress
    from funcmcp_host.folder import CrossOrigin
    from funcmcp_host.served import FunctionsHost, HostSettings

_PORT = 7071
_SERVER = "funcmcp._processes.server"

_AZURE = "azure"
"""The value of --storage for storage accounts; ./azure is a folder of that name."""

_ALL_ADDRESSES = {"0.0.0.0", "::", ""}  # noqa: S104 - addresses to compare with, not to listen on
_DOCUMENTATION = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""By family, an address of another machine (RFC 5737, RFC 3849)."""

_DISCARD = 9
"""Any port: nothing is sent there."""


@app.command("host")
@with_options
def host_command(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The function app's folder.")] = Path(),
    *,
    options: HostOptions,
) -> None:
    """Serve the MCP triggers of the function app in DIR, as the Azure Functions host does, until Ctrl+C or SIGTERM.

    It runs the app's code, in a process of its own with the app's interpreter.
    """
    from funcmcp._server.log_output import write_as_text, write_to_stderr
    from funcmcp_host.served import HostSettings

    folder = _app_in(folder)
    set_variables(options)
    if not logging.getLogger().handlers:
        write_as_text(logging.getLogger())
    logging.getLogger().setLevel(options.log_level.upper())
    write_to_stderr()
    uses_service = options.storage == _AZURE
    if uses_service:
        _require_storage()
    address = _address_of(folder, options.host, options.port)
    settings = HostSettings(
        host=address.host,
        port=address.port,
        address_note=address.origin_note,
        trusts_proxy=options.trust_proxy,
        allows_cross_site=options.allow_cross_site,
        cross_origin=_cross_origin(folder, options.cors, credentials=options.cors_credentials),
        python=options.python,
        engine=options.engine,
        node=options.node,
        worker=options.worker,
        storage=None if options.storage is None or uses_service else Path(options.storage),
        blob_service=uses_service,
        strict=options.strict,
        timeout=options.timeout,
        workers=options.workers,
        reload=sys.stderr.isatty() if options.reload is None else options.reload,
    )
    if _forwards_requests(folder):
        if options.stdio:
            raise Failure("A custom handler that answers HTTP requests is served over HTTP only. Leave --stdio out.")
        _serve_custom_handler(folder, settings)
    elif options.stdio:
        _serve_stdio(folder, settings)
    else:
        _serve_http(folder, settings)


def _app_in(folder: Path) -> Path:
    """Return the folder of the app: the one named, or the one that azure.yaml in it deploys."""
    from funcmcp_host.app_folders import app_in
    from funcmcp_host.folder import FolderError

    try:
        return app_in(folder)
    except FolderError as error:
        raise Failure(str(error)) from None


def _address_of(folder: Path, host: str | None, port: int | None) -> ListenAddress:
    """Return the address to listen on. The file of the app precedes the port of a platform."""
    from funcmcp._transports.http.listen_address import (
        PLATFORM_PORT_VARIABLE,
        PORT_VARIABLE,
        listen_address,
        port_of_environment,
    )
    from funcmcp_host.folder import FolderError

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
    from funcmcp_host.folder import local_port

    port = local_port(folder)
    return (port, "") if port else None


def _cross_origin(folder: Path, origins: str | None, *, credentials: bool) -> CrossOrigin | None:
    from funcmcp_host.folder import FolderError, cross_origin, local_origins

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
        import funcmcp_host.blob_service  # noqa: F401
    except ImportError as error:
        raise Failure('--storage azure needs azure-storage-blob. Run: pip install "funcmcp[host-storage]"') from error
    logging.getLogger("azure").setLevel(logging.WARNING)  # it logs each request


def _serve_http(folder: Path, settings: HostSettings) -> None:
    from funcmcp._adapters.asgi.application import ASGIApplication
    from funcmcp_cli.log_options import LogOptions, configure

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
            with _ended_by_sigterm():
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

    _run(serve())


def _forwards_requests(folder: Path) -> bool:
    """Return whether a custom handler gets the HTTP requests of an app as they are, and not invocations."""
    from funcmcp_host.app_rules.handler_rules import invoked_functions
    from funcmcp_host.app_rules.model import read_app

    app = read_app(folder, {})
    return app.has_custom_handler and not invoked_functions(app)


def _serve_custom_handler(folder: Path, settings: HostSettings) -> None:
    from funcmcp._adapters.asgi.application import ASGIApplication
    from funcmcp_host.custom_handler import MISSING_KEYS, CustomHandlerHost
    from funcmcp_host.folder import FolderError
    from funcmcp_host.workers.worker import LoadFailed

    async def serve() -> None:
        try:
            served = CustomHandlerHost(folder, dict(os.environ), settings)
        except (FolderError, ValueError) as error:  # the latter is about keys in the environment
            raise Failure(str(error)) from error
        if served.needs_keys:
            raise Failure(MISSING_KEYS)
        try:
            with _ended_by_sigterm():
                await served.start()
            write_breaches(served.breaches)
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

    _run(serve())


def _run(serving: Coroutine[None, None, None]) -> None:
    """Run a server until it ends; raise Failure if it can't listen on its address."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(serving)
    except OSError as error:
        from funcmcp._processes.server import AddressError

        if not isinstance(error, AddressError):
            raise
        raise Failure(f"{error.strerror}. Choose another address with --host and --port.") from error


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """While the block starts an app, SIGTERM cancels it, so that the app's processes end before this one does."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    signals: list[int] = []

    def end() -> None:
        signals.append(signal.SIGTERM)
        if task is not None:
            task.cancel()

    with contextlib.suppress(NotImplementedError):  # Windows
        loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield
    except asyncio.CancelledError:
        if not signals:
            raise
        raise typer.Exit from None
    finally:
        with contextlib.suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGTERM)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    with contextlib.suppress(ImportError):
        import uvloop

        return uvloop.new_event_loop
    return None


def _announce(served: FunctionsHost, origin: str) -> None:
    """Write where clients reach the app: its MCP endpoint, if it has MCP triggers, and each HTTP trigger."""
    note = f"({_note_of(served.settings)}Ctrl+C stops it)"
    path = served.path
    if served.feature_count or not served.http_count:
        write_note(f"{served.name} is served at {origin}{path} {note}")
        write_note(f"HTTP+SSE for older clients: {origin}{path}/sse")
    else:
        path = ""
        write_note(f"{served.folder.path.name} is served at {origin} {note}")
        write_note("No function has an MCP trigger. Clients reach an MCP server behind an HTTP trigger at its URL.")
    for route, methods in served.http_endpoints.items():
        write_note(f"HTTP trigger: {origin}{route} ({', '.join(methods) or 'all methods'})")
    if served.settings.host in _ALL_ADDRESSES:
        address = _address_in_network(socket.AF_INET6 if "[" in origin else socket.AF_INET)
        port = origin.rpartition(":")[2]
        if address is not None:
            write_note(f"Other machines reach it at http://{address}:{port}{path}")


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
        raise Failure(f"{error.strerror}. With --stdio the server needs stdin and stdout for its client.") from error

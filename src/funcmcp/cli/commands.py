"""The commands of the command line. What a command needs is imported when it runs."""

# ruff: noqa: PLC0415 - the reason is above

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from funcmcp import __version__
from funcmcp.cli.output import write_line

if TYPE_CHECKING:
    from funcmcp import MCPServer

app = typer.Typer(
    name="funcmcp", add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)

Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME:VALUE", help="A header field of every request; may be repeated."),
]
Bearer = Annotated[
    str | None, typer.Option("--bearer", envvar="FUNCMCP_BEARER", metavar="TOKEN", help="A token to sign in with.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show log messages and progress as lines on stderr.")]
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(:[0-9]{1,5})?")
_TARGET = "path/to/server.py, path/to/server.py:name, package.module, package.module:name or a project's folder"
Target = Annotated[str, typer.Argument(metavar="TARGET", help=f"The server: {_TARGET}.", show_default=False)]
TargetOrURL = Annotated[
    str, typer.Argument(metavar="TARGET|URL", help=f"A server ({_TARGET}) or an endpoint's URL.", show_default=False)
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callbacks get the option's value
    if wanted:
        write_line(f"funcmcp {__version__}")
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Serve MCP servers made of typed Python functions, and try them out."""


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The project's name and folder.", show_default=False)],
    *,
    hosting: Annotated[
        Literal["http", "triggers", "self-hosted"],
        typer.Option(
            help="How Azure serves it: by HTTP triggers (all of MCP), by Azure's own MCP triggers, "
            "or as a server of its own (a custom handler)."
        ),
    ] = "http",
) -> None:
    """Make a project for Azure Functions in a new folder NAME: it runs at once, has tests, and azd deploys it."""
    from funcmcp.cli.new import create

    folder = create(name, Path.cwd(), hosting)
    install = "pip install -r requirements-dev.txt"
    write_line(f"Created {folder.name}. Next: cd {folder.name} && {install} && funcmcp run (README.md says more)")


@app.command()
def doctor(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="The project.")] = Path(),
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check a project for Azure Functions; exit code 1 if something would not work.

    It runs the project's code: it imports function_app.py, or the custom handler's file, in a process of its own.
    """
    from funcmcp.cli import show
    from funcmcp.cli.doctor.examine import examine

    findings = examine(folder)
    (show.print_findings_as_json if as_json else show.print_findings)(findings)
    if any(finding.level == "error" for finding in findings):
        raise typer.Exit(1)


@app.command()
def run(  # noqa: PLR0913 - one for each option of the command
    target: Annotated[str, typer.Argument(metavar="[TARGET]", help=f"The server: {_TARGET}.")] = ".",
    *,
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="The port; 0 for a free one.", show_default="8000"),
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Start again when a Python file changes.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many processes serve. They share what sessions='signed' keeps.", show_default="1"
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A name, with or without a port, by which clients reach the server; may be repeated. '*' is any.",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[
        Literal["critical", "error", "warning", "info", "debug"] | None,
        typer.Option(
            help="The least severe messages to log. From info on there is a line for each request; on a terminal that "
            "is the default.",
            show_default=False,
        ),
    ] = None,
    tls_cert: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Serve HTTPS with this certificate (PEM).", show_default=False),
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="The certificate's private key (PEM).", show_default=False)
    ] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve one client on stdin and stdout instead.")] = False,
) -> None:
    """Serve TARGET over HTTP until Ctrl+C or SIGTERM; calls in flight are finished."""
    if not stdio:
        _allow(allowed_host or [], host)
        if (tls_cert is None) != (tls_key is None):
            raise typer.BadParameter("HTTPS takes both --tls-cert and --tls-key.")
        files = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)
        options = _HTTPOptions(host or "127.0.0.1", port, workers or 1, reload=reload, log_level=log_level, files=files)
        _serve_http(target, options)
        return
    chosen: dict[str, object] = {"--host": host, "--port": port, "--reload": reload or None, "--workers": workers}
    chosen |= {"--allowed-host": allowed_host or None, "--log-level": log_level}
    chosen |= {"--tls-cert": tls_cert, "--tls-key": tls_key}
    named = [option for option, value in chosen.items() if value is not None]
    if named:
        raise typer.BadParameter(f"--stdio serves one client in one process: leave out {' and '.join(named)}.")
    _serve_stdio(target)


def _allow(names: list[str], host: str | None) -> None:
    """Allow Host headers with these names, and with the name that is listened on, if it is one."""
    from funcmcp.transports.http.options import HOSTS_VARIABLE, hosts_of_environment

    for name in names:
        if name != "*" and not _HOST.fullmatch(name):
            raise typer.BadParameter(f"--allowed-host {name!r} is no host name, such as orders.example.com.")
    if host is not None and _HOST.fullmatch(host):
        names = [*names, host]
    os.environ[HOSTS_VARIABLE] = ",".join([*hosts_of_environment(), *names])


def _serve_stdio(target: str) -> None:
    from funcmcp.cli.failure import Failure
    from funcmcp.cli.targets import load
    from funcmcp.transports.stdio import StreamError, serve, standard_streams

    try:
        with standard_streams() as (source, sink):  # before the import: what it prints is no message
            server = load(target)
            if os.isatty(source):
                write_line(f"{server.name} waits for JSON-RPC messages, one on a line (Ctrl+D ends it)", error=True)
            serve(server.server, server.aclose, source=source, sink=sink)
    except StreamError as error:
        raise Failure(f"{error.strerror}. With --stdio the server talks to its client there.") from error


@dataclass(frozen=True, slots=True)
class _HTTPOptions:
    """The options of ``funcmcp run`` for HTTP; `files` are a certificate and its key."""

    host: str
    port: int | None
    workers: int
    _: KW_ONLY
    reload: bool
    log_level: str | None
    files: tuple[str, str] | None


def _serve_http(target: str, options: _HTTPOptions) -> None:
    from functools import partial

    from funcmcp.adapters.uvicorn.server import (
        AddressError,
        Certificate,
        CertificateError,
        WorkerError,
        default_port,
        serve,
        serve_processes,
    )
    from funcmcp.cli.failure import Failure
    from funcmcp.cli.request_log import configure
    from funcmcp.cli.targets import find, load

    host, port = options.host, default_port() if options.port is None else options.port
    certificate = None if options.files is None else Certificate(*options.files)
    server = load(target)
    ready = partial(_announce, server, host, here=not (options.reload or options.workers > 1))
    try:
        if options.reload or options.workers > 1:
            serve_processes(
                partial(_make_in_worker, target, options.log_level),
                host=host,
                port=port,
                workers=options.workers,
                watch=find(target).root if options.reload else None,
                on_ready=ready,
                certificate=certificate,
            )
        else:
            configure(server, options.log_level)
            serve(server, host=host, port=port, on_ready=ready, certificate=certificate)
    except AddressError as error:
        raise Failure(f"{error.strerror}. Choose another address with --host and --port.") from error
    except CertificateError as error:
        raise Failure(f"{error.strerror}. Correct --tls-cert and --tls-key.") from error
    except WorkerError as error:
        raise Failure(f"{error} Its own message is above.") from error


def _make_in_worker(target: str, log_level: str | None) -> MCPServer:
    """Return the server of a worker process, with its log."""
    from funcmcp.cli.request_log import configure
    from funcmcp.cli.targets import load_or_exit

    return configure(load_or_exit(target), log_level)


def _announce(server: MCPServer, host: str, origin: str, *, here: bool) -> None:
    """Say where the server is; then look for tools that no list can have, in the background if it is served `here`."""
    write_line(f"{server.name} is served at {origin}{server.path} (Ctrl+C stops it)")
    if server.keeps_sessions:
        write_line("Sessions of clients before 2026-07-28 are kept in this process's memory.")
    if host in _ALL_ADDRESSES:
        write_line("and at this machine's other addresses. Names that it has must be allowed: --allowed-host NAME")
    if here:
        looking = asyncio.get_running_loop().create_task(_warn(server))
        _background.add(looking)
        looking.add_done_callback(_background.discard)
    else:
        asyncio.run(_warn(server))


async def _warn(server: MCPServer) -> None:
    from funcmcp.cli.faults import faults_of

    async for fault in faults_of(server):
        write_line(fault, error=True)


_ALL_ADDRESSES = {"0.0.0.0", "::", ""}  # noqa: S104 - to tell what it means
_background: set[asyncio.Task[None]] = set()
"""asyncio itself keeps no task alive."""


@app.command()
def inspect(
    target: TargetOrURL,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    header: Headers = None,
    bearer: Bearer = None,
) -> None:
    """Show what a server says of itself, its tools, resources and prompts; exit code 1 if it can't list one."""
    from funcmcp.cli.connect import inspect_server, open_source
    from funcmcp.cli.output import write_json
    from funcmcp.cli.show import print_server

    source = open_source(target, headers=header or [], bearer=bearer)
    facts, faults = asyncio.run(inspect_server(source))
    if as_json:
        write_json(facts)
    else:
        print_server(facts)
    for fault in faults:
        write_line(fault, error=True)
    if faults:
        raise typer.Exit(1)


@app.command()
def call(  # noqa: PLR0913 - one for each option of the command
    target: TargetOrURL,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.", show_default=False)],
    pairs: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Arguments, one by one.", show_default=False)
    ] = None,
    *,
    json: Annotated[str | None, typer.Option("--json", help="All arguments as one JSON object.")] = None,
    header: Headers = None,
    bearer: Bearer = None,
    verbose: Verbose = False,
) -> None:
    """Call a tool and print its result; a tool's error goes to stderr, with exit code 1."""
    from funcmcp.cli import show
    from funcmcp.cli.connect import call_tool, open_source

    source = open_source(target, headers=header or [], bearer=bearer, verbose=verbose)
    result = asyncio.run(call_tool(source, name, pairs or [], json))
    show.print_result(result)
    if result.get("isError"):
        raise typer.Exit(1)


@app.command()
def read(
    target: TargetOrURL,
    uri: Annotated[str, typer.Argument(metavar="URI", help="The resource's URI.", show_default=False)],
    *,
    header: Headers = None,
    bearer: Bearer = None,
    verbose: Verbose = False,
) -> None:
    """Read a resource and print what it holds: text, or bytes where the output is a file or a pipe."""
    from funcmcp.cli import show
    from funcmcp.cli.connect import open_source, read_resource

    source = open_source(target, headers=header or [], bearer=bearer, verbose=verbose)
    show.print_contents(asyncio.run(read_resource(source, uri)))


@app.command()
def prompt(
    target: TargetOrURL,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The prompt's name.", show_default=False)],
    pairs: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Arguments, one by one.", show_default=False)
    ] = None,
    *,
    header: Headers = None,
    bearer: Bearer = None,
    verbose: Verbose = False,
) -> None:
    """Get a prompt and print its messages, each with its role."""
    from funcmcp.cli import show
    from funcmcp.cli.connect import get_prompt, open_source

    source = open_source(target, headers=header or [], bearer=bearer, verbose=verbose)
    show.print_messages(asyncio.run(get_prompt(source, name, pairs or [])))

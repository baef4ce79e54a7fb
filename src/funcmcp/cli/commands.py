"""The commands ``run``, ``inspect`` and ``call``. What a command needs is imported when it runs."""

# ruff: noqa: PLC0415 - the reason is above

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from funcmcp import __version__

if TYPE_CHECKING:
    from funcmcp import MCPServer

app = typer.Typer(
    name="funcmcp", add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)

_TARGET = "path/to/server.py, path/to/server.py:name, package.module or package.module:name"
Target = Annotated[str, typer.Argument(metavar="TARGET", help=f"The server: {_TARGET}.", show_default=False)]
TargetOrURL = Annotated[
    str, typer.Argument(metavar="TARGET|URL", help=f"A server ({_TARGET}) or an endpoint's URL.", show_default=False)
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's callbacks get the option's value
    if wanted:
        typer.echo(f"funcmcp {__version__}")
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
def run(
    target: Target,
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 8000,
    reload: Annotated[bool, typer.Option("--reload", help="Start again when a Python file changes.")] = False,
    workers: Annotated[
        int, typer.Option(min=1, help="How many processes serve. They share no sessions: for clients without.")
    ] = 1,
) -> None:
    """Serve TARGET over HTTP until Ctrl+C or SIGTERM; calls in flight are finished."""
    from functools import partial

    from funcmcp.adapters.uvicorn import AddressError, WorkerError, serve, serve_processes
    from funcmcp.cli.failure import Failure
    from funcmcp.cli.targets import find, load, load_or_exit

    server = load(target)
    ready = partial(_announce, server)
    try:
        if reload or workers > 1:
            factory, watch = partial(load_or_exit, target), find(target).root if reload else None
            serve_processes(factory, host=host, port=port, workers=workers, watch=watch, on_ready=ready)
        else:
            serve(server, host=host, port=port, on_ready=ready)
    except AddressError as error:
        raise Failure(f"{error.strerror}. Choose another address with --host and --port.") from error
    except WorkerError as error:
        raise Failure(f"{error} Its own message is above.") from error


def _announce(server: MCPServer, origin: str) -> None:
    typer.echo(f"{server.name} is served at {origin}{server.path} (Ctrl+C stops it)")


@app.command()
def inspect(
    target: TargetOrURL,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show what a server says of itself, and its tools with their arguments."""
    from funcmcp.cli import show
    from funcmcp.cli.connect import inspect_server

    facts = asyncio.run(inspect_server(target))
    (show.print_json if as_json else show.print_server)(facts)


@app.command()
def call(
    target: TargetOrURL,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.", show_default=False)],
    pairs: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Arguments, one by one.", show_default=False)
    ] = None,
    *,
    json: Annotated[str | None, typer.Option("--json", help="All arguments as one JSON object.")] = None,
) -> None:
    """Call a tool and print its result; a tool's error goes to stderr, with exit code 1."""
    from funcmcp.cli import show
    from funcmcp.cli.connect import call_tool

    result = asyncio.run(call_tool(target, name, pairs or [], json))
    show.print_result(result)
    if result.get("isError"):
        raise typer.Exit(1)

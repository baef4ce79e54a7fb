"""The commands record and replay: they stand between a client and a server, or play what was recorded."""

# ruff: noqa: PLC0415 - what a command needs is imported when it runs

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path  # noqa: TC003 - typer reads the signatures
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from funcmcp_cli.commands import Bearer, Headers, ServerArguments, SignsIn, TargetOrURL, app, examples
from funcmcp_cli.output import write_note
from funcmcp_cli.program_options import ProgramOptions, program_of
from funcmcp_cli.server_options import with_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractContextManager

    from funcmcp.client import Transport
    from funcmcp_cli.connect import Source

Port = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        help="Serve the client over HTTP, at http://127.0.0.1:PORT/mcp. By default it is served on stdio.",
        show_default=False,
        min=1,
        max=65535,
    ),
]


@app.command(
    epilog=examples(
        "funcmcp record server.py --to calls.json",
        "funcmcp record 'uvx mcp-server-time' --to time.json",
        "funcmcp record https://example.com/mcp --bearer TOKEN --to calls.json --port 8001",
    )
)
@with_options
def record(  # noqa: PLR0913 - one for each option of the command
    target: TargetOrURL,
    arguments: ServerArguments = None,
    *,
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The cassette to write.", show_default=False)],
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Replace the values of arguments and other members with this name, beside names such as password and "
            "token; may be repeated.",
            show_default=False,
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the cassette if it exists.")] = False,
    port: Port = None,
    header: Headers = None,
    bearer: Bearer = None,
    sign_in: SignsIn = False,
    options: ProgramOptions,
) -> None:
    """Record the calls of a client to a server. Give the client this command, or its endpoint, in place of the server.

    Headers are not recorded, and secrets are replaced. The cassette is written after each call.
    """
    import os

    from funcmcp._client.cassettes import Cassette, RecordingTransport, known_secrets
    from funcmcp_cli.commands import set_arguments
    from funcmcp_cli.connect import open_source
    from funcmcp_cli.failure import Failure

    if to.exists() and not replace:
        raise Failure(f"{to} exists. Pass --replace, or another file.")
    set_arguments(target, arguments)
    with _protocol_streams(port) as streams:  # before the import, whose output must not be on stdout
        source = open_source(target, headers=header or [], bearer=bearer, sign_in=sign_in, program=program_of(options))
        cassette = Cassette(to, secrets=secret or [], texts=known_secrets(source.headers, os.environ))
        transport = RecordingTransport(_transport_of(source), cassette)
        _serve(transport, streams, port, f"Recording the calls to {source.name} in {to}")


@app.command(epilog=examples("funcmcp replay calls.json", "funcmcp replay calls.json --port 8001"))
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cassette.", show_default=False)],
    *,
    port: Port = None,
) -> None:
    """Play a cassette to a client, in place of the server. A request that is not in it gets an error."""
    from funcmcp._client.cassettes import Cassette, CassetteError, ReplayTransport
    from funcmcp_cli.failure import Failure

    try:
        cassette = Cassette.load(file)
    except CassetteError as error:
        raise Failure(str(error)) from None
    with _protocol_streams(port) as streams:
        _serve(ReplayTransport(cassette), streams, port, f"Playing {file}")


def _protocol_streams(port: int | None) -> AbstractContextManager[tuple[int, int] | None]:
    """Return a context manager with the descriptors of the client on stdio; with None over HTTP."""
    from contextlib import nullcontext

    from funcmcp._transports.stdio import standard_streams

    return nullcontext() if port is not None else standard_streams()


def _transport_of(source: Source) -> Transport:
    """Return the transport to a server."""
    import os

    from funcmcp._client.streamable_http import MemoryTransport
    from funcmcp._client.target_transports import transport_for
    from funcmcp._serving.composition import runtime_of
    from funcmcp.client import HTTPEndpoint, StdioCommand
    from funcmcp_cli.failure import Failure

    if source.function_app is not None:
        raise Failure("record takes a server, a URL or a command. Start the function app, and pass its URL.")
    if source.server is not None:
        return MemoryTransport(runtime_of(source.server), source.headers, by_user=not source.headers)
    if source.command:
        return transport_for(StdioCommand(*source.command, env=os.environ), {})
    return transport_for(HTTPEndpoint(source.target, sign_in=source.sign_in), source.headers)


def _serve(transport: Transport, streams: tuple[int, int] | None, port: int | None, note: str) -> None:
    """Serve one client until its input ends, or until Ctrl+C."""
    from funcmcp._client.errors import one_line
    from funcmcp.client import ClientError
    from funcmcp_cli.failure import Failure

    try:
        with suppress(KeyboardInterrupt):
            if streams is None:
                asyncio.run(_serve_http(transport, port or 0, note))
            else:
                write_note(f"{note}, for a client on stdio", error=True)
                asyncio.run(_serve_stdio(transport, *streams))
    except ClientError as error:
        raise Failure(one_line(error, 2000)) from error


async def _serve_stdio(transport: Transport, source: int, sink: int) -> None:
    from funcmcp._client.bridge import Bridge

    bridge = Bridge(transport)
    output = _writer_of(sink)

    def write(line: bytes) -> None:
        output.write(line)
        output.flush()

    try:
        await bridge.serve_lines(_lines_of(source), write)
    finally:
        await bridge.aclose()


def _writer_of(sink: int) -> BinaryIO:
    return open(sink, "wb", closefd=False)


async def _lines_of(source: int) -> AsyncIterator[bytes]:
    """Yield the lines of a descriptor, which a thread reads."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    def read() -> None:
        with open(source, "rb", closefd=False) as stream, suppress(RuntimeError):  # the loop is closed
            for line in stream:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        yield line


async def _serve_http(transport: Transport, port: int, note: str) -> None:
    import uvicorn

    from funcmcp._adapters.asgi.application import ASGIApplication, HTTPRuntime
    from funcmcp._client.bridge import Bridge

    bridge = Bridge(transport)
    await bridge.open()
    config = uvicorn.Config(ASGIApplication(HTTPRuntime(bridge.exchange)), port=port, log_level="warning")
    write_note(f"{note}, at http://127.0.0.1:{port}/mcp", error=True)
    try:
        await uvicorn.Server(config).serve()
    finally:
        await bridge.aclose()

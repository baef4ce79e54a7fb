"""``funcmcp front``: clients of every revision reach a function app whose Functions host has some of them only."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from funcmcp._text.files import read_text
from funcmcp_cli.commands import address_of, app, checked_host, examples, serve
from funcmcp_cli.failure import Failure
from funcmcp_cli.server_options import RunOptions, with_options

if TYPE_CHECKING:
    from funcmcp import MCPServer

KEY_VARIABLE = "FUNCMCP_APP_KEY"
_OF_CODE = ("reload", "queue", "no_tasks", "sign_in_as", "config", "header", "bearer", "sign_in")
"""Options of ``funcmcp run`` for a server's code, or for other URLs."""


@dataclass(frozen=True, slots=True)
class FrontOfApp:
    """The front of a function app.

    Attributes:
        url: The URL of the app, or of its endpoint.
        key: The key of the app; None if callers send their own credentials.
        allow_anonymous: Whether requests without credentials are passed on.
    """

    url: str = field(repr=False)
    key: str | None = field(repr=False)
    allow_anonymous: bool
    root: None = None
    is_elsewhere: str = "the function app is not a Python file of this machine"
    needs_one_process: str = ""

    def load(self) -> MCPServer:
        """Return the server."""
        from funcmcp._upstreams.front import front_of

        try:
            return front_of(self.url, key=self.key, allow_anonymous=self.allow_anonymous)
        except ValueError as error:
            raise Failure(str(error)) from error


def front(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="The function app, https://NAME.azurewebsites.net, or its MCP endpoint if it has another path than "
            "/runtime/webhooks/mcp.",
            show_default=False,
        ),
    ],
    *,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            envvar=KEY_VARIABLE,
            metavar="KEY",
            help="The system key mcp_extension of the app, for all callers. Other users of this machine can read a "
            "command line.",
            show_default=False,
        ),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file with the key.", show_default=False)
    ] = None,
    options: RunOptions,
) -> None:
    """Serve the MCP triggers of a function app on Azure to clients of every revision and transport.

    Without a key, callers send credentials of the app, in x-functions-key or Authorization, which are passed on to it.
    With a key only this machine can be served.
    """
    if key is not None and key_file is not None:
        raise typer.BadParameter(f"--key-file and --key (or {KEY_VARIABLE}) can't be combined: leave out one of them.")
    if key_file is not None:
        key = _key_in(key_file)
    is_local = _is_local(options)
    served = FrontOfApp(url, key, allow_anonymous=is_local)
    if _has_key(served) and not is_local:
        raise typer.BadParameter(
            "Everyone who reaches the front would use the app with its key. Leave out the key: callers then send "
            "their own. Or write a server with funcmcp.azure.front(URL, key=..., auth=...)."
        )
    serve(served, options)


def _key_in(file: Path) -> str:
    try:
        key = read_text(file).strip()
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}.") from error
    if not key:
        raise Failure(f"{file} is empty. Write the key into it.")
    return key


def _has_key(served: FrontOfApp) -> bool:
    """Return whether the front has a key of the app; raise Failure if the URL is not valid."""
    from funcmcp._upstreams.front import endpoint_of

    try:
        return served.key is not None or endpoint_of(served.url)[1] is not None
    except ValueError as error:
        raise Failure(str(error)) from error


def _is_local(options: RunOptions) -> bool:
    """Return whether only this machine reaches the front."""
    from funcmcp._protocol.loopback import is_loopback

    if options.stdio:
        return True
    if options.allowed_host or options.proxies or options.root_path:  # a proxy in front serves others
        return False
    if options.uds is not None:
        return True
    return is_loopback(address_of(checked_host(options.host), options.port).host)


front_command = app.command(
    "front",
    epilog=examples(
        "funcmcp front https://orders.azurewebsites.net",
        "funcmcp front https://orders.azurewebsites.net --key-file mcp_extension.key --stdio",
        "funcmcp front https://orders.azurewebsites.net --host 0.0.0.0 --allowed-host orders.example.com",
    ),
)(partial(with_options, left_out=_OF_CODE)(front))

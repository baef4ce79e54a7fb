"""``funcmcp install``: print a server's configuration for a client, or write it into the client's file."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from funcmcp._page.mcp_clients import CLIENTS
from funcmcp_cli.commands import ServerArguments, app, set_arguments
from funcmcp_cli.failure import Failure
from funcmcp_cli.home_folder import home_folder
from funcmcp_cli.install.forms import MCP_JSON, TEXTS
from funcmcp_cli.install.packages import Packages
from funcmcp_cli.output import write_line, write_text

if TYPE_CHECKING:
    from funcmcp._page.mcp_clients import ClientProfile
    from funcmcp_cli.install.bundles import Bundle
    from funcmcp_cli.install.entries import Entry, ServerDescription

_NAMES = ", ".join(sorted([*CLIENTS, *TEXTS, "mcp-json"]))
_OTHER_NAMES = dict.fromkeys(("code", "visual-studio-code", "visual studio code"), "vscode")
_OTHER_NAMES["claude"] = "claude-desktop or claude-code"
_OTHER_NAMES["stdio"] = "command"


ClientName = Annotated[str, typer.Argument(metavar="CLIENT", help=f"One of {_NAMES}.", show_default=False)]
ServerOrURL = Annotated[
    str,
    typer.Argument(
        metavar="[TARGET|URL|BUNDLE]",
        help="The server, as for funcmcp run, an endpoint's URL, a bundle (.mcpb), or a command such as "
        "'uvx some-server'.",
    ),
]
Name = Annotated[
    str | None, typer.Option(metavar="NAME", help="The name of the entry.", show_default="from the server's name")
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        "-e",
        metavar="NAME[=VALUE]",
        help="An environment variable of the server; may be repeated. Without a value, or with ${OTHER} in it, the "
        "client reads or asks for the value.",
        show_default=False,
    ),
]
EnvFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file with environment variables (.env), whose values are written into the entry. --env has precedence.",
        show_default=False,
    ),
]
Header = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME:VALUE",
        help="A header field for a URL; may be repeated. ${NAME} in it is an environment variable.",
        show_default=False,
    ),
]
Runner = Annotated[
    Literal["auto", "python", "uv", "uvx"],
    typer.Option(
        help="What runs the server: this Python, uv run, or uvx with the dependencies of the project. "
        "The default is uvx if it runs this command, and uv where uv.lock is."
    ),
]
With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="PACKAGE",
        help="A package that uv installs for the server, such as pandas; may be repeated.",
        show_default=False,
    ),
]
WithRequirements = Annotated[
    Path | None,
    typer.Option(
        "--with-requirements",
        metavar="FILE",
        help="A file with packages that uv installs for the server: requirements.txt, or a script with its metadata.",
        show_default=False,
    ),
]
Workspace = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Use the client's file in a project's folder.", show_default="the user's file"),
]
File = Annotated[Path | None, typer.Option(metavar="FILE", help="Use another file.", show_default="the client's file")]
Write = Annotated[bool, typer.Option("--write", help="Merge the entry into the file, with a backup.")]
Link = Annotated[bool, typer.Option("--link", help="Print a link that adds the server when a user opens it.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show how --write would change the file.")]


@app.command()
def install(  # noqa: PLR0913 - one for each option of the command
    client: ClientName,
    target: ServerOrURL = ".",
    arguments: ServerArguments = None,
    *,
    name: Name = None,
    env: Env = None,
    env_file: EnvFile = None,
    header: Header = None,
    runner: Runner = "auto",
    with_: With = None,
    with_requirements: WithRequirements = None,
    workspace: Workspace = None,
    file: File = None,
    link: Link = False,
    write: Write = False,
    dry_run: DryRun = False,
) -> None:
    """Print the configuration of an MCP client for a server, or write it into the client's file.

    CLIENT is also mcp-json for a plain mcp.json, or command for the command that starts the server.
    """
    from funcmcp_cli.faults import exit_with

    if client in TEXTS or link:
        _check_no_file(write, dry_run, workspace, file)
    profile = None if client in TEXTS else find_client(client)
    set_arguments(target, arguments)
    variables = _variables_of(env_file, env or [])
    if link and client == "goose" and runner == "auto":
        runner = "uvx"  # links of goose start few other programs
    packages = Packages.of(with_ or [], with_requirements)
    server, bundle = _server_at(target, name, arguments or [], variables, header or [], runner, packages=packages)
    if profile is None or link:
        _print_text(client, profile, server, link=link)
    else:
        server = _for_this_machine(server, profile, workspace, write=write, dry_run=dry_run)
        _add(profile, server, _file(profile, workspace, file), bundle, write=write, dry_run=dry_run)
    for note in server.notes:
        write_line(note, error=True)
    exit_with(server.faults)


def _is_server(client: str) -> bool:
    """Return whether a server is where the name of a client belongs."""
    return client.endswith((".py", ".mcpb")) or "://" in client or Path(client).is_file()


def _for_this_machine(
    server: ServerDescription, client: ClientProfile, workspace: Path | None, *, write: bool, dry_run: bool
) -> ServerDescription:
    """Return a server as it is written into a user's own file: with the path of its program."""
    from funcmcp_cli.install.servers import with_absolute_program

    is_written = write or dry_run
    is_own_file = workspace is None and client is not MCP_JSON
    return with_absolute_program(server) if is_written and is_own_file else server


def _variables_of(env_file: Path | None, env: list[str]) -> list[str]:
    """Return the environment variables of the options. Those of a file are also set here: the server may need them."""
    from funcmcp_cli.install.servers import read_variables

    variables = [] if env_file is None else read_variables(env_file)
    for variable in variables:
        os.environ.setdefault(*variable.split("=", 1))
    return [*variables, *env]


def _check_no_file(*options: object) -> None:
    """Raise BadParameter for options about a file."""
    if any(options):
        raise typer.BadParameter("This is printed only. Leave out --write, --dry-run, --file and --workspace.")


def _add(
    client: ClientProfile,
    server: ServerDescription,
    path: Path,
    bundle: Bundle | None,
    *,
    write: bool,
    dry_run: bool,
) -> None:
    """Print the entry of a server or write it into a client's file, and say what its user should know."""
    from funcmcp_cli.install.entries import entry_for
    from funcmcp_cli.install.files import configuration_text
    from funcmcp_cli.install.servers import has_key

    entry = entry_for(client, server)
    if bundle is not None and write and not dry_run:
        _merged(client, server, entry, path)  # an invalid file is an error before the bundle is unpacked
        write_line(bundle.unpack())
    if write or dry_run:
        _write(client, server, entry, path, dry_run=dry_run)
    else:
        write_text(configuration_text(client, server.name, entry))
        write_line(f"Add it to {path}, or pass --write.", error=True)
    if server.url:
        if has_key(server.url):
            text = "The URL contains a key, which logs show. Pass --header 'x-functions-key: ${KEY}' instead."
            write_line(text, error=True)
        write_line(client.sign_in.replace("SERVER", server.name), error=True)
    if server.advice:
        write_line(server.advice, error=True)
    for user_input in entry.inputs:
        write_line(f"{client.title} asks for {user_input['id']} when it starts the server.", error=True)


def _server_at(  # noqa: PLR0913 - one for each option of the command
    target: str,
    name: str | None,
    arguments: list[str],
    env: list[str],
    headers: list[str],
    runner: str,
    *,
    packages: Packages,
) -> tuple[ServerDescription, Bundle | None]:
    """Return the server at a target, and the bundle that it is in. The bundle is None for other targets."""
    from funcmcp_cli.install.bundles import is_bundle, open_bundle, server_in
    from funcmcp_cli.install.servers import server_at

    if not is_bundle(target):
        description = server_at(
            target, name, arguments=arguments, env=env, headers=headers, runner=runner, packages=packages
        )
        return description, None
    if packages:
        raise Failure("A bundle has its own packages. Leave out --with and --with-requirements.")
    if arguments or headers:
        raise Failure("A bundle has its own command. Its settings are given with --env NAME=VALUE.")
    bundle = open_bundle(target)
    return server_in(bundle, name, env), bundle


def _print_text(name: str, client: ClientProfile | None, server: ServerDescription, *, link: bool) -> None:
    """Print a link that adds a server, the server's command, or its entry for goose."""
    from funcmcp_cli.install.entries import entry_for
    from funcmcp_cli.install.forms import command_text, goose_link, goose_text, link_for

    if client is not None:
        write_line(link_for(client, server, entry_for(client, server)))
        literals = ", ".join(name for name, value in server.env.items() if value != f"${{{name}}}")
        if literals:
            write_line(
                f"The link contains the values of {literals}. With --env NAME alone, the client asks for the value.",
                error=True,
            )
    elif name == "goose" and link:
        write_line(goose_link(server))
    elif name == "goose":
        write_text(goose_text(server))
        write_line("Add it to ~/.config/goose/config.yaml, or pass --link.", error=True)
    elif link:
        raise Failure("A command has no link. Leave out --link, or choose vscode, cursor, lm-studio or goose.")
    else:
        write_text(command_text(server))


def find_client(name: str) -> ClientProfile:
    """Return the client with a name; raise Failure with the closest name if there is none."""
    from difflib import get_close_matches

    if name == "mcp-json":
        return MCP_JSON
    if name in CLIENTS:
        return CLIENTS[name]
    if _is_server(name):
        raise Failure(f"The client is missing: funcmcp install claude-desktop {name}. Valid clients: {_NAMES}.")
    similar = _OTHER_NAMES.get(name.lower()) or next(iter(get_close_matches(name.lower(), CLIENTS, 1)), None)
    advice = "" if similar is None else f"Did you mean {similar}? "
    raise Failure(f"Unknown client {name!r}. {advice}Valid clients: {_NAMES}.")


def _file(client: ClientProfile, workspace: Path | None, file: Path | None) -> Path:
    """Return the configuration file."""
    import sys

    from funcmcp_cli.install.files import user_file

    if file is not None:
        if workspace is not None:
            raise typer.BadParameter("--file and --workspace can't be combined. Leave out one of them.")
        return file.absolute()
    if workspace is None:
        return user_file(client, sys.platform, os.environ, home_folder())
    if client.workspace_file is None:
        raise Failure(f"{client.title} reads no file in a project's folder. Leave out --workspace.")
    path = workspace.absolute() / client.workspace_file
    target = path.resolve()
    if not target.is_relative_to(workspace.resolve()):
        raise Failure(f"{path} is a link to {target}, outside of the folder. Pass --file to write there.")
    return path


def _write(client: ClientProfile, server: ServerDescription, entry: Entry, path: Path, *, dry_run: bool) -> None:
    from funcmcp_cli.install.files import difference, write

    before, after = _merged(client, server, entry, path)
    if after == before:
        write_line(f"{path} already has this entry. Nothing was changed.")
        return
    if dry_run:
        write_text(difference(path, before, after))
        return
    backup = write(path, before, after)
    write_line(f"Wrote {server.name} to {path}. {client.next_step}")
    if backup is not None:
        write_line(f"The previous file is {backup}.")


def _merged(client: ClientProfile, server: ServerDescription, entry: Entry, path: Path) -> tuple[str, str]:
    """Return the text of a client's file, and the text with the entry; raise Failure if it is not a configuration."""
    from funcmcp_cli.install.files import merged_text, read

    before = read(path)
    try:
        return before, merged_text(before, client, server.name, entry)
    except ValueError as error:
        raise Failure(
            f"{path} is not a configuration of {client.title}: {error}. The file is unchanged; correct it first."
        ) from error

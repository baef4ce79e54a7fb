"""What ``funcmcp run`` serves: the server of a Python file, another server over a bridge, or those of a client's file.

Worker processes get these objects pickled, and each makes its own server.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from funcmcp._upstreams.bridged import bridge_to
from funcmcp_cli.connect import Source, client_target, is_command, is_servers_file, open_source, user_sign_in
from funcmcp_cli.failure import Failure
from funcmcp_cli.other_targets import remark_about_functions
from funcmcp_cli.output import write_server_failure
from funcmcp_cli.program_options import program_of
from funcmcp_cli.server_options import Conflict, check_conflict
from funcmcp_cli.servers_in_file import ServersInFile
from funcmcp_cli.targets import find, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp import MCPServer
    from funcmcp_cli.program_options import ProgramOptions
    from funcmcp_cli.server_options import RunOptions


class Served(Protocol):
    """A server to serve."""

    @property
    def is_elsewhere(self) -> str:
        """Why options that need the server's code are not possible; "" if they are."""

    @property
    def needs_one_process(self) -> str:
        """Why several worker processes are not possible; "" if they are."""

    @property
    def root(self) -> Path | None:
        """The folder from which the code is imported; None if there is none."""

    def load(self) -> MCPServer:
        """Return the server; raise Failure if that is not possible."""


@dataclass(frozen=True, slots=True)
class ServerInFile:
    """The server in a Python file or module.

    Attributes:
        target: The file or module on the command line.
    """

    target: str
    is_elsewhere: str = ""
    needs_one_process: str = ""

    @property
    def root(self) -> Path:
        """The folder from which the module is imported."""
        return find(self.target).root

    @property
    def remark(self) -> str:
        """A sentence if the folder of the module has more to serve than its server, or ""."""
        try:
            return remark_about_functions(self.root)
        except Failure:  # the target does not exist, which `load` says
            return ""

    def load(self) -> MCPServer:
        """Import the module, and return its server."""
        return load(self.target)


@dataclass(frozen=True, slots=True)
class BridgedServer:
    """A server at a URL, or one that a command starts on stdio.

    Attributes:
        source: The URL or the command, with credentials.
    """

    source: Source
    root: None = None

    @property
    def is_elsewhere(self) -> str:
        """Why options that need the server's code are not possible."""
        return f"{self.name} is not a Python file"

    @property
    def needs_one_process(self) -> str:
        """Why a command is not started by several processes: each client's calls have to reach the same one."""
        return "each process would start the command for itself" if self.source.command else ""

    @property
    def name(self) -> str:
        """The URL, or the first words of the command: those that follow may be secrets."""
        return shlex.join(self.source.command[:2]) or self.source.name

    def load(self) -> MCPServer:
        """Return a server that passes everything on."""
        try:
            return bridge_to(client_target(self.source), self.name)
        except ValueError as error:
            raise Failure(str(error)) from error


def load_or_exit(served: Served) -> MCPServer:
    """Return a server. A worker process ends with a line on stderr if that fails."""
    try:
        return served.load()
    except Failure as failure:
        write_server_failure(failure)
        sys.exit(1)


def served_by(target: str, arguments: Sequence[str] | None, options: RunOptions, program: ProgramOptions) -> Served:
    """Return what the command line asks to serve.

    Args:
        target: The target, the URL, the command or the program of the command.
        arguments: What follows it.
        options: The options.
        program: How the command signs in at a URL as a program.

    Raises:
        typer.BadParameter: Arguments or options do not go together.
        Failure: An option for another server is not valid.
    """
    if options.config is not None:
        if target != "." or arguments:
            raise typer.BadParameter(
                f"--config names the servers: leave out {shlex.join([target, *(arguments or [])])}."
            )
        return _servers_in_file(options.config, options)
    if target.startswith(("http://", "https://")):
        if arguments:
            raise typer.BadParameter(f"A URL has no arguments: leave out {shlex.join(arguments)}.")
        source = open_source(
            target,
            headers=options.header or [],
            bearer=options.bearer,
            sign_in=options.sign_in,
            program=program_of(program),
        )
        return BridgedServer(source)
    check_conflict(program, Conflict.NO_URL)
    if is_servers_file(target):
        return _servers_in_file(target, options)
    check_conflict(options, Conflict.NO_URL)
    words = _words_of_command(target, arguments)
    if words:
        return BridgedServer(Source(shlex.join(words), None, command=words))
    return ServerInFile(target)


def _servers_in_file(file: str, options: RunOptions) -> ServersInFile:
    """Return the servers in a client's file; raise BadParameter if an option is for one URL."""
    if options.header:
        raise typer.BadParameter("--header is for one URL. Write headers into the file.")
    return ServersInFile(Path(file), user_sign_in() if options.sign_in else None)


def _words_of_command(target: str, arguments: Sequence[str] | None) -> tuple[str, ...]:
    """Return the words of a command: those after ``--``, if no target is before it, or those in quotes."""
    words = (target, *(arguments or ()))
    if "--" in sys.argv and tuple(sys.argv[sys.argv.index("--") + 1 :]) == words:
        return words
    return tuple(shlex.split(target)) if is_command(target) else ()

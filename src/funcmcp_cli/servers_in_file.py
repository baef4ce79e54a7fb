"""The servers in the configuration file of an MCP client, as one server: for ``run``, ``call`` and more."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from funcmcp._upstreams.bridged import server_of
from funcmcp._upstreams.servers_file import ServersFileError, read_servers
from funcmcp.client import StdioCommand
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_note

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp import MCPServer
    from funcmcp._upstreams.servers_file import ConfiguredServers
    from funcmcp.client import SignIn


@dataclass(frozen=True, slots=True)
class ServersInFile:
    """The servers in the configuration file of an MCP client.

    Attributes:
        file: The file.
        sign_in: How a user signs in at URLs without other credentials; None if the user does not.
        reported: Sentences about the file that were printed. Worker processes do not print them again.
    """

    file: Path
    sign_in: SignIn | None
    reported: list[str] = field(default_factory=list)
    root: None = None

    @property
    def is_elsewhere(self) -> str:
        """Why options that need the server's code are not possible."""
        return f"{self.file} is not a Python file"

    @property
    def needs_one_process(self) -> str:
        """Why a command is not started by several processes."""
        commands = [entry.name for entry in self.read().entries if isinstance(entry.target, StdioCommand)]
        return f"each process would start {', '.join(commands)} for itself" if commands else ""

    def read(self) -> ConfiguredServers:
        """Return the servers; raise Failure if there are none."""
        try:
            servers = read_servers(self.file, os.environ, self.sign_in)
        except ServersFileError as error:
            raise Failure(str(error)) from error
        if not servers.entries:
            raise Failure(" ".join([f"No server of {self.file} can be used.", *servers.problems, *servers.notes]))
        return servers

    def load(self) -> MCPServer:
        """Return a server with the features of all of them; print what there is to say about the file."""
        servers = self.read()
        for sentence in (*servers.problems, *servers.notes):
            if sentence not in self.reported:
                self.reported.append(sentence)
                write_note(sentence, error=True)
        return server_of(servers, self.file.stem)

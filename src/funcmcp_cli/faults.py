"""Features that no list can contain, because a type in their signature cannot be described in JSON Schema."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import typer

from funcmcp import RegistrationError
from funcmcp._protocol.revisions import NEWEST, REVISIONS
from funcmcp._server.handlers.lists import encoded_definition
from funcmcp._serving.composition import runtime_of
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
    from pathlib import Path

    from funcmcp import MCPServer
    from funcmcp._server.dispatch import Server


class Fault(NamedTuple):
    """A feature that cannot be described.

    Attributes:
        kind: The kind of feature, such as "tool".
        key: Its name or URI.
        reason: The error, with the line of the author's code.
    """

    kind: str
    key: str
    reason: str

    def __str__(self) -> str:
        """Return the line about the fault."""
        return f"The {self.kind} {self.key} is left out of the list. Correct it: {' '.join(self.reason.split())}"


def descriptions_of(server: Server) -> Iterator[tuple[str, bytes] | Fault]:
    """Yield for each feature the name of its list and its definition, or the fault if it has no valid definition."""
    for features in server.routes.lists.values():
        for feature in features.registry:
            try:
                definition = encoded_definition(features.registry, feature, features.shape, REVISIONS[NEWEST])
            except RegistrationError as error:
                features.left_out.count_as_written(feature.key)  # the log need not name it again
                yield Fault(features.registry.kind, feature.key, str(error))
            else:
                yield features.name, definition


def write_faults(faults: Iterable[Fault]) -> None:
    """Write a line on stderr for each feature that is left out."""
    for fault in faults:
        write_line(fault, error=True, colour="red")


def exit_with(faults: Sequence[Fault]) -> None:
    """Write a line on stderr for each feature that is left out, and exit with 1 if there is one."""
    write_faults(faults)
    if faults:
        raise typer.Exit(1)


def faults_of_folder(folder: Path) -> list[Fault]:
    """Return the features of the server in a folder that cannot be described; none if it cannot be imported."""
    from funcmcp_cli.targets import load  # noqa: PLC0415 - few commands import the code of a folder

    try:
        return list(faults_in(load(str(folder))))
    except Failure:
        return []


def faults_in(server: MCPServer) -> Iterator[Fault]:
    """Yield each feature that cannot be described."""
    for description in descriptions_of(runtime_of(server).server):
        if isinstance(description, Fault):
            yield description


async def faults_of(server: MCPServer) -> AsyncIterator[Fault]:
    """Yield each feature that cannot be described. Other tasks run between two features."""
    for description in descriptions_of(runtime_of(server).server):
        if isinstance(description, Fault):
            yield description
        await asyncio.sleep(0)

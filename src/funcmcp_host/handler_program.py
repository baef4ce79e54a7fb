"""The program of a custom handler: what host.json says about it, and how it is started.

Source: "Azure Functions custom handlers"; azure-functions-host, HttpWorkerOptions (InitializationTimeout),
HttpWorkerOptionsSetup and HttpWorkerProcess (the variables).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import sys
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.azure.settings import at
from funcmcp._server.log import quote
from funcmcp._text.files import is_file
from funcmcp_host.app_rules.table import breaches_of
from funcmcp_host.folder import FolderError, duration_in, worker_environment
from funcmcp_host.workers.child_process import Command, program_path, until_parent_ends

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from funcmcp_host.app_rules.model import App
    from funcmcp_host.folder import Folder

_REFUSED = {"handler-program", "handler-forwarding", "handler-triggers", "profile-names"}
"""The rules without which nothing would reach a program."""

_OF_FORWARDING = {"handler-function-files"}
"""A function whose function.json is not valid has no route. Where functions are called, it is left out."""

_PYTHON = {"python", "python3"}
_VARIABLE = re.compile("%([^%]+)%")
_PORT = re.compile("[0-9]{1,5}")
_MAX_PORT = 65535
_START_SECONDS = 30.0
_MAX_PROGRAM = 200
"""Characters of the program and its arguments in a message."""

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class HandlerProgram:
    """The program in the member ``customHandler`` of host.json.

    Attributes:
        arguments: The program and its arguments.
        folder: Where it runs.
        port: The port that it listens on; None for the one in FUNCTIONS_CUSTOMHANDLER_PORT.
        start_seconds: How long it may take until it listens (initializationTimeout).
    """

    arguments: Sequence[str]
    folder: Path
    port: int | None
    start_seconds: float = _START_SECONDS

    @property
    def name(self) -> str:
        """The program and its arguments, as in host.json, for a message."""
        return f"'{quote(' '.join(self.arguments), _MAX_PROGRAM)}'"

    def command(self, folder: Folder, port: int, address: str, *, python: str | None, node: str | None) -> Command:
        """Return how to start the program.

        Args:
            folder: The app.
            port: The port that the program shall listen on.
            address: The host and the port on which the app is served.
            python: What ``python`` is; by default the ``.venv`` of the app, or this interpreter.
            node: What ``node`` is; by default the one on the PATH.
        """
        worker_id = str(uuid.uuid4())
        variables = {
            **worker_environment(folder, address),
            "FUNCTIONS_CUSTOMHANDLER_PORT": str(port),
            "FUNCTIONS_HTTPWORKER_PORT": str(port),
            "FUNCTIONS_CUSTOMHANDLER_WORKER_ID": worker_id,
            "FUNCTIONS_HTTPWORKER_ID": worker_id,
            "FUNCTIONS_APP_ROOT_PATH": str(folder.path),
        }
        name, *arguments = (_VARIABLE.sub(lambda match: variables.get(match[1], ""), text) for text in self.arguments)
        file = folder.path / name
        if is_file(file):
            return Command(until_parent_ends([str(file), *arguments]), self.folder, variables)
        if name in _PYTHON:
            local = folder.path / ".venv" / "bin" / "python"
            name = python or (str(local) if local.exists() else sys.executable)
        elif name == "node" and node:
            name = node
        return Command(until_parent_ends([program_path(name), *arguments]), self.folder, variables)

    def start_failure(self, exit_code: int | None, port: int, seconds: float) -> str:
        """Return why the program does not listen.

        Args:
            exit_code: Its exit code; None if it runs.
            port: The port that it should listen on.
            seconds: The time that it had.
        """
        program = f"The custom handler {self.name}"
        if exit_code is not None:
            return (
                f"{program} ended before it listened on port {port} (exit code {exit_code}). Its output is in the log."
            )
        return (
            f"{program} does not listen on 127.0.0.1:{port} after {seconds:g} s. It is ended. Listen on the port in "
            "FUNCTIONS_CUSTOMHANDLER_PORT. If the program needs more time, set customHandler.initializationTimeout in "
            "host.json."
        )


def read_program(app: App, *, forwards: bool = True) -> HandlerProgram:
    """Return the program of a custom handler.

    Args:
        app: The app.
        forwards: Whether it gets HTTP requests as they are, and not invocations.

    Raises:
        FolderError: The app has none, it breaks a rule for custom handlers, or host.json has an invalid value.
    """
    handler = at(app.host, "customHandler")
    if handler is None:
        raise FolderError(f"{app.folder} has no customHandler in host.json. Add one, or name another folder.")
    description = at(handler, "description")
    worker_path = at(description, "defaultWorkerPath")
    arguments = [str(at(description, "defaultExecutablePath")), *_texts(at(description, "arguments"))]
    arguments += [str(worker_path)] if worker_path else []
    arguments += _texts(at(description, "workerArguments"))
    port = at(handler, "port")
    if port is not None and (not _PORT.fullmatch(str(port)) or int(port) > _MAX_PORT):
        text = f"{quote(repr(port))}, which is not the number of a port"
        raise FolderError(f"host.json: customHandler.port is {text}. Write one such as 8000.")
    start_seconds = _start_seconds(at(handler, "initializationTimeout"))
    refused = _REFUSED | _OF_FORWARDING if forwards else _REFUSED
    for breach in breaches_of(app):
        if breach.rule.name in refused:
            raise FolderError(f"{breach.subject} {breach.text}")
    folder = app.folder / str(at(description, "workingDirectory") or "")
    return HandlerProgram(arguments, folder, int(port) if port else None, start_seconds)


def _start_seconds(value: object) -> float:
    """Return the seconds of customHandler.initializationTimeout."""
    if value is None:
        return _START_SECONDS
    seconds = duration_in(str(value))
    if not seconds:
        raise FolderError(
            f"host.json: customHandler.initializationTimeout is {str(value)!r}. "
            'Write it as "00:02:00", for two minutes.'
        )
    return seconds


def _texts(values: Any) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else []


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def accepts(port: int) -> bool:
    """Return whether a program listens on a port of this machine."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def listens(port: int, ended: asyncio.Future[None], seconds: float) -> bool:
    """Wait until a port accepts connections; return whether it does before the process ends and the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not ended.done():
                if await accepts(port):
                    return not ended.done()
                await asyncio.sleep(_POLL_SECONDS)
    return False

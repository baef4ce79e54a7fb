"""Runs the command, and Python files, in forks of a process that has loaded the modules: in a sixth of the CPU time.

Each command also has tests that start the interpreter, see `tests.cli.processes`.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.processes import PYTHON, environment
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass
class _Server:
    """The process that forks, and the connection to it."""

    process: subprocess.Popen[bytes]
    connection: socket.socket

    def close(self) -> None:
        self.connection.close()
        self.process.wait(PATIENCE)


@functools.cache
def _server() -> _Server:
    connection, its_end = socket.socketpair()
    with its_end:
        process = subprocess.Popen(
            [PYTHON, str(Path(__file__).with_name("forking_server.py")), str(its_end.fileno())],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[its_end.fileno()],
        )
    connection.settimeout(PATIENCE)
    server = _Server(process, connection)
    atexit.register(server.close)
    return server


def funcmcp(
    *arguments: str, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    settings = {
        "arguments": [os.fsdecode(argument) for argument in arguments],
        "folder": str(folder or Path.cwd()),
        "environment": environment(env),
    }
    return _completed(settings)


def run_file(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python file in its folder to its end."""
    return _completed({"file": name, "arguments": [], "folder": str(folder), "environment": environment()})


def _completed(settings: Mapping[str, object]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as request, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        request.write(json.dumps(settings).encode())
        request.seek(0)
        code = _run([request.fileno(), stdout.fileno(), stderr.fileno()])
        stdout.seek(0)
        stderr.seek(0)
        output, errors = stdout.read().decode(), stderr.read().decode()
    return subprocess.CompletedProcess([PYTHON], code, output, errors)


def _run(files: list[int]) -> int:
    """Send the request to the server, and return the exit code of the fork."""
    connection = _server().connection
    socket.send_fds(connection, [b"+"], files)
    with connection.makefile() as answers:
        pid = int(answers.readline())
        try:
            return int(answers.readline())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            answers.readline()
            raise

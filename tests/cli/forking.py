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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tests.cli.processes import FUNCMCP, PYTHON, Running, environment, followed
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

UVICORN = (PYTHON, "-m", "uvicorn")


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


@contextmanager
def running(
    command: Sequence[str], *, folder: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Running]:
    """Run the command, or uvicorn, in the background, as `tests.cli.processes.running` does.

    Args:
        command: `FUNCMCP` or `UVICORN`, and its arguments.
        folder: The working folder of the process.
        env: Environment variables that it has beside those of this process.
    """
    program, arguments = tuple(command[:3]), command[3:]
    assert program in (FUNCMCP, UVICORN)
    settings = {
        **({"module": "uvicorn.main"} if program == UVICORN else {}),
        "arguments": [os.fsdecode(argument) for argument in arguments],
        "folder": str(folder or Path.cwd()),
        "environment": environment(env),
    }
    with _forked(settings) as process, followed(process) as started:
        yield started


@contextmanager
def running_module(name: str, *arguments: str, folder: Path, env: Mapping[str, str]) -> Iterator[Fork]:
    """Run the function ``main`` of a module in the background, and wait for its end at the end of the block.

    Args:
        name: The module.
        arguments: Those of the process.
        folder: Its working folder.
        env: All its environment variables.
    """
    settings = {"module": name, "arguments": arguments, "folder": str(folder), "environment": dict(env)}
    with _forked(settings) as process:
        yield process


@contextmanager
def _forked(settings: Mapping[str, object]) -> Iterator[Fork]:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as output:
        try:
            process = Fork.start(settings, writing, writing, output)
        finally:
            os.close(writing)
        try:
            yield process
        finally:
            process.wait(PATIENCE)
            process.close()


@dataclass
class Fork:
    """A fork that runs, with the methods of `subprocess.Popen` that tests call.

    Attributes:
        pid: The process id.
        stdout: The end of the pipe to which it writes, or None if it writes to a file.
        returncode: The exit code, or the negative number of the signal that ended it. None while it runs.
    """

    pid: int
    stdout: IO[str] | None
    answers: socket.socket
    returncode: int | None = None

    @classmethod
    def start(cls, settings: Mapping[str, object], stdout: int, stderr: int, output: IO[str] | None = None) -> Fork:
        """Start a fork that writes to two file descriptors."""
        answers, its_end = socket.socketpair()
        answers.settimeout(PATIENCE)
        with its_end, tempfile.TemporaryFile() as request:
            request.write(json.dumps(settings).encode())
            request.seek(0)
            socket.send_fds(_server().connection, [b"+"], [request.fileno(), stdout, stderr, its_end.fileno()])
        return cls(_line(answers), output, answers)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code when the process has ended.

        Raises:
            subprocess.TimeoutExpired: It has not ended after this number of seconds.
        """
        if self.returncode is None:
            self.answers.settimeout(timeout)
            try:
                self.returncode = _line(self.answers)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired([*FUNCMCP], timeout or 0) from None
        return self.returncode

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close the connection on which the exit code comes."""
        self.answers.close()


def _line(answers: socket.socket) -> int:
    """Return the number in the next line. One that has begun to come is complete: a line is one message of a socket."""
    line = b""
    while not line.endswith(b"\n"):
        byte = answers.recv(1)
        assert byte, "The process that waits for the fork has ended."
        line += byte
    return int(line)


def run_module(
    name: str, *arguments: str, folder: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run the function ``main`` of a module to its end, as ``python -m NAME`` does.

    Raises:
        subprocess.TimeoutExpired: It has not ended after this number of seconds.
    """
    settings = {"module": name, "arguments": arguments, "folder": str(folder), "environment": dict(env)}
    return _completed(settings, timeout)


def _completed(settings: Mapping[str, object], timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = Fork.start(settings, stdout.fileno(), stderr.fileno())
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
            process.close()
        stdout.seek(0)
        stderr.seek(0)
        output, errors = stdout.read().decode(), stderr.read().decode()
    return subprocess.CompletedProcess([PYTHON], code, output, errors)

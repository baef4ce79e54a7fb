"""The process of a worker: how it starts, what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from funcmcp._client.process_group import start_process
from funcmcp_host.workers.worker import LoadFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._client.process_group import GroupProcess
    from funcmcp_host.workers.worker import FunctionInfo, OpenCall

app_log = logging.getLogger("funcmcp.app")
"""Log records of the app and its worker."""

_EXIT_SECONDS = 2.0
_OUTPUT_SECONDS = 0.2
"""How long the last lines of a process that has ended may take."""

_ADVICE = {
    errno.ENOENT: " Correct its path, or build or install it.",
    errno.EACCES: " Make its file executable.",
    errno.ENOEXEC: " Build it for this system.",
}
"""By the reason why a program can't be started, what to do."""

_MAX_LINE = 8192
_CHUNK = 65536

# Programs that are not Python can't call prctl, so Python does before it becomes the program.
_UNTIL_PARENT_ENDS = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    advice = "Build it for this system, or name its interpreter in its first line, after #!."
    sys.exit(f"{sys.argv[1]} can't be started: {error.strerror}. {advice}")
"""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start a worker's program.

    Attributes:
        arguments: The program and its arguments. The worker class appends those of its protocol.
        folder: The app's folder, where the program runs.
        environment: All environment variables of the program.
        start_seconds: The time that loading the app may take.
    """

    arguments: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    start_seconds: float = 60.0


def program_path(name: str) -> str:
    """Return the absolute path of a program on the PATH or in a folder, or the name itself if there is none."""
    path = shutil.which(name)
    if path is None:
        return name
    return str(Path(path).absolute())


def until_parent_ends(arguments: Sequence[str]) -> list[str]:
    """Return a command that runs a program which, on Linux, is killed when the thread that started it ends."""
    if sys.platform == "linux" and os.access(arguments[0], os.X_OK):
        return [sys.executable, "-I", "-S", "-c", _UNTIL_PARENT_ENDS, *arguments]
    return list(arguments)


class ChildProcess:
    """A process in a process group of its own. What it writes to stdout and stderr goes to the log.

    Args:
        command: Starts the program.
    """

    def __init__(self, command: Command) -> None:
        self._command = command
        self._process: GroupProcess | None = None
        self._output: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None before the start."""
        if self._process is None:
            return None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, or the negative number of the signal that ended it; None while it runs."""
        if self._process is None:
            return None
        return self._process.returncode

    @property
    def has_ended(self) -> bool:
        """Whether a started process has ended. Where the system can tell, the event loop need not have seen it."""
        if self.pid is None:
            return False
        if sys.platform == "win32" or not hasattr(os, "waitid"):  # macOS has it since Python 3.13
            return self.exit_code is not None
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # another part of this process has waited for it
            return True

    async def start(self, arguments: Sequence[str], *, pass_fds: Sequence[int] = ()) -> None:
        """Start the process.

        Args:
            arguments: Arguments after those of the command.
            pass_fds: File descriptors that the process inherits.

        Raises:
            LoadFailed: The program can't be started.
        """
        try:
            self._process = await start_process(
                [*self._command.arguments, *arguments],
                cwd=self._command.folder,
                env=dict(self._command.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=pass_fds,
            )
        except OSError as error:
            advice = _ADVICE.get(error.errno or 0, "")
            raise LoadFailed(f"{self._command.arguments[0]} can't be started: {error.strerror}.{advice}") from error
        if self._process.stdout is not None:
            self._output = asyncio.create_task(_log_output(self._process.stdout))

    async def wait(self) -> None:
        """Wait for the end of the process."""
        if self._process is not None:
            await self._process.ended.wait()

    async def aclose(self, wait_seconds: float = _EXIT_SECONDS) -> None:
        """End the process and its process group.

        Args:
            wait_seconds: How long the process may take to end by itself, before SIGTERM. SIGKILL follows after 2 s.
        """
        if self._process is None:
            return
        if not await self._process.ends_within(wait_seconds):
            await self._process.terminate()
            await self._process.ended.wait()
        if self._output is not None:
            # A process that the app has started can keep the pipe open.
            await asyncio.wait({self._output}, timeout=_OUTPUT_SECONDS)
            self._output.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._output
        self._process.close()


async def _log_output(stream: asyncio.StreamReader) -> None:
    """Write what a process prints to the log, line by line; a very long line comes in pieces."""
    line = b""
    while chunk := await stream.read(_CHUNK):
        *lines, line = (line + chunk).split(b"\n")
        for text in lines:
            _log_line(text)
        while len(line) > _MAX_LINE:
            _log_line(line[:_MAX_LINE])
            line = line[_MAX_LINE:]
    _log_line(line)


def _log_line(line: bytes) -> None:
    text = line.decode("utf-8", "replace").rstrip()
    if text:
        app_log.info("%s", printable(text))


def printable(text: str) -> str:
    """Return a text of the app without control characters, with which it could forge lines of the log."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


class Connection(Protocol):
    """The connection to a worker's process."""

    @property
    def calls(self) -> Mapping[Any, OpenCall]:
        """The calls that wait for their answers."""

    @property
    def closed(self) -> asyncio.Future[None]:
        """Done when the connection can't carry calls any more."""


C = TypeVar("C", bound=Connection)


class ChildWorker(Generic[C]):
    """A worker in a process of its own. Subclasses speak its protocol, and set the connection when they start it.

    Args:
        command: Starts the program.

    Attributes:
        functions: The app's functions.
        http_url: Where the worker serves HTTP itself; None where requests are sent with the invocation.
        description: The language, its version and what runs the functions, for people.
    """

    def __init__(self, command: Command) -> None:
        self._child = ChildProcess(command)
        self._start_seconds = command.start_seconds
        self._connection: C | None = None
        self.functions: list[FunctionInfo] = []
        self.http_url: str | None = None
        self.description = ""

    @property
    def pid(self) -> int | None:
        """The process id; None before the start."""
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, or the negative number of the signal that ended it; None while it runs."""
        return self._child.exit_code

    @property
    def ended(self) -> asyncio.Future[None]:
        """Done when the connection is closed or the process has ended."""
        if self._connection is None:
            raise RuntimeError("The worker was not started.")
        return self._connection.closed

    async def idle(self) -> None:
        """Wait until no call is open, or the worker has ended."""
        connection = self._connection
        while connection is not None and connection.calls and not connection.closed.done():
            waiting: list[asyncio.Future[Any]] = [call.future for call in connection.calls.values()]
            await asyncio.wait([*waiting, connection.closed], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # the callers take their answers

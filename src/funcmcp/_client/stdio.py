"""A server on the stdin and stdout of a process that the client starts.

How it works: one task reads stdout line by line, and `SharedStream` takes the messages. A failure (the process ends, a
message is broken, a callback raises) fails every request that waits. After the process has ended, each further request
fails at once. A line that is not meant as a message is ignored, with a warning in the log: many servers print a banner.

Source: "basic/transports, stdio" of every revision, with the order of shutdown: close stdin, wait, terminate, kill.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE
from codecs import BOM_UTF8
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp._client.errors import ConnectionFailedError, one_line
from funcmcp._client.messages import MESSAGES_AT_ONCE, encode_message, parse_message
from funcmcp._client.orphans import orphan_guard
from funcmcp._client.process_group import KILL_SECONDS, start_process
from funcmcp._client.shared_stream import SharedStream
from funcmcp._client.targets import MEBIBYTE
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import InvalidResponseError
from funcmcp._state.line_limit import LineLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._client.process_group import GroupProcess
    from funcmcp._client.targets import StdioCommand
    from funcmcp._client.transport import Message, Receive

_MAX_LINE_BYTES = 64 * MEBIBYTE
_STDERR_BYTES = 65536
_MAX_STDERR_LINE = 2000
"""Bytes of a line of stderr that are passed on."""

_STDERR_SECONDS = 1.0
"""Seconds for which the end of stderr is awaited after the process has ended: a process that it left may hold it."""

_POSIX_VARIABLES = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
_WINDOWS_VARIABLES = (
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
)


class StdioTransport:
    """A transport over a process's stdin and stdout.

    Args:
        command: The command that starts the server.
        on_stderr: Receives each line that the process writes on stderr, without its end and shortened. None: stderr is
            that of the command.
        on_end: Is called with the reason when the process ends, or closes its stdout, before the transport is closed.
    """

    is_http = False
    session_id: str | None = None

    def __init__(
        self,
        command: StdioCommand,
        *,
        on_stderr: Callable[[str], None] | None = None,
        on_end: Callable[[str], None] | None = None,
    ) -> None:
        self._command = command
        self._on_stderr = on_stderr if command.stderr is None else None
        self._on_end = on_end
        self._reading_stderr: asyncio.Task[None] | None = None
        self._process: GroupProcess | None = None
        self._stdin: asyncio.StreamWriter | None = None
        self._stream = SharedStream(_ignore)
        self._reading: asyncio.Task[None] | None = None
        self._ended: ConnectionFailedError | None = None
        self._stray = ""  # a sentence about the first line that was not a message
        self._stray_lines = LineLimit()
        self._last_stderr = ""

    async def connect(self, receive: Receive) -> None:
        """Start the process."""
        self._stream = SharedStream(receive)
        self._ended = None
        self._stray = self._last_stderr = ""
        command = self._command
        try:
            process = await start_process(
                command.command,
                max_line_bytes=_MAX_LINE_BYTES,
                stdin=PIPE,
                stdout=PIPE,
                stderr=command.stderr if self._on_stderr is None else PIPE,
                env=default_environment() | command.env,
                cwd=command.cwd,
            )
        except OSError as error:
            raise ConnectionFailedError(_start_error(command, error), was_sent=False) from error
        orphan_guard.add(process.pid)
        self._process, self._stdin = process, process.stdin
        if process.stderr is not None and self._on_stderr is not None:
            self._reading_stderr = asyncio.create_task(
                _read_lines(process.stderr, partial(self._write_stderr, self._on_stderr))
            )
        if process.stdout is not None:
            self._reading = asyncio.create_task(self._read(process, process.stdout))

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Write a request and wait for its response; see `Transport.request`."""
        if message["method"] != "initialize":
            return await self._stream.response_to(message, self.send(message, headers))
        seconds = self._command.start_seconds
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                return await self._stream.response_to(message, self.send(message, headers))
        except TimeoutError:
            if not scope.expired():
                raise
            text = f"{self._name} did not answer within {seconds_text(seconds)}.{self._stray}"
            raise ConnectionFailedError(text) from None

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Write a message as one line; see `Transport.send`."""
        del headers  # stdio has none
        if self._ended is not None:
            raise ConnectionFailedError(str(self._ended), was_sent=False)
        if self._stdin is None:
            raise ConnectionFailedError(f"{self._name} is not running.", was_sent=False)
        line = encode_message(message) + b"\n"
        try:
            self._stdin.write(line)
            await self._stdin.drain()
        except (BrokenPipeError, ConnectionResetError, RuntimeError):  # the last one is of uvloop, for a closed pipe
            await self._wait_for_reader()
            raise self._ended or ConnectionFailedError(f"{self._name} has closed its stdin.") from None

    async def aclose(self) -> None:
        """Close the process's stdin, and end the process if it does not end by itself."""
        self._stream.cancel_answers()
        process = self._process
        self._process = None
        if process is None:
            return
        try:
            await self._stop(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.ended.wait()
            orphan_guard.remove(process.pid)
            process.close()
            if self._reading is not None:
                self._reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._reading
            if self._reading_stderr is not None:  # it ends with the pipe, and passes on what is still in it
                await asyncio.wait({self._reading_stderr})

    async def _stop(self, process: GroupProcess) -> None:
        if self._stdin is not None:
            self._stdin.close()
            self._stdin = None
        if not await process.ends_within(self._command.stop_seconds) or process.has_left_others:
            await process.terminate()

    async def _read(self, process: GroupProcess, stdout: asyncio.StreamReader) -> None:
        """Read stdout to its end, then fail the requests that wait."""
        before = BOM_UTF8  # some servers write one at the beginning
        for number in count(1):
            if number % MESSAGES_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                line = (await stdout.readline()).removeprefix(before)
            except ValueError:
                self._stream.fail(
                    InvalidResponseError(f"{self._name} wrote a line of more than {_MAX_LINE_BYTES} bytes.")
                )
                continue
            if not line:
                break
            before = b""
            if line.strip():
                await self._take(line)
        if await process.ends_within(KILL_SECONDS):
            text = f"{self._name} ended with exit code {process.returncode}."
            if self._reading_stderr is not None:
                await asyncio.wait({self._reading_stderr}, timeout=_STDERR_SECONDS)
            if self._last_stderr:
                text += f" Its stderr is in the log at level INFO, and ends with: {one_line(self._last_stderr)}"
            self._ended = ConnectionFailedError(text + self._stray)
        else:
            self._ended = ConnectionFailedError(f"{self._name} has closed its stdout.")
        if self._process is process and self._on_end is not None:
            self._on_end(str(self._ended))
        self._stream.fail(self._ended)

    def _write_stderr(self, write: Callable[[str], None], line: str) -> None:
        """Pass on a line of stderr, and remember it for the error if the process ends."""
        self._last_stderr = line if line.strip() else self._last_stderr
        write(line)

    async def _take(self, line: bytes) -> None:
        message = parse_message(line)
        if message is not None:
            await self._stream.take(message)
            return
        text = f"wrote a line on stdout that is not an MCP message: {one_line(line.decode('utf-8', 'replace'))}"
        if b'"jsonrpc"' in line:  # a broken message, perhaps an answer
            self._stream.fail(InvalidResponseError(f"{self._name} {text}"))
            return
        self._stray = self._stray or f" It {text}"
        self._stray_lines.write("%s %s", self._name, text)

    async def _wait_for_reader(self) -> None:
        """Wait until the reader knows how the process ended."""
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=KILL_SECONDS)

    @property
    def _name(self) -> str:
        """The program and its first argument, which are shown in errors. Later arguments may be secrets."""
        return one_line(" ".join(Path(part).name for part in self._command.command[:2]), 80)


def _start_error(command: StdioCommand, error: OSError) -> str:
    """Return why a command cannot be started, and what to do."""
    program = command.command[0]
    text = f"{program} cannot be started: {error.strerror}."
    if not isinstance(error, FileNotFoundError):
        return text
    if command.cwd is not None and not Path(command.cwd).is_dir():
        return f"{program} cannot be started: its folder {command.cwd} does not exist."
    if len(command.command) == 1 and len(program.split()) > 1:
        return f"{text} Pass each argument as a string of its own."
    return f"{text} Install it, or pass its whole path if it is not on the PATH."


async def _read_lines(stream: asyncio.StreamReader, write: Callable[[str], None]) -> None:
    """Pass on each line of a stream. It is read without a pause, so that a full pipe does not block the process."""
    line = b""
    while part := await stream.read(_STDERR_BYTES):
        *ends, rest = part.split(b"\n")
        for end in ends:
            write((line + end)[:_MAX_STDERR_LINE].decode("utf-8", "replace").rstrip("\r"))
            line = b""
        line = (line + rest)[:_MAX_STDERR_LINE]
    if line:
        write(line.decode("utf-8", "replace"))


async def _ignore(_message: Message) -> None:
    """Handle no message."""


def default_environment() -> dict[str, str]:
    """Return the variables of this process that a server needs to start, without those that may hold secrets."""
    names = _WINDOWS_VARIABLES if sys.platform == "win32" else _POSIX_VARIABLES
    return {name: os.environ[name] for name in names if name in os.environ}

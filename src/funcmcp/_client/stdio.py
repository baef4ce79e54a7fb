"""A server on the stdin and stdout of a process that the client starts.

How it works: one task reads stdout line by line. It passes a response to the future of its request, handles a
notification at once, and answers a request of the server in a task of its own, so that reading goes on. A failure (the
process ends, a line is not a message, a callback raises) fails every request that waits. After the process has ended,
each further request fails at once.

The command may be a wrapper, such as ``uvx`` or a shell, with the server as its child. On POSIX the process therefore
starts a session and a process group of its own, and signals go to the group. A process of the group that remains may
hold stdout open, so the end of the process also ends the reading, after a short time for what is still in the pipe.

Source: "basic/transports, stdio" of every revision, with the order of shutdown: close stdin, wait, terminate, kill.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from codecs import BOM_UTF8
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from funcmcp._client.errors import ConnectionFailedError, one_line
from funcmcp._client.messages import encode_message, is_response, is_response_to, parse_message
from funcmcp._client.targets import MEBIBYTE
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import InvalidResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._client.targets import StdioCommand
    from funcmcp._client.transport import Message, Receive

_MAX_LINE_BYTES = 64 * MEBIBYTE
_KILL_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""

_POLL_SECONDS = 0.02
"""Seconds between two looks at a process group that has to end."""

_REMAINING_SECONDS = 0.5
"""Seconds for output that is still in the pipe when the process has ended."""

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
    """

    is_http = False
    session_id: str | None = None

    def __init__(self, command: StdioCommand) -> None:
        self._command = command
        self._process: _ServerProcess | None = None
        self._stdin: asyncio.StreamWriter | None = None
        self._receive: Receive = _ignore
        self._reading: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._waiting: dict[Any, asyncio.Future[Message]] = {}
        self._ended: ConnectionFailedError | None = None

    async def connect(self, receive: Receive) -> None:
        """Start the process."""
        self._receive = receive
        self._ended = None
        command = self._command
        try:
            process = await _start(command)
        except OSError as error:
            raise ConnectionFailedError(f"{command.command[0]} cannot be started: {error.strerror}.") from error
        self._process, self._stdin = process, process.stdin
        if process.stdout is not None:
            self._reading = asyncio.create_task(self._read(process, process.stdout))

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Write a request and wait for its response; see `Transport.request`."""
        if message["method"] != "initialize":
            return await self._response_to(message, headers)
        seconds = self._command.start_seconds
        scope = asyncio.timeout(seconds)
        try:
            async with scope:
                return await self._response_to(message, headers)
        except TimeoutError:
            if not scope.expired():
                raise
            raise ConnectionFailedError(f"{self._name} did not answer within {seconds_text(seconds)}.") from None

    async def _response_to(self, message: Message, headers: Mapping[str, str]) -> Message:
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[message["id"]] = future
        try:
            await self.send(message, headers)
            return await future
        finally:
            del self._waiting[message["id"]]
            if future.done() and not future.cancelled():
                future.exception()  # retrieved: `send` may have raised first

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Write a message as one line; see `Transport.send`."""
        del headers  # stdio has none
        if self._ended is not None:
            raise self._ended
        if self._stdin is None:
            raise ConnectionFailedError(f"{self._name} is not running.")
        try:
            self._stdin.write(encode_message(message) + b"\n")
            await self._stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            await self._wait_for_reader()
            raise self._ended or ConnectionFailedError(f"{self._name} has closed its stdin.") from None

    async def aclose(self) -> None:
        """Close the process's stdin, and end the process if it does not end by itself."""
        for task in self._answering:
            task.cancel()
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
            process.close()
            if self._reading is not None:
                self._reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._reading

    async def _stop(self, process: _ServerProcess) -> None:
        if self._stdin is not None:
            self._stdin.close()
            self._stdin = None
        if not await process.ends_within(self._command.stop_seconds):
            await process.terminate()

    async def _read(self, process: _ServerProcess, stdout: asyncio.StreamReader) -> None:
        """Read stdout to its end, then fail the requests that wait."""
        before = BOM_UTF8  # some servers write one at the beginning
        while True:
            try:
                line = (await stdout.readline()).removeprefix(before)
            except ValueError:
                self._fail(InvalidResponseError(f"{self._name} wrote a line of more than {_MAX_LINE_BYTES} bytes."))
                continue
            if not line:
                break
            before = b""
            if line.strip():
                await self._take(line)
        if await process.ends_within(_KILL_SECONDS):
            self._ended = ConnectionFailedError(f"{self._name} ended with exit code {process.returncode}.")
        else:
            self._ended = ConnectionFailedError(f"{self._name} has closed its stdout.")
        self._fail(self._ended)

    async def _take(self, line: bytes) -> None:
        message = parse_message(line)
        if message is None:
            text = one_line(line.decode("utf-8", "replace"))
            self._fail(InvalidResponseError(f"{self._name} wrote a line on stdout that is not an MCP message: {text}"))
        elif is_response(message):
            self._settle(message)
        elif "id" in message:
            answering = asyncio.create_task(self._handle(message))
            self._answering.add(answering)
            answering.add_done_callback(self._answering.discard)
        else:
            await self._handle(message)

    async def _handle(self, message: Message) -> None:
        """Pass a message on. What the client's callback raises fails the requests that wait."""
        try:
            await self._receive(message)
        except Exception as error:  # noqa: BLE001 - the caller of the request is the one to see it
            self._fail(error)

    def _settle(self, response: Message) -> None:
        """Give a response to the request with its id. An error without an id can only be for the single one."""
        for request_id, future in self._waiting.items():
            is_single = len(self._waiting) == 1
            if is_response_to(response, request_id) and (is_single or response.get("id") is not None):
                if not future.done():
                    future.set_result(response)
                return

    def _fail(self, error: Exception) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)

    async def _wait_for_reader(self) -> None:
        """Wait until the reader knows how the process ended."""
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=_KILL_SECONDS)

    @property
    def _name(self) -> str:
        """The program and its first argument, which are shown in errors. Later arguments may be secrets."""
        return one_line(" ".join(Path(part).name for part in self._command.command[:2]), 80)


async def _ignore(_message: Message) -> None:
    """Handle no message."""


def default_environment() -> dict[str, str]:
    """Return the variables of this process that a server needs to start, without those that may hold secrets."""
    names = _WINDOWS_VARIABLES if sys.platform == "win32" else _POSIX_VARIABLES
    return {name: os.environ[name] for name in names if name in os.environ}


class _ServerProcess(SubprocessStreamProtocol):
    """The process of a server, with its pipes.

    `asyncio.subprocess.Process.wait` is of no use here: it also waits until each pipe is closed.

    Attributes:
        ended: Is set when the process has ended, even if another one still holds its pipes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_MAX_LINE_BYTES, loop=loop)
        self.ended = asyncio.Event()
        self._event_loop = loop
        self._pipes: asyncio.SubprocessTransport

    @property
    def returncode(self) -> int | None:
        """The exit code. None while the process runs."""
        return self._pipes.get_returncode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, which also sends signals."""
        self._pipes = cast("asyncio.SubprocessTransport", transport)
        super().connection_made(transport)

    def process_exited(self) -> None:
        """Close the pipes a little later, which ends the reading."""
        super().process_exited()
        self.ended.set()
        self._event_loop.call_later(_REMAINING_SECONDS, self.close)

    def close(self) -> None:
        """Close this side of the pipes."""
        self._pipes.close()

    async def ends_within(self, seconds: float) -> bool:
        """Return whether the process ends in a number of seconds."""
        try:
            await asyncio.wait_for(self.ended.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def terminate(self) -> None:
        """Terminate the process and its group, and kill what remains of them."""
        self._send(signal.SIGTERM)
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                await self.ended.wait()
                while sys.platform != "win32" and self._send(0):  # noqa: ASYNC110 - 0 only asks whether the group exists
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the process and its group."""
        self._send(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    def _send(self, number: int) -> bool:
        """Send a signal to the group of the process; on Windows to the process. Return whether it may still exist."""
        try:
            if sys.platform == "win32":
                self._pipes.send_signal(number)
            else:
                os.killpg(self._pipes.get_pid(), number)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS raises it for a process that has ended, until its parent has waited for it
            return True
        return True


async def _start(command: StdioCommand) -> _ServerProcess:
    """Start a process, on POSIX as the first of a session of its own."""
    loop = asyncio.get_running_loop()
    _transport, process = await loop.subprocess_exec(
        lambda: _ServerProcess(loop),
        *command.command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=command.stderr,
        env=default_environment() | command.env,
        cwd=command.cwd,
        start_new_session=True,  # Windows has none, and ignores it
    )
    return process

"""A worker in a process of its own, which talks to the host in frames over an inherited socket.

How it works. `start` makes a socket pair and starts the program with one end of it. The program loads the app and sends
``ready`` (or ``failed``). From then on each call is an ``invoke`` frame with a number; the worker answers ``begun``
when the call starts and ``done`` or ``error`` when it ends. What the process writes to stdout and stderr is log, never
protocol. The process ends when the socket closes, and on Linux also when the thread that started it dies.

When the connection breaks, every open call fails with `WorkerGone`, which says whether the call had begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from funcmcp_host.workers.child_process import ChildWorker, app_log, printable
from funcmcp_host.workers.frames import FrameError, FrameReader, encode_frame
from funcmcp_host.workers.worker import (
    NULL,
    FunctionFailed,
    FunctionInfo,
    LoadFailed,
    OpenCall,
    Outcome,
    Value,
    WorkerGone,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from funcmcp_host.workers.child_process import Command
    from funcmcp_host.workers.frames import Frame
    from funcmcp_host.workers.worker import Invocation

_READ_BYTES = 64 * 1024


class ProcessWorker(ChildWorker["_Link"]):
    """A worker that runs a program.

    Args:
        command: Starts the program.
    """

    def __init__(self, command: Command) -> None:
        super().__init__(command)
        self._numbers = itertools.count(1)

    async def start(self) -> None:
        """Start the process and load the app.

        Raises:
            LoadFailed: The program can't be started, the app can't be loaded, or that took too long.
        """
        if sys.platform == "win32":
            raise LoadFailed("On Windows a worker can't inherit a socket. Run the functions host in WSL.")
        loop = asyncio.get_running_loop()
        parent_socket, child_socket = socket.socketpair()
        parent_socket.setblocking(False)
        with child_socket:
            try:
                await self._child.start([str(child_socket.fileno())], pass_fds=[child_socket.fileno()])
            except BaseException:
                parent_socket.close()
                raise
        try:
            _, self._connection = await loop.create_connection(partial(_Link, parent_socket), sock=parent_socket)
            async with asyncio.timeout(self._start_seconds):
                header = await self._connection.loaded
        except (WorkerGone, TimeoutError) as error:
            reason = "ended" if isinstance(error, WorkerGone) else "did not answer"
            await self.aclose()
            text = f"The worker {reason} before the app was loaded (exit code {self.exit_code})."
            raise LoadFailed(text) from error
        except BaseException:
            await self.aclose()
            raise
        self.functions = [
            FunctionInfo(row["name"], tuple(row["bindings"]), row["error"]) for row in header["functions"]
        ]
        self.http_url = header.get("http")
        self.description = str(header.get("runtime", ""))

    async def invoke(
        self, invocation: Invocation, seconds: float | None, overdue: Callable[[], Awaitable[None]] | None = None
    ) -> Outcome:
        """Call a function; see `SingleWorker`."""
        link = self._connection
        if link is None or link.transport is None:
            raise WorkerGone(begun=False)
        number = next(self._numbers)
        call = link.calls[number] = OpenCall(invocation.function)
        try:
            link.write(*_invoke_frame(number, invocation))
            return await call.outcome(seconds, overdue)
        except (TimeoutError, asyncio.CancelledError):
            link.write({"m": "cancel", "id": number}, [])
            raise
        finally:
            del link.calls[number]

    async def ping(self, seconds: float) -> bool:
        """Return whether the worker's event loop answers in this time."""
        link = self._connection
        if link is None or link.closed.done():
            return False
        link.pong = asyncio.get_running_loop().create_future()
        link.write({"m": "ping"}, [])
        try:
            async with asyncio.timeout(seconds):
                await link.pong
        except TimeoutError:
            return False
        return True

    async def aclose(self) -> None:
        """End the process: close the socket, then SIGTERM, then SIGKILL for all of its process group."""
        if self._connection is not None:
            self._connection.close()
        await self._child.aclose()


class _Link(asyncio.Protocol):
    """The host's end of the socket.

    Args:
        connected: The socket, which its transport reads.
    """

    def __init__(self, connected: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._socket = connected
        self.transport: asyncio.Transport | None = None
        self.calls: dict[int, OpenCall] = {}
        self.loaded: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.pong: asyncio.Future[None] | None = None
        self._reader = FrameReader()
        self._receivers: dict[str, Callable[[Frame], None]] = {
            "begun": self._on_begun,
            "done": self._on_done,
            "error": self._on_error,
            "failed": self._on_failed,
            "log": self._on_log,
            "pong": self._on_pong,
            "ready": self._on_ready,
        }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Act on the frames that are complete; drop a worker that sends something else."""
        try:
            for frame in self._reader.feed(data):
                self._receivers[frame.header["m"]](frame)
        except (FrameError, LookupError, TypeError, ValueError) as error:
            app_log.error("The worker sent something that is not a message (%s). It is stopped.", error)
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail everything that waits."""
        if exc is not None:
            self._read_rest()
        self.transport = None
        if not self.closed.done():
            self.closed.set_result(None)
        if not self.loaded.done():
            self.loaded.set_exception(WorkerGone(begun=False))
            self.loaded.exception()  # nobody may wait for it any more
        for call in self.calls.values():
            if not call.future.done():
                call.future.set_exception(WorkerGone(begun=call.begun))

    def _read_rest(self) -> None:
        """Read what a worker has sent before its end, which says which calls have begun.

        A transport reads nothing more once the host has written to a worker that has ended.
        """
        with contextlib.suppress(OSError):  # nothing is there, or the socket is closed
            while data := self._socket.recv(_READ_BYTES):
                self.data_received(data)

    def write(self, header: dict[str, Any], parts: list[bytes]) -> None:
        """Send a frame unless the connection is closed. A worker that does not read gets it later, or never.

        There is nothing to wait for: a caller waits for the answer to its call, and has one call.
        """
        if self.transport is not None:
            self.transport.write(encode_frame(header, parts))

    def close(self) -> None:
        """Close the connection."""
        if self.transport is not None:
            self.transport.abort()

    def _on_ready(self, frame: Frame) -> None:
        if not self.loaded.done():
            self.loaded.set_result(frame.header)

    def _on_failed(self, frame: Frame) -> None:
        if not self.loaded.done():
            self.loaded.set_exception(LoadFailed(str(frame.header["error"])))

    def _on_begun(self, frame: Frame) -> None:
        call = self.calls.get(frame.header["id"])
        if call is not None:
            call.begun = True

    def _on_done(self, frame: Frame) -> None:
        header, parts = frame
        call = self.calls.get(header["id"])
        if call is None or call.future.done():
            return
        outputs = {name: value_of(value, parts) for name, value in header.get("outputs", {}).items()}
        call.future.set_result(Outcome(value_of(header["value"], parts), outputs))

    def _on_error(self, frame: Frame) -> None:
        call = self.calls.get(frame.header["id"])
        if call is not None and not call.future.done():
            call.future.set_exception(FunctionFailed(str(frame.header["error"]), str(frame.header.get("trace", ""))))

    def _on_pong(self, frame: Frame) -> None:  # noqa: ARG002 - the receivers' signature
        if self.pong is not None and not self.pong.done():
            self.pong.set_result(None)

    def _on_log(self, frame: Frame) -> None:
        header = frame.header
        level = int(header["level"])
        if app_log.isEnabledFor(level):
            extra = {"function": header.get("function", ""), "invocation": header.get("invocation", "")}
            app_log.log(level, "%s", printable(str(header["text"])), extra=extra)


def value_of(packed: dict[str, Any], parts: Sequence[bytes]) -> Value:
    """Return a value of a frame; raise LookupError or ValueError if the frame does not have it."""
    kind = packed["t"]
    if kind == "null":
        return NULL
    if kind == "http":
        return Value(kind, {**packed["v"], "body": parts[packed["p"]]})
    if "p" not in packed:
        return Value(kind, packed["v"])
    part = parts[packed["p"]]
    return Value(kind, part if kind == "bytes" else part.decode())


def _invoke_frame(number: int, invocation: Invocation) -> tuple[dict[str, Any], list[bytes]]:
    parts: list[bytes] = []
    places: dict[int, int] = {}
    header = {
        "m": "invoke",
        "id": number,
        "f": invocation.function,
        "inputs": {name: _packed(value, parts, places) for name, value in invocation.inputs.items()},
        "meta": {name: _packed(value, parts, places) for name, value in invocation.metadata.items()},
    }
    if invocation.trace_parent:
        header["trace"] = invocation.trace_parent
    if invocation.id:
        header["iid"] = invocation.id
    return header, parts


def _packed(value: Value, parts: list[bytes], places: dict[int, int]) -> dict[str, Any]:
    """Return a value as a frame's header has it; a text that several values share is sent once."""
    kind, content = value
    if kind == "null":
        return {"t": kind}
    if kind in {"int", "double"}:
        return {"t": kind, "v": content}
    if kind == "http":
        parts.append(content["body"])
        return {"t": kind, "v": {**content, "body": None}, "p": len(parts) - 1}
    place = places.get(id(content))
    if place is None:
        parts.append(content if kind == "bytes" else content.encode())
        place = places[id(content)] = len(parts) - 1
    return {"t": kind, "p": place}

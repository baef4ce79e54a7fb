"""Runs ASGI servers on which a client listens, and ends them with a signal or by a change of their code."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.adapters.asgi.test_application_servers import wait_for
from tests.patience import PATIENCE
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_CALL_SECONDS = 1.0
"""Seconds for which the call runs whose stream is open."""

_REFUSAL = re.compile(rb"HTTP/1\.1 [45]")

FUNCMCP = """
import asyncio
import contextlib
import os

from funcmcp import HTTPOptions, MCPServer, Context

mcp = MCPServer("listened", http=HTTPOptions(sse="/sse", websocket="/ws"), sessions="memory")

def note(event):
    with open("../events", "a") as file:
        file.write(f"{event} {os.getpid()}\\n")


@mcp.add_lifespan
async def lifespan():
    note("started")
    yield
    note("ended")


@mcp.resource("data://state")
def state() -> str:
    return "state"


@mcp.tool
async def change() -> None:
    mcp.notify_resources_changed()


@mcp.tool
async def wait(seconds: float, context: Context) -> str:
    await context.report_progress(1)
    await asyncio.sleep(seconds)
    return "the last event"


app = mcp
"""
MOUNTED = (
    FUNCMCP
    + """
from fastapi import FastAPI


@contextlib.asynccontextmanager
async def whole_lifespan(app):
    async with mcp.lifespan():
        yield


app = FastAPI(lifespan=whole_lifespan)
app.mount("/", mcp)
"""
)
_PEER = """
import asyncio
import contextlib
import os


def note(event):
    with open("../events", "a") as file:
        file.write(f"{event} {os.getpid()}\\n")


def noting(app):
    inner = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(app):
        async with inner(app):
            note("started")
            yield
            note("ended")

    app.router.lifespan_context = lifespan
    return app


async def wait(seconds: float, ctx: Context) -> str:
    await ctx.report_progress(1)
    await asyncio.sleep(seconds)
    return "the last event"


mcp.tool()(wait)
"""
FASTMCP = (
    """
from fastmcp import Context, FastMCP

mcp = FastMCP("listened")
"""
    + _PEER
    + 'app = noting(mcp.http_app(transport="sse" if os.environ["KIND"] == "HTTP+SSE" else "http"))\n'
)
SDK = (
    """
from mcp.server.mcpserver import Context, MCPServer

mcp = MCPServer("listened")
"""
    + _PEER
    + 'app = noting(mcp.sse_app() if os.environ["KIND"] == "HTTP+SSE" else mcp.streamable_http_app())\n'
)

_UVICORN = ["uvicorn", "--port", "{port}", "served:app"]
IN_FASTAPI = "uvicorn, in FastAPI"
SERVERS = {
    "uvicorn": _UVICORN,
    IN_FASTAPI: _UVICORN,
    "gunicorn": ["gunicorn", "--bind", "127.0.0.1:{port}", "-k", "uvicorn_worker.UvicornWorker", "served:app"],
    "granian": ["granian", "--interface", "asgi", "--port", "{port}", "served:app"],
    "hypercorn --workers 0": ["hypercorn", "--workers", "0", "--bind", "127.0.0.1:{port}", "served:app"],
    "hypercorn": ["hypercorn", "--bind", "127.0.0.1:{port}", "served:app"],
    "funcmcp run": ["funcmcp_cli.main", "run", "--port", "{port}", "served:mcp"],
}
"""The commands of the servers, as ``python -m`` takes them."""

_RELOADS = {"gunicorn"}
"""Servers that replace their workers at SIGHUP. The others have the option ``--reload``."""

_SECONDS_BETWEEN_CHANGES = 5.0

ENDS = ("SIGINT", "SIGTERM", "reload")


def ends_of(server: str) -> list[str]:
    """Return the ways in which a server can end. Without worker processes, hypercorn can't reload."""
    if server == "hypercorn" and sys.version_info >= (3, 12):
        return []  # its workers wait without an end for open responses, also for those of a bare ASGI application
    return [by for by in ENDS if (server, by) != ("hypercorn --workers 0", "reload")]


@dataclass
class Ending:
    """How a server ended on which a client listened.

    Attributes:
        seconds: The seconds from the signal to the end of the process that served; None if it did not end in time.
        lifespan_ended: Whether the lifespan of the application ended.
        complete: Whether the client received the stream to its proper end.
        received: The bytes that the client received.
        panicked: Whether the server itself crashed: granian, which is written in Rust, now and then with a WebSocket.
    """

    seconds: float | None
    lifespan_ended: bool
    complete: bool
    received: bytes
    panicked: bool


class UnservedError(Exception):
    """The server does not answer a request as expected, or not in time."""


class Stream:
    """An open stream, whose bytes a thread reads.

    Args:
        port: The port of the server.
        request: The HTTP request that opens the stream.
        opened: Matches the bytes that the stream has when it is open.
    """

    def __init__(self, port: int, request: bytes, opened: bytes) -> None:
        self.received = b""
        self._changed = threading.Condition()
        self._ended = False
        self._line = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._line.settimeout(None)
        self._line.sendall(request)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        self.wait_for(opened)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while part := self._line.recv(65536):
                with self._changed:
                    self.received += part
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, pattern: bytes) -> re.Match[bytes]:
        """Wait until the received bytes match a pattern, and return the match."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or re.search(pattern, self.received) or _REFUSAL.match(self.received),
                PATIENCE,
            )
            match = re.search(pattern, self.received)
            if match is None:
                raise UnservedError(f"{pattern!r} is not in {self.received!r}")
            return match

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._line.sendall(data)

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        self._line.close()
        self._thread.join(PATIENCE)


def _http(port: int, method: str, path: str, message: object = None, **headers: str) -> bytes:
    fields = {"Host": f"127.0.0.1:{port}", "Accept": "application/json, text/event-stream", **headers}
    body = b"" if message is None else json.dumps(message).encode()
    if message is not None:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def _post(port: int, message: Mapping[str, object], **headers: str) -> bytes:
    """Send a message in a connection of its own, and return the response."""
    stream = Stream(port, _http(port, "POST", "/mcp", message, Connection="close", **headers), rb"\r\n\r\n")
    stream.wait_for(rb"HTTP/1.1 202|jsonrpc")
    stream.close()
    return stream.received


def _session(port: int) -> dict[str, str]:
    """Begin a session of the handshake era, and return its headers."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = _post(port, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    match = re.search(rb"mcp-session-id: (\S+)", answer, re.IGNORECASE)
    if match is None:
        raise UnservedError(f"No session: {answer!r}")
    headers = {"Mcp-Session-Id": match[1].decode(), "Mcp-Protocol-Version": "2025-11-25"}
    _post(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, **headers)
    return headers


def _open_get(port: int) -> Stream:
    request = _http(port, "GET", "/mcp", **{**_session(port), "Accept": "text/event-stream"})
    return Stream(port, request, rb"event-stream")


def _per_request(port: int, method: str, params: Mapping[str, object], **headers: str) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": "p",
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return _http(port, "POST", "/mcp", message, Mcp_Protocol_Version="2026-07-28", Mcp_Method=method, **headers)


def _call(port: int, name: str, **arguments: object) -> bytes:
    return _per_request(port, "tools/call", {"name": name, "arguments": arguments}, Mcp_Name=name)


def _open_listen(port: int) -> Stream:
    request = _per_request(port, "subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
    return Stream(port, request, rb"acknowledged")


def _open_http_sse(port: int) -> Stream:
    return Stream(port, _http(port, "GET", "/sse", Accept="text/event-stream"), rb"event: endpoint")


def _open_websocket(port: int) -> Stream:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol": "mcp",
        "Sec-WebSocket-Version": "13",
    }
    return Stream(port, _http(port, "GET", "/ws", **upgrade), rb"HTTP/1.1 101")


def _open_call(port: int) -> Stream:
    return Stream(port, _call(port, "wait", seconds=_CALL_SECONDS), rb"notifications/progress")


@dataclass(frozen=True)
class Kind:
    """A kind of stream.

    Attributes:
        open: Opens one at a port.
        last: Matches what the client has received if the stream came to its proper end.
        hears_changes: Whether changes of the list of resources are sent on it at once.
    """

    open: Callable[[int], Stream]
    last: bytes
    hears_changes: bool = False


_LAST_CHUNK = rb"\r\n0\r\n\r\n$"
KINDS = {
    "GET": Kind(_open_get, rb"(?s)HTTP/1.1 200.*" + _LAST_CHUNK, hears_changes=True),
    "subscriptions/listen": Kind(_open_listen, rb'(?s)"result".*' + _LAST_CHUNK, hears_changes=True),
    "HTTP+SSE": Kind(_open_http_sse, rb"(?s)event: endpoint.*" + _LAST_CHUNK),
    "WebSocket": Kind(_open_websocket, rb"(?s)\r\n\r\n.*\x88."),
    "running call": Kind(_open_call, rb"(?s)the last event.*" + _LAST_CHUNK),
}


def end(
    server: str,
    kind: str,
    by: str,
    folder: Path,
    *,
    code: str | None = None,
    python: Path = Path(sys.executable),
    seconds: float = 30.0,
) -> Ending:
    """Start a server, open a stream, end the server, and return how it ended.

    Args:
        server: A key of `SERVERS`.
        kind: A key of `KINDS`.
        by: One of `ENDS`.
        folder: An empty folder for the application.
        code: The code of the application; None for a server of funcmcp.
        python: The interpreter of a virtual environment. Packages that it lacks come from that of the tests.
        seconds: The time that the server has.
    """
    file, events = folder / "app/served.py", folder / "events"  # a reloader watches the folder of the application
    file.parent.mkdir()
    file.write_text(code or (MOUNTED if server == IN_FASTAPI else FUNCMCP))
    port = free_port()
    with _running(server, port, folder, by=by, kind=kind, python=python) as process:
        pid = _first_start(events, process)
        wait_for(port)
        stream = KINDS[kind].open(port)
        if code is None and KINDS[kind].hears_changes:
            _change(port)
        start = time.monotonic()
        _end(server, by, process, file)
        wait = process.wait if by != "reload" else lambda timeout: _wait_for_end(pid, file, timeout)
        taken: float | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            wait(timeout=seconds)
            taken = time.monotonic() - start
        ended = f"ended {pid}" in events.read_text()
        stream.close()
        complete = re.search(KINDS[kind].last, stream.received) is not None
        panicked = "tokio-rt-worker" in (folder / "log").read_text()
        return Ending(taken, ended, complete, stream.received, panicked)


def _change(port: int) -> None:
    """Let the server change, so that a notification is on its way when it ends."""
    stream = Stream(port, _call(port, "change"), rb"isError|result")
    stream.close()


@contextlib.contextmanager
def _running(
    server: str, port: int, folder: Path, *, by: str, kind: str, python: Path
) -> Iterator[subprocess.Popen[bytes]]:
    module, *arguments = [word.replace("{port}", str(port)) for word in SERVERS[server]]
    if by == "reload" and server not in _RELOADS:
        arguments.append("--reload")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    code = (
        f"import runpy, sys; sys.path += ['.', {packages!r}]; sys.argv = {[module, *arguments]!r}; "
        f"runpy.run_module({module!r}, run_name='__main__')"
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [python, "-c", code],
            cwd=folder / "app",
            env={**os.environ, "KIND": kind},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _first_start(events: Path, process: subprocess.Popen[bytes]) -> int:
    """Wait until the application has started, and return the id of its process."""
    deadline = time.monotonic() + PATIENCE
    while not events.exists() or "\n" not in events.read_text():
        assert process.poll() is None, (events.parent / "log").read_text()
        assert time.monotonic() < deadline, (events.parent / "log").read_text()
        time.sleep(0.02)
    return int(events.read_text().split()[1])


def _end(server: str, by: str, process: subprocess.Popen[bytes], file: Path) -> None:
    """End a server: Ctrl+C reaches all its processes, and SIGTERM the first one."""
    if by == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)
    elif by == "SIGTERM":
        process.terminate()
    elif server in _RELOADS:
        process.send_signal(signal.SIGHUP)
    else:
        _change_code(file)


def _change_code(file: Path) -> None:
    file.write_text(file.read_text() + "\n# changed\n")


def _wait_for_end(pid: int, file: Path, timeout: float) -> None:
    """Wait until a process has ended; raise TimeoutExpired.

    The code is changed again from time to time, because a reloader may begin to watch after the worker has started.
    """
    deadline = time.monotonic() + timeout
    next_change = time.monotonic() + _SECONDS_BETWEEN_CHANGES
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if time.monotonic() > next_change:
            _change_code(file)
            next_change += _SECONDS_BETWEEN_CHANGES
        time.sleep(0.02)
    raise subprocess.TimeoutExpired(str(pid), timeout)

"""An HTTP server in a thread that answers each message with what a script says, down to single bytes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.patience import PATIENCE
from tests.proxy.wire import HANDSHAKE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Serve = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]

JSON = "application/json"
EVENTS = "text/event-stream"
TOOL = {"name": "work", "description": "Work.", "inputSchema": {"type": "object"}}


@dataclass(frozen=True)
class Request:
    """An HTTP request.

    Attributes:
        method: The HTTP method.
        path: The path.
        headers: Header fields, with names in lower case.
        body: The body.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message in the body."""
        message: dict[str, Any] = json.loads(self.body)
        return message


def response(body: bytes | str = b"", kind: str = JSON, *, status: int = 200, **headers: str) -> bytes:
    """Return an HTTP response as bytes."""
    data = body.encode() if isinstance(body, str) else body
    fields = {"content-type": kind, "content-length": str(len(data)), **headers}
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + data


def event(message: dict[str, Any], **fields: str) -> bytes:
    """Return a message as an event of a stream."""
    lines = [*(f"{name}: {value}\n" for name, value in fields.items()), f"data: {json.dumps(message)}\n\n"]
    return "".join(lines).encode()


def stream_head(**headers: str) -> bytes:
    """Return the header of a response with an event stream that ends with its connection."""
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 200 OK\r\ncontent-type: {EVENTS}\r\nconnection: close\r\n{fields}\r\n".encode()


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read a request; None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


@contextlib.contextmanager
def listening(serve: Serve, port: int = 0) -> Iterator[int]:
    """Serve requests in a thread with an event loop of its own; yield the port. A closed connection ends a script."""
    loop = asyncio.new_event_loop()
    ports: list[int] = []
    ready, stop = threading.Event(), asyncio.Event()
    connections: set[asyncio.StreamWriter] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        try:
            while not writer.is_closing() and (request := await read_request(reader)) is not None:
                await serve(request, writer)
                await writer.drain()
        except (asyncio.CancelledError, ConnectionError):  # the first one at the end, from `run`
            return
        finally:
            connections.discard(writer)
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", port, limit=2**20, backlog=1000)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await stop.wait()
        server.close()
        for writer in connections:
            writer.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        loop.close()


def discovered() -> dict[str, Any]:
    """Return the result of server/discover."""
    return {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
    }


def initialized() -> dict[str, Any]:
    """Return the result of initialize."""
    return {
        "protocolVersion": HANDSHAKE,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "scripted", "version": "1"},
    }


@dataclass
class Upstream:
    """An upstream with one tool, `work`, whose calls a script answers.

    Args:
        era: The only revision that it speaks.
        script: Answers a tools/call; see `Serve`.

    Attributes:
        requests: All that it has received.
        sessions: Ids of the sessions that are alive.
    """

    era: str
    script: Serve
    requests: list[Request] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer a request."""
        self.requests.append(request)
        if request.method == "DELETE":
            self.sessions.discard(request.headers.get("mcp-session-id", ""))
            writer.write(response(status=204))
        elif request.method != "POST":
            writer.write(response(status=405))
        elif self._has_ended(request):
            writer.write(response('{"error": "session not found"}', status=404))
        elif "id" not in request.message:
            writer.write(response(status=202))
        elif request.message["method"] == "tools/call":
            await self.script(request, writer)
        else:
            writer.write(self._answer(request))

    def received(self, method: str) -> list[Request]:
        """Return the requests of a method."""
        return [request for request in self.requests if request.body and request.message.get("method") == method]

    def _has_ended(self, request: Request) -> bool:
        if self.era != HANDSHAKE or request.message.get("method") in {"initialize", "server/discover"}:
            return False
        return request.headers.get("mcp-session-id") not in self.sessions

    def _answer(self, request: Request) -> bytes:
        method = request.message["method"]
        if method == "tools/list":
            shown = {"tools": [TOOL]}
            hints = {} if self.era == HANDSHAKE else {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
            return response(result(request, {**shown, **hints}))
        if method == "initialize" and self.era == HANDSHAKE:
            session = secrets.token_hex(8)
            self.sessions.add(session)
            return response(result(request, initialized()), mcp_session_id=session)
        if method == "server/discover" and self.era != HANDSHAKE:
            return response(result(request, discovered()))
        return response(error(request, -32601, "Method not found"), status=404 if self.era != HANDSHAKE else 400)


def result(request: Request, value: dict[str, Any]) -> str:
    """Return a response with a result as JSON."""
    return json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "result": value})


def error(request: Request, code: int, message: str, **data: Any) -> str:
    """Return a response with an error as JSON."""
    members = {"code": code, "message": message, **({"data": data} if data else {})}
    return json.dumps({"jsonrpc": "2.0", "id": request.message["id"], "error": members})


def worked(request: Request, text: str = "done") -> dict[str, Any]:
    """Return the result of a call, in the form that both eras take."""
    is_handshake = request.headers.get("mcp-protocol-version") == HANDSHAKE
    kind = {} if is_handshake else {"resultType": "complete"}
    return {**kind, "content": [{"type": "text", "text": text}], "isError": False}

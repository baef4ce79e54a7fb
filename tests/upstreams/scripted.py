"""An HTTP server of 2025-11-25 whose answer to each call is a function of the test, down to the bytes."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Answer = Callable[["Exchange"], Awaitable[None]]


class Exchange:
    """One request, and what answers it.

    Attributes:
        method: The HTTP method.
        headers: The header fields, with names in lower case.
        message: The JSON-RPC message; empty without a body.
        writer: Writes the response.
    """

    def __init__(self, method: str, headers: dict[str, str], message: dict[str, Any], writer: Any) -> None:
        self.method = method
        self.headers = headers
        self.message = message
        self.writer = writer

    def write(self, status: str, body: bytes = b"", kind: str = "application/json", **fields: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    def result(self, result: dict[str, Any], **fields: str) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": self.message["id"], "result": result}).encode()
        self.write("200 OK", body, **fields)

    def text(self, text: str) -> None:
        self.result({"content": [{"type": "text", "text": text}]})


class ScriptedServer:
    """A server with one tool, ``act``.

    Attributes:
        url: Its endpoint.
        answers: The answers to the next calls. Later calls get the number of the session as text.
        requests: What was received: the method of the message, or the HTTP method, with the session id.
        sessions: The number of sessions that were begun.
        missing: Methods that it does not have.
        capabilities: What it declares.
        streams: Whether it has streams for what it sends outside of responses.
        stream: The writer of the last of these.
        responses: The answers to its own requests.
    """

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[Answer] = []
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.sessions = 0
        self.missing = {"server/discover"}
        self.capabilities: dict[str, Any] = {"tools": {}}
        self.streams = False
        self.stream: asyncio.StreamWriter | None = None
        self.responses: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.open_sessions: set[str] = set()

    @property
    def calls(self) -> int:
        """The number of calls that were received."""
        return sum(method == "tools/call" for method, _ in self.requests)

    def push(self, message: dict[str, Any]) -> None:
        """Send a message outside of responses."""
        assert self.stream is not None
        self.stream.write(b"data: %s\n\n" % json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                exchange = await _read(reader, writer)
                method = exchange.message.get("method", exchange.method)
                self.requests.append((method, exchange.headers.get("mcp-session-id", "")))
                self.headers.append(exchange.headers)
                await self._answer(exchange, method)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, exchange: Exchange, method: str) -> None:
        session_id = exchange.headers.get("mcp-session-id", "")
        if method == "initialize":
            self.sessions += 1
            session_id = f"session-{self.sessions}"
            self.open_sessions.add(session_id)
            info = {"name": "scripted", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "serverInfo": info}
            exchange.result(result, mcp_session_id=session_id)
        elif method in self.missing:
            error = {"code": -32601, "message": "Method not found"}
            body = json.dumps({"jsonrpc": "2.0", "id": exchange.message["id"], "error": error}).encode()
            exchange.write("200 OK", body)
        elif method in ("GET", "POST"):
            self._answer_stream(exchange)
        elif method == "DELETE":
            self.open_sessions.discard(session_id)
            exchange.write("204 No Content")
        elif "id" not in exchange.message:
            exchange.write("202 Accepted")
        elif session_id not in self.open_sessions:
            exchange.write("404 Not Found")
        elif method == "tools/list":
            exchange.result({"tools": [{"name": "act", "inputSchema": {"type": "object"}}]})
        elif method == "tools/call" and self.answers:
            await self.answers.pop(0)(exchange)
        elif method == "tools/call":
            exchange.text(session_id)
        else:
            exchange.result({})

    def _answer_stream(self, exchange: Exchange) -> None:
        """Open the stream for messages outside of responses, or take the answer to one."""
        if exchange.method == "GET" and self.streams:
            self.stream = exchange.writer
            self.stream.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        elif "id" in exchange.message:
            self.responses.put_nowait(exchange.message)
            exchange.write("202 Accepted")
        else:
            exchange.write("405 Method Not Allowed")


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Exchange(head[0].split(" ")[0], headers, json.loads(body) if body else {}, writer)


@asynccontextmanager
async def scripted_server() -> AsyncIterator[ScriptedServer]:
    """Serve on a free port of this machine."""
    scripted = ScriptedServer()
    connections: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        await scripted.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    scripted.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield scripted
    finally:
        server.close()
        for writer in connections:
            writer.close()

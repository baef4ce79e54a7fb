"""A scripted HTTP server: a test decides about each byte of the responses, and sees the requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.revisions import NEWEST_HANDSHAKE
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

NEWEST = NEWEST_HANDSHAKE


@dataclass
class Exchange:
    """A request, and the way to answer it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter = field(repr=False)

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message in the body; empty if there is none."""
        message: dict[str, Any] = json.loads(self.body) if self.body else {}
        return message

    async def respond(self, status: int, body: bytes = b"", *fields: str, kind: str = "application/json") -> None:
        """Send a whole response."""
        lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {len(body)}", *fields]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()

    async def answer(self, result: dict[str, Any], *fields: str) -> None:
        """Send the result of the request as JSON."""
        body = json.dumps({"jsonrpc": "2.0", "id": self.message["id"], "result": result}).encode()
        await self.respond(200, body, *fields)

    async def begin_stream(self, *fields: str) -> None:
        """Send the header of an event stream, which ends with the connection."""
        lines = ["HTTP/1.1 200 OK", "content-type: text/event-stream", "connection: close", *fields]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())
        await self.writer.drain()

    async def send(self, text: str) -> None:
        """Send a part of an event stream."""
        self.writer.write(text.encode())
        await self.writer.drain()

    async def send_message(self, message: dict[str, Any], *lines: str) -> None:
        """Send a message as an event, with further lines before the data."""
        data = json.dumps({"jsonrpc": "2.0", **message})
        await self.send("".join(f"{line}\n" for line in lines) + f"data: {data}\n\n")

    def close(self) -> None:
        """End the connection as a server does that has nothing more to send."""
        self.writer.close()

    def reset(self) -> None:
        """Break the connection."""
        self.writer.transport.abort()


@dataclass
class Scripted:
    """The server while it runs."""

    url: str = ""
    requests: list[Exchange] = field(default_factory=list)
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def add(self, exchange: Exchange) -> None:
        async with self._arrived:
            self.requests.append(exchange)
            self._arrived.notify_all()

    def having(self, method: str) -> list[Exchange]:
        """Return the requests with an HTTP method or an MCP method."""
        return [one for one in self.requests if method in (one.method, one.message.get("method"))]

    async def until(self, method: str, count: int = 1) -> Exchange:
        """Wait for a number of requests with an HTTP method or an MCP method; return the last of them."""
        async with asyncio.timeout(PATIENCE), self._arrived:
            await self._arrived.wait_for(lambda: len(self.having(method)) >= count)
            return self.having(method)[count - 1]


@contextlib.asynccontextmanager
async def scripted(handle: Callable[[Exchange], Awaitable[None]]) -> AsyncIterator[Scripted]:
    """Serve HTTP with a function of the request."""
    server = Scripted()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *lines = head.strip().split("\r\n")
                method, target, _ = line.split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                exchange = Exchange(method, target, headers, body, writer)
                await server.add(exchange)
                await handle(exchange)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def handshake_server(
    call: Callable[[Exchange], Awaitable[None]],
    stream: Callable[[Exchange], Awaitable[None]] | None = None,
    capabilities: dict[str, Any] | None = None,
) -> Callable[[Exchange], Awaitable[None]]:
    """Return a server of 2025-11-25 with a session, whose calls and GET streams a test answers."""

    async def handle(exchange: Exchange) -> None:
        method = exchange.message.get("method")
        if exchange.method == "GET" and stream is not None:
            await stream(exchange)
        elif exchange.method in ("GET", "DELETE"):
            await exchange.respond(405)
        elif method == "server/discover":
            await exchange.respond(400, b'{"jsonrpc": "2.0", "error": {"code": -32000, "message": "No session"}}')
        elif method == "initialize":
            result = {"protocolVersion": NEWEST, "capabilities": capabilities or {}, "serverInfo": {"name": "scripted"}}
            await exchange.answer(result, "mcp-session-id: s1")
        elif method == "tools/call":
            await call(exchange)
        elif "id" not in exchange.message or method is None:
            await exchange.respond(202)
        else:
            await exchange.answer({})

    return handle

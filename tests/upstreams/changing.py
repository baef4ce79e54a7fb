"""An HTTP server whose tools change while no connection reports it, as those of a server that is started again do."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.client.scripted import Exchange, Scripted, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HANDSHAKE, HTTP_SSE, NEWEST = "2025-11-25", "2024-11-05", "2026-07-28"


class Changing:
    """Serves one revision, and reports no change of its tools.

    Args:
        revision: The revision.
        tools: The names of the tools.

    Attributes:
        refusal: The HTTP status that the stream for changes is refused with; None if there is one.
        unavailable: How many requests are answered with status 503, as by a proxy in front of a server that starts.
        http: The server while it runs.
    """

    def __init__(self, revision: str, *tools: str) -> None:
        self.revision = revision
        self.tools = tools
        self.refusal: int | None = None
        self.unavailable = 0
        self.http: Scripted
        self._starts = 1
        self._streams: dict[str, Exchange] = {}  # by the path of messages that belong to them

    @property
    def url(self) -> str:
        return self.http.url

    @property
    def lists(self) -> int:
        """How often the tools were read."""
        return len(self.http.having("tools/list"))

    def start_again(self, *tools: str) -> None:
        """Serve other tools, and forget all sessions and streams."""
        self.tools = tools
        self._starts += 1
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        session_id = exchange.headers.get("mcp-session-id")
        is_other = session_id is not None and session_id.partition("-")[0] != f"s{self._starts}"
        method = exchange.message.get("method")
        if self.unavailable:
            self.unavailable -= 1
            await exchange.respond(503)
        elif exchange.method == "DELETE":
            await exchange.respond(200)
        elif exchange.method == "GET":
            await self._stream(exchange, is_known=not is_other)
        elif is_other:
            await exchange.respond(404)
        elif self.revision == HTTP_SSE and exchange.target not in self._streams:
            await exchange.respond(405)
        elif method == "subscriptions/listen":
            await self._listen(exchange)
        elif "id" in exchange.message:
            await self._answer(exchange, str(method))
        else:
            await exchange.respond(202)

    async def _stream(self, exchange: Exchange, *, is_known: bool) -> None:
        if self.refusal is not None or not is_known:
            await exchange.respond(self.refusal or 404)
            return
        path = await self._begin_stream(exchange)
        is_only = self.revision == HTTP_SSE
        await exchange.send(f"event: endpoint\ndata: {path}\n\n" if is_only else "retry: 0\ndata: \n\n")
        await asyncio.Event().wait()

    async def _begin_stream(self, exchange: Exchange) -> str:
        path = f"/messages/{len(self.http.requests)}"
        self._streams[path] = exchange
        await exchange.begin_stream()
        return path

    async def _listen(self, exchange: Exchange) -> None:
        if self.refusal is not None:
            error = {"code": -32601, "message": "Method not found"}
            body = json.dumps({"jsonrpc": "2.0", "id": exchange.message["id"], "error": error}).encode()
            await exchange.respond(self.refusal, body)
            return
        params = exchange.message["params"]
        meta = {"io.modelcontextprotocol/subscriptionId": str(exchange.message["id"])}
        acknowledged = {"_meta": meta, "notifications": params["notifications"]}
        await self._begin_stream(exchange)
        await exchange.send_message({"method": "notifications/subscriptions/acknowledged", "params": acknowledged})
        await asyncio.Event().wait()

    async def _answer(self, exchange: Exchange, method: str) -> None:
        result = self._result(method)
        message = {"id": exchange.message["id"], "result": result}
        if result is None:
            message = {"id": exchange.message["id"], "error": {"code": -32601, "message": "Method not found"}}
        if self.revision == HTTP_SSE:
            await exchange.respond(202)
            await self._streams[exchange.target].send_message(message, "event: message")
        else:
            number = len(self.http.having("initialize"))
            fields = [f"mcp-session-id: s{self._starts}-{number}"] if method == "initialize" else []
            await exchange.respond(200, json.dumps({"jsonrpc": "2.0", **message}).encode(), *fields)

    def _result(self, method: str) -> dict[str, Any] | None:
        about = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "changing", "version": "1"}}
        results: dict[str, dict[str, Any]] = {
            "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
            "ping": {},
        }
        if self.revision == NEWEST:
            results["server/discover"] = {"supportedVersions": [NEWEST], **about}
        else:
            results["initialize"] = {"protocolVersion": self.revision, **about}
        result = results.get(method)
        return result if result is None or self.revision != NEWEST else {"resultType": "complete", **result}


@asynccontextmanager
async def changing(revision: str, *tools: str) -> AsyncIterator[Changing]:
    """Serve on a free port of this machine."""
    server = Changing(revision, *tools)
    async with scripted(server.handle) as server.http:
        yield server

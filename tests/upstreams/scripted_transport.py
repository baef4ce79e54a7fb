"""A server of 2025-11-25 in memory whose only tool is a function of the test, and a proxy of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp import MCPServer
from funcmcp.state import MemorySessions
from funcmcp.upstreams import Upstream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Message = dict[str, Any]
    Work = Callable[["ScriptedServer", Message], Awaitable[Message]]

HANDSHAKE, PER_REQUEST = "2025-11-25", "2026-07-28"
FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


class ScriptedServer:
    """A transport to a server of 2025-11-25 whose only tool is a function of the test.

    Args:
        work: Answers a call. It may send messages first.
    """

    is_http = False
    session_id: str | None = None

    def __init__(self, work: Work) -> None:
        self._work = work
        self._receive: Callable[[Message], Awaitable[None]]
        self.answers: asyncio.Queue[Message] = asyncio.Queue()

    async def connect(self, receive: Callable[[Message], Awaitable[None]]) -> None:
        self._receive = receive

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        del headers
        results: dict[str, Any] = {
            "initialize": {"protocolVersion": HANDSHAKE, "capabilities": {"tools": {}}, "serverInfo": {"name": "x"}},
            "tools/list": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]},
        }
        method = message["method"]
        if method == "tools/call":
            result = await self._work(self, message)
        elif method in results:
            result = results[method]
        else:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        del headers
        if "method" not in message:
            self.answers.put_nowait(message)

    async def aclose(self) -> None:
        """Do nothing."""

    async def push(self, method: str, params: Any, request_id: Any = None) -> None:
        """Send a message, as a reader that belongs to no request does."""
        await asyncio.create_task(self.push_in_stream(method, params, request_id))

    async def push_in_stream(self, method: str, params: Any, request_id: Any = None) -> None:
        """Send a message in the task of the request, as the reader of its response does."""
        message: Message = {"jsonrpc": "2.0", "method": method, "params": params}
        if request_id is not None:
            message["id"] = request_id
        await self._receive(message)


def text(value: object) -> Message:
    return {"content": [{"type": "text", "text": str(value)}]}


def proxy_of(work: Work) -> MCPServer:
    proxy = MCPServer("Proxy", sessions=MemorySessions())
    proxy.mount(Upstream(ScriptedServer(work)), prefix="up")
    return proxy

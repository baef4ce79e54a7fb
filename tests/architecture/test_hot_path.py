"""How many functions and timers a call needs. The numbers are the same on all machines, unlike the time of the call."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from funcmcp import MCPServer
from funcmcp._protocol.revisions import NEWEST, NEWEST_HANDSHAKE
from tests.python_calls import calls_of, modules_in

CALLS, MODULES = 57, 28
"""What one warm call of an async tool runs, from ASGI to ASGI. A change that needs more says why it is worth it."""

HANDSHAKE, PER_REQUEST = NEWEST_HANDSHAKE, NEWEST
HEADERS = {
    "host": "127.0.0.1:8000",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
CLIENT = {"capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}


def shop() -> MCPServer:
    mcp = MCPServer("Shop")

    @mcp.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return mcp


def request(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, separators=(",", ":")).encode()


async def post(app: MCPServer, body: bytes, headers: dict[str, str]) -> list[Any]:
    """Send a message as an ASGI server does whose client has sent the whole body."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in {**HEADERS, **headers}.items()],
        "server": ("127.0.0.1", 8000),
        "client": ("127.0.0.1", 50_000),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(event: Any) -> None:
        sent.append(event)

    await app(scope, receive, send)
    return sent


async def call(app: MCPServer, era: str) -> tuple[bytes, dict[str, str]]:
    """Return a call of `add` and its header, in a session if the era has sessions."""
    params: dict[str, Any] = {"name": "add", "arguments": {"a": 1, "b": 2}}
    if era == HANDSHAKE:
        start, _ = await post(app, request("initialize", {"protocolVersion": era, **CLIENT}), {})
        session_id = dict(start["headers"])[b"mcp-session-id"].decode()
        headers = {"mcp-protocol-version": era, "mcp-session-id": session_id}
    else:
        meta = {
            "protocolVersion": era,
            "clientCapabilities": CLIENT["capabilities"],
            "clientInfo": CLIENT["clientInfo"],
        }
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
        headers = {"mcp-protocol-version": era, "mcp-method": "tools/call", "mcp-name": "add"}
    return request("tools/call", params), headers


@pytest.mark.parametrize("era", [HANDSHAKE, PER_REQUEST])
async def test_a_call_runs_no_more_functions_and_modules_than_before(era: str) -> None:
    app = shop()
    body, headers = await call(app, era)
    _, end = await post(app, body, headers)  # plans and caches exist afterwards
    assert json.loads(end["body"])["result"]["structuredContent"] == {"result": 3}
    calls = calls_of(post(app, body, headers))
    modules = modules_in(calls)
    text = f"{len(calls)} calls in {len(modules)} modules. At most {CALLS} in {MODULES} are allowed.\n"
    assert (len(calls) <= CALLS, len(modules) <= MODULES) == (True, True), text + "\n".join(map(str, calls))


@pytest.mark.parametrize("era", [HANDSHAKE, PER_REQUEST])
async def test_a_call_that_waits_starts_one_timer(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time limit, its comments and its watch for a disconnect share the timer."""
    app = MCPServer("Shop")

    @app.tool
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    body, headers = await call(app, era)
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    call_at = loop.call_at

    def recording(*arguments: Any, **options: Any) -> asyncio.TimerHandle:
        timers.append(call_at(*arguments, **options))
        return timers[-1]

    monkeypatch.setattr(loop, "call_at", recording)
    _, end = await post(app, body, headers)
    assert json.loads(end["body"])["result"]["structuredContent"] == {"result": 3}
    assert [timer.cancelled() for timer in timers] == [True]

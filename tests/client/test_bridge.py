"""A bridge between any client and a server, or a cassette: over HTTP, with the official SDK's client, and on stdio."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client as SDKClient
from mcp import types
from mcp.client.streamable_http import streamable_http_client

from funcmcp import Context, MCPServer
from funcmcp._client.bridge import Bridge
from funcmcp._client.errors import AuthenticationError, ConnectionFailedError
from funcmcp._client.target_transports import transport_for
from funcmcp.testing import REVISIONS, Cassette, CassetteServer, Client, MemoryRequest, accept, post

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def shop() -> MCPServer:
    mcp = MCPServer("shop", sessions="memory")

    @mcp.tool
    async def price(item: str, context: Context) -> int:
        """Return the price of an item."""
        await context.report_progress(1)
        return len(item)

    @mcp.tool
    async def order(context: Context) -> str:
        """Order something."""
        answer = await context.elicit(
            "Under which name?", {"type": "object", "properties": {"name": {"type": "string"}}}
        )
        return f"for {answer.content}"

    return mcp


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_over_http_is_served_in_every_revision(revision: str) -> None:
    bridge = Bridge(transport_for(shop(), {}))
    progress: list[Any] = []
    async with Client(
        bridge.exchange, revision=revision, elicit=accept({"name": "Ada"}), on_progress=progress.append
    ) as client:
        assert (await client.call_tool("price", {"item": "tea"})).text == "3"
        if revision >= "2025-06-18":
            assert "Ada" in (await client.call_tool("order")).text
    assert len(progress) == 1
    await bridge.aclose()


@asynccontextmanager
async def sdk_client(server: CassetteServer, **options: Any) -> AsyncIterator[Any]:
    async with server.app() as app:
        http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1")
        async with http:
            transport = streamable_http_client("http://127.0.0.1/mcp", http_client=http)
            async with SDKClient(transport, **options) as client:
                yield client


async def test_the_sdk_plays_what_another_client_has_recorded(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    names = []

    async def elicit(*_: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    for server in (CassetteServer(Cassette(path), shop()), None):
        played = server or CassetteServer(Cassette.load(path))
        async with sdk_client(played, elicitation_callback=elicit) as client:
            names.append([tool.name for tool in (await client.list_tools()).tools])
            result = await client.call_tool("price", {"item": "tea"})
            assert result.structured_content == {"result": 3}
            assert "Ada" in (await client.call_tool("order")).content[0].text
        assert played.is_recording == (server is not None)
        assert played.cassette.mismatches == []
    assert names[0] == names[1] == ["price", "order"]


async def lines_of(*messages: Any) -> AsyncIterator[bytes]:
    for message in messages:
        yield (message if isinstance(message, str) else json.dumps(message)).encode() + b"\n"
        await asyncio.sleep(0.05)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_client_on_stdio_is_served_in_both_eras() -> None:
    for revision in REVISIONS[-2:]:
        bridge = Bridge(transport_for(shop(), {}))
        written: list[dict[str, Any]] = []
        meta = {
            "progressToken": "t",
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        initialize = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        begin = {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": initialize}
        call = {"name": "price", "arguments": {"item": "tea"}, "_meta": meta}
        if revision < "2026":
            del meta["io.modelcontextprotocol/protocolVersion"]
        await bridge.serve_lines(
            lines_of(
                *([begin, {"jsonrpc": "2.0", "method": "notifications/initialized"}] if revision < "2026" else []),
                {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}},
                {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": call},
                "",
                "no json",
            ),
            lambda line: written.append(json.loads(line)),  # noqa: B023 - it is called in this round only
        )
        await bridge.aclose()
        assert {"t"} == {message["params"]["progressToken"] for message in written if "method" in message}
        by_id = {message.get("id"): message for message in written if "method" not in message}
        assert by_id["b"]["result"]["structuredContent"] == {"result": 3}
        assert by_id[None]["error"]["code"] == -32700


class Failing:
    """A transport that fails, and notes what it is sent."""

    is_http = False
    session_id: str | None = None

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.sent: list[dict[str, Any]] = []
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def connect(self, receive: Any) -> None:
        """Connect to nothing."""

    async def request(self, message: dict[str, Any], headers: Any) -> dict[str, Any]:
        del message, headers
        self.begun.set()
        await self.gate.wait()
        raise self.error

    async def send(self, message: dict[str, Any], headers: Any) -> None:
        del headers
        self.sent.append(message)
        raise self.error

    async def aclose(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize(
    ("error", "text"), [(AuthenticationError(401, None), "credentials"), (ConnectionFailedError("It is gone."), "gone")]
)
async def test_a_failure_of_the_server_is_an_error_for_the_client(error: Exception, text: str) -> None:
    transport = Failing(error)
    transport.gate.set()
    body = b'{"jsonrpc": "2.0", "id": "x", "method": "ping"}'
    response = await post(Bridge(transport).exchange, "/mcp", body, {})
    assert isinstance(response.body, bytes)
    message = json.loads(response.body)
    assert message["id"] == "x"
    assert text in message["error"]["message"]


async def test_a_cancellation_gets_the_id_that_the_server_knows() -> None:
    transport = Failing(ConnectionFailedError("It is gone."))
    bridge = Bridge(transport)
    body = b'{"jsonrpc": "2.0", "id": "x", "method": "ping"}'
    running = asyncio.create_task(post(bridge.exchange, "/mcp", body, {}))
    await transport.begun.wait()
    for request_id in ("x", "unknown"):
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
        assert (await post(bridge.exchange, "/mcp", json.dumps(cancel).encode(), {})).status == 202
    assert [message["params"]["requestId"] for message in transport.sent] == [1]
    transport.gate.set()
    await running


@pytest.mark.parametrize(
    ("method", "path", "fields", "body", "status"),
    [
        ("POST", "/mcp", {"host": "evil.example"}, b"{}", 421),
        ("POST", "/mcp", {"origin": "https://evil.example"}, b"{}", 403),
        ("POST", "/other", {}, b"{}", 404),
        ("GET", "/mcp", {}, b"", 405),
        ("POST", "/mcp", {}, b"[]", 400),
    ],
)
async def test_other_requests_are_refused(
    method: str, path: str, fields: dict[str, str], body: bytes, status: int
) -> None:
    lines = {"host": "127.0.0.1", **fields}
    request = MemoryRequest(method, path, [(name.encode(), value.encode()) for name, value in lines.items()], body)
    assert (await Bridge(transport_for(shop(), {})).exchange(request)).status == status


async def test_a_body_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._client.bridge._MAX_BODY", 1)
    assert (await post(Bridge(transport_for(shop(), {})).exchange, "/mcp", b"{}", {})).status == 413


def test_the_path_of_a_cassette_is_not_a_cassette() -> None:
    with pytest.raises(TypeError, match=r"CassetteServer takes a Cassette, not str. Write Cassette\.load\(path\)"):
        CassetteServer("calls.json")  # type: ignore[arg-type]

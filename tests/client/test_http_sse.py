"""HTTP+SSE, the transport of 2024-11-05: with a server of ours, and with scripted ones."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.client import Client, ConnectionFailedError, HTTPEndpoint, InvalidResponseError, ProgressUpdate
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.client.scripted import Exchange, Scripted, scripted
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.lowest("httpx2 sends the requests.")

SERVER = '''
from pydantic import BaseModel

from funcmcp import Context, HTTPOptions, MCPServer

mcp = MCPServer("Old", http=HTTPOptions(sse="/sse"))


class Guest(BaseModel):
    name: str


@mcp.tool
async def greet(context: Context) -> str:
    """Ask for a name."""
    await context.report_progress(1, 2)
    answer = await context.elicit("Who?", Guest)
    return f"Hello, {answer.content.name}!" if answer.content else answer.action


@mcp.tool
def repeat(text: str) -> str:
    """Return a text."""
    return text
'''


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_url_of_http_sse_works_as_any_other(tmp_path: Path) -> None:
    async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": "Ada"}}

    updates: list[ProgressUpdate] = []
    (tmp_path / "server.py").write_text(SERVER)
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=tmp_path) as process:
        url = process.endpoint().replace("/mcp", "/sse")
        for _ in range(2):  # a client can be entered again
            async with Client(url, elicit=elicit, timeout=PATIENCE) as client:
                assert client.session_id is None
                greeted = client.call_tool("greet", on_progress=updates.append)
                texts = [client.call_tool("repeat", {"text": f"{number} Ü " * 1000}) for number in range(20)]
                results = await asyncio.gather(greeted, *texts)
                assert results[0].text == "Hello, Ada!"
                assert [result.text for result in results[1:]] == [f"{number} Ü " * 1000 for number in range(20)]
    assert [update.progress for update in updates] == [1, 1]


def old_server(
    endpoint: str, status: int = 405, answer: Callable[[Exchange, Exchange], Any] | None = None
) -> Callable[[Exchange], Any]:
    """Return a server that names an endpoint in its stream, and refuses POSTs to the URL of the stream."""
    streams: list[Exchange] = []

    async def handle(exchange: Exchange) -> None:
        if exchange.method == "GET":
            streams.append(exchange)
            await exchange.begin_stream()
            await exchange.send(f"event: endpoint\ndata: {endpoint}\n\n")
            await asyncio.Event().wait()
        elif exchange.target == "/mcp":
            await exchange.respond(status, b"Not here", kind="text/plain")
        else:
            await exchange.respond(202)
            if answer is not None:
                await answer(exchange, streams[-1])
            elif exchange.message.get("method") == "initialize":
                result = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "old"}}
                await streams[-1].send_message({"id": exchange.message["id"], "result": result}, "event: message")
            elif "id" in exchange.message:
                await streams[-1].send("event: ping\ndata: not a message\n\n")
                await streams[-1].send_message({"id": exchange.message["id"], "result": {"content": []}})

    return handle


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize("endpoint", ["/messages?s=a%20b", "messages?s=a%20b", "{origin}/messages?s=a%20b"])
async def test_the_client_falls_back_after_a_refused_handshake(status: int, endpoint: str) -> None:
    async def handle(exchange: Exchange) -> None:
        await handler(exchange)

    async with scripted(handle) as server:
        handler = old_server(endpoint.replace("{origin}", server.url.removesuffix("/mcp")), status)
        async with Client(server.url, timeout=PATIENCE, headers={"authorization": "Bearer a"}) as client:
            assert client.revision == "2024-11-05"
            await client.call_tool("a")
        requests = [(one.method, one.target, one.message.get("method")) for one in server.requests]
        assert requests == [
            ("POST", "/mcp", "server/discover"),
            ("POST", "/mcp", "initialize"),
            ("GET", "/mcp", None),
            ("POST", "/messages?s=a%20b", "initialize"),
            ("POST", "/messages?s=a%20b", "notifications/initialized"),
            ("POST", "/messages?s=a%20b", "tools/call"),
        ]
        assert {one.headers.get("authorization") for one in server.requests} == {"Bearer a"}


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("http://127.0.0.1:1/messages", "another origin"),
        ("https://127.0.0.1/messages", "another origin"),
        ("//other.example/messages", "another origin"),
        ("http://[::", "another origin|not a URL"),
    ],
)
async def test_an_endpoint_on_another_origin_gets_no_message(endpoint: str, problem: str) -> None:
    async with scripted(old_server(endpoint)) as server:
        with pytest.raises(ConnectionFailedError, match=problem):
            async with Client(server.url, timeout=PATIENCE):
                pass
        assert [one.method for one in server.requests] == ["POST", "POST", "GET"]


@pytest.mark.parametrize(
    ("status", "body", "gets"),
    [
        (404, b"Not here", 1),
        (500, b"Broken", 0),
        (400, b'{"jsonrpc": "2.0", "error": {"code": -1, "message": "no"}}', 0),
    ],
)
async def test_other_refusals_are_reported_as_they_are(status: int, body: bytes, gets: int) -> None:
    async def handle(exchange: Exchange) -> None:
        await exchange.respond(status, body)

    async with scripted(handle) as server:
        with pytest.raises(Exception, match=r"HTTP status|no"):
            async with Client(server.url, timeout=PATIENCE):
                pass
        assert len(server.having("GET")) == gets


async def test_a_stream_without_an_endpoint_is_no_server() -> None:
    async def handle(exchange: Exchange) -> None:
        if exchange.method == "GET":
            await exchange.begin_stream()
            await exchange.send(": nothing\n\n")
            exchange.close()
        else:
            await exchange.respond(405)

    async with scripted(handle) as server:
        with pytest.raises(InvalidResponseError, match=r"HTTP status 405"):
            async with Client(HTTPEndpoint(server.url, connect_seconds=30), timeout=PATIENCE):
                pass


async def hello(exchange: Exchange, stream: Exchange) -> bool:
    """Answer the handshake; return whether the message was a part of it."""
    if exchange.message.get("method") == "initialize":
        result = {"protocolVersion": "2024-11-05", "capabilities": {}}
        await stream.send_message({"id": exchange.message["id"], "result": result})
    return exchange.message.get("method") != "tools/call"


async def test_the_end_of_the_stream_fails_all_requests() -> None:
    async def answer(exchange: Exchange, stream: Exchange) -> None:
        if not await hello(exchange, stream):
            stream.reset()

    handle = old_server("/messages", answer=answer)
    async with scripted(handle) as server, Client(server.url, timeout=PATIENCE) as client:
        calls = [client.call_tool("a") for _ in range(3)]
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(result, ConnectionFailedError)
        with pytest.raises(ConnectionFailedError):
            await client.call_tool("a")


async def test_an_event_that_is_not_a_message_fails_the_request() -> None:
    async def answer(exchange: Exchange, stream: Exchange) -> None:
        if not await hello(exchange, stream):
            await stream.send("data: nonsense\n\n")

    async with (
        scripted(old_server("/messages", answer=answer)) as server,
        Client(server.url, timeout=PATIENCE) as client,
    ):
        with pytest.raises(InvalidResponseError, match="not an MCP message: nonsense"):
            await client.call_tool("a")


async def test_a_message_that_is_refused_fails_the_request() -> None:
    async def handle(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.respond(413)
        else:
            await handler(exchange)

    handler = old_server("/messages")
    async with scripted(handle) as server, Client(server.url, timeout=PATIENCE) as client:
        with pytest.raises(InvalidResponseError, match=r"does not accept tools/call .HTTP status 413"):
            await client.call_tool("a")
        await client.request("x/y")


async def test_questions_of_the_server_are_answered_at_the_endpoint() -> None:
    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"asked": params["message"]}}

    async def answer(exchange: Exchange, stream: Exchange) -> None:
        if "method" not in exchange.message:
            text = json.dumps(exchange.message["result"])
            call = server.having("tools/call")[0].message
            await stream.send_message({"id": call["id"], "result": {"content": [{"type": "text", "text": text}]}})
        elif not await hello(exchange, stream):
            await stream.send_message({"id": 7, "method": "elicitation/create", "params": {"message": "Who?"}})

    server: Scripted
    async with (
        scripted(old_server("/messages", answer=answer)) as server,
        Client(server.url, elicit=elicit, timeout=PATIENCE) as client,
    ):
        result = await client.call_tool("a")
        assert json.loads(result.text) == {"action": "accept", "content": {"asked": "Who?"}}

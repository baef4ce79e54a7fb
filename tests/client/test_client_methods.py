"""Methods of the client beside those of features: ping, levels, roots, `_meta`, and what it leaves out of lists."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import AnyUrl

from funcmcp import MCPServer
from funcmcp._transports.http.messages import HttpResponse
from funcmcp.client import Client, HTTPEndpoint
from tests.client.scripted import Exchange, handshake_server, scripted
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from funcmcp.testing import MemoryRequest

JSON = ("content-type", "application/json")
ERAS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
VALID = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
INVALID = {"type": "object", "properties": {"region": {"type": "number", "x-mcp-header": "Region"}}}


class Recorder:
    """A server that answers all methods with the same members, and keeps the messages."""

    def __init__(self, revision: str, schemas: dict[str, Any] | None = None) -> None:
        self.revision = revision
        self.messages: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.schemas = schemas or {}
        self.mismatches = 0

    async def exchange(self, request: MemoryRequest) -> HttpResponse:
        if request.method != "POST":
            return HttpResponse(405, (), b"")
        message = json.loads(await request.read(100_000))
        self.messages.append(message)
        self.headers.append(dict(request.headers))
        if "id" not in message:
            return HttpResponse(202, (), b"")
        if message["method"] == "tools/call" and self.mismatches:
            self.mismatches -= 1
            error = {"code": -32020, "message": "Header mismatch"}
            return HttpResponse(
                400, (JSON,), json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
            )
        result = {
            "supportedVersions": [self.revision],
            "protocolVersion": self.revision,
            "capabilities": {"logging": {}},
            "tools": [{"name": name, "inputSchema": schema} for name, schema in self.schemas.items()],
            "resources": [],
            "resourceTemplates": [],
            "prompts": [],
            "content": [],
            "completion": {"values": []},
        }
        return HttpResponse(
            200, (JSON,), json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        )

    def last(self, method: str) -> dict[str, Any]:
        return [message for message in self.messages if message["method"] == method][-1]

    def count(self, method: str) -> int:
        return sum(message["method"] == method for message in self.messages)


@ERAS
async def test_a_ping_is_answered_in_every_revision(revision: str) -> None:
    server = Recorder(revision)
    async with Client(server.exchange, revision=revision) as client:  # type: ignore[arg-type]
        await client.ping()
        assert server.messages[-1]["method"] == ("ping" if revision < "2026" else "server/discover")


@ERAS
async def test_every_request_may_have_members_of_meta(revision: str) -> None:
    server = Recorder(revision)
    meta = {"com.example/x": 1}
    async with Client(server.exchange, revision=revision) as client:  # type: ignore[arg-type]
        await client.list_tools(meta=meta)
        await client.list_resources(meta=meta)
        await client.list_resource_templates(meta=meta)
        await client.list_prompts(meta=meta)
        await client.complete({"type": "ref/prompt", "name": "a"}, "b", "", meta=meta)
        await client.call_tool("a", meta=meta)
        methods = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "completion/complete")
        for method in (*methods, "tools/call"):
            sent = [m for m in server.messages if m["method"] == method]
            assert any(m["params"]["_meta"].get("com.example/x") == 1 for m in sent), method


@ERAS
async def test_the_level_of_log_messages_can_be_changed(revision: str) -> None:
    server = Recorder(revision)
    async with Client(server.exchange, revision=revision, log_level="error") as client:  # type: ignore[arg-type]
        await client.set_logging_level("debug")
        await client.list_prompts()
        if revision < "2026":
            assert server.last("logging/setLevel")["params"] == {"level": "debug"}
        else:
            assert server.last("prompts/list")["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "debug"
        with pytest.raises(ValueError, match="level must be one of"):
            await client.set_logging_level("loud")


@ERAS
async def test_roots_can_be_replaced(revision: str) -> None:
    server = Recorder(revision)
    async with Client(server.exchange, revision=revision, roots=[]) as client:  # type: ignore[arg-type]
        await client.set_roots([{"uri": "file:///a"}])
        assert server.count("notifications/roots/list_changed") == (1 if revision < "2026" else 0)
        assert await client._requests.answers.to({"method": "roots/list"}) == {"roots": [{"uri": "file:///a"}]}
        if revision < "2026":
            assert server.last("initialize")["params"]["capabilities"] == {"roots": {"listChanged": True}}
    async with Client(server.exchange, revision=revision) as client:  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match="Pass roots="):
            await client.set_roots([])


async def test_a_tool_with_an_invalid_header_is_left_out_over_http(caplog: pytest.LogCaptureFixture) -> None:
    schemas = {"good": VALID, "bad\n": INVALID, "odd": None, "plain": {"type": "object"}}
    server = Recorder("2026-07-28", schemas)
    async with Client(server.exchange) as client:  # type: ignore[arg-type]
        for _ in range(2):
            assert [tool.name for tool in await client.list_tools(refresh=True)] == ["good", "odd", "plain"]
        items = await client.list_items("tools/list", "tools")
        assert len(items) == 4
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert warnings[0].startswith(
        "The client leaves out the tool bad, whose definition is not valid: x-mcp-header of 'region'"
    )


async def test_a_server_with_many_invalid_tools_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    server = Recorder("2026-07-28", {f"bad_{number}": INVALID for number in range(1_500)})
    async with Client(server.exchange) as client:  # type: ignore[arg-type]
        assert await client.list_tools() == []
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1_001


async def test_a_tool_with_an_invalid_header_stays_in_the_list_of_a_handshake_revision() -> None:
    server = Recorder("2025-11-25", {"bad": INVALID})
    async with Client(server.exchange, revision="2025-11-25") as client:  # type: ignore[arg-type]
        assert [tool.name for tool in await client.list_tools()] == ["bad"]


async def test_a_call_with_the_headers_of_an_old_list_is_sent_again_once() -> None:
    server = Recorder("2026-07-28", {"a": VALID})
    async with Client(server.exchange) as client:  # type: ignore[arg-type]
        await client.call_tool("a", {"region": "x"})
        server.mismatches = 1
        server.schemas = {
            "a": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Place"}}}
        }
        await client.call_tool("a", {"region": "x"})
        assert (server.count("tools/list"), server.count("tools/call")) == (2, 3)
        assert server.headers[-1]["mcp-param-place"] == "x"
        server.mismatches = 2
        with pytest.raises(Exception, match="Header mismatch"):
            await client.call_tool("a", {"region": "x"})


async def test_no_more_requests_run_than_connections_are_allowed() -> None:
    running, most, full = 0, 0, asyncio.Event()

    async def call(exchange: Exchange) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await full.wait()
        running -= 1
        await exchange.answer({"content": []})

    async with scripted(handshake_server(call)) as server:
        endpoint = HTTPEndpoint(server.url, max_connections=3)
        async with Client(endpoint, timeout=PATIENCE) as client:
            await asyncio.gather(*(client.call_tool("a") for _ in range(9)))
    assert most == 3


async def test_an_answer_to_the_server_needs_no_free_connection() -> None:
    async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "decline"}

    async def call(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.send_message({"id": "q", "method": "elicitation/create", "params": {"message": "Who?"}})
        while not any("result" in one.message for one in server.requests):
            await server.until("POST", len(server.having("POST")) + 1)
        await exchange.send_message({"id": exchange.message["id"], "result": {"content": []}})

    async with scripted(handshake_server(call)) as server:
        endpoint = HTTPEndpoint(server.url, max_connections=1)
        async with Client(endpoint, elicit=elicit, timeout=PATIENCE) as client:
            await client.call_tool("a")


async def test_a_call_that_waits_for_an_answer_does_not_keep_others_waiting() -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        await may_answer.wait()
        return {"action": "decline"}

    async def call(exchange: Exchange) -> None:
        if exchange.message["params"]["name"] == "asks":
            await exchange.begin_stream()
            await exchange.send_message({"id": "p", "method": "ping"})
            await exchange.send_message({"id": "q", "method": "elicitation/create", "params": {"message": "Who?"}})
            await may_answer.wait()
            await exchange.send_message({"id": exchange.message["id"], "result": {"content": []}})
        else:
            await exchange.answer({"content": []})

    async with scripted(handshake_server(call)) as server:
        endpoint = HTTPEndpoint(server.url, max_connections=1)
        async with Client(endpoint, elicit=elicit, timeout=PATIENCE) as client:
            asking = asyncio.create_task(client.call_tool("asks"))
            await asked.wait()
            for _ in range(3):
                await client.call_tool("other")
            may_answer.set()
            await asking
            await client.call_tool("other")


@pytest.mark.parametrize("count", [0, -1])
def test_a_client_needs_a_connection(count: int) -> None:
    with pytest.raises(ValueError, match="max_connections must be at least 1"):
        Client(HTTPEndpoint("http://127.0.0.1:1/mcp", max_connections=count))


PAGES: dict[str, list[dict[str, Any]]] = {
    "the same page again": [{"tools": ["a"], "nextCursor": "x"}, {"tools": ["a"], "nextCursor": "x"}],
    "an empty cursor": [{"tools": ["a"], "nextCursor": ""}, {"tools": ["a"], "nextCursor": ""}],
    "a circle": [
        {"tools": ["a"], "nextCursor": "x"},
        {"tools": ["b"], "nextCursor": "y"},
        {"tools": ["c"], "nextCursor": "x"},
    ],
}


@pytest.mark.parametrize("pages", PAGES.values(), ids=PAGES)
async def test_a_cursor_that_repeats_ends_a_list(pages: list[dict[str, Any]], caplog: pytest.LogCaptureFixture) -> None:
    results = [
        {**page, "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in page["tools"]]}
        for page in pages
    ]

    async def serve(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/list":
            await exchange.answer(results.pop(0))
        else:
            await handshake_server(lambda exchange: exchange.respond(500))(exchange)

    async with scripted(serve) as server, Client(server.url) as client:
        tools = [tool.name for tool in await client.list_tools()]
    assert tools == list(dict.fromkeys(name for page in pages for name in page["tools"]))
    assert results == []
    assert caplog.text.count("repeats") == 1


async def test_a_uri_may_be_an_object_of_pydantic() -> None:
    mcp = MCPServer("Notes")

    @mcp.resource("notes://today")
    def today() -> str:
        return "Rain."

    async with Client(mcp) as client:
        assert (await client.read_resource(AnyUrl("notes://today"))).text == "Rain."
        await client.subscribe(AnyUrl("notes://today"))
        await client.unsubscribe(AnyUrl("notes://today"))

"""Requests of a client: result types, and sessions that a server ends."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._transports.http.messages import HttpResponse
from funcmcp.client import Client, InvalidResponseError, SessionEndedError
from tests.server.parts import NEWEST, PER_REQUEST

if TYPE_CHECKING:
    from funcmcp.testing import MemoryRequest

JSON = ("content-type", "application/json")


class Sessions:
    """A server of 2025-11-25 with sessions that a test can end."""

    def __init__(self) -> None:
        self.session_id = "s0"
        self.received: list[tuple[str, str | None]] = []
        self.ends_every_session = False
        self.is_away = False

    async def exchange(self, request: MemoryRequest) -> HttpResponse:
        if request.method == "DELETE":
            return HttpResponse(204, (), b"")
        message = json.loads(await request.read(100_000))
        session_id = request.headers.get("mcp-session-id")
        self.received.append((message["method"], session_id))
        await asyncio.sleep(0)
        if message["method"] == "initialize":
            if self.is_away:
                return HttpResponse(503, (JSON,), b"")
            self.session_id = f"s{len(self.received)}"
            capabilities: dict[str, Any] = {"tools": {}, "logging": {}}
            return self.response(message, {"protocolVersion": NEWEST, "capabilities": capabilities})
        if session_id != self.session_id or (self.ends_every_session and message["method"] == "tools/list"):
            return HttpResponse(404, (JSON,), b"")
        if "id" not in message:
            return HttpResponse(202, (), b"")
        return self.response(message, {"tools": []} if message["method"] == "tools/list" else {})

    def response(self, message: dict[str, Any], result: dict[str, Any]) -> HttpResponse:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return HttpResponse(200, (JSON, ("mcp-session-id", self.session_id)), body)


async def test_requests_of_a_session_that_has_ended_are_sent_again_in_one_new_session() -> None:
    server = Sessions()
    async with Client(server.exchange, revision=NEWEST, log_level="error") as client:  # type: ignore[arg-type]
        await client.list_tools()
        before = client.session_id
        server.session_id, server.received = "ended", []
        lists = await asyncio.gather(*(client.list_tools() for _ in range(5)))
        assert lists == [[]] * 5
        methods = [method for method, _ in server.received]
        assert methods.count("initialize") == 1
        assert methods.count("logging/setLevel") == 1  # the level belongs to the session
        assert ("initialize", None) in server.received
        assert client.session_id == server.session_id != before


async def test_a_server_that_ends_the_new_session_too_is_an_error() -> None:
    server = Sessions()
    async with Client(server.exchange, revision=NEWEST) as client:  # type: ignore[arg-type]
        server.ends_every_session = True
        with pytest.raises(SessionEndedError, match="ended the session"):
            await client.list_tools()
        assert [method for method, _ in server.received].count("initialize") == 2
        server.ends_every_session = False
        assert await client.list_tools() == []


async def test_a_session_that_can_not_be_started_is_started_by_a_later_request() -> None:
    server = Sessions()
    async with Client(server.exchange, revision=NEWEST) as client:  # type: ignore[arg-type]
        server.session_id, server.is_away = "ended", True
        for _ in range(2):
            with pytest.raises(InvalidResponseError, match=r"initialize got no answer \(HTTP status 503\)"):
                await client.list_tools()
        server.is_away = False
        assert await client.list_tools() == []


async def exchange_of_riddles(request: MemoryRequest) -> HttpResponse:
    """Answer as a server of 2026-07-28, with results of a type that does not exist."""
    message = json.loads(await request.read(100_000))
    result = {"resultType": "riddle", "tools": [], "content": [], "contents": [], "messages": [], "completion": {}}
    if message["method"] == "server/discover":
        result = {"supportedVersions": [PER_REQUEST], "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return HttpResponse(200, (JSON,), body)


async def test_a_result_of_an_unknown_type_is_an_error() -> None:
    async with Client(exchange_of_riddles) as client:  # type: ignore[arg-type]
        for request in (
            client.list_tools(),
            client.read_resource("a://b"),
            client.get_prompt("a"),
            client.complete({"type": "ref/prompt", "name": "a"}, "b", ""),
        ):
            with pytest.raises(InvalidResponseError, match="the type 'riddle', which this client does not know"):
                await request
        assert (await client.request("x/y"))["resultType"] == "riddle"  # an extension may have types of its own

"""Requests of a client: result types, sessions that a server ends, and the revision that both sides have."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._transports.http.messages import HttpResponse
from funcmcp.client import Client, InvalidResponseError, SessionEndedError
from tests.patience import PATIENCE
from tests.server.parts import NEWEST, PER_REQUEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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


async def agreed(target: Any) -> str:
    """Return the revision that a client agrees on, after a call in it."""
    async with Client(target, timeout=PATIENCE) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
        return client.revision


def refusing(supported: object) -> Callable[[MemoryRequest], Awaitable[HttpResponse]]:
    """Return a server that refuses every revision, and names some in its error."""

    async def exchange(request: MemoryRequest) -> HttpResponse:
        message = json.loads(await request.read(100_000))
        error = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": supported}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        return HttpResponse(400, (JSON,), body)

    return exchange


async def test_a_server_without_a_common_revision_is_an_error_that_names_its_revisions() -> None:
    with pytest.raises(InvalidResponseError, match=r"no revision of this client\. It supports: 2098-01-01, v\\x1b9\."):
        await agreed(refusing(["2098-01-01", "v\x1b9"]))


@pytest.mark.parametrize("supported", [[PER_REQUEST], [NEWEST], [], None, "2025-11-25", [1, None, {}], {"a": 1}])
async def test_a_server_that_refuses_its_revisions_is_an_error_after_one_more_request(supported: object) -> None:
    with pytest.raises(MCPError, match="Unsupported protocol version"):
        await agreed(refusing(supported))


def discovering(supported: list[str], received: list[str]) -> Callable[[MemoryRequest], Awaitable[HttpResponse]]:
    """Return a server whose result of discovery names some revisions, and that also has a handshake."""

    async def exchange(request: MemoryRequest) -> HttpResponse:
        message = json.loads(await request.read(100_000))
        received.append(message["method"])
        if "id" not in message:
            return HttpResponse(202, (), b"")
        result: dict[str, Any] = {"supportedVersions": supported, "capabilities": {}}
        if message["method"] == "initialize":
            result = {"protocolVersion": NEWEST, "capabilities": {}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return HttpResponse(200, (JSON,), body)

    return exchange


async def test_a_server_whose_discovery_names_handshake_revisions_gets_a_handshake() -> None:
    received: list[str] = []
    async with Client(discovering([NEWEST], received)) as client:  # type: ignore[arg-type]
        assert (client.revision, received[:2]) == (NEWEST, ["server/discover", "initialize"])


async def test_a_server_whose_discovery_names_no_common_revision_is_an_error() -> None:
    received: list[str] = []
    with pytest.raises(InvalidResponseError, match=r"It supports: 2098-01-01\."):
        await agreed(discovering(["2098-01-01"], received))
    assert received == ["server/discover"]


def refusing_handshake(
    error: dict[str, Any], received: list[str]
) -> Callable[[MemoryRequest], Awaitable[HttpResponse]]:
    """Return a server of 2024-11-05 and 2025-03-26 that refuses another revision instead of choosing one."""

    async def exchange(request: MemoryRequest) -> HttpResponse:
        message = json.loads(await request.read(100_000))
        if message["method"] == "initialize":
            date = message["params"]["protocolVersion"]
            received.append(date)
            if date == "2025-03-26":
                result = {"protocolVersion": date, "capabilities": {}}
                body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                return HttpResponse(200, (JSON,), json.dumps(body).encode())
        if "id" not in message:
            return HttpResponse(202, (), b"")
        return HttpResponse(400, (JSON,), json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())

    return exchange


IN_MESSAGE = "Bad Request: Unsupported protocol version (supported versions: 2024-11-05, 2025-03-26)"
IN_DATA = {"supported": ["2024-11-05", "2025-03-26", "v9"], "requested": NEWEST}


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32000, "message": IN_MESSAGE},
        {"code": -32602, "message": "Unsupported protocol version", "data": IN_DATA},
        {"code": -32602, "message": f"Unsupported version {NEWEST}; supported: 2025-03-26"},
    ],
)
async def test_a_handshake_that_is_refused_is_repeated_in_the_newest_shared_revision(error: dict[str, Any]) -> None:
    received: list[str] = []
    async with Client(refusing_handshake(error, received)) as client:  # type: ignore[arg-type]
        assert (client.revision, received) == ("2025-03-26", [NEWEST, "2025-03-26"])


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32000, "message": "Not initialized"},
        {"code": -32603, "message": IN_MESSAGE},
        {"code": -32602, "message": f"Unsupported protocol version: {NEWEST}"},
        {"code": -32602, "message": "Unsupported protocol version", "data": {"supported": [NEWEST, PER_REQUEST, 1]}},
    ],
)
async def test_a_handshake_that_is_refused_for_good_is_not_repeated(error: dict[str, Any]) -> None:
    received: list[str] = []
    with pytest.raises(MCPError):
        await agreed(refusing_handshake(error, received))
    assert received in ([NEWEST], [])


@pytest.mark.parametrize("ends", [False, True])
async def test_the_end_of_a_session_is_sent_in_the_revision_of_the_session(ends: bool) -> None:
    server = Sessions()
    deleted: list[tuple[str | None, str | None]] = []

    async def exchange(request: MemoryRequest) -> HttpResponse:
        if request.method == "DELETE":
            deleted.append((request.headers.get("mcp-session-id"), request.headers.get("mcp-protocol-version")))
        return await server.exchange(request)

    async with Client(exchange, revision=NEWEST) as client:  # type: ignore[arg-type]
        if ends:
            server.session_id = "ended"
        await client.list_tools()
    assert deleted == [(server.session_id, NEWEST)]


async def test_errors_about_revisions_name_those_of_both_sides() -> None:
    ours = ", ".join(REVISIONS)
    with pytest.raises(InvalidResponseError, match=rf"It supports: 2098-01-01\. The client supports: {ours}\."):
        await agreed(refusing(["2098-01-01"]))
    with pytest.raises(InvalidResponseError, match=r"revision 2026-07-28 of this client\. It supports: 2025-11-25\."):
        async with Client(discovering([NEWEST], []), revision=PER_REQUEST):  # type: ignore[arg-type]
            pass

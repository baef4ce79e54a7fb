"""Callers with keys on the transports that are connections: HTTP+SSE, WebSocket, and stdio, which asks for none."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._auth.principal import Principal
from funcmcp._client.errors import AuthenticationError
from funcmcp._client.streamable_http import MemoryTransport
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.connection import Connection
from funcmcp.client import Client
from funcmcp.testing import MemoryRequest
from tests import rules
from tests.patience import PATIENCE
from tests.transports.http.endpoints.test_http_sse import HOST, JSON, OLD, Stream, call, exchange
from tests.transports.test_websocket import Opened
from tests.wire.callers import ALICE, BOB, BOBS_NEXT, CAROL, METADATA, Shop, open_shop
from tests.wire.peer import ERAS, HANDSHAKE, META, PER_REQUEST, initialize, to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.policy import Lists


def signed(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


class Signed(Stream):
    """A stream that somebody with a key opened."""

    def __init__(self, shop: Shop, key: str | None) -> None:
        self.app, self.mount, self.endpoint = shop.mcp, "", ""
        self.opened = exchange(shop.mcp, "GET", "/sse", {**HOST, **signed(key)})


async def streaming(shop: Shop, key: str | None) -> Signed:
    stream = Signed(shop, key)
    await stream.begin()
    return stream


# HTTP+SSE


@pytest.mark.parametrize(("key", "status"), [(None, 401), ("nobodys-key-at-all", 401), (CAROL, 403)])
async def test_a_stream_is_refused_when_it_is_opened(key: str | None, status: int) -> None:
    shop = open_shop(anonymous=False, scopes=("orders.read",), sse="/sse")
    answer = await exchange(shop.mcp, "GET", "/sse", {**HOST, **signed(key)}).answer()
    assert answer.status == status
    assert str(answer.header("www-authenticate")).startswith("Bearer ")
    assert answer.header("cache-control") == "no-store"


@rules.verifies(rules.THREAT_3)
async def test_a_stream_takes_messages_of_the_principal_who_opened_it_and_of_nobody_else() -> None:
    """For any other caller the stream does not exist."""
    shop = open_shop(sse="/sse")
    stream = await streaming(shop, BOB)
    begun = initialize(OLD)
    unknown = await exchange(shop.mcp, "POST", "/sse?session_id=never", {**JSON, **signed(ALICE)}, b"{}").answer()
    for key in (None, ALICE, CAROL):
        answer = await stream.post(begun, signed(key))
        assert (answer.status, answer.body) == (404, unknown.body)
    assert (await stream.post(begun, signed("nobodys-key-at-all"))).status == 401
    assert (await stream.post(begun, signed(BOB))).status == 202
    assert (await stream.hear())["result"]["protocolVersion"] == OLD
    assert (await stream.post(call("whoami"), signed(BOBS_NEXT))).status == 202
    assert (await stream.hear())["result"]["content"][0]["text"] == "bob"
    stream.opened.leave()
    await stream.opened.ended()


async def test_on_a_stream_a_refusal_is_an_error_of_the_request() -> None:
    shop = open_shop(sse="/sse")
    for key, tool, words in (
        (None, "whoami", "This needs an access token or a key."),
        (ALICE, "cancel", "More scopes are needed."),
        (ALICE, "audit", "You may not do this."),
    ):
        stream = await streaming(shop, key)
        await stream.post(initialize(OLD), signed(key))
        await stream.hear()
        await stream.post(call(tool), signed(key))
        answer = await stream.hear()
        assert (answer["id"], answer["error"]["code"], answer["error"]["message"]) == (1, -32600, words)
        await stream.post(call("hours"), signed(key))
        assert "result" in await stream.hear()
        stream.opened.leave()
        await stream.opened.ended()
    assert shop.ran == ["hours"] * 3


# WebSocket


async def accepted(shop: Shop, key: str | None) -> Opened:
    socket = Opened(shop.mcp, signed(key))
    assert (await socket.next())["type"] == "websocket.accept"
    socket.say(initialize(HANDSHAKE))
    await socket.hear()
    return socket


def asking(name: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}


@pytest.mark.parametrize(("key", "status"), [(None, 401), ("nobodys-key-at-all", 401), (CAROL, 403)])
async def test_a_websocket_is_refused_when_it_is_opened(key: str | None, status: int) -> None:
    shop = open_shop(anonymous=False, scopes=("orders.read",), websocket="/ws")
    socket = Opened(shop.mcp, signed(key))
    start = await socket.next()
    assert (start["type"], start["status"]) == ("websocket.http.response.start", status)
    assert dict(start["headers"])[b"www-authenticate"].endswith(f'resource_metadata="{METADATA}"'.encode())
    await socket.ended()


async def test_a_websocket_serves_its_principal() -> None:
    shop = open_shop(websocket="/ws")
    socket = await accepted(shop, ALICE)
    socket.say(asking("whoami"))
    assert (await socket.hear())["result"]["content"][0]["text"] == "alice"
    socket.say(asking("cancel"))
    assert (await socket.hear())["error"]["data"] == {"requiredScopes": ["orders.write", "orders.read"]}
    assert shop.ran == ["whoami"]
    await socket.leave()


async def test_a_websocket_for_nobody_in_particular_serves_what_is_for_everybody() -> None:
    shop = open_shop(websocket="/ws")
    socket = await accepted(shop, None)
    socket.say(asking("whoami"))
    assert (await socket.hear())["error"]["message"] == "This needs an access token or a key."
    socket.say(asking("hours"))
    assert (await socket.hear())["result"]["content"][0]["text"] == "nobody"
    await socket.leave()


@rules.verifies(rules.U6)
@pytest.mark.parametrize("later", [None, Principal("mallory")])
async def test_a_websocket_ends_when_its_credentials_do(later: Principal | None) -> None:
    """The credentials are verified for each message."""
    now: list[Principal | None] = [Principal("alice")]

    async def authenticate(_headers: Mapping[str, str]) -> Principal | None:
        return now[0]

    shop = Shop(MCPServer("Shop", auth=authenticate, http=HTTPOptions(websocket="/ws")))
    socket = await accepted(shop, None)
    now[0] = later
    socket.say(asking("anything"))
    closed = await socket.next()
    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)
    await socket.ended()


# A connection by itself


async def answered(connection: Connection, heard: asyncio.Queue[bytes], message: object, who: Principal | None) -> Any:
    request = MemoryRequest("POST", "/sse", [], b"")
    request.principal = who
    await connection.receive(to_bytes(message), request)
    return json.loads(await asyncio.wait_for(heard.get(), PATIENCE))


@pytest.mark.parametrize("revision", ERAS)
async def test_a_connection_decides_for_each_request_unless_it_is_local(revision: str) -> None:
    """Whoever started the process may do everything: stdio has no identities."""
    shop = open_shop()
    meta = {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": {}}
    message = asking("cancel")
    if revision == PER_REQUEST:
        message["params"]["_meta"] = meta
    for local, who, runs in ((False, None, False), (False, Principal("x"), False), (True, None, True)):
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        connection = Connection(runtime_of(shop.mcp).server, heard.put, local=local)
        if revision == HANDSHAKE:
            await answered(connection, heard, initialize(HANDSHAKE), who)
        answer = await answered(connection, heard, message, who)
        assert ("result" in answer) is runs
        await connection.aclose()
    assert shop.ran == ["cancel"]


@pytest.mark.parametrize("lists", ["auto", "open", "filtered", "closed"])
async def test_the_user_of_the_process_gets_all_of_each_list_on_stdio(lists: Lists) -> None:
    shop = open_shop(lists=lists)
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    connection = Connection(runtime_of(shop.mcp).server, heard.put, local=True)
    await answered(connection, heard, initialize(HANDSHAKE), None)
    for method, count in (("tools/list", 5), ("resources/list", 4), ("prompts/list", 2)):
        answer = await answered(connection, heard, {"jsonrpc": "2.0", "id": 1, "method": method}, None)
        (member,) = [name for name in answer["result"] if name in {"tools", "resources", "prompts"}]
        assert len(answer["result"][member]) == count
    await connection.aclose()


@pytest.mark.parametrize("lists", ["auto", "open", "filtered", "closed"])
async def test_the_user_of_the_process_has_access_to_everything_in_memory(lists: Lists) -> None:
    """The command line uses a file's server so. A client in memory without that is an anonymous caller."""
    shop = open_shop(lists=lists, tasks="memory")

    @shop.mcp.tool(scopes=["orders.write"], task="optional")
    async def ship() -> str:
        return "shipped"

    serving = runtime_of(shop.mcp)
    async with Client(MemoryTransport(serving, {}, by_user=True)) as client:
        assert {"hours", "cancel", "audit", "ship"} <= {tool["name"] for tool in await client.list_tools()}
        assert (await client.call_tool("cancel")).text == "cancelled"
        task = await client.start_tool("ship")
        assert task.task_id is not None
        assert (await task.result()).text == "shipped"
    with pytest.raises(AuthenticationError):
        async with Client(shop.mcp) as client:
            await client.call_tool("cancel")


async def test_in_a_batch_on_a_connection_each_message_is_decided_by_itself() -> None:
    shop = open_shop()
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    connection = Connection(runtime_of(shop.mcp).server, heard.put)
    await answered(connection, heard, initialize("2025-03-26"), None)
    batch = [{**asking("hours"), "id": 1}, {**asking("whoami"), "id": 2}]
    answers = {answer["id"]: answer for answer in await answered(connection, heard, batch, None)}
    assert "result" in answers[1]
    assert answers[2]["error"]["code"] == -32600
    assert shop.ran == ["hours"]
    await connection.aclose()

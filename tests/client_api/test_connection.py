"""The client against real servers, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from funcmcp import Context, HTTPOptions, ProtocolOptions
from funcmcp._app.mcp_server import MCPServer
from funcmcp._protocol.codec import decode, encode
from funcmcp._protocol.errors import InvalidParams, MCPError
from funcmcp._protocol.headers import mirrored_parameters
from funcmcp._server.catalog.features import Tool
from funcmcp._serving.composition import runtime_of
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._transports.http.messages import HttpRequest, HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS
from funcmcp.client import Client, InvalidResponseError
from tests import rules, schemas
from tests.server.parts import ASK_CAPITAL, ASK_NAME, NEWEST, PER_REQUEST, text_result, tool
from tests.transports.http.endpoint import Endpoint

if TYPE_CHECKING:
    import asyncio

    from funcmcp._client.transport import Receive
    from funcmcp._server.calls.context import RequestContext

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
THAT_ASK = pytest.mark.parametrize("revision", ["2025-06-18", NEWEST, PER_REQUEST])


def orders() -> MCPServer:
    mcp = MCPServer("orders", version="2.0.0", instructions="Ask first.")

    @mcp.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @mcp.tool
    async def refuse() -> str:
        """Refuse."""
        raise InvalidParams("No.", {"why": "just so"})

    runtime_of(mcp).server.catalog.tools.add(tool("work", work, interactive=True))
    region = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    definition = {"name": "find", "description": "Find something in a region", "inputSchema": region}
    runtime_of(mcp).server.catalog.tools.add(
        Tool("find", lambda: definition, find, mirrored=mirrored_parameters(region))
    )
    return mcp


async def work(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    for progress in (1, 2, 3):
        token = context.meta["progressToken"]
        await context.notify("notifications/progress", {"progressToken": token, "progress": progress})
    return text_result("done")


async def find(_context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
    return text_result(f"{arguments['name']} in {arguments['region']}")


async def ada(_params: dict[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ada"}}


async def paris(_params: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}


async def greet(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    name = (await context.ask({"name": ASK_NAME}))["name"]["content"]["name"]
    answers = await context.ask({"capital": ASK_CAPITAL, "roots": {"method": "roots/list", "params": {}}})
    return text_result(f"{name} {answers['capital']['content']['text']} {len(answers['roots']['roots'])}")


@EVERY_REVISION
async def test_a_client_speaks_every_revision(revision: str) -> None:
    async with Client(orders(), revision=revision) as client:
        assert client.revision == revision
        assert (client.server_info["name"], client.server_info["version"]) == ("orders", "2.0.0")
        assert client.instructions == "Ask first."
        assert "tools" in client.capabilities
        assert [tool.name for tool in await client.list_tools()] == ["add", "refuse", "work", "find"]
        result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result["content"][0]["text"] == "3"
        assert (client.session_id is None) == (revision == PER_REQUEST)


@pytest.mark.parametrize(
    ("revisions", "chosen"),
    [
        (schemas.REVISIONS, PER_REQUEST),
        ([PER_REQUEST], PER_REQUEST),
        (["2025-06-18", NEWEST], NEWEST),
        (["2024-11-05"], "2024-11-05"),
    ],
)
async def test_the_default_revision_is_the_newest_one_of_the_server(revisions: list[str], chosen: str) -> None:
    async with Client(MCPServer("orders", protocol=ProtocolOptions(revisions=revisions))) as client:
        assert client.revision == chosen


async def test_the_handshake_replaces_a_revision_that_the_server_lacks() -> None:
    async with Client(
        MCPServer("orders", protocol=ProtocolOptions(revisions=[NEWEST])), revision="2024-11-05"
    ) as client:
        assert client.revision == NEWEST


async def test_an_internal_error_of_the_server_does_not_change_the_revision() -> None:
    async def broken(_request: HttpRequest) -> HttpResponse:
        body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}'
        return HttpResponse(200, (("content-type", "application/json"),), body)

    with pytest.raises(MCPError) as caught:
        async with Client(broken):
            pass
    assert caught.value.code == -32603


async def test_leaving_ends_the_session() -> None:
    sessions = MemorySessions(limit=1)
    mcp = MCPServer("orders", sessions=sessions)
    for _ in range(3):
        async with Client(mcp, revision=NEWEST):
            assert len(sessions) == 1
        assert len(sessions) == 0


async def test_a_client_uses_the_path_of_the_endpoint() -> None:
    async with Client(MCPServer("orders", http=HTTPOptions(path="/api/orders"))) as client:
        assert await client.list_tools() == []


async def test_the_target_can_be_an_exchange() -> None:
    async with Client(Endpoint(tool("add")).exchange) as client:
        assert (await client.call_tool("add"))["content"][0]["text"] == "add"


@EVERY_REVISION
async def test_a_list_of_many_pages_is_read_to_its_end(revision: str) -> None:
    mcp = MCPServer("orders", protocol=ProtocolOptions(page_size=2))
    for number in range(7):
        runtime_of(mcp).server.catalog.tools.add(tool(f"t{number}"))
    async with Client(mcp, revision=revision) as client:
        assert [tool.name for tool in await client.list_tools()] == [f"t{number}" for number in range(7)]


@EVERY_REVISION
async def test_resources_templates_and_prompts_can_be_used(revision: str) -> None:
    mcp = MCPServer("menu", protocol=ProtocolOptions(page_size=1))

    @mcp.resource("menu://today")
    def today() -> str:
        return "Soup"

    @mcp.resource("menu://logo")
    def logo() -> bytes:
        return b""

    @mcp.resource("menu://days/{day}")
    def menu(day: str) -> str:
        return day

    @mcp.prompt
    def praise(dish: str) -> str:
        return f"Praise the {dish}."

    async with Client(mcp, revision=revision) as client:
        assert [resource.uri for resource in await client.list_resources()] == ["menu://today", "menu://logo"]
        assert [template.uri_template for template in await client.list_resource_templates()] == ["menu://days/{day}"]
        assert [prompt.name for prompt in await client.list_prompts()] == ["praise"]
        assert (await client.read_resource("menu://days/friday"))["contents"][0]["text"] == "friday"
        messages = (await client.get_prompt("praise", {"dish": "soup"}))["messages"]
        assert messages[0]["content"]["text"] == "Praise the soup."


@THAT_ASK
async def test_questions_of_resources_and_prompts_are_answered(revision: str) -> None:
    mcp = MCPServer("menu")

    class Guest(BaseModel):
        name: str

    @mcp.resource("menu://guest")
    async def guest(context: Context) -> str:
        answer = await context.elicit("Who are you?", Guest)
        return answer.content.name if answer.content else ""

    @mcp.prompt
    async def greet(context: Context) -> str:
        answer = await context.elicit("Who are you?", Guest)
        return answer.content.name if answer.content else ""

    async with Client(mcp, revision=revision, elicit=ada) as client:
        assert (await client.read_resource("menu://guest"))["contents"][0]["text"] == "Ada"
        assert (await client.get_prompt("greet"))["messages"][0]["content"]["text"] == "Ada"


@EVERY_REVISION
async def test_an_error_is_raised_with_its_code_and_data(revision: str) -> None:
    async with Client(orders(), revision=revision) as client:
        with pytest.raises(MCPError, match="No") as caught:
            await client.call_tool("refuse")
        assert (caught.value.code, caught.value.data) == (-32602, {"why": "just so"})
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("unknown")
        assert unknown.value.code == -32602


@EVERY_REVISION
async def test_a_request_can_have_any_method(revision: str) -> None:
    async with Client(orders(), revision=revision) as client:
        assert "tools" in await client.request("tools/list")
        with pytest.raises(MCPError) as caught:
            await client.request("completion/complete")
        assert caught.value.code == -32601
        with pytest.raises(MCPError) as unheard:
            await client.request("unheard/of")
        assert unheard.value.code == -32601


@EVERY_REVISION
async def test_notifications_can_be_sent(revision: str) -> None:
    async with Client(orders(), revision=revision) as client:
        await client.notify("notifications/cancelled", {"requestId": 99})
        await client.notify("notifications/roots/list_changed")


@EVERY_REVISION
@pytest.mark.parametrize("region", ["eu", "Grüße", "=?base64?", " "])
async def test_headers_repeat_the_arguments_that_a_schema_marks(revision: str, region: str) -> None:
    async with Client(orders(), revision=revision) as client:
        for name in ("pizza", "pasta"):
            result = await client.call_tool("find", {"region": region, "name": name})
            assert result["content"][0]["text"] == f"{name} in {region}"


@EVERY_REVISION
async def test_progress_reaches_the_client(revision: str) -> None:
    heard: list[dict[str, Any]] = []
    async with Client(orders(), revision=revision, on_notification=heard.append) as client:
        result = await client.call_tool("work", meta={"progressToken": "p"})
        assert result["content"][0]["text"] == "done"
    assert [message["params"]["progress"] for message in heard] == [1, 2, 3]
    for message in heard:
        schemas.validate(message, revision)


async def test_notifications_without_a_callback_are_dropped() -> None:
    async with Client(orders(), revision=NEWEST) as client:
        await client.call_tool("work", meta={"progressToken": "p"})


@THAT_ASK
async def test_the_same_callbacks_answer_questions_in_both_eras(revision: str) -> None:
    exchange = Endpoint(tool("greet", greet, interactive=True)).exchange
    async with Client(exchange, revision=revision, elicit=ada, sample=paris, roots=[]) as client:
        assert (await client.call_tool("greet"))["content"][0]["text"] == "Ada Paris 0"


@THAT_ASK
async def test_a_client_without_callbacks_gets_no_questions(revision: str) -> None:
    async with Client(Endpoint(tool("greet", greet, interactive=True)).exchange, revision=revision) as client:
        if revision == PER_REQUEST:
            with pytest.raises(MCPError) as caught:
                await client.call_tool("greet")
            assert caught.value.code == -32021
        else:
            assert (await client.call_tool("greet"))["isError"] is True


async def test_a_tool_can_ask_only_a_limited_number_of_times() -> None:
    questions = []

    async def insist(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        questions.append(1)
        await context.ask({f"question {len(questions)}": ASK_NAME})
        return text_result("never")

    exchange = Endpoint(tool("insist", insist, interactive=True)).exchange
    async with Client(exchange, revision=PER_REQUEST, elicit=ada) as client:
        with pytest.raises(InvalidResponseError, match="asked for input more than 20 times"):
            await client.call_tool("insist")
    assert len(questions) < 50


class Scripted:
    """A server that says what a test wants: one body for each request."""

    def __init__(self, *bodies: bytes) -> None:
        self.bodies = list(bodies)
        self.requests: list[bytes] = []

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(await request.read(10_000))
        return HttpResponse(200, (("content-type", "application/json"),), self.bodies.pop(0))


DISCOVERED = b'{"jsonrpc":"2.0","id":1,"result":{"capabilities":{},"supportedVersions":["2026-07-28"]}}'


async def test_a_request_without_an_answer_is_an_error() -> None:
    async with Client(Scripted(DISCOVERED, b""), revision=PER_REQUEST) as client:
        with pytest.raises(InvalidResponseError, match="no answer"):
            await client.request("tools/list")


async def test_the_info_of_a_server_that_sends_none_is_empty() -> None:
    async with Client(Scripted(DISCOVERED), revision=PER_REQUEST) as client:
        assert client.server_info == {}
        assert client.instructions is None


async def test_a_repeated_request_has_a_state_only_if_the_server_sent_one() -> None:
    questions = b'{"r":{"method":"roots/list"}}'
    asking = b'{"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":%b}}' % questions
    done = b'{"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","content":[]}}'
    listed = b'{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}'
    scripted = Scripted(DISCOVERED, listed, asking, done)
    async with Client(scripted, revision=PER_REQUEST, roots=[]) as client:
        assert (await client.call_tool("greet"))["content"] == []
    assert b"requestState" not in scripted.requests[-1]
    assert b'"inputResponses":{"r":{"roots":[]}}' in scripted.requests[-1]


@rules.verifies(rules.THREAT_49)
async def test_a_list_can_have_only_a_limited_number_of_pages() -> None:
    """A hostile server must not keep a client busy without end."""
    pages = 0

    async def endless(request: HttpRequest) -> HttpResponse:
        nonlocal pages
        message = decode(await request.read(1_000_000))
        result: dict[str, Any] = {"capabilities": {"tools": {}}}
        if message["method"] == "tools/list":
            pages += 1
            result = {"tools": [{"name": "t", "inputSchema": {}}], "nextCursor": f"{pages}"}
        return HttpResponse(200, JSON_HEADERS, encode({"jsonrpc": "2.0", "id": message["id"], "result": result}))

    async with Client(endless, revision=PER_REQUEST) as client:
        with pytest.raises(InvalidResponseError, match="tools/list has more than 1000 pages"):
            await client.list_tools()
    assert pages == 1000


def test_the_error_for_an_unknown_revision_lists_the_valid_ones() -> None:
    with pytest.raises(ValueError, match=r"revision must be one of 2024-11-05, .*; got '2025'\."):
        Client(MCPServer("x"), revision="2025")


async def test_the_error_for_a_client_that_is_not_connected_says_how_to_connect_it() -> None:
    with pytest.raises(RuntimeError, match=r"not connected\. Write: async with Client\(mcp\) as client"):
        await Client(MCPServer("x")).list_tools()


@pytest.mark.parametrize("name", ["on_notification", "on_progress", "on_log", "on_task"])
def test_an_async_callback_is_refused_because_it_would_never_run(name: str) -> None:
    async def callback(_: object) -> None:
        pass

    with pytest.raises(TypeError, match=f"^{name} must be a plain function, not an async one"):
        Client(orders(), **{name: callback})  # type: ignore[arg-type]


async def test_an_async_callback_for_one_call_is_refused_as_well() -> None:
    async def callback(_: object) -> None:
        pass

    async with Client(orders()) as client:
        with pytest.raises(TypeError, match="on_progress must be a plain function"):
            await client.call_tool("add", {"a": 1, "b": 2}, on_progress=callback)  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "error"), [(0, ValueError), (-1, ValueError), ("5", TypeError)])
def test_a_time_that_is_not_possible_is_an_error_at_once(seconds: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="timeout must be "):
        Client("http://127.0.0.1:1/mcp", timeout=seconds)


def test_an_object_whose_call_is_async_is_refused_as_a_callback() -> None:
    class Display:
        async def __call__(self, update: object) -> None:
            """Show it."""

    callback: Any = Display()
    with pytest.raises(TypeError, match="on_progress must be a plain function"):
        Client("http://127.0.0.1:1/mcp", on_progress=callback)


class Progressing:
    """A transport to a server whose calls report progress, and which notes how the end of their time moves."""

    is_http = False
    session_id: str | None = None

    def __init__(self) -> None:
        self.moves: list[float] = []
        self.limits: dict[Any, tuple[asyncio.Timeout, float]] = {}

    async def connect(self, receive: Receive) -> None:
        self._receive = receive

    async def request(self, message: dict[str, Any], headers: object) -> dict[str, Any]:
        del headers
        result: dict[str, Any] = {"protocolVersion": NEWEST, "capabilities": {}}
        if message["method"] == "tools/call":
            result = text_result("done")
            token = message["params"].get("_meta", {}).get("progressToken")
            for progress in (1, 2) if token is not None else ():
                scope, _ = self.limits[token]
                before = scope.when() or 0.0
                params = {"progressToken": token, "progress": progress}
                await self._receive({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
                self.moves.append((scope.when() or 0.0) - before)
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def send(self, message: object, headers: object) -> None:
        """Handle no notification."""

    async def aclose(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize(("resets", "moves"), [(True, 2), (False, 0)])
async def test_progress_begins_the_time_of_a_call_again(*, resets: bool, moves: int) -> None:
    transport = Progressing()
    async with Client(transport, revision=NEWEST, timeout=60, reset_on_progress=resets) as client:
        transport.limits = client._requests._time_limits
        assert (await client.call_tool("work")).text == "done"
        client._requests.restart_time("unknown")
        assert transport.limits == {}
    assert sum(move > 0 for move in transport.moves) == moves

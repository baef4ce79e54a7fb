"""Changes of lists and resources, in both eras and over each transport."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp._client import subscriptions
from funcmcp._client.subscriptions import Changes, Listener, Subscriptions
from funcmcp.client import Change, Client, ClientError, InvalidResponseError, StdioCommand
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.client.scripted import Exchange, handshake_server, scripted
from tests.client.test_standing_stream import Calls
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.lowest("httpx2 sends the requests.")

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
SERVER = '''
from funcmcp import MCPServer
from funcmcp.state import MemorySessions

mcp = MCPServer("Changing", sessions=MemorySessions())
NUMBERS = iter(range(1000))


@mcp.tool
def add_tool() -> int:
    """Add a tool."""
    number = next(NUMBERS)

    def more() -> int:
        return number

    mcp.tool(more, name=f"tool{number}")
    return number


@mcp.tool
def change(uri: str) -> None:
    """Report a change of a resource."""
    mcp.notify_resource_updated(uri)


@mcp.resource("data://a")
def a() -> str:
    return "a"


@mcp.resource("data://b")
def b() -> str:
    return "b"


@mcp.prompt
def hello() -> str:
    return "Hello"
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("changing")
    (path / "server.py").write_text(SERVER)
    return path


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder) as process:
        yield process.endpoint()


@pytest.fixture(params=["memory", "http", "stdio"])
def target(request: pytest.FixtureRequest, folder: Path) -> Any:
    if request.param == "http":
        return request.getfixturevalue("url")
    if request.param == "stdio":
        return StdioCommand(*FUNCMCP, "run", str(folder / "server.py"), "--stdio")
    namespace: dict[str, Any] = {}
    exec(SERVER, namespace)
    return namespace["mcp"]


async def next_of(changes: Changes) -> Change:
    async with asyncio.timeout(PATIENCE):
        return await anext(changes)


@ERAS
async def test_changes_are_reported_in_a_block(target: Any, revision: str) -> None:
    async with Client(target, revision=revision, timeout=PATIENCE) as client:
        listening = client.listen(tools_list_changed=True, resource_subscriptions=["data://a"])
        async with listening as changes:
            await client.call_tool("change", {"uri": "data://b"})
            await client.call_tool("change", {"uri": "data://a"})
            assert await next_of(changes) == Change("resource", "data://a")
            number = (await client.call_tool("add_tool", raise_on_error=True)).text
            assert await next_of(changes) == Change("tools")
            assert f"tool{number}" in [tool.name for tool in await client.list_tools()]
        await client.call_tool("change", {"uri": "data://a"})  # the subscription has ended, and the client goes on


@pytest.mark.slow("Streams end and begin again after a pause.")
@ERAS
async def test_callbacks_report_changes(target: Any, revision: str) -> None:
    tools, prompts, updated = Calls(), Calls(), Calls()
    callbacks: dict[str, Any] = {
        "on_tool_list_changed": tools,
        "on_prompt_list_changed": prompts,
        "on_resource_updated": updated,
    }
    async with Client(target, revision=revision, timeout=PATIENCE, **callbacks) as client:
        await client.subscribe("data://b")
        await client.subscribe("data://b")
        before = len(tools.values)
        await client.call_tool("add_tool", raise_on_error=True)
        await tools.until(before + 1)
        await client.call_tool("change", {"uri": "data://b"})
        await updated.until(1)
        await client.unsubscribe("data://b")
        await client.subscribe("data://a")
        await client.call_tool("change", {"uri": "data://b"})
        await client.call_tool("change", {"uri": "data://a"})
        await updated.until(2)
    assert updated.values == [("data://b",), ("data://a",)]
    assert prompts.values == []


@ERAS
async def test_two_blocks_with_one_resource_are_one_subscription(url: str, revision: str) -> None:
    async with (
        Client(url, revision=revision, timeout=PATIENCE) as client,
        client.listen(resource_subscriptions=["data://a"]) as outer,
    ):
        async with client.listen(resource_subscriptions=["data://a", "data://b"]) as inner:
            await client.call_tool("change", {"uri": "data://a"})
            assert await next_of(inner) == await next_of(outer) == Change("resource", "data://a")
        await client.call_tool("change", {"uri": "data://a"})
        assert await next_of(outer) == Change("resource", "data://a")


async def test_a_resource_is_subscribed_to_once_and_again_in_a_new_session() -> None:
    async def call(exchange: Exchange) -> None:
        if exchange.message["params"]["name"] == "end":
            await exchange.respond(404 if len(server.having("initialize")) == 1 else 200, b"{}")
        else:
            await exchange.answer({"content": []})

    async with scripted(handshake_server(call)) as server, Client(server.url, timeout=PATIENCE) as client:
        async with client.listen(resource_subscriptions=["data://a"]):
            async with client.listen(resource_subscriptions=["data://a"]):
                pass
            assert (len(server.having("resources/subscribe")), server.having("resources/unsubscribe")) == (1, [])
            with pytest.raises(InvalidResponseError):
                await client.call_tool("end")
            again = await server.until("resources/subscribe", 2)
            assert again.message["params"] == {"uri": "data://a"}
        assert len(server.having("resources/unsubscribe")) == 1


def listening_server(*scripts: Any, accepted: dict[str, Any] | None = None) -> Any:
    """Return a server of 2026-07-28 whose streams of changes follow scripts, the last one again and again."""
    numbers = iter(range(1000))

    async def handle(exchange: Exchange) -> None:
        message = exchange.message
        if message["method"] == "server/discover":
            capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
            await exchange.answer({"supportedVersions": ["2026-07-28"], "capabilities": capabilities})
        elif message["method"] != "subscriptions/listen":
            await exchange.answer({"content": []})
        else:
            script = scripts[min(next(numbers), len(scripts) - 1)]
            if script == "refuse":
                body = b'{"jsonrpc": "2.0", "id": %d, "error": {"code": -32601, "message": "no"}}' % message["id"]
                await exchange.respond(404, body)
                return
            if script in ("away", "unknown"):
                await exchange.respond(503 if script == "away" else 404, b"<html>", kind="text/html")
                return
            await exchange.begin_stream()
            if script != "silent":
                notifications = message["params"]["notifications"] if accepted is None else accepted
                meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
                params = {"notifications": notifications, "_meta": meta}
                await exchange.send_message({"method": "notifications/subscriptions/acknowledged", "params": params})
            if script == "end":
                await exchange.send_message({"id": message["id"], "result": {"resultType": "complete"}})
                exchange.close()
            elif script == "reset":
                exchange.reset()
            else:
                await asyncio.Event().wait()

    return handle


@pytest.mark.slow("Streams end and begin again after a pause.")
@pytest.mark.parametrize("how", ["end", "reset"])
async def test_a_stream_of_changes_that_ends_begins_again_and_reports_what_may_have_changed(how: str) -> None:
    async with (
        scripted(listening_server(how, "stay")) as server,
        Client(server.url, timeout=PATIENCE) as client,
        client.listen(tools_list_changed=True, resource_subscriptions=["data://a"]) as changes,
    ):
        assert {await next_of(changes), await next_of(changes)} == {Change("tools"), Change("resource", "data://a")}
        first, second = server.having("subscriptions/listen")
        expected = {"toolsListChanged": True, "resourceSubscriptions": ["data://a"]}
        assert first.message["params"]["notifications"] == second.message["params"]["notifications"] == expected
        assert first.message["id"] != second.message["id"]


async def test_the_next_stream_begins_before_the_last_one_ends() -> None:
    async with scripted(listening_server("stay")) as server, Client(server.url, timeout=PATIENCE) as client:
        await client.subscribe("data://a")
        await client.subscribe("data://b")
        listens = [one.message["params"]["notifications"] for one in server.having("subscriptions/listen")]
        assert listens == [{"resourceSubscriptions": ["data://a"]}, {"resourceSubscriptions": ["data://a", "data://b"]}]


@pytest.mark.parametrize(
    ("script", "accepted", "error"),
    [
        ("refuse", None, MCPError),
        ("stay", {}, ClientError),
        ("stay", {"resourceSubscriptions": []}, ClientError),
        ("silent", None, TimeoutError),
    ],
)
async def test_a_server_that_does_not_report_changes_is_an_error(
    script: str, accepted: dict[str, Any] | None, error: type[Exception]
) -> None:
    seconds = 0.5 if script == "silent" else PATIENCE
    async with (
        scripted(listening_server(script, accepted=accepted)) as server,
        Client(server.url, timeout=PATIENCE) as client,
    ):
        for _ in range(2):
            with pytest.raises(error):
                await client.subscribe("data://a", timeout=seconds)
        with pytest.raises(error):
            async with client.listen(resource_subscriptions=["data://a"], timeout=seconds):
                pass
        await client.request("x/y")


@pytest.mark.parametrize(
    ("scripts", "was_open"),
    [(["refuse"], False), (["end", "refuse"], True), (["reset", "away", "unknown"], True)],
)
async def test_a_server_that_refuses_to_report_changes_is_noticed(
    scripts: list[str], was_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "delay_seconds", lambda *_: 0.0)
    ends: asyncio.Queue[bool] = asyncio.Queue()
    async with scripted(listening_server(*scripts)) as server, Client(server.url, timeout=PATIENCE) as client:
        followed = Subscriptions(client._requests, lambda _: None, needs_stream=False, on_end=ends.put_nowait)
        followed.include(Listener(lambda _: None, ["tools"]))
        client._requests._on_notification = lambda message: followed.notified(message["method"], message["params"])
        followed.session_began()
        assert await ends.get() is was_open
        await followed.aclose()


@pytest.mark.slow("Streams end and begin again after a pause.")
async def test_a_list_whose_changes_the_server_does_not_report_takes_no_others_away() -> None:
    tools, prompts = Calls(), Calls()
    async with (
        scripted(listening_server("end", "stay")) as server,
        Client(server.url, on_tool_list_changed=tools, on_prompt_list_changed=prompts, timeout=PATIENCE),
    ):
        listen = await server.until("subscriptions/listen")
        assert listen.message["params"]["notifications"] == {"toolsListChanged": True}
        await tools.until(1)


async def test_a_server_without_subscriptions_refuses_them(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("Still")
    async with Client(mcp, revision="2025-11-25") as client:
        with pytest.raises(MCPError):
            await client.subscribe("data://missing")
        with pytest.raises(TypeError, match="a list of URIs"):
            async with client.listen(resource_subscriptions="data://a"):
                pass
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("uri", "follows"),
    [("a://b", True), ("a://b/c", True), ("a://b#c", True), ("a://bc", False), ("a://", False), ("x", False)],
)
def test_a_part_of_a_resource_belongs_to_it(uri: str, follows: bool) -> None:
    assert Listener(print, [], ["a://b"]).follows(Change("resource", uri)) is follows


async def test_equal_changes_are_one_and_too_many_are_an_error() -> None:
    changes = Changes()
    for _ in range(3):
        changes.add(Change("tools"))
    assert await next_of(changes) == Change("tools")
    for number in range(2000):
        changes.add(Change("resource", f"a://{number}"))
    for number in range(1024):
        assert (await next_of(changes)).uri == f"a://{number}"
    with pytest.raises(InvalidResponseError, match="More than 1024 changes wait"):
        await next_of(changes)


async def test_a_client_of_a_server_in_memory_closes_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def book() -> None:
        """Book a trip."""

    mcp = MCPServer("Changing")
    async with (
        Client(mcp, revision="2026-07-28", on_tool_list_changed=lambda: None) as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        mcp.tool(book)
        assert await anext(changes) == Change("tools")
    assert caplog.text == ""

"""An upstream that speaks both eras gets the requests of a client in the era of the client."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import mcp
import mcp_types as types
import pytest
from mcp.server.mcpserver import Context  # noqa: TC002 - the SDK reads the annotations
from pydantic import BaseModel

import funcmcp
from funcmcp._upstreams import links as upstream_links
from funcmcp.client import Client, ClientError, StdioCommand
from funcmcp.state import MemorySessions
from funcmcp.upstreams import Upstream
from tests.patience import PATIENCE
from tests.upstreams import test_forwarding, test_links, test_subscriptions, test_upstream_tasks
from tests.upstreams.conftest import Pair, serving
from tests.upstreams.everything import ERAS, Everything
from tests.upstreams.scripted import ScriptedServer, scripted_server

if TYPE_CHECKING:
    from pathlib import Path

    from tests.upstreams.scripted import Exchange

HANDSHAKE, PER_REQUEST = ERAS.values()

for module in (test_forwarding, test_subscriptions, test_upstream_tasks):
    globals().update({name: test for name, test in vars(module).items() if name.startswith("test_")})
del globals()["test_a_cancelled_task_is_cancelled_at_the_upstream"]  # its calls are no tasks


@pytest.fixture
async def pair() -> Pair:
    """Return a client of the handshake era and an upstream of both, whose calls become tasks as in 2026-07-28."""
    events: asyncio.Queue[str] = asyncio.Queue()
    return Pair((HANDSHAKE, PER_REQUEST), Everything([*ERAS.values()], events.put_nowait).mcp, events)


@pytest.fixture
def shared_pair(pair: Pair) -> Pair:
    """Return the same, with a session for each client."""
    return pair


class Name(BaseModel):
    name: str


def official_server() -> mcp.server.MCPServer:
    """Return a server on the official SDK whose tools send requests to the client."""
    server = mcp.server.MCPServer("Official", log_level="ERROR")

    @server.tool()
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Your name?", Name)
        return f"{answer.action}: {answer.data.name if answer.action == 'accept' else None}"

    @server.tool()
    async def sample(ctx: Context) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hi"))
        result = await ctx.session.create_message([message], max_tokens=10)
        return str(result.content.model_dump()["text"])

    @server.tool()
    async def roots(ctx: Context) -> str:
        return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)

    @server.tool()
    async def say(ctx: Context) -> str:
        await ctx.session.send_log_message("info", "said", related_request_id=ctx.request_id)
        return "said"

    return server


TOOLS = ("ask", "sample", "roots", "say")


async def answers_of(url: str, mode: str) -> list[tuple[str, str]]:
    """Return what an official client gets from each tool, and the log messages."""
    logged: list[tuple[str, str]] = []

    async def elicit(_: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"name": params.message})

    async def answer(*_: Any) -> types.CreateMessageResult:
        return types.CreateMessageResult(
            role="assistant", content=types.TextContent(type="text", text="Hello"), model="test"
        )

    async def list_roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///data"})])

    async def log(params: Any) -> None:
        logged.append(("log", str(params.data)))

    options: Any = {"elicitation_callback": elicit, "sampling_callback": answer, "list_roots_callback": list_roots}
    async with mcp.Client(url, mode=mode, read_timeout_seconds=PATIENCE, logging_callback=log, **options) as client:
        results = []
        for tool in TOOLS:
            try:
                result = await client.call_tool(tool, {})
            except mcp.MCPError as error:
                results.append((tool, str(error)))
            else:
                results.append((tool, result.content[0].model_dump()["text"]))
        return results + logged


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_an_official_client_gets_from_an_official_server_what_it_gets_without_the_proxy() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mcp.MCPDeprecationWarning)
        async with serving(official_server().streamable_http_app()) as upstream:
            proxy = funcmcp.MCPServer("Proxy", sessions=MemorySessions())
            proxy.mount(Upstream(upstream))
            async with serving(proxy) as url:
                for mode in ("legacy", "2026-07-28"):
                    direct, proxied = await answers_of(upstream, mode), await answers_of(url, mode)
                    assert proxied == direct
                    answers = {("ask", "accept: Your name?"), ("sample", "Hello"), ("roots", "file:///data")}
                    assert answers & {*proxied} == (answers if mode == "legacy" else set())


Answer = Callable[[ScriptedServer, "Exchange"], Awaitable[None]]


def both_eras(scripted: ScriptedServer, initialize: Answer | None, supported: list[str]) -> None:
    """Let a server answer ``server/discover``, requests without a session, and ``initialize`` in its own way."""
    answer = scripted._answer
    scripted.missing = set()

    async def answer_both(exchange: Exchange, method: str) -> None:
        version = exchange.headers.get("mcp-protocol-version")
        if method == "server/discover":
            exchange.result({"supportedVersions": supported, "capabilities": {"tools": {}}})
        elif "mcp-session-id" in exchange.headers and exchange.headers["mcp-session-id"] not in scripted.open_sessions:
            exchange.write("404 Not Found")
        elif method == "tools/call" and version == PER_REQUEST:
            exchange.text("no session")
        elif method == "tools/list":
            exchange.result({"tools": [{"name": "act", "inputSchema": {"type": "object"}}]})
        elif method == "initialize" and initialize is not None:
            await initialize(scripted, exchange)
        else:
            await answer(exchange, method)

    scripted._answer = answer_both  # type: ignore[method-assign]


def refusal(code: int, status: str = "200 OK", **data: Any) -> Answer:
    async def answer(_: ScriptedServer, exchange: Exchange) -> None:
        error = {"code": code, "message": "refused", **({"data": data} if data else {})}
        body = json.dumps({"jsonrpc": "2.0", "id": exchange.message["id"], "error": error}).encode()
        exchange.write(status, body)

    return answer


def plain_status(status: str) -> Answer:
    async def answer(_: ScriptedServer, exchange: Exchange) -> None:
        exchange.write(status, b"no", "text/plain")

    return answer


async def stateless(_: ScriptedServer, exchange: Exchange) -> None:
    info = {"name": "scripted", "version": "1"}
    exchange.result({"protocolVersion": HANDSHAKE, "capabilities": {"tools": {}}, "serverInfo": info})


async def newer(_: ScriptedServer, exchange: Exchange) -> None:
    info = {"name": "scripted", "version": "1"}
    exchange.result({"protocolVersion": PER_REQUEST, "capabilities": {"tools": {}}, "serverInfo": info})


async def silent(_: ScriptedServer, exchange: Exchange) -> None:
    del exchange


REFUSALS: dict[str, Answer] = {
    "unknown method": refusal(-32601),
    "invalid params": refusal(-32602, "400 Bad Request", supported=[PER_REQUEST]),
    "unsupported revision": refusal(-32022, "400 Bad Request", supported=[PER_REQUEST], requested=HANDSHAKE),
    "bad request": plain_status("400 Bad Request"),
    "not found": plain_status("404 Not Found"),
    "no session": stateless,
    "a revision without sessions": newer,
    "silence": silent,
}


async def act(client: Client) -> str:
    return (await client.call_tool("act")).text


def count_of(scripted: ScriptedServer, method: str) -> int:
    return sum(name == method for name, _ in scripted.requests)


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_links, "FIRST_SESSION_SECONDS", 0.2)


@pytest.mark.usefixtures("short_wait")
@pytest.mark.parametrize("initialize", REFUSALS.values(), ids=REFUSALS)
async def test_an_upstream_that_refuses_the_handshake_is_asked_once_for_all_clients(initialize: Answer) -> None:
    proxy = funcmcp.MCPServer("Proxy")
    async with scripted_server() as scripted:
        both_eras(scripted, initialize, [PER_REQUEST])
        upstream = Upstream(scripted.url, name="scripted")
        proxy.mount(upstream)
        async with proxy.lifespan():

            async def use() -> str:
                async with Client(proxy, revision=HANDSHAKE) as client:
                    return await act(client)

            assert set(await asyncio.gather(*(use() for _ in range(5)))) == {"no session"}
            assert await use() == "no session"
            links = upstream._links
            assert (upstream.status.state, upstream.status.sessions, links._open_budget().used) == ("connected", 1, 0)
        assert count_of(scripted, "initialize") == 1
        assert scripted.open_sessions == set()


@pytest.mark.parametrize("supported", [[PER_REQUEST], [PER_REQUEST, HANDSHAKE]], ids=["unnamed", "named"])
@pytest.mark.parametrize("sessions", ["client", "call", "shared"])
async def test_each_client_has_a_session_in_its_own_era(sessions: Any, supported: list[str]) -> None:
    async with scripted_server() as scripted:
        both_eras(scripted, None, supported)
        proxy = funcmcp.MCPServer("Proxy")
        upstream = Upstream(scripted.url, sessions=sessions)
        proxy.mount(upstream)
        async with (
            Client(proxy, revision=HANDSHAKE) as first,
            Client(proxy, revision=HANDSHAKE) as second,
            Client(proxy, revision=PER_REQUEST) as newer,
        ):
            seen = [await asyncio.gather(*map(act, (first, second, newer))) for _ in range(2)]
            assert {texts[2] for texts in seen} == {"no session"}
            used = {(texts[index]) for texts in seen for index in (0, 1)}
            assert len(used) == {"client": 2, "call": 4, "shared": 1}[sessions]
            assert ("no session" in used) is (sessions == "shared")
        assert count_of(scripted, "server/discover") == 1
        assert count_of(scripted, "initialize") == (0 if sessions == "shared" else len(used))
        assert count_of(scripted, "tools/list") == 2  # for clients with and without capabilities, in one era
        assert scripted.open_sessions == set()


async def test_a_session_that_can_not_begin_now_is_tried_again() -> None:
    async with scripted_server() as scripted:
        answers: list[Answer | None] = [refusal(-32603), plain_status("500 Internal Server Error"), None]

        async def initialize(scripted: ScriptedServer, exchange: Exchange) -> None:
            answer = answers.pop(0)
            if answer is not None:
                await answer(scripted, exchange)
            else:
                await ScriptedServer._answer(scripted, exchange, "initialize")

        both_eras(scripted, initialize, [PER_REQUEST])
        proxy = funcmcp.MCPServer("Proxy")
        proxy.mount(Upstream(scripted.url, name="scripted"))
        async with Client(proxy, revision=HANDSHAKE) as client:
            assert "refuses the connection" in await act(client)
            assert "not valid" in await act(client)
            assert await act(client) == await act(client) == "session-1"


async def test_any_instance_goes_on_with_the_session_of_an_upstream_of_both_eras(tmp_path: Path) -> None:
    async with scripted_server() as scripted:
        both_eras(scripted, None, [PER_REQUEST])
        async with (
            test_links.instances(scripted.url, tmp_path, 2) as desks,
            Client(test_links.Balancer(desks), revision=HANDSHAKE) as client,
            Client(test_links.Balancer(desks), revision=PER_REQUEST) as newer,
        ):
            assert {await test_links.act(client) for _ in range(4)} == {"session-1"}
            assert {await test_links.act(newer) for _ in range(2)} == {"no session"}
        assert scripted.open_sessions == set()


async def test_a_session_over_which_nothing_is_watched_any_more_can_end() -> None:
    proxy = funcmcp.MCPServer("Proxy", sessions=MemorySessions())
    upstream = Upstream(Everything([*ERAS.values()], print).mcp)
    proxy.mount(upstream)
    async with Client(proxy, revision=HANDSHAKE) as client:
        await client.list_resources()
        await client.subscribe("memo://note")
        (link,) = upstream._links._of_loop()._links.values()
        assert (link.is_busy, link.revision.date) == (True, HANDSHAKE)
        await client.unsubscribe("memo://note")
        async with asyncio.timeout(PATIENCE):
            while link.is_busy:  # noqa: ASYNC110 - a link has no event
                await asyncio.sleep(0.001)


PROGRAM = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        sys.exit(1)
    result = {"content": [{"type": "text", "text": "done"}], "resultType": "complete"}
    if message["method"] == "server/discover":
        result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "act", "inputSchema": {"type": "object"}}], "ttlMs": 60000}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_a_process_that_ends_when_it_gets_a_handshake_is_used_without_one() -> None:
    proxy = funcmcp.MCPServer("Proxy")
    upstream = Upstream(StdioCommand(sys.executable, "-I", "-S", "-c", PROGRAM))
    proxy.mount(upstream)
    async with Client(proxy, revision=HANDSHAKE) as client, Client(proxy, revision=HANDSHAKE) as other:
        assert [await act(client), await act(other)] == ["done", "done"]
        assert (upstream.status.state, upstream.status.failures) == ("connected", 0)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_process_of_both_eras_asks_a_client_of_the_handshake(tmp_path: Path) -> None:
    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": params["message"]}}

    program = tmp_path / "server.py"
    program.write_text(OFFICIAL)
    proxy = funcmcp.MCPServer("Proxy")
    proxy.mount(Upstream(StdioCommand(sys.executable, str(program))))
    async with Client(proxy, revision=HANDSHAKE, elicit=elicit) as client:
        assert (await client.call_tool("ask")).text == "accept: Your name?"
    async with Client(proxy, revision=PER_REQUEST, elicit=elicit) as client:
        with pytest.raises(funcmcp.MCPError, match="no back-channel"):
            await client.call_tool("ask")


OFFICIAL = """
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

class Name(BaseModel):
    name: str

server = MCPServer("Official", log_level="ERROR")

@server.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Your name?", Name)
    return f"{answer.action}: {answer.data.name}"

server.run()
"""


async def test_a_client_of_the_handshake_asks_for_a_task_in_the_era_of_the_lists(pair: Pair) -> None:
    await test_upstream_tasks.connected(pair)
    async with pair.connect() as client:
        created = await client.request("tools/call", {"name": "up_report", "arguments": {"topic": "tea"}, "task": {}})
        task = await client.get_task(created["task"]["taskId"])
        assert (await task.result()).text == "All about tea"


@pytest.mark.parametrize("first", ["handshake", "2026-07-28"])
async def test_a_server_that_is_another_version_now_is_asked_again_when_its_lists_are_read(first: str) -> None:
    proxy = funcmcp.MCPServer("Proxy")
    async with scripted_server() as scripted:
        answer = scripted._answer
        upstream = Upstream(scripted.url, name="scripted")
        proxy.mount(upstream)

        def switch(to: str) -> None:
            if to == "handshake":
                scripted._answer, scripted.missing = answer, {"server/discover"}  # type: ignore[method-assign]
            else:
                scripted.open_sessions.clear()
                both_eras(scripted, refusal(-32601), [PER_REQUEST])

        async def use() -> str:
            async with Client(proxy, revision=HANDSHAKE) as client:
                assert [tool.name for tool in await client.list_tools()] == ["act"]
                return await act(client)

        switch(first)
        async with proxy.lifespan():
            before = await use()
            switch("2026-07-28" if first == "handshake" else "handshake")
            with pytest.raises((ClientError, funcmcp.MCPError)):
                await upstream.list(None)
            assert upstream.status.list_error is not None
            await upstream.list(None)
            after = await use()
    assert (before == "no session", after == "no session") == (first != "handshake", first == "handshake")


# The option `era`, and how the server introduces itself


def introducing() -> funcmcp.MCPServer:
    """Return a server of both eras whose tool says in which revision it was called, and by whom."""
    mcp = funcmcp.MCPServer("Introducing")

    @mcp.tool
    def who(context: funcmcp.Context) -> str:
        return f"{context.protocol_version} {context.client_info.get('name')}"

    return mcp


@pytest.mark.parametrize(
    ("era", "expected"),
    [
        (None, {"2025-11-25": "2025-11-25", "2026-07-28": "2026-07-28"}),
        ("handshake", {"2025-11-25": "2025-11-25", "2026-07-28": "2025-11-25"}),
        ("newest", {"2025-11-25": "2026-07-28", "2026-07-28": "2026-07-28"}),
    ],
)
async def test_an_author_chooses_the_era_of_an_upstream(era: Any, expected: dict[str, str]) -> None:
    gateway = funcmcp.MCPServer("Gateway")
    gateway.mount(Upstream(introducing(), era=era, client_info={"name": "gateway", "version": "1.0"}))
    for revision, other in expected.items():
        async with Client(gateway, revision=revision) as client:
            assert (await client.call_tool("who")).content[0].text == f"{other} gateway"


async def test_an_upstream_without_the_newest_revision_has_sessions() -> None:
    old = funcmcp.MCPServer("Old", protocol=funcmcp.ProtocolOptions(revisions=["2025-11-25"]))

    @old.tool
    def work() -> str:
        return "done"

    gateway = funcmcp.MCPServer("Gateway")
    gateway.mount(Upstream(old, era="newest"))
    async with Client(gateway) as client:
        assert (await client.call_tool("work")).content[0].text == "done"


@pytest.mark.parametrize(
    ("options", "text"),
    [({"era": "old"}, "era must be 'handshake', 'newest' or None"), ({"client_info": {"name": "a"}}, "needs a name")],
)
def test_an_era_or_an_introduction_that_is_not_valid_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Upstream(introducing(), **options)

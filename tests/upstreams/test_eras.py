"""An upstream that speaks both eras gets the requests of a client in the era of the client."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import mcp
import mcp_types as types
import pytest
from mcp.server.mcpserver import Context
from pydantic import BaseModel

import funcmcp
from funcmcp.state import MemorySessions
from funcmcp.upstreams import Upstream
from tests.patience import PATIENCE
from tests.upstreams import test_forwarding, test_subscriptions, test_upstream_tasks
from tests.upstreams.conftest import Pair, serving
from tests.upstreams.everything import ERAS, Everything

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
    counts: dict[int, int] = {}

    @server.tool()
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Your name?", Name)
        return f"{answer.action}: {answer.data.name if answer.action == 'accept' else None}"

    @server.tool()
    async def sample(ctx: Context) -> str:
        message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hi"))
        result = await ctx.session.create_message([message], max_tokens=10)
        return str(result.content.text)

    @server.tool()
    async def roots(ctx: Context) -> str:
        return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)

    @server.tool()
    async def say(ctx: Context) -> str:
        await ctx.session.send_log_message("info", "said", related_request_id=ctx.request_id)
        return "said"

    @server.tool()
    async def count(ctx: Context) -> str:
        key = id(ctx.session._connection)
        counts[key] = counts.get(key, 0) + 1
        return str(counts[key])

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
        return types.ListRootsResult(roots=[types.Root(uri="file:///data")])

    async def log(params: Any) -> None:
        logged.append(("log", str(params.data)))

    options: Any = {"elicitation_callback": elicit, "sampling_callback": answer, "list_roots_callback": list_roots}
    async with mcp.Client(url, mode=mode, read_timeout_seconds=PATIENCE, logging_callback=log, **options) as client:
        results = []
        for tool in TOOLS:
            result = await client.call_tool(tool, {})
            results.append((tool, "failed" if result.is_error else result.content[0].text))
        return results + logged


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
                    has_requests = mode == "legacy"
                    assert (("ask", "accept: Your name?") in proxied) is has_requests

"""A client that cancels a call cancels it in the upstream, and no other one."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client

from tests.patience import PATIENCE
from tests.proxy.published import script
from tests.proxy.serving import proxy
from tests.serving import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow("Many clients call through several processes.")

WAITING = '''
"""Calls that wait, and what became of them."""

import anyio

from mcp.server.mcpserver import MCPServer

server = MCPServer("Waiting", log_level="WARNING")
started, cancelled = [], []
released = anyio.Event()


@server.tool()
async def wait(label: str) -> str:
    """Wait until all calls are released."""
    started.append(label)
    try:
        await released.wait()
    except anyio.get_cancelled_exc_class():
        cancelled.append(label)
        raise
    return label


@server.tool()
async def seen() -> dict[str, list[str]]:
    """Return the calls that have started, and those that were cancelled."""
    return {"started": sorted(started), "cancelled": cancelled}


@server.tool()
async def release() -> str:
    """Let all calls return."""
    released.set()
    return "released"


if __name__ == "__main__":
    server.run()
app = server.streamable_http_app()
'''
CALLS = 100
FIRST, LAST = "call 000", f"call {CALLS:03d}"


@contextmanager
def waiting(transport: str, folder: Path) -> Iterator[dict[str, Any]]:
    command = script(WAITING, folder)
    if transport == "stdio":
        yield {"command": command, "options": {"sessions": "shared"}}  # one process knows the calls of all clients
        return
    with serve(Path(command[-1]), attribute="app") as served:
        yield {"url": served.url, "endpoint": {"max_connections": 2 * CALLS}}


async def seen(client: Client) -> dict[str, list[str]]:
    result = await client.call_tool("seen", {})
    found: dict[str, list[str]] = json.loads(result.content[0].text)  # type: ignore[union-attr]
    return found


async def until(client: Client, reached: Callable[[dict[str, list[str]]], bool]) -> dict[str, list[str]]:
    """Ask the upstream until it has seen what is expected."""
    async with asyncio.timeout(PATIENCE):
        while not reached(state := await seen(client)):  # noqa: ASYNC110 - the upstream is another process
            await asyncio.sleep(0.01)
    return state


@pytest.mark.parametrize(
    ("label", "transport", "mode"),
    [
        (FIRST, "stdio", "legacy"),
        (LAST, "stdio", "2026-07-28"),
        (LAST, "http", "legacy"),
        (FIRST, "http", "2026-07-28"),
    ],
)
async def test_one_cancelled_call_among_a_hundred(label: str, transport: str, mode: str, tmp_path: Path) -> None:
    labels = [f"call {number:03d}" for number in range(CALLS + 1)]
    with waiting(transport, tmp_path) as row, proxy(row) as served:
        async with AsyncExitStack() as stack:
            # The official client has at most 100 connections.
            clients = [Client(served.url, mode=mode, read_timeout_seconds=PATIENCE) for _ in range(3)]
            watching, *calling = [await stack.enter_async_context(client) for client in clients]
            calls = {
                name: asyncio.create_task(calling[number % 2].call_tool("wait", {"label": name}))
                for number, name in enumerate(labels)
            }
            await until(watching, lambda state: state["started"] == labels)
            calls[label].cancel()
            state = await until(watching, lambda state: bool(state["cancelled"]))
            assert state["cancelled"] == [label]
            assert not any(call.done() for name, call in calls.items() if name != label)
            await watching.call_tool("release", {})
            results = await asyncio.gather(*calls.values(), return_exceptions=True)
            assert (await seen(watching))["cancelled"] == [label]
    others = [name for name in labels if name != label]
    texts = [result.content[0].text for result in results if not isinstance(result, BaseException)]  # type: ignore[union-attr]
    assert texts == others
    assert [type(result) for result in results if isinstance(result, BaseException)] == [asyncio.CancelledError]

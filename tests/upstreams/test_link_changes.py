"""What happens to the lists of an upstream when the connection that reports their changes is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp._client import standing_stream
from funcmcp._client import subscriptions as client_subscriptions
from funcmcp._serving.composition import runtime_of
from funcmcp._upstreams import subscriptions
from funcmcp.client import Client, StdioCommand
from funcmcp.state import MemorySessions
from funcmcp.upstreams import Upstream
from tests.patience import PATIENCE
from tests.upstreams.changing import HANDSHAKE, HTTP_SSE, NEWEST, Changing, changing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

EVERY_SERVER = pytest.mark.parametrize("revision", [HANDSHAKE, HTTP_SSE, NEWEST])
STDIO_SERVER = Path(__file__).with_name("stdio_server.py")


@pytest.fixture(autouse=True)
def _no_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open streams again and read lists without a pause."""
    for module in (standing_stream, client_subscriptions, subscriptions):
        monkeypatch.setattr(module, "delay_seconds", lambda *_: 0.0)


class Desk:
    """A server with one upstream, and a client of it.

    Args:
        target: The upstream.
        listens: Whether the client listens to changes.
        options: Those of the upstream.
    """

    def __init__(self, target: Any, *, listens: bool = False, **options: Any) -> None:
        self.mcp = MCPServer("Desk", sessions=MemorySessions())
        self.upstream = Upstream(target, name="changing", **options)
        self.mcp.mount(self.upstream)
        self.changes: asyncio.Queue[None] = asyncio.Queue()
        self.client = self.connect(listens=listens)

    def connect(self, *, listens: bool = False) -> Client:
        """Return a client."""
        options: Any = {"on_tool_list_changed": lambda: self.changes.put_nowait(None)} if listens else {}
        return Client(self.mcp, revision="2025-11-25", **options)

    def refresh(self) -> float | None:
        """Return the seconds after which the lists are read again."""
        return self.upstream.refresh

    async def tools(self) -> list[str]:
        """Return the names of the tools that the client sees."""
        return [tool.name for tool in await self.client.list_tools(refresh=True)]

    async def until(self, *tools: str) -> None:
        """List the tools until they are those."""
        while await self.tools() != list(tools):  # noqa: ASYNC110 - nothing else may ask for the list
            await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def desk(target: Any, **options: Any) -> AsyncIterator[Desk]:
    desk = Desk(target, **options)
    async with asyncio.timeout(PATIENCE), desk.client:
        yield desk


def stdio_command(folder: Path, *tools: str) -> StdioCommand:
    """Return the command of a process that serves the tools in a file, and writes its number when it lists them."""
    write_tools(folder, *tools)
    return StdioCommand(sys.executable, str(STDIO_SERVER), env={"CHANGING_FOLDER": str(folder)})


def write_tools(folder: Path, *tools: str) -> None:
    (folder / "tools").write_text(" ".join(tools))


def has_listed(folder: Path) -> bool:
    """Return whether a process has listed its tools since the last ones were ended."""
    return any(folder.glob("listed-*"))


def end_processes(folder: Path) -> None:
    """End the processes over which lists were read."""
    for file in folder.glob("listed-*"):
        file.unlink()
        with contextlib.suppress(ProcessLookupError):  # that of the list for clients with capabilities has ended
            os.kill(int(file.name.partition("-")[2]), signal.SIGKILL)


@EVERY_SERVER
async def test_an_upstream_that_returns_with_other_tools_is_listed_again(revision: str) -> None:
    async with changing(revision, "a", "b") as server, desk(server.url) as made:
        assert await made.tools() == ["a", "b"]
        server.start_again("b", "c")
        await made.until("b", "c")
        assert (await made.client.call_tool("c")).text == "done"


@EVERY_SERVER
async def test_listening_clients_are_notified_without_a_request_if_lists_differ(revision: str) -> None:
    async with changing(revision, "a") as server, desk(server.url, listens=True) as made:
        assert await made.tools() == ["a"]
        feature = runtime_of(made.mcp).server.catalog.tools.get("a")
        lists = server.lists
        server.start_again("a")
        await server.http.until("tools/list", lists + 1)
        assert await made.tools() == ["a"]
        assert runtime_of(made.mcp).server.catalog.tools.get("a") is feature
        assert made.changes.empty()
        server.start_again("a", "b")
        await made.changes.get()
        assert await made.tools() == ["a", "b"]
        assert made.changes.empty()


async def test_a_process_that_is_started_again_is_listed_again(tmp_path: Path) -> None:
    async with desk(stdio_command(tmp_path, "a", "pid")) as made:
        assert await made.tools() == ["a", "pid"]
        own = (await made.client.call_tool("pid")).text
        write_tools(tmp_path, "b", "pid")
        end_processes(tmp_path)
        await made.until("b", "pid")
        assert (await made.client.call_tool("pid")).text == own  # the process of the client's session goes on
        assert made.upstream.status.reconnects == 1


async def test_listening_clients_are_notified_when_a_process_is_started_again(tmp_path: Path) -> None:
    async with desk(stdio_command(tmp_path, "a"), listens=True) as made:
        assert await made.tools() == ["a"]
        write_tools(tmp_path, "b")
        end_processes(tmp_path)
        await made.changes.get()
        assert await made.tools() == ["b"]


async def test_a_process_that_ended_is_not_started_again_while_nothing_needs_it(tmp_path: Path) -> None:
    async with desk(stdio_command(tmp_path, "a")) as made:
        await made.tools()
        end_processes(tmp_path)
        while made.upstream.status.state == "connected":  # noqa: ASYNC110 - the status has no event
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        assert made.upstream.status.sessions == 0
    assert not has_listed(tmp_path)


async def test_lists_are_read_once_for_many_sessions_of_clients() -> None:
    async with changing(HANDSHAKE, "a") as server, desk(server.url, listens=True) as made:
        await made.tools()
        lists = server.lists
        for _ in range(3):
            async with made.connect() as client:
                await client.list_tools()
                await client.call_tool("a")
        assert server.lists == lists
        assert made.changes.empty()


@pytest.mark.parametrize(("revision", "refusal"), [(HANDSHAKE, 405), (HANDSHAKE, 404), (NEWEST, 404)])
async def test_an_upstream_without_a_stream_is_listed_every_minute(revision: str, refusal: int) -> None:
    async with changing(revision, "a") as server:
        server.refusal = refusal
        async with desk(server.url) as made:
            assert await made.tools() == ["a"]
            while made.refresh() is None:  # noqa: ASYNC110 - the refusal has no event
                await asyncio.sleep(0.001)
            assert made.refresh() == 60.0
            lists = server.lists
            for _ in range(3):
                await made.tools()
            assert server.lists == lists


@pytest.mark.parametrize("listens", [False, True])
@pytest.mark.parametrize(("revision", "refusal"), [(HANDSHAKE, 405), (NEWEST, 404)])
async def test_an_upstream_without_a_stream_that_was_away_is_listed_again(
    revision: str, refusal: int, *, listens: bool
) -> None:
    async with changing(revision, "a") as server:
        server.refusal = refusal
        async with desk(server.url, listens=listens) as made:
            assert await made.tools() == ["a"]
            assert (await made.client.call_tool("a")).text == "done"
            server.unavailable, server.tools = 1, ("b",)
            result = await made.client.call_tool("a")
            assert "HTTP status 503" in result.text
            if listens:
                await made.changes.get()
            await made.until("b")


async def test_an_upstream_that_no_longer_reports_changes_is_listed_again_and_every_minute() -> None:
    async with changing(NEWEST, "a") as server, desk(server.url) as made:
        assert await made.tools() == ["a"]
        assert made.refresh() is None
        server.refusal = 404
        server.start_again("b")
        await made.until("b")
        assert made.refresh() == 60.0
        server.tools = ("c",)
        assert await made.tools() == ["b"]


async def test_an_upstream_that_returns_in_another_era_is_listed_again() -> None:
    async with changing(NEWEST, "a") as server, desk(server.url) as made:
        assert await made.tools() == ["a"]
        server.revision = HANDSHAKE
        server.start_again("b")
        await made.until("b")


async def test_calls_go_on_after_the_stream_of_http_sse_has_ended() -> None:
    async with changing(HTTP_SSE, "a") as server, desk(server.url) as made:
        assert (await made.client.call_tool("a")).text == "done"
        server.start_again("a")
        while (await made.client.call_tool("a")).is_error:  # noqa: ASYNC110 - the end of the stream has no event
            await asyncio.sleep(0.001)
        assert made.upstream.status.state == "connected"


def test_a_changing_server_declares_that_it_reports_changes() -> None:
    about = Changing(HANDSHAKE)._result("initialize")
    assert about is not None
    assert about["capabilities"] == {"tools": {"listChanged": True}}

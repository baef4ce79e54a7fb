"""Servers with tasks for tests, and requests about tasks."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp._auth.principal import Principal
from funcmcp._protocol.tasks import EXTENSION
from funcmcp._state.tasks.memory import MemoryTasks
from tests.patience import PATIENCE
from tests.server.parts import NEWEST, PER_REQUEST, answer, context, server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from funcmcp._server.calls.channel import Channel
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Tool, ToolHandler
    from funcmcp._server.dispatch import Server

ERAS = (NEWEST, PER_REQUEST)
DECLARED: dict[str, Any] = {"extensions": {EXTENSION: {}}, "elicitation": {}}
ALICE, BOB = Principal("alice", "issuer", scopes=frozenset({"read"})), Principal("bob", "issuer")


@dataclass
class HTTP:
    """The HTTP request of a caller."""

    principal: Principal | None = None
    caller: str | None = None
    by_user: bool = False
    can_stream: bool = True
    method: str = "POST"
    url: str = "http://localhost/mcp"
    headers: Mapping[str, str] = field(default_factory=dict)
    query_params: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    path: str = "/mcp"
    network_transport: str | None = "tcp"
    client_address: str | None = None


@asynccontextmanager
async def serving(*tools: Tool, **options: Any) -> AsyncIterator[Server]:
    """Serve tools, with tasks in memory unless the options have another store, until the block ends."""
    options.setdefault("tasks", MemoryTasks())
    served = server(*tools, **options)
    try:
        yield served
    finally:
        assert served.tasks is not None
        await served.tasks.stop(0)


def waiting() -> tuple[ToolHandler, asyncio.Event]:
    """Return a handler that waits until its run is stopped, and the event that it sets then."""
    stopped = asyncio.Event()

    async def wait(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    return wait, stopped


def asking(
    method: str,
    params: dict[str, Any],
    *,
    revision: str = PER_REQUEST,
    capabilities: Mapping[str, Any] = DECLARED,
    http: HTTP | None = None,
    channel: Channel | None = None,
) -> RequestContext:
    """Return the context of a request."""
    made = context(method, params, revision=revision, capabilities=capabilities, channel=channel)
    made.http = http
    return made


async def ask(served: Server, method: str, params: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return the answer to a request, valid in its revision."""
    return await answer(served, asking(method, params, **options))


async def create(served: Server, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> str:
    """Call a tool as a task; return the id of the task."""
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
    if options.get("revision") == NEWEST:
        params["task"] = {}
    result = (await ask(served, "tools/call", params, **options))["result"]
    task_id: str = (result if options.get("revision") != NEWEST else result["task"])["taskId"]
    return task_id


async def get(served: Server, task_id: str, **options: Any) -> dict[str, Any]:
    """Return a task."""
    result: dict[str, Any] = (await ask(served, "tasks/get", {"taskId": task_id}, **options))["result"]
    return result


async def until(served: Server, task_id: str, *statuses: str, **options: Any) -> dict[str, Any]:
    """Return a task once it has a status."""
    async with asyncio.timeout(PATIENCE):
        while True:
            task = await get(served, task_id, **options)
            if task["status"] in statuses:
                return task
            await asyncio.sleep(0.005)

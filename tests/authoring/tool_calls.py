"""Calls tools as the server does, without a server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.features.tools import make_tool
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.catalog.features import JSONResult
from funcmcp._server.connections.client import ConnectedClient
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._authoring.features.tools import ToolOptions
    from funcmcp._server.calls.context import HTTPRequestInfo
    from funcmcp._server.catalog.features import Tool

EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


class Peer:
    """A channel that keeps what is sent, and answers questions by their key or their method."""

    pushes = True

    def close_stream(self) -> None:
        raise AssertionError("no stream is closed here")

    def __init__(self, answers: Mapping[str, dict[str, Any]] | None = None) -> None:
        self.answers = answers or {}
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.asked: dict[str, Mapping[str, Any]] = {}

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        self.sent.append((method, params))

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        await asyncio.sleep(0)
        self.asked.update(questions)
        return {key: self.answers.get(key) or self.answers[question["method"]] for key, question in questions.items()}


def context(
    peer: Peer | None = None,
    *,
    revision: str = "2026-07-28",
    capabilities: Mapping[str, Any] = EVERYTHING,
    meta: Mapping[str, Any] | None = None,
    http: HTTPRequestInfo | None = None,
) -> RequestContext:
    """Return the context of one request."""
    params: dict[str, Any] = {} if meta is None else {"_meta": dict(meta)}
    client = ConnectedClient(
        REVISIONS[revision], capabilities, {"name": "tester", "version": "1"}, session_id="session-1"
    )
    return RequestContext(RoutedRequest(Request(7, "tools/call", params)), client, peer or Peer(), http=http)


def tool_of(function: Callable[..., Any], services: Services | None = None, **options: Any) -> Tool:
    """Make a tool."""
    return make_tool(function, cast("ToolOptions", options), services or Services())


def schema_of(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """Return the input schema of a function."""
    schema: dict[str, Any] = tool_of(function, **options).describe()["inputSchema"]
    return schema


async def call(
    function: Callable[..., Any],
    arguments: dict[str, Any] | None = None,
    services: Services | None = None,
    *,
    within: RequestContext | None = None,
    **options: Any,
) -> Any:
    """Make a tool of a function and call it."""
    return await run(tool_of(function, services, **options), arguments, within)


async def run(made: Tool, arguments: dict[str, Any] | None = None, within: RequestContext | None = None) -> Any:
    """Run a tool and return its result as a value."""
    result = await asyncio.wait_for(made.handler(within or context(), arguments or {}), PATIENCE)
    return result.result() if isinstance(result, JSONResult) else result

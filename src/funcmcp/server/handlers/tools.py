"""`tools/list` and `tools/call`."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp.protocol import shape
from funcmcp.protocol.errors import InvalidParams, MCPError, ToolError
from funcmcp.server.features import JSONResult, RawResponse
from funcmcp.server.handlers.lists import list_registry
from funcmcp.server.log import log_failure
from funcmcp.server.rounds import Rounds, input_required
from funcmcp.server.run import Waiting, begin

if TYPE_CHECKING:
    from funcmcp.server.context import Context
    from funcmcp.server.dispatch import Server
    from funcmcp.server.features import Tool

T = TypeVar("T")


async def list_tools(server: Server, context: Context) -> bytes:
    """Answer `tools/list`."""
    return await list_registry(server, context, "tools", server.tools, shape.tool_definition)


async def call_tool(server: Server, context: Context) -> dict[str, Any] | bytes | RawResponse:
    """Answer `tools/call`."""
    params, revision = context.request.params, context.client.revision
    tool = find_tool(server, params)
    arguments = params.get("arguments", {})
    if type(arguments) is not dict:
        raise InvalidParams('"arguments" must be an object.')
    if tool.interactive and revision.per_request:
        context.channel = Rounds(context.channel, context.request, server.keys)
    try:
        result = begin(tool.handler(context, arguments))
        if isinstance(result, Waiting):
            result = await within(tool.timeout, result)
    except BaseException as error:
        pending = input_required(error)
        if pending is not None:
            return {"resultType": "input_required", **pending.result()}
        if isinstance(error, MCPError) or not is_of_the_feature(error):
            raise
        return _error_result(_text_for_client(error, tool.name))
    if isinstance(result, JSONResult):
        text_only, whole = server.frames[revision.date]
        return text_only % result.text if result.structured is None else whole % (result.text, result.structured)
    return result if isinstance(result, RawResponse) else shape.tool_result(result, revision)


async def within(seconds: float | None, run: Waiting[T]) -> T:
    """Wait for a run; raise ToolError when its time is up."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            return await run
    except TimeoutError:
        if deadline.expired():
            raise ToolError(f"It did not finish within {seconds:g} seconds.") from None
        raise


def find_tool(server: Server, params: dict[str, Any]) -> Tool:
    """Return the tool that a call names; raise InvalidParams."""
    name = params.get("name")
    if type(name) is not str:
        raise InvalidParams('"name" must be a string.')
    tool = server.tools.get(name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {name[:128]}")
    return tool


def is_of_the_feature(error: BaseException) -> bool:
    """Tell whether an exception is the feature's own: ordinary, an exit, or a cancellation that nobody asked for."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return isinstance(error, Exception | SystemExit)


def _error_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _text_for_client(error: BaseException, tool: str) -> str:
    if isinstance(error, ToolError):
        return str(error)
    error_id = os.urandom(8).hex()
    log_failure(error, error_id, tool)
    return f"The tool failed. The server's log has the details under error id {error_id}."

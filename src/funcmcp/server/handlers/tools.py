"""`tools/list` and `tools/call`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp.protocol import shape
from funcmcp.protocol.errors import InvalidParams, MCPError
from funcmcp.server.calls.rounds import Rounds, input_required
from funcmcp.server.catalog.access import owner_of
from funcmcp.server.catalog.features import JSONResult, RawResponse
from funcmcp.server.handlers.lists import list_registry
from funcmcp.server.handlers.runs import is_of_the_feature, text_for_client, within
from funcmcp.server.run import Waiting, begin

if TYPE_CHECKING:
    from funcmcp.server.calls.context import Context
    from funcmcp.server.catalog.features import Tool
    from funcmcp.server.dispatch import Server

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
        context.channel = Rounds(context.channel, context.request, server.keys, owner_of(context.principal))
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
        text, error_id = text_for_client(server, tool, error)
        if text is None:
            text = f"The tool failed. The server's log has the details under error id {error_id}."
        return _error_result(text)
    if isinstance(result, JSONResult):
        text_only, whole = server.frames[revision.date]
        return text_only % result.text if result.structured is None else whole % (result.text, result.structured)
    return result if isinstance(result, RawResponse) else shape.tool_result(result, revision)


def find_tool(server: Server, params: dict[str, Any]) -> Tool:
    """Return the tool that a call names; raise InvalidParams."""
    name = params.get("name")
    if type(name) is not str:
        raise InvalidParams('"name" must be a string.')
    tool = server.tools.get(name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {name[:128]}")
    return tool


def _error_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}

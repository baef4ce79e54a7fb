"""`tools/list` and `tools/call`."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp.protocol import shape
from funcmcp.protocol.codec import encode
from funcmcp.protocol.cursor import decode_cursor, encode_cursor
from funcmcp.protocol.errors import InvalidParams, MCPError, ToolError
from funcmcp.server.features import JSONResult, RawResponse
from funcmcp.server.log import log_failure, log_left_out
from funcmcp.server.registry import RegistrationError
from funcmcp.server.rounds import Rounds, input_required
from funcmcp.server.run import Waiting, begin

if TYPE_CHECKING:
    from funcmcp.protocol.revisions import Revision
    from funcmcp.server.context import Context
    from funcmcp.server.dispatch import Server
    from funcmcp.server.features import Tool

T = TypeVar("T")

_BREATH = 16
"""Descriptions made in one go; then other requests have their turn."""


async def list_tools(server: Server, context: Context) -> bytes:
    """Answer `tools/list` with a page that was encoded when it was first asked for."""
    cursor = context.request.params.get("cursor")
    revision = context.client.revision
    if cursor is not None and type(cursor) is not str:
        raise InvalidParams('"cursor" must be a string.')
    key = ("tools", revision.date, cursor)
    cached = server.lists.get(key)
    version = server.tools.version
    if cached is not None and cached[0] == version:
        return cached[1]
    page, next_cursor = _page(server, cursor)
    definitions = []
    for number, tool in enumerate(page, 1):
        try:
            definitions.append(describe(tool, revision))
        except RegistrationError as error:
            if tool.name not in server.left_out:
                server.left_out.add(tool.name)
                log_left_out(tool.name, error)
        if number % _BREATH == 0:
            await asyncio.sleep(0)
    result: dict[str, Any] = {}
    if next_cursor is not None:
        result["nextCursor"] = next_cursor
    if revision.per_request:
        result = server.stamp({**result, "ttlMs": int(server.options.list_ttl * 1000), "cacheScope": "public"})
    rest = encode(result)[1:]
    encoded = b'{"tools":[%b]%b%b' % (b",".join(definitions), b"," if result else b"", rest)
    server.lists[key] = (version, encoded)
    return encoded


def describe(tool: Tool, revision: Revision) -> bytes:
    """Return a tool's definition as JSON; raise RegistrationError if it has none, because a type in it is no JSON."""
    try:
        return encode(shape.tool_definition(tool.describe(), revision))
    except RegistrationError:
        raise
    except Exception as error:  # authors' types take part in their schemas, and may raise anything
        raise RegistrationError(f"{type(error).__name__}: {error}") from error


def _page(server: Server, cursor: str | None) -> tuple[list[Tool], str | None]:
    tools = list(server.tools)
    size = server.options.page_size or max(len(tools), 1)
    # Only the cursors that this server gives out count, so that there are no more pages than it has made.
    starts = {tools[end - 1].name: end for end in range(size, len(tools), size)}
    start = 0 if cursor is None else starts.get(decode_cursor(cursor), -1)
    if start < 0:
        raise InvalidParams("The cursor is no longer valid; start again without a cursor.")
    page = tools[start : start + size]
    return page, encode_cursor(page[-1].name) if start + size < len(tools) else None


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
            result = await _within(tool.timeout, result)
    except BaseException as error:
        pending = input_required(error)
        if pending is not None:
            return {"resultType": "input_required", **pending.result()}
        if isinstance(error, MCPError) or not _is_of_the_tool(error):
            raise
        if isinstance(error, KeyboardInterrupt):  # the process is to end; whoever serves knows how, after this answer
            asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        return _error_result(_text_for_client(error, tool.name))
    if isinstance(result, JSONResult):
        text_only, whole = server.frames[revision.date]
        return text_only % result.text if result.structured is None else whole % (result.text, result.structured)
    return result if isinstance(result, RawResponse) else shape.tool_result(result, revision)


async def _within(seconds: float | None, run: Waiting[T]) -> T:
    """Wait for a run; raise ToolError when its time is up, even if it went on and came to an end after that."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            result = await run
    except TimeoutError:
        if not deadline.expired():
            raise
    if deadline.expired():
        raise ToolError(f"The tool did not finish within {seconds:g} seconds.")
    return result


def find_tool(server: Server, params: dict[str, Any]) -> Tool:
    """Return the tool that a call names; raise InvalidParams."""
    name = params.get("name")
    if type(name) is not str:
        raise InvalidParams('"name" must be a string.')
    tool = server.tools.get(name)
    if tool is None:
        raise InvalidParams(f"Unknown tool: {name[:128]}")
    return tool


def _is_of_the_tool(error: BaseException) -> bool:
    """Tell whether an exception is the tool's own: all are but a cancellation that somebody asked for.

    Libraries have exceptions that are no Exception; Rust's panics are such.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, GeneratorExit)


def _error_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _text_for_client(error: BaseException, tool: str) -> str:
    if isinstance(error, ToolError):
        try:
            return str(error).encode(errors="replace").decode()  # what is no Unicode can't be sent
        except Exception as fault:  # noqa: BLE001 - an author's own __str__ may raise anything
            error = fault
    error_id = os.urandom(8).hex()
    log_failure(error, error_id, tool)
    return f"The tool failed. The server's log has the details under error id {error_id}."

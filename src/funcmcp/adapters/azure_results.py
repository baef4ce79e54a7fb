"""What a function gives back to the functions host: results in the envelopes that its MCP triggers unpack.

An envelope is a JSON object whose `content` is a text of JSON again.

Source: Azure Functions MCP extension 1.6.0: ToolReturnValueBinder, ResourceReturnValueBinder, PromptReturnValueBinder.
"""

from __future__ import annotations

from typing import Any

from funcmcp.protocol.codec import encode


class InvocationFailedError(RuntimeError):
    """A resource or a prompt failed. The host logs the text, and tells its client nothing but that it failed."""


def tool_envelope(result: dict[str, Any]) -> str:
    """Return the McpToolResult of a ``CallToolResult``.

    One block goes by its own type and several by theirs, which every bundle knows. Only `call_tool_result` carries
    `isError`, `_meta` and no block at all.
    """
    content, structured = result["content"], result.get("structuredContent")
    if not content or "isError" in result or "_meta" in result:
        return _envelope("call_tool_result", result)
    more = {} if structured is None else {"structuredContent": _text(structured)}
    if len(content) > 1:
        return _envelope("multi_content_result", content, more)
    return _envelope(content[0]["type"], content[0], more)


def failure_envelope(error: dict[str, Any]) -> str:
    """Return the McpToolResult of a JSON-RPC error, which the host has no other way for."""
    data = error.get("data")
    error_id = data.get("errorId") if isinstance(data, dict) else None
    text = error["message"] if error_id is None else f"{error['message']} (error id {error_id})"
    return tool_envelope({"content": [{"type": "text", "text": text}], "isError": True})


def resource_envelope(result: dict[str, Any]) -> str:
    """Return the McpResourceResult of a ``ReadResourceResult``.

    Raises:
        InvocationFailedError: it has not exactly one item, which is what the host can carry.
    """
    contents = result["contents"]
    if len(contents) != 1:
        raise InvocationFailedError(
            f"The resource returned {len(contents)} contents, and Azure's MCP triggers carry one: "
            "return one, or serve it with funcmcp.azure.http_app."
        )
    return _text({"content": _text(contents[0])})


def prompt_envelope(result: dict[str, Any]) -> str:
    """Return the McpPromptResult of a ``GetPromptResult``; `prompt_messages` where there are only messages."""
    if result.keys() > {"messages"}:
        return _envelope("get_prompt_result", result)
    return _envelope("prompt_messages", result["messages"])


def _envelope(kind: str, content: Any, more: dict[str, str] | None = None) -> str:
    return _text({"type": kind, "content": _text(content), **(more or {})})


def _text(value: Any) -> str:
    return encode(value).decode()

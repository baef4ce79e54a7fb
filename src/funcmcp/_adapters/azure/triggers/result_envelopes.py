"""Results as the envelopes that the MCP triggers of the functions host unpack.

An envelope is a JSON object whose `content` is JSON text. The host reads that text with the C# SDK 0.4.0-preview.3.
Its reader of content blocks, and with it the call, fails on an unknown member whose value is an array or object.

Source: Azure Functions MCP extension 1.5.0 and 1.6.0: ToolReturnValueBinder, ResourceReturnValueBinder,
PromptReturnValueBinder; C# SDK 0.4.0-preview.3: ContentBlock, ResourceContents; 2025-06-18 schema, ContentBlock.
"""

from __future__ import annotations

from typing import Any

from funcmcp._objects.mappings import only
from funcmcp._protocol.codec import encode
from funcmcp._protocol.content_blocks import members_of
from funcmcp._protocol.revisions import NEWEST_OF_AZURE

_CONTENTS_MEMBERS = frozenset({"uri", "mimeType", "text", "blob", "_meta"})
_BLOCK_MEMBERS = members_of(NEWEST_OF_AZURE)
"""The members of content blocks in the newest revision that the host speaks."""


class InvocationFailedError(RuntimeError):
    """A resource or a prompt failed. The host logs the text, and tells its client nothing but that it failed."""


def tool_envelope(result: dict[str, Any]) -> str:
    """Return the McpToolResult of a ``CallToolResult``.

    One block goes by its own type and several by theirs, which every bundle knows. Only `call_tool_result` carries
    `isError`, `_meta` and no block at all.
    """
    content, structured = [_block(block) for block in result["content"]], result.get("structuredContent")
    if not content or "isError" in result or "_meta" in result:
        return _envelope("call_tool_result", {**result, "content": content})
    members = {} if structured is None else {"structuredContent": _text(structured)}
    if len(content) > 1:
        return _envelope("multi_content_result", content, members)
    return _envelope(content[0]["type"], content[0], members)


def failure_envelope(error: dict[str, Any]) -> str:
    """Return the McpToolResult of a JSON-RPC error, which the host has no other way for."""
    error_data = error.get("data")
    error_id = error_data.get("errorId") if isinstance(error_data, dict) else None
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
    return _text({"content": _text(_only(_CONTENTS_MEMBERS, contents[0]))})


def prompt_envelope(result: dict[str, Any]) -> str:
    """Return a ``GetPromptResult`` for every release of the MCP extension.

    Release 1.6.0 reads the envelope, an McpPromptResult, and ignores the members beside it. Releases up to 1.5.0 read a
    GetPromptResult without an envelope, and ignore `type` and `content`. They send a text as it is if it has neither
    messages nor a description, so that a result without messages needs a description.
    """
    messages = [{**message, "content": _block(message["content"])} for message in result["messages"]]
    result = {**result, "messages": messages}
    bare = result if messages else {"description": "", **result}
    return _text({"type": "get_prompt_result", "content": _text(result), **bare})


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """Return a content block with the members that the host knows, and a media type in an embedded resource.

    The host writes a missing media type as null, which clients in TypeScript reject.
    """
    block = _only(_BLOCK_MEMBERS, block)
    if block["type"] == "resource":
        resource = _only(_CONTENTS_MEMBERS, block["resource"])
        default = "text/plain" if "text" in resource else "application/octet-stream"
        block["resource"] = {"mimeType": default, **resource}
    return block


def _only(names: frozenset[str], members: dict[str, Any]) -> dict[str, Any]:
    return only(members, names)


def _envelope(kind: str, content: Any, members: dict[str, str] | None = None) -> str:
    return _text({"type": kind, "content": _text(content), **(members or {})})


def _text(value: Any) -> str:
    return encode(value).decode()

"""Where definitions and results name resources, so that a prefix reaches all of these places.

Texts and structured content may have URIs, too. Nothing marks them there, so they stay as they are.

Source: 2026-07-28 schema, Tool, ContentBlock, ResourceContents; MCP Apps (SEP-1865); the Apps SDK of OpenAI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Rewrite = Callable[[str], str]

_PAGES = ("ui/resourceUri", "openai/outputTemplate")
"""Members of ``_meta`` with the URI of a page, beside ``ui.resourceUri``."""


def in_definition(definition: Mapping[str, Any], rewrite: Rewrite) -> Mapping[str, Any]:
    """Return the definition of a tool, or a result, with other URIs of pages in its ``_meta``."""
    meta = definition.get("_meta")
    if not isinstance(meta, dict):
        return definition
    changed: dict[str, Any] = {name: rewrite(meta[name]) for name in _PAGES if _is_uri(meta.get(name))}
    page = meta.get("ui")
    if isinstance(page, dict) and _is_uri(page.get("resourceUri")):
        changed["ui"] = {**page, "resourceUri": rewrite(page["resourceUri"])}
    return {**definition, "_meta": {**meta, **changed}} if changed else definition


def in_tool_result(result: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Return a CallToolResult with other URIs in its links, resources and pages."""
    content = result.get("content")
    if isinstance(content, list):
        blocks = _in_blocks(content, rewrite)
        if blocks is not content:
            result = {**result, "content": blocks}
    return result if "_meta" not in result else dict(in_definition(result, rewrite))


def in_prompt_result(result: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Return a GetPromptResult with other URIs in its links and resources."""
    messages = result.get("messages")
    if not isinstance(messages, list):
        return result
    return {**result, "messages": [_in_message(message, rewrite) for message in messages]}


def in_read_result(result: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Return a ReadResourceResult with other URIs of its contents."""
    contents = result.get("contents")
    if not isinstance(contents, list):
        return result
    return {**result, "contents": [_with_uri(entry, rewrite) for entry in contents]}


def _in_message(message: Any, rewrite: Rewrite) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return {**message, "content": _in_blocks(content, rewrite)}
    return message if content is None else {**message, "content": _in_block(content, rewrite)}


def _in_blocks(blocks: list[Any], rewrite: Rewrite) -> list[Any]:
    """Return content blocks with other URIs; the same list if it has none."""
    if not any(_type_of(block) in _IN_BLOCK for block in blocks):
        return blocks
    return [_in_block(block, rewrite) for block in blocks]


def _in_block(block: Any, rewrite: Rewrite) -> Any:
    change = _IN_BLOCK.get(_type_of(block))
    return block if change is None else change(block, rewrite)


def _type_of(block: Any) -> str | None:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else None


def _with_uri(value: Any, rewrite: Rewrite) -> Any:
    """Return a link, or the contents of a resource, with another URI."""
    if not isinstance(value, dict) or not _is_uri(value.get("uri")):
        return value
    return {**value, "uri": rewrite(value["uri"])}


def _with_resource(block: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Return an embedded resource with another URI."""
    return {**block, "resource": _with_uri(block.get("resource"), rewrite)}


def _with_content(block: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Return the result of a tool in a message with other URIs."""
    content = block.get("content")
    return {**block, "content": _in_blocks(content, rewrite)} if isinstance(content, list) else block


_IN_BLOCK: dict[Any, Callable[[dict[str, Any], Rewrite], dict[str, Any]]] = {
    "resource_link": _with_uri,
    "resource": _with_resource,
    "tool_result": _with_content,
}
"""What changes a block, by the types of blocks that name resources."""


def _is_uri(value: object) -> bool:
    return isinstance(value, str) and ":" in value

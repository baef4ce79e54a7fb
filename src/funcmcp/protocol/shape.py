"""Definitions and results as a revision allows them.

Features describe themselves in the newest revision's shape; what an older one does not know is left out or, for
content that a person should not miss, told in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.protocol.revisions import Revision


def implementation(info: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return an Implementation (server info) with the members that the revision has."""
    return {name: value for name, value in info.items() if name in revision.info_fields}


def tool_definition(definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a Tool with the members that the revision has."""
    shaped = {name: value for name, value in definition.items() if name in revision.tool_fields}
    output_schema = shaped.get("outputSchema")
    if output_schema is not None and revision.structured_content == "object" and output_schema.get("type") != "object":
        del shaped["outputSchema"]
    if revision.structured_content != "any" and "properties" in shaped["inputSchema"]:
        schema = shaped["inputSchema"]
        properties = {name: _as_object(member) for name, member in schema["properties"].items()}
        shaped["inputSchema"] = {**schema, "properties": properties}
    return shaped


def _as_object(schema: Any) -> Any:
    """Return a schema of a property as an object: the handshake era's Tool has no `true` and `false` there."""
    return ({} if schema else {"not": {}}) if isinstance(schema, bool) else schema


def definition(definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a Resource, a ResourceTemplate or a Prompt with the members that the revision has."""
    shaped = {name: value for name, value in definition.items() if name in revision.feature_fields}
    if "arguments" in shaped:
        known = revision.argument_fields
        shaped["arguments"] = [
            {name: value for name, value in argument.items() if name in known} for argument in shaped["arguments"]
        ]
    return shaped


def prompt_result(result: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a GetPromptResult with the content that the revision has."""
    known = revision.content_types
    messages = [
        message if message["content"]["type"] in known else {**message, "content": _in_words(message["content"])}
        for message in result["messages"]
    ]
    return {**result, "messages": messages}


def tool_result(result: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a CallToolResult with the content and the members that the revision has."""
    if "structuredContent" in result and revision.structured_content != "any":
        keeps = revision.structured_content == "object" and isinstance(result["structuredContent"], dict)
        if not keeps:
            result = {name: value for name, value in result.items() if name != "structuredContent"}
    known = revision.content_types
    for block in result["content"]:
        if block["type"] not in known:
            blocks = [block if block["type"] in known else _in_words(block) for block in result["content"]]
            return {**result, "content": blocks}
    return result


def _in_words(block: Mapping[str, Any]) -> dict[str, Any]:
    if block["type"] == "resource_link":
        text = f"{block.get('title') or block['name']}: {block['uri']}"
    else:
        text = f"[{block['type']} content, which this protocol revision can't carry]"
    return {"type": "text", "text": text}

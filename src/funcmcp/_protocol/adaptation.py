"""Definitions and results in the form of a revision.

Features have the form of the newest revision. Members that an older revision does not have are removed. Content that it
does not have becomes text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import only, without
from funcmcp._protocol.content_blocks import for_older

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.revisions import Revision


def implementation(info: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return the members of an Implementation (server info) that the revision has."""
    return only(info, revision.info_fields)


def tool_definition(definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a Tool in the form of the revision."""
    shaped = only(definition, revision.tool_fields)
    if "outputSchema" in shaped and output_schema(definition, revision) is None:
        del shaped["outputSchema"]
    if revision.structured_content != "any" and "properties" in shaped["inputSchema"]:
        schema = shaped["inputSchema"]
        properties = {name: _as_object(member) for name, member in schema["properties"].items()}
        shaped["inputSchema"] = {**schema, "properties": properties}
    return shaped


def output_schema(definition: Mapping[str, Any], revision: Revision) -> dict[str, Any] | None:
    """Return the output schema of a tool that clients of the revision get; None if they get none."""
    schema: dict[str, Any] | None = definition.get("outputSchema")
    if schema is None or "outputSchema" not in revision.tool_fields:
        return None
    if revision.structured_content == "object" and schema.get("type") != "object":
        return None
    return schema


def _as_object(schema: Any) -> Any:
    """Return the schema of a property as an object: Tool has no `true` and `false` there in the handshake era."""
    if schema is True:
        return {}
    if schema is False:
        return {"not": {}}
    return schema


def definition(definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Return the members of a Resource, a ResourceTemplate or a Prompt that the revision has."""
    shaped = only(definition, revision.feature_fields)
    if "arguments" in shaped:
        fields = revision.argument_fields
        shaped["arguments"] = [only(argument, fields) for argument in shaped["arguments"]]
    return shaped


def prompt_result(result: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a GetPromptResult in the form of the revision."""
    messages = []
    for message in result["messages"]:
        content = message["content"]
        if content["type"] in revision.content_types:
            messages.append(message)
        else:
            messages.append({**message, "content": for_older(content)})
    return {**result, "messages": messages}


def tool_result(result: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Return a CallToolResult in the form of the revision."""
    if "structuredContent" in result and revision.structured_content != "any":
        valid = revision.structured_content == "object" and isinstance(result["structuredContent"], dict)
        if not valid:
            result = without(result, "structuredContent")
    types = revision.content_types
    for block in result["content"]:
        if block["type"] not in types:
            blocks = [block if block["type"] in types else for_older(block) for block in result["content"]]
            return {**result, "content": blocks}
    return result

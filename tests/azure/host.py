"""How the functions host reads what an MCP trigger's function says: its bindings, and the values that it returns.

Written from the source of the MCP extension 1.6.0, not from funcmcp: McpToolTriggerAttribute and its siblings,
McpInputSchemaJsonUtilities, MetadataParser, ResourceUriHelper, ToolReturnValueBinder,
ResourceReturnValueBinder, PromptReturnValueBinder, and the C# SDK's ContentBlock.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MUST = {
    "mcpToolTrigger": {"toolName", "description"},
    "mcpResourceTrigger": {"uri", "resourceName"},
    "mcpPromptTrigger": {"promptName"},
    "mcpToolProperty": {"propertyName", "propertyType", "description", "isRequired"},
    "mcpPromptArgument": {"argumentName", "description", "isRequired"},
}
"""Keys that must be there, or the host can't make the binding."""

_JSON = "JSON"
KEYS: dict[str, dict[str, Any]] = {
    "mcpToolTrigger": {
        "toolName": str,
        "description": str,
        "toolProperties": _JSON,
        "metadata": _JSON,
        "useResultSchema": bool,
        "useWorkerInputSchema": bool,
        "inputSchema": _JSON,
        "outputSchema": _JSON,
    },
    "mcpResourceTrigger": {
        **dict.fromkeys(("uri", "resourceName", "title", "description", "mimeType"), str),
        "size": int,
        "metadata": _JSON,
    },
    "mcpPromptTrigger": {
        **dict.fromkeys(("promptName", "title", "description"), str),
        "promptArguments": _JSON,
        "icons": _JSON,
        "metadata": _JSON,
        "useResultSchema": bool,
    },
    "mcpToolProperty": {
        **dict.fromkeys(("propertyName", "propertyType", "description"), str),
        **dict.fromkeys(("isRequired", "isArray"), bool),
        "enumValues": list,
    },
    "mcpPromptArgument": {"argumentName": str, "description": str, "isRequired": bool},
}
"""Keys that the host knows, and what their values are; it ignores all others."""

PROPERTY = {
    "propertyName": str,
    "propertyType": str,
    "description": str,
    "isRequired": bool,
    "isArray": bool,
    "enumValues": list,
}
_BLOCKS = {
    "text": ({"text"}, {"annotations", "_meta"}),
    "image": ({"data", "mimeType"}, {"annotations", "_meta"}),
    "audio": ({"data", "mimeType"}, {"annotations", "_meta"}),
    "resource": ({"resource"}, {"annotations", "_meta"}),
    "resource_link": ({"uri", "name"}, {"title", "description", "mimeType", "size", "annotations", "icons", "_meta"}),
}
"""By type of block, the members that must and those that may be there."""


class HostError(Exception):
    """The host would refuse it."""


def read_binding(binding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a binding with its texts of JSON decoded."""
    kind = binding["type"]
    _check(binding["direction"].lower() == "in" and isinstance(binding["name"], str), "direction and name")
    _check(binding.get("dataType") in {None, "STRING"}, "a trigger's data can't be binary")
    _check(binding.keys() >= MUST[kind], f"Can't figure out which ctor to call: {MUST[kind] - binding.keys()}")
    own = {key: value for key, value in binding.items() if key not in {"direction", "name", "type", "dataType"}}
    _check(own.keys() <= KEYS[kind].keys(), f"the host ignores {own.keys() - KEYS[kind].keys()}")
    read: dict[str, Any] = {}
    for key, value in own.items():
        wanted = KEYS[kind][key]
        _check(type(value) is (str if wanted is _JSON else wanted), f"{key} is {value!r}")
        read[key] = json.loads(value) if wanted is _JSON else value
    for key in ("inputSchema", "outputSchema"):
        if key in read:
            _check_schema(read[key])
    if read.get("useWorkerInputSchema"):
        _check("inputSchema" in read, "InputSchema is null or invalid.")
    _check(isinstance(read.get("metadata", {}), dict), "Metadata root must be a JSON object")
    for item in read.get("toolProperties", []):
        _check(item.keys() == PROPERTY.keys(), f"a property has {item.keys()}")
        _check(all(type(item[key]) is kind for key, kind in PROPERTY.items()), f"types of {item}")
        _check(item["propertyType"] in {"string", "number", "integer", "boolean", "object"}, item["propertyType"])
        _check(all(type(value) is str for value in item["enumValues"]), f"choices of {item}")
    for item in read.get("promptArguments", []):
        _check("name" in item and item.keys() <= {"name", "title", "description", "required"}, f"argument {item}")
    for icon in read.get("icons", []):
        _check("src" in icon and icon.keys() <= {"src", "mimeType", "sizes", "theme"}, f"icon {icon}")
    if "uri" in read:
        check_uri(read["uri"])
    return read


def check_uri(uri: str) -> None:
    """Do as ResourceUriHelper.Validate."""
    _check(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", uri) is not None, "Invalid resource URI format")
    names = re.findall(r"\{([^{}]*)\}", uri)
    rest = re.sub(r"\{[^{}]+\}", "\0", uri)
    _check("{" not in rest and "}" not in rest and "\0\0" not in rest, "malformed template syntax")
    _check(not any(re.search(r"[/#?& +*]|%7[bBdD]", name) for name in names), "operators")
    sanitized = [re.sub(r"[^A-Za-z0-9_]", "_", name).lower() for name in names]
    _check(len(set(sanitized)) == len(sanitized), "duplicate or colliding parameter names")


def read_tool(value: Any) -> dict[str, Any]:
    """Return the CallToolResult that the host sends for a value that was returned with useResultSchema."""
    envelope = _envelope(value)
    kind, content = envelope["type"].lower(), _inner(envelope)
    if kind == "call_tool_result":
        _check(isinstance(content, dict) and isinstance(content.get("content"), list), "a CallToolResult")
        _check("structuredContent" not in envelope, "the host ignores it here")
        _check(content.keys() <= {"content", "structuredContent", "isError", "_meta"}, f"unknown {content.keys()}")
        _check(type(content.get("isError", False)) is bool, "isError")
        for block in content["content"]:
            _check_block(block)
        return dict(content)
    if kind == "multi_content_result":
        _check(isinstance(content, list) and content, "No content items were produced from the McpToolResult.")
        blocks = content
    else:
        _check(isinstance(content, dict) and kind == content.get("type"), f"envelope {kind} of {content}")
        blocks = [content]
    for block in blocks:
        _check_block(block)
    result: dict[str, Any] = {"content": blocks}
    structured = envelope.get("structuredContent")
    if structured is not None:
        _check(type(structured) is str and structured != "null", "structuredContent is a text of JSON")
        result["structuredContent"] = json.loads(structured)
    return result


def read_resource(value: Any, uri: str, mime_type: str | None = None) -> dict[str, Any]:
    """Return the one content of the ReadResourceResult that the host sends for a returned value."""
    _check(type(value) is str, "Unsupported return type for resource read")
    envelope = json.loads(value)
    _check(isinstance(envelope, dict) and envelope.keys() == {"content"}, "an McpResourceResult")
    content = _inner(envelope)
    _check(isinstance(content, dict), "one content")
    _check(("text" in content) != ("blob" in content), "Failed to deserialize resource content.")
    _check(content.keys() <= {"uri", "mimeType", "text", "blob", "_meta"}, f"unknown {content.keys()}")
    if "blob" in content:
        base64.b64decode(content["blob"], validate=True)
    return {**content, "uri": content.get("uri") or uri, "mimeType": content.get("mimeType") or mime_type}


def read_prompt(value: Any) -> dict[str, Any]:
    """Return the GetPromptResult that the host sends for a returned value."""
    envelope = _envelope(value)
    content = _inner(envelope)
    if envelope["type"] == "get_prompt_result":
        result = content
        _check(isinstance(result, dict) and result.keys() <= {"description", "messages", "_meta"}, "a GetPromptResult")
    else:
        _check(envelope["type"] == "prompt_messages", f"Unknown McpPromptResult type: '{envelope['type']}'.")
        result = {"messages": content}
    _check(isinstance(result["messages"], list), "messages")
    for message in result["messages"]:
        _check(message.keys() == {"role", "content"} and message["role"] in {"user", "assistant"}, f"{message}")
        _check_block(message["content"])
    return dict(result)


def _envelope(value: Any) -> dict[str, Any]:
    _check(type(value) is str, "Expected JSON string.")
    envelope = json.loads(value)
    _check(isinstance(envelope, dict) and type(envelope.get("type")) is str and envelope["type"] != "", "type")
    _check(envelope.keys() <= {"type", "content", "structuredContent"}, f"unknown {envelope.keys()}")
    return dict(envelope)


def _inner(envelope: Mapping[str, Any]) -> Any:
    _check(type(envelope.get("content")) is str, "content is a text of JSON")
    return json.loads(envelope["content"])


def _check_block(block: Any) -> None:
    _check(isinstance(block, dict) and block.get("type") in _BLOCKS, f"unknown block {block}")
    must, may = _BLOCKS[block["type"]]
    members = block.keys() - {"type"}
    _check(must <= members <= must | may, f"members of {block}")
    if "data" in block:
        base64.b64decode(block["data"], validate=True)
    if block["type"] == "resource":
        resource = block["resource"]
        _check("uri" in resource and ("text" in resource) != ("blob" in resource), f"{resource}")


def _check_schema(schema: Any) -> None:
    _check(isinstance(schema, dict) and schema.get("type") == "object", "not a valid MCP tool input JSON schema.")
    _check(isinstance(schema.get("properties", {}), dict) and isinstance(schema.get("required", []), list), "schema")


def _check(right: Any, why: str) -> None:
    if not right:
        raise HostError(why)

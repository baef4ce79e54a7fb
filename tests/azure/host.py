"""How the functions host reads what an MCP trigger's function says: its bindings, and the values that it returns.

Written from the source of the MCP extension 1.5.0 and 1.6.0, not from funcmcp: McpToolTriggerAttribute and the like,
McpInputSchemaJsonUtilities, MetadataParser, ResourceUriHelper, ToolReturnValueBinder, ResourceReturnValueBinder,
PromptReturnValueBinder, and ContentBlock and ResourceContents of the C# SDK 0.4.0-preview.3, which both releases use.
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
_STRINGS = ("type", "text", "name", "data", "mimeType", "uri", "description")
_BLOCK = {**dict.fromkeys(_STRINGS, str), "size": int, **dict.fromkeys(("resource", "annotations", "_meta"), dict)}
_CONTENTS = {**dict.fromkeys(("uri", "mimeType", "text", "blob"), str), "_meta": dict}
"""The members that the SDK reads, in a block of any type and in the contents of a resource, and their types."""

_SENT = {
    "text": ({"text"}, {"annotations", "_meta"}),
    "image": ({"data", "mimeType"}, {"annotations", "_meta"}),
    "audio": ({"data", "mimeType"}, {"annotations", "_meta"}),
    "resource": ({"resource"}, {"annotations", "_meta"}),
    "resource_link": ({"uri", "name"}, {"description", "mimeType", "size", "annotations"}),
}
"""By type of block, the members that the SDK requires, and others that it sends to clients. It drops all others."""

_MAX_DEPTH = 64
"""Levels of nesting that System.Text.Json reads and writes, the JSON-RPC response around a result included."""


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
        return _sent({**content, "content": [_read_block(block) for block in content["content"]]})
    if kind == "multi_content_result":
        _check(isinstance(content, list) and content, "No content items were produced from the McpToolResult.")
        blocks = content
    else:
        _check(isinstance(content, dict) and kind == content.get("type"), f"envelope {kind} of {content}")
        blocks = [content]
    result: dict[str, Any] = {"content": [_read_block(block) for block in blocks]}
    structured = envelope.get("structuredContent")
    if structured is not None:
        _check(type(structured) is str and structured != "null", "structuredContent is a text of JSON")
        result["structuredContent"] = json.loads(structured)
    return _sent(result)


def read_resource(value: Any, uri: str, mime_type: str | None = None) -> dict[str, Any]:
    """Return the one content of the ReadResourceResult that the host sends for a returned value."""
    _check(type(value) is str, "Unsupported return type for resource read")
    envelope = json.loads(value)
    _check(isinstance(envelope, dict) and envelope.keys() == {"content"}, "an McpResourceResult")
    content = _read_contents(_inner(envelope))
    content = {**content, "uri": content.get("uri") or uri, "mimeType": content.get("mimeType") or mime_type}
    return dict(_sent({"contents": [content]})["contents"][0])


def read_prompt(value: Any, extension: str = "1.6.0") -> dict[str, Any]:
    """Return the GetPromptResult that the host sends for a value that was returned with useResultSchema.

    Args:
        value: what the function returned.
        extension: the release of the MCP extension that reads it, 1.5.0 or 1.6.0.
    """
    result = _inner_prompt(value) if extension == "1.6.0" else _bare_prompt(value)
    _check(isinstance(result["messages"], list), "messages")
    for message in result["messages"]:
        _check(message.keys() == {"role", "content"} and message["role"] in {"user", "assistant"}, f"{message}")
    messages = [{**message, "content": _read_block(message["content"])} for message in result["messages"]]
    return _sent({**result, "messages": messages})


def _inner_prompt(value: Any) -> dict[str, Any]:
    """Do as PromptReturnValueBinder of release 1.6.0."""
    _check(type(value) is str, "Expected JSON string.")
    envelope = json.loads(value)
    content = _inner(envelope)
    kind = envelope.get("type")
    if kind == "prompt_messages":
        return {"messages": content}
    _check(kind == "get_prompt_result", f"Unknown McpPromptResult type: '{kind}'.")
    _check(isinstance(content, dict) and content.keys() <= {"description", "messages", "_meta"}, "a GetPromptResult")
    return dict(content)


def _bare_prompt(value: Any) -> dict[str, Any]:
    """Do as PromptReturnValueBinder of release 1.5.0: a text that is no GetPromptResult is a user's message itself."""
    _check(type(value) is str, "Unsupported return type for prompt")
    result = json.loads(value)
    read = {name: result[name] for name in ("description", "messages", "_meta") if name in result}
    if read.get("messages") or "description" in read:
        return {"messages": [], **read}
    return {"messages": [{"role": "user", "content": {"type": "text", "text": value}}]}


def _envelope(value: Any) -> dict[str, Any]:
    _check(type(value) is str, "Expected JSON string.")
    envelope = json.loads(value)
    _check(isinstance(envelope, dict) and type(envelope.get("type")) is str and envelope["type"] != "", "type")
    _check(envelope.keys() <= {"type", "content", "structuredContent"}, f"unknown {envelope.keys()}")
    return dict(envelope)


def _inner(envelope: Mapping[str, Any]) -> Any:
    _check(type(envelope.get("content")) is str, "content is a text of JSON")
    return json.loads(envelope["content"])


def _read_block(value: Any) -> dict[str, Any]:
    """Return a content block as it reaches the client."""
    block = _read_members(value, _BLOCK)
    _check(block.get("type") in _SENT, f"Unknown content type: '{block.get('type')}'")
    required, optional = _SENT[block["type"]]
    _check(required <= block.keys(), f"{required - block.keys()} must be provided for '{block['type']}' type.")
    if "data" in block:
        base64.b64decode(block["data"], validate=True)
    if block["type"] == "resource":
        block["resource"] = _read_contents(block["resource"])
        _check("mimeType" in block["resource"], "the SDK sends mimeType null, which clients in TypeScript reject")
    return {name: member for name, member in block.items() if name in {"type"} | required | optional}


def _read_contents(value: Any) -> dict[str, Any]:
    contents = _read_members(value, _CONTENTS)
    _check(("text" in contents) != ("blob" in contents), "Failed to deserialize resource content.")
    if "blob" in contents:
        base64.b64decode(contents["blob"], validate=True)
    return contents


def _read_members(value: Any, types: Mapping[str, type]) -> dict[str, Any]:
    """Return the members that the SDK's converters know; they fail on an unknown array or object."""
    _check(isinstance(value, dict), f"{value} is not an object")
    for name, member in value.items():
        if name in types:
            _check(type(member) is types[name], f"{name} is {member!r}")
        else:
            _check(not isinstance(member, dict | list), f"the converter read too much or not enough: {name}")
    return {name: member for name, member in value.items() if name in types}


def _sent(result: dict[str, Any]) -> dict[str, Any]:
    _check(1 + _depth(result) <= _MAX_DEPTH, "The maximum configured depth of 64 has been exceeded.")
    return result


def _depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max((_depth(member) for member in (value.values() if isinstance(value, dict) else value)), default=0)


def _check_schema(schema: Any) -> None:
    _check(isinstance(schema, dict) and schema.get("type") == "object", "not a valid MCP tool input JSON schema.")
    _check(isinstance(schema.get("properties", {}), dict) and isinstance(schema.get("required", []), list), "schema")


def _check(right: Any, why: str) -> None:
    if not right:
        raise HostError(why)

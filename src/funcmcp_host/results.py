"""From what a function returned to the result of an MCP request; `return_contracts` lists the forms.

Where this host accepts what Azure's refuses, the name of the form is added to `deviations`, for the log.

Source: the MCP extension, releases 1.5.0 and 1.6.0 (ToolReturnValueBinder, SimpleToolReturnValueBinder,
ResourceReturnValueBinder, PromptReturnValueBinder, SimplePromptReturnValueBinder), and the older spellings of its
specification (``multiContent``, flat resources).
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import lower_names, without, without_none
from funcmcp._protocol.content_blocks import type_of, without_binary
from funcmcp_host.dotnet_formats import number_text
from funcmcp_host.json_texts import loads
from funcmcp_host.workers.worker import NULL, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    Deviations: TypeAlias = set[str]

_OLD_MANY = "multicontent"
_MANY = {"multi_content_result", _OLD_MANY}
_SPELLINGS = {
    "mime_type": "mimeType",
    "is_error": "isError",
    "structured_content": "structuredContent",
    "meta": "_meta",
}
"""Names of members that azure-functions 1.26 writes for objects of the official SDK 2.x."""

_PYTHON_NONE = Value("string", "")
"""What azure-functions makes of None, which a Python tool returns that is declared with ``-> None``."""

_MAX_SHOWN = 200
_BINARY = "application/octet-stream"


class _ShapeError(ValueError):
    """A part of a returned value is not what it must be."""


class ReturnError(ValueError):
    """A function returned a value that its trigger does not accept.

    Args:
        reason: What is wrong.
        value: What was returned.
    """

    def __init__(self, reason: str, value: Value) -> None:
        shown = value.data if isinstance(value.data, str) else repr(value.data)
        super().__init__(f"{reason} It returned ({value.kind}): {shown[:_MAX_SHOWN]}")


def tool_result(value: Value, deviations: Deviations, name: str, *, uses_result_schema: bool) -> dict[str, Any]:
    """Return the CallToolResult for what a tool's function returned.

    Args:
        value: The return value.
        deviations: Gets the names of the forms that Azure treats in another way.
        name: The tool's name.
        uses_result_schema: Whether the function returns an envelope with content blocks.

    Raises:
        ReturnError: The value is not one that the trigger accepts.
    """
    value = _as_read(value)
    if value.kind == "null" or value == _PYTHON_NONE:
        return {"content": []}
    if not uses_result_schema:
        if value.kind == "bytes":
            deviations.add("tool-bytes")
        return {"content": [_simple_block(value, name)]}
    if value.kind == "json":
        deviations.add("tool-object")
    return _read(value, lambda data: _enveloped_tool_result(data, deviations))


def objects_only(result: dict[str, Any]) -> dict[str, Any]:
    """Return a CallToolResult whose structured content is an object, for revisions that allow nothing else."""
    if "structuredContent" in result and not isinstance(result["structuredContent"], dict):
        return {**result, "structuredContent": {"result": result["structuredContent"]}}
    return result


def resource_result(value: Value, _deviations: Deviations, uri: str, mime_type: str | None) -> dict[str, Any]:
    """Return the ReadResourceResult for what a resource's function returned. Azure treats each form in the same way.

    Args:
        value: The return value.
        uri: The URI that is read.
        mime_type: The trigger's media type.

    Raises:
        ReturnError: The value is not one that the trigger accepts.
    """
    value = _as_read(value)
    if value.kind == "null":
        return {"contents": []}
    if value.kind == "bytes":
        blob = base64.b64encode(value.data).decode()
        return {"contents": [{"uri": uri, "mimeType": mime_type or _BINARY, "blob": blob}]}
    if value.kind != "string":
        raise ReturnError("A resource returns a string or bytes.", value)
    content = _resource_envelope(value)
    if content is None:
        content = {"text": value.data}
    return {"contents": [_complete_contents(content, uri, mime_type)]}


def prompt_result(value: Value, deviations: Deviations, *, uses_result_schema: bool) -> dict[str, Any]:
    """Return the GetPromptResult for what a prompt's function returned.

    Args:
        value: The return value.
        deviations: Gets the names of the forms that Azure treats in another way.
        uses_result_schema: Whether the function returns an envelope.

    Raises:
        ReturnError: The value is not one that the trigger accepts.
    """
    value = _as_read(value)
    if value.kind == "null":
        return {"messages": []}
    if value.kind in {"bytes", "http"}:
        raise ReturnError("A prompt returns a text, a number or JSON.", value)
    if uses_result_schema:
        return _read(value, lambda data: _enveloped_prompt_result(data, deviations))
    content = _json_object(value.data)
    if content is not None and _is_prompt_result(content):
        # A text of the same look, such as a chat in another library's form, is not one of extension 1.5 either.
        try:
            result = _checked_prompt_result(content)
        except (_ShapeError, RecursionError):
            pass
        else:
            deviations.add("prompt-bare")
            return result
    return {"messages": [{"role": "user", "content": {"type": "text", "text": _simple_text(value)}}]}


def _as_read(value: Value) -> Value:
    """Return a value as Azure's host reads it: JSON that is not an object or an array as what it stands for.

    Its kind "boolean" is one that no worker sends.
    """
    if value.kind != "json":
        return value
    try:
        decoded = loads(value.data)
    except ValueError:
        raise ReturnError("It is not valid JSON.", value) from None
    if decoded is None:
        return NULL
    if isinstance(decoded, bool):
        return Value("boolean", decoded)
    if isinstance(decoded, str):
        return Value("string", decoded)
    if isinstance(decoded, int):
        return Value("int", decoded)
    if isinstance(decoded, float):
        return Value("double", decoded)
    return value


def _read(value: Value, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Read a value; raise ReturnError, which names it, for what is wrong with a part of it."""
    try:
        return read(value.data)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise ReturnError(f"{error}".rstrip(".") + ".", value) from error


def _simple_block(value: Value, name: str) -> dict[str, Any]:
    if value.kind == "bytes":
        blob = base64.b64encode(value.data).decode()
        resource = {"uri": f"function://{name}/result", "mimeType": _BINARY, "blob": blob}
        return {"type": "resource", "resource": resource}
    return {"type": "text", "text": _simple_text(value)}


def _simple_text(value: Value) -> str:
    if value.kind == "json":
        return json.dumps(loads(value.data), indent=2, ensure_ascii=False)
    if isinstance(value.data, float):
        return number_text(value.data)
    return str(value.data)


def _enveloped_tool_result(returned: Any, deviations: Deviations) -> dict[str, Any]:
    envelope = _decoded(returned) if isinstance(returned, str) else returned
    if isinstance(envelope, list):
        deviations.add("tool-array")
        return {"content": _blocks(envelope, deviations)}
    if not isinstance(envelope, dict):
        raise _ShapeError("A tool with useResultSchema returns a JSON object.")
    members = _folded(envelope)
    kind = members.get("type")
    if kind is None and isinstance(members.get("content"), list):
        deviations.add("tool-bare-result")
        return _call_tool_result(envelope, None, deviations)
    if not isinstance(kind, str):
        raise _ShapeError('The result has no "type".')
    content = _content_of(members, envelope, "tool-open-content", deviations)
    structured = members.get("structuredcontent")
    if structured and not isinstance(structured, str):
        deviations.add("tool-open-structured")
    if kind.lower() == "call_tool_result":
        return _call_tool_result(content, structured, deviations)
    result: dict[str, Any] = {"content": _content_blocks(kind.lower(), content, deviations)}
    if structured not in (None, ""):
        result["structuredContent"] = _structured(structured)
    return _without_copies(result)


def _content_blocks(kind: str, content: Any, deviations: Deviations) -> list[dict[str, Any]]:
    """Return the blocks in the content of an envelope of a type in lower case."""
    if kind == _OLD_MANY:
        deviations.add("tool-old-blocks")
    elif kind not in _MANY:
        if not isinstance(content, list):
            return [_block(content, deviations)]
        deviations.add("tool-several")
    return _blocks(content, deviations)


def _structured(structured: Any) -> Any:
    """Return the structured content of an envelope."""
    decoded = _decoded(structured)
    if decoded is None:
        raise _ShapeError("The structured content is null.")
    return decoded


def _folded(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an envelope by their names in lower case, because Azure compares these without case."""
    return lower_names(envelope)


def _content_of(members: Mapping[str, Any], envelope: Any, deviation: str, deviations: Deviations) -> Any:
    """Return the decoded content of an envelope; the envelope itself if it has none."""
    if "content" not in members:
        deviations.add(deviation)
        return envelope
    if not isinstance(members["content"], str):
        deviations.add(deviation)
    return _decoded(members["content"])


def _call_tool_result(content: Any, outer_structured: Any, deviations: Deviations) -> dict[str, Any]:
    """Return a CallToolResult.

    Args:
        content: The result as the function wrote it.
        outer_structured: The structured content of the envelope, for a result without its own.
        deviations: Gets the names of the forms that Azure treats in another way.
    """
    if not isinstance(content, dict):
        raise _ShapeError("A call_tool_result is a JSON object.")
    content = _respelled(content, deviations)
    result: dict[str, Any] = {"content": [_block(block, deviations) for block in content.get("content") or []]}
    if "structuredContent" in content:
        result["structuredContent"] = content["structuredContent"]
    elif outer_structured not in (None, ""):
        deviations.add("tool-outer-structured")
        result["structuredContent"] = _structured(outer_structured)
    is_error = content.get("isError", False)
    if not isinstance(is_error, bool):
        raise _ShapeError('"isError" is not true or false.')
    if is_error:
        result["isError"] = True
    if isinstance(content.get("_meta"), dict):
        result["_meta"] = content["_meta"]
    return _without_copies(result)


def _without_copies(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result that has each picture, sound, file and link once, and a text beside its structured content.

    The library of Python apps repeats a single block as structured content. Some clients do not read structured
    content, so that it also needs a text.
    """
    if "structuredContent" not in result:
        return result
    structured, content = result["structuredContent"], result["content"]
    if _is_copy(structured, content):
        return without(result, "structuredContent")
    if not any(block["type"] == "text" for block in content):
        remaining, blocks = without_binary(structured)
        text = {"type": "text", "text": json.dumps(remaining, ensure_ascii=False)}
        return {**result, "content": [*content, text, *(block for block in blocks if block not in content)]}
    return result


def _is_copy(structured: Any, content: list[dict[str, Any]]) -> bool:
    """Return whether structured content is a copy of a block that is not a text."""
    if not isinstance(structured, dict) or structured.get("type") == "text":
        return False
    try:
        return _block(structured, set()) in content
    except _ShapeError:
        return False


def _blocks(content: Any, deviations: Deviations) -> list[dict[str, Any]]:
    if not isinstance(content, list) or not content:
        raise _ShapeError("The result has no content blocks.")
    return [_block(block, deviations) for block in content]


def _block(value: Any, deviations: Deviations) -> dict[str, Any]:
    """Return a content block as the protocol has it; raise ValueError if it is not one."""
    if not isinstance(value, dict):
        raise _ShapeError("A content block is a JSON object.")
    block = _respelled(value, deviations)
    kind = block.get("type")
    if kind == "resource":
        return _embedded_resource(block, deviations)
    row = type_of(block)
    if row is None:
        raise _ShapeError(f"{kind!r} is not a type of content.")
    for name in row.strings:
        if not isinstance(block.get(name), str):
            raise _ShapeError(f'A content block of type {kind} needs the string "{name}".')
    return block


def _embedded_resource(block: dict[str, Any], deviations: Deviations) -> dict[str, Any]:
    if "resource" not in block:  # the older spelling has the resource's members in the block itself
        deviations.add("tool-flat-resource")
        members = ("uri", "mimeType", "text", "blob")
        resource = {name: block[name] for name in members if name in block}
        block = without(block, *members)
        block["resource"] = resource
    if not isinstance(block["resource"], dict):
        raise _ShapeError('"resource" is not an object.')
    resource = _respelled(block["resource"], deviations)
    if not isinstance(resource.get("uri"), str):
        raise _ShapeError("An embedded resource needs a uri.")
    return {**block, "resource": _complete_contents(resource, resource["uri"], None)}


def _resource_envelope(value: Value) -> dict[str, Any] | None:
    """Return the contents in ``{"content": "{...}"}``, or None if the value is a text of its own."""
    envelope = _json_object(value.data)
    members = {} if envelope is None else _folded(envelope)
    if "content" not in members:
        return None
    content = members["content"]
    contents = _json_object(content)
    if contents is None and content is not None and (not isinstance(content, str) or content.strip() != "null"):
        return None
    contents = without_none(contents or {})
    texts = [contents.get(name, "") for name in ("blob", "mimeType", "text", "uri")]
    if not all(isinstance(text, str) for text in texts):
        return None
    if contents.keys().isdisjoint({"blob", "text"}):
        raise ReturnError('The content of a resource needs "text" or "blob".', value)
    return contents


def _complete_contents(contents: dict[str, Any], uri: str, mime_type: str | None) -> dict[str, Any]:
    """Return ResourceContents with a URI and a media type."""
    is_text = not isinstance(contents.get("blob"), str)
    if is_text and not isinstance(contents.get("text"), str):
        raise _ShapeError('A resource needs "text" or "blob".')
    complete = {
        "uri": contents.get("uri") or uri,
        "mimeType": contents.get("mimeType") or mime_type or ("text/plain" if is_text else _BINARY),
    }
    name = "text" if is_text else "blob"
    complete[name] = contents[name]
    if isinstance(contents.get("_meta"), dict):
        complete["_meta"] = contents["_meta"]
    return complete


def _is_prompt_result(content: dict[str, Any]) -> bool:
    """Tell whether an object is a GetPromptResult, by the rule of extension 1.5.0."""
    messages = content.get("messages")
    if isinstance(messages, list):
        return bool(messages) or isinstance(content.get("description"), str)
    return content.keys() == {"description"} and isinstance(content["description"], str)


def _enveloped_prompt_result(returned: Any, deviations: Deviations) -> dict[str, Any]:
    envelope = _json_object(returned)
    if envelope is None:
        raise _ShapeError("A prompt with useResultSchema returns a JSON object.")
    members = _folded(envelope)
    if "type" not in members and "messages" in envelope:
        deviations.add("prompt-bare-result")
        return _checked_prompt_result(envelope, deviations)
    content = _content_of(members, envelope, "prompt-open-content", deviations)
    kind = str(members.get("type")).lower()
    if kind == "prompt_messages":
        content = {"messages": content}
    elif kind != "get_prompt_result":
        raise _ShapeError(f"{members.get('type')!r} is not the type of a prompt's result.")
    if not isinstance(content, dict):
        raise _ShapeError("The content of a prompt's result is a JSON object.")
    return _checked_prompt_result(content, deviations)


def _checked_prompt_result(content: dict[str, Any], deviations: Deviations | None = None) -> dict[str, Any]:
    """Return a GetPromptResult.

    Args:
        content: The result as the function wrote it.
        deviations: Gets the names of the forms that Azure treats in another way; None if these are not accepted.
    """
    messages = content.get("messages", [])
    if not isinstance(messages, list):
        raise _ShapeError('"messages" is not an array.')
    result: dict[str, Any] = {"messages": [_message(message, deviations) for message in messages]}
    if isinstance(content.get("description"), str):
        result["description"] = content["description"]
    if isinstance(content.get("_meta"), dict):
        result["_meta"] = content["_meta"]
    return result


def _message(message: Any, deviations: Deviations | None) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise _ShapeError("A message is a JSON object.")
    if deviations is not None:
        message = {"role": "user", "content": {"type": "text", "text": ""}, **message}
    role = message.get("role")
    if role not in ("user", "assistant"):
        raise _ShapeError('The role of a message is "user" or "assistant".')
    content = message.get("content")
    if isinstance(content, str) and deviations is not None:
        deviations.add("prompt-text-content")
        content = {"type": "text", "text": content}
    return {"role": role, "content": _block(content, set() if deviations is None else deviations)}


def _respelled(members: Mapping[str, Any], deviations: Deviations) -> dict[str, Any]:
    """Return an object with the protocol's names of members; members without a value are left out."""
    if any(name in _SPELLINGS for name in members):
        deviations.add("tool-snake-case")
    return {_SPELLINGS.get(name, name): value for name, value in members.items() if value is not None}


def _decoded(value: Any) -> Any:
    """Return a JSON text decoded; other values are as they are."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value, parse_constant=_refuse)
    except ValueError:
        raise _ShapeError("A part of the result is not valid JSON.") from None


def _refuse(constant: str) -> None:
    """Refuse NaN and the infinities, which Python reads in JSON."""
    raise ValueError(constant)


def _json_object(text: Any) -> dict[str, Any] | None:
    """Return the object that a text holds, or None if it holds none."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        value = loads(text, parse_constant=_refuse)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

"""From what a function returns to a CallToolResult. How is decided once, by the return annotation.

Values that JSON can carry are sent twice, as the specification wants it: as a text block and as structured content. An
object is sent as it is; any other value, such as a number or a list, stands as ``{"result": value}``, so that the
answer is the same in every revision.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin, is_typeddict

from pydantic_core import to_jsonable_python

from funcmcp.authoring.content import Block, EmbeddedResource, ToolResult, _Annotated
from funcmcp.authoring.schema import adapter, output_schema
from funcmcp.authoring.signature import JSONRPCResponse, bare_type
from funcmcp.protocol.codec import encode
from funcmcp.server.features import RawResponse

Render: TypeAlias = Callable[[Any], "dict[str, Any] | RawResponse"]


class Returned(NamedTuple):
    """How a function's value becomes a result.

    Attributes:
        render: makes the CallToolResult, or raises TypeError or ValueError if the value is not what was declared.
        kind: the type that the output schema describes; None for no output schema.
        wrapped: whether the value stands as `result` in an object.
    """

    render: Render
    kind: Any
    wrapped: bool

    def schema(self) -> dict[str, Any] | None:
        """Return the output schema, or None."""
        if self.kind is None:
            return None
        schema = output_schema(self.kind)
        if not self.wrapped:
            return schema
        definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        return {"type": "object", "properties": {"result": schema}, "required": ["result"], **definitions}


def returned(annotation: Any) -> Returned:
    """Return how values of a return annotation become results."""
    kind = bare_type(annotation)
    if kind is JSONRPCResponse:
        return Returned(RawResponse, None, wrapped=False)
    if (
        annotation in {inspect.Signature.empty, Any, None, type(None), object}
        or kind in {str, bytes}
        or _is_content(kind)
    ):
        return Returned(render_value, None, wrapped=False)
    wrapped = kind is not annotation and bare_type(annotation) != annotation and _allows_none(annotation)
    wrapped = wrapped or not _is_object(kind)
    return Returned(_typed_renderer(annotation, wrapped=wrapped), annotation, wrapped)


def render_value(value: Any) -> dict[str, Any]:
    """Return the result of a value whose type nobody declared."""
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    if value is None:
        return {"content": []}
    if isinstance(value, ToolResult):
        return value.result()
    if isinstance(value, bytes):
        value = EmbeddedResource("result:data", data=value, mime_type="application/octet-stream")
    if isinstance(value, Block):
        return {"content": [value.block()]}
    if isinstance(value, list | tuple) and any(isinstance(item, Block) for item in value):
        return {"content": [_block(item) for item in value]}
    data = to_jsonable_python(value, by_alias=True)
    result: dict[str, Any] = {"content": [{"type": "text", "text": encode(data).decode()}]}
    if isinstance(data, dict):
        result["structuredContent"] = data
    return result


def _block(item: Any) -> dict[str, Any]:
    if isinstance(item, Block):
        return item.block()
    text = item if isinstance(item, str) else encode(to_jsonable_python(item, by_alias=True)).decode()
    return {"type": "text", "text": text}


def _typed_renderer(annotation: Any, *, wrapped: bool) -> Render:
    """Return a renderer that is built when the first value comes."""
    tools: list[Any] = []

    def render(value: Any) -> dict[str, Any]:
        if not tools:
            built = adapter(annotation)
            tools.extend((built.validator.validate_python, built.serializer.to_python))
        if isinstance(value, ToolResult):
            return value.result()
        validate, to_python = tools
        data = to_python(validate(value), mode="json", by_alias=True)
        text = data if isinstance(data, str) else encode(data).decode()
        structured = {"result": data} if wrapped else data
        return {"content": [{"type": "text", "text": text}], "structuredContent": structured}

    return render


def _is_content(kind: Any) -> bool:
    """Tell whether a type is made of content blocks, alone or in a list or a union."""
    if isinstance(kind, type) and issubclass(kind, _Annotated | ToolResult):
        return True
    if kind is Block:
        return True
    members = [member for member in get_args(kind) if member not in {type(None), Ellipsis}]
    return get_origin(kind) is not Literal and any(_is_content(member) for member in members)


def _is_object(kind: Any) -> bool:
    """Tell whether values of a type are JSON objects, by the look of the type alone."""
    origin = get_origin(kind) or kind
    if origin is Union or not isinstance(origin, type):
        return False
    if is_typeddict(origin) or dataclasses.is_dataclass(origin) or issubclass(origin, Mapping):
        return True
    fields = getattr(origin, "model_fields", None)
    return isinstance(fields, dict) and "root" not in fields


def _allows_none(annotation: Any) -> bool:
    return type(None) in get_args(annotation)

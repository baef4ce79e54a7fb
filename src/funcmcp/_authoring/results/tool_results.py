"""What a tool's function returns, as a ``CallToolResult`` in the newest revision's shape without ``resultType``.

How it works: `rendering_of` chooses one function for a return annotation, when the tool is first listed or called. A
tool without an annotation is rendered by the value (`_by_value`). Texts, bytes and content blocks become content. Any
other type has an output schema: its values become structured content, with a text block of the same JSON. A schema
whose type is not an object is wrapped in an object with the member ``result``. A tool with a hand-written output schema
is rendered by value, and the result is checked against the schema.

Source: 2026-07-28 "server/tools, Tool Result, Structured Content, Output Schema".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from math import isfinite
from numbers import Number
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

from pydantic_core import from_json, to_json

from funcmcp._authoring.results.content import Content, ToolResult, base64
from funcmcp._authoring.results.result_writer import ResultWriter, jsonable, text_conversion, unwritable
from funcmcp._authoring.results.sdk_results import converted, is_sdk_type
from funcmcp._authoring.schemas.python_values import python_value, type_name
from funcmcp._authoring.signatures.annotations import awaited, parts_of_type, union_members, without_marks
from funcmcp._authoring.signatures.signature import EMPTY, JSONRPCResponse
from funcmcp._objects.mappings import without
from funcmcp._protocol.codec import encode
from funcmcp._protocol.content_blocks import may_have_binary_blocks, without_binary
from funcmcp._server.catalog.features import JSONResult, RawResponse

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from funcmcp._server.catalog.features import LeftOut

    Result: TypeAlias = "dict[str, Any] | JSONResult | RawResponse"
    Render: TypeAlias = Callable[[Any], Result]

_SCALARS = {bool: "boolean", float: "number", int: "integer"}
_OPEN = frozenset({Any, object})
_LISTS = frozenset({list, tuple, Sequence, Collection, Iterable})


class CompleteResult:
    """A ``CallToolResult`` in JSON form that a function has made itself. It is sent unchanged.

    Attributes:
        wire: The result.
    """

    __slots__ = ("wire",)

    def __init__(self, wire: dict[str, Any]) -> None:
        self.wire = wire


class Rendering(NamedTuple):
    """How a tool's results are written.

    Attributes:
        render: Returns the result for a returned value. It raises TypeError or ValueError if the value does not fit
            the annotation, or if JSON can't carry it.
        output_schema: Returns the tool's output schema, or None if it has none.
        is_response: Whether results are JSON-RPC responses, which must answer the request.
        left_out: What the output schema does not say. Empty until the schema is first created.
    """

    render: Render
    output_schema: Callable[[], dict[str, Any] | None]
    is_response: bool = False
    left_out: Sequence[LeftOut] = ()

    def without_schema(self) -> Rendering:
        """Return a rendering that writes the same results, for a tool without an output schema."""
        return self._replace(output_schema=_no_schema, left_out=())


def rendering_of(annotation: Any, tool: str) -> Rendering:
    """Return how results of a type are written.

    Args:
        annotation: The resolved return annotation, or EMPTY.
        tool: The tool's name, for errors.
    """
    rendering = _rendering_of_values(awaited(annotation), tool)
    if rendering.is_response:
        return rendering
    return _or_complete(rendering, tool)


def _or_complete(rendering: Rendering, tool: str) -> Rendering:
    """Return a rendering that also accepts a `ToolResult`, whatever the annotation is, as FastMCP and the SDK do.

    Its structured content is checked against the output schema of the annotation.
    """

    @cache
    def complete() -> Render:
        schema = rendering.output_schema()
        if schema is None:
            return _locating(_by_value, tool)
        return handwritten_rendering(schema, tool).render

    def render(value: Any) -> Result:
        try:
            return rendering.render(value)
        except (TypeError, ValueError):
            result = converted(value)
            if not isinstance(result, ToolResult):
                raise
        return complete()(result)

    return rendering._replace(render=render)


def _rendering_of_values(annotation: Any, tool: str) -> Rendering:
    members = {without_marks(member) for member in union_members(annotation)}
    if members == {JSONRPCResponse}:
        return Rendering(_raw, _no_schema, is_response=True)
    if members <= {EMPTY, Any, object}:
        return Rendering(_locating(_by_value, tool), _no_schema)
    if members == {type(None)}:
        return Rendering(_nothing, _no_schema)
    if members <= {str, bytes, type(None)}:
        return Rendering(_plain(tool, tuple(members), text_conversion(annotation, tool)), _no_schema)
    if _has_content(annotation):
        return Rendering(_locating(_content_only, tool), _no_schema)
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _scalar(annotation)
    typed = _Typed(annotation, tool)
    if any(map(is_open_list, members)):
        return Rendering(_open_list(typed, tool), _no_schema)
    return Rendering(typed.render, typed.output_schema, left_out=typed.left_out)


def _locating(render: Callable[[Any, str], Result], tool: str) -> Render:
    """Return a function that renders, and whose errors name the tool and the path of a value that JSON can't carry."""

    def located(value: Any) -> Result:
        try:
            return render(value, tool)
        except ValueError as error:
            raise unwritable(value, tool, error) from None

    return located


def handwritten_rendering(schema: dict[str, Any], tool: str) -> Rendering:
    """Return how results of a tool with a hand-written output schema are written. They are checked against it.

    The structured content of an error is left out if the schema does not allow it: the TypeScript SDK 1.x checks that
    of errors too, and then its caller does not get the text of the error.
    """
    checks: list[Callable[[Any], list[tuple[str, str]]]] = []

    def render(value: Any) -> Result:
        value = converted(value)
        try:
            result = _tool_result(value) if isinstance(value, ToolResult) else _structured(jsonable(value))
        except ValueError as error:
            raise unwritable(value, tool, error) from None
        is_error = "isError" in result
        if is_error and "structuredContent" not in result:
            return result
        if not checks:
            from funcmcp._authoring.schemas.handwritten_schema import schema_checker  # noqa: PLC0415 - for hand-written schemas only

            checks.append(schema_checker(schema, f"The output_schema of {tool}"))
        errors = checks[0](result.get("structuredContent"))
        if errors and is_error:
            del result["structuredContent"]
        elif errors:
            raise ValueError(f"{tool} returned what its output_schema does not allow: {errors[0][0]} {errors[0][1]}.")
        return result

    return Rendering(render, lambda: schema)


def is_open_list(annotation: Any) -> bool:
    """Return whether a type is a list or a tuple of anything, such as ``list`` and ``tuple[object, ...]``."""
    origin = get_origin(annotation) or annotation
    members = (without_marks(member) for member in get_args(annotation) if member is not ...)
    return origin in _LISTS and _OPEN.issuperset(members)


def _has_content(annotation: Any) -> bool:
    return any(
        isinstance(part, type) and (issubclass(part, Content | ToolResult) or is_sdk_type(part))
        for part in parts_of_type(annotation)
    )


def _no_schema() -> None:
    return


def _nothing(value: Any) -> Result:
    if value is not None:
        raise TypeError(f"The tool is annotated to return None, but returned {type_name(type(value))}.")
    return {"content": []}


def _raw(value: Any) -> Result:
    is_response = isinstance(value, dict) and value.get("jsonrpc") == "2.0" and "id" in value
    if not is_response or ("result" in value) == ("error" in value):
        raise TypeError('A JSONRPCResponse must have "jsonrpc": "2.0", "id", and either "result" or "error".')
    encode(value)
    return RawResponse(value)


def _scalar(annotation: type) -> Rendering:
    """Return the rendering of numbers and booleans. It is faster than pydantic, for small tools."""
    schema = _wrapped({"type": _SCALARS[annotation]})

    def render(value: Any) -> Result:
        kind = type(value)
        if kind is bool:
            text = b"true" if value else b"false"
        elif kind is int:
            text = b"%d" % value
        elif kind is float and isfinite(value):
            text = repr(value).encode()
        else:
            return render(_number(annotation, value))
        if kind is not annotation and (annotation is not float or kind is bool):
            raise TypeError(_mismatch(annotation, value))
        return JSONResult(b'"%b"' % text, b'{"result":%b}' % text)

    return Rendering(render, lambda: schema)


def _number(annotation: type, value: Any) -> bool | int | float:
    """Return the number of Python for a number of a subclass or of another library.

    Args:
        annotation: The return annotation.
        value: The number.

    Raises:
        TypeError: The number does not fit the annotation, or the value is not a number.
    """
    try:
        number = python_value(value)
    except ValueError:
        number = None
    kind = type(number)
    if kind is float and not isfinite(number):
        raise TypeError(_mismatch(annotation, number))
    if kind is annotation or (kind is int and annotation is float):
        scalar: bool | int | float = number
        return scalar
    raise TypeError(_mismatch(annotation, value, may_convert=kind in _SCALARS))


def _mismatch(annotation: type, value: Any, *, may_convert: bool = False) -> str:
    """Return the error for a value that is not of a scalar type.

    Args:
        annotation: The return annotation.
        value: The value.
        may_convert: Whether the value stands for a number.
    """
    kind = type(value)
    shown = str(value) if kind is float else type_name(kind)
    text = f"The tool is annotated to return {annotation.__name__}, but returned {shown}."
    if kind is bool or (kind is float and not isfinite(value)) or not (may_convert or isinstance(value, Number)):
        return text
    return f"{text} Convert it: {annotation.__name__}(value)."


class _Typed:
    """Writes values of one type as structured content, with a text block of the same JSON."""

    def __init__(self, annotation: Any, tool: str) -> None:
        self._writer = ResultWriter(annotation, tool)
        self._tool = tool
        self._schema: dict[str, Any] | None = None
        self._wraps = False
        self.left_out: list[LeftOut] = []

    def output_schema(self) -> dict[str, Any]:
        """Return the schema. A schema whose type is not an object is wrapped, in every revision."""
        if self._schema is None:
            from funcmcp._authoring.schemas.json_schema import json_schema  # noqa: PLC0415 - loads pydantic

            left_out: list[LeftOut] = []
            schema = json_schema(self._writer.core(), "serialization", f"What {self._tool} returns", left_out)
            self._wraps = schema.get("type") != "object"
            prefix = ("properties", "result") if self._wraps else ()
            self.left_out += [omission._replace(path=(*prefix, *omission.path)) for omission in left_out]
            self._schema = _wrapped(schema) if self._wraps else schema
        return self._schema

    def render(self, value: Any) -> Result:
        """Return the result for a value. Raise ValueError if it is not of the type."""
        if self._schema is None:
            self.output_schema()
        structured = self._writer.write(value)
        if self._writer.may_write_blocks and may_have_binary_blocks(structured):
            decoded = from_json(structured)
            content = _content_of(decoded)
            return {"content": content, "structuredContent": {"result": decoded} if self._wraps else decoded}
        text = structured if structured.startswith(b'"') else to_json(structured.decode())
        if self._wraps:
            structured = b'{"result":%b}' % structured
        return JSONResult(text, structured)


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with one member, ``result``, whose schema is given."""
    inner = without(schema, "$defs")
    wrapped = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    if "$defs" in schema:
        return {**wrapped, "$defs": schema["$defs"]}
    return wrapped


def _structured(structured: Any) -> dict[str, Any]:
    return {"content": _content_of(structured), "structuredContent": structured}


def _content_of(structured: Any) -> list[dict[str, Any]]:
    """Return a JSON value as a text block, and the images, sounds and files in it as blocks of their own."""
    encoded = encode(structured)
    if not may_have_binary_blocks(encoded):
        return [_text(structured)] if isinstance(structured, str) else [{"type": "text", "text": encoded.decode()}]
    remaining, blocks = without_binary(structured)
    if blocks and blocks[0] == structured:
        return blocks
    return [_text(remaining), *blocks]


def _plain(tool: str, allowed: tuple[type, ...], convert: Callable[[Any], Any] | None) -> Render:
    """Return the function that renders texts and bytes, which are content but not structured content.

    Args:
        tool: The tool's name, for errors.
        allowed: The types of the annotation.
        convert: Serializes and checks a value, if the annotation has constraints or serializers.
    """

    def render(value: Any) -> Result:
        if not isinstance(value, allowed):
            remedy = " Convert it: str(value)." if isinstance(value, Number) and str in allowed else ""
            raise TypeError(f"{tool} returned {type_name(type(value))}, which its annotation does not allow.{remedy}")
        if convert is not None:
            value = convert(value)
        if isinstance(value, str):
            return JSONResult(encode(value))
        return {"content": [] if value is None else _blocks(value, tool)}

    return render


def _open_list(typed: _Typed, tool: str) -> Render:
    """Return the function that renders lists of anything. One with a content block is content, others are data."""
    by_value = _locating(_by_value, tool)

    def render(value: Any) -> Result:
        if isinstance(value, Iterator):
            value = list(value)
        is_mixed = isinstance(value, list | tuple) and any(map(_is_block, value))
        if is_mixed or isinstance(converted(value), ToolResult):
            return by_value(value)
        return typed.render(value)

    return render


def _content_only(value: Any, tool: str) -> Result:
    """Return the result for a value that is annotated as content. An empty list is a result without blocks."""
    if isinstance(value, list | tuple | Iterator):
        return {"content": _blocks_of_members(value, tool)}
    return _by_value(value, tool)


def _by_value(value: Any, tool: str) -> Result:
    """Return the result for a value without a return annotation."""
    if isinstance(value, CompleteResult):
        return value.wire
    if isinstance(value, ToolResult):
        return _tool_result(value)
    if value is None:
        return {"content": []}
    if isinstance(value, Iterator):
        value = list(value)
    if is_sdk_type(type(value)):
        own_value = converted(value)
        if own_value is value:
            return _structured(jsonable(value))
        return _by_value(own_value, tool)
    if isinstance(value, list | tuple) and any(map(_is_block, value)):
        return {"content": _blocks_of_members(value, tool)}
    if isinstance(value, str | bytes | Content):
        return {"content": _blocks(value, tool)}
    plain = jsonable(value)
    if isinstance(plain, Mapping):
        return _structured(plain)
    return {"content": _content_of(plain)}


def _is_block(value: Any) -> bool:
    return isinstance(value, Content) or is_sdk_type(type(value))


def _tool_result(value: ToolResult) -> dict[str, Any]:
    result: dict[str, Any] = {"content": _blocks_of_members(value.content, "")}
    if value.structured_content is not None:
        written = _structured(jsonable(value.structured_content))
        result = {**written, "content": result["content"] or written["content"]}
    if value.is_error:
        result["isError"] = True
    if value.meta is not None:
        result["_meta"] = jsonable(dict(value.meta))
        encode(result["_meta"])
    return result


def _blocks_of_members(members: Iterable[Any], tool: str) -> list[dict[str, Any]]:
    return [block for member in members for block in _blocks(member, tool)]


def _blocks(value: Any, tool: str) -> list[dict[str, Any]]:
    """Return the content blocks for a member of a list with content, which may be a list itself."""
    value = converted(value)
    if isinstance(value, Content):
        encode(value.block)  # raises ValueError for what JSON can't carry
        return [value.block]
    if isinstance(value, bytes):
        resource = {"uri": f"tool://{tool}/result", "mimeType": "application/octet-stream", "blob": base64(value)}
        return [{"type": "resource", "resource": resource}]
    if isinstance(value, list | tuple) and any(map(_is_block, value)):
        return _blocks_of_members(value, tool)
    if isinstance(value, str):
        return [_text(value)]
    return _content_of(jsonable(value))


def _text(value: Any) -> dict[str, Any]:
    text = encode(value).decode()
    return {"type": "text", "text": str.__str__(value) if isinstance(value, str) else text}

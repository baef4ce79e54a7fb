"""What tools of FastMCP return, as FastMCP writes it.

How it works: `ToolOutput` reads the return annotation of a tool's function once, for its output schema and for how its
values are written. `finished` wraps the function: it reads generators in the thread that runs the function, and returns
the complete result, which the tool sends unchanged. The output schema describes results. It does not check them.
"""

from __future__ import annotations

import inspect
from base64 import b64encode
from functools import cached_property
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.content import Content, ToolResult
from funcmcp._authoring.results.sdk_results import converted
from funcmcp._authoring.results.tool_results import CompleteResult
from funcmcp._authoring.signatures.partials import generator_kind, is_async
from funcmcp._authoring.signatures.signature import EMPTY, Signature
from funcmcp._compat.errors import ToolError
from funcmcp._compat.functions import schema_of_result, set_signature
from funcmcp._compat.serialization import json_text, serialized, serializer_of
from funcmcp._objects.mappings import without

if TYPE_CHECKING:
    from collections.abc import Callable

INFERRED: Any = ...
"""Stands for the output schema that the return annotation gives."""

_WRAPPED = "x-fastmcp-wrap-result"
_WRAPPED_META = {"fastmcp": {"wrap_result": True}}


class ToolOutput:
    """How the results of a tool are written.

    Args:
        tool: The tool's name, for errors.
        function: The function.
        schema: The output schema, None for no schema, or `INFERRED`.
        checks_schema: Whether the schema has to be one of objects.

    Raises:
        ValueError: The schema is not one of objects.
    """

    def __init__(
        self, tool: str, function: Callable[..., Any], schema: Any = INFERRED, *, checks_schema: bool = True
    ) -> None:
        self._tool = tool
        self._function = function
        self._schema = schema
        if isinstance(schema, dict) and checks_schema:
            _check(schema)

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The output schema; None if the tool has none."""
        if self._schema is not INFERRED:
            schema: dict[str, Any] | None = self._schema
            return schema
        from funcmcp._compat.output_schemas import output_schema_of  # noqa: PLC0415 - loads pydantic

        return schema_of_result(self._function) or output_schema_of(return_annotation(self._function))

    @cached_property
    def _serialize(self) -> Callable[[Any], Any]:
        return serializer_of(return_annotation(self._function))

    def result(self, value: Any) -> CompleteResult:
        """Return the result for a value.

        Raises:
            ToolError: JSON can't carry the value.
        """
        value = _as_result(value)
        if isinstance(value, ToolResult):
            return CompleteResult(_wire(value))
        blocks = blocks_of(value)
        if isinstance(value, bytes) or (blocks is not None and self.schema is None):
            return CompleteResult({"content": content_of(value)})
        try:
            structured = self._serialize(value if blocks is None else _plain_blocks(value))
        except ValueError as error:
            if self.schema is not None:
                raise ToolError(
                    f"Could not serialize the return value of tool {self._tool!r} for its output schema. If this is "
                    "unexpected, set the tool's output_schema to None to disable automatic serialization."
                ) from error
            return CompleteResult({"content": content_of(value)})
        content = content_of(structured) if blocks is None else blocks
        return CompleteResult({"content": content, **self._structured(structured)})

    def _structured(self, structured: Any) -> dict[str, Any]:
        """Return the members of a result beside its content."""
        if self.schema is None:
            return {"structuredContent": structured} if isinstance(structured, dict) else {}
        if self.schema.get(_WRAPPED):
            return {"structuredContent": {"result": structured}, "_meta": _WRAPPED_META}
        return {} if structured is None else {"structuredContent": structured}


def return_annotation(function: Callable[..., Any]) -> Any:
    """Return the resolved return annotation of a function; EMPTY if it has none, and None for ``-> None``."""
    hint = Signature(function).try_hints().get("return", EMPTY)
    if hint is type(None):
        return None
    return hint


def _check(schema: dict[str, Any]) -> None:
    """Raise ValueError if an output schema is not one of objects."""
    from funcmcp._compat.output_schemas import is_of_objects  # noqa: PLC0415 - loads pydantic

    if not is_of_objects(schema):
        raise ValueError(
            f"Output schemas must represent object types due to MCP spec limitations. Received: {schema!r}"
        )


def _as_result(value: Any) -> Any:
    """Return a result or a content block of another package as funcmcp's; other values are returned unchanged."""
    native = converted(value)
    return native if isinstance(native, ToolResult | Content) else value


def _wire(result: ToolResult) -> dict[str, Any]:
    """Return a complete result in JSON form."""
    wire: dict[str, Any] = {"content": content_of(list(result.content))}
    if result.structured_content is not None:
        wire["structuredContent"] = serialized(result.structured_content)
        wire["content"] = wire["content"] or content_of(wire["structuredContent"])
    if result.is_error:
        wire["isError"] = True
    if result.meta is not None:
        wire["_meta"] = serialized(dict(result.meta))
    return wire


def blocks_of(value: Any) -> list[dict[str, Any]] | None:
    """Return the blocks of a value that is content, or a list with content; None for other values."""
    if isinstance(value, Content):
        return [value.block]
    if not isinstance(value, list | tuple) or not any(isinstance(_as_result(item), Content) for item in value):
        return None
    return [_block(item) for item in value]


def content_of(value: Any) -> list[dict[str, Any]]:
    """Return a value as the content of a result."""
    if value is None or (isinstance(value, list | tuple) and not value):
        return []
    blocks = blocks_of(value)
    return [_block(value)] if blocks is None else blocks


def _block(value: Any) -> dict[str, Any]:
    block = _as_result(value)
    if isinstance(block, Content):
        return dict(block.block)
    if isinstance(value, bytes):
        try:
            return {"type": "text", "text": value.decode()}
        except UnicodeDecodeError:
            return {"type": "text", "text": b64encode(value).decode()}
    return {"type": "text", "text": str(value) if isinstance(value, str) else json_text(value)}


def _plain_blocks(value: Any) -> Any:
    """Return content as data, for a tool with an output schema."""
    if isinstance(value, Content):
        return value.block
    return [_plain_blocks(_as_result(item)) if isinstance(_as_result(item), Content) else item for item in value]


def finished(function: Callable[..., Any], output: ToolOutput, *, in_thread: bool = True) -> Any:
    """Return a function that returns the results of a tool for the values of its function.

    Args:
        function: The author's function.
        output: How results are written.
        in_thread: Whether a plain function may run in a thread. Otherwise it runs in the event loop.
    """
    signature = Signature(function)
    if signature.try_types() is None:
        return function  # whose registration then reports the annotation
    is_in_loop = is_async(function) or generator_kind(function) == "async" or not in_thread
    call = _async_call(function, output) if is_in_loop else _plain_call(function, output)
    set_signature(call, function, without(signature.try_hints(), "return"), ())
    return call


def _async_call(function: Callable[..., Any], output: ToolOutput) -> Any:
    async def call(**arguments: Any) -> Any:
        return output.result(await _completed(function(**arguments)))

    return call


def _plain_call(function: Callable[..., Any], output: ToolOutput) -> Any:
    async def later(value: Any) -> Any:
        return output.result(await _completed(value))

    def call(**arguments: Any) -> Any:
        value = function(**arguments)
        if inspect.isgenerator(value):
            value = list(value)
        if inspect.isawaitable(value) or inspect.isasyncgen(value):
            return later(value)  # which is awaited in the event loop
        return output.result(value)

    return call


async def _completed(value: Any) -> Any:
    """Return what a function returned, after waiting for it, and the items of a generator as a list."""
    if inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value):
        return [item async for item in value]
    return list(value) if inspect.isgenerator(value) else value

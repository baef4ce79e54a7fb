"""What tools of FastMCP return, as FastMCP writes it.

How it works: `ToolOutput` reads the return annotation of a tool's function once, for its output schema and for how its
values are written. `finished` wraps the function: it reads generators in the thread that runs the function, and returns
the complete result, which the tool sends unchanged. The output schema describes results. It does not check them.
"""

from __future__ import annotations

import inspect
from functools import cached_property
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.content import ToolResult
from funcmcp._authoring.results.sdk_results import is_sdk_type
from funcmcp._authoring.results.tool_results import CompleteResult
from funcmcp._authoring.schemas.iterators import BUILT_IN
from funcmcp._authoring.signatures.partials import generator_kind, is_async
from funcmcp._authoring.signatures.signature import EMPTY, Signature
from funcmcp._compat.annotations import plain
from funcmcp._compat.content_blocks import blocks_of, content_of, native_result_of, plain_blocks
from funcmcp._compat.errors import ToolError
from funcmcp._compat.functions import schema_of_result, set_signature
from funcmcp._compat.input_rounds import raise_for_input
from funcmcp._compat.serialization import serialized, serializer_of
from funcmcp._compat.tool_metadata import check_output_schema
from funcmcp._objects.mappings import without
from funcmcp._server.catalog.registry import RegistrationError

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
        self._schema = schema
        # Read at once: later the names of a local function may be unknown.
        self._hint = return_annotation(function)
        self._annotated_schema = schema_of_result(function) if schema is INFERRED else None
        if checks_schema:
            check_output_schema(schema)

    @cached_property
    def schema(self) -> dict[str, Any] | None:
        """The output schema; None if the tool has none."""
        if self._schema is not INFERRED:
            schema: dict[str, Any] | None = self._schema
            return schema
        from funcmcp._compat.output_schemas import output_schema_of  # noqa: PLC0415 - loads pydantic

        return self._annotated_schema or output_schema_of(self._hint)

    @cached_property
    def _serialize(self) -> Callable[[Any], Any]:
        return serializer_of(self._hint)

    def result(self, value: Any) -> CompleteResult:
        """Return the result for a value.

        Raises:
            ToolError: JSON can't carry the value.
            InputRequiredError: The value is an ``InputRequiredResult``.
        """
        if type(value) not in BUILT_IN:
            raise_for_input(value)
            if is_sdk_type(type(value)) and isinstance(getattr(value, "content", None), list):
                return CompleteResult(_sdk_wire(value))
            value = native_result_of(value)
            if isinstance(value, ToolResult):
                return CompleteResult(_wire(value))
        blocks = blocks_of(value)
        if isinstance(value, bytes) or (blocks is not None and self.schema is None):
            return CompleteResult({"content": content_of(value)})
        try:
            structured = self._serialize(value if blocks is None else plain_blocks(value))
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
        if structured is None:
            return {}
        if not isinstance(structured, dict):
            raise ValueError(  # noqa: TRY004 - as FastMCP does
                f"structured_content must be a dict or None. Got {type(structured).__name__}: {structured!r}. "
                "Tools should wrap non-dict values based on their output_schema."
            )
        return {"structuredContent": structured}


def return_annotation(function: Callable[..., Any]) -> Any:
    """Return the resolved return annotation of a function; EMPTY if it has none, and None for ``-> None``."""
    hint = Signature(function).try_hints().get("return", EMPTY)
    if hint is type(None):
        return None
    return hint


def _sdk_wire(result: Any) -> dict[str, Any]:
    """Return a ``CallToolResult`` of the official SDK in JSON form, with its models inside."""
    wire: dict[str, Any] = plain(result)
    if not wire.get("isError"):
        wire.pop("isError", None)
    return without(wire, "resultType")


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


def finished(function: Callable[..., Any], finish: Callable[[Any], Any], *, in_thread: bool = True) -> Any:
    """Return a function that passes its values on, generators as lists, and returns the result.

    Args:
        function: The author's function.
        finish: Gets each value, and returns the result.
        in_thread: Whether a plain function may run in a thread. Otherwise it runs in the event loop.

    Raises:
        RegistrationError: The annotations of a generator can't be resolved.
    """
    signature = Signature(function)
    if signature.try_types() is None:
        if generator_kind(function) is not None:
            raise RegistrationError(
                f"An annotation of the generator {signature.name} uses an unknown name. Import it at run time, before "
                "the tool is registered."
            )
        return function  # whose registration reports the annotation later, when the tool is listed
    is_in_loop = is_async(function) or generator_kind(function) == "async" or not in_thread
    call = _async_call(function, finish) if is_in_loop else _plain_call(function, finish)
    set_signature(call, function, without(signature.try_hints(), "return"), ())
    return call


def _async_call(function: Callable[..., Any], finish: Callable[[Any], Any]) -> Any:
    async def call(**arguments: Any) -> Any:
        return finish(await _completed(function(**arguments)))

    return call


def _plain_call(function: Callable[..., Any], finish: Callable[[Any], Any]) -> Any:
    async def later(value: Any) -> Any:
        return finish(await _completed(value))

    def call(**arguments: Any) -> Any:
        value = function(**arguments)
        if inspect.isgenerator(value):
            value = list(value)
        if inspect.isawaitable(value) or inspect.isasyncgen(value):
            return later(value)  # which is awaited in the event loop
        return finish(value)

    return call


async def _completed(value: Any) -> Any:
    """Return what a function returned, after waiting for it, and the items of a generator as a list."""
    if type(value) is CoroutineType or inspect.isawaitable(value):  # the first test is the faster one
        value = await value
    if type(value) in BUILT_IN:
        return value
    if inspect.isasyncgen(value):
        return [item async for item in value]
    return list(value) if inspect.isgenerator(value) else value

"""Calls of a tool's function: JSON arguments in, a ``CallToolResult`` out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.calling.arguments import handwritten_reader, parts_of, reader_of
from funcmcp._authoring.calling.function_call import Always, CallKind, FunctionCall
from funcmcp._authoring.calling.unknown_arguments import DEFAULT_RULES, ArgumentRules, known_arguments
from funcmcp._authoring.results.tool_results import handwritten_rendering, rendering_of
from funcmcp._server.catalog.features import JSONResult, RawResponse, in_member

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from funcmcp._authoring.calling.arguments import Part, Reader
    from funcmcp._authoring.calling.function_call import FeatureFunction
    from funcmcp._authoring.results.tool_results import Rendering
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import LeftOut

    ToolCallResult: TypeAlias = "dict[str, Any] | JSONResult | RawResponse"
    ToolCall: TypeAlias = "FunctionCall[ToolSettings, ToolCallResult, dict[str, Any]]"


class HandwrittenSchemas(NamedTuple):
    """The hand-written schemas of a tool. None stands for a schema that comes from the annotations.

    Attributes:
        input: The schema of the arguments.
        output: The schema of the structured content.
        without_output: Whether the tool has no output schema at all.
    """

    input: dict[str, Any] | None = None
    output: dict[str, Any] | None = None
    without_output: bool = False


class ToolSettings:
    """How a tool reads arguments and writes results.

    Args:
        schemas: The tool's hand-written schemas.
        rules: How arguments are read.
    """

    def __init__(self, schemas: HandwrittenSchemas, rules: ArgumentRules) -> None:
        self.schemas = schemas
        self.rules = rules
        self._rendering: Rendering | None = None

    def rendering(self, call: ToolCall) -> Rendering:
        """Return how the results of the tool's call are written. It is created once."""
        if self._rendering is None:
            if self.schemas.output is not None:
                self._rendering = handwritten_rendering(self.schemas.output, call.name)
            else:
                self._rendering = rendering_of(result_type_of(call, call.signature.returns()), call.name)
                if self.schemas.without_output:
                    self._rendering = self._rendering.without_schema()
        return self._rendering


def tool_call(feature: FeatureFunction, schemas: HandwrittenSchemas, rules: ArgumentRules = DEFAULT_RULES) -> ToolCall:
    """Return the calls of a tool's function. `FunctionCall.run` is a `ToolHandler`.

    Args:
        feature: The function.
        schemas: The tool's hand-written schemas.
        rules: How arguments are read.
    """
    return FunctionCall(feature, TOOL_CALL, ToolSettings(schemas, rules), handwritten_schema=schemas.input)


def result_type_of(call: ToolCall, annotation: Any) -> Any:
    """Return the type of a tool's result for the return annotation of its function."""
    if call.generator is None:
        return annotation
    from funcmcp._authoring.calling.generators import collected_type  # noqa: PLC0415 - few tools are generators

    return collected_type(annotation)


def output_schema_of(call: ToolCall) -> dict[str, Any] | None:
    """Return a tool's output schema, or None if it has none."""
    return call.settings.rendering(call).output_schema()


def left_out_of(call: ToolCall) -> list[LeftOut]:
    """Return what the generated schemas of a tool do not say, because clients would reject it.

    Paths begin with ``inputSchema`` or ``outputSchema``.
    """
    rendering = call.settings.rendering(call)
    rendering.output_schema()
    return [
        *in_member("inputSchema", call.left_out_of_input()),
        *in_member("outputSchema", rendering.left_out),
    ]


def _parts(call: ToolCall) -> list[Part]:
    return parts_of(call.plan.arguments, call.name, lax=call.settings.rules.lax)


def _new_reader(call: ToolCall) -> Reader:
    rules = call.settings.rules
    if call.handwritten_schema is None:
        known = known_arguments(call.parts, rules.unknown)
        return reader_of(call.parts, lax=rules.lax, schema=call.input_schema, known=known)
    read_named = reader_of(call.parts, lax=rules.lax) if call.plan.arguments else None
    return handwritten_reader(
        call.handwritten_schema, call.name, all_arguments=call.plan.all_arguments, read_named=read_named
    )


def _new_renderer(
    call: ToolCall,
) -> Always[ToolCallResult] | Callable[[RequestContext, dict[str, Any]], Callable[[Any], ToolCallResult]]:
    rendering = call.settings.rendering(call)
    if not rendering.is_response:
        return Always(rendering.render)

    def renderer(context: RequestContext, _arguments: dict[str, Any]) -> Callable[[Any], ToolCallResult]:
        def render(value: Any) -> ToolCallResult:
            result = rendering.render(value)
            _check_id(result, context.request.id, call.name)
            return result

        return render

    return renderer


def _check_id(result: ToolCallResult, request_id: str | int, tool: str) -> None:
    """Raise ValueError if a result is a JSON-RPC response to another request."""
    if isinstance(result, RawResponse):
        response_id = result.message["id"]
        if response_id != request_id or type(response_id) is not type(request_id):
            raise ValueError(
                f"{tool} returned a JSON-RPC response with the id {response_id!r}, "
                f"but the request has the id {request_id!r}."
            )


def _context_members(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"arguments": arguments}


TOOL_CALL = CallKind(_new_reader, _new_renderer, _parts, _context_members, collects_generators=True, takes_handle=True)

"""Calls of a tool's function: JSON arguments in, a ``CallToolResult`` out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from funcmcp._authoring.calling.arguments import handwritten_reader, input_schema, parts_of, reader_of
from funcmcp._authoring.calling.feature_context import Context
from funcmcp._authoring.calling.function_call import FunctionCall
from funcmcp._authoring.calling.unknown_arguments import DEFAULT_RULES, ArgumentRules, checking_names, known_arguments
from funcmcp._authoring.values.tool_results import handwritten_rendering, rendering_of
from funcmcp._server.catalog.features import JSONResult, RawResponse, in_member

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.calling.arguments import Part, Reader
    from funcmcp._authoring.calling.function_call import FeatureFunction
    from funcmcp._authoring.values.tool_results import Rendering
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import LeftOut

ToolCallResult: TypeAlias = "dict[str, Any] | JSONResult | RawResponse"


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


class ToolCall(FunctionCall["dict[str, Any]", "ToolCallResult"]):
    """Calls a tool's function. `run` is a `ToolHandler`.

    Args:
        feature: The function.
        schemas: The tool's hand-written schemas.
        rules: How arguments are read.
    """

    def __init__(
        self,
        feature: FeatureFunction,
        *,
        schemas: HandwrittenSchemas,
        rules: ArgumentRules = DEFAULT_RULES,
    ) -> None:
        super().__init__(feature, input_schema=schemas.input)
        self._schemas = schemas
        self._rules = rules
        self._cached_parts: list[Part] | None = None
        self._cached_rendering: Rendering | None = None

    def input_schema(self) -> dict[str, Any]:
        """Return the tool's input schema."""
        if self._schemas.input is not None:
            return self._schemas.input
        return input_schema(self._parts(), self.name, self.signature.parameter_descriptions())

    def left_out(self) -> list[LeftOut]:
        """Return what the generated schemas do not say, because clients would reject it.

        Paths begin with ``inputSchema`` or ``outputSchema``.
        """
        of_input: list[LeftOut] = []
        if self._schemas.input is None:
            input_schema(self._parts(), self.name, self.signature.parameter_descriptions(), of_input)
        rendering = self._rendering()
        rendering.output_schema()
        return [*in_member("inputSchema", of_input), *in_member("outputSchema", rendering.left_out)]

    def output_schema(self) -> dict[str, Any] | None:
        """Return the tool's output schema, or None if it has none."""
        return self._rendering().output_schema()

    def check(self, arguments: dict[str, Any]) -> None:
        """Raise ToolError for arguments that the tool rejects, without a call."""
        read = self._read or self.prepare()
        read(arguments)

    def prepare(self) -> Reader:
        """Create the reader and the renderer, and return the reader."""
        read = super().prepare()
        if self._rendering().is_response:
            self._is_direct = False  # so that `_check_result` compares its id with the request's
        return read

    def _new_reader(self) -> Reader:
        if self._schemas.input is None:
            read = reader_of(self._parts(), lax=self._rules.lax, schema=self.input_schema)
            known = known_arguments(self._parts())
            return read if known is None else checking_names(read, known, self._rules.unknown)
        read_named = reader_of(self._parts(), lax=self._rules.lax) if self.plan.arguments else None
        return handwritten_reader(
            self._schemas.input, self.name, all_arguments=self.plan.all_arguments, read_named=read_named
        )

    def _new_renderer(self) -> Callable[[Any], ToolCallResult]:
        return self._rendering().render

    def _new_context(self, context: RequestContext, arguments: dict[str, Any]) -> Context:
        return Context(context, self._services.lifespans, self.name, arguments=arguments)

    def _check_result(self, result: ToolCallResult, context: RequestContext) -> None:
        if isinstance(result, RawResponse):
            response_id, request_id = result.message["id"], context.request.id
            if response_id != request_id or type(response_id) is not type(request_id):
                raise ValueError(
                    f"{self.name} returned a JSON-RPC response with the id {response_id!r}, "
                    f"but the request has the id {request_id!r}."
                )

    def _parts(self) -> list[Part]:
        if self._cached_parts is None:
            self._cached_parts = parts_of(self.plan.arguments, self.name, lax=self._rules.lax)
        return self._cached_parts

    def _rendering(self) -> Rendering:
        if self._cached_rendering is None:
            if self._schemas.output is not None:
                self._cached_rendering = handwritten_rendering(self._schemas.output, self.name)
            else:
                rendering = rendering_of(self.signature.returns(), self.name)
                if self._schemas.without_output:
                    rendering = rendering.without_schema()
                self._cached_rendering = rendering
        return self._cached_rendering

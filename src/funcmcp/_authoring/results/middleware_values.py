"""The values that middleware returns: objects such as a `ToolResult`, and structured content for an output schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.content import Content, Contents, Message, PromptResult, ToolResult
from funcmcp._authoring.results.result_writer import jsonable
from funcmcp._authoring.results.sdk_results import converted
from funcmcp._authoring.signatures.signature import EMPTY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._authoring.schemas.handwritten_schema import SchemaChecker
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import EncodedResult


class MiddlewareValues:
    """Reads the values of middleware. A schema is compiled when its tool's result is first checked."""

    def __init__(self) -> None:
        self._checkers: dict[str, tuple[Mapping[str, Any], SchemaChecker]] = {}

    def result_of(self, value: object, context: RequestContext) -> dict[str, Any] | None:
        """Return the result for an object that a function of the request's kind may return; None for other objects."""
        read = _READERS.get(context.request.method)
        return None if read is None else read(converted(value), context)

    def schema_error(self, tool: str, schema: Mapping[str, Any], value: object) -> str | None:
        """Return why structured content does not fit the output schema of a tool; None if it fits."""
        errors = self._checker(tool, schema).errors(jsonable(value))
        return f"{errors[0][0]} {errors[0][1]}".strip() if errors else None

    def schema_faults(self, tool: str, schema: Mapping[str, Any], value: object) -> list[tuple[str | int, ...]]:
        """Return the paths of the parts of structured content that the output schema of a tool objects to."""
        return self._checker(tool, schema).faults(value)

    def _checker(self, tool: str, schema: Mapping[str, Any]) -> SchemaChecker:
        cached = self._checkers.get(tool)
        if cached is None or (cached[0] is not schema and cached[0] != schema):
            from funcmcp._authoring.schemas.handwritten_schema import SchemaChecker  # noqa: PLC0415 - loads jsonschema-rs

            cached = self._checkers[tool] = (schema, SchemaChecker(schema, f"The output schema of {tool}"))
        return cached[1]


def _tool_result(value: Any, _context: RequestContext) -> dict[str, Any] | None:
    if not isinstance(value, ToolResult | Content):
        return None
    from funcmcp._authoring.results.tool_results import rendering_of  # noqa: PLC0415 - only for results of middleware

    result = rendering_of(EMPTY, "middleware").render(value)
    return result if isinstance(result, dict) else None


def _resource_result(value: Any, context: RequestContext) -> dict[str, Any] | None:
    items = value if isinstance(value, list | tuple) else [value]
    if not items or not all(isinstance(converted(content), Contents) for content in items):
        return None
    from funcmcp._authoring.results.resource_contents import ContentsWriter  # noqa: PLC0415 - only for results of middleware

    mime_type = None if context.feature is None else _definition_of(context).get("mimeType")
    writer = ContentsWriter("middleware", EMPTY, mime_type=mime_type, ui=None)
    result = writer.result(str(context.request.params["uri"]), value)
    return result if isinstance(result, dict) else result.result()


def _prompt_result(value: Any, context: RequestContext) -> dict[str, Any] | None:
    items = value if isinstance(value, list | tuple) else [value]
    if not items or not all(isinstance(converted(message), PromptResult | Message) for message in items):
        return None
    from funcmcp._authoring.results.prompt_results import prompt_result  # noqa: PLC0415 - only for results of middleware

    description = None if context.feature is None else _definition_of(context).get("description")
    result: dict[str, Any] | EncodedResult = prompt_result(value, description=description)
    return result if isinstance(result, dict) else result.result()


def _definition_of(context: RequestContext) -> Mapping[str, Any]:
    feature: Any = context.feature
    definition: Mapping[str, Any] = feature.describe()
    return definition


_READERS: dict[str, Callable[[Any, RequestContext], dict[str, Any] | None]] = {
    "tools/call": _tool_result,
    "resources/read": _resource_result,
    "prompts/get": _prompt_result,
}

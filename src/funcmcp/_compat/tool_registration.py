"""Tools of FastMCP as tools of funcmcp."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.features.tools import make_tool
from funcmcp._compat.annotations import plain
from funcmcp._compat.errors import ToolError
from funcmcp._compat.functions import adapted, with_all_arguments
from funcmcp._compat.tool_output import INFERRED, ToolOutput, finished
from funcmcp._objects.mappings import without

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.calling.services import Services
    from funcmcp._compat.components import Tool

_ANY_ARGUMENTS = {"type": "object"}
"""The input schema for which a function gets all arguments as they are."""


def make_marked_tool(component: Tool, options: Any, services: Services) -> Any:
    """Return a tool whose schemas and results are written as FastMCP does.

    Args:
        component: The tool as it was registered.
        options: The options of the tool in funcmcp.
        services: The services of the server.

    Raises:
        RegistrationError: The function can't be a tool, or an option is not valid.
        ValueError: The output schema is not one of objects, or a time limit has no effect.
    """
    in_thread = options.pop("run_in_thread", None) is not False
    for option in ("execution", "output_schema", "structured_output"):
        options.pop(option, None)
    options["output_schema"] = None
    exclude = options.pop("exclude_args", None) or ()
    handwritten = options.get("input_schema")
    output = output_of(component)
    function = adapted(finished(component.fn, output.result, in_thread=in_thread), exclude=exclude, has_schema=False)
    if component.takes_any_arguments:
        function = with_all_arguments(function)
    if component.takes_any_arguments or not component.has_function:
        options["input_schema"] = _ANY_ARGUMENTS
    never_finishes = options.get("timeout") == 0
    if never_finishes:
        options["timeout"] = None
    tool = make_tool(function, options, services)
    if never_finishes:
        tool = replace(tool, handler=_timed_out(component.name))
    input_schema: Callable[[], dict[str, Any] | None]
    if handwritten is None:
        input_schema = functools.partial(_input_schema, function)
    else:
        input_schema = functools.partial(_only_dereferenced, handwritten)
    annotations = plain(component.options.get("annotations")) or {}
    definition = functools.partial(_definition, tool, input_schema, output, annotations.get("title"))
    limit = tool.time_limit
    if limit is not None and options.get("timeout") is not None:
        limit = limit._replace(error=timeout_error(component.name, limit.seconds))
    return replace(tool, describe=functools.cache(definition), time_limit=limit, checks_results=False)


def output_of(component: Tool) -> ToolOutput:
    """Return how the results of a tool are written."""
    schema = component.options.get("output_schema", INFERRED)
    if schema is False or component.options.get("structured_output") is False:
        schema = None
    is_own = component.has_function and not component.takes_any_arguments
    return ToolOutput(component.name, component.fn, schema, checks_schema=is_own)


def _timed_out(tool: str) -> Any:
    """Return the handler of a tool with ``timeout=0``, which FastMCP accepts."""

    async def handle(*_: Any) -> Any:
        raise ToolError(timeout_error(tool, 0.0))

    return handle


def timeout_error(tool: str, seconds: float) -> str:
    """Return the text of the error of a call that took too long."""
    return f"Error calling tool {tool!r}: Tool {tool!r} execution timed out after {seconds}s"


def _definition(
    tool: Any, input_schema: Callable[[], dict[str, Any] | None], output: ToolOutput, title_of_hints: str | None
) -> dict[str, Any]:
    """Return the definition of a tool with its schemas, and with the title in its annotations that the author chose."""
    definition: dict[str, Any] = dict(tool.describe())
    title = {"title": title_of_hints} if title_of_hints else {}
    annotations = {**without(definition.pop("annotations", {}), "title"), **title}
    if annotations:
        definition["annotations"] = annotations
    schema = input_schema()
    if schema is not None:
        definition["inputSchema"] = schema
    if output.schema is not None:
        definition["outputSchema"] = _only_dereferenced(output.schema)
    return definition


def _input_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    from funcmcp._compat.input_schemas import dereferenced, input_schema_of  # noqa: PLC0415 - loads pydantic

    schema = input_schema_of(function)
    return None if schema is None else dereferenced(schema)


def _only_dereferenced(schema: dict[str, Any]) -> dict[str, Any]:
    from funcmcp._compat.input_schemas import dereferenced  # noqa: PLC0415 - loads pydantic

    return dereferenced(schema)

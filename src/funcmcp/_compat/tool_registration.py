"""Tools of FastMCP as tools of funcmcp."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.features.tools import make_tool
from funcmcp._compat.functions import adapted
from funcmcp._compat.tool_output import INFERRED, ToolOutput, finished

if TYPE_CHECKING:
    from funcmcp._authoring.calling.services import Services
    from funcmcp._compat.components import Tool


def make_marked_tool(component: Tool, options: dict[str, Any], services: Services) -> Any:
    """Return a tool whose results are written and marked as FastMCP does.

    Args:
        component: The tool as it was registered.
        options: The options of the tool in funcmcp.
        services: The services of the server.

    Raises:
        RegistrationError: The function can't be a tool, or an option is not valid.
        ValueError: The output schema is not one of objects.
    """
    schema = component.options.get("output_schema", INFERRED)
    if schema is False or options.pop("structured_output", None) is False:
        schema = None
    options.pop("output_schema", None)
    exclude = options.pop("exclude_args", None) or ()
    output = ToolOutput(component.name, component.fn, schema)
    function = adapted(finished(component.fn, output), exclude=exclude, has_schema=False)
    tool = make_tool(function, {**options, "output_schema": None}, services)
    if output.schema is None:
        return tool
    described: Any = functools.partial(_with_output_schema, tool, output.schema)
    return replace(tool, describe=functools.cache(described))


def _with_output_schema(tool: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool with an output schema."""
    return {**tool.describe(), "outputSchema": schema}

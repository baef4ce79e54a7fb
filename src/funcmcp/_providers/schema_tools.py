"""`tool_from_schema`: a tool whose schema is data, as in a database."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.features.options import (
    check_common_options,
    checked_options,
    shown_errors_of,
    tags_of,
    time_limit_of,
    version_of,
)
from funcmcp._authoring.features.permissions import access_of
from funcmcp._authoring.features.registration_checks import feature_name
from funcmcp._authoring.features.tools import ToolOptions, annotations_of, make_tool, result_characters_of
from funcmcp._authoring.features.ui import page_meta
from funcmcp._authoring.results.content import icon_list
from funcmcp._authoring.schemas.handwritten_schema import check_schema
from funcmcp._authoring.signatures.naming import title_of
from funcmcp._authoring.signatures.partials import without_partials
from funcmcp._objects.mappings import without_none
from funcmcp._objects.public_names import public
from funcmcp._protocol.headers import mirrored_parameters
from funcmcp._server.catalog.features import Tool
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from funcmcp._server.calls.context import RequestContext


@public("funcmcp.providers")
def tool_from_schema(
    name: str,
    function: Callable[..., Any],
    input_schema: dict[str, Any],
    /,
    *,
    services: Services | None = None,
    **options: Unpack[ToolOptions],
) -> Tool:
    """Return a tool with a JSON schema, for a `Provider`. The function is read when the tool is first called.

    A tool whose schema is not valid is left out of the list, and the log says why.

    Args:
        name: The name.
        function: Gets all arguments as a dict, or those of its parameters. It may take a `Context`. It may be a
            `functools.partial`, so that one function serves all tools.
        input_schema: The JSON schema of the arguments.
        services: Services that the function gets by type, such as `Provider.services`.
        options: The options of `MCPServer.tool`, without ``task``.

    Raises:
        RegistrationError: The name or an option is not valid.
    """
    options = checked_options(options, ToolOptions)
    if options.get("task") is not None:
        raise RegistrationError(f"{name}: a tool of tool_from_schema has no task=.")
    if options.get("grant") is not None and services is None:
        raise RegistrationError(f"{name}: grant= of tool_from_schema needs services=mcp.services.")
    feature_name(function, name, "tool")
    check_common_options(name, options)
    fault = _fault_of(name, input_schema)

    @functools.cache
    def made() -> Tool:
        if fault is not None:
            raise RegistrationError(fault)
        return make_tool(function, {**options, "name": name, "input_schema": input_schema}, services or Services())

    async def call(context: RequestContext, arguments: dict[str, Any]) -> Any:
        return await made().handler(context, arguments)

    def describe() -> dict[str, Any]:
        if fault is not None:
            raise RegistrationError(fault)
        return _definition(name, function, input_schema, options)

    return Tool(
        name=name,
        describe=describe,
        handler=call,
        mirrored=() if fault is not None else mirrored_parameters(input_schema),
        interactive=True,
        time_limit=time_limit_of(options),
        access=access_of(name, options),
        shown_errors=shown_errors_of(name, options),
        tags=tags_of(name, options),
        enabled=options.get("enabled", True),
        version=version_of(name, options),
        result_characters=result_characters_of(name, options),
        annotations=annotations_of(options),
        # The question is read together with the function, which other tools need for their first call only.
        confirmation=made().confirmation if fault is None and options.get("confirm") is not None else None,
    )


def _fault_of(name: str, input_schema: dict[str, Any]) -> str | None:
    """Return why a schema is not valid, or None. The tool is then left out of the list, and not the whole list."""
    try:
        check_schema(input_schema, f"input_schema of {name}", objects_only=True)
        mirrored_parameters(input_schema)
    except ValueError as error:
        return f"{name}: {error}"
    return None


def _definition(
    name: str, function: Callable[..., Any], input_schema: dict[str, Any], options: ToolOptions
) -> dict[str, Any]:
    """Return the definition without a look at the function or a compiled schema: a list may have thousands of tools."""
    chosen: dict[str, Any] = {**options}
    definition = {
        "name": name,
        "title": chosen.get("title") or title_of(name, name) or name,
        "description": chosen.get("description") or inspect.getdoc(without_partials(function)) or None,
        "inputSchema": input_schema,
        "outputSchema": chosen.get("output_schema"),
        "annotations": annotations_of(options) or None,
        "icons": icon_list(chosen.get("icons", ())) or None,
        "_meta": {**(chosen.get("meta") or {}), **page_meta(chosen.get("ui"))} or None,
    }
    return without_none(definition)

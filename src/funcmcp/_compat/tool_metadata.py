"""Options of tools that FastMCP reads of the function, or checks with it."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.signatures.partials import generator_kind, is_async

if TYPE_CHECKING:
    from collections.abc import Callable

_logger = logging.getLogger("funcmcp.compat")
_MAX_NAME = 128
_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?")
"""Names of tools that all clients take."""

_OPTIONS = (
    *("version", "title", "description", "icons", "tags", "output_schema", "annotations", "meta", "task", "timeout"),
    *("auth", "run_in_thread", "enabled"),
)


def with_metadata(
    function: Callable[..., Any], name: str | None, options: dict[str, Any]
) -> tuple[str | None, dict[str, Any]]:
    """Return the name and the options of a tool, with those that FastMCP's decorator for functions has stored.

    They count for a tool without a name and without options of its own.
    """
    metadata = getattr(function, "__fastmcp__", None)
    is_chosen = name is not None or any(value is not None and value is not ... for value in options.values())
    if is_chosen or getattr(metadata, "type", None) != "tool":
        return name, options
    own_options: dict[str, Any] | None = getattr(metadata, "options", None)
    if own_options is not None:  # of funcmcp.compat.tool
        return getattr(metadata, "name", None), dict(own_options)
    stored = {option: getattr(metadata, option, None) for option in _OPTIONS}
    if stored["output_schema"] is ...:
        del stored["output_schema"]
    chosen = {option: value for option, value in stored.items() if value is not None or option == "output_schema"}
    return getattr(metadata, "name", None), chosen


def check_timeout(function: Callable[..., Any], name: str | None, options: dict[str, Any]) -> None:
    """Raise ValueError if a tool has a time limit that can't stop its function."""
    is_in_loop = options.get("run_in_thread") is False
    if options.get("timeout") is None or not is_in_loop or is_async(function) or generator_kind(function) == "async":
        return
    raise ValueError(
        f"Tool {name!r}: timeout cannot be enforced when run_in_thread=False on a sync function, which runs in the "
        "event loop and can't be interrupted. Remove one of the two options."
    )


def check_output_schema(schema: Any) -> None:
    """Raise ValueError if an output schema is not one of objects."""
    if not isinstance(schema, dict) or schema.get("type") == "object":
        return
    from funcmcp._compat.output_schemas import is_of_objects  # noqa: PLC0415 - loads pydantic

    if not is_of_objects(schema):
        raise ValueError(
            f"Output schemas must represent object types due to MCP spec limitations. Received: {schema!r}"
        )


def warn_of_name(name: str | None) -> None:
    """Log a warning of a tool's name that clients may refuse."""
    if name is None or _NAME.fullmatch(name):
        return
    if len(name) > _MAX_NAME:
        problem = f"exceeds maximum length of {_MAX_NAME} characters (current: {len(name)})"
    elif " " in name:
        problem = "contains spaces"
    elif name[0] in "-." or name[-1] in "-.":
        problem = "starts or ends with a dash or a period"
    else:
        problem = "contains invalid characters"
    _logger.warning("Tool name validation warning for %r: it %s.", name[:_MAX_NAME], problem)

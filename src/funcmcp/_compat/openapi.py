"""Route maps and names of FastMCP's `OpenAPIProvider`, `from_openapi` and `from_fastapi`."""

from __future__ import annotations

import enum
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._authoring.openapi.operations import Operation

    RouteMapFunction = Callable[["HTTPRoute", "MCPType"], "MCPType | None"]

_logger = logging.getLogger("funcmcp.compat")
_MAX_NAME_LENGTH = 56


@public("funcmcp.compat")
class MCPType(enum.Enum):
    """What an operation becomes: a tool, a resource, a template of resources, or nothing."""

    TOOL = "TOOL"
    RESOURCE = "RESOURCE"
    RESOURCE_TEMPLATE = "RESOURCE_TEMPLATE"
    EXCLUDE = "EXCLUDE"


@public("funcmcp.compat")
@dataclass(kw_only=True)
class RouteMap:
    """What operations become that match.

    Attributes:
        methods: Their methods, or ``"*"``.
        pattern: A regular expression that is found in their path.
        tags: Tags of which they have all.
        mcp_type: What they become.
        mcp_tags: Tags of their components.
    """

    methods: Sequence[str] | str = "*"
    pattern: re.Pattern[str] | str = ".*"
    tags: set[str] = field(default_factory=set)
    mcp_type: MCPType
    mcp_tags: set[str] = field(default_factory=set)

    def matches(self, operation: Operation) -> bool:
        """Return whether an operation matches."""
        if self.methods != "*" and operation.method not in self.methods:
            return False
        return re.search(self.pattern, operation.path) is not None and self.tags <= set(operation.tags)


@public("funcmcp.compat")
@dataclass
class HTTPRoute:
    """An operation, for ``route_map_fn`` and ``mcp_component_fn``.

    Attributes:
        path: The path.
        method: The method, in capitals.
        operation_id: The operation's id, or None.
        summary: The summary, or None.
        description: The description, or None.
        tags: The tags.
        extensions: The members of the operation that begin with ``x-``.
    """

    path: str
    method: str
    operation_id: str | None = None
    summary: str | None = None
    description: str | None = None
    tags: list[str] = field(default_factory=list)
    extensions: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, operation: Operation) -> HTTPRoute:
        """Return the route of an operation."""
        source = operation.source
        return cls(
            path=operation.path,
            method=operation.method,
            operation_id=operation.operation_id or None,
            summary=source.get("summary"),
            description=source.get("description"),
            tags=list(operation.tags),
            extensions={name: value for name, value in source.items() if name.startswith("x-")},
        )


def kind_of_route(
    operation: Operation, route: HTTPRoute, route_maps: Sequence[RouteMap], function: RouteMapFunction | None
) -> tuple[MCPType, set[str]]:
    """Return what an operation becomes, and the tags that the component gets for it.

    Args:
        operation: The operation.
        route: The same for the author's function.
        route_maps: The first that matches counts; an operation that none matches becomes a tool.
        function: Gets the route and what the route maps say, and returns another kind or None.
    """
    rule = next((rule for rule in route_maps if rule.matches(operation)), None)
    kind = MCPType.TOOL if rule is None else rule.mcp_type
    if function is not None:
        try:
            kind = function(route, kind) or kind
        except Exception as error:  # noqa: BLE001 - an author's function may raise anything
            _logger.warning("Error in route_map_fn for %s %s: %s", route.method, route.path, error)
    return kind, set() if rule is None else rule.mcp_tags


def default_name(operation: Operation, mcp_names: Mapping[str, str] | None) -> str:
    """Return the name that FastMCP gives the component of an operation.

    Args:
        operation: The operation.
        mcp_names: Names by the ids of operations.
    """
    operation_id = operation.operation_id
    method_and_path = f"{operation.method}_{operation.path}"
    if operation_id:
        name = (mcp_names or {}).get(operation_id) or operation_id.split("__")[0]
    else:
        name = str(operation.source.get("summary") or method_and_path)
    return (_slug(name) or _slug(method_and_path))[:_MAX_NAME_LENGTH]


def _slug(text: str) -> str:
    """Return a text with letters, digits and single underscores only."""
    letters = re.sub(r"[^a-zA-Z0-9_]", "", re.sub(r"[\s\-.]+", "_", text))
    return re.sub(r"_+", "_", letters).strip("_")

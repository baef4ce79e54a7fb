"""Route maps and names of tools of FastMCP's `from_openapi` and `from_fastapi`, over those of `funcmcp.MCPServer`."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._authoring.openapi.operations import Operation

    RouteMapFunction = Callable[["HTTPRoute", "MCPType"], "MCPType | None"]

_MAX_NAME_LENGTH = 56


@public("funcmcp.compat")
class MCPType(enum.Enum):
    """What an operation becomes. Only tools and nothing are supported."""

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
        mcp_tags: Not supported; tags of one server are those of the operations and of ``tags=``.
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


@dataclass(frozen=True)
class HTTPRoute:
    """An operation, for ``route_map_fn``.

    Attributes:
        path: The path.
        method: The method, in capitals.
        operation_id: The operation's id, or None.
        summary: The summary, or the name in words.
        description: The description.
        tags: The tags.
    """

    path: str
    method: str
    operation_id: str | None
    summary: str
    description: str
    tags: list[str]


def selection(route_maps: Sequence[RouteMap] | None, function: RouteMapFunction | None) -> Callable[[Operation], bool]:
    """Return the function that selects operations by the route maps of FastMCP. The first that matches counts.

    The function raises TypeError for an operation that would be a resource.
    """

    def select(operation: Operation) -> bool:
        kind = next((rule.mcp_type for rule in route_maps or () if rule.matches(operation)), MCPType.TOOL)
        if function is not None:
            kind = function(_route_of(operation), kind) or kind
        if kind in {MCPType.RESOURCE, MCPType.RESOURCE_TEMPLATE}:
            raise TypeError(
                f"{operation.method} {operation.path} would be a resource, but funcmcp makes tools of operations only. "
                "Use MCPType.TOOL, and @mcp.resource for resources."
            )
        return kind is MCPType.TOOL

    return select


def _route_of(operation: Operation) -> HTTPRoute:
    return HTTPRoute(
        path=operation.path,
        method=operation.method,
        operation_id=operation.operation_id or None,
        summary=operation.title,
        description=operation.description,
        tags=list(operation.tags),
    )


def names_of_tools(mcp_names: Mapping[str, str] | None) -> Callable[[Operation], str | None]:
    """Return the function that names tools as FastMCP does.

    Args:
        mcp_names: Names by the ids of operations.
    """

    def name_of(operation: Operation) -> str | None:
        operation_id = operation.operation_id
        if operation_id:
            name = (mcp_names or {}).get(operation_id) or operation_id.split("__")[0]
        else:
            name = str(operation.source.get("summary") or f"{operation.method}_{operation.path}")
        slug = re.sub(r"[^a-zA-Z0-9_]", "", re.sub(r"[\s\-.]+", "_", name))
        return re.sub(r"_+", "_", slug).strip("_")[:_MAX_NAME_LENGTH].rstrip("_") or None

    return name_of


def checked(component_function: Any) -> None:
    """Raise TypeError for ``mcp_component_fn``, which changes components of FastMCP."""
    if component_function is not None:
        raise TypeError(
            "mcp_component_fn is not supported. Use mcp_names= for names, and route_map_fn= to exclude operations."
        )

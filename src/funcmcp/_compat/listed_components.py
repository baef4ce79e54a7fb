"""Components in the lists of a server, with the names of FastMCP and the official SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._compat.content import ToolResult, tool_result
from funcmcp._compat.context import context_variable
from funcmcp._compat.editable import Editable, Hints, hints_of, sdk_object
from funcmcp._compat.task_config import TaskConfig, config_of
from funcmcp._compat.versions import VersionSpec
from funcmcp._protocol import objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._compat.components import Tool


class ToolSource(NamedTuple):
    """Where a tool in a list comes from.

    Attributes:
        server: The server.
        component: The tool as it was registered; None for one of another server.
    """

    server: Any
    component: Tool | None

    def __deepcopy__(self, _: Any) -> ToolSource:
        """Return the source itself: a copy of a definition is from the same server."""
        return self


class ListedTool(Editable, objects.Tool):
    """A tool in the list of a server: its definition, with the names of FastMCP and the official SDK.

    Attributes:
        tags: The tags.
    """

    source: ToolSource
    feature: Any = None
    key_prefix: str = "tool"

    @property
    def annotations(self) -> Hints | None:  # type: ignore[override] # None without hints, as in FastMCP
        """Hints for clients."""
        return hints_of(self)

    @property
    def fn(self) -> Callable[..., Any]:
        """The function.

        Raises:
            AttributeError: The tool is one of another server.
        """
        if self.source.component is None:
            raise AttributeError(f"The tool {self.name} is of another server, so it has no function here.")
        return self.source.component.fn

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the tool, as `Tool.run` does; a tool of another server with the middleware of this one.

        Raises:
            ToolError: The tool of another server failed.
        """
        if self.source.component is not None:
            return await self.source.component.run(arguments)
        if self.feature is not None and self.source.server.has_view and (active := context_variable.get()) is not None:
            # Not by its name, under which a transform may have put the tool that runs this one.
            result = await self.feature.handler(active._request, arguments)  # noqa: SLF001 - a part of Context
            return tool_result(objects.CallToolResult(result if isinstance(result, dict) else result.result()))
        version = None if self.version is None else VersionSpec(eq=self.version)
        result = await self.source.server.call_tool(self.name, arguments, raise_on_error=True, version=version)
        return tool_result(result)

    @property
    def timeout(self) -> float | None:
        """The time limit of a call in seconds; None if it has none, or is one of another server."""
        return None if self.source.component is None else self.source.component.timeout

    @property
    def task_config(self) -> TaskConfig:
        """Whether the tool runs as a task."""
        if self.source.component is not None:
            return self.source.component.task_config
        return config_of((self.get("execution") or {}).get("taskSupport"))

    def to_mcp_tool(self, **overrides: Any) -> Any:
        """Return the definition as a ``Tool`` of ``mcp.types``, or in JSON form without the package `mcp`."""
        return sdk_object("Tool", {**self, **overrides})

    @property
    def parameters(self) -> dict[str, Any]:
        """The input schema."""
        return self.input_schema

    @property
    def inputSchema(self) -> dict[str, Any]:  # noqa: N802 - the SDK's name
        """The input schema."""
        return self.input_schema

    @property
    def outputSchema(self) -> dict[str, Any] | None:  # noqa: N802 - the SDK's name
        """The output schema."""
        return self.output_schema


def with_tags(item: Any, server: Any, feature: Any = None) -> Any:
    """Return an item of a list of a server with the attribute ``tags``, which middleware filters by.

    Args:
        item: The item.
        server: The server.
        feature: What the item describes. By default it is looked up.
    """
    if feature is None:
        feature = feature_of(item, server)
    item.feature = feature
    item.tags = set() if feature is None else set(feature.tags)
    if isinstance(item, ListedTool):
        item.source = ToolSource(server, server.registered_tool(item.name, item.version, feature))
    return item


def feature_of(item: Any, server: Any) -> Any:
    """Return the feature of an item of a list of a server; None for one that a provider has for its caller."""
    catalog = server._server.catalog  # noqa: SLF001 - a part of FastMCP
    if isinstance(item, objects.Resource):
        registry, key = catalog.resources, item.uri
    elif isinstance(item, objects.ResourceTemplate):
        registry, key = catalog.templates, item.uri_template
    else:
        registry, key = (catalog.prompts if isinstance(item, objects.Prompt) else catalog.tools), item.name
    features = {feature.version: feature for feature in registry.versions_of(key)}
    return features.get(item.version, features.get(None))  # that of an upstream has no version, which `_meta` may name

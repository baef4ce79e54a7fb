"""FastMCP's middleware that adds tools to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._compat.middleware import Middleware
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Sequence


@public("funcmcp.compat")
class ToolInjectionMiddleware(Middleware):
    """Adds tools to each server that it is added to.

    A tool of the same name is replaced, also one that is registered later. Rules of the server do not hide the tools.

    Args:
        tools: The tools. Of several with one name, the last one counts.
    """

    def __init__(self, tools: Sequence[Any]) -> None:
        self._tools: dict[str, Any] = {tool.name: tool for tool in tools}

    @property
    def injected_tools(self) -> Sequence[Any]:
        """The tools."""
        return list(self._tools.values())

    def get_injected_tool(self, name: str) -> Any:
        """Return the tool with a name; None if there is none."""
        return self._tools.get(name)

    def added_to(self, server: Any) -> None:
        """Add the tools to a server."""
        server.inject_tools(self.injected_tools)


@public("funcmcp.compat")
class PromptToolMiddleware(Middleware):
    """Adds the tools ``list_prompts`` and ``get_prompt``, for clients without prompts: a class of FastMCP 2."""

    def added_to(self, server: Any) -> None:
        """Add the tools to a server."""
        from funcmcp._providers.features_as_tools import PromptsAsTools  # noqa: PLC0415 - few servers need it

        server.add_transform(PromptsAsTools(server, prompts=False))


@public("funcmcp.compat")
class ResourceToolMiddleware(Middleware):
    """Adds the tools ``list_resources`` and ``read_resource``, for clients without resources: a class of FastMCP 2."""

    def added_to(self, server: Any) -> None:
        """Add the tools to a server."""
        from funcmcp._providers.features_as_tools import ResourcesAsTools  # noqa: PLC0415 - few servers need it

        server.add_transform(ResourcesAsTools(server, templates=False))

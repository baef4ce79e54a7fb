"""The private managers of the official SDK's server, which programs and tests read: ``mcp._tool_manager`` and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from funcmcp._compat.components import Component, Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    from funcmcp._compat.server import FastMCP

C = TypeVar("C", bound=Component)


class Manager(Generic[C]):
    """The components of one kind that a server has.

    Args:
        server: The server.
        components: The components of all kinds that it has.
    """

    kind: type[Any]

    def __init__(self, server: FastMCP, components: list[Component]) -> None:
        self._server = server
        self._components: list[Any] = components

    def _registered(self) -> list[C]:
        return [component for component in self._components if isinstance(component, self.kind)]


class ToolManager(Manager[Tool]):
    """The tools."""

    kind = Tool

    @property
    def _tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.list_tools()}

    def list_tools(self) -> list[Tool]:
        """Return the tools as they were registered."""
        return self._registered()

    def get_tool(self, name: str) -> Tool | None:
        """Return a tool; None if it does not exist."""
        return self._tools.get(name)

    def add_tool(self, fn: Any, name: str | None = None, **options: Any) -> Any:
        """Register a function as a tool, and return the tool; an existing one of the same name stays."""
        present = self.get_tool(name or fn.__name__)
        return present or self._server.add_tool(fn, name, **options)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; raise ToolError if it does not exist."""
        self._server.remove_tool(name)

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None, **options: Any) -> Any:
        """Run a tool outside of its server, as its method ``run`` does.

        Raises:
            ToolError: The tool does not exist, or it failed.
        """
        from funcmcp._compat.errors import ToolError  # noqa: PLC0415 - few programs call private parts

        tool: Any = self.get_tool(name)
        if tool is None:
            raise ToolError(f"Unknown tool: {name}")
        return await tool.run(arguments, context, **options)


class PromptManager(Manager[Prompt]):
    """The prompts."""

    kind = Prompt

    @property
    def _prompts(self) -> dict[str, Prompt]:
        return {prompt.name: prompt for prompt in self.list_prompts()}

    def list_prompts(self) -> list[Prompt]:
        """Return the prompts as they were registered."""
        return self._registered()

    def get_prompt(self, name: str) -> Prompt | None:
        """Return a prompt; None if it does not exist."""
        return self._prompts.get(name)

    def add_prompt(self, prompt: Prompt) -> Prompt:
        """Register a prompt."""
        registered: Prompt = self._server.add_prompt(prompt)
        return registered


class ResourceManager(Manager[Resource]):
    """The resources and the templates."""

    kind = Resource

    @property
    def _resources(self) -> dict[str, Resource]:
        return {resource.uri: resource for resource in self.list_resources()}

    @property
    def _templates(self) -> dict[str, Resource]:
        return {template.uri: template for template in self.list_templates()}

    def list_resources(self) -> list[Resource]:
        """Return the resources as they were registered."""
        return [resource for resource in self._registered() if not isinstance(resource, ResourceTemplate)]

    def list_templates(self) -> list[Resource]:
        """Return the templates as they were registered."""
        return [resource for resource in self._registered() if isinstance(resource, ResourceTemplate)]

    async def get_resource(self, uri: Any, context: Any = None) -> Any:
        """Return the resource that reads a URI.

        Raises:
            ResourceNotFoundError: There is none.
        """
        from funcmcp._compat.errors import ResourceNotFoundError  # noqa: PLC0415 - few programs call private parts

        if str(uri) in self._resources:
            return self._resources[str(uri)]
        for template in self.list_templates():
            values = template.matches(str(uri)) if isinstance(template, ResourceTemplate) else None
            if values is not None:
                return await template.create_resource(str(uri), values, context=context)  # type: ignore[attr-defined] # of a template
        raise ResourceNotFoundError(f"Unknown resource: {uri}")

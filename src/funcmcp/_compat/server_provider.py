"""`FastMCPProvider`: the features of another server in this process, as a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._compat.errors import NotFoundError
from funcmcp._compat.provider import Provider, feature_transforms, newest
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence


@public("funcmcp.compat")
class FastMCPProvider(Provider):
    """The features of another server, whose middleware runs for them. ``mcp.mount(server)`` is the same.

    Args:
        server: The other server.
    """

    def __init__(self, server: Any) -> None:
        super().__init__()
        self.server = server

    def __repr__(self) -> str:
        return f"FastMCPProvider({self.server!r})"

    def add_to(self, server: Any, namespace: str | None, transforms: Sequence[Any]) -> None:
        """Mount the other server, with the transforms of this provider."""
        server.mount(self.server, namespace, transforms=[*feature_transforms(self), *transforms])

    async def _list_tools(self) -> Sequence[Any]:
        tools: Sequence[Any] = await self.server.list_tools()
        return tools

    async def _get_tool(self, name: str, version: Any = None) -> Any:
        return await _or_none(self.server.get_tool, name, version)

    async def _list_resources(self) -> Sequence[Any]:
        resources: Sequence[Any] = await self.server.list_resources()
        return resources

    async def _get_resource(self, uri: str, version: Any = None) -> Any:
        return await _or_none(self.server.get_resource, uri, version)

    async def _list_resource_templates(self) -> Sequence[Any]:
        templates: Sequence[Any] = await self.server.list_resource_templates()
        return templates

    async def _get_resource_template(self, uri: str, version: Any = None) -> Any:
        return await _or_none(self.server.get_resource_template, uri, version)

    async def _list_prompts(self) -> Sequence[Any]:
        prompts: Sequence[Any] = await self.server.list_prompts()
        return prompts

    async def _get_prompt(self, name: str, version: Any = None) -> Any:
        prompts = await self._list_prompts()

        return newest((prompt for prompt in prompts if prompt.name == name), version)


async def _or_none(get: Callable[..., Awaitable[Any]], key: str, version: Any) -> Any:
    """Return a component of a server; None if it has none."""
    try:
        return await (get(key) if version is None else get(key, version))
    except NotFoundError:
        return None

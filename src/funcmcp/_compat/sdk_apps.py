"""MCP Apps in the classes of the official SDK 2.x: tools whose results a page shows."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from funcmcp._compat.annotations import plain
from funcmcp._compat.sdk_components import TextResource
from funcmcp._compat.sdk_extensions import Extension, ResourceBinding, ToolBinding
from funcmcp._objects.mappings import without_none
from funcmcp._objects.public_names import public
from funcmcp._protocol.apps import EXTENSION, PAGE_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

F = TypeVar("F", bound="Callable[..., Any]")

_NAMES = ConfigDict(alias_generator=to_camel, populate_by_name=True)


@public("funcmcp.compat.mcp")
class ResourcePermissions(BaseModel):
    """What a page asks its host for."""

    model_config = _NAMES

    camera: dict[str, Any] | None = None
    microphone: dict[str, Any] | None = None
    geolocation: dict[str, Any] | None = None
    clipboard_write: dict[str, Any] | None = None


@public("funcmcp.compat.mcp")
class ResourceCsp(BaseModel):
    """The domains that a page may use."""

    model_config = _NAMES

    connect_domains: list[str] | None = None
    resource_domains: list[str] | None = None
    frame_domains: list[str] | None = None
    base_uri_domains: list[str] | None = None


@public("funcmcp.compat.mcp")
class Apps(Extension):
    """Tools with pages: ``MCPServer(extensions=[apps])``."""

    identifier: str = EXTENSION

    def __init__(self) -> None:
        self._tools: list[tuple[ToolBinding, str]] = []
        self._resources: list[ResourceBinding] = []

    def tool(
        self,
        *,
        resource_uri: str,
        visibility: Sequence[str] | None = None,
        meta: dict[str, Any] | None = None,
        **options: Any,
    ) -> Callable[[F], F]:
        """Return a decorator for a tool whose results a page shows.

        Args:
            resource_uri: The ``ui://`` URI of the page.
            visibility: Who may call the tool: ``"model"``, ``"app"`` or both.
            meta: The other members of the tool's ``_meta``.
            options: The options of a tool.

        Raises:
            ValueError: The URI is not one of a page, or *meta* has a member ``ui``.
        """
        _check_scheme(resource_uri)
        if meta and "ui" in meta:
            raise ValueError("Apps.tool() owns _meta['ui']; pass resource_uri=/visibility= instead of a 'ui' meta key")
        ui: dict[str, Any] = {"resourceUri": resource_uri}
        if visibility is not None:
            ui["visibility"] = list(visibility)

        def decorate(function: F) -> F:
            binding = ToolBinding(function, {**(meta or {}), "ui": ui}, options)
            self._tools.append((binding, resource_uri))
            return function

        return decorate

    def add_html_resource(
        self,
        uri: str,
        html: str,
        *,
        csp: ResourceCsp | None = None,
        permissions: ResourcePermissions | None = None,
        domain: str | None = None,
        prefers_border: bool | None = None,
        **options: Any,
    ) -> None:
        """Add a page.

        Args:
            uri: The ``ui://`` URI.
            html: The HTML.
            csp: The domains that the page may use.
            permissions: What the page asks its host for.
            domain: The domain that the host gives the page.
            prefers_border: Whether the host draws a border.
            options: The name, the title and the description.

        Raises:
            ValueError: The URI is not one of a page.
        """
        _check_scheme(uri)
        parts = {
            "csp": plain(csp),
            "permissions": plain(permissions),
            "domain": domain,
            "prefersBorder": prefers_border,
        }
        ui = without_none(parts)
        chosen = without_none(options)
        if ui:
            chosen["meta"] = {"ui": ui}
        self.add_resource(TextResource(uri, html, **{"name": uri, **chosen, "mime_type": PAGE_TYPE}))

    def add_resource(self, resource: Any) -> None:
        """Add a resource with a page, such as a `FileResource`.

        Raises:
            ValueError: The URI, or the media type, is not one of a page.
        """
        _check_scheme(resource.uri)
        if resource.options.get("mime_type") in (None, "text/plain"):
            resource = copy(resource)
            resource.options = {**resource.options, "mime_type": PAGE_TYPE}
        elif resource.mime_type != PAGE_TYPE:
            raise ValueError(f"MCP Apps resources are served as {PAGE_TYPE!r}, got {resource.mime_type!r}")
        self._resources.append(ResourceBinding(resource))

    def tools(self) -> Sequence[ToolBinding]:
        """Return the tools.

        Raises:
            ValueError: The page of a tool was not added.
        """
        pages = {binding.resource.uri for binding in self._resources}
        for tool, uri in self._tools:
            if uri not in pages:
                raise ValueError(
                    f"Apps tool {tool.fn.__name__!r} binds resource_uri {uri!r}, but no such resource is registered; "
                    "add it with add_html_resource() or add_resource()"
                )
        return [tool for tool, _ in self._tools]

    def resources(self) -> Sequence[ResourceBinding]:
        """Return the pages."""
        return self._resources


@public("funcmcp.compat.mcp")
def client_supports_apps(ctx: Any) -> bool:
    """Return whether the client of a context shows pages."""
    extensions = getattr(ctx.session.client_capabilities, "extensions", None) or {}
    types = (extensions.get(EXTENSION) or {}).get("mimeTypes")
    return isinstance(types, list | tuple) and PAGE_TYPE in types


def _check_scheme(uri: str) -> None:
    if not uri.startswith("ui://"):
        raise ValueError(f"MCP Apps URIs must use the ui:// scheme, got {uri!r}")

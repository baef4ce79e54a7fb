"""MCP Apps under FastMCP's names: ``app=`` of tools and resources, `AppConfig` and `FastMCPApp`.

Components of Prefab, which FastMCP renders into pages, are not here: a tool names a page of its server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field

from funcmcp._compat.app_addresses import TOOL_HASH_META_KEY, hash_tool
from funcmcp._compat.components import Tool
from funcmcp._compat.local_provider import LocalProvider
from funcmcp._compat.pages import Page
from funcmcp._objects.public_names import public
from funcmcp._protocol.apps import EXTENSION, PAGE_TYPE, is_page

if TYPE_CHECKING:
    from collections.abc import Callable

UI_EXTENSION_ID: str = EXTENSION
"""The name of the extension."""

UI_MIME_TYPE: str = PAGE_TYPE
"""The media type of pages."""


class _Config(BaseModel):
    """Settings with names of Python and of the protocol. Members that are not known are kept."""

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True, extra="allow")


@public("funcmcp.compat")
class ResourceCSP(_Config):
    """The origins that a page may use, by their purpose.

    Attributes:
        connect_domains: Origins of requests.
        resource_domains: Origins of scripts, images, styles and fonts.
        frame_domains: Origins of frames.
        base_uri_domains: Origins of the base URI.
    """

    connect_domains: list[str] | None = Field(
        default=None, validation_alias="connectDomains", serialization_alias="connectDomains"
    )
    resource_domains: list[str] | None = Field(
        default=None, validation_alias="resourceDomains", serialization_alias="resourceDomains"
    )
    frame_domains: list[str] | None = Field(
        default=None, validation_alias="frameDomains", serialization_alias="frameDomains"
    )
    base_uri_domains: list[str] | None = Field(
        default=None, validation_alias="baseUriDomains", serialization_alias="baseUriDomains"
    )


@public("funcmcp.compat")
class ResourcePermissions(_Config):
    """The browser features that a page requests, each with an empty dict.

    Attributes:
        camera: The camera.
        microphone: The microphone.
        geolocation: The place.
        clipboard_write: Writing to the clipboard.
    """

    camera: dict[str, Any] | None = None
    microphone: dict[str, Any] | None = None
    geolocation: dict[str, Any] | None = None
    clipboard_write: dict[str, Any] | None = Field(
        default=None, validation_alias="clipboardWrite", serialization_alias="clipboardWrite"
    )


@public("funcmcp.compat")
class AppConfig(_Config, Page):
    """The page of a tool, or the rules of a page: ``@mcp.tool(app=AppConfig(resource_uri="ui://panel.html"))``.

    Attributes:
        resource_uri: The page's URI, for tools.
        visibility: The callers for whom a tool is meant: ``"model"``, ``"app"``, or both. It is no access control.
        csp: The origins that the page may use.
        permissions: The browser features that the page requests.
        domain: The page's origin.
        prefers_border: Whether the client should draw a border around the page.
    """

    resource_uri: str | None = Field(default=None, validation_alias="resourceUri", serialization_alias="resourceUri")
    visibility: list[Literal["app", "model"]] | None = None
    csp: ResourceCSP | None = None
    permissions: ResourcePermissions | None = None
    domain: str | None = None
    prefers_border: bool | None = Field(
        default=None, validation_alias="prefersBorder", serialization_alias="prefersBorder"
    )

    @property
    def wire(self) -> dict[str, Any]:
        """The settings in JSON form."""
        return self.model_dump(by_alias=True, exclude_none=True)


@public("funcmcp.compat")
class FastMCPApp(LocalProvider):
    """Tools of an app: those that its pages call, and those that open a page.

    Args:
        name: The app's name.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __repr__(self) -> str:
        return f"FastMCPApp({self.name!r})"

    def tool(self, name_or_fn: Any = None, /, *, model: bool = False, **options: Any) -> Any:
        """Register a tool that the app's pages call, as ``mcp.tool`` does.

        Args:
            name_or_fn: The function or the name.
            model: Whether the model may call it, too.
            options: The options of ``mcp.tool``.
        """
        visibility: list[Literal["app", "model"]] = ["app", "model"] if model else ["app"]
        options.setdefault("app", AppConfig(visibility=visibility))
        return self._tool(name_or_fn, options)

    def _tool(self, name_or_fn: Any, options: dict[str, Any]) -> Any:
        """Register a function as a tool of the app, or return the decorator that does it."""
        if not callable(name_or_fn):
            name = options.pop("name", None) or name_or_fn

            def decorate(function: Callable[..., Any]) -> Any:
                return self._tool(function, {**options, "name": name})

            return decorate
        name = options.pop("name", None) or getattr(name_or_fn, "__name__", None)
        if name is None:
            raise ValueError(f"Cannot determine tool name for {name_or_fn!r}")
        meta = self._with_identity(options.pop("meta", None), name)
        return super().tool(name_or_fn, name=name, meta=meta, **options)

    def _with_identity(self, meta: dict[str, Any] | None, name: str) -> dict[str, Any]:
        """Return the ``_meta`` of a tool with the names of the app and the hash of the tool."""
        existing = meta or {}
        identity = {"app": self.name, TOOL_HASH_META_KEY: hash_tool(self.name, name)}
        return {**existing, "fastmcp": {**existing.get("fastmcp", {}), **identity}}

    def ui(self, name_or_fn: Any = None, /, *, app: AppConfig | None = None, **options: Any) -> Any:
        """Register a tool that the model calls to open a page.

        Args:
            name_or_fn: The function or the name.
            app: The page of the tool.
            options: The options of ``mcp.tool``.

        Raises:
            ImportError: There is no page, so the tool would return a component of Prefab.
        """
        if app is None or app.resource_uri is None:
            refuse_prefab()
        config = app if app.visibility is not None else app.model_copy(update={"visibility": ["model"]})
        return self._tool(name_or_fn, {**options, "app": config})

    def add_tool(self, tool: Tool | Callable[..., Any]) -> Any:
        """Register a function or a tool that the app's pages call."""
        if not isinstance(tool, Tool):
            return self.tool(tool)
        meta = tool.options.get("meta") or {}
        ui = {"visibility": ["app"], **meta.get("ui", {})}
        tool.options["meta"] = self._with_identity({**meta, "ui": ui}, tool.name)
        return super().add_tool(tool)


def refuse_prefab() -> NoReturn:
    """Raise ImportError for a component of Prefab."""
    raise ImportError(
        "funcmcp does not render components of Prefab. Serve a page with @mcp.resource('ui://app/page.html'), and name "
        "it with app=AppConfig(resource_uri='ui://app/page.html')."
    )


@public("funcmcp.compat")
def app_config_to_meta_dict(app: AppConfig | dict[str, Any]) -> dict[str, Any]:
    """Return the settings of an app as the member ``ui`` of ``_meta``."""
    return app if isinstance(app, dict) else app.wire


@public("funcmcp.compat")
def resolve_ui_mime_type(uri: str, explicit_mime_type: str | None) -> str | None:
    """Return the media type of a resource: the chosen one, or that of pages for their URIs."""
    if explicit_mime_type is not None:
        return explicit_mime_type
    return UI_MIME_TYPE if is_page(uri.lower()) else None

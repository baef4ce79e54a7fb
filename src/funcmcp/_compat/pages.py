"""The option ``app=`` of tools and resources in FastMCP, as the member ``ui`` of ``_meta``."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from funcmcp._objects.mappings import without


class Page:
    """The base class of `AppConfig`."""

    @property
    def wire(self) -> dict[str, Any]:
        """The settings in JSON form."""
        raise NotImplementedError


class PageRules:
    """Rules of a page in JSON form, for `ui` of a resource of funcmcp."""

    def __init__(self, wire: dict[str, Any]) -> None:
        self.wire = wire


def with_page(options: dict[str, Any], *, is_tool: bool) -> dict[str, Any]:
    """Return options of a component with its ``app=`` in ``meta``.

    Args:
        options: The options.
        is_tool: Whether the component is a tool. Otherwise it is a page.

    Raises:
        ImportError: The tool returns a component of Prefab.
        TypeError: The value is not an `AppConfig` or a dict.
        ValueError: A page has settings of tools.
    """
    app = options["app"]
    if app is None or app is False:
        return without(options, "app")
    if app is True:
        raise ImportError(
            "app=True is for components of Prefab, which funcmcp does not render. Serve a page with "
            "@mcp.resource('ui://app/page.html'), and name it with app=AppConfig(resource_uri='ui://app/page.html')."
        )
    wire = _wire(app)
    changed = without(options, "app")
    changed["meta"] = {**(options.get("meta") or {}), "ui": wire}
    if is_tool:
        return changed
    for member, name in (("resourceUri", "resource_uri"), ("visibility", "visibility")):
        if member in wire:
            raise ValueError(f"{name} cannot be set on resources. It is for tools.")
    changed["ui"] = PageRules(wire)
    return changed


def _wire(app: object) -> dict[str, Any]:
    """Return the settings in JSON form, also those of FastMCP's `AppConfig`, which libraries for FastMCP create."""
    if isinstance(app, dict):
        return app
    if isinstance(app, Page):
        return app.wire
    if isinstance(app, BaseModel):
        return app.model_dump(mode="json", by_alias=True, exclude_none=True)
    raise TypeError(f"app must be an AppConfig or a dict, not {type(app).__name__}.")

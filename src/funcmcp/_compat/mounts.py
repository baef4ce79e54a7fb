"""Mounted servers as FastMCP has them: the policy for URIs of the server above, names of tools, and equal names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._app import mounting
from funcmcp._app.mcp_server import MCPServer
from funcmcp._compat.mounted_views import MountedView
from funcmcp._compat.security import with_screening_of
from funcmcp._server.catalog.features import ResourceTemplate
from funcmcp._server.catalog.transformed import Transform as NativeTransform
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._compat.security import ResourceSecurity
    from funcmcp._compat.server import FastMCP


def mount(
    above: FastMCP, server: Any, prefix: str | None, transforms: Sequence[Any], tool_names: Mapping[str, str] | None
) -> None:
    """Serve the features of another server, too.

    Args:
        above: The server that serves them.
        server: The other server, or an upstream.
        prefix: The first part of names and URIs. None and an empty text leave them unchanged.
        transforms: Transforms of the features.
        tool_names: Other names of tools, by their names in the other server.
    """
    changes: list[Any] = [*_native(transforms), Screened(above.resource_security)]
    if tool_names:
        from funcmcp._providers.tool_changes import (  # noqa: PLC0415 - few mounts rename tools
            ToolChange,
            ToolTransform,
        )

        changes.append(ToolTransform({name: ToolChange(renamed) for name, renamed in tool_names.items()}))
    if not isinstance(server, MCPServer):
        MCPServer.mount(above, server, prefix or None, transforms=changes)
        return
    from funcmcp._compat.server import FastMCP  # noqa: PLC0415 - which uses this module

    if isinstance(server, FastMCP):
        changes.insert(0, MountedView(server))
    mounting.mount(runtime_of(above), runtime_of(server), prefix or None, changes, keeps_existing=True)


def _native(transforms: Sequence[Any]) -> list[Any]:
    if not transforms:
        return []
    from funcmcp._compat.transforms import native_transforms  # noqa: PLC0415 - few mounts have transforms

    return native_transforms(transforms)


class Screened(NativeTransform):
    """Lets templates of a mounted server also reject what the policy of the server above does.

    Args:
        policy: The policy; None for none.
    """

    def __init__(self, policy: ResourceSecurity | None) -> None:
        self._policy = policy

    def __call__(self, feature: Any) -> Any:
        """Return the feature of the mounted server with both policies."""
        if not isinstance(feature, ResourceTemplate):
            return feature
        screening = with_screening_of(feature.template.screening, self._policy)
        return replace(feature, template=feature.template.with_screening(screening))

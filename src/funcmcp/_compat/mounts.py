"""Mounted servers as FastMCP has them: the policy for URIs of the server above, names of tools, and equal names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._app import mounting
from funcmcp._app.mcp_server import MCPServer
from funcmcp._compat.security import with_screening_of
from funcmcp._compat.server_middleware import ServerMiddleware
from funcmcp._server.catalog.features import ResourceTemplate
from funcmcp._server.catalog.transformed import Transform as NativeTransform
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._compat.security import ResourceSecurity


def mount(
    above: MCPServer,
    server: Any,
    prefix: str | None,
    transforms: Sequence[Any],
    tool_names: Mapping[str, str] | None,
    security: ResourceSecurity | None,
) -> None:
    """Serve the features of another server, too.

    Args:
        above: The server that serves them.
        server: The other server, or an upstream.
        prefix: The first part of names and URIs. None and an empty text leave them unchanged.
        transforms: Transforms of the features.
        tool_names: Other names of tools, by their names in the other server.
        security: The policy for URIs of the server that serves them.
    """
    changes = [*_native(transforms), Screened(security)]
    if tool_names:
        from funcmcp._providers.tool_changes import (  # noqa: PLC0415 - few mounts rename tools
            ToolChange,
            ToolTransform,
        )

        changes.append(ToolTransform({name: ToolChange(renamed) for name, renamed in tool_names.items()}))
    if not isinstance(server, MCPServer):
        MCPServer.mount(above, server, prefix or None, transforms=changes)
        return
    changes_lists = (lambda: server.changes_lists) if isinstance(server, ServerMiddleware) else None
    mounting.mount(
        *(runtime_of(above), runtime_of(server), prefix or None, changes),
        keeps_existing=True,
        changes_lists=changes_lists,
    )


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

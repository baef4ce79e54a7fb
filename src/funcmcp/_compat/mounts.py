"""Mounted servers as FastMCP has them: the policy for URIs of the server above, names of tools, and equal names."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._app import mounting
from funcmcp._app.mcp_server import MCPServer
from funcmcp._compat.security import with_screening_of
from funcmcp._compat.server_middleware import ServerMiddleware
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.catalog.transformed import Transform as NativeTransform
from funcmcp._server.log import quote
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._compat.authorization import Caller
    from funcmcp._compat.security import ResourceSecurity
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Feature, ShownIf

_logger = logging.getLogger("funcmcp.compat")


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
    changes: list[Any] = [*_native(transforms), Screened(security)]
    if hasattr(server, "client_rules"):  # a server of funcmcp.compat
        changes.insert(0, SessionRules(server))
    if tool_names:
        from funcmcp._providers.tool_changes import (  # noqa: PLC0415 - few mounts rename tools
            ToolChange,
            ToolTransform,
        )

        changes.append(ToolTransform({name: ToolChange(renamed) for name, renamed in tool_names.items()}))
    if not isinstance(server, MCPServer):
        MCPServer.mount(above, server, prefix or None, transforms=changes)
        return
    if _shows_more(above, server):
        _logger.warning(
            "%s hides the details of errors, and %s, which it mounts, shows them. Pass mask_error_details to both.",
            quote(above.name),
            quote(server.name),
        )
    changes_lists = (lambda: server.changes_lists) if isinstance(server, ServerMiddleware) else None
    mounted = mounting.mount(
        *(runtime_of(above), runtime_of(server), prefix or None, changes),
        keeps_existing=True,
        changes_lists=changes_lists,
    )
    if hasattr(server, "client_rules"):
        server.client_rules.on_show(mounted.serve_hidden)


def _shows_more(above: MCPServer, server: MCPServer) -> bool:
    """Return whether a mounted server shows clients errors that the server above hides."""
    shown = runtime_of(server).server.options.show_errors
    return shown is True and runtime_of(above).server.options.show_errors is not True


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


class SessionRules(NativeTransform):
    """Shows the features of a mounted server to the clients to which it shows them itself.

    Its tools may hide features from one client, and show those that are hidden: `Context.enable_components`.

    Args:
        server: The mounted server.
    """

    def __init__(self, server: Any) -> None:
        self._server = server

    def __call__(self, feature: Any) -> Any:
        """Return the feature of the mounted server with the condition."""
        if not isinstance(feature, Tool | Resource | ResourceTemplate | Prompt):
            return feature
        return replace(feature, shown_if=MountedCondition(self, feature))

    def allow(self, feature: Feature, request: RequestContext) -> bool:
        """Return whether the client of a request to the server above sees a feature of the mounted server."""
        is_visible = feature.is_built_in or self._server._server.catalog.visibility.allows(feature)  # noqa: SLF001 - a part of FastMCP
        rules = self._server.client_rules.of(request)
        return is_visible if rules is None else rules.decide(feature, default=is_visible)


class MountedCondition:
    """The condition on which callers have a feature of a mounted server.

    Args:
        rules: The rules of the mounted server for clients.
        feature: The feature of the mounted server.
    """

    def __init__(self, rules: SessionRules, feature: Feature) -> None:
        self._rules = rules
        self._feature = feature
        self._inner: ShownIf | None = feature.shown_if

    async def __call__(self, feature: Feature, request: RequestContext) -> bool:
        """Return whether the caller of a request has the feature."""
        is_shown = self._inner is None or await self._inner(feature, request)
        return is_shown and self._rules.allow(self._feature, request)

    async def allows(self, feature: Feature, caller: Caller) -> bool:
        """Return whether the checks of the feature let a caller have it."""
        allows = getattr(self._inner, "allows", None)
        return allows is None or await allows(feature, caller)

"""Mounted servers as FastMCP has them: the policy for URIs of the server above, names of tools, and equal names.

How it works: each feature that a server above serves for a mounted one has a `MountedCondition`. It asks the mounted
server: its rules for the client of the request, and, where the feature is not named by the request but listed, the
list that its middleware and its overridden methods return. That list is asked for once in a request.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from funcmcp._app import mounting
from funcmcp._app.mcp_server import MCPServer
from funcmcp._compat.security import with_screening_of
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.catalog.transformed import Transform as NativeTransform
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._compat.authorization import Caller
    from funcmcp._compat.security import ResourceSecurity
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Feature, ShownIf

_LISTS: Final[dict[type, tuple[str, str]]] = {
    Tool: ("tools/list", "name"),
    Resource: ("resources/list", "uri"),
    ResourceTemplate: ("resources/templates/list", "uriTemplate"),
    Prompt: ("prompts/list", "name"),
}
"""The method that lists the features of a class, and the member that has their key."""

_MAX_REQUESTS = 32
"""Requests whose lists are kept, because several of them run at the same time."""


def mount(
    above: Any, server: Any, prefix: str | None, transforms: Sequence[Any], tool_names: Mapping[str, str] | None
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
    if hasattr(server, "client_rules"):  # a server of funcmcp.compat
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


class _Listed(NamedTuple):
    """The keys that a mounted server lists in a request.

    Attributes:
        request: The request. It is kept, so that no other object gets its identity meanwhile.
        keys: The keys by the method of the list.
    """

    request: RequestContext
    keys: dict[str, frozenset[str]]


class MountedView(NativeTransform):
    """Gives the features of a mounted server the condition that it shows them.

    Args:
        server: The mounted server.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self._lists: OrderedDict[int, _Listed] = OrderedDict()

    def __call__(self, feature: Any) -> Any:
        """Return the feature of the mounted server with the condition."""
        if type(feature) not in _LISTS:
            return feature
        return replace(feature, shown_if=MountedCondition(self, feature))

    async def shows(self, feature: Feature, request: RequestContext) -> bool:
        """Return whether the mounted server shows one of its features in a request to the server above."""
        if not self.allows_use(feature, request):
            return False
        return not self._server.changes_lists or feature.key in await self._listed(type(feature), request)

    def allows_use(self, feature: Feature, request: RequestContext) -> bool:
        """Return whether the rules of the mounted server for a client let it use a feature."""
        rules = self._server.client_rules.of(request)
        return rules is None or rules.decide(feature, default=True)

    async def _listed(self, kind: type, request: RequestContext) -> frozenset[str]:
        method, member = _LISTS[kind]
        listed = self._lists.get(id(request))
        if listed is None:
            listed = self._lists[id(request)] = _Listed(request, {})
            while len(self._lists) > _MAX_REQUESTS:
                self._lists.popitem(last=False)
        if method not in listed.keys:
            listed.keys[method] = await self._keys(method, member, request)
        return listed.keys[method]

    async def _keys(self, method: str, member: str, request: RequestContext) -> frozenset[str]:
        """Return the keys in the list of the mounted server; none of them if the list is an error."""
        keys: set[str] = set()
        cursor: str | None = None
        while True:
            params = {} if cursor is None else {"cursor": cursor}
            inner = copy.copy(request)
            inner.outer, inner.rules = request, None
            inner.request = Request(request.request.id, method, params)
            native = runtime_of(self._server).server
            inner.routed = native.routes.route(inner.request)
            message = (await native.answer(inner)).message()
            result = message.get("result", {})
            keys.update(item[member] for item in result.get(FEATURE_LISTS[method], ()))
            cursor = result.get("nextCursor")
            if cursor is None:
                return frozenset(keys)


class MountedCondition:
    """The condition on which callers have a feature of a mounted server.

    Args:
        view: What the mounted server shows.
        feature: The feature of the mounted server.
    """

    def __init__(self, view: MountedView, feature: Feature) -> None:
        self._view = view
        self._feature = feature
        self._inner: ShownIf | None = feature.shown_if

    async def __call__(self, feature: Feature, request: RequestContext) -> bool:
        """Return whether the caller of a request has the feature."""
        if self._inner is not None and not await self._inner(feature, request):
            return False
        routed = request.routed.feature
        if routed is not None and (type(routed), routed.key) == (type(feature), feature.key):
            return self._view.allows_use(self._feature, request)
        return await self._view.shows(self._feature, request)

    async def allows(self, feature: Feature, caller: Caller) -> bool:
        """Return whether the checks of the feature let a caller have it."""
        allows = getattr(self._inner, "allows", None)
        return allows is None or await allows(feature, caller)

"""Mounted servers: the features of one server in the catalog of another one, under a prefix.

How it works: `Mounting` listens to the catalog of the mounted server. For each feature there, it makes one with a
handler around the mounted one. Transforms, of which the prefix is one, change it (`TransformedFeatures`), and the
results are in the catalog of the server above until the mounted feature is removed. So the server above serves plain
features, and a feature of the second level gets into the third one in the same way.

Options of the mounted server that belong to its features become part of them: its scopes and its `show_errors`. If the
mounted server has middleware, the handler sends the request through its `answer`, as if its own client had sent it.
Rounds of questions, tasks and time limits are those of the server above.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._app.mounted_lists import MountedLists
from funcmcp._auth.access import distinct
from funcmcp._objects.definitions import replace
from funcmcp._protocol.envelope import SERVER_INFO
from funcmcp._protocol.errors import MCPError, ResourceNotFound
from funcmcp._protocol.jsonrpc import Request
from funcmcp._providers.namespace import Namespace
from funcmcp._server.calls.feature import MountSource
from funcmcp._server.calls.feature_call import FeatureCalls
from funcmcp._server.calls.route import Audience, Interactivity, Route, RoutedRequest
from funcmcp._server.catalog.features import (
    EncodedResult,
    Prompt,
    RawResponse,
    Resource,
    ResourceLister,
    ResourceTemplate,
    Tool,
)
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.catalog.transformed import TransformedFeatures, listed_transforms
from funcmcp._server.handlers.tools import ToolCalls
from funcmcp._server.options import shown_types

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from funcmcp._auth.access import Access
    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.catalog.features import Addable
    from funcmcp._server.catalog.registry import Registry
    from funcmcp._server.catalog.transformed import AnyTransform
    from funcmcp._serving.composition import ServerRuntime
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute

    F = TypeVar("F", bound=Feature)


def mount(
    above: ServerRuntime,
    mounted: ServerRuntime,
    prefix: str | None,
    transforms: Sequence[AnyTransform] = (),
    *,
    keeps_existing: bool = False,
    changes_lists: Callable[[], bool] | None = None,
) -> Mounting:
    """Add the features of a server to another one, now and from now on, and return what does so.

    Args:
        above: Serves the features, too.
        mounted: Has the features.
        prefix: The first part of the names and URIs; None leaves them unchanged.
        transforms: Change the features before they get the prefix.
        keeps_existing: Whether features are left out whose name is taken, instead of an error.
        changes_lists: Returns whether middleware of the mounted server may change lists, so that those of the server
            above pass it. None: they do not pass it.

    Raises:
        TypeError: A transform is not callable.
        ValueError: The prefix is malformed.
        RegistrationError: The servers would mount each other, a name is taken, or the features would lose a rule.
        RuntimeError: One of the servers has started, and the mounted one has lifespans.
    """
    namespace = None if prefix is None else Namespace(prefix)
    if above is mounted or above in _servers_below(mounted):
        raise RegistrationError(f"{mounted.name} and {above.name} would mount each other. Remove one of the mounts.")
    if mounted.server.view is not None:
        raise RegistrationError(
            f"{mounted.name} has transforms for each request, which {above.name} would not pass. Add them to "
            f"{above.name}."
        )
    mounted.server.is_mounted = True
    if mounted.server.guard is not None and above.server.guard is None:
        raise RegistrationError(
            f"{mounted.name} has auth, and {above.name}, which mounts it, has none: every caller could use its "
            f"features. Set auth= of {above.name}, too."
        )
    missing = sorted(above.server.revisions.keys() - mounted.server.revisions.keys())
    if missing:
        raise RegistrationError(
            f"{mounted.name} does not speak {', '.join(missing)}, as {above.name} does. Give both the same revisions."
        )
    if above.services.lifespans.has_started and mounted.services.lifespans:
        raise RuntimeError(f"{above.name} has started, and {mounted.name} has lifespans. Call mcp.mount before that.")
    mounting = Mounting(
        above, mounted, transforms, namespace, keeps_existing=keeps_existing, changes_lists=changes_lists
    )
    mounting.add_features()
    above.services.lifespans.mount(mounted.services.lifespans, mounted.name)
    above.mounted.append(mounted)
    mounted.above = above
    if above.services.uploads is not None:
        mounted.services.uploads = above.services.uploads
    mounted.on_change.append(mounting.publish)
    for route in mounted.routes:
        mounting.add_route(route)
    mounted.on_route.append(mounting.add_route)
    mounted.on_provider = (*mounted.on_provider, mounting.follow_providers)
    if mounted.server.provided is not None:
        mounting.follow_providers()
    return mounting


def _servers_below(runtime: ServerRuntime) -> list[ServerRuntime]:
    servers = list(runtime.mounted)
    for mounted in runtime.mounted:
        servers += _servers_below(mounted)
    return servers


class Mounting:
    """Copies the features of a mounted server to the server above.

    Args:
        above: The server above.
        mounted: The mounted server.
        transforms: Change the features.
        namespace: Puts the prefix before names and URIs, after the other transforms; None leaves them unchanged.
        keeps_existing: Whether features are left out whose name is taken.
        changes_lists: As for `mount`.
    """

    def __init__(
        self,
        above: ServerRuntime,
        mounted: ServerRuntime,
        transforms: Sequence[AnyTransform],
        namespace: Namespace | None,
        *,
        keeps_existing: bool = False,
        changes_lists: Callable[[], bool] | None = None,
    ) -> None:
        self._keeps_existing = keeps_existing
        self._above = above
        self._mounted = mounted
        self._namespace = namespace
        self._position = next(above.server.catalog.positions)
        self._server = mounted.server
        self._calls = FeatureCalls(self._server.keys, self._server.parts.used_states, self._server.options.show_errors)
        self._tool_calls = ToolCalls(self._calls, self._server.results)
        self._transforms = listed_transforms(transforms)
        if namespace is not None:
            self._transforms.append(namespace)
        self._copies = TransformedFeatures(self._add, self._remove, self._transforms)

        self._serves_hidden = False
        self._lists: MountedLists | None = None
        if changes_lists is not None:
            self._lists = MountedLists(self._server, changes_lists, self._features_above)

    def _features_above(self, feature: Any) -> list[Any]:
        """Return the features that the server above makes of one of the mounted server, without adding them."""
        features: list[Any] = []
        for result in self._copies.results_of(self._copy_of(feature)):
            features += self._above.server.catalog.transformed(result)
        return [item for item in features if type(item) is type(feature)]

    def _add(self, feature: Addable) -> None:
        """Add a feature to the server above, unless its name is taken and the existing one is kept."""
        catalog = self._above.server.catalog
        if not self._keeps_existing or not catalog.has(feature):
            catalog.add(feature)

    def _remove(self, feature: Addable) -> None:
        """Remove a feature from the server above, unless another one has its name there."""
        catalog = self._above.server.catalog
        if not self._keeps_existing or catalog.has(feature, itself=True):
            catalog.remove(feature)

    def add_features(self) -> None:
        """Add all features, and listen for changes; raise RegistrationError, and add none, if a name is taken."""
        registries = self._registries()
        try:
            for registry in registries:
                for feature in registry.every_version():
                    self._changed(feature, 1)
        except RegistrationError:
            self._copies.clear()
            raise
        for registry in registries:
            registry.listeners.append(self._changed)
        if self._lists is not None:
            self._above.server.add_list_filter(self._lists)

    def _registries(self) -> list[Registry[Any]]:
        catalog = self._server.catalog
        return [
            *(catalog.tools, catalog.resources, catalog.templates),
            *(catalog.listers, catalog.prompts, catalog.skills),
        ]

    def serve_hidden(self) -> None:
        """Add the features that the mounted server hides, too. A transform decides which clients have them."""
        if self._serves_hidden:
            return
        self._serves_hidden = True
        for registry in self._registries():
            visible = list(registry.every_version())
            for feature in registry.every():
                if feature not in visible:
                    self._changed(feature, 1)
            registry.hidden_listeners.append(self._changed)

    def publish(self, uri: str | None) -> None:
        """Notify the clients of the server above that a resource, or the list of resources, has changed."""
        if uri is not None and self._namespace is not None:
            uri = self._namespace.uri(uri)
        self._above.publish(uri)

    def add_route(self, route: CustomRoute) -> None:
        """Serve a custom route of the mounted server, at the same path."""
        self._above.add_route(route._replace(access=self._access(route.access)))

    def follow_providers(self) -> None:
        """Serve the features of the mounted server's providers, too."""
        from funcmcp._app.providing import follow  # noqa: PLC0415 - few servers have providers

        follow(self._above, self._mounted, self._copy_of, self._transforms, (self._position,))

    def _changed(self, feature: Addable, count: int) -> None:
        if not isinstance(feature, ResourceLister) and (feature.is_built_in or self._is_of_uploads(feature)):
            return
        former = replace(feature, position=self._position_of(feature))
        if self._copies.has(former):
            self._copies.remove(former)
        if count > 0 or (self._serves_hidden and self._is_registered(feature)):
            self._copies.add(self._copy_of(feature))

    def _is_registered(self, feature: Addable) -> bool:
        """Return whether the mounted server has a feature, visible or not."""
        return any(feature in registry.versions_of(feature.key) for registry in self._registries())

    def _is_of_uploads(self, feature: Feature) -> bool:
        """Return whether a feature belongs to a place for files that clients of the server above do not reach."""
        tool, template = self._mounted.upload_features or (None, None)
        handler = getattr(feature, "handler", None)
        if template is not None and handler is template.handler:
            return self._above.services.uploads is not None  # which has the files
        return tool is not None and handler is tool.handler

    def _copy_of(self, feature: Addable) -> Addable:
        if isinstance(feature, Tool):
            return self._tool(feature)
        if isinstance(feature, Prompt):
            return self._prompt(feature)
        if isinstance(feature, Resource | ResourceTemplate):
            return self._resource(feature)
        return replace(feature, access=self._access(feature.access), position=self._position_of(feature))

    def _tool(self, tool: Tool) -> Tool:
        async def call(context: RequestContext, arguments: dict[str, Any]) -> Any:
            if not self._server.has_middleware:
                return await tool.handler(context, arguments)

            def run(inner: RequestContext) -> Awaitable[Any]:
                # The server above limits the time, which may be longer in a task.
                return self._tool_calls.run(inner, tool, inner.request.params.get("arguments", {}), None)

            response = await self._answer(context, tool, {"name": tool.name, "arguments": arguments}, run)
            return RawResponse(self._introduced(response))

        characters = tool.result_characters
        if characters is None:
            characters = self._server.options.limits.result_characters
        return replace(self._shared(tool), handler=call, result_characters=characters)

    def _introduced(self, response: dict[str, Any]) -> dict[str, Any]:
        """Return a response of the mounted server with the name of the server above, to which clients connect."""
        meta = response.get("result", {}).get("_meta", {})
        if SERVER_INFO not in meta:
            return response
        meta = {**meta, SERVER_INFO: self._above.server.results.server_info}
        return {**response, "result": {**response["result"], "_meta": meta}}

    def _prompt(self, prompt: Prompt) -> Prompt:
        async def get(context: RequestContext, arguments: dict[str, str]) -> Any:
            if not self._server.has_middleware:
                return await prompt.handler(context, arguments)

            def run(inner: RequestContext) -> Awaitable[Any]:
                return self._run(prompt, prompt.handler(inner, inner.request.params.get("arguments", {})), inner)

            params = {"name": prompt.name, "arguments": arguments}
            return _result_of(await self._answer(context, prompt, params, run), "description", "messages", "_meta")

        return replace(self._shared(prompt), handler=get)

    def _resource(self, resource: Resource | ResourceTemplate) -> Resource | ResourceTemplate:
        async def read(context: RequestContext, uri: str, values: Values) -> Any:
            if isinstance(resource, ResourceTemplate) and uri in self._server.catalog.resources:
                raise ResourceNotFound(uri)  # a resource that is hidden must not be read through a template
            if not self._server.has_middleware:
                return await resource.handler(context, uri, values)

            def run(inner: RequestContext) -> Awaitable[Any]:
                return self._run(resource, resource.handler(inner, uri, values), inner)

            return _result_of(await self._answer(context, resource, {"uri": uri}, run, values), "contents", "_meta")

        return replace(self._shared(resource), handler=read)

    def _shared(self, feature: F) -> F:
        """Return a feature with the rules of its server that belong to it."""
        shown = feature.shown_errors
        if shown is None:
            shown = shown_types(self._server.options.show_errors, "show_errors")
        mounted = (self._server.options.name, *feature.mounted)
        mount = None if self._lists is None else MountSource(self._lists, feature)
        access = self._access(feature.access)
        return replace(
            feature,
            access=access,
            shown_errors=shown,
            enabled=True,
            mounted=mounted,
            mount=mount,
            position=self._position_of(feature),
        )

    def _position_of(self, feature: Feature | ResourceLister) -> tuple[int, ...]:
        """Return the position in the server above: that of the mount first, if a provider has the feature."""
        return (self._position, *feature.position) if feature.position else ()

    def _access(self, access: Access) -> Access:
        """Return an access rule that also demands the scopes of the mounted server."""
        guard = self._server.guard
        if guard is None or not guard.scopes or access.allow_anonymous:
            return access
        return access._replace(required_scopes=distinct([*guard.scopes, *access.required_scopes]))

    async def _run(self, feature: Feature, work: Any, context: RequestContext) -> Any:
        result = await self._calls.run(feature, work, context)
        return result.result() if isinstance(result, EncodedResult) else result

    async def _answer(
        self,
        context: RequestContext,
        feature: Feature,
        params: dict[str, Any],
        run: Callable[[RequestContext], Awaitable[Any]],
        values: Values | None = None,
    ) -> dict[str, Any]:
        """Send a request through the middleware of the mounted server to a function, and return the response."""
        request = Request(context.request.id, context.request.method, {**context.request.params, **params})
        revisions = frozenset(self._server.revisions)
        route = Route(request.method, run, Audience.FEATURE, None, Interactivity.FEATURE, None, revisions)
        inner = copy.copy(context)
        inner.outer = context
        inner.request = request
        inner.routed = RoutedRequest(request, route, feature, values or {})
        return (await self._server.answer(inner)).message()


def _result_of(message: dict[str, Any], *members: str) -> dict[str, Any]:
    """Return the members of a response's result; raise MCPError if it is an error."""
    error = message.get("error")
    if error is not None:
        raise MCPError(error["code"], error["message"], error.get("data"))
    result: dict[str, Any] = message["result"]
    if result.get("resultType") == "input_required":
        return result
    return {name: result[name] for name in members if name in result}
